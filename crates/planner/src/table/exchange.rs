//! Offers are put on the table: the requester's, and the service's answers, which are kept as far as they can be.

use domain::agreement::{NegotiationOffer, OfferState};
use domain::change::Change;
use scheduler::{Reason, counted};
use uuid::Uuid;

use crate::commands::ExchangeOffers;
use crate::decider::Decider;
use crate::error::{Error, Result, bare_refusal, quota_exceeded};
use crate::limits::quotas;
use crate::table::OpenNegotiation;
use crate::table::hold;
use crate::table::messages::{OfferWords, refusal_in_short};

/// The same, in a negotiation of any party.
pub(crate) fn put_offers_on_the_table(
    decider: &mut Decider<'_>,
    bargain: ExchangeOffers,
) -> Result<Vec<NegotiationOffer>> {
    let now = decider.present_second();
    let talks = decider
        .plan
        .table
        .get(bargain.negotiation)
        .ok_or(Error::NotFound)?;
    // A proposal of the provider does not count as held at a party's request.
    let quota = talks.instance.proposed.is_none();
    let party = Some(talks.instance.party.clone()).filter(|_| quota);
    let more = bargain.answers.len() + usize::from(bargain.incoming.is_some());
    let most = decider.settings.negotiation.offers_max;
    if talks.offers.len() + more > most {
        let binding = format!("a negotiation may have {}", counted(most, "offer"));
        return Err(quota_exceeded(binding).into());
    }
    if let Some(OfferWords { offer, .. }) = &bargain.incoming {
        if talks.offers.values().any(|other| other.name == offer.name) {
            return Err(Error::Stale(
                "another offer of search negotiation has search OfferId",
            ));
        }
        if let Some(parent) = offer.parent {
            check_may_be_answered(talks, parent, now)?;
        }
    } else if let Some(OfferWords { offer, .. }) = bargain.answers.first()
        && let Some(parent) = offer.parent
    {
        check_may_be_answered(talks, parent, now)?;
        // The offers held for it before are gone. Else each loss would add to the offers that its party holds.
        if talks.held(parent).next().is_some() {
            return Err(Error::Stale("something is held for what it answers"));
        }
    }
    if let Some(OfferWords { offer, .. }) = &bargain.incoming
        && offer.state == OfferState::Rejected
    {
        reject_offer(decider, bargain.negotiation, offer.parent);
    }
    // In the order in which they came, which is that of their ids and of their references to each other.
    let begun = decider.batch.len();
    let mut answered = Vec::with_capacity(bargain.answers.len());
    let put = bargain.incoming.as_ref().map(|incoming| incoming.offer.id);
    for OfferWords { mut offer, document } in bargain.answers {
        if offer.state == OfferState::Acceptable {
            keep_or_demote_offers(decider, party.as_deref(), &mut offer, bargain.otherwise);
        }
        decider.plan.table.put(offer.clone());
        decider.batch.push(Change::CreateOffer {
            offer: Box::new(offer.clone()),
            document,
        });
        answered.push(offer);
    }
    if let Some(OfferWords { mut offer, document }) = bargain.incoming {
        let refused = !answered.is_empty()
            && answered
                .iter()
                .all(|answered| answered.state == OfferState::Rejected);
        if refused {
            offer.state = OfferState::Rejected;
        }
        decider.plan.table.put(offer.clone());
        let change = Change::CreateOffer {
            offer: Box::new(offer),
            document,
        };
        decider.batch.insert(begun, change);
    }
    let mut about: Vec<Uuid> = answered.iter().map(|offer| offer.id).collect();
    if about.is_empty() {
        about.extend(put);
    }
    decider.remember(bargain.idempotency, &about);
    Ok(answered)
}

/// Keeps an offer where its party may have it held and it has a place, and else gives it the other state.
fn keep_or_demote_offers(
    decider: &mut Decider<'_>,
    party: Option<&str>,
    offer: &mut NegotiationOffer,
    otherwise: OfferState,
) {
    let allowed = party.map_or(Ok(()), |party| {
        quotas::check_hold_quota(decider.view(), party, offer)
    });
    let refusal = match allowed {
        Err(refusal) => refusal,
        // It was found a while ago.
        Ok(()) if offer.is_expired(decider.present_second()) => bare_refusal(
            Reason::WindowInThePast,
            "the instant until which it could be held is over".to_owned(),
        ),
        Ok(()) if hold::hold(decider, offer) => {
            offer.held = Some(decider.now);
            return;
        }
        Ok(()) => bare_refusal(
            Reason::NoCapacityInWindow,
            "its slot has been taken meanwhile".to_owned(),
        ),
    };
    offer.state = otherwise;
    offer.refusal = Some(refusal_in_short(&refusal));
}

/// The requester lets go of an offer: the nodes kept for it and for its answers are given back.
fn reject_offer(decider: &mut Decider<'_>, negotiation: Uuid, rejected: Option<Uuid>) {
    let Some((talks, id)) = decider.plan.table.get(negotiation).zip(rejected) else {
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
    hold::release(decider, gone);
}

/// Whether an offer may still be answered: neither it nor the offer that it answers has been rejected, and its time is
/// not over.
fn check_may_be_answered(talks: &OpenNegotiation, id: Uuid, now: scheduler::Time) -> Result<()> {
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
