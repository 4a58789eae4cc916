//! Negotiations: opened, shown and ended.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, post};

use super::agreements::PageQuery;
use super::body::Posted;
use super::call::Call;
use super::format::Format;
use super::path::{Id, Query};
use super::{Answer, Api, Error};
use crate::negotiation::{OfferMessage, StoredAnswer};

/// POST /negotiations: InitiateNegotiationInput, `NegotiationContext`, or a flat request that is answered at once.
pub(super) async fn initiate(call: Call, format: Format, Posted { input, key }: Posted) -> Answer {
    let opened = call.negotiation.initiate(call.party(), input, key).await?;
    let path = opened.path();
    let told = StoredAnswer {
        document: opened.document(&call.base),
        json: opened.json,
    };
    let answer = format.told(told);
    Ok((StatusCode::CREATED, [(header::LOCATION, path)], answer).into_response())
}

/// GET /negotiations: the caller's own, for an operator those of all parties, a page at a time.
pub(super) async fn list(call: Call, format: Format, Query(query): Query<PageQuery>) -> Answer {
    let page = call
        .negotiation
        .negotiations(&call.scope(), query.after, query.limit.map(Into::into))
        .await?;
    Ok(format.answer(&page, || page.document(&call.base)))
}

/// GET /negotiations/{id}: NegotiationProperties.
pub(super) async fn show(call: Call, format: Format, Id(id): Id) -> Answer {
    let (view, xml) = call.negotiation.negotiation(&call.scope(), id).await?;
    Ok(format.answer(&view, || xml))
}

/// GET /offers/{id}. In JSON alone: WS-Agreement shows offers in their negotiation.
pub(super) async fn find_offer(call: Call, Id(id): Id) -> Answer {
    let offer = call.negotiation.offer_by_id(&call.scope(), id).await?;
    Ok(Json(offer).into_response())
}

/// POST /negotiations/{id}/offers, which takes a NegotiateInput, and POST /negotiations/{id}/advertisements, which takes an
/// AdvertiseInput: both also a `NegotiationOffer` or a flat request.
pub(super) fn offer(message: OfferMessage) -> MethodRouter<Api> {
    post(
        async move |call: Call, format: Format, Id(id): Id, Posted { input, key }: Posted| {
            let told = call
                .negotiation
                .offer(&call.scope(), id, message, input, key)
                .await?;
            Ok::<_, Error>(format.told(told))
        },
    )
}

/// POST /negotiations/{id}/terminate.
pub(super) async fn terminate(
    call: Call,
    format: Format,
    Id(id): Id,
    Posted { input, key }: Posted,
) -> Answer {
    let told = call
        .negotiation
        .end_negotiation(&call.scope(), id, input, key)
        .await?;
    Ok(format.told(told))
}
