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
    /// The changes that may be taken back, while they are noted.
    changes: Option<Vec<MarkChange>>,
}

/// The number of changes that were noted by a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkPosition(usize);

/// One change of marks.
#[derive(Debug, Clone)]
enum MarkChange {
    /// A request was marked.
    Added(Key, u32),
    /// A request was marked no more.
    Removed(Key, u32),
    /// These were marked no more, and so far this stretch was marked.
    Cleared(BTreeSet<(Key, u32)>, Option<(Key, Key)>),
}

impl Marks {
    pub(super) fn add(&mut self, key: Key, handle: u32) {
        if self.single.insert((key, handle)) {
            self.note(MarkChange::Added(key, handle));
        }
    }

    fn note(&mut self, change: MarkChange) {
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }

    /// Has changes noted from now on, or not any more.
    pub(super) fn note_changes(&mut self, is_noted: bool) {
        self.changes = is_noted.then(Vec::new);
    }

    /// The number of changes that were noted so far.
    pub(super) fn position(&self) -> MarkPosition {
        MarkPosition(self.changes.as_ref().map_or(0, Vec::len))
    }

    /// Takes back all changes since a position. O(k log n) for k marks that changed.
    pub(super) fn take_back(&mut self, position: MarkPosition) {
        let changes = self.changes.as_mut();
        let changes = changes.map_or_else(Vec::new, |changes| changes.split_off(position.0));
        for change in changes.into_iter().rev() {
            match change {
                MarkChange::Added(key, handle) => {
                    self.single.remove(&(key, handle));
                }
                MarkChange::Removed(key, handle) => {
                    self.single.insert((key, handle));
                }
                MarkChange::Cleared(mut single, range) => {
                    // The fewer join the more.
                    if single.len() > self.single.len() {
                        std::mem::swap(&mut single, &mut self.single);
                    }
                    self.single.extend(single);
                    self.range = range;
                }
            }
        }
    }

    /// Takes the mark from a request that leaves its place in the queue; whether it was marked one by one.
    pub(super) fn remove(&mut self, key: Key, handle: u32) -> bool {
        let was_marked = self.single.remove(&(key, handle));
        if was_marked {
            self.note(MarkChange::Removed(key, handle));
        }
        was_marked
    }

    /// Marks all.
    pub(super) fn add_all(&mut self) {
        let single = std::mem::take(&mut self.single);
        let range = self.range.replace((Key::FIRST, Key::LAST));
        self.note(MarkChange::Cleared(single, range));
    }

    /// Whether all are marked, also those that come.
    pub(super) fn is_of_all(&self) -> bool {
        self.range == Some((Key::FIRST, Key::LAST))
    }

    /// Takes the marks from all behind a key.
    pub(super) fn clear_behind(&mut self, key: Key) {
        let single = self.single.split_off(&(key, u32::MAX));
        let range = self.range;
        self.range = range
            .map(|(from, until)| (from, until.min(key)))
            .filter(|(from, until)| from < until);
        self.note(MarkChange::Cleared(single, range));
    }

    /// Takes the marks from all up to a key.
    pub(super) fn clear_up_to(&mut self, key: Key) {
        let behind = self.single.split_off(&(key, u32::MAX));
        let (single, range) = (std::mem::replace(&mut self.single, behind), self.range);
        self.range = range
            .map(|(from, until)| (from.max(key), until))
            .filter(|(from, until)| from < until);
        self.note(MarkChange::Cleared(single, range));
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
