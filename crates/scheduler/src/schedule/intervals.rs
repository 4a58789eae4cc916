//! Which of many intervals meet another one. They are kept by start in classes of lengths, so that one long interval does
//! not widen the search among the short ones.

use crate::time::{Interval, Seconds, Time};
use std::collections::BTreeSet;

/// Lengths below 2⁶³ seconds.
const CLASSES: usize = 64;

/// Intervals that are sorted by their ends when time passes: where more have started, the rest waits for the next time.
pub(super) const STARTED_MAX: usize = 2_048;

/// Intervals by handle.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    /// Of lengths from 2^c to 2^(c+1) - 1 in class c; by start and handle.
    classes: Vec<BTreeSet<(Time, u32)>>,
    /// Bit c: class c is not empty.
    used: u64,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            classes: vec![BTreeSet::new(); CLASSES],
            used: 0,
        }
    }
}

/// The class of a length.
fn length_class(length: Seconds) -> usize {
    length.max(1).ilog2() as usize
}

impl Intervals {
    /// Takes in a non-empty interval. O(log n).
    pub(super) fn insert(&mut self, interval: Interval, handle: u32) {
        let class = length_class(interval.duration());
        self.classes[class].insert((interval.start, handle));
        self.used |= 1 << class;
    }

    /// Takes out an interval that was taken in. O(log n).
    pub(super) fn remove(&mut self, interval: Interval, handle: u32) {
        let class = length_class(interval.duration());
        self.classes[class].remove(&(interval.start, handle));
        if self.classes[class].is_empty() {
            self.used &= !(1 << class);
        }
    }

    /// Replaces everything by these intervals. O(n log n), less than one by one.
    pub(super) fn replace(&mut self, intervals: impl Iterator<Item = (Interval, u32)>) {
        let mut sorted: Vec<Vec<(Time, u32)>> = vec![Vec::new(); CLASSES];
        for (interval, handle) in intervals {
            sorted[length_class(interval.duration())].push((interval.start, handle));
        }
        self.used = 0;
        for (class, sorted) in sorted.into_iter().enumerate() {
            self.used |= u64::from(!sorted.is_empty()) << class;
            self.classes[class] = sorted.into_iter().collect();
        }
    }

    fn used(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.used;
        std::iter::from_fn(move || {
            let class = (left != 0).then_some(left.trailing_zeros())?;
            left &= left - 1;
            Some(class as usize)
        })
    }

    /// The handles of all intervals that meet `interval`, among some that lie up to their own length before it. O(c log n + k)
    /// for c classes in use and k handles.
    pub(super) fn near(&self, interval: Interval) -> impl Iterator<Item = u32> + '_ {
        self.used().flat_map(move |class| {
            // The longest of the class is one second shorter.
            let reach = (class < 62).then(|| 1_i64 << (class + 1));
            let from = interval.start - reach.unwrap_or(Seconds::MAX);
            self.starting_of_class(class, Interval::new(from, interval.end))
        })
    }

    /// Takes out intervals that start by an instant, some of them where there are many; answers with them.
    fn take_started(&mut self, by: Time) -> Vec<u32> {
        let mut started = Vec::new();
        for class in self.used() {
            while let Some((_, handle)) = self.classes[class]
                .first()
                .copied()
                .filter(|(start, _)| *start <= by && started.len() < STARTED_MAX)
            {
                self.classes[class].pop_first();
                started.push(handle);
            }
            if self.classes[class].is_empty() {
                self.used &= !(1 << class);
            }
        }
        started
    }

    /// The handles of the intervals that start in an interval.
    pub(super) fn starting_in(&self, interval: Interval) -> impl Iterator<Item = u32> + '_ {
        self.first_starting_in(interval, usize::MAX)
    }

    /// The handles of the first intervals that start in an interval, at most `most` of each class.
    pub(super) fn first_starting_in(
        &self,
        interval: Interval,
        most: usize,
    ) -> impl Iterator<Item = u32> + '_ {
        self.used()
            .flat_map(move |class| self.starting_of_class(class, interval).take(most))
    }

    fn starting_of_class(&self, class: usize, interval: Interval) -> impl Iterator<Item = u32> + '_ {
        let starts = (interval.start, 0)..(interval.end.max(interval.start), 0);
        self.classes[class].range(starts).map(|(_, handle)| *handle)
    }

    /// The class that three quarters of the intervals do not exceed.
    pub(super) fn class_of_most(&self) -> u32 {
        let all: usize = self.used().map(|class| self.classes[class].len()).sum();
        let mut seen = 0;
        let most = self.used().find(|class| {
            seen += self.classes[*class].len();
            4 * seen >= 3 * all
        });
        u32::try_from(most.unwrap_or(0)).unwrap_or(0)
    }

    /// The one that starts first.
    pub(super) fn first(&self) -> Option<(Time, u32)> {
        self.used()
            .filter_map(|class| self.classes[class].first().copied())
            .min()
    }
}

