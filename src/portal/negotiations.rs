//! The negotiations that go on, with their held offers: each offer can be accepted as it stands.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use uuid::Uuid;

use super::error::Failure;
use super::form::field;
use super::path::Path;
use super::session::{self, Visitor};
use super::text;
use super::{Answer, Frame, render_page};
use crate::access::Role;
use crate::http::{self, Api, scope_of_caller, use_cases_of};
use crate::negotiation::{self, NegotiationView, OfferView, QuotationView, RequestKey};

#[derive(Template)]
#[template(path = "portal/negotiations.html")]
struct Negotiations {
    frame: Frame,
    /// Why the offer cannot be accepted.
    lost: Option<String>,
    going: Vec<Row>,
    /// Whether the list is of every party's.
    is_everybodys: bool,
}

/// A negotiation in the list.
struct Row {
    id: Uuid,
    party: String,
    /// Whether it is the visitor's own; no other visitor may accept.
    is_own: bool,
    /// The agreement that is to be changed.
    agreement: Option<Uuid>,
    /// Why the provider proposes that by itself, in words.
    proposed: Option<String>,
    expires: String,
    offers: Vec<Offer>,
}

/// An offer that is held.
struct Offer {
    id: String,
    kind: &'static str,
    size: String,
    held_until: String,
    price: String,
    confidence: String,
    is: QuotationView,
    /// The value that a form brings back, so that it counts once.
    once: Uuid,
}

/// GET /portal/negotiations.
pub(super) async fn show_negotiations_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = session::signed_in(&api, &headers, None).await?;
    render_negotiations_page(&api, &visitor, StatusCode::OK, None).await
}

/// POST /portal/offers/{id}/accept: the offer becomes an agreement, as it stands.
pub(super) async fn accept_held_offer(
    State(api): State<Api>,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let once: Option<Uuid> = values.get(field::ONCE).parse().ok();
    let party = &visitor.caller.party;
    let key =
        once.map(|once| RequestKey::new(party, &once.to_string(), "an offer of the portal", id.as_bytes()));
    let use_cases = use_cases_of(&api.negotiation, &visitor.caller);
    match use_cases.accept_offer(party, id, key).await {
        Ok(accepted) => {
            let to = format!("/portal/agreements/{}", accepted.agreement.id);
            Ok(Redirect::to(&to).into_response())
        }
        Err(lost @ negotiation::Error::Lost(_)) => {
            let words = lost.to_string();
            let status = http::Error::from(lost).status().0;
            render_negotiations_page(&api, &visitor, status, Some(words)).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn render_negotiations_page(
    api: &Api,
    visitor: &Visitor,
    status: StatusCode,
    lost: Option<String>,
) -> Answer {
    let going = api
        .negotiation
        .negotiations_going(&scope_of_caller(&visitor.caller))
        .await?;
    let title = if lost.is_some() { "Error: Offers" } else { "Offers" };
    let shown = Negotiations {
        frame: visitor.frame(title),
        lost,
        going: going.into_iter().map(|of| negotiation_row(of, visitor)).collect(),
        is_everybodys: visitor.caller.role == Role::Operator,
    };
    render_page(status, &shown)
}

fn negotiation_row(negotiation: NegotiationView, visitor: &Visitor) -> Row {
    Row {
        id: negotiation.id,
        is_own: negotiation.party == visitor.caller.party,
        party: negotiation.party,
        agreement: negotiation.agreement,
        proposed: negotiation
            .proposed
            .map(|why| text::proposal(why, &negotiation.penalties)),
        expires: negotiation.expires,
        offers: negotiation.offers.into_iter().filter_map(held_offer).collect(),
    }
}

/// An offer, where it is held.
fn held_offer(offer: OfferView) -> Option<Offer> {
    let (is, held_until) = (offer.quotation?, offer.held_until?);
    let mut price = is
        .price
        .as_ref()
        .map_or_else(|| "–".to_owned(), ToString::to_string);
    if let Some(difference) = &is.price_difference {
        price += &format!(", {}", text::difference(difference));
    }
    if let Some(fee) = &is.fee {
        price += &format!(", and a fee of {fee}");
    }
    Some(Offer {
        id: offer.id,
        kind: text::kind(is.kind),
        size: format!(
            "{} for {}",
            text::nodes(is.nodes),
            text::duration(is.duration_seconds)
        ),
        held_until,
        price,
        confidence: is
            .confidence
            .map_or_else(|| "–".to_owned(), |sure| format!("{:.1} %", sure * 100.0)),
        is,
        once: Uuid::now_v7(),
    })
}
