//! Time that became free and for which the waiting requests are still to be looked at.

use std::cmp::Reverse;

use crate::time::{Interval, Time};

/// Openings that are kept apart: where there are more, the nearest two are joined.
const OPENINGS_MAX: usize = if cfg!(test) { 4 } else { 1_024 };

/// A place among the waiting requests by start.
pub(super) type StartPosition = (Time, u32);

/// Behind every waiting request.
const LAST: StartPosition = (Time::MAX, u32::MAX);

/// An interval in which nodes became free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) interval: Interval,
    /// At most so many nodes became free at any second of it.
    pub(super) nodes: u32,
    /// Waiting requests from here on have been looked at for it, the last one first.
    pub(super) looked_from: StartPosition,
}

impl Opening {
    fn within(self, start: Time, end: Time) -> Self {
        let interval = Interval::new(start, end);
        Self { interval, ..self }
    }

    /// Whether both are one where they touch.
    fn is_like(&self, other: &Self) -> bool {
        (self.nodes, self.looked_from) == (other.nodes, other.looked_from)
    }

    /// Both, and what lies between them.
    fn joined(self, next: Self) -> Self {
        Self {
            interval: Interval::new(self.interval.start, next.interval.end),
            nodes: self.nodes.max(next.nodes),
            looked_from: self.looked_from.max(next.looked_from),
        }
    }
}

/// The time that became free.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::schedule) struct FreedTime {
    /// Openings in order of time. No second is in two of them.
    openings: Vec<Opening>,
    /// The one for which requests are looked at, taken out of the others.
    current: Option<Opening>,
}

impl FreedTime {
    /// Notes that nodes became free in an interval. Where others became free there that are not used yet, it is their sum. O(n) for n
    /// openings, of which there are at most [`OPENINGS_MAX`], and O(n log n) where some have to be joined.
    pub(super) fn add(&mut self, interval: Interval, nodes: u32) {
        if interval.is_empty() {
            return;
        }
        // What was found out about the current opening is not right any more where it is met.
        if let Some(met) = self.current.take_if(|current| current.interval.meets(interval)) {
            self.lay(met);
        }
        let looked_from = LAST;
        self.lay(Opening {
            interval,
            nodes,
            looked_from,
        });
    }

    /// Lays an opening over the others.
    fn lay(&mut self, opening: Opening) {
        let Interval { start, end } = opening.interval;
        let from = self.openings.partition_point(|each| each.interval.end <= start);
        let to = self.openings.partition_point(|each| each.interval.start < end);
        let mut there = Vec::new();
        let mut at = start;
        for met in &self.openings[from..to.max(from)] {
            let both = Opening {
                nodes: met.nodes.saturating_add(opening.nodes),
                looked_from: met.looked_from.max(opening.looked_from),
                ..opening
            };
            let (begin, until) = (met.interval.start.max(at), met.interval.end.min(end));
            there.extend([
                met.within(met.interval.start, begin.min(start)),
                opening.within(at, begin),
                both.within(begin, until),
                met.within(until, met.interval.end),
            ]);
            at = until;
        }
        there.push(opening.within(at, end));
        there.retain(|part| !part.interval.is_empty());
        self.openings.splice(from..to.max(from), there);
        self.join();
    }

    /// Joins those that touch and are like each other, and the nearest ones where there are too many.
    fn join(&mut self) {
        self.openings.dedup_by(|next, last| {
            let is_one = last.interval.end == next.interval.start && last.is_like(next);
            if is_one {
                *last = last.joined(*next);
            }
            is_one
        });
        let count = self.openings.len();
        if count <= OPENINGS_MAX {
            return;
        }
        let gaps = self.openings.windows(2).zip(1..);
        let gap = |pair: &[Opening]| pair[1].interval.start - pair[0].interval.end;
        // Of equal gaps the last: what lies behind them is looked at last.
        let mut gaps: Vec<_> = gaps.map(|(pair, at)| (gap(pair), Reverse(at))).collect();
        gaps.sort_unstable();
        // Several more than have to be, so that it is done seldom.
        let mut is_joined = vec![false; count];
        for (_, Reverse(at)) in gaps.into_iter().take(count - OPENINGS_MAX + OPENINGS_MAX / 4) {
            is_joined[at] = true;
        }
        let mut joined = is_joined.into_iter().skip(1);
        self.openings.dedup_by(|next, last| {
            let is_joined = joined.next().unwrap_or(false);
            if is_joined {
                *last = last.joined(*next);
            }
            is_joined
        });
    }

    /// The opening for which requests are looked at now: the first one that is not over by `now`, until [`Self::close`] is called for it.
    pub(super) fn current(&mut self, now: Time) -> Option<Opening> {
        if self.current.is_none_or(|current| current.interval.end <= now) {
            let over = self.openings.iter().take_while(|each| each.interval.end <= now);
            let over = over.count();
            self.openings.drain(..over);
            self.current = (!self.openings.is_empty()).then(|| self.openings.remove(0));
        }
        self.current
    }

