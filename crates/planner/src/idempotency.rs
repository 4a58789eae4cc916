//! Requests that bear an idempotency key: the answer is stored with the effect, and a repeated request gets it again,
//! without a second effect.

use domain::change::{Change, Idempotent};

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::request::Idempotency;

impl Decider<'_> {
    /// Refuses a request with a key that came before.
    pub(super) fn check_idempotency_key<T>(&self, request: Option<&Idempotency<T>>) -> Result<()> {
        let Some(request) = request else { return Ok(()) };
        match self.remembered.get(&request.scope()) {
            None => Ok(()),
            Some(earlier) if earlier.request_hash == request.request_hash => {
                Err(Error::Repeated(earlier.answer.clone()))
            }
            Some(_) => Err(Error::KeyReused),
        }
    }

    /// Keeps the answer to a request with a key, in the batch of its effect.
    pub(super) fn remember_idempotent_answer<T>(&mut self, request: Option<Idempotency<T>>, answer: &T) {
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
