//! This domain among others, in JSON alone: WS-Agreement knows nothing of it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::call::Call;
use super::path::Path;
use super::resources::require_operator;
use super::{Answer, Api};

/// GET /.well-known/bespeak: needs no key, because its content is public.
pub(super) async fn get_domain(State(api): State<Api>) -> Response {
    Json(api.negotiation.domain()).into_response()
}

/// GET /peers: for operators.
pub(super) async fn get_peers(call: Call) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(call.negotiation.peers()).into_response())
}

/// GET /peers/{name}/differences: for operators.
pub(super) async fn get_differences(call: Call, Path(name): Path<String>) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(call.negotiation.reconcile(&name).await?).into_response())
}
