//! Accounts: the debts and the credits of the caller.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;

use super::agreements::PageQuery;
use super::format::Format;
use super::{Api, Error, scope};
use crate::access::Caller;

/// GET /accounts: the caller's own, for an operator those of all parties, with entries a page at a time.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, Error> {
    let Query(query) = query.map_err(|why| Error::Query(why.body_text()))?;
    let accounts = api
        .negotiation
        .accounts(scope(&caller), query.after, query.limit)
        .await?;
    Ok(format.answer(&accounts.view(), || accounts.document()))
}
