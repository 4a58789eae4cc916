//! Nodes are kept for offers, for which others may move.

use domain::agreement::{NegotiationOffer, OfferState};
use domain::change::Change;
use scheduler::{Reason, counted};
use uuid::Uuid;

use crate::commands::ExchangeOffers;
use crate::decider::Decider;
use crate::error::{Error, Result, bare_refusal, quota_exceeded};
use crate::life::update;
use crate::limits::quotas;
use crate::placement::transaction;
use crate::table::messages::{OfferWords, refusal_in_short};
use crate::table::{exchange, hold};

/// Keeps the nodes of an offer beside the nodes of the other offers of its choice. Returns whether that was
/// possible. Agreements that may move make room for it, as for an agreement. A frozen resource keeps nothing more.
pub(crate) fn hold(decider: &mut Decider<'_>, offer: &NegotiationOffer) -> bool {
    hold_offer(decider, offer, true)
}

/// The same. For an offer that was held before a frozen resource keeps what it had.
pub(crate) fn hold_offer(decider: &mut Decider<'_>, offer: &NegotiationOffer, is_new: bool) -> bool {
    let (Some(answer), Some(terms)) = (offer.parent, &offer.terms) else {
        return false;
    };
    let mut numbers = decider.state.table.hold_numbers();
    let kept = transaction::run_trial(&mut decider.search(), |search| {
        hold::keep_beside_others(search, (offer.negotiation, answer), terms, (is_new, &mut numbers))
    });
    decider.state.table.note_hold_numbers(&numbers);
    let Some((added, moves)) = kept else {
        return false;
    };
    let choice = decider.state.table.choice_of(offer.negotiation, answer);
    for held in added {
        decider.state.table.keep(choice, held);
    }
    update::apply_moves(decider, &moves, "to keep an offer open");
    true
}

/// Keeps again as many as possible of the offers of a choice, each beside the offers before it, after nodes have
/// gone or the agreement that it is about has moved. The others are withdrawn, and their party is told `why`.
/// Returns their number.
pub(crate) fn hold_offers_again(decider: &mut Decider<'_>, choice: Uuid, why: &str) -> usize {
    hold::take_hold_out(&mut decider.bargaining(), choice);
    let offers: Vec<NegotiationOffer> = decider.state.table.held_offers_of(choice).cloned().collect();
    let Some(negotiation) = offers.first().map(|offer| offer.negotiation) else {
        return 0;
    };
    for offer in &offers {
        decider.state.table.put(NegotiationOffer {
            held: None,
            ..offer.clone()
        });
    }
    let mut withdrawn = Vec::new();
    for offer in offers {
        if hold_offer(decider, &offer, false) {
            decider.state.table.put(offer);
        } else {
            withdrawn.push(offer);
        }
    }
    let count = withdrawn.len();
    for mut offer in withdrawn {
        let resource = offer.terms.as_ref().map_or("", |terms| &terms.resource);
        let binding = format!("{why}, and no other nodes of {resource} are free for it");
        offer.refusal = Some(refusal_in_short(&bare_refusal(
            Reason::NoCapacityInWindow,
            binding,
        )));
        offer.state = OfferState::Rejected;
        offer.released = Some(decider.now);
        decider.batch.push(Change::UpdateOffer(Box::new(offer.clone())));
        decider.state.table.put(offer);
    }
    hold::unpin_renegotiated(&mut decider.bargaining(), negotiation);
    count
}

/// The same, in a negotiation of any party.
pub(crate) fn put_offers_on_the_table(
    decider: &mut Decider<'_>,
    bargain: ExchangeOffers,
) -> Result<Vec<NegotiationOffer>> {
    let now = decider.present_second();
    let talks = decider
        .state
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
            exchange::check_may_be_answered(talks, parent, now)?;
        }
    } else if let Some(OfferWords { offer, .. }) = bargain.answers.first()
        && let Some(parent) = offer.parent
    {
        exchange::check_may_be_answered(talks, parent, now)?;
        // The offers held for it before are gone. Else each loss would add to the offers that its party holds.
        if talks.held(parent).next().is_some() {
            return Err(Error::Stale("something is held for what it answers"));
        }
    }
    if let Some(OfferWords { offer, .. }) = &bargain.incoming
        && offer.state == OfferState::Rejected
    {
        exchange::reject_offer(&mut decider.bargaining(), bargain.negotiation, offer.parent);
    }
    // In the order in which they came, which is that of their ids and of their references to each other.
    let begun = decider.batch.len();
    let mut answered = Vec::with_capacity(bargain.answers.len());
    let put = bargain.incoming.as_ref().map(|incoming| incoming.offer.id);
    for OfferWords { mut offer, document } in bargain.answers {
        if offer.state == OfferState::Acceptable {
            keep_or_demote_offers(decider, party.as_deref(), &mut offer, bargain.otherwise);
        }
        decider.state.table.put(offer.clone());
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
        decider.state.table.put(offer.clone());
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
pub(crate) fn keep_or_demote_offers(
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
        Ok(()) if hold(decider, offer) => {
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
