//! What parties have of the resources. In JSON alone: WS-Agreement knows nothing of it.

use axum::Json;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::query::Query;
use super::routes::Routes;
use service::UsageView;

/// Whose usage is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsageQuery {
    /// Only what this party has; of another than your own for operators.
    party: Option<String>,
}

/// The route of usage.
pub(super) fn usage_routes() -> Routes {
    Routes::default().get(
        "/usage",
        get_usage,
        Operation::new(
            "getUsage",
            "discovery",
            "How much of the resources you have and may have; operators see that of all parties",
        )
        .query::<UsageQuery>()
        .answers::<UsageView>(),
    )
}

/// GET /usage: the caller's own, for an operator that of all parties.
async fn get_usage(call: Call, Query(asked): Query<UsageQuery>) -> Answer {
    let scope = call.scope_of(asked.party)?;
    Ok(Json(service::show_usage(&call.service, &scope).await?).into_response())
}
