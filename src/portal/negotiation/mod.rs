//! A negotiation: its offers that can be taken or the reason for none, its end, and all its messages.

pub(in crate::portal) mod answers;
pub(in crate::portal) mod cards;
pub(in crate::portal) mod difference;
pub(in crate::portal) mod list;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use uuid::Uuid;

use crate::http::{Api, scope_of_caller};
use crate::portal::chart::spans::Picture;
use crate::portal::negotiation::cards::{Card, deviation_in_words};
use crate::portal::negotiation::difference::difference_in_words;
use crate::portal::path::Path;
use crate::portal::request::attributes::attributes_in_words;
use crate::portal::request::field;
use crate::portal::request::present_second;
use crate::portal::request::refusal::Refusal;
use crate::portal::request::values_of_request::{FilledForm, values_of_request};
use crate::portal::reservation::picture;
use crate::portal::session::{self, Visitor};
use crate::portal::text;
use crate::portal::values::Values;
use crate::portal::{Answer, Frame, render_page};
use crate::service::{self, NegotiationView, ReadOffer};

#[derive(Template)]
#[template(path = "portal/negotiation.html")]
struct NegotiationPage {
    frame: Frame,
    negotiation: NegotiationView,
    /// Why the offer that was to be taken cannot be had any more.
    lost: Option<String>,
    /// Whether it is the visitor's own. Only its party may act in it.
    may_act: bool,
    /// Why the provider proposes that by itself, in words.
    proposed: Option<String>,
    cards: Vec<Card>,
    /// When they lie, and the time that was asked for.
    picture: Option<Picture>,
    /// The agreements that were made of its offers.
    made: Vec<Uuid>,
    refusal: Option<Refusal>,
    /// The form with the last request in it; none where the visitor cannot ask again.
    again: Option<String>,
    said: Vec<OfferEntry>,
}

/// An offer among all that was said.
struct OfferEntry {
    id: String,
    /// The provider, or the party as the visitor knows it.
    by: String,
    words: String,
    /// When it would lie, or between which times it asks to lie.
    start: Option<String>,
    end: Option<String>,
    at: String,
    standing: &'static str,
    /// The earlier offer that it answers.
    answers: Option<String>,
    depth: usize,
    /// Whether another round may answer it.
    is_open: bool,
    /// Whether it can be rejected: it stands, and is held or was only a proposal.
    is_held: bool,
    once: Uuid,
}

/// How deep answers are drawn inside what they answer.
const DEPTH_MAX: usize = 4;

/// GET /portal/negotiations/{id}.
pub(in crate::portal) async fn show_negotiation_page(
    State(api): State<Api>,
    headers: HeaderMap,
    Path(id): Path<Uuid>,
) -> Answer {
    let visitor = session::signed_in(&api, &headers, None).await?;
    render_negotiation_page(&api, &visitor, id, (StatusCode::OK, None)).await
}

/// The page of a negotiation, with the reason why an offer cannot be taken.
pub(in crate::portal) async fn render_negotiation_page(
    api: &Api,
    visitor: &Visitor,
    id: Uuid,
    (status, lost): (StatusCode, Option<String>),
) -> Answer {
    let scope = scope_of_caller(&visitor.caller);
    let (negotiation, offers) = service::show_negotiation_as_read(&api.service, &scope, id).await?;
    let is_open = negotiation.is_open();
    let replaced = match negotiation.agreement {
        Some(id) => Some(service::show_agreement(&api.service, scope, id).await?.view),
        None => None,
    };
    let held = offers.iter().filter(|_| is_open);
    let mut cards: Vec<Card> = Vec::new();
    for offer in held {
        let quotation = offer.is.quotation.as_ref();
        let cost = quotation
            .and_then(|quotation| service::cost_of_offer(&api.service, &negotiation.party, quotation));
        if !has_lapsed(api, offer) {
            let is_change = negotiation.agreement.is_some();
            let card = Card::of(offer, (cards.len() + 1, is_change), cost.as_ref());
            cards.extend(card.map(|card| Card {
                change: replaced.as_ref().map(|old| difference_in_words(old, &card.is)),
                ..card
            }));
        }
    }
    let asked = offers.iter().rfind(|offer| is_request(offer, &offers));
    // The root of a proposal is the agreement, in the provider's words.
    let asked = asked.or(offers.first());
    let catalogue = api.service.catalogue();
    let values = asked.map(|asked| values_of_request(&asked.request, &catalogue));
    let is_own = negotiation.party == visitor.caller.party && !visitor.caller.limits.read_only;
    let form = fill_form_again(&negotiation, values.unwrap_or_default());
    let made: Vec<_> = offers.iter().filter_map(|offer| offer.is.agreement).collect();
    let window = asked.and_then(|asked| {
        let (start, end) = (asked.request.start?, asked.request.end?);
        Some((start.floor(), end.floor()))
    });
    let refusal = asked.filter(|_| cards.is_empty()).and_then(|asked| {
        let answer = offers
            .iter()
            .find(|offer| offer.is.counter_offer_to == asked.is.id)?;
        let refusal = answer.is.refusal.as_ref()?;
        Some(Refusal {
            // It is noted as every offer is, under the id of the answer.
            id: Some(answer.is.id.clone()),
            ..Refusal::of_kept(refusal, &form, present_second(api))
        })
    });
    let title = if lost.is_some() { "Error: Offers" } else { "Offers" };
    let page = NegotiationPage {
        frame: visitor.frame(title),
        may_act: is_open && is_own,
        proposed: negotiation
            .proposed
            .map(|why| text::proposal(why, &negotiation.penalties)),
        picture: picture::draw_offers(&cards, window, present_second(api)),
        cards,
        // An agreement that was changed is another one by now.
        again: (is_own && (made.is_empty() || negotiation.agreement.is_none())).then(|| form.address()),
        made,
        refusal,
        said: list_what_was_said(api, visitor, &negotiation, &offers),
        negotiation,
        lost,
    };
    render_page(status, &page)
}

