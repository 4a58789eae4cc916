//! A negotiation is ended before its time.

use domain::agreement::NegotiationInstance;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::request::{Idempotency, Scope};
use crate::table::negotiations;

/// A negotiation is to be ended before its time, and gives back its holds.
///
/// # Errors
/// [`Error::NotFound`] where no such negotiation goes on, [`Error::Repeated`] where its idempotency key has been used,
/// [`Error::Unavailable`].
#[derive(Debug, Clone)]
pub struct EndNegotiation {
    /// Which.
    pub id: Uuid,
    /// The party that it must be of; none for any.
    pub party: Option<String>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

impl Command for EndNegotiation {
    type Answer = NegotiationInstance;

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.check_idempotency_key(self.idempotency.as_ref())?;
        let talks = decider.state.table.get(self.id).ok_or(Error::NotFound)?;
        if self.party.is_some_and(|party| party != talks.instance.party) {
            return Err(Error::NotFound);
        }
        let ended = negotiations::end_any_negotiation(&mut decider.bargaining(), self.id)?;
        decider.remember_idempotent_answer(self.idempotency, &ended);
        Ok(DecisionStep::Done(ended))
    }
}
