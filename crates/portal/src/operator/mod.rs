//! The pages for operators: how the service stands, and what they may change. Every change is first shown with all that would follow,
//! as a dry run says it, and is then ordered by the same form (`orders.rs`).

mod affected_reservations;
mod keys;
mod maintenance;
mod orders;
mod overview;
mod parties;
mod peers;
mod policies;
mod reliability;
mod resources;
mod trail;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Redirect;
use axum::routing::get;

use super::failure::Failure;
use super::session::{self, Visitor};
use api::Api;

/// Writes the table of the pages in the menu, and their routes.
macro_rules! menu_pages {
    ($($path:literal $label:literal $handlers:expr;)*) => {
        /// The operators' pages in the order of their menu: the path and the name of each.
        pub const OPERATOR_PAGES: &[(&str, &str)] = &[$(($path, $label)),*];

        /// The routes of the pages in the menu.
        fn menu_routes() -> Router<Api> {
            Router::new()$(.route($path, $handlers))*
        }
    };
}

menu_pages! {
    "/portal/operator" "Overview" get(overview::show_overview_page);
    "/portal/operator/resources" "Resources" get(resources::show_resources_page);
    "/portal/operator/maintenance" "Maintenance" get(maintenance::show_maintenance_page);
    "/portal/operator/parties" "Parties" get(parties::show_parties_page);
    "/portal/operator/peers" "Peers" get(peers::show_peers_page);
    "/portal/operator/policies" "Policies" get(policies::show_policies_page);
    "/portal/operator/keys" "Keys" get(keys::show_keys_page).post(keys::make_key_from_page);
    "/portal/operator/trail" "Trail" get(trail::show_trail_page);
    "/portal/operator/reliability" "Predictions" get(reliability::show_reliability_page);
}

/// The routes of these pages.
pub(super) fn operator_routes() -> Router<Api> {
    let moved = |to: &'static str| get(async move || Redirect::permanent(to));
    menu_routes()
        .route(
            "/portal/operator/agreements/{id}",
            get(orders::show_agreement_orders_page),
        )
        .route(
            "/portal/operator/orders",
            get(overview::show_overview_page).post(orders::carry_out_order),
        )
        // Where these pages were.
        .route("/portal/resources", moved("/portal/operator/resources"))
        .route("/portal/reliability", moved("/portal/operator/reliability"))
}

/// The operator that has sent a request.
///
/// # Errors
/// [`Failure::SignedOut`], and that others may not.
async fn signed_in_operator(api: &Api, headers: &HeaderMap) -> Result<Visitor, Failure> {
    let visitor = session::visitor_of_session(api, headers, None).await?;
    api::require_operator(&visitor.caller)?;
    Ok(visitor)
}
