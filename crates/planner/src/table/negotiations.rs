//! Negotiations: opened, ended and forgotten when their time is over; and which of their offers can be answered, are accepted, or let go.

use domain::agreement::{NegotiationInstance, NegotiationOffer, OfferState};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use scheduler::{Reason, Time, counted};
use uuid::Uuid;

use crate::context::{Bargaining, View};
use crate::error::{Error, OfferLoss, Result};
use crate::refusal::{bare_refusal, quota_exceeded, refusal_in_short};
use crate::table::holds;
use crate::table::holds::release_all_holds;
use crate::table::open_negotiation::OpenNegotiation;

/// Negotiations about prices alone that a party may have for each other one: they cost memory only.
const QUOTES_PER_NEGOTIATION: usize = 10;
/// Why nothing is asked for in a negotiation that the provider has opened.
const TAKE_IT_OR_LEAVE_IT: &str = "the negotiation is the provider's proposal: its offers can be accepted or rejected, and whatever \
                                   else is asked for in another one";

/// Whether a negotiation may be opened.
pub(crate) fn check_opening_of_negotiation(view: View<'_>, instance: &NegotiationInstance) -> Result<()> {
    if let Some(agreement) = instance.agreement {
        let replaced = view.agreements.get(agreement).ok_or(Error::NotFound)?;
        if replaced.party != instance.party {
            return Err(Error::NotFound);
        }
    }
    let most = view.settings.negotiation.open_max;
    let (open, quotes) = view.table.count(&instance.party);
    if quotes >= most.saturating_mul(QUOTES_PER_NEGOTIATION) {
        let binding =
            "a party may have more quotes when some have expired; they do where a request names no end";
        return Err(quota_exceeded(binding).into());
    }
    if open >= most {
        let binding = format!(
            "a party may have {} going on at a time",
            counted(most, "negotiation")
        );
        return Err(quota_exceeded(binding).into());
    }
    Ok(())
}

/// Ends a negotiation of any party.
pub(crate) fn end_any_negotiation(bargaining: &mut Bargaining<'_>, id: Uuid) -> Result<NegotiationInstance> {
    release_all_holds(bargaining, id, |_| true);
    let talks = bargaining.table.close(id).ok_or(Error::NotFound)?;
    bargaining.batch.push(Change::EndNegotiation {
        negotiation: id,
        at: bargaining.now,
    });
    Ok(NegotiationInstance {
        ended: Some(bargaining.now),
        ..talks.instance
    })
}

/// Lets go of the offers that have lapsed by now. This runs before every decision, so that no decision relies on a
/// lapsed offer.
pub(crate) fn lapse_negotiations(bargaining: &mut Bargaining<'_>) {
    let now: Time = bargaining.present_second();
    for id in bargaining.table.lapsing_by(now) {
        let Some(talks) = bargaining.table.get(id) else {
            continue;
        };
        let over = talks.instance.expires <= now;
        release_all_holds(bargaining, id, |offer| over || offer.is_expired(now));
        if over {
            bargaining.table.close(id);
        }
    }
    bargaining.table.expire(now);
}

/// Lets go of an offer that cannot be kept, for a reason in words.
pub(crate) fn withdraw_offer(
    bargaining: &mut Bargaining<'_>,
    offer: &NegotiationOffer,
    reason: Reason,
    binding: String,
) {
    holds::release_holds_of_offers(
        bargaining,
        vec![NegotiationOffer {
            state: OfferState::Rejected,
            refusal: Some(refusal_in_short(&bare_refusal(reason, binding))),
            ..offer.clone()
        }],
    );
}

/// Notes that an offer has been accepted. One that has lapsed or was withdrawn before the word of its peer came stays released since then.
pub(crate) fn note_offer_accepted(
    bargaining: &mut Bargaining<'_>,
    offer: &NegotiationOffer,
    agreement: Uuid,
) {
    let lapses = offer
        .expires
        .map_or(bargaining.now, |at| at.seconds() * MICROS_PER_SECOND);
    let taken = NegotiationOffer {
        agreement: Some(agreement),
        state: OfferState::Acceptable,
        refusal: None,
        released: offer.released.or(Some(bargaining.now.min(lapses))),
        ..offer.clone()
    };
    bargaining
        .batch
        .push(Change::UpdateOffer(Box::new(taken.clone())));
    bargaining.table.put(taken);
}

/// The other held offers of the choice of an offer.
pub(crate) fn sibling_offers(view: View<'_>, offer: &NegotiationOffer) -> Vec<NegotiationOffer> {
    let Some(answer) = offer.parent else {
        return Vec::new();
    };
    let choice = view.table.choice_of(offer.negotiation, answer);
    let offers = view.table.held_offers_of(choice);
    offers.filter(|other| other.id != offer.id).cloned().collect()
}

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
    holds::release_holds_of_offers(bargaining, gone);
}

/// Whether an offer may still be answered: neither it nor the offer that it answers has been rejected, and its time is
/// not over.
pub(crate) fn check_offer_may_be_answered(
    talks: &OpenNegotiation,
    id: Uuid,
    now: scheduler::Time,
) -> Result<()> {
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

/// An offer of a party's negotiation, and the negotiation.
pub(crate) fn offer_in_negotiation(
    view: View<'_>,
    party: &str,
    negotiation: Uuid,
    id: Uuid,
) -> Result<(NegotiationOffer, NegotiationInstance)> {
    let talks = view.table.get(negotiation);
    let talks = talks.ok_or(Error::Lost(OfferLoss::Expired))?;
    if talks.instance.party != party {
        return Err(Error::NotFound);
    }
    let offer = talks.offers.get(&id).ok_or(Error::NotFound)?;
    Ok((offer.clone(), talks.instance.clone()))
}

/// Whether a party may ask for something in a negotiation: not in one in which the provider proposes.
pub(crate) fn check_negotiation_takes_proposals(instance: &NegotiationInstance) -> Result<()> {
    match instance.proposed {
        None => Ok(()),
        Some(_) => Err(Error::Stale(TAKE_IT_OR_LEAVE_IT)),
    }
}
