//! What parties have of the resources. In JSON alone: WS-Agreement knows nothing of it.

use axum::Json;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::Answer;
use super::call::Call;
use super::path::Query;

/// Whose usage is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageQuery {
    party: Option<String>,
}

/// GET /usage: the caller's own, for an operator that of all parties.
pub(super) async fn get_usage(call: Call, Query(asked): Query<UsageQuery>) -> Answer {
    let scope = call.scope_of(asked.party)?;
    Ok(Json(call.negotiation.usage(&scope).await?).into_response())
}
