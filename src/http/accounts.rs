//! Accounts: the debts and the credits of the caller.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use super::agreements::PageQuery;
use super::format::Format;
use super::path::Query;
use super::{Api, Error, scope};
use crate::access::Caller;

/// GET /accounts: the caller's own, for an operator those of all parties, with entries a page at a time.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Query(query): Query<PageQuery>,
) -> Result<Response, Error> {
    let accounts = api
        .negotiation
        .accounts(scope(&caller), query.after, query.limit)
        .await?;
    Ok(format.answer(&accounts.view(), || accounts.document()))
}
