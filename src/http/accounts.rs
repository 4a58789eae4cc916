//! Accounts: the debts and the credits of the caller.

use axum::Json;
use axum::response::IntoResponse;
use serde::Deserialize;
use uuid::Uuid;

use super::Answer;
use super::call::Call;
use super::format::JsonTaken;
use super::path::Query;

/// Which entries are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    party: Option<String>,
    after: Option<Uuid>,
    limit: Option<u32>,
}

/// GET /accounts: the caller's own, for an operator those of all parties, with entries a page at a time.
pub(super) async fn get_accounts(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let scope = call.scope_of(query.party)?;
    let view = call.negotiation.accounts(scope, query.after, query.limit).await?;
    let next = view.next;
    Ok(call.paged(Json(view).into_response(), next))
}
