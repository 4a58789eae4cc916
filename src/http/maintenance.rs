//! Planned times without nodes, for operators. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;

use super::call::Call;
use super::path::{Id, NoParameters, Query};
use super::resources::{ChangeParameters, answer_resource_changes, require_operator};
use super::{Answer, Api, body};

/// GET /maintenance: what is planned.
pub(super) async fn get_maintenance(call: Call, Query(NoParameters {}): Query<NoParameters>) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(call.negotiation.maintenance()).into_response())
}

/// POST /maintenance: a resource is without nodes for a time.
pub(super) async fn post_maintenance(
    State(api): State<Api>,
    call: Call,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let told = call
        .negotiation
        .add_maintenance(call.party(), &body, asked.dry_run);
    Ok(answer_resource_changes(&call, &told.await?))
}

/// DELETE /maintenance/{id}: the resource has its nodes then.
pub(super) async fn delete_maintenance(
    call: Call,
    Id(id): Id,
    Query(asked): Query<ChangeParameters>,
) -> Answer {
    require_operator(&call.caller)?;
    let told = call
        .negotiation
        .remove_maintenance(call.party(), id, asked.dry_run);
    Ok(answer_resource_changes(&call, &told.await?))
}
