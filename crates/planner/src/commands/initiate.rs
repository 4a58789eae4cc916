//! A negotiation is opened.

use domain::agreement::NegotiationInstance;
use domain::change::Change;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::request::{Idempotency, Scope};
use crate::table::negotiations;

/// A negotiation is to be opened.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where it is about an agreement that is none of its party's or over,
/// [`Error::Refused`](crate::Error::Refused) where the party has too many going on, [`Error::Repeated`](crate::Error::Repeated) where its
/// idempotency key has been used, [`Error::Unavailable`](crate::Error::Unavailable).
#[derive(Debug, Clone)]
pub struct Initiate {
    /// The negotiation.
    pub negotiation: NegotiationInstance,
    /// The document that asked for it.
    pub document: String,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

impl Command for Initiate {
    type Answer = NegotiationInstance;

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn noted_for(&self) -> Option<(String, Uuid)> {
        let NegotiationInstance { party, id, .. } = &self.negotiation;
        Some((party.clone(), *id))
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let instance = self.negotiation;
        decider.check_idempotency_key(self.idempotency.as_ref())?;
        negotiations::check_opening_of_negotiation(decider.view(), &instance)?;
        decider.state.table.open(instance.clone(), []);
        decider.batch.push(Change::CreateNegotiation {
            negotiation: instance.clone(),
            document: self.document,
        });
        decider.remember_idempotent_answer(self.idempotency, &instance);
        Ok(DecisionStep::Done(instance))
    }
}
