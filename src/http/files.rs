//! The caller's own files, which its jobs may read.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;

use super::format::Format;
use super::path::Path;
use super::{Api, Error, body};
use crate::access::Caller;
use crate::negotiation::Upload;

/// GET /files: the caller's own, by name.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
) -> Result<Response, Error> {
    let files = api.negotiation.files(&caller.party).await?;
    Ok(format.answer(&files, || files.document()))
}

/// PUT /files/{name}: 201 where it is new, 204 where it replaces one.
pub(super) async fn put(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let upload = api.negotiation.upload(&caller.party, &name).await?;
    let replaced = received(&api, upload, request.into_body())
        .await?
        .finish()
        .await?;
    Ok(if replaced {
        StatusCode::NO_CONTENT.into_response()
    } else {
        (
            StatusCode::CREATED,
            [(header::LOCATION, format!("/files/{name}"))],
        )
            .into_response()
    })
}

/// GET /files/{name}.
pub(super) async fn show(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Response, Error> {
    let file = api.negotiation.file(&caller.party, &name).await?;
    let body = body::of(file).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /files/{name}.
pub(super) async fn remove(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Response, Error> {
    api.negotiation.remove_file(&caller.party, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Bytes a second that an upload has to keep to: a slow line does, a client that only occupies its place does not.
const RATE_LEAST: u32 = 16 * 1_024;

/// Takes in a body of any length that its quota leaves room for, as long as it keeps coming. Beyond the time that other bodies
/// have for the whole, it has the time that its bytes take at [`RATE_LEAST`].
async fn received(api: &Api, mut upload: Upload, mut body: Body) -> Result<Upload, Error> {
    let mut until = tokio::time::Instant::now() + api.body_timeout;
    loop {
        let part = tokio::time::timeout_at(until, body.frame()).await;
        match part.map_err(|_| Error::BodyTimeout)? {
            None => return Ok(upload),
            Some(Err(why)) => return Err(Error::BodyBroken(why.to_string())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
                    until += Duration::from_secs(1) * length / RATE_LEAST;
                    upload = upload.write(data).await?;
                }
            }
        }
    }
}
