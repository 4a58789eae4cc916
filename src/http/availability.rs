//! GET /availability.

use axum::Json;
use axum::response::IntoResponse;
use serde::Deserialize;
use wsag::time::DateTime;

use super::call::Call;
use super::format::JsonTaken;
use super::path::Query;
use super::{Answer, Error};
use crate::negotiation::AvailabilityQuery;

/// The parameters of the query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AvailabilityParameters {
    nodes: Option<u32>,
    start: Option<String>,
    end: Option<String>,
    kind: Option<String>,
}

/// The times in which a class of resources has nodes free, and never the parties that have the others.
pub(super) async fn get_availability(
    call: Call,
    _: JsonTaken,
    Query(asked): Query<AvailabilityParameters>,
) -> Answer {
    if asked.nodes == Some(0) {
        return Err(Error::Query(
            "nodes: a whole number from 1 on is expected".to_owned(),
        ));
    }
    let query = AvailabilityQuery {
        nodes: asked.nodes,
        start: read_instant_of_query("start", asked.start.as_deref())?,
        end: read_instant_of_query("end", asked.end.as_deref())?,
        kind: asked.kind,
    };
    match call.negotiation.availability(call.party(), query).await? {
        Some(view) => Ok(Json(view).into_response()),
        None => Err(Error::NotFound(
            "this provider does not publish when nodes are free".to_owned(),
        )),
    }
}

/// Reads an instant of a query.
pub(super) fn read_instant_of_query(name: &str, text: Option<&str>) -> Result<Option<DateTime>, Error> {
    text.map(DateTime::of_rfc3339)
        .transpose()
        .map_err(|why| Error::Query(format!("{name}: a dateTime is expected: {why}")))
}
