//! Whether the predictions of run times have come true, for operators.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::{Answer, Frame, render_page};
use api::Api;
use service::ReliabilityView;

#[derive(Template)]
#[template(path = "portal/operator/reliability.html")]
struct Predictions {
    frame: Frame,
    /// None before the first outcome.
    reliability: Option<ReliabilityView>,
}

/// GET /portal/operator/reliability.
pub(super) async fn show_reliability_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let shown = Predictions {
        frame: visitor.frame("Predictions"),
        reliability: service::show_reliability(&api.service),
    };
    render_page(StatusCode::OK, &shown)
}
