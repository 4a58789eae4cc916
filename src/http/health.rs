//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Api;

/// GET /healthz: the process answers.
pub(super) async fn healthz() -> &'static str {
    "alive\n"
}

/// GET /readyz: the plan is rebuilt and the store answers. Anybody may ask, so that it says nothing else: how resources do is at
/// /resources.
pub(super) async fn readyz(State(api): State<Api>) -> Response {
    if api.negotiation.is_ready().await {
        "ready\n".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the plan is not in step with the store yet\n",
        )
            .into_response()
    }
}

/// Everything else before the plan is rebuilt.
pub(super) async fn starting() -> Response {
    let retry = [(header::RETRY_AFTER, "1")];
    (
        StatusCode::SERVICE_UNAVAILABLE,
        retry,
        "the plan is being rebuilt\n",
    )
        .into_response()
}
