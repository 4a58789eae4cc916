//! When something is due, by what it is due for.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use scheduler::Time;

/// The instants at which things are due, at most one for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Timetable<K> {
    at: HashMap<K, Time>,
    by_time: BTreeSet<(Time, K)>,
}

impl<K: Copy + Ord + Hash> Timetable<K> {
    /// Sets when something is due, or that it is not. O(log n).
    pub(super) fn set(&mut self, key: K, at: Option<Time>) {
        let before = match at {
            Some(at) => self.at.insert(key, at),
            None => self.at.remove(&key),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, key));
        }
        self.by_time.extend(at.map(|at| (at, key)));
    }

    /// The next instant at which something is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The things that are due by `now`, in order of their instants.
    pub(super) fn due_by(&self, now: Time) -> Vec<K> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, key)| *key).collect()
    }
}
