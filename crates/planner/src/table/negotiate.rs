//! Negotiations: opened, ended and forgotten when their time is over; and how the planner is told to.

use domain::agreement::{NegotiationInstance, NegotiationOffer, OfferState};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use scheduler::{Reason, Time, counted};
use uuid::Uuid;

use crate::context::{Bargaining, View};
use crate::error::{Error, Result, bare_refusal, quota_exceeded};
use crate::table::hold;
use crate::table::messages::refusal_in_short;

/// Negotiations about prices alone that a party may have for each other one: they cost memory only.
const QUOTES_PER_NEGOTIATION: usize = 10;

/// Whether a negotiation may be opened.
pub(crate) fn check_opening(view: View<'_>, instance: &NegotiationInstance) -> Result<()> {
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

/// Lets go of those offers of a negotiation that are held.
fn release_all_holds(
    bargaining: &mut Bargaining<'_>,
    id: Uuid,
    predicate: impl Fn(&NegotiationOffer) -> bool,
) {
    let Some(talks) = bargaining.table.get(id) else {
        return;
    };
    let held = talks
        .offers
        .values()
        .filter(|offer| offer.is_held() && predicate(offer));
    let held: Vec<NegotiationOffer> = held.cloned().collect();
    hold::release(bargaining, held);
}

/// Lets go of the holds that rely on the place of an agreement that has begun or is over.
pub(crate) fn release_holds_about(bargaining: &mut Bargaining<'_>, agreement: Uuid) {
    let held: Vec<NegotiationOffer> = bargaining.table.held_offers_about(agreement).cloned().collect();
    hold::release(bargaining, held);
}

/// Lets go of an offer that cannot be kept, for a reason in words.
pub(crate) fn withdraw(
    bargaining: &mut Bargaining<'_>,
    offer: &NegotiationOffer,
    reason: Reason,
    binding: String,
) {
    hold::release(
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
