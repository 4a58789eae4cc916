//! The offers of a negotiation as entries of all that was said in it.

use uuid::Uuid;

use crate::negotiation::cards::card_deviation_in_words;
use crate::request::attributes::attributes_in_words;
use crate::request::present_second;
use crate::session::Visitor;
use crate::text;
use api::Api;
use service::{NegotiationView, ReadOffer};

/// An offer among all that was said.
pub(crate) struct OfferEntry {
    pub(crate) id: String,
    /// The provider, or the party as the visitor knows it.
    pub(crate) by: String,
    pub(crate) words: String,
    /// When it would lie, or between which times it asks to lie.
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
    pub(crate) at: String,
    pub(crate) standing: &'static str,
    /// The earlier offer that it answers.
    pub(crate) answers: Option<String>,
    pub(crate) depth: usize,
    /// Whether another round may answer it.
    pub(crate) is_open: bool,
    /// Whether it can be rejected: it stands, and is held or was only a proposal.
    pub(crate) is_held: bool,
    pub(crate) once: Uuid,
}

/// How deep answers are drawn inside what they answer.
const DEPTH_MAX: usize = 4;

/// The entries of all that was said, in order.
pub(super) fn list_offer_entries(
    api: &Api,
    visitor: &Visitor,
    negotiation: &NegotiationView,
    offers: &[ReadOffer],
) -> Vec<OfferEntry> {
    let party = if negotiation.party == visitor.caller.party {
        "You"
    } else {
        &negotiation.party
    };
    let mut said: Vec<OfferEntry> = Vec::with_capacity(offers.len());
    for offer in offers {
        let before = said.iter().find(|said| said.id == offer.is.counter_offer_to);
        let (answers, depth) = match before {
            Some(before) => (Some(before.id.clone()), (before.depth + 1).min(DEPTH_MAX)),
            None => (None, 0),
        };
        let lapsed = has_offer_entry_lapsed(api, offer);
        let stands =
            negotiation.is_open() && !lapsed && offer.is.state != "Rejected" && offer.is.agreement.is_none();
        let quotation = offer.is.quotation.as_ref();
        said.push(OfferEntry {
            id: offer.is.id.clone(),
            by: if is_providers(offer) {
                "The provider"
            } else {
                party
            }
            .to_owned(),
            words: offer_entry_in_words(offer),
            start: quotation
                .map(|quotation| quotation.start.clone())
                .or(offer.request.start.map(|at| at.to_string())),
            end: quotation
                .map(|quotation| quotation.end.clone())
                .or(offer.request.end.map(|at| at.to_string())),
            at: offer.is.created.clone(),
            standing: standing_of_offer_entry(offer, offers, negotiation.is_open() && !lapsed, lapsed),
            answers,
            depth,
            is_open: stands && quotation.is_some(),
            is_held: stands && offer.is.held_until.is_some(),
            once: Uuid::now_v7(),
        });
    }
    said
}

fn is_providers(offer: &ReadOffer) -> bool {
    offer.is.creator == domain::agreement::NegotiationRole::Responder.word()
}

/// Whether an offer asks for something: it is the party's, and no mere rejection, which gets no answer.
pub(super) fn is_requesting_offer_entry(offer: &ReadOffer, all: &[ReadOffer]) -> bool {
    let is_answered = || all.iter().any(|said| said.is.counter_offer_to == offer.is.id);
    !is_providers(offer) && (offer.is.state != "Rejected" || is_answered())
}

/// Whether the time of an offer is over.
pub(super) fn has_offer_entry_lapsed(api: &Api, offer: &ReadOffer) -> bool {
    let expires = offer.is.expires.as_ref().and_then(|at| at.parse().ok());
    expires.is_some_and(|at: jiff::Timestamp| at.as_second() <= present_second(api))
}

/// What an offer says, but for its times.
fn offer_entry_in_words(offer: &ReadOffer) -> String {
    if let Some(is) = &offer.is.quotation {
        let mut words = format!("{} on {}", text::size(is.nodes, is.duration_seconds), is.resource);
        if let Some(price) = &is.price {
            words += &format!(" for {price}");
        }
        return format!("{words}, {}", card_deviation_in_words(is));
    }
    let request = &offer.request;
    let mut parts = Vec::new();
    if let Some(run) = &request.run {
        parts.push(run.name.clone());
    }
    match request.nodes {
        Some((least, most)) if least != most => parts.push(format!("{least} to {}", text::nodes(most))),
        Some((least, _)) => parts.push(text::nodes(least)),
        None => {}
    }
    parts.extend(attributes_in_words(&request.attributes));
    match request.duration {
        Some(duration) => parts.push(text::duration(duration.into())),
        None => parts.push("as long as is predicted".to_owned()),
    }
    if let Some(budget) = &request.scheduling.budget {
        let amount = wsag::budget::write_amount(budget.amount_micros);
        parts.push(format!("at most {amount} {}", budget.currency));
    }
    parts.join(", ")
}

/// Where an offer stands, in a word or two.
fn standing_of_offer_entry(
    offer: &ReadOffer,
    all: &[ReadOffer],
    is_going_on: bool,
    lapsed: bool,
) -> &'static str {
    let is = &offer.is;
    match is.state {
        _ if is.agreement.is_some() => "accepted",
        "Rejected" if is_providers(offer) && is.quotation.is_none() => "refused",
        "Rejected" if is_requesting_offer_entry(offer, all) => "refused",
        "Rejected" if !is_providers(offer) => "rejected",
        "Rejected" if is.refusal.is_some() => "taken back",
        "Rejected" => "released",
        _ if !is_providers(offer) => "asked",
        _ if is.held_until.is_some() && is_going_on => "held",
        "Advisory" => "not held",
        _ if lapsed => "lapsed",
        _ => "held no longer",
    }
}
