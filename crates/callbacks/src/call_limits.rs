//! The places of calls: a bounded number of calls is made at the same time, and a bounded number of one party among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use task::lock::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{AT_ONCE_MAX, CALLS_OF_EACH_MAX};

/// The places of calls.
#[derive(Debug)]
pub(super) struct CallLimits {
    all: Arc<Semaphore>,
    /// The places of each party that has a call, or one that waits.
    by_party: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            by_party: Mutex::default(),
        }
    }
}

impl CallLimits {
    /// Takes a place for a call of a party, once one is free: until the permits are dropped.
    pub(super) async fn take(&self, party: &str) -> [Option<OwnedSemaphorePermit>; 2] {
        // A call that waits for others of its party keeps no place from other parties. The semaphores are never closed.
        let of_party = self.of_party(party).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        [of_party, of_all]
    }

    /// The places of a party. Those of parties without a call are forgotten.
    fn of_party(&self, party: &str) -> Arc<Semaphore> {
        let mut by_party = lock(&self.by_party);
        by_party.retain(|_, places| Arc::strong_count(places) > 1);
        let places = by_party
            .entry(party.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(CALLS_OF_EACH_MAX)));
        Arc::clone(places)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_party_has_a_part_of_the_places_and_the_rest_is_for_others() {
        let places = CallLimits::default();
        let take = |party: &str| places.take(party).now_or_never();
        let mut physics: Vec<_> = (0..AT_ONCE_MAX).filter_map(|_| take("physics")).collect();
        assert_eq!(physics.len(), CALLS_OF_EACH_MAX);
        let numbers = 0..2 * AT_ONCE_MAX;
        let others: Vec<_> = numbers.filter_map(|number| take(&number.to_string())).collect();
        assert_eq!(others.len(), AT_ONCE_MAX - CALLS_OF_EACH_MAX);
        drop(physics.pop());
        physics.extend(take("physics"));
        assert_eq!(physics.len(), CALLS_OF_EACH_MAX, "it is free again");
        drop((physics, others));
        drop(places.of_party("biology"));
        assert_eq!(places.by_party.lock().unwrap().len(), 1);
    }
}
