//! Counts of what could not be told, and was dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What could not be told since the start of the process. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct DroppedCounts(Arc<[AtomicU64; 2]>);

impl DroppedCounts {
    pub(super) fn count_events(&self, count: usize) {
        self.0[0].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn count_decision(&self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }

    /// The events and the decisions that were dropped.
    pub fn counts(&self) -> [(&'static str, u64); 2] {
        let count_at = |at: usize| self.0[at].load(Ordering::Relaxed);
        [("event", count_at(0)), ("decision", count_at(1))]
    }
}
