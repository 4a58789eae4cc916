//! The caller's own files, which its jobs may read.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;

use super::call::Call;
use super::format::Format;
use super::path::{NoParameters, Path, Query};
use super::{Answer, Api, Error, body};
use crate::negotiation::Upload;

/// GET /files: the caller's own, by name.
pub(super) async fn get_files(call: Call, format: Format) -> Answer {
    let files = call.negotiation.files(call.party()).await?;
    Ok(format.answer(&files, || files.document()))
}

/// PUT /files/{name}: 201 where it is new, 204 where it replaces one.
pub(super) async fn put_file(
    State(api): State<Api>,
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
    request: Request,
) -> Answer {
    let upload = call.negotiation.upload(call.party(), &name).await?;
    let replaced = receive_upload(&api, upload, request.into_body())
        .await?
        .finish()
        .await?;
    if replaced {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let location = [(header::LOCATION, format!("/files/{name}"))];
    Ok((StatusCode::CREATED, location).into_response())
}

/// GET /files/{name}.
pub(super) async fn get_file(call: Call, Path(name): Path<String>) -> Answer {
    let file = call.negotiation.file(call.party(), &name).await?;
    let body = body::body_of_output(file).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /files/{name}.
pub(super) async fn delete_file(
    call: Call,
    Path(name): Path<String>,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    call.negotiation.remove_file(call.party(), &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Bytes a second that an upload has to keep to: a slow line does, a client that only occupies its place does not.
const RATE_LEAST: u32 = 16 * 1_024;

/// Takes in a body of any length that its quota leaves room for, as long as it keeps coming. Beyond the time that other bodies
/// have for the whole, it has the time that its bytes take at [`RATE_LEAST`].
async fn receive_upload(api: &Api, mut upload: Upload, mut body: Body) -> Result<Upload, Error> {
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
