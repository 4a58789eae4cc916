//! What there is to ask for. In JSON alone: in WS-Agreement it is part of the templates.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;

/// GET /applications.
pub(super) async fn get_applications(call: Call) -> Answer {
    Ok(Json(call.negotiation.applications()).into_response())
}

/// GET /prices: the price list as it is for the caller's party.
pub(super) async fn get_prices(call: Call) -> Answer {
    Ok(Json(call.negotiation.prices(call.party())).into_response())
}
