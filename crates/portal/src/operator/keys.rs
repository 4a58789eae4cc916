//! The keys of all parties. The secret of a new one is shown once.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::json;
use uuid::Uuid;

use crate::request::field_names;
use crate::request::form_reader::{self};
use crate::session::{self, Visitor};
use crate::{Answer, Frame, render_page, text};
use access::Role;
use api::{Api, KeyView};
use service::RequestKey;

#[derive(Template)]
#[template(path = "portal/operator/keys.html")]
struct Keys {
    frame: Frame,
    /// The newest first.
    all: Vec<KeyView>,
    /// The one that was just made.
    made: Option<KeyView>,
    roles: [&'static str; 3],
    currency: Option<String>,
    once: Uuid,
}

/// GET /portal/operator/keys.
pub(super) async fn show_keys_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    render_keys_page(&api, &visitor, None).await
}

/// POST /portal/operator/keys: makes a key, and shows its secret.
pub(super) async fn make_key_from_page(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    api::require_key_maker(&visitor.caller)?;
    let expires =
        form_reader::read_form_time(&values, field_names::DEADLINE).map_err(service::Error::invalid)?;
    let filled = |name| Some(values.trimmed(name)).filter(|text| !text.is_empty());
    let currency = api.service.currency();
    let cap = filled("cap").zip(currency);
    let cap = cap.map(|(amount, currency)| json!({ "amount": amount, "currency": currency.to_string() }));
    let asked = json!({
        "party": values.trimmed("party"),
        "role": values.trimmed("role"),
        "label": filled("label"),
        "expires": expires.map(text::date_time),
        "readOnly": values.has("read-only"),
        "spendingCap": cap,
    });
    let body = asked.to_string();
    let once: Option<Uuid> = values.get(field_names::ONCE).parse().ok();
    let party = &visitor.caller.party;
    let once =
        once.map(|once| RequestKey::new(party, &once.to_string(), "a key of the portal", body.as_bytes()));
    let made = api::make_key(&api, &visitor.caller, body.as_bytes(), once).await?;
    render_keys_page(&api, &visitor, Some(made)).await
}

async fn render_keys_page(api: &Api, visitor: &Visitor, made: Option<KeyView>) -> Answer {
    let mut keys = api::get_listed_keys(api).await?;
    keys.reverse();
    let status = if made.is_some() {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let shown = Keys {
        frame: visitor.frame("Keys"),
        all: keys,
        made,
        roles: Role::ALL.map(Role::word),
        currency: api.service.currency().map(|currency| currency.to_string()),
        once: Uuid::now_v7(),
    };
    render_page(status, &shown)
}
