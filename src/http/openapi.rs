//! The description of the API in JSON, OpenAPI 3.1, at `/openapi.json`: the document `schemas/openapi.json` with the version of
//! the service. Tests hold its paths to the router, and real answers to its schemas.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// The description, with no real version.
const DOCUMENT: &str = include_str!("../../schemas/openapi.json");

static DESCRIPTION: LazyLock<String> = LazyLock::new(|| {
    // A test reads it.
    let mut description: Value = serde_json::from_str(DOCUMENT).expect("the description is JSON");
    description["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    format!("{description:#}\n")
});

/// GET /openapi.json: needs no key, because it only describes the service.
pub(super) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DESCRIPTION.as_str()).into_response()
}
