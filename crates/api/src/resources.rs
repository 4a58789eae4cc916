//! Resources. In JSON alone: WS-Agreement has no documents for them.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::resources::{CAPACITY_MAX, RATES};
use schemars::JsonSchema;
use serde_json::json;

use super::call::Call;
use super::operation::Operation;
use super::path::Path;
use super::query::{ChangeParameters, Query};
use super::rights::require_operator;
use super::routes::Routes;
use super::{Answer, Api, body};
use access::Role;
use service::{NAMED_VERBS, OfferedResourcesView, ResourceChangesView, ResourceVerb, ResourcesView, schemas};

/// The resources: as operators see them, or as others do.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "each is answered as it is")]
enum SeenResources {
    All(ResourcesView),
    Offered(OfferedResourcesView),
}

/// A resource as it is to be. What is left out stays as it is.
#[derive(JsonSchema)]
#[schemars(example = json!({"kind": "local", "nodes": 4, "attributes": {"cpus": 16}}))]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct ResourceDefinition {
    /// The executor.
    #[schemars(extend("enum" = ["local", "slurm", null]))]
    kind: Option<String>,
    /// How many nodes it has.
    #[schemars(range(min = 1, max = CAPACITY_MAX), example = 4)]
    nodes: Option<u32>,
    /// How fast its nodes work, as a multiple of the reference.
    #[schemars(range(min = *RATES.start(), max = *RATES.end()), example = 1.0)]
    rate: Option<f64>,
    /// The attributes of its nodes that requests may ask for.
    attributes: Option<schemas::ResourceAttributesSchema>,
    /// The limits of its jobs.
    limits: Option<schemas::ResourceLimitsSchema>,
}

/// The routes of resources.
pub(super) fn resource_routes() -> Routes {
    Routes::default()
        .get(
            "/resources",
            get_resources,
            Operation::new(
                "listResources",
                "discovery",
                "What the resources have; operators also see their states",
            )
            .answers::<SeenResources>(),
        )
        .put(
            "/resources/{name}",
            put_resource_definition,
            Operation::of_change(
                "putResource",
                "Adds a resource of this machine, or changes a resource; agreements that do not fit any more get another place",
            )
            .takes::<ResourceDefinition>()
            .answers::<ResourceChangesView>(),
        )
        .merge(resource_verb_routes())
}

/// The routes by which a resource takes new work or does not.
fn resource_verb_routes() -> Routes {
    NAMED_VERBS.iter().fold(Routes::default(), |routes, named| {
        routes.post(
            named.path,
            async move |call: Call, name: Path<String>, asked: Query<ChangeParameters>| {
                answer_resource_verb(named.verb.clone(), call, name, asked).await
            },
            Operation::of_change(named.operation, named.about).answers::<ResourceChangesView>(),
        )
    })
}

/// GET /resources: how they stand for operators, and for others what can be asked for.
async fn get_resources(call: Call) -> Answer {
    if call.caller.role != Role::Operator {
        return Ok(Json(service::list_offered_resources(&call.service)).into_response());
    }
    let resources = service::list_resources(&call.service).await?;
    Ok(Json(resources).into_response())
}

/// PUT /resources/{name}: a resource as it is from now on.
async fn put_resource_definition(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(asked): Query<ChangeParameters>,
    request: Request,
) -> Answer {
    require_operator(&call.caller)?;
    let body = body::read_json_body(&api, request).await?;
    let party = call.party();
    let told = service::put_resource(&call.service, party, &name, &body, asked.dry_run);
    let told = told.await?;
    Ok(answer_resource_changes(&call, &told))
}

/// POST of each of [`NAMED_VERBS`], such as /resources/{name}/retire: whether something is placed on it from now on.
async fn answer_resource_verb(
    verb: ResourceVerb,
    call: Call,
    Path(name): Path<String>,
    Query(asked): Query<ChangeParameters>,
) -> Answer {
    require_operator(&call.caller)?;
    let told = service::change_resource(&call.service, call.party(), &name, verb, asked.dry_run);
    Ok(answer_resource_changes(&call, &told.await?))
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
