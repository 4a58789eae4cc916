//! The messages of a negotiation, as the planner sees them.

use domain::agreement::{NegotiationInstance, NegotiationOffer, OfferTerms, Shape};
use scheduler::Time;
use uuid::Uuid;

use crate::error::Refusal;
use crate::request::Request;
use crate::table::suggestion::Suggestion;

/// The party that asks for offers.
#[derive(Debug, Clone)]
pub enum OfferOrigin {
    /// A party, in a negotiation that goes on.
    Negotiation(Uuid),
    /// A party, in a negotiation that is opened with the answer.
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

/// The possible offers for a request are to be told at present. Nothing is stored or kept.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where no such negotiation goes on, [`Error::Lost`](crate::Error::Lost) where the agreement
/// that it is to replace has begun or is over, [`Error::Unavailable`](crate::Error::Unavailable).
#[derive(Debug, Clone)]
pub struct QuoteOffers {
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
