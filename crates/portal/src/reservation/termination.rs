//! The end of a reservation that its party asks for: the costs first, then the order.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use uuid::Uuid;

use crate::failure::Failure;
use crate::money::title_of_money_entry;
use crate::path::PagePath;
use crate::session::{self, Visitor};
use crate::text;
use crate::{Answer, Frame, redirect_to, render_page};
use api::{Api, require_writer, scope_of_caller};
use service::{EndingAtPeerView, EndingPaymentView, Error, Input, TerminateRequest};

/// Asks once more.
#[derive(Template)]
#[template(path = "portal/terminate.html")]
struct Confirm {
    frame: Frame,
    id: Uuid,
    name: String,
    /// Whether the visitor is its party.
    is_own: bool,
    /// The version that was looked at, for which alone the costs hold.
    version: i64,
    /// Whether it was another one when the visitor confirmed.
    has_changed: bool,
    stops_work: bool,
    charges: Vec<Payment>,
    credits: Vec<Payment>,
    at_peer: Option<EndingAtPeerView>,
    price: Option<String>,
}

/// A payment that follows.
struct Payment {
    amount: String,
    reason: String,
}

/// GET /portal/agreements/{id}/terminate: what the end costs, before it is asked for.
pub(crate) async fn confirm_termination(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, Some(id)).await?;
    require_writer(&visitor.caller)?;
    render_termination_page(&api, &visitor, id, false).await
}

async fn render_termination_page(api: &Api, visitor: &Visitor, id: Uuid, has_changed: bool) -> Answer {
    let (scope, party) = (scope_of_caller(&visitor.caller), &visitor.caller.party);
    // Its version is read before the costs: where it changes in between, the confirmation is asked for again.
    let view = service::show_agreement(&api.service, scope.clone(), id)
        .await?
        .view;
    let ending = service::cost_of_ending(&api.service, scope, id, party).await?;
    let payments = |payments: &[EndingPaymentView]| {
        let payment = |payment: &EndingPaymentView| Payment {
            amount: payment.amount.to_string(),
            reason: match &payment.reason {
                Some(reason) => format!("{} ({reason})", title_of_money_entry(&payment.kind)),
                None => title_of_money_entry(&payment.kind).to_owned(),
            },
        };
        payments.iter().map(payment).collect()
    };
    let name = text::name(&view);
    let confirm = Confirm {
        frame: visitor.frame(format!("Cancel “{name}”?")),
        id,
        name,
        is_own: view.party == *party,
        version: view.version,
        has_changed,
        stops_work: ending.stops_work,
        charges: payments(&ending.charges),
        credits: payments(&ending.credits),
        at_peer: ending.at_peer,
        price: view.price.as_ref().map(ToString::to_string),
    };
    let status = if has_changed {
        StatusCode::CONFLICT
    } else {
        StatusCode::OK
    };
    render_page(status, &confirm)
}

/// POST /portal/agreements/{id}/terminate: ends the version that the visitor has seen the costs of. Of another version, the costs are
/// shown again.
pub(crate) async fn terminate_agreement(
    State(api): State<Api>,
    PagePath(id): PagePath<Uuid>,
    request: Request,
) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    let seen: Option<i64> = values.get("version").parse().ok();
    let order = TerminateRequest {
        id,
        input: Input::Xml(Vec::new()),
        by: visitor.caller.party.clone(),
        versions: Some(seen.into_iter().collect()),
        key: None,
    };
    let scope = scope_of_caller(&visitor.caller);
    let asked_again = match service::terminate_agreement(&api.service, scope, order).await {
        Err(Error::Changed) => Some(render_termination_page(&api, &visitor, id, true).await),
        // It is over already.
        Ok(_) | Err(Error::Conflict(_)) => None,
        Err(other) => return Err(other.into()),
    };
    match asked_again {
        None | Some(Err(Failure::Request(api::Error::Service(Error::Conflict(_))))) => {
            Ok(redirect_to(&format!("/portal/agreements/{id}")))
        }
        Some(answer) => answer,
    }
}
