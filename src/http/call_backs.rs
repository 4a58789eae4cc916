//! Where a party has its events told. In JSON alone: WS-Agreement knows only endpoints for single decisions.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::Call;
use super::path::{NoParameters, Path, Query};
use super::{Answer, Api, body};

/// Whose call-backs are meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfParty {
    /// The party; of others than operators only their own.
    party: Option<String>,
}

/// GET /call-backs.
pub(super) async fn get_call_backs(call: Call, Query(agreement): Query<OfParty>) -> Answer {
    let party = call.party_of(agreement.party)?;
    let all = call.negotiation.call_backs(&party).await?;
    Ok(Json(all).into_response())
}

/// GET /call-backs/{name}.
pub(super) async fn get_call_back(call: Call, Path(name): Path<String>) -> Answer {
    let one = call.negotiation.registered_call_back(call.party(), &name).await?;
    Ok(Json(one).into_response())
}

/// PUT /call-backs/{name}: the events are told there from now on.
pub(super) async fn put_call_back(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
    request: Request,
) -> Answer {
    let body = body::read_json_body(&api, request).await?;
    let one = call
        .negotiation
        .register_call_back(call.party(), &name, &body)
        .await?;
    Ok(Json(one).into_response())
}

/// DELETE /call-backs/{name}.
pub(super) async fn delete_call_back(
    call: Call,
    Path(name): Path<String>,
    Query(agreement): Query<OfParty>,
) -> Answer {
    let party = call.party_of(agreement.party)?;
    call.negotiation.unregister_call_back(&party, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
