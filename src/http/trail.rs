//! The audit trail, for operators, and for a party its own refusals.

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use serde::Deserialize;

use super::format::Format;
use super::path::{Id, Query};
use super::resources::operators_only;
use super::{Api, Error, scope};
use crate::access::Caller;
use crate::negotiation::RefusedView;

/// Where a page begins, and how long it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrailQuery {
    after: Option<i64>,
    limit: Option<u32>,
}

/// GET /events: everything that happened, in the order of the audit trail.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    asked: Result<Query<TrailQuery>, Error>,
) -> Result<Response, Error> {
    operators_only(&caller)?;
    let Query(asked) = asked?;
    let page = api.negotiation.trail(asked.after, asked.limit).await?;
    Ok(format.answer(&page.view(), || page.document()))
}

/// GET /refusals/{id}. In JSON alone: WS-Agreement knows nothing of offers that were refused.
pub(super) async fn refused(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Json<RefusedView>, Error> {
    let refused = api.negotiation.refused(&scope(&caller), id).await?;
    Ok(Json(refused))
}
