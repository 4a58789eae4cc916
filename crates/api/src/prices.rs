//! What things cost. In JSON alone: WS-Agreement knows prices of offers only.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::routes::Routes;
use service::PricesView;

/// The route of prices.
pub(super) fn price_routes() -> Routes {
    Routes::default().get(
        "/prices",
        get_prices,
        Operation::new("getPrices", "discovery", "The price list as it is for your party")
            .answers::<PricesView>(),
    )
}

/// GET /prices: the price list as it is for the caller's party.
async fn get_prices(call: Call) -> Answer {
    Ok(Json(service::list_prices(&call.service, call.party())).into_response())
}
