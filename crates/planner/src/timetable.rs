//! When something is due, by what it is due for.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use scheduler::Time;

use crate::journal::{Journal, TakeBack};

/// The instants at which things are due, at most one for each.
#[derive(Debug, Clone)]
pub(super) struct Timetable<K> {
    at: HashMap<K, Time>,
    by_time: BTreeSet<(Time, K)>,
    /// Whether it is being filled: the order is made when all is known.
    is_filling: bool,
    /// When it was due before.
    journal: Journal<(K, Option<Time>)>,
}

impl<K> Default for Timetable<K> {
    fn default() -> Self {
        Self {
            at: HashMap::new(),
            by_time: BTreeSet::new(),
            is_filling: false,
            journal: Journal::default(),
        }
    }
}

impl<K: Copy + Ord + Hash> Timetable<K> {
    /// Sets when something is due, or that it is not. O(log n).
    pub(super) fn set(&mut self, key: K, at: Option<Time>) {
        let before = self.change(key, at);
        if before != at {
            self.journal.note(|| (key, before));
        }
    }

    /// Begins to fill it. What is due is not known until [`Timetable::order`].
    pub(super) fn fill(&mut self) {
        self.is_filling = true;
    }

    /// Puts all in order that it was filled with. O(n log n), and several times as fast as to set one after the other.
    pub(super) fn order(&mut self) {
        self.is_filling = false;
        self.by_time = self.at.iter().map(|(key, at)| (*at, *key)).collect();
    }

    /// Sets it, and answers when it was due before.
    fn change(&mut self, key: K, at: Option<Time>) -> Option<Time> {
        let before = match at {
            Some(at) => self.at.insert(key, at),
            None => self.at.remove(&key),
        };
        if self.is_filling {
            return before;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, key));
        }
        self.by_time.extend(at.map(|at| (at, key)));
        before
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

impl<K: Copy + Ord + Hash> TakeBack for Timetable<K> {
    type Before = ();

    fn begin_try(&mut self) {
        self.journal.begin();
    }

    fn take_back(&mut self, (): ()) {
        for (key, before) in self.journal.end() {
            self.change(key, before);
        }
    }
}
