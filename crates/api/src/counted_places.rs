//! What is counted by whom it belongs to, so that one of them leaves something to the others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// How many each has. Clones count together.
pub(super) type PlaceCounts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// One that somebody has, until it is dropped.
#[derive(Debug)]
pub struct CountedPlace<K: Eq + Hash> {
    whose: K,
    taken: PlaceCounts<K>,
}

impl<K: Eq + Hash + Clone> CountedPlace<K> {
    /// One more for `whose`; none where it has `most` of them.
    pub(super) fn take(taken: &PlaceCounts<K>, whose: K, most: usize) -> Option<Self> {
        let mut counts = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(&whose).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        counts.insert(whose.clone(), count + 1);
        let taken = Arc::clone(taken);
        Some(Self { whose, taken })
    }
}

impl<K: Eq + Hash> Drop for CountedPlace<K> {
    fn drop(&mut self) {
        let mut counts = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.whose);
            }
        }
    }
}
