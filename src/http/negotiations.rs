//! Negotiations: opened, shown and ended.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, post};
use domain::agreement::NegotiationState;
use serde::Deserialize;
use uuid::Uuid;

use super::agreements::read_filter_word;
use super::availability::read_instant_of_query;
use super::body::PostedBody;
use super::call::Call;
use super::format::{Format, JsonTaken};
use super::path::{Id, Query};
use super::resources::ChangeParameters;
use super::{Answer, Api, Error};
use crate::negotiation::{NegotiationFilter, OfferMessage, StoredAnswer, negotiations_opened_within};

/// POST /negotiations: InitiateNegotiationInput, `NegotiationContext`, or a flat request that is answered at once.
pub(super) async fn post_negotiation(
    call: Call,
    format: Format,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let use_cases = call.use_cases(asked.dry_run);
    let key = key.filter(|_| !asked.dry_run);
    let opened = use_cases.initiate(call.party(), input, key).await?;
    let path = opened.path();
    let told = StoredAnswer {
        document: opened.document(&call.base),
        json: opened.json,
    };
    let answer = format.respond_stored(told);
    if asked.dry_run {
        // Nothing was opened.
        return Ok(answer);
    }
    Ok((StatusCode::CREATED, [(header::LOCATION, path)], answer).into_response())
}

/// Which negotiations are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    party: Option<String>,
    /// Only those that were opened in this time.
    start: Option<String>,
    end: Option<String>,
    after: Option<Uuid>,
    limit: Option<u32>,
}

/// GET /negotiations: the caller's own, for an operator those of all parties, a page at a time.
pub(super) async fn get_negotiations(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let start = read_instant_of_query("start", query.start.as_deref())?;
    let end = read_instant_of_query("end", query.end.as_deref())?;
    let words = NegotiationState::ALL.map(NegotiationState::word);
    let filter = NegotiationFilter {
        party: call.scope_of(query.party)?.party().map(ToOwned::to_owned),
        state: read_filter_word(
            "state",
            query.state.as_deref(),
            NegotiationState::from_word,
            &words,
        )?,
        ..negotiations_opened_within(start, end)
    };
    let page = call
        .negotiation
        .negotiations(&filter, query.after, query.limit)
        .await?;
    let next = page.next;
    Ok(call.paged(Json(page).into_response(), next))
}

/// GET /negotiations/{id}: NegotiationProperties.
pub(super) async fn get_negotiation(call: Call, format: Format, Id(id): Id) -> Answer {
    let (view, xml) = call.negotiation.negotiation(&call.scope(), id).await?;
    Ok(format.answer(&view, || xml))
}

/// GET /offers/{id}. In JSON alone: WS-Agreement shows offers in their negotiation.
pub(super) async fn get_offer(call: Call, Id(id): Id) -> Answer {
    let offer = call.negotiation.offer_by_id(&call.scope(), id).await?;
    Ok(Json(offer).into_response())
}

/// POST /negotiations/{id}/offers, which takes a NegotiateInput, and POST /negotiations/{id}/advertisements, which takes an
/// AdvertiseInput: both also a `NegotiationOffer` or a flat request.
pub(super) fn post_offers(message: OfferMessage) -> MethodRouter<Api> {
    post(
        async move |call: Call,
                    format: Format,
                    Id(id): Id,
                    Query(asked): Query<ChangeParameters>,
                    PostedBody { input, key }: PostedBody| {
            let key = key.filter(|_| !asked.dry_run);
            let told = call
                .use_cases(asked.dry_run)
                .exchange_offers(&call.scope(), id, message, input, key)
                .await?;
            Ok::<_, Error>(format.respond_stored(told))
        },
    )
}

/// POST /negotiations/{id}/terminate.
pub(super) async fn post_negotiation_termination(
    call: Call,
    format: Format,
    Id(id): Id,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let key = key.filter(|_| !asked.dry_run);
    let told = call
        .use_cases(asked.dry_run)
        .end_negotiation(&call.scope(), id, input, key)
        .await?;
    Ok(format.respond_stored(told))
}
