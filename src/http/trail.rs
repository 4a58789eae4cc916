//! The audit trail, for operators.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::format::Format;
use super::resources::operators_only;
use super::{Api, Error};
use crate::access::Caller;

/// Where a page begins, and how long it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    after: Option<i64>,
    limit: Option<u32>,
}

/// GET /events: everything that happened, in the order of the audit trail.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    query: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Error> {
    operators_only(&caller)?;
    let Query(asked) = query.map_err(|why| Error::Query(why.body_text()))?;
    let page = api.negotiation.trail(asked.after, asked.limit).await?;
    Ok(format.answer(&page.view(), || page.document()))
}