fn is_providers(offer: &ReadOffer) -> bool {
    offer.is.creator == domain::agreement::NegotiationRole::Responder.word()
}

/// Whether an offer asks for something: it is the party's, and no mere rejection, which gets no answer.
fn is_request(offer: &ReadOffer, all: &[ReadOffer]) -> bool {
    let is_answered = || all.iter().any(|said| said.is.counter_offer_to == offer.is.id);
    !is_providers(offer) && (offer.is.state != "Rejected" || is_answered())
}

/// The form that asks for what a negotiation was about once more. Where the party's own offers are held, it releases them.
fn fill_form_again(negotiation: &NegotiationView, values: Values) -> FilledForm {
    let is_release = negotiation.is_open() && negotiation.proposed.is_none();
    let values = if is_release {
        values.with(field::INSTEAD, negotiation.id.to_string())
    } else {
        values
    };
    FilledForm::about(negotiation.agreement, values)
}

/// Whether the time of an offer is over.
fn has_lapsed(api: &Api, offer: &ReadOffer) -> bool {
    let expires = offer.is.expires.as_ref().and_then(|at| at.parse().ok());
    expires.is_some_and(|at: jiff::Timestamp| at.as_second() <= present_second(api))
}

fn list_what_was_said(
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
        let lapsed = has_lapsed(api, offer);
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
            words: offer_in_words(offer),
            start: quotation
                .map(|quotation| quotation.start.clone())
                .or(offer.request.start.map(|at| at.to_string())),
            end: quotation
                .map(|quotation| quotation.end.clone())
                .or(offer.request.end.map(|at| at.to_string())),
            at: offer.is.created.clone(),
            standing: standing_of_offer(offer, offers, negotiation.is_open() && !lapsed, lapsed),
            answers,
            depth,
            is_open: stands && quotation.is_some(),
            is_held: stands && offer.is.held_until.is_some(),
            once: Uuid::now_v7(),
        });
    }
    said
}

/// What an offer says, but for its times.
fn offer_in_words(offer: &ReadOffer) -> String {
    if let Some(is) = &offer.is.quotation {
        let mut words = format!("{} on {}", text::size(is.nodes, is.duration_seconds), is.resource);
        if let Some(price) = &is.price {
            words += &format!(" for {price}");
        }
        return format!("{words}, {}", deviation_in_words(is));
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
        let amount = wsag::scheduling::write_amount(budget.amount_micros);
        parts.push(format!("at most {amount} {}", budget.currency));
    }
    parts.join(", ")
}

/// Where an offer stands, in a word or two.
fn standing_of_offer(offer: &ReadOffer, all: &[ReadOffer], is_going_on: bool, lapsed: bool) -> &'static str {
    let is = &offer.is;
    match is.state {
        _ if is.agreement.is_some() => "accepted",
        "Rejected" if is_providers(offer) && is.quotation.is_none() => "refused",
        "Rejected" if is_request(offer, all) => "refused",
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
