//! Whether the predictions of run times have come true, for operators.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::{Answer, Frame, render_page, session};
use crate::http::{self, Api};
use crate::negotiation::ReliabilityView;

#[derive(Template)]
#[template(path = "portal/reliability.html")]
struct Predictions {
    frame: Frame,
    /// None before the first outcome.
    reliability: Option<ReliabilityView>,
}

/// GET /portal/reliability.
pub(super) async fn show_reliability_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = session::signed_in(&api, &headers, None).await?;
    http::require_operator(&visitor.caller)?;
    let shown = Predictions {
        frame: visitor.frame("Predictions"),
        reliability: api.negotiation.reliability(),
    };
    render_page(StatusCode::OK, &shown)
}
