//! What there is to ask for. In JSON alone: in WS-Agreement it is part of the templates.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::routes::Routes;
use crate::negotiation::{ApplicationsView, PricesView};

/// The routes of applications and prices.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get(
            "/applications",
            get_applications,
            Operation::new(
                "listApplications",
                "discovery",
                "The applications that offers may name, with their arguments",
            )
            .answers::<ApplicationsView>(),
        )
        .get(
            "/prices",
            get_prices,
            Operation::new("getPrices", "discovery", "The price list as it is for your party")
                .answers::<PricesView>(),
        )
}

/// GET /applications.
async fn get_applications(call: Call) -> Answer {
    Ok(Json(call.negotiation.applications()).into_response())
}

/// GET /prices: the price list as it is for the caller's party.
async fn get_prices(call: Call) -> Answer {
    Ok(Json(call.negotiation.prices(call.party())).into_response())
}