    /// Leaves what lies behind an instant in the current opening for later.
    pub(super) fn cut_current(&mut self, end: Time) {
        if let Some(current) = self.current.as_mut().filter(|current| end < current.interval.end) {
            let rest = current.within(end, current.interval.end);
            current.interval.end = end;
            self.lay(rest);
        }
    }

    /// Notes how far requests have been looked at for the current opening.
    pub(super) fn note_look(&mut self, looked_from: StartPosition) {
        if let Some(current) = &mut self.current {
            current.looked_from = looked_from;
        }
    }

    /// Notes that all have been looked at for the current opening.
    pub(super) fn close(&mut self) {
        self.current = None;
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: usize = 60;

    fn random(seed: &mut u64, below: u64) -> usize {
        *seed = crate::queue::mix_bits(seed.wrapping_add(0x9E37_79B9_7F4A_7C15));
        usize::try_from(*seed % below).unwrap()
    }

    fn seconds(interval: Interval) -> std::ops::Range<usize> {
        let second = |t: Time| usize::try_from(t.0).unwrap();
        second(interval.start)..second(interval.end)
    }

    #[test]
    fn as_long_as_openings_are_few_they_are_exact() {
        for story in 0..2_000 {
            let (mut seed, mut freed) = (story, FreedTime::default());
            let mut expected = [0; SECONDS];
            // Two make three openings at most.
            for nodes in [1, 2] {
                let start = random(&mut seed, SECONDS as u64 - 1);
                let end = start + 1 + random(&mut seed, (SECONDS - start - 1) as u64);
                let [from, to] = [start, end].map(|at| Time(i64::try_from(at).unwrap()));
                freed.add(Interval::new(from, to), nodes);
                expected[start..end]
                    .iter_mut()
                    .for_each(|second| *second += nodes);
            }
            for (second, nodes) in expected.into_iter().enumerate() {
                let there = freed.openings.iter();
                let there = there.filter(|each| seconds(each.interval).contains(&second));
                let found: Vec<u32> = there.map(|each| each.nodes).collect();
                let expected = if nodes == 0 { vec![] } else { vec![nodes] };
                assert_eq!(found, expected, "story {story}, second {second}");
            }
        }
    }

    #[test]
    fn where_openings_are_too_many_the_nearest_are_joined_and_of_those_the_last() {
        let mut freed = FreedTime::default();
        for start in [0, 20, 30, 40, 50] {
            freed.add(Interval::of(Time(start), 5), 1);
        }
        let openings = freed.openings.iter().map(|each| each.interval);
        let expected = [(0, 5), (20, 25), (30, 55)].map(|(start, end)| Interval::new(Time(start), Time(end)));
        assert_eq!(openings.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_second_that_became_free_is_forgotten() {
        for story in 0..2_000 {
            let (mut seed, mut freed) = (story, FreedTime::default());
            // What became free at each second, and whether it is still to be looked at from the last request on.
            let mut expected = [(0, false); SECONDS];
            for _ in 0..30 {
                match random(&mut seed, 6) {
                    0 => {
                        if let Some(current) = freed.current(Time(0)) {
                            freed.note_look((Time(5), 0));
                            for each in &mut expected[seconds(current.interval)] {
                                each.1 = false;
                            }
                        }
                    }
                    1 => {
                        if let Some(current) = freed.current(Time(0)) {
                            let part = random(&mut seed, current.interval.duration().unsigned_abs());
                            let part = i64::try_from(part).unwrap();
                            freed.cut_current(current.interval.start + 1 + part);
                        }
                    }
                    2 => {
                        if let Some(current) = freed.current(Time(0)) {
                            expected[seconds(current.interval)].fill((0, false));
                            freed.close();
                        }
                    }
                    _ => {
                        let start = random(&mut seed, SECONDS as u64 - 1);
                        let end = start + 1 + random(&mut seed, (SECONDS - start) as u64);
                        let nodes = 1 + random(&mut seed, 5);
                        let [from, to] = [start, end.min(SECONDS)].map(|at| Time(i64::try_from(at).unwrap()));
                        freed.add(Interval::new(from, to), u32::try_from(nodes).unwrap());
                        for each in &mut expected[start..end.min(SECONDS)] {
                            *each = (each.0 + nodes, true);
                        }
                    }
                }
                let openings = || freed.openings.iter().chain(&freed.current);
                assert!(freed.openings.len() <= OPENINGS_MAX);
                for (second, (nodes, is_anew)) in expected.iter().enumerate() {
                    let mut there = openings().filter(|each| seconds(each.interval).contains(&second));
                    let is_kept = there
                        .any(|each| each.nodes as usize >= *nodes && (each.looked_from == LAST || !is_anew));
                    assert!(is_kept || *nodes == 0, "story {story}, second {second}");
                }
            }
        }
    }
}
