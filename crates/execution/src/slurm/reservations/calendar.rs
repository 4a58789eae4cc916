//! When a node is to be had: by its uses until now, and those that are named for slots.

use scheduler::{Interval, Time};

/// A node as a slot may find it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calendar {
    /// Whether it takes new work.
    pub(crate) usable: bool,
    /// Whether batch jobs never get it: it is idle for slots anyway.
    pub(crate) dedicated: bool,
    /// When it is others', or named for a slot.
    pub(crate) busy: Vec<Interval>,
    /// When a reservation of ours that is about to go keeps others off it.
    pub(crate) leaving: Vec<Interval>,
}

impl Calendar {
    /// Whether it is free in an interval except for `but` uses.
    pub(super) fn is_free(&self, interval: Interval, but: usize) -> bool {
        let meets = |busy: &&Interval| busy.start < interval.end && interval.start < busy.end;
        self.usable && self.busy.iter().filter(meets).take(but + 1).count() <= but
    }

    /// When it is next in use from an instant on.
    pub(super) fn next_use(&self, from: Time) -> Time {
        let starts = self.busy.iter().map(|busy| busy.start);
        starts.filter(|start| *start >= from).min().unwrap_or(Time::MAX)
    }

    /// Since when it has been free at an instant.
    pub(super) fn free_since(&self, at: Time) -> Time {
        let ends = self.busy.iter().map(|busy| busy.end);
        ends.filter(|end| *end <= at).max().unwrap_or(Time::MIN)
    }
}

/// Whether an interval is covered by others together.
pub(crate) fn is_covered_by_calendar(by: &[Interval], interval: Interval) -> bool {
    let mut from = interval.start;
    while from < interval.end {
        let reaching = by
            .iter()
            .filter(|other| other.start <= from)
            .map(|other| other.end)
            .max();
        match reaching.filter(|end| *end > from) {
            Some(end) => from = end,
            None => return false,
        }
    }
    true
}
