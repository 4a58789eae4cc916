//! A negotiation that goes on.

use std::collections::BTreeMap;

use domain::agreement::{NegotiationInstance, NegotiationOffer, OfferState, OfferTerms};
use scheduler::Time;
use uuid::Uuid;

/// A negotiation that goes on, and its offers by id, which is the order in which they came.
#[derive(Debug, Clone)]
pub(crate) struct OpenNegotiation {
    pub(crate) instance: NegotiationInstance,
    pub(crate) offers: BTreeMap<Uuid, NegotiationOffer>,
    /// The answers of which something is held, and the most node-seconds that can be taken of each.
    pub(super) held: BTreeMap<Uuid, u128>,
}

impl OpenNegotiation {
    /// Whether all that was said in it is advice, for which nothing can be held.
    pub(super) fn is_quote(&self) -> bool {
        let advice =
            |offer: &NegotiationOffer| matches!(offer.state, OfferState::Advisory | OfferState::Rejected);
        !self.offers.is_empty() && self.offers.values().all(advice)
    }

    /// The terms of the held offers of one answer.
    pub(crate) fn held_offers(&self, answer: Uuid) -> impl Iterator<Item = &OfferTerms> {
        let is_held_answer = move |offer: &&NegotiationOffer| offer.parent == Some(answer) && offer.is_held();
        self.offers
            .values()
            .filter(is_held_answer)
            .filter_map(|offer| offer.terms.as_ref())
    }

    /// Takes in an offer or its new state. Returns when something of the negotiation lapses next.
    pub(super) fn put(&mut self, offer: NegotiationOffer) -> Time {
        self.offers.insert(offer.id, offer);
        let mut due = self.instance.expires;
        self.held.clear();
        for offer in self.offers.values().filter(|offer| offer.is_held()) {
            due = offer.expires.map_or(due, |at| due.min(at));
            if let Some(answer) = offer.parent {
                let most = self.held.entry(answer).or_default();
                *most = (*most).max(offer.terms.as_ref().map_or(0, OfferTerms::node_seconds));
            }
        }
        due
    }
}
