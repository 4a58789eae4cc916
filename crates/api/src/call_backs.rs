//! Where a party has its events told. In JSON alone: WS-Agreement knows only endpoints for single decisions.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::call::Call;
use super::operation::Operation;
use super::path::Path;
use super::query::{NoParameters, Query};
use super::routes::Routes;
use super::{Answer, Api, body};
use service::{CallBackView, CallBacksView};

/// Whose call-backs are meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfParty {
    /// The party whose call-backs are meant; only operators may name another than their own.
    party: Option<String>,
}

/// Where events are to be told.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct NewCallBack {
    /// The address; none for the name `decisions`.
    #[serde(default)]
    #[schemars(extend("format" = "uri"), length(max = 2048), example = &"https://planner.example.org/told")]
    // LENGTH_MAX of addresses
    address: String,
}

/// The routes of call-backs.
pub(super) fn call_back_routes() -> Routes {
    Routes::default()
        .get(
            "/call-backs",
            get_call_backs,
            Operation::new(
                "listCallBacks",
                "call-backs",
                "Your registered call-backs; for operators those of any party",
            )
            .query::<OfParty>()
            .answers::<CallBacksView>(),
        )
        .get(
            "/call-backs/{name}",
            get_call_back,
            Operation::new(
                "getCallBack",
                "call-backs",
                "A call-back, and how far its events were told",
            )
            .answers::<CallBackView>(),
        )
        .put(
            "/call-backs/{name}",
            put_call_back,
            Operation::new(
                "putCallBack",
                "call-backs",
                "Has all events of your party told to an address, signed as Standard Webhooks says with a new secret, which is \
                 shown once; the name `decisions` takes no address, and its secret signs the decisions that are told to the \
                 addresses of single offers",
            )
            .takes::<NewCallBack>()
            .answers::<CallBackView>(),
        )
        .delete(
            "/call-backs/{name}",
            delete_call_back,
            Operation::new(
                "deleteCallBack",
                "call-backs",
                "Removes a call-back; operators remove those of any party",
            )
            .query::<OfParty>()
            .answers_nothing(),
        )
}

/// GET /call-backs.
async fn get_call_backs(call: Call, Query(owner): Query<OfParty>) -> Answer {
    let party = call.party_of(owner.party)?;
    let all = service::list_call_backs(&call.service, &party).await?;
    Ok(Json(all).into_response())
}

/// GET /call-backs/{name}.
async fn get_call_back(call: Call, Path(name): Path<String>) -> Answer {
    let one = service::show_call_back(&call.service, call.party(), &name).await?;
    Ok(Json(one).into_response())
}

/// PUT /call-backs/{name}: the events are told there from now on.
async fn put_call_back(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
    request: Request,
) -> Answer {
    let body = body::read_json_body(&api, request).await?;
    let one = service::register_call_back(&call.service, call.party(), &name, &body).await?;
    Ok(Json(one).into_response())
}

/// DELETE /call-backs/{name}.
async fn delete_call_back(call: Call, Path(name): Path<String>, Query(owner): Query<OfParty>) -> Answer {
    let party = call.party_of(owner.party)?;
    service::unregister_call_back(&call.service, &party, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
