//! GET /availability.

use axum::Json;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::call::Call;
use super::format::JsonTaken;
use super::operation::Operation;
use super::query::{Query, read_query_instant};
use super::routes::Routes;
use super::{Answer, Error, requests};
use service::{AvailabilityQuery, AvailabilityView};

/// The parameters of the query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AvailabilityParameters {
    /// The least number of nodes; 1 by default.
    #[schemars(range(min = 1, max = u32::MAX))]
    nodes: Option<u32>,
    /// The start; now by default.
    #[schemars(with = "Option<requests::InstantInRequest>")]
    start: Option<String>,
    /// The end; a day later by default.
    #[schemars(with = "Option<requests::InstantInRequest>")]
    end: Option<String>,
    /// The class: the kind of the resources; any by default.
    kind: Option<String>,
}

/// The route of free times.
pub(super) fn availability_routes() -> Routes {
    Routes::default().get(
        "/availability",
        get_availability,
        Operation::new(
            "getAvailability",
            "discovery",
            "The times at which a class of resources has this many nodes free; other parties' agreements are not shown",
        )
        .query::<AvailabilityParameters>()
        .answers::<AvailabilityView>(),
    )
}

/// The times in which a class of resources has nodes free, and never the parties that have the others.
async fn get_availability(call: Call, _: JsonTaken, Query(asked): Query<AvailabilityParameters>) -> Answer {
    if asked.nodes == Some(0) {
        return Err(Error::Query(
            "nodes: a whole number from 1 on is expected".to_owned(),
        ));
    }
    let query = AvailabilityQuery {
        nodes: asked.nodes,
        start: read_query_instant("start", asked.start.as_deref())?,
        end: read_query_instant("end", asked.end.as_deref())?,
        kind: asked.kind,
    };
    match service::show_availability(&call.service, call.party(), query).await? {
        Some(view) => Ok(Json(view).into_response()),
        None => Err(Error::NotFound(
            "this provider does not publish when nodes are free".to_owned(),
        )),
    }
}
