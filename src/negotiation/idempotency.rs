//! Requests with an Idempotency-Key: the same request again gets the same answer, whatever has happened since.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{Error, Negotiation};
use crate::planner::Idempotency;
use crate::store::{IDEMPOTENCY_KEPT, Idempotent, hex};

/// The key of a request, and what tells the request from others under the same key.
#[derive(Debug, Clone)]
pub struct RequestKey {
    party: String,
    key: String,
    hash: String,
}

impl RequestKey {
    /// The key that `party` gave to a request for `target`, which names the operation and what it is about.
    pub fn new(party: &str, key: &str, target: &str, body: &[u8]) -> Self {
        // No target has a line break in it, so that no two requests are hashed as the same bytes.
        let digest = Sha256::new()
            .chain_update(target)
            .chain_update("\n")
            .chain_update(body)
            .finalize();
        Self {
            party: party.to_owned(),
            key: key.to_owned(),
            hash: hex(&digest),
        }
    }

    /// A digest of the request.
    pub(super) fn hash(&self) -> String {
        self.hash.clone()
    }

    /// For the planner, which keeps what `answer` makes of what it has done.
    pub(super) fn kept<T>(self, answer: fn(&T) -> String) -> Idempotency<T> {
        Idempotency {
            party: self.party,
            key: self.key,
            request_hash: self.hash,
            answer,
        }
    }
}

impl Negotiation {
    /// What a request was answered before, if its key has been used.
    ///
    /// # Errors
    /// [`Error::KeyReused`] where that was for another request, [`Error::Unavailable`].
    pub(super) async fn answered<T: DeserializeOwned>(
        &self,
        request: Option<&RequestKey>,
    ) -> Result<Option<T>, Error> {
        let Some(request) = request else { return Ok(None) };
        match self.store.idempotent(&request.party, &request.key).await? {
            Some(earlier) if earlier.created > self.clock.micros() - IDEMPOTENCY_KEPT => {
                repeated(&earlier, Some(&request.hash)).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The answer that was kept for a request, where it is the same request.
pub(super) fn repeated<T: DeserializeOwned>(earlier: &Idempotent, hash: Option<&str>) -> Result<T, Error> {
    if hash != Some(earlier.request_hash.as_str()) {
        return Err(Error::KeyReused);
    }
    serde_json::from_str(&earlier.answer)
        .map_err(|why| Error::Internal(format!("a kept answer cannot be read: {why}")))
}

/// A view as it is kept.
pub(super) fn kept<T: Serialize>(view: &T) -> String {
    // Views are structs of strings, numbers and lists of such: writing them cannot fail.
    serde_json::to_string(view).expect("a view is JSON")
}
