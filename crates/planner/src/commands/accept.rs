//! An offer that is held is accepted.

use domain::agreement::BarredResource;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::life::{accept, admission};
use crate::limits::quotas;
use crate::request::{AcceptedOffer, Idempotency, Request, Scope};

/// An agreement is to be made of an offer that is held, which takes over its place; where it replaces another agreement, that one is
/// complete from then on.
///
/// # Errors
/// [`Error::Lost`](crate::Error::Lost) where it cannot be accepted any more, [`Error::NotFound`](crate::Error::NotFound) where it is none
/// of the party's, [`Error::Repeated`](crate::Error::Repeated) where its idempotency key has been used,
/// [`Error::Unavailable`](crate::Error::Unavailable).
#[derive(Debug, Clone)]
pub struct Accept {
    /// The negotiation.
    pub negotiation: Uuid,
    /// The offer.
    pub offer: Uuid,
    /// The request in the words that accept it. Only the agreement's name and document come from here. All else is as
    /// the stored offer promises.
    pub proposal: Request,
    /// The cluster that holds the offer, where it would refuse the job by now.
    pub barred: Option<BarredResource>,
}

impl Command for Accept {
    type Answer = AcceptedOffer;

    const COUNTED_AS: Option<&'static str> = Some("acceptance");

    fn scope(&self) -> Option<Scope> {
        self.proposal.idempotency.as_ref().map(Idempotency::scope)
    }

    fn awaited_agreement(&self) -> Option<Uuid> {
        Some(self.proposal.id)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let idempotency = self.proposal.idempotency.clone();
        decider.check_key_is_new(idempotency.as_ref())?;
        let talks = decider.state.table.of_offer(self.offer);
        // A change takes the place of another agreement.
        if talks.is_none_or(|talks| talks.instance.agreement.is_none()) {
            quotas::check_agreements_quota(decider.view(), &self.proposal.party, Some(self.proposal.id))?;
        }
        let agreement = match accept::make_accepted_agreement(decider, self, None)? {
            DecisionStep::Done(agreement) => agreement,
            DecisionStep::Wait(acceptance) => return Ok(DecisionStep::Wait(acceptance)),
        };
        let accepted = AcceptedOffer::alone(agreement);
        decider.remember(idempotency, &accepted);
        admission::note_booked(decider, &accepted);
        Ok(DecisionStep::Done(accepted))
    }
}
