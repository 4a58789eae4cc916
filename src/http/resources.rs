//! Resources, and for operators their nodes. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::call::Call;
use super::path::{Path, Query};
use super::{Answer, Api, Error, body};
use crate::access::{Caller, Role};
use crate::negotiation::{ResourceChangesView, ResourceVerb};

/// GET /resources: how they stand for operators, and for others what can be asked for.
pub(super) async fn get_resources(call: Call) -> Answer {
    if call.caller.role != Role::Operator {
        return Ok(Json(call.negotiation.offered_resources()).into_response());
    }
    let resources = call.negotiation.resources().await?;
    Ok(Json(resources).into_response())
}

/// The parameters of a change.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChangeParameters {
    /// Whether nothing is done, and it is only answered what would follow.
    #[serde(default, deserialize_with = "read_true_or_false")]
    pub(super) dry_run: bool,
}

/// Reads a parameter that is `true` or `false`. The error for another word says so.
pub(super) fn read_true_or_false<'de, D: Deserializer<'de>>(word: D) -> Result<bool, D::Error> {
    match &*String::deserialize(word)? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(D::Error::custom("true or false is expected")),
    }
}

/// PUT /resources/{name}: a resource as it is from now on.
pub(super) async fn put_resource_definition(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let party = call.party();
    let told = call.negotiation.put_resource(party, &name, &body, asked.dry_run);
    let told = told.await?;
    Ok(answer_resource_changes(&call, &told))
}

/// POST /resources/{name}/retire, /restore, /freeze or /thaw: whether something is placed on it from now on.
pub(super) fn post_resource_verb(verb: ResourceVerb) -> MethodRouter<Api> {
    post(
        async move |call: Call, Path(name): Path<String>, Query(asked): Query<ChangeParameters>| {
            require_operator(&call.caller)?;
            let negotiation = &call.negotiation;
            let told = negotiation.change_resource(call.party(), &name, verb.clone(), asked.dry_run);
            Ok::<_, Error>(answer_resource_changes(&call, &told.await?))
        },
    )
}

/// POST /configuration/reload: the configuration file is read again.
pub(super) async fn post_configuration_reload(call: Call, Query(asked): Query<ChangeParameters>) -> Answer {
    require_operator(&call.caller)?;
    let told = call.negotiation.reload(call.party(), asked.dry_run).await?;
    Ok(Json(told).into_response())
}

/// Answers what became of resources, with a line in the log.
pub(super) fn answer_resource_changes(call: &Call, told: &ResourceChangesView) -> Response {
    if !told.dry_run {
        for one_resource in &told.resources {
            tracing::info!(
                resource = one_resource.name,
                change = one_resource.change,
                party = call.party(),
                moved = told.moved.len(),
                broken = told.broken.len(),
                withdrawn = told.withdrawn,
                "an operator has changed a resource"
            );
        }
    }
    Json(told).into_response()
}

/// GET /resources/{name}/nodes.
pub(super) async fn get_resource_nodes(call: Call, Path(name): Path<String>) -> Answer {
    require_operator(&call.caller)?;
    let nodes = call.negotiation.nodes(&name).await?;
    Ok(Json(nodes).into_response())
}

/// PUT /resources/{name}/nodes/{nodes}: how they stand from now on.
pub(super) async fn put_resource_nodes(
    State(api): State<Api>,
    call: Call,
    Path((name, nodes)): Path<(String, String)>,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let said = call
        .negotiation
        .override_nodes(call.party(), &name, &nodes, &body, asked.dry_run)
        .await?;
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

/// Lets in operators alone.
pub(crate) fn require_operator(caller: &Caller) -> Result<(), Error> {
    match caller.role {
        Role::Operator => Ok(()),
        Role::Consumer | Role::Monitor => Err(Error::Forbidden("the role of operators")),
    }
}
