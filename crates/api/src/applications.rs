//! The applications that can be asked for. In JSON alone: in WS-Agreement they are part of the templates.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::routes::Routes;
use service::ApplicationsView;

/// The route of applications.
pub(super) fn application_routes() -> Routes {
    Routes::default().get(
        "/applications",
        get_applications,
        Operation::new(
            "listApplications",
            "discovery",
            "The applications that offers may name, with their arguments",
        )
        .answers::<ApplicationsView>(),
    )
}

/// GET /applications.
async fn get_applications(call: Call) -> Answer {
    Ok(Json(service::list_applications(&call.service)).into_response())
}
