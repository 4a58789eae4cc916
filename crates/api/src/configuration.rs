//! The configuration, for operators. In JSON alone: WS-Agreement has no documents for it.

use axum::Json;
use axum::response::IntoResponse;

use super::Answer;
use super::call::Call;
use super::operation::Operation;
use super::query::{ChangeParameters, Query};
use super::rights::require_operator;
use super::routes::Routes;
use service::ReloadedView;

/// The route of the configuration.
pub(super) fn configuration_routes() -> Routes {
    Routes::default().post(
        "/configuration/reload",
        post_configuration_reload,
        Operation::of_change(
            "reloadConfiguration",
            "Reads the configuration file again and takes it over; a file with a fault changes nothing",
        )
        .answers::<ReloadedView>(),
    )
}

/// POST /configuration/reload: the configuration file is read again.
async fn post_configuration_reload(call: Call, Query(asked): Query<ChangeParameters>) -> Answer {
    require_operator(&call.caller)?;
    let told = service::reload_configuration(&call.service, call.party(), asked.dry_run).await?;
    Ok(Json(told).into_response())
}
