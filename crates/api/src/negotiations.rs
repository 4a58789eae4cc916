//! Negotiations: opened, shown and ended.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use domain::agreement::NegotiationState;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::body::PostedBody;
use super::call::Call;
use super::format::{Format, JsonTaken};
use super::operation::Operation;
use super::path::Id;
use super::query::{ChangeParameters, Query, read_query_instant, read_query_word};
use super::routes::Routes;
use super::{Answer, requests};
use service::{
    AnswersView, FoundOfferView, NegotiatedView, NegotiationFilter, NegotiationView, NegotiationsView,
    OfferMessage, StoredAnswer, negotiation_list_filter, schemas,
};

/// What a request in a negotiation is answered with, or a list of them.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the use case writes it")]
enum Exchanged {
    One(AnswersView),
    Several(AnswersToEach),
}

/// The answers to each of several requests.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case writes it")]
struct AnswersToEach {
    /// The offers that answer each of the requests, in their order.
    answers: Vec<AnswersView>,
}

/// The routes of negotiations and their offers.
pub(super) fn negotiation_routes() -> Routes {
    Routes::default()
        .get(
            "/negotiations",
            get_negotiations,
            Operation::new(
                "listNegotiations",
                "negotiations",
                "Your negotiations, also those that the provider has opened",
            )
            .query::<ListQuery>()
            .answers_page::<NegotiationsView>(),
        )
        .post(
            "/negotiations",
            post_negotiation,
            Operation::new(
                "openNegotiation",
                "negotiations",
                "Opens a negotiation with a request for capacity, and answers with offers at once",
            )
            .query::<ChangeParameters>()
            .once()
            .takes::<requests::NegotiationRequest>()
            .answers_with::<NegotiatedView>(
                200,
                "With dryRun=true: the answer that there would be. Nothing is made.",
            )
            .makes::<NegotiatedView>()
            .xml("wsag-neg:InitiateNegotiationInput", "wsag-neg:InitiateNegotiationOutput"),
        )
        .get(
            "/negotiations/{id}",
            get_negotiation,
            Operation::new("getNegotiation", "negotiations", "A negotiation")
                .answers::<NegotiationView>()
                .xml("", "wsag-neg:NegotiationProperties"),
        )
        .post(
            "/negotiations/{id}/offers",
            async |call: Call, format: Format, id: Id, asked: Query<ChangeParameters>, posted: PostedBody| {
                answer_negotiation_offers(OfferMessage::Negotiate, call, format, id, asked, posted).await
            },
            Operation::new(
                "negotiate",
                "negotiations",
                "Another request for capacity in a negotiation, or a change of an offer in it, answered with offers; a list is \
                 answered with the answers to each",
            )
            .query::<ChangeParameters>()
            .once()
            .takes::<requests::OffersInNegotiation>()
            .answers::<Exchanged>()
            .xml("wsag-neg:NegotiateInput", "wsag-neg:NegotiateOutput"),
        )
        .post(
            "/negotiations/{id}/advertisements",
            async |call: Call, format: Format, id: Id, asked: Query<ChangeParameters>, posted: PostedBody| {
                answer_negotiation_offers(OfferMessage::Advertise, call, format, id, asked, posted).await
            },
            Operation::new(
                "advertise",
                "negotiations",
                "Takes an offer, or a list of offers, without an answer",
            )
            .query::<ChangeParameters>()
            .once()
            .takes::<requests::OffersInNegotiation>()
            .answers::<AnswersView>()
            .xml("wsag-neg:AdvertiseInput", "wsag-neg:AdvertiseOutput"),
        )
        .post(
            "/negotiations/{id}/terminate",
            post_negotiation_termination,
            Operation::new("terminateNegotiation", "negotiations", "Ends it, and frees its held nodes")
                .query::<ChangeParameters>()
                .once()
                .may_take::<requests::Reason>()
                .answers::<NegotiationView>()
                .xml("wsag-neg:TerminateInput", "wsag-neg:TerminateResponse"),
        )
        .get(
            "/offers/{id}",
            get_offer,
            Operation::new("getOffer", "negotiations", "An offer, with its negotiation").answers::<FoundOfferView>(),
        )
}

/// POST /negotiations: InitiateNegotiationInput, `NegotiationContext`, or a flat request that is answered at once.
async fn post_negotiation(
    call: Call,
    format: Format,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let use_cases = call.use_cases(asked.dry_run);
    let key = key.filter(|_| !asked.dry_run);
    let opened = service::initiate_negotiation(&use_cases, call.party(), input, key).await?;
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
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only those in this state.
    #[schemars(extend("enum" = NegotiationState::ALL.map(NegotiationState::word)))]
    state: Option<String>,
    /// Only those of this party; of another than your own for operators.
    party: Option<String>,
    /// Only those that were opened at this instant or later.
    #[schemars(with = "Option<schemas::Instant>")]
    start: Option<String>,
    /// Only those that were opened before this instant.
    #[schemars(with = "Option<schemas::Instant>")]
    end: Option<String>,
    /// The `next` of the page before.
    after: Option<Uuid>,
    /// How many at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// GET /negotiations: the caller's own, for an operator those of all parties, a page at a time.
async fn get_negotiations(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let start = read_query_instant("start", query.start.as_deref())?;
    let end = read_query_instant("end", query.end.as_deref())?;
    let words = NegotiationState::ALL.map(NegotiationState::word);
    let filter = NegotiationFilter {
        party: call.scope_of(query.party)?.party().map(ToOwned::to_owned),
        state: read_query_word(
            "state",
            query.state.as_deref(),
            NegotiationState::from_word,
            &words,
        )?,
        ..negotiation_list_filter(start, end)
    };
    let page = service::list_negotiations(&call.service, &filter, query.after, query.limit).await?;
    let next = page.next;
    Ok(call.paged(Json(page).into_response(), next))
}

/// GET /negotiations/{id}: NegotiationProperties.
async fn get_negotiation(call: Call, format: Format, Id(id): Id) -> Answer {
    let (view, xml) = service::show_negotiation(&call.service, &call.scope(), id).await?;
    Ok(format.answer(&view, || xml))
}

/// GET /offers/{id}. In JSON alone: WS-Agreement shows offers in their negotiation.
async fn get_offer(call: Call, Id(id): Id) -> Answer {
    let offer = service::show_offer_by_id(&call.service, &call.scope(), id).await?;
    Ok(Json(offer).into_response())
}

/// POST /negotiations/{id}/offers, which takes a NegotiateInput, and POST /negotiations/{id}/advertisements, which takes an
/// AdvertiseInput: both also a `NegotiationOffer` or a flat request.
async fn answer_negotiation_offers(
    message: OfferMessage,
    call: Call,
    format: Format,
    Id(id): Id,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let key = key.filter(|_| !asked.dry_run);
    let told = service::exchange_offers(
        &call.use_cases(asked.dry_run),
        &call.scope(),
        id,
        message,
        input,
        key,
    )
    .await?;
    Ok(format.respond_stored(told))
}

/// POST /negotiations/{id}/terminate.
async fn post_negotiation_termination(
    call: Call,
    format: Format,
    Id(id): Id,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let key = key.filter(|_| !asked.dry_run);
    let told =
        service::end_negotiation(&call.use_cases(asked.dry_run), &call.scope(), id, input, key).await?;
    Ok(format.respond_stored(told))
}
