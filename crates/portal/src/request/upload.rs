//! A file that a visitor uploads for jobs, beside the form that names it.

use axum::extract::{FromRequest, Multipart, Request, State};
use futures_util::TryStreamExt;

use crate::request::field_names;
use crate::session;
use crate::{Answer, redirect_to, values::Values};
use api::{Api, receive_uploaded_file};

/// The field with the file.
const FILE: &str = "file";
/// Bytes of a token at most: a true one has fewer.
const TOKEN_MAX: usize = 256;

/// POST /portal/files: the token of the session, and then the file, in one form of several parts. It replaces a file of the same
/// name.
pub(crate) async fn upload_file(State(api): State<Api>, request: Request) -> Answer {
    let visitor = session::sender_of_session_form(&api, request.headers()).await?;
    let mut parts = Multipart::from_request(request, &api)
        .await
        .map_err(|why| broken(&why))?;
    // The token stands first, so that nothing is taken in without it.
    let token = tokio::time::timeout(api.body_timeout, read_upload_token(&mut parts));
    let token = token.await.map_err(|_| api::Error::BodyTimeout)??;
    visitor.check_form(&Values::default().with(field_names::CSRF, token))?;
    let file = tokio::time::timeout(api.body_timeout, parts.next_field()).await;
    let file = file.map_err(|_| api::Error::BodyTimeout)?;
    let file = file.map_err(|why| broken(&why))?;
    let Some(file) = file.filter(|file| file.name() == Some(FILE)) else {
        return Err(api::Error::Query("file: a file is expected".to_owned()).into());
    };
    let name = file.file_name().unwrap_or_default().to_owned();
    let upload = service::upload_file(&api.service, &visitor.caller.party, &name).await?;
    let parts = file.map_err(|why| broken(&why));
    receive_uploaded_file(&api, upload, parts).await?.finish().await?;
    let to = Values::default().with(field_names::UPLOADED, name).query();
    Ok(redirect_to(&format!("/portal?{to}")))
}

/// The token in the first part; empty where that is something else.
async fn read_upload_token(parts: &mut Multipart) -> Result<String, api::Error> {
    let mut token = Vec::new();
    let first = parts.next_field().await.map_err(|why| broken(&why))?;
    if let Some(mut first) = first.filter(|first| first.name() == Some(field_names::CSRF)) {
        while let Some(part) = first.chunk().await.map_err(|why| broken(&why))? {
            token.extend(part);
            if token.len() > TOKEN_MAX {
                return Ok(String::new());
            }
        }
    }
    Ok(String::from_utf8(token).unwrap_or_default())
}

fn broken(why: &impl std::error::Error) -> api::Error {
    api::Error::BodyBroken(why.to_string())
}
