//! Whether the predictions of run times have come true, for operators.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::{Answer, Frame, page, session};
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
pub(super) async fn show(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = session::signed_in(&api, &headers, None).await?;
    http::operators_only(&visitor.caller)?;
    let shown = Predictions {
        frame: visitor.frame("Predictions"),
        reliability: api.negotiation.reliability(),
    };
    page(StatusCode::OK, &shown)
}
