//! Requests at work are bounded, all together and each party's, so that whoever sends bodies slowly stands in nobody else's
//! way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Error;

/// The places for requests at work.
#[derive(Debug, Clone)]
pub struct Places {
    all: Arc<Semaphore>,
    of_each: usize,
    parties: Arc<Mutex<HashMap<String, usize>>>,
}

/// The place of a party's request, until it is dropped.
#[derive(Debug)]
pub struct PartyPlace {
    party: String,
    parties: Arc<Mutex<HashMap<String, usize>>>,
}

impl Places {
    /// So many requests at work, and so many of each party.
    pub fn new(all: usize, of_each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            of_each,
            parties: Arc::default(),
        }
    }

    /// A place among all; none where they are taken.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.all).try_acquire_owned().ok()
    }

    /// A place among those of a party.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub(crate) fn take_of(&self, party: &str) -> Result<PartyPlace, Error> {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = parties.entry(party.to_owned()).or_default();
        if *taken >= self.of_each {
            return Err(Error::TooManyAtOnce);
        }
        *taken += 1;
        Ok(PartyPlace {
            party: party.to_owned(),
            parties: Arc::clone(&self.parties),
        })
    }
}

impl Drop for PartyPlace {
    fn drop(&mut self) {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = parties.get_mut(&self.party) {
            *taken -= 1;
            if *taken == 0 {
                parties.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn a_party_leaves_places_to_others_and_gives_back_its_own() {
        let places = Places::new(9, 2);
        let mine = [places.take_of("physics"), places.take_of("physics")];
        assert!(mine.iter().all(Result::is_ok));
        assert!(places.take_of("physics").is_err());
        assert!(places.take_of("biology").is_ok());
        drop(mine);
        assert!(places.take_of("physics").is_ok());
        assert!(
            places.parties.lock().unwrap().is_empty(),
            "nothing is left behind"
        );
    }
}
