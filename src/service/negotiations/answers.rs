//! Offers of the service: a counter offer, a rejection, or the beginning of a proposal, with its words.

use domain::agreement::{NegotiationOffer, NegotiationRole, OfferState};
use planner::Candidate;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferContext,
};

use super::counter::Counter;
use crate::service::Service;
use crate::service::views::offer::{WordedOffer, content_of_offer};
use crate::service::views::rejection::Rejection;

/// A new offer of a negotiation, named by its id, of which nothing else is known yet.
pub(in crate::service) fn new_offer_row(
    service: &Service,
    negotiation: Uuid,
    parent: Option<Uuid>,
    creator: NegotiationRole,
    state: OfferState,
) -> NegotiationOffer {
    let id = Uuid::now_v7();
    NegotiationOffer {
        id,
        negotiation,
        name: id.to_string(),
        parent,
        creator,
        state,
        created: service.clock.micros(),
        expires: None,
        terms: None,
        refusal: None,
        held: None,
        released: None,
        agreement: None,
    }
}

/// An offer of the service that says this, in answer to the offer or the template of this name; to be stored.
pub(in crate::service) fn offer_of_ours(
    service: &Service,
    negotiation: Uuid,
    (parent, name): (Option<Uuid>, &str),
    state: OfferState,
    said: AgreementOffer,
) -> WordedOffer {
    let row = new_offer_row(service, negotiation, parent, NegotiationRole::Responder, state);
    WordedOffer {
        words: OfferDocument {
            offer_id: Some(row.name.clone()),
            agreement_id: None,
            name: said.name,
            context: said.context,
            terms: said.terms,
            offer_context: NegotiationOfferContext {
                counter_offer_to: name.to_owned(),
                expiration_time: None,
                creator: NegotiationRole::Responder,
                state,
                state_extensions: Vec::new(),
                extensions: Vec::new(),
            },
            constraints: NegotiationConstraints::default(),
        },
        row,
    }
}

/// A counter offer.
pub(in crate::service) fn counter_offer(
    service: &Service,
    negotiation: Uuid,
    asked: (Uuid, &OfferDocument),
    counter: Counter,
    candidate: Candidate,
    state: OfferState,
) -> WordedOffer {
    let to = (Some(asked.0), asked.1.offer_id.as_deref().unwrap_or_default());
    let mut answer = offer_of_ours(service, negotiation, to, state, counter.offer);
    answer.row.expires = Some(candidate.expires);
    answer.row.terms = Some(candidate.terms);
    answer
}

/// The rejection of an offer, which repeats the offer's terms.
pub(in crate::service) fn rejection_of_offer(
    service: &Service,
    negotiation: Uuid,
    parent: Option<Uuid>,
    asked: &OfferDocument,
    rejection: &Rejection,
) -> WordedOffer {
    let to = (parent, asked.offer_id.as_deref().unwrap_or_default());
    let mut answer = offer_of_ours(
        service,
        negotiation,
        to,
        OfferState::Rejected,
        content_of_offer(asked),
    );
    answer.words.offer_context.state_extensions = vec![rejection.fragment()];
    answer.row.refusal = Some(rejection.json());
    answer
}
