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

use super::error::Failure;
use super::session::{self, Visitor};
use crate::http::{self, Api};

/// The routes of these pages.
pub(super) fn routes() -> Router<Api> {
    let moved = |to: &'static str| get(async move || Redirect::permanent(to));
    Router::new()
        .route("/portal/operator", get(overview::show_overview_page))
        .route("/portal/operator/resources", get(resources::show_resources_page))
        .route("/portal/operator/parties", get(parties::show_parties_page))
        .route("/portal/operator/peers", get(peers::show_peers_page))
        .route("/portal/operator/policies", get(policies::show_policies_page))
        .route(
            "/portal/operator/reliability",
            get(reliability::show_reliability_page),
        )
        .route(
            "/portal/operator/keys",
            get(keys::show_keys_page).post(keys::make_key),
        )
        .route("/portal/operator/trail", get(trail::show_trail_page))
        .route(
            "/portal/operator/maintenance",
            get(maintenance::show_maintenance_page),
        )
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
    let visitor = session::signed_in(api, headers, None).await?;
    http::require_operator(&visitor.caller)?;
    Ok(visitor)
}
