//! Requests at work are bounded, all together, those of each party, and those of each address while their party is not known yet.
//! So a client that sends bodies slowly or guesses keys does not hinder the others.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counted_places::{CountedPlace, PlaceCounts};
use super::{Answer, Api, Error, Origin};

/// One address has at most one part in this number of the places for signing in.
const SIGN_IN_SHARE: usize = 4;

/// The places for requests at work.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    all: Arc<Semaphore>,
    most: usize,
    of_each: usize,
    taken: PlaceCounts<CountedBy>,
}

/// The origin of requests that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CountedBy {
    /// A party's.
    Party(String),
    /// Requests of an address while their key is being looked for.
    Unknown(Origin),
    /// Requests without a key from an address, while their bodies are read. They are passed on afterwards.
    Unread(Origin),
    /// Requests to sign in on the page, of all visitors: their party is not known yet.
    SignIn,
    /// Those among them of an address.
    SignInFrom(Origin),
    /// Requests of an address with a wrong key, whose answers are delayed.
    Wrong(Origin),
    /// The open pages of a party that are told of changes.
    Pages(String),
}

/// The place of a request.
pub type RequestPlace = CountedPlace<CountedBy>;

impl RequestLimits {
    /// At most `all` requests at work, and `of_each` of each party.
    pub fn new(all: usize, of_each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            most: all,
            of_each,
            taken: Arc::default(),
        }
    }

    /// A place among all; none where they are taken.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.all).try_acquire_owned().ok()
    }

    /// Waits until no request is at work.
    pub async fn await_none(&self) {
        // There are never more permits than that.
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let _ = self.all.acquire_many(all).await;
    }

    /// A place among those of a party.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub fn take_of(&self, party: &str) -> Result<RequestPlace, Error> {
        self.take_one(CountedBy::Party(party.to_owned()), self.of_each)
    }

    /// A place for an open page of a party that is told of changes.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub fn take_of_pages(&self, party: &str) -> Result<RequestPlace, Error> {
        self.take_one(CountedBy::Pages(party.to_owned()), self.of_each)
    }

    /// A place for a request while its key is looked for, among the places of its address, where that is known.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub fn take_unknown(&self, origin: Option<Origin>) -> Result<Option<RequestPlace>, Error> {
        let whose = origin.map(CountedBy::Unknown);
        whose.map(|whose| self.take_one(whose, self.of_each)).transpose()
    }

    /// A place for a request without a key while its body is read, to be passed on, among the places of its address, where that is known.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub(super) fn take_unread(&self, origin: Option<Origin>) -> Result<Option<RequestPlace>, Error> {
        let whose = origin.map(CountedBy::Unread);
        whose.map(|whose| self.take_one(whose, self.of_each)).transpose()
    }

    /// The places of a request to sign in: among all such requests, which have together as many as one party, and among those of
    /// the address, where that is known.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub fn take_sign_in(
        &self,
        origin: Option<Origin>,
    ) -> Result<(Option<RequestPlace>, RequestPlace), Error> {
        let of_address = (self.of_each / SIGN_IN_SHARE).max(1);
        let whose = origin.map(CountedBy::SignInFrom);
        let from = whose.map(|whose| self.take_one(whose, of_address)).transpose()?;
        Ok((from, self.take_one(CountedBy::SignIn, self.of_each)?))
    }

    /// A place for a request with a wrong key while its answer is delayed, where its address is known: others of the address have their
    /// own ones.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where they are taken.
    pub(super) fn take_wrong(&self, origin: Option<Origin>) -> Result<Option<RequestPlace>, Error> {
        let of_address = (self.of_each / SIGN_IN_SHARE).max(1);
        let whose = origin.map(CountedBy::Wrong);
        whose.map(|whose| self.take_one(whose, of_address)).transpose()
    }

    fn take_one(&self, whose: CountedBy, most: usize) -> Result<RequestPlace, Error> {
        CountedPlace::take(&self.taken, whose, most).ok_or(Error::TooManyAtOnce)
    }
}

/// Turns requests away at once, with an error, rather than let them pile up.
pub(super) async fn limit_requests(State(api): State<Api>, request: Request, next: Next) -> Answer {
    let _place = api.places.take().ok_or(Error::Busy)?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_party_leaves_places_to_others_and_gives_back_its_own() {
        let places = RequestLimits::new(9, 2);
        let mine = [places.take_of("physics"), places.take_of("physics")];
        assert!(mine.iter().all(Result::is_ok));
        assert!(places.take_of("physics").is_err());
        assert!(places.take_of("biology").is_ok());
        drop(mine);
        assert!(places.take_of("physics").is_ok());
        assert!(places.taken.lock().unwrap().is_empty(), "nothing is left behind");
    }

    #[test]
    fn an_address_without_a_key_leaves_places_to_others() {
        let places = RequestLimits::new(99, 8);
        let from = |number: u8| Some(Origin::from(IpAddr::from([192, 0, 2, number])));
        let guesses: Vec<_> = (0..8).map(|_| places.take_unknown(from(1))).collect();
        assert!(guesses.iter().all(Result::is_ok) && places.take_unknown(from(1)).is_err());
        assert!(places.take_unknown(from(2)).is_ok());
        let slow: Vec<_> = (0..2).map(|_| places.take_sign_in(from(1))).collect();
        assert!(slow.iter().all(Result::is_ok) && places.take_sign_in(from(1)).is_err());
        assert!(places.take_sign_in(from(2)).is_ok());
        drop((guesses, slow));
        assert!(places.taken.lock().unwrap().is_empty());
    }
}
