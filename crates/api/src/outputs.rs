//! The files that jobs have written. Each is sent page by page.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use http_body_util::channel::Channel;

use super::call::Call;
use super::format::JsonTaken;
use super::operation::Operation;
use super::path::{Id, Path, read_id_in_path};
use super::query::{NoParameters, Query};
use super::routes::Routes;
use super::{Answer, Error};
use service::{FilesView, Output};

/// The routes of the files that a job has written.
pub(super) fn output_routes() -> Routes {
    Routes::default()
        .get(
            "/agreements/{id}/files",
            get_agreement_outputs,
            Operation::new("listOutputs", "files", "The files that its job has written")
                .answers::<FilesView>(),
        )
        .delete(
            "/agreements/{id}/files",
            delete_agreement_outputs,
            Operation::new(
                "removeOutputs",
                "files",
                "Removes the files that its job has written, once it is over",
            )
            .answers_nothing(),
        )
        .get(
            "/agreements/{id}/files/{name}",
            get_agreement_output,
            Operation::new("getOutput", "files", "stdout, stderr or a file of its job").answers_bytes(),
        )
}

/// GET /agreements/{id}/files: the files that the job has written.
async fn get_agreement_outputs(call: Call, _: JsonTaken, Id(id): Id) -> Answer {
    let files = service::list_outputs(&call.service, call.scope(), id).await?;
    Ok(Json(files).into_response())
}

/// GET /agreements/{id}/files/{name}: the bytes that the job wrote, to `stdout`, `stderr` or a file of its working folder.
async fn get_agreement_output(call: Call, Path((id, name)): Path<(String, String)>) -> Answer {
    let output = service::open_output(&call.service, call.scope(), read_id_in_path(&id)?, &name).await?;
    let body = body_of_output(output).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /agreements/{id}/files: everything that the job has left, before its time is over.
async fn delete_agreement_outputs(
    call: Call,
    Id(id): Id,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<StatusCode, Error> {
    service::remove_outputs(&call.service, call.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A body of all that a job has written. An output that cannot be read at first is an error of its own; a later failure breaks
/// the body off, so that no client takes a part for the whole.
///
/// # Errors
/// Where it cannot be read.
pub async fn body_of_output(mut output: Output) -> Result<Body, Error> {
    let mut page = output.page().await?;
    // The next page is read while one is on its way.
    let (mut sender, body) = Channel::<Bytes, service::Error>::new(1);
    task::spawn(async move {
        while !page.is_empty() && sender.send_data(page.into()).await.is_ok() {
            page = match output.page().await {
                Ok(next) => next,
                Err(why) => return sender.abort(why),
            };
        }
    });
    Ok(Body::new(body))
}
