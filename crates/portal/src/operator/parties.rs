//! What each party has of the resources, and how much it may have.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::{Answer, Frame, render_page};
use api::Api;
use service::{Scope, UsageView};

#[derive(Template)]
#[template(path = "portal/operator/parties.html")]
struct Parties {
    frame: Frame,
    usage: UsageView,
}

/// GET /portal/operator/parties.
pub(super) async fn show_parties_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let shown = Parties {
        frame: visitor.frame("Parties"),
        usage: service::show_usage(&api.service, &Scope::All).await?,
    };
    render_page(StatusCode::OK, &shown)
}
