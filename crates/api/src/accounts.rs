//! Accounts: the debts and the credits of the caller.

use axum::Json;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::Answer;
use super::call::Call;
use super::format::JsonTaken;
use super::operation::Operation;
use super::query::Query;
use super::routes::Routes;
use service::AccountsView;

/// Which entries are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only the account of this party; of another than your own for operators.
    party: Option<String>,
    /// The `next` of the page before.
    after: Option<Uuid>,
    /// How many entries at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// The route of accounts.
pub(super) fn account_routes() -> Routes {
    Routes::default().get(
        "/accounts",
        get_accounts,
        Operation::new(
            "listAccounts",
            "accounts",
            "Your account; operators see all accounts",
        )
        .query::<ListQuery>()
        .answers_page::<AccountsView>(),
    )
}

/// GET /accounts: the caller's own, for an operator those of all parties, with entries a page at a time.
async fn get_accounts(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let scope = call.scope_of(query.party)?;
    let view = service::list_accounts(&call.service, scope, query.after, query.limit).await?;
    let next = view.next;
    Ok(call.paged(Json(view).into_response(), next))
}