/// Intervals. Those that have started by the present are kept by their ends, as far as there was time to sort them: a request
/// that may still be placed in them starts now.
#[derive(Debug, Clone)]
pub(super) struct LiveIntervals {
    now: Time,
    started: BTreeSet<(Time, u32)>,
    ahead: Intervals,
}

impl Default for LiveIntervals {
    fn default() -> Self {
        Self {
            now: Time::MIN,
            started: BTreeSet::new(),
            ahead: Intervals::default(),
        }
    }
}

impl LiveIntervals {
    /// Takes in a non-empty interval. O(log n).
    pub(super) fn insert(&mut self, interval: Interval, handle: u32) {
        if interval.start <= self.now {
            self.started.insert((interval.end, handle));
        } else {
            self.ahead.insert(interval, handle);
        }
    }

    /// Takes out an interval that was taken in. O(log n).
    pub(super) fn remove(&mut self, interval: Interval, handle: u32) {
        if interval.start > self.now || !self.started.remove(&(interval.end, handle)) {
            self.ahead.remove(interval, handle);
        }
    }

    /// Replaces everything by these intervals. O(n log n), less than one by one.
    pub(super) fn replace(&mut self, intervals: impl Iterator<Item = (Interval, u32)>) {
        let (started, ahead): (Vec<_>, Vec<_>) =
            intervals.partition(|(interval, _)| interval.start <= self.now);
        let by_end = |(interval, handle): (Interval, u32)| (interval.end, handle);
        self.started = started.into_iter().map(by_end).collect();
        self.ahead.replace(ahead.into_iter());
    }

    /// Lets time pass; `end` is where the interval of a handle ends. O(k log n) for k that start, [`STARTED_MAX`] at most. Time that is
    /// taken back is not: an interval that has started stays where it is kept.
    pub(super) fn advance(&mut self, now: Time, end: impl Fn(u32) -> Option<Time>) {
        self.now = self.now.max(now);
        for handle in self.ahead.take_started(self.now) {
            self.started.extend(end(handle).map(|end| (end, handle)));
        }
    }

    /// The handles of all intervals that meet one that ends after now, among some that lie up to their own length before it.
    pub(super) fn near(&self, interval: Interval) -> impl Iterator<Item = u32> + '_ {
        let started = self.started.range((interval.start, u32::MAX)..);
        started
            .map(|(_, handle)| *handle)
            .chain(self.ahead.near(interval))
    }

    /// The handles of the intervals that have started.
    pub(super) fn started(&self) -> impl Iterator<Item = u32> + '_ {
        self.started.iter().map(|(_, handle)| *handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_has_started_is_taken_out_after_time_was_taken_back() {
        let (mut live, interval) = (LiveIntervals::default(), Interval::new(Time(3), Time(9)));
        live.insert(interval, 7);
        live.advance(Time(5), |_| Some(interval.end));
        // As far as a schedule knows, it is earlier again.
        live.advance(Time(2), |_| Some(interval.end));
        live.remove(interval, 7);
        assert_eq!(live.near(interval).count(), 0);
    }
}
