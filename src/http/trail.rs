//! The audit trail, for operators, and for a party its own refusals.

use axum::Json;
use serde::Deserialize;

use super::call::Call;
use super::format::Format;
use super::path::{Id, Query};
use super::resources::operators_only;
use super::{Answer, Error};
use crate::negotiation::RefusedView;

/// Where a page begins, and how long it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    after: Option<i64>,
    limit: Option<u32>,
}

/// GET /events: everything that happened, in the order of the audit trail.
pub(super) async fn list(call: Call, format: Format, asked: Result<Query<PageQuery>, Error>) -> Answer {
    operators_only(&call.caller)?;
    let Query(asked) = asked?;
    let page = call.negotiation.trail(asked.after, asked.limit).await?;
    let view = page.view();
    let answer = format.answer(&view, || page.document());
    Ok(call.paged(answer, view.next))
}

/// GET /refusals/{id}. In JSON alone: WS-Agreement knows nothing of offers that were refused.
pub(super) async fn refused(call: Call, Id(id): Id) -> Result<Json<RefusedView>, Error> {
    let refused = call.negotiation.refused(&call.scope(), id).await?;
    Ok(Json(refused))
}
