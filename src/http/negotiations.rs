//! Negotiations: opened, shown and ended.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::agreements::{PageQuery, id_of};
use super::conditions::IdempotencyKey;
use super::format::Format;
use super::path::Path;
use super::{Api, Error, base_address, body, scope};
use crate::access::Caller;
use crate::negotiation::{Input, RequestKey, StoredAnswer};

/// POST /negotiations: InitiateNegotiationInput, `NegotiationContext`, or a flat request that is answered at once.
pub(super) async fn initiate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let base = base_address(&api, request.headers());
    let (input, key) = read(&api, &caller, "POST /negotiations", key, request).await?;
    let opened = api.negotiation.initiate(&caller.party, input, key).await?;
    let path = opened.path();
    let told = StoredAnswer {
        document: opened.document(&base),
        json: opened.json,
    };
    let answer = format.told(told);
    Ok((StatusCode::CREATED, [(header::LOCATION, path)], answer).into_response())
}

/// GET /negotiations: the caller's own, for an operator those of all parties, a page at a time.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    headers: HeaderMap,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, Error> {
    let Query(query) = query.map_err(|why| Error::Query(why.body_text()))?;
    let base = base_address(&api, &headers);
    let page = api
        .negotiation
        .negotiations(&scope(&caller), query.after, query.limit)
        .await?;
    Ok(format.answer(&page, || page.document(&base)))
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

/// GET /offers/{id}. In JSON alone: WS-Agreement shows offers in their negotiation.
pub(super) async fn find_offer(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let offer = api.negotiation.offer_by_id(&scope(&caller), id_of(&id)?).await?;
    Ok(Json(offer).into_response())
}

/// POST /negotiations/{id}/offers: NegotiateInput, `NegotiationOffer` or a flat request.
pub(super) async fn offer(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let (input, key) = read(
        &api,
        &caller,
        &format!("POST /negotiations/{id}/offers"),
        key,
        request,
    )
    .await?;
    let told = api.negotiation.negotiate(&scope(&caller), id, input, key).await?;
    Ok(format.told(told))
}

/// POST /negotiations/{id}/advertisements: AdvertiseInput, `NegotiationOffer` or a flat request.
pub(super) async fn advertise(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let (input, key) = read(
        &api,
        &caller,
        &format!("POST /negotiations/{id}/advertisements"),
        key,
        request,
    )
    .await?;
    let told = api.negotiation.advertise(&scope(&caller), id, input, key).await?;
    Ok(format.told(told))
}

/// POST /negotiations/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let (input, key) = read(
        &api,
        &caller,
        &format!("POST /negotiations/{id}/terminate"),
        key,
        request,
    )
    .await?;
    let told = api
        .negotiation
        .end_negotiation(&scope(&caller), id, input, key)
        .await?;
    Ok(format.told(told))
}

/// The body of a request, and its key where it has one.
async fn read(
    api: &Api,
    caller: &Caller,
    target: &str,
    key: IdempotencyKey,
    request: Request,
) -> Result<(Input, Option<RequestKey>), Error> {
    let input = body::input(api, request).await?;
    let key = key.of(caller, target, input.bytes());
    Ok((input, key))
}
