//! The list of negotiations: open ones with their held offers, and past ones.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use uuid::Uuid;

use crate::negotiation::cards::card_deviation_in_words;
use crate::negotiation::proposal_in_words;
use crate::session;
use crate::text;
use crate::values::Values;
use crate::{Answer, Frame, render_page};
use access::Role;
use api::{Api, scope_of_caller};
use service::{NegotiationFilter, NegotiationView, OfferView};

#[derive(Template)]
#[template(path = "portal/negotiations.html")]
struct Negotiations {
    frame: Frame,
    going: Vec<Row>,
    over: Vec<Row>,
    /// Where the list goes on.
    older: Option<Uuid>,
    /// Whether the list does not begin with the newest.
    is_older: bool,
    /// Whether the list is of every party's.
    is_everybodys: bool,
}

/// A negotiation in the list.
struct Row {
    is: NegotiationView,
    /// Why the provider proposes that by itself, in words.
    proposed: Option<String>,
    offers: Vec<Offer>,
    standing: &'static str,
}

/// An offer that is held.
struct Offer {
    id: String,
    words: String,
    start: String,
    end: String,
    held_until: String,
}

/// GET /portal/negotiations.
pub(crate) async fn show_negotiations_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let scope = scope_of_caller(&visitor.caller);
    let after = Values::read(uri.query().unwrap_or_default().as_bytes());
    let after: Option<Uuid> = after.get("after").parse().ok();
    let going = match after {
        None => service::list_open_negotiations(&api.service, &scope).await?,
        Some(_) => Vec::new(),
    };
    let filter = NegotiationFilter {
        party: scope.party().map(ToOwned::to_owned),
        ..NegotiationFilter::default()
    };
    let page = service::list_negotiations(&api.service, &filter, after, None).await?;
    let is_shown = |negotiation: &NegotiationView| going.iter().any(|going| going.id == negotiation.id);
    let over = page
        .negotiations
        .into_iter()
        .filter(|negotiation| !is_shown(negotiation));
    let over = over.map(negotiation_row).collect();
    let shown = Negotiations {
        frame: visitor.frame("Offers"),
        going: going.into_iter().map(negotiation_row).collect(),
        over,
        older: page.next,
        is_older: after.is_some(),
        is_everybodys: visitor.caller.role == Role::Operator,
    };
    render_page(StatusCode::OK, &shown)
}

fn negotiation_row(is: NegotiationView) -> Row {
    Row {
        proposed: is.proposed.map(|why| proposal_in_words(why, &is.penalties)),
        offers: is.offers.iter().filter_map(held_offer_in_list).collect(),
        standing: match is.state {
            "open" => "going on",
            "expired" => "its time is over",
            _ => "ended",
        },
        is,
    }
}

/// An offer, where it is held.
fn held_offer_in_list(offer: &OfferView) -> Option<Offer> {
    let (is, held_until) = (offer.quotation.as_ref()?, offer.held_until.clone()?);
    let size = text::size(is.nodes, is.duration_seconds);
    let price = is.price.as_ref().map(|price| format!(" for {price}"));
    Some(Offer {
        id: offer.id.clone(),
        words: format!(
            "{size} on {}{}, {}",
            is.resource,
            price.unwrap_or_default(),
            card_deviation_in_words(is)
        ),
        start: is.start.clone(),
        end: is.end.clone(),
        held_until,
    })
}
