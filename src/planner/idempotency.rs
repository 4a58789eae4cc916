//! Requests that bear an idempotency key: the answer is stored with the effect, and a repeated request gets it again,
//! without a second effect.

use super::decide::Decider;
use super::{Command, Error};
use crate::store::{Change, Idempotent};

/// The identity of a request, and the way to keep its answer.
#[derive(Debug, Clone)]
pub struct Idempotency<T> {
    /// The party that sent it; keys of different parties have nothing to do with each other.
    pub party: String,
    /// The key.
    pub key: String,
    /// A digest of the request: another request under the same key is the client's mistake.
    pub request_hash: String,
    /// Writes the answer as the text that is kept. It runs on the planner's task, so it only writes its arguments.
    pub answer: fn(&T) -> String,
}

impl<T> Idempotency<T> {
    /// The name under which it is remembered.
    pub(super) fn scope(&self) -> (String, String) {
        (self.party.clone(), self.key.clone())
    }
}

impl Command {
    /// The party and the key of a request that is to have one effect only.
    pub(super) fn idempotency(&self) -> Option<(String, String)> {
        match self {
            Self::Place(proposal, _) => proposal.idempotency.as_ref().map(Idempotency::scope),
            Self::Pend(pending, _) => pending.proposal.idempotency.as_ref().map(Idempotency::scope),
            Self::Accept(acceptance, _) => acceptance.proposal.idempotency.as_ref().map(Idempotency::scope),
            Self::Terminate(order, _) => order.idempotency.as_ref().map(Idempotency::scope),
            Self::Initiate(initiation, _) => initiation.idempotency.as_ref().map(Idempotency::scope),
            Self::Bargain(bargain, _) => bargain.idempotency.as_ref().map(Idempotency::scope),
            Self::EndNegotiation(end, _) => end.idempotency.as_ref().map(Idempotency::scope),
            Self::Keep(request, ..) => Some(request.scope()),
            _ => None,
        }
    }
}

impl Decider<'_> {
    /// Refuses a request with a key that came before.
    pub(super) fn is_new<T>(&self, request: Option<&Idempotency<T>>) -> Result<(), Error> {
        match request.and_then(|request| self.remembered.get(&request.scope())) {
            Some(earlier) => Err(Error::Repeated(Box::new(earlier.clone()))),
            None => Ok(()),
        }
    }

    /// Keeps the answer to a request with a key, in the batch of its effect.
    pub(super) fn remember<T>(&mut self, request: Option<Idempotency<T>>, answer: &T) {
        let Some(request) = request else { return };
        let scope = request.scope();
        let done = Idempotent {
            answer: (request.answer)(answer),
            party: request.party,
            key: request.key,
            request_hash: request.request_hash,
            created: self.now,
        };
        self.remembered.insert(scope, done.clone());
        self.batch.push(Change::RememberRequest(done));
    }
}
