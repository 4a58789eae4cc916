//! Planned times without nodes, for operators. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use schemars::JsonSchema;

use super::call::Call;
use super::operation::Operation;
use super::path::Id;
use super::query::{ChangeParameters, NoParameters, Query};
use super::resources::answer_resource_changes;
use super::rights::require_operator;
use super::routes::Routes;
use super::{Answer, Api, body};
use service::{MaintenancesView, ResourceChangesView, schemas};

/// A planned time in which a resource is without nodes.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct NewMaintenance {
    /// The name of the resource.
    #[schemars(length(max = 255), example = &"local")] // TOKEN_MAX
    resource: String,
    /// The start.
    #[schemars(with = "schemas::Instant")]
    start: String,
    /// The end.
    #[schemars(with = "schemas::Instant", example = &"2026-11-21T12:00:00Z")]
    end: String,
    /// How many nodes it is without, those with the highest numbers; all where it is not said.
    #[schemars(range(min = 1, max = domain::resources::CAPACITY_MAX), example = 2)]
    nodes: Option<u32>,
    /// The reason, a line.
    #[schemars(length(max = 500), example = &"a disk is replaced")] // REASON_MAX
    reason: Option<String>,
}

/// The routes of planned times without nodes.
pub(super) fn maintenance_routes() -> Routes {
    Routes::default()
        .get(
            "/maintenance",
            get_maintenance,
            Operation::new("listMaintenance", "operation", "The planned times without nodes")
                .for_operators()
                .answers::<MaintenancesView>(),
        )
        .post(
            "/maintenance",
            post_maintenance,
            Operation::new(
                "addMaintenance",
                "operation",
                "Plans a time in which a resource is without nodes: agreements in the way get another place; the same is added \
                 once",
            )
            .for_operators()
            .query::<ChangeParameters>()
            .takes::<NewMaintenance>()
            .answers::<ResourceChangesView>(),
        )
        .delete(
            "/maintenance/{id}",
            delete_maintenance,
            Operation::new(
                "removeMaintenance",
                "operation",
                "Takes back a planned time without nodes that an operator has added",
            )
            .for_operators()
            .query::<ChangeParameters>()
            .answers::<ResourceChangesView>(),
        )
}

/// GET /maintenance: what is planned.
async fn get_maintenance(call: Call, Query(NoParameters {}): Query<NoParameters>) -> Answer {
    require_operator(&call.caller)?;
    Ok(Json(service::list_maintenance(&call.service)).into_response())
}

/// POST /maintenance: a resource is without nodes for a time.
async fn post_maintenance(
    State(api): State<Api>,
    call: Call,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let told = service::add_maintenance(&call.service, call.party(), &body, asked.dry_run);
    Ok(answer_resource_changes(&call, &told.await?))
}

/// DELETE /maintenance/{id}: the resource has its nodes then.
async fn delete_maintenance(call: Call, Id(id): Id, Query(asked): Query<ChangeParameters>) -> Answer {
    require_operator(&call.caller)?;
    let told = service::remove_maintenance(&call.service, call.party(), id, asked.dry_run);
    Ok(answer_resource_changes(&call, &told.await?))
}
