//! Offers are put on the table.

use domain::agreement::{NegotiationOffer, OfferState};
use domain::change::Change;
use scheduler::{Reason, counted};
use uuid::Uuid;

use super::{Command, Decision, Initiate};
use crate::decider::{Decider, DecisionStep};
use crate::error::{Error, Result};
use crate::life::keep_offers;
use crate::limits::quotas;
use crate::refusal::{bare_refusal, quota_exceeded, refusal_in_short};
use crate::request::{Idempotency, Scope};
use crate::table::candidates::OfferWords;
use crate::table::negotiations;
use crate::table::negotiations::check_negotiation_takes_proposals;

/// One step of a negotiation: an offer of the requester is to be stored with the answers to it, of which the Acceptable ones are kept. It
/// opens the negotiation where it says so. The answer is the answers in their new states.
///
/// # Errors
/// The errors of [`Initiate`] where the negotiation is opened. [`Error::NotFound`] where no such negotiation goes on, [`Error::Stale`]
/// where the offer does not fit into its tree, [`Error::Refused`] where that is full, [`Error::Repeated`] where its idempotency key has
/// been used, [`Error::Unavailable`]; nothing is stored then.
#[derive(Debug, Clone)]
pub struct ExchangeOffers {
    /// The negotiation.
    pub negotiation: Uuid,
    /// The opening of the negotiation, where the offer opens it.
    pub opening: Option<Initiate>,
    /// The requester's offer; none where one that is on the table is answered anew.
    pub incoming: Option<OfferWords>,
    /// The answers, the best first.
    pub answers: Vec<OfferWords>,
    /// The state of an answer that was to be Acceptable and cannot be kept.
    pub otherwise: OfferState,
    /// The key that came with the request. The ids of the answers are kept, or the offer's id where there are none.
    pub idempotency: Option<Idempotency<Vec<Uuid>>>,
}

impl Command for ExchangeOffers {
    type Answer = Vec<NegotiationOffer>;

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let mut bargain = self;
        decider.check_idempotency_key(bargain.idempotency.as_ref())?;
        if let Some(opening) = bargain.opening.take() {
            let id = opening.negotiation.id;
            opening.decide(decider)?;
            let put = put_exchanged_offers(decider, bargain);
            if put.is_err() {
                negotiations::end_any_negotiation(&mut decider.bargaining(), id)?;
            }
            return put.map(DecisionStep::Done);
        }
        let talks = decider
            .state
            .table
            .get(bargain.negotiation)
            .ok_or(Error::NotFound)?;
        let rejects = |words: &OfferWords| words.offer.state == OfferState::Rejected;
        if !bargain.incoming.as_ref().is_some_and(rejects) {
            check_negotiation_takes_proposals(&talks.instance)?;
        }
        put_exchanged_offers(decider, bargain).map(DecisionStep::Done)
    }
}

/// Puts offers on the table, in a negotiation of any party.
pub(super) fn put_exchanged_offers(
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
            return Err(Error::Stale("another offer of this negotiation has this OfferId"));
        }
        if let Some(parent) = offer.parent {
            negotiations::check_offer_may_be_answered(talks, parent, now)?;
        }
    } else if let Some(OfferWords { offer, .. }) = bargain.answers.first()
        && let Some(parent) = offer.parent
    {
        negotiations::check_offer_may_be_answered(talks, parent, now)?;
        // The offers held for it before are gone. Else each loss would add to the offers that its party holds.
        if talks.held_offers(parent).next().is_some() {
            return Err(Error::Stale("something is held for what it answers"));
        }
    }
    if let Some(OfferWords { offer, .. }) = &bargain.incoming
        && offer.state == OfferState::Rejected
    {
        negotiations::reject_offer(&mut decider.bargaining(), bargain.negotiation, offer.parent);
    }
    // In the order in which they came, which is that of their ids and of their references to each other.
    let begun = decider.batch.len();
    let mut answered = Vec::with_capacity(bargain.answers.len());
    let put = bargain.incoming.as_ref().map(|incoming| incoming.offer.id);
    for OfferWords { mut offer, document } in bargain.answers {
        if offer.state == OfferState::Acceptable {
            keep_or_demote_exchanged(decider, party.as_deref(), &mut offer, bargain.otherwise);
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
    decider.remember_idempotent_answer(bargain.idempotency, &about);
    Ok(answered)
}

/// Keeps an offer where its party may have it held and it has a place, and else gives it the other state.
fn keep_or_demote_exchanged(
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
        Ok(()) if keep_offers::hold(decider, offer) => {
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
