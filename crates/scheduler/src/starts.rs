//! Things by their starts, counted by parts of time: how many start in a month is known without a look at each.

use std::collections::{BTreeMap, BTreeSet};

use crate::time::{Interval, Seconds, Time};

/// The length of the parts of time, in seconds: six hours.
const PART: Seconds = 21_600;

/// How many things start in each part of time with some, by its number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StartCounts(BTreeMap<i64, usize>);

/// The number of the part of time with an instant.
fn part_of(at: Time) -> i64 {
    at.seconds().div_euclid(PART)
}

impl StartCounts {
    pub(crate) fn add(&mut self, start: Time) {
        *self.0.entry(part_of(start)).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, start: Time) {
        if let Some(count) = self.0.get_mut(&part_of(start)) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&part_of(start));
            }
        }
    }

    /// How many start in an interval, where `walk` counts one by one: asked about the first and the last part only.
    pub(crate) fn within(&self, interval: Interval, walk: impl Fn(Interval) -> usize) -> usize {
        let (first, last) = (part_of(interval.start) + 1, part_of(interval.end));
        if first >= last {
            return walk(interval);
        }
        let whole: usize = self.0.range(first..last).map(|(_, count)| count).sum();
        let before = Interval::new(interval.start, Time(first * PART));
        let after = Interval::new(Time(last * PART), interval.end);
        walk(before) + whole + walk(after)
    }
}

impl FromIterator<Time> for StartCounts {
    fn from_iter<I: IntoIterator<Item = Time>>(starts: I) -> Self {
        let mut counts = Self::default();
        starts.into_iter().for_each(|start| counts.add(start));
        counts
    }
}

/// Things of a kind by their starts. No thing is before the default one.
#[derive(Debug, Clone, Default)]
pub struct Starts<K> {
    by_start: BTreeSet<(Time, K)>,
    counts: StartCounts,
}

impl<K: Ord + Copy + Default> Starts<K> {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Takes in a thing with its start. O(log n).
    pub fn insert(&mut self, start: Time, thing: K) {
        if self.by_start.insert((start, thing)) {
            self.counts.add(start);
        }
    }

    /// Takes out a thing, where it is there with this start. O(log n).
    pub fn remove(&mut self, start: Time, thing: K) {
        if self.by_start.remove(&(start, thing)) {
            self.counts.remove(start);
        }
    }

    /// The first one.
    pub fn first(&self) -> Option<(Time, K)> {
        self.by_start.first().copied()
    }

    /// Takes out the first one. O(log n).
    pub fn pop_first(&mut self) -> Option<(Time, K)> {
        let first = self.by_start.pop_first()?;
        self.counts.remove(first.0);
        Some(first)
    }

    /// Those that start in an interval, in order.
    pub fn within(&self, interval: Interval) -> impl Iterator<Item = (Time, K)> + '_ {
        let end = interval.end.max(interval.start);
        let starts = (interval.start, K::default())..(end, K::default());
        self.by_start.range(starts).copied()
    }

    /// How many start in an interval. A step for each part of time in it with some, and for each that starts in the first and the last part.
    pub fn count_within(&self, interval: Interval) -> usize {
        self.counts.within(interval, |part| self.within(part).count())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn starts() -> impl Strategy<Value = Vec<(Time, u32)>> {
        let one = (-3 * PART..6 * PART, 0..4_u32);
        // Some lie on the border of a part.
        let one = one.prop_map(|(at, thing)| {
            let at = if thing == 0 {
                at.div_euclid(PART) * PART
            } else {
                at
            };
            (Time(at), thing)
        });
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn a_count_is_that_of_the_plain_walk(
            all in starts(),
            gone in 0..60_usize,
            (start, length) in (-4 * PART..7 * PART, 0..5 * PART),
            is_whole in any::<bool>(),
        ) {
            let mut kept = Starts::default();
            for (start, thing) in &all {
                kept.insert(*start, *thing);
            }
            for (start, thing) in all.iter().take(gone) {
                kept.remove(*start, *thing);
                kept.remove(*start, *thing);
            }
            kept.pop_first();
            let start = if is_whole { start.div_euclid(PART) * PART } else { start };
            let interval = Interval::of(Time(start), length);
            prop_assert_eq!(kept.count_within(interval), kept.within(interval).count());
            let again: StartCounts = kept.by_start.iter().map(|(start, _)| *start).collect();
            prop_assert_eq!(&again, &kept.counts);
            prop_assert_eq!(kept.counts.0.values().sum::<usize>(), kept.by_start.len());
        }
    }
}
