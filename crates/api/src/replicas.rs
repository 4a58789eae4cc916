//! Calls of other replicas, which show their secrets: the questions of one that runs the jobs of its machine, and the files of jobs that
//! this one has run. They are no part of the API.

use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use uuid::Uuid;

use super::outputs::body_of_output;
use super::standby::FromReplica;
use super::{Answer, Api, Error};
use replicas::QUESTIONS;
use service::{LeaderQuestion, Scope};

/// The routes.
pub(super) fn replica_routes() -> Router<Api> {
    Router::new()
        .route(QUESTIONS, post(post_question))
        .route(
            "/replicas/outputs/{id}",
            get(get_replica_outputs).delete(delete_replica_outputs),
        )
        .route("/replicas/outputs/{id}/{name}", get(get_replica_output))
        .route_layer(middleware::from_fn(require_replica))
}

async fn require_replica(request: Request, next: Next) -> Answer {
    if request.extensions().get::<FromReplica>().is_none() {
        return Err(Error::NoKey);
    }
    Ok(next.run(request).await)
}

/// POST /replicas/questions: what a replica asks the process that leads about the jobs of its machine.
async fn post_question(
    State(api): State<Api>,
    Extension(FromReplica(name)): Extension<FromReplica>,
    Json(question): Json<LeaderQuestion>,
) -> Answer {
    Ok(Json(service::answer_replica(&api.service, &name, question).await?).into_response())
}

/// GET /replicas/outputs/{id}: the files of a job that has run here.
async fn get_replica_outputs(State(api): State<Api>, Path(id): Path<Uuid>) -> Answer {
    let files = service::list_outputs(&api.service, Scope::All, id).await?;
    Ok(Json(files).into_response())
}

/// GET /replicas/outputs/{id}/{name}: one of them.
async fn get_replica_output(State(api): State<Api>, Path((id, name)): Path<(Uuid, String)>) -> Answer {
    let output = service::open_output(&api.service, Scope::All, id, &name).await?;
    Ok(Response::new(body_of_output(output).await?))
}

/// DELETE /replicas/outputs/{id}: removes them.
async fn delete_replica_outputs(State(api): State<Api>, Path(id): Path<Uuid>) -> Answer {
    service::remove_outputs(&api.service, Scope::All, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
