//! Negotiations: opened, shown and ended.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Extension, Json};

use super::agreements::PageQuery;
use super::body::Posted;
use super::format::Format;
use super::path::{Id, Query};
use super::{Api, Error, base_address, scope};
use crate::access::Caller;
use crate::negotiation::{OfferMessage, StoredAnswer};

/// POST /negotiations: InitiateNegotiationInput, `NegotiationContext`, or a flat request that is answered at once.
pub(super) async fn initiate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    headers: HeaderMap,
    Posted { input, key }: Posted,
) -> Result<Response, Error> {
    let base = base_address(&api, &headers);
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
    Query(query): Query<PageQuery>,
) -> Result<Response, Error> {
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
    Id(id): Id,
) -> Result<Response, Error> {
    let (view, xml) = api.negotiation.negotiation(&scope(&caller), id).await?;
    Ok(format.answer(&view, || xml))
}

/// GET /offers/{id}. In JSON alone: WS-Agreement shows offers in their negotiation.
pub(super) async fn find_offer(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Response, Error> {
    let offer = api.negotiation.offer_by_id(&scope(&caller), id).await?;
    Ok(Json(offer).into_response())
}

/// POST /negotiations/{id}/offers, which takes a NegotiateInput, and POST /negotiations/{id}/advertisements, which takes an
/// AdvertiseInput: both also a `NegotiationOffer` or a flat request.
pub(super) fn offer(message: OfferMessage) -> MethodRouter<Api> {
    post(
        async move |State(api): State<Api>,
                    Extension(caller): Extension<Caller>,
                    format: Format,
                    Id(id): Id,
                    Posted { input, key }: Posted| {
            let told = api
                .negotiation
                .offer(&scope(&caller), id, message, input, key)
                .await?;
            Ok::<_, Error>(format.told(told))
        },
    )
}

/// POST /negotiations/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Id(id): Id,
    Posted { input, key }: Posted,
) -> Result<Response, Error> {
    let told = api
        .negotiation
        .end_negotiation(&scope(&caller), id, input, key)
        .await?;
    Ok(format.told(told))
}
