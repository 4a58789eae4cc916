//! The messages of a negotiation, as the planner sees them.

use domain::agreement::{
    BarredResource, NegotiationInstance, NegotiationOffer, OfferState, OfferTerms, Shape,
};
use scheduler::Time;
use uuid::Uuid;

use crate::error::Refusal;
use crate::offers::suggestion::Suggestion;
use crate::request::{Idempotency, Request};

/// A negotiation to be opened.
#[derive(Debug, Clone)]
pub struct Initiation {
    /// The negotiation.
    pub negotiation: NegotiationInstance,
    /// The document that asked for it.
    pub document: String,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

/// An order to end a negotiation before its time.
#[derive(Debug, Clone)]
pub struct NegotiationEnd {
    /// Which.
    pub id: Uuid,
    /// The party that it must be of; none for any.
    pub party: Option<String>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<NegotiationInstance>>,
}

/// A request for offers.
#[derive(Debug, Clone)]
pub struct OfferRequest {
    /// Its party.
    pub about: OfferOrigin,
    /// The request.
    pub proposal: Request,
    /// Where the duration follows from the number of nodes: other sizes than the requested ones, each with its duration,
    /// in the form of the proposal's sizes. `None` where one size is as it is.
    pub others: Option<Vec<Shape>>,
    /// The weights in the ranking of counter offers.
    pub weights: Weights,
}

/// The party that asks for offers.
#[derive(Debug, Clone)]
pub enum OfferOrigin {
    /// That of a party, in a negotiation that goes on.
    Negotiation(Uuid),
    /// That of a party, in a negotiation that is opened with the answer.
    Opening(Box<NegotiationInstance>),
    /// The provider itself, which looks for a proposal.
    Proposal(Box<Suggestion>),
}

/// Weights of a requester's preferences, each from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weights {
    /// Of an early start.
    pub start: f64,
    /// Of many nodes.
    pub size: f64,
    /// Of a short duration.
    pub duration: f64,
    /// Of a low price.
    pub price: f64,
}

/// The possible offers, in no order; or the reason why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// The request itself, or places near it; some may dominate others ([`best_candidates`](crate::best_candidates)).
    pub candidates: Vec<Candidate>,
    /// Where there are none.
    pub refusal: Option<Refusal>,
    /// How far its party may plan ahead.
    pub latest: Time,
}

/// Something that could be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its terms.
    pub terms: OfferTerms,
    /// Until when it can be offered.
    pub expires: Time,
    /// How much less it is worth than it says, as a deviation: the part of its promises that its domain has not kept; 0 for ours.
    pub doubt: f64,
}

impl Candidate {
    /// One of our own.
    pub(crate) fn own(terms: OfferTerms, expires: Time) -> Self {
        Self {
            terms,
            expires,
            doubt: 0.0,
        }
    }
}

impl Quote {
    /// Some possible offers.
    pub(crate) fn of(candidates: Vec<Candidate>) -> Self {
        Self {
            candidates,
            refusal: None,
            latest: Time::MAX,
        }
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self {
            candidates: Vec::new(),
            refusal: Some(refusal),
            latest: Time::MAX,
        }
    }
}

/// An offer with its words.
#[derive(Debug, Clone)]
pub struct OfferWords {
    /// The offer.
    pub offer: NegotiationOffer,
    /// The document that says it.
    pub document: String,
}

/// One step of a negotiation: an offer of the requester, and the answers of the service.
#[derive(Debug, Clone)]
pub struct Bargain {
    /// The negotiation.
    pub negotiation: Uuid,
    /// The opening of the negotiation, where the offer opens it.
    pub opening: Option<Initiation>,
    /// The requester's offer; none where one that is on the table is answered anew.
    pub incoming: Option<OfferWords>,
    /// The answers, the best first.
    pub answers: Vec<OfferWords>,
    /// The state of an answer that was to be Acceptable and cannot be kept.
    pub otherwise: OfferState,
    /// The key that came with the request. The ids of the answers are kept, or the offer's id where there are none.
    pub idempotency: Option<Idempotency<Vec<Uuid>>>,
}

/// The acceptance of an offer.
#[derive(Debug, Clone)]
pub struct Acceptance {
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

/// A proposal of the provider: a negotiation with its first offers.
#[derive(Debug, Clone)]
pub struct ProposedNegotiation {
    /// The negotiation, about an agreement and with the reason.
    pub negotiation: NegotiationInstance,
    /// The document with which a party would ask for it.
    pub document: String,
    /// The agreement as it stands, and the offer in its place.
    pub offers: Bargain,
}

/// A refusal without alternatives as it is stored.
pub(crate) fn refusal_in_short(refusal: &Refusal) -> String {
    serde_json::json!({
        "reason": refusal.reason.word(),
        "bindingConstraint": refusal.binding,
        "alternatives": [],
        "relaxations": [],
    })
    .to_string()
}
