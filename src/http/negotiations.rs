//! Negotiations: opened, shown and ended.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::agreements::id_of;
use super::format::Format;
use super::path::Path;
use super::{Api, Error, base_address, body, scope};
use crate::access::Caller;
use crate::negotiation::{self, Input};

/// POST /negotiations: InitiateNegotiationInput.
pub(super) async fn initiate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    request: Request,
) -> Result<Response, Error> {
    let base = base_address(&api, request.headers());
    let input = match body::input(&api, request).await? {
        Input::Xml(input) => input,
        Input::Json(body) => {
            let view = api.negotiation.request(&caller.party, body).await?;
            let path = view.negotiation.path();
            let answer = format.answer(&view, || view.negotiation.created_document(&base));
            return Ok((StatusCode::CREATED, [(header::LOCATION, path)], answer).into_response());
        }
    };
    let view = api.negotiation.initiate(&caller.party, input).await?;
    let body = format.answer(&view, || view.created_document(&base));
    Ok((StatusCode::CREATED, [(header::LOCATION, view.path())], body).into_response())
}

/// GET /negotiations/{id}: NegotiationProperties.
pub(super) async fn show(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let (view, xml) = api.negotiation.negotiation(&scope(&caller), id_of(&id)?).await?;
    Ok(format.answer(&view, || xml))
}

/// POST /negotiations/{id}/offers: NegotiateInput.
pub(super) async fn offer(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let input = match body::input(&api, request).await? {
        Input::Xml(input) => input,
        Input::Json(body) => {
            if format == Format::Xml {
                return Err(Error::NotAcceptable);
            }
            let answers = api.negotiation.request_in(&scope(&caller), id, body).await?;
            return Ok(axum::Json(&answers).into_response());
        }
    };
    let answers = api.negotiation.negotiate(&scope(&caller), id, input).await?;
    Ok(format.answer(&json!({ "offers": answers.views() }), || answers.document()))
}

/// POST /negotiations/{id}/advertisements: AdvertiseInput.
pub(super) async fn advertise(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let input = body::xml(&api, request).await?;
    api.negotiation.advertise(&scope(&caller), id, input).await?;
    Ok(format.answer(&json!({}), negotiation::advertised))
}

/// POST /negotiations/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let input = body::xml(&api, request).await?;
    let view = api
        .negotiation
        .end_negotiation(&scope(&caller), id, input)
        .await?;
    Ok(format.answer(&view, negotiation::negotiation_ended))
}
