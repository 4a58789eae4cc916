//! The nodes of resources, for operators. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use schemars::JsonSchema;

use super::call::Call;
use super::operation::Operation;
use super::path::Path;
use super::query::{ChangeParameters, Query};
use super::rights::require_operator;
use super::routes::Routes;
use super::{Answer, Api, body};
use service::{NodesView, RepairedView, schemas};

/// How nodes stand.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct NodeOverride {
    /// The state.
    state: schemas::NodeState,
    /// The reason, a line.
    #[schemars(length(max = 500), example = &"a disk is replaced")] // REASON_MAX
    reason: Option<String>,
}

/// The routes of nodes.
pub(super) fn node_routes() -> Routes {
    Routes::default()
        .get(
            "/resources/{name}/nodes",
            get_resource_nodes,
            Operation::new("listNodes", "operation", "The states of the nodes of a resource")
                .for_operators()
                .answers::<NodesView>(),
        )
        .put(
            "/resources/{name}/nodes/{nodes}",
            put_resource_nodes,
            Operation::of_change(
                "putNodes",
                "Sets the states of nodes, by their names or numbers, as in n[1-3],n7: agreements on nodes out of use get \
                 another place",
            )
            .path("nodes", "The nodes, by their names or numbers", "n[1-3],n7")
            .takes::<NodeOverride>()
            .answers::<RepairedView>(),
        )
}

/// GET /resources/{name}/nodes.
async fn get_resource_nodes(call: Call, Path(name): Path<String>) -> Answer {
    require_operator(&call.caller)?;
    let nodes = service::list_nodes(&call.service, &name).await?;
    Ok(Json(nodes).into_response())
}

/// PUT /resources/{name}/nodes/{nodes}: how they stand from now on.
async fn put_resource_nodes(
    State(api): State<Api>,
    call: Call,
    Path((name, nodes)): Path<(String, String)>,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let said =
        service::override_nodes(&call.service, call.party(), &name, &nodes, &body, asked.dry_run).await?;
    if asked.dry_run {
        return Ok(Json(said).into_response());
    }
    tracing::info!(
        resource = name,
        nodes,
        party = call.party(),
        lost = said.lost,
        moved = said.moved,
        broken = said.broken,
        withdrawn = said.withdrawn,
        state = said.nodes.first().map_or("", |node| node.state.as_str()),
        "an operator has said how nodes stand"
    );
    Ok(Json(said).into_response())
}
