//! Resources and their nodes, for operators. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;

use super::call::Call;
use super::path::Path;
use super::{Answer, Api, Error, body};
use crate::access::{Caller, Role};

/// GET /resources.
pub(super) async fn list(call: Call) -> Answer {
    operators_only(&call.caller)?;
    let resources = call.negotiation.resources().await?;
    Ok(Json(resources).into_response())
}

/// GET /resources/{name}/nodes.
pub(super) async fn nodes(call: Call, Path(name): Path<String>) -> Answer {
    operators_only(&call.caller)?;
    let nodes = call.negotiation.nodes(&name).await?;
    Ok(Json(nodes).into_response())
}

/// PUT /resources/{name}/nodes/{nodes}: how they stand from now on.
pub(super) async fn say(
    State(api): State<Api>,
    call: Call,
    Path((name, nodes)): Path<(String, String)>,
    request: Request,
) -> Answer {
    operators_only(&call.caller)?;
    let body = body::json(&api, request).await?;
    let said = call
        .negotiation
        .say_nodes(call.party(), &name, &nodes, &body)
        .await?;
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

/// Lets in operators alone.
pub(crate) fn operators_only(caller: &Caller) -> Result<(), Error> {
    match caller.role {
        Role::Operator => Ok(()),
        Role::Consumer | Role::Monitor => Err(Error::Forbidden("the role of operators")),
    }
}
