//! Refusals that were noted. In JSON alone: WS-Agreement knows nothing of offers that were refused.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::path::Id;
use super::routes::Routes;
use service::RefusedView;

/// The route of refusals.
pub(super) fn refusal_routes() -> Routes {
    Routes::default().get(
        "/refusals/{id}",
        get_refusal,
        Operation::new(
            "getRefusal",
            "negotiations",
            "The reason for a refusal, by the id in the refusal",
        )
        .answers::<RefusedView>(),
    )
}

/// GET /refusals/{id}.
async fn get_refusal(call: Call, Id(id): Id) -> Answer {
    let refused = service::show_refusal_in_trail(&call.service, &call.scope(), id).await?;
    Ok(Json(refused).into_response())
}
