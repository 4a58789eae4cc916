//! The answer to a request is kept.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::request::{Idempotency, Scope};

/// The answer to a request that took several commands is to be kept.
///
/// # Errors
/// [`Error::Repeated`](crate::Error::Repeated) where an answer has been kept under its key before,
/// [`Error::Unavailable`](crate::Error::Unavailable).
#[derive(Debug, Clone)]
pub struct KeepAnswer {
    /// The identity of the request.
    pub request: Idempotency<String>,
    /// The answer.
    pub answer: String,
}

impl Command for KeepAnswer {
    type Answer = ();

    fn scope(&self) -> Option<Scope> {
        Some(self.request.scope())
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.check_idempotency_key(Some(&self.request))?;
        decider.remember_idempotent_answer(Some(self.request), &self.answer);
        Ok(DecisionStep::Done(()))
    }
}
