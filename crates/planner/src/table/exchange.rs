//! Which offers on the table can be answered, and offers that their requester lets go of.

use domain::agreement::{NegotiationOffer, OfferState};
use uuid::Uuid;

use crate::context::Bargaining;
use crate::error::{Error, Result};
use crate::table::{OpenNegotiation, hold};

/// The requester lets go of an offer: the nodes kept for it and for its answers are given back.
pub(crate) fn reject_offer(bargaining: &mut Bargaining<'_>, negotiation: Uuid, rejected: Option<Uuid>) {
    let Some((talks, id)) = bargaining.table.get(negotiation).zip(rejected) else {
        return;
    };
    let mut gone: Vec<NegotiationOffer> = Vec::new();
    for offer in talks.offers.values() {
        let below = offer
            .parent
            .is_some_and(|parent| gone.iter().any(|gone| gone.id == parent));
        if (offer.id == id || below) && offer.agreement.is_none() {
            gone.push(NegotiationOffer {
                state: OfferState::Rejected,
                ..offer.clone()
            });
        }
    }
    hold::release(bargaining, gone);
}

/// Whether an offer may still be answered: neither it nor the offer that it answers has been rejected, and its time is
/// not over.
pub(crate) fn check_may_be_answered(talks: &OpenNegotiation, id: Uuid, now: scheduler::Time) -> Result<()> {
    let Some(offer) = talks.offers.get(&id) else {
        return Err(Error::Stale("no offer of this negotiation has this OfferId"));
    };
    if offer.is_expired(now) {
        return Err(Error::Stale("the offer that it answers has expired"));
    }
    if offer.agreement.is_some() {
        return Err(Error::Stale("the offer that it answers has been accepted"));
    }
    let mut at = Some(offer);
    while let Some(offer) = at {
        if offer.state == OfferState::Rejected {
            return Err(Error::Stale("the offer that it answers has been rejected"));
        }
        at = offer.parent.and_then(|parent| talks.offers.get(&parent));
    }
    Ok(())
}
