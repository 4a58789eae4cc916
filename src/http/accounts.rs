//! Accounts: the debts and the credits of the caller.

use super::Answer;
use super::agreements::PageQuery;
use super::call::Call;
use super::format::Format;
use super::path::Query;

/// GET /accounts: the caller's own, for an operator those of all parties, with entries a page at a time.
pub(super) async fn list(call: Call, format: Format, Query(query): Query<PageQuery>) -> Answer {
    let accounts = call
        .negotiation
        .accounts(call.scope(), query.after, query.limit.map(Into::into))
        .await?;
    Ok(format.answer(&accounts.view(), || accounts.document()))
}
