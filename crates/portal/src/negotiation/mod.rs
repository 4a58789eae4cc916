//! A negotiation: its offers that can be taken or the reason for none, its end, and all its messages.

pub(crate) mod answers;
pub(crate) mod cards;
pub(crate) mod difference;
pub(crate) mod list;
mod offer_entries;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use uuid::Uuid;

use crate::chart::span_picture::SpanPicture;
use crate::negotiation::cards::Card;
use crate::negotiation::difference::difference_in_words;
use crate::negotiation::offer_entries::{
    OfferEntry, has_offer_entry_lapsed, is_requesting_offer_entry, list_offer_entries,
};
use crate::path::PagePath;
use crate::request::field_names;
use crate::request::filled_form::{FilledForm, form_filled_from_request};
use crate::request::present_second;
use crate::request::refusal::Refusal;
use crate::reservation::picture;
use crate::session::{self, Visitor};
use crate::values::Values;
use crate::{Answer, Frame, render_page};
use api::{Api, scope_of_caller};
use service::{MoneyView, NegotiationView};

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
    picture: Option<SpanPicture>,
    /// The agreements that were made of its offers.
    made: Vec<Uuid>,
    refusal: Option<Refusal>,
    /// The form with the last request in it; none where the visitor cannot ask again.
    again: Option<String>,
    said: Vec<OfferEntry>,
}

/// GET /portal/negotiations/{id}.
pub(crate) async fn show_negotiation_page(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    render_negotiation_page(&api, &visitor, id, (StatusCode::OK, None)).await
}

/// The page of a negotiation, with the reason why an offer cannot be taken.
pub(crate) async fn render_negotiation_page(
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
            .and_then(|quotation| service::price_parts_of_offer(&api.service, &negotiation.party, quotation));
        if !has_offer_entry_lapsed(api, offer) {
            let is_change = negotiation.agreement.is_some();
            let card = Card::of(offer, (cards.len() + 1, is_change), cost.as_ref());
            cards.extend(card.map(|card| Card {
                change: replaced.as_ref().map(|old| difference_in_words(old, &card.is)),
                ..card
            }));
        }
    }
    let asked = offers
        .iter()
        .rfind(|offer| is_requesting_offer_entry(offer, &offers));
    // The root of a proposal is the agreement, in the provider's words.
    let asked = asked.or(offers.first());
    let catalogue = api.service.catalogue();
    let values = asked.map(|asked| form_filled_from_request(&asked.request, &catalogue));
    let is_own = negotiation.party == visitor.caller.party && !visitor.caller.limits.read_only;
    let form = negotiation_form_again(&negotiation, values.unwrap_or_default());
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
            .map(|why| proposal_in_words(why, &negotiation.penalties)),
        picture: picture::draw_offered_reservations(&cards, window, present_second(api)),
        cards,
        // An agreement that was changed is another one by now.
        again: (is_own && (made.is_empty() || negotiation.agreement.is_none())).then(|| form.address()),
        made,
        refusal,
        said: list_offer_entries(api, visitor, &negotiation, &offers),
        negotiation,
        lost,
    };
    render_page(status, &page)
}

/// The form that asks for what a negotiation was about once more. Where the party's own offers are held, it releases them.
fn negotiation_form_again(negotiation: &NegotiationView, values: Values) -> FilledForm {
    let is_release = negotiation.is_open() && negotiation.proposed.is_none();
    let values = if is_release {
        values.with(field_names::INSTEAD, negotiation.id.to_string())
    } else {
        values
    };
    FilledForm::about(negotiation.agreement, values)
}

/// Why the provider proposes something by itself.
fn proposal_in_words(why: &str, penalties: &[MoneyView]) -> String {
    if why != "broken" {
        return "The provider proposes this: in another place the reservation would let others in. Nothing moves unless you accept."
            .to_owned();
    }
    let paid: Vec<_> = penalties.iter().map(ToString::to_string).collect();
    let paid = match paid.as_slice() {
        [] => String::new(),
        amounts => format!(
            " {} were paid to you for that in any case.",
            amounts.join(" and ")
        ),
    };
    format!(
        "The reservation could not be kept, since its nodes are out of use.{paid} The provider proposes this instead."
    )
}
