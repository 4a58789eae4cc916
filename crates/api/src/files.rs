//! The caller's own files, which its jobs may read.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures_util::{Stream, TryStreamExt};

use super::call::Call;
use super::format::JsonTaken;
use super::operation::Operation;
use super::outputs::body_of_output;
use super::path::Path;
use super::query::{NoParameters, Query};
use super::routes::Routes;
use super::{Answer, Api, Error};
use service::{FileUpload, FilesView};

/// The routes of a party's own files.
pub(super) fn file_routes() -> Routes {
    let file = |id, summary| Operation::new(id, "files", summary);
    Routes::default()
        .get(
            "/files",
            get_files,
            file("listFiles", "Your own files, which your jobs may read").answers::<FilesView>(),
        )
        .get(
            "/files/{name}",
            get_file,
            file("getFile", "A file").answers_bytes(),
        )
        .put(
            "/files/{name}",
            put_file,
            file("putFile", "Stores a file")
                .takes_bytes()
                .makes_file()
                .answers_nothing(),
        )
        .delete(
            "/files/{name}",
            delete_file,
            file("removeFile", "Removes a file that no agreement still needs").answers_nothing(),
        )
}

/// GET /files: the caller's own, by name.
async fn get_files(call: Call, _: JsonTaken) -> Answer {
    let files = service::list_files(&call.service, call.party()).await?;
    Ok(Json(files).into_response())
}

/// PUT /files/{name}: 201 where it is new, 204 where it replaces one.
async fn put_file(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
    request: Request,
) -> Answer {
    let upload = service::upload_file(&call.service, call.party(), &name).await?;
    let parts = request.into_body().into_data_stream();
    let parts = parts.map_err(|why| Error::BodyBroken(why.to_string()));
    let replaced = receive_uploaded_file(&api, upload, parts).await?.finish().await?;
    if replaced {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let location = [(header::LOCATION, format!("/files/{name}"))];
    Ok((StatusCode::CREATED, location).into_response())
}

/// GET /files/{name}.
async fn get_file(call: Call, Path(name): Path<String>) -> Answer {
    let file = service::open_file(&call.service, call.party(), &name).await?;
    let body = body_of_output(file).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /files/{name}.
async fn delete_file(
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    service::remove_file(&call.service, call.party(), &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Bytes a second that an upload has to keep to: a slow line does, a client that only occupies its place does not.
const RATE_LEAST: u32 = 16 * 1_024;

/// Takes in a file of any length that its quota leaves room for, as long as its parts keep coming. Beyond the time that other
/// bodies have for the whole, it has the time that its bytes take at [`RATE_LEAST`].
///
/// # Errors
/// [`Error::BodyTimeout`], those of the parts, and those of [`FileUpload::write`].
pub async fn receive_uploaded_file(
    api: &Api,
    mut upload: FileUpload,
    mut parts: impl Stream<Item = Result<Bytes, Error>> + Unpin,
) -> Result<FileUpload, Error> {
    let mut until = tokio::time::Instant::now() + api.body_timeout;
    loop {
        let part = tokio::time::timeout_at(until, parts.try_next()).await;
        let Some(data) = part.map_err(|_| Error::BodyTimeout)?? else {
            return Ok(upload);
        };
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        until += Duration::from_secs(1) * length / RATE_LEAST;
        upload = upload.write(data).await?;
    }
}
