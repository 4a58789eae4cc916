//! Intervals in which nodes are free, as they are told.

use scheduler::{Interval, Time};

/// Intervals in order of their starts as the fewest that cover the same.
pub(super) fn join_free_time(intervals: &[Interval]) -> Vec<Interval> {
    let mut joined: Vec<Interval> = Vec::new();
    for next in intervals {
        match joined.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => joined.push(*next),
        }
    }
    joined
}

/// The steps that lie in an interval whole.
pub(super) fn free_time_in_whole_steps(gap: Interval, step: i64) -> Interval {
    let start = Time(-(-gap.start.seconds()).div_euclid(step) * step);
    let end = Time(gap.end.seconds().div_euclid(step) * step);
    Interval::new(start, end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start: i64, end: i64) -> Interval {
        Interval::new(Time(start), Time(end))
    }

    #[test]
    fn what_overlaps_or_touches_is_one() {
        assert_eq!(
            join_free_time(&[interval(0, 5), interval(2, 3), interval(5, 8), interval(9, 10)]),
            [interval(0, 8), interval(9, 10)]
        );
    }

    #[test]
    fn only_whole_steps_are_told() {
        assert_eq!(free_time_in_whole_steps(interval(1, 39), 10), interval(10, 30));
        assert!(free_time_in_whole_steps(interval(11, 19), 10).is_empty());
        assert_eq!(free_time_in_whole_steps(interval(11, 19), 1), interval(11, 19));
    }
}
