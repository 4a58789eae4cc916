//! The resources that are looked at for agreements that may be able to start earlier.

use std::collections::BTreeMap;

/// Looking at a resource costs at most this for each agreement that waits on it, until something changes there again. Else, in an order that changes
/// with time, the same agreements would be looked at again every second.
const LOOKS_WORK: u64 = 64;

/// Where something may be able to start earlier: resources by their places, each with the work that may be done to look for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToLookAt {
    pub(super) work: BTreeMap<usize, u64>,
    /// The place behind the one that was looked at last.
    pub(super) next: usize,
}

impl ToLookAt {
    /// Notes a resource with its number of waiting agreements.
    pub(crate) fn note(&mut self, at: usize, waiting: usize) {
        let work = LOOKS_WORK.saturating_mul(waiting as u64 + 1);
        self.work.insert(at, work);
    }

    /// The next resource in turn, and the work that may be done on it.
    pub(crate) fn take(&mut self) -> Option<(usize, u64)> {
        let after = self.work.range(self.next..).next();
        let (at, _) = after.or_else(|| self.work.first_key_value())?;
        let at = *at;
        self.next = at + 1;
        self.work.remove_entry(&at)
    }

    /// Has a resource looked at again, with the rest of the work.
    pub(crate) fn go_on(&mut self, at: usize, work: u64) {
        if work > 0 {
            self.work.insert(at, work);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }
}
