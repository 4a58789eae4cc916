//! Answers to offers: a counter offer or a rejection, with its document.

use uuid::Uuid;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferContext,
    NegotiationOfferState, NegotiationRole, negotiate_output,
};

use super::counter::Counter;
use crate::agreement::{NegotiationOffer, OfferCreator, OfferState};
use crate::negotiation::Negotiation;
use crate::negotiation::views::offer::WordedOffer;
use crate::negotiation::views::rejection::Rejection;
use crate::planner::{Candidate, OfferWords};

/// An answer to an offer, to be stored as a counter offer, with its document.
pub(in crate::negotiation) struct Answer {
    pub(in crate::negotiation) put: OfferWords,
    pub(in crate::negotiation) words: OfferDocument,
}

impl Answer {
    /// The answer as it is sent without being stored.
    pub(in crate::negotiation) fn said(self) -> WordedOffer {
        WordedOffer {
            row: self.put.offer,
            words: self.words,
        }
    }
}

impl Negotiation {
    /// A counter offer, to be stored.
    pub(in crate::negotiation) fn counter_offer(
        &self,
        negotiation: Uuid,
        parent: Uuid,
        asked: &OfferDocument,
        counter: Counter,
        candidate: Candidate,
        state: OfferState,
    ) -> Answer {
        let id = Uuid::now_v7();
        let words = OfferDocument {
            offer_id: id.to_string(),
            name: counter.offer.name,
            context: counter.offer.context,
            terms: counter.offer.terms,
            offer_context: NegotiationOfferContext {
                counter_offer_to: asked.offer_id.clone(),
                expiration_time: None,
                creator: NegotiationRole::NegotiationResponder,
                state: match state {
                    OfferState::Advisory => NegotiationOfferState::Advisory,
                    _ => NegotiationOfferState::Acceptable,
                },
                state_extensions: Vec::new(),
                extensions: Vec::new(),
            },
            constraints: NegotiationConstraints::default(),
        };
        let put = OfferWords {
            offer: NegotiationOffer {
                id,
                negotiation,
                name: id.to_string(),
                parent: Some(parent),
                creator: OfferCreator::Responder,
                state,
                created: self.clock.micros(),
                expires: Some(candidate.expires),
                terms: Some(candidate.terms),
                refusal: None,
                held: None,
                released: None,
                agreement: None,
            },
            document: negotiate_output(std::slice::from_ref(&words)),
        };
        Answer { put, words }
    }

    /// The rejection of an offer, which repeats the offer's terms.
    pub(in crate::negotiation) fn rejected(
        &self,
        negotiation: Uuid,
        parent: Option<Uuid>,
        asked: &OfferDocument,
        rejection: &Rejection,
    ) -> Answer {
        let id = Uuid::now_v7();
        let mut words = asked.clone();
        words.offer_id = id.to_string();
        words.constraints = NegotiationConstraints::default();
        words.offer_context = NegotiationOfferContext {
            counter_offer_to: asked.offer_id.clone(),
            expiration_time: None,
            creator: NegotiationRole::NegotiationResponder,
            state: NegotiationOfferState::Rejected,
            state_extensions: vec![rejection.fragment()],
            extensions: Vec::new(),
        };
        let put = OfferWords {
            offer: NegotiationOffer {
                id,
                negotiation,
                name: id.to_string(),
                parent,
                creator: OfferCreator::Responder,
                state: OfferState::Rejected,
                created: self.clock.micros(),
                expires: None,
                terms: None,
                refusal: Some(rejection.json()),
                held: None,
                released: None,
                agreement: None,
            },
            document: negotiate_output(std::slice::from_ref(&words)),
        };
        Answer { put, words }
    }
}
