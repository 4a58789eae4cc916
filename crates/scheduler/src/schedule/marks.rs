//! Marks on requests of a queue, one by one or on a whole stretch of it.

use crate::queue::Key;
use std::collections::BTreeSet;

/// Which requests of a queue are marked.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// These,
    single: BTreeSet<(Key, u32)>,
    /// and all behind the first of these keys up to the second.
    range: Option<(Key, Key)>,
}

impl Marks {
    pub(super) fn add(&mut self, key: Key, handle: u32) {
        self.single.insert((key, handle));
    }

    /// Takes the mark from a request that leaves its place in the queue; whether it was marked one by one.
    pub(super) fn remove(&mut self, key: Key, handle: u32) -> bool {
        self.single.remove(&(key, handle))
    }

    /// Marks all.
    pub(super) fn add_all(&mut self) {
        self.single.clear();
        self.range = Some((Key::FIRST, Key::LAST));
    }

    /// Takes the marks from all behind a key.
    pub(super) fn clear_behind(&mut self, key: Key) {
        self.single.split_off(&(key, u32::MAX));
        self.range = self
            .range
            .map(|(from, until)| (from, until.min(key)))
            .filter(|(from, until)| from < until);
    }

    /// Takes the marks from all up to a key.
    pub(super) fn clear_up_to(&mut self, key: Key) {
        self.single = self.single.split_off(&(key, u32::MAX));
        self.range = self
            .range
            .map(|(from, until)| (from.max(key), until))
            .filter(|(from, until)| from < until);
    }

    /// Those behind a key that are marked, in order.
    pub(super) fn behind<'a>(
        &'a self,
        queue: &'a BTreeSet<(Key, u32)>,
        key: Key,
    ) -> impl Iterator<Item = (Key, u32)> + 'a {
        let (from, until) = self.range.unwrap_or((Key::LAST, Key::LAST));
        // In order: some before the range, all of the range, some behind it.
        let (first, last) = (from.max(key), until.max(from).max(key));
        let before = self
            .single
            .range((key, u32::MAX)..=(first, u32::MAX).max((key, u32::MAX)));
        let within = queue.range((first, u32::MAX)..=(last, u32::MAX));
        let after = self.single.range((last, u32::MAX)..);
        let not = move |each: &&(Key, u32)| **each != (key, u32::MAX);
        before.filter(not).chain(within).chain(after).copied()
    }
}
