//! Requests with an Idempotency-Key: the same request again gets the same answer, even if the state has changed since.

use domain::change::IDEMPOTENCY_KEPT;
use planner::{AcceptedOffer, Idempotency, KeepAnswer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{hex, idempotency};

use super::error::{Error, Result};
use super::handle::Service;
use super::views::refusal::RefusalView;
use crate::views::accepted::AcceptedView;

/// The key of a request, and the marks that distinguish it from others under the same key.
#[derive(Debug, Clone)]
pub struct RequestKey {
    party: String,
    key: String,
    hash: String,
}

/// An answer in both representations, as it is kept for a repeated request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// As a flat value.
    pub json: String,
    /// As a document.
    pub document: String,
}

/// A refusal, as it is kept in the place of an answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRefusal {
    refused: RefusalView,
}

impl RequestKey {
    /// The key that `party` gave to a request for `target`, which names the operation and its object.
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

    /// The key of a request that came without one: the same content for the same target is the same request.
    pub(super) fn of_content(party: &str, target: &str, content: &str) -> Self {
        let new = Self::new(party, "", target, content.as_bytes());
        Self {
            // No client's key has a line break in it.
            key: format!("\n{}", new.hash),
            ..new
        }
    }

    /// The same for a request on behalf of another party: for each it is another request.
    #[must_use]
    pub fn on_behalf_of(self, party: &str) -> Self {
        let request_key = Self::new(&self.party, &self.key, &self.hash, party.as_bytes());
        Self {
            hash: request_key.hash,
            ..self
        }
    }

    /// The key of one step of a request that takes several. The result of a step is kept with its effect, so a
    /// repetition goes on where the first attempt was cut off.
    pub(super) fn step(&self, number: usize) -> Self {
        Self {
            // No client's key has a line break in it.
            key: format!("{}\n{number}", self.key),
            ..self.clone()
        }
    }

    /// For the planner, which keeps the text that `answer` makes of its result.
    pub(super) fn kept<T>(self, answer: fn(&T) -> String) -> Idempotency<T> {
        Idempotency {
            party: self.party,
            key: self.key,
            request_hash: self.hash,
            answer,
        }
    }

    /// For an offer that may become an agreement.
    pub(super) fn of_acceptance(self) -> Idempotency<AcceptedOffer> {
        self.kept(|accepted| text_to_keep(&AcceptedView::of(accepted)))
    }
}

/// The earlier answer to a request, if its key has been used.
///
/// # Errors
/// [`Error::KeyReused`] where that was for another request, [`Error::Unavailable`].
pub async fn earlier_answer<T: DeserializeOwned>(
    service: &Service,
    request: Option<&RequestKey>,
) -> Result<Option<T>> {
    let Some(request) = request else { return Ok(None) };
    match idempotency::idempotent_request(&service.store, &request.party, &request.key).await? {
        Some(earlier) if earlier.created <= service.clock.micros() - IDEMPOTENCY_KEPT => Ok(None),
        Some(earlier) if earlier.request_hash == request.hash => read_kept_answer(&earlier.answer).map(Some),
        Some(_) => Err(Error::KeyReused),
        None => Ok(None),
    }
}

/// Keeps the answer to a request that took several steps. Of the same request sent twice at once, both get the answer
/// that was kept first.
///
/// # Errors
/// [`Error::KeyReused`], [`Error::Unavailable`] where nothing could be kept.
pub async fn keep_answer<T: Serialize + DeserializeOwned>(
    service: &Service,
    request: Option<RequestKey>,
    answer: T,
) -> Result<T> {
    let Some(request) = request else {
        return Ok(answer);
    };
    let request = request.kept(String::clone);
    answer_of_repeated_request(
        service
            .send(KeepAnswer {
                request,
                answer: text_to_keep(&answer),
            })
            .await,
        |()| answer,
    )
}

/// Keeps a refusal of a request, as [`keep_answer`] does an answer. Other failures are not kept: they may be over by the next try, or
/// are the same for the same request.
pub(super) async fn keep_refusal<T: DeserializeOwned>(
    service: &Service,
    request: Option<RequestKey>,
    done: Result<T>,
) -> Result<T> {
    let (Some(request), Err(Error::Refused(refused))) = (request, &done) else {
        return done;
    };
    let answer = text_to_keep(&KeptRefusal {
        refused: refused.clone(),
    });
    match service
        .send(KeepAnswer {
            request: request.kept(String::clone),
            answer,
        })
        .await
    {
        Ok(()) => done,
        Err(planner::Error::Repeated(answer)) => read_kept_answer(&answer),
        Err(why) => Err(why.into()),
    }
}

/// The view of the effect of a command; of a request that was carried out before, the answer of that time.
pub(super) fn answer_of_repeated_request<T, V: DeserializeOwned>(
    done: Result<T, planner::Error>,
    view: impl FnOnce(T) -> V,
) -> Result<V> {
    match done {
        Ok(done) => Ok(view(done)),
        Err(planner::Error::Repeated(answer)) => read_kept_answer(&answer),
        Err(why) => Err(why.into()),
    }
}

/// An answer as it was kept; a refusal that was kept is the failure that it was.
pub(super) fn read_kept_answer<T: DeserializeOwned>(answer: &str) -> Result<T> {
    if let Ok(KeptRefusal { refused }) = serde_json::from_str(answer) {
        return Err(Error::Refused(refused));
    }
    serde_json::from_str(answer)
        .map_err(|why| Error::Internal(format!("a kept answer cannot be read: {why}")))
}

/// A view as it is kept.
pub(super) fn text_to_keep<T: Serialize>(view: &T) -> String {
    // Views are structs of strings, numbers and lists of such: writing them cannot fail.
    serde_json::to_string(view).expect("a view is JSON")
}
