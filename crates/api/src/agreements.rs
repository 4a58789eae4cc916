//! Agreements: made from offers, shown, listed and terminated.

use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::agreement::AgreementState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wsag::agreements::Part;

use super::body::PostedBody;
use super::call::Call;
use super::conditions::{ChangesByItself, IfMatch, entity_tag_of_version};
use super::format::{Format, JsonTaken, xml_response};
use super::operation::Operation;
use super::path::Id;
use super::query::{
    ChangeParameters, NoParameters, Query, read_query_flag, read_query_instant, read_query_text,
    read_query_word,
};
use super::rights::{require_evictor, require_operator};
use super::routes::Routes;
use super::terms::{Context, Terms};
use super::{Answer, requests};
use service::{
    AcceptedView, AgreementDetails, AgreementFilter, AgreementPage, AgreementView, EndingView, EvictRequest,
    EvictedView, GuaranteeView, MoveRequest, TerminateRequest, TimelineView, schemas,
};

/// Which agreements are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Only those with this AgreementId: the one that their offers had, or the service's own.
    agreement_id: Option<String>,
    /// Only those in this state.
    #[schemars(with = "Option<schemas::AgreementState>")]
    state: Option<String>,
    /// Only those of this party; of another than your own for operators.
    party: Option<String>,
    /// Only those with this name.
    name: Option<String>,
    /// Only those with a place that ends after this instant.
    #[schemars(with = "Option<schemas::Instant>")]
    start: Option<String>,
    /// Only those with a place that begins before this instant.
    #[schemars(with = "Option<schemas::Instant>")]
    end: Option<String>,
    /// The `next` of the page before.
    after: Option<Uuid>,
    /// How many at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// The parameters of an offer that is to become an agreement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateParameters {
    /// Whether nothing is done, and it is only answered what the answer would be, with status 200.
    #[serde(default, deserialize_with = "read_query_flag")]
    #[schemars(example = true)]
    dry_run: bool,
    /// Whether the fresh offers are held that the answer has where an offer is accepted too late.
    #[serde(default, deserialize_with = "read_query_flag")]
    #[schemars(example = true)]
    hold: bool,
    /// The party whose agreement it is to be; only operators may name another than their own.
    party: Option<String>,
}

/// Why an agreement is ended by an operator, and what its party gets for that.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct Eviction {
    /// The reason, a line, which its party is told.
    #[schemars(length(max = 500), example = &"the room is too hot")] // REASON_MAX
    reason: String,
    /// What its party gets beside the penalties of its guarantees.
    compensation: Option<requests::Budget>,
}

/// Where an agreement is to go, and why.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct Move {
    /// The resource that it goes to; where none is named it stays on its own.
    #[schemars(length(max = 255), example = &"local")] // TOKEN_MAX
    resource: Option<String>,
    /// When it is to start; as early as possible where that is not said.
    #[schemars(with = "Option<schemas::Instant>")]
    start: Option<String>,
    /// The reason, a line, which its party is told.
    #[schemars(length(max = 500), example = &"a disk is replaced")] // REASON_MAX
    reason: Option<String>,
}

/// The state of an agreement.
#[derive(Serialize, JsonSchema)]
struct StateView<'a> {
    /// The state.
    #[schemars(with = "schemas::AgreementState")]
    state: &'a str,
    /// The version: it counts changes, and is the entity tag.
    #[schemars(range(min = 1), example = 1)]
    version: i64,
}

/// The state of the service of an agreement.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceTermsView<'a> {
    /// The state of its service.
    #[schemars(with = "schemas::ServiceState")]
    service_state: &'a str,
}

/// The guarantees of an agreement.
#[derive(Serialize, JsonSchema)]
struct GuaranteeTermsView<'a> {
    /// The guarantees and their states.
    guarantees: &'a [GuaranteeView],
}

/// The routes of agreements with their parts, events and files.
pub(super) fn agreement_routes() -> Routes {
    Routes::default()
        .get(
            "/agreements",
            get_agreements,
            Operation::new(
                "listAgreements",
                "agreements",
                "Your agreements, newest first; operators see those of all parties",
            )
            .query::<ListQuery>()
            .answers_page::<AgreementPage>(),
        )
        .post(
            "/agreements",
            post_agreement,
            Operation::new(
                "createAgreement",
                "agreements",
                "Makes an agreement from an offer, or refuses it with the reason and the possible alternatives",
            )
            .query::<CreateParameters>()
            .once()
            .takes::<requests::Offer>()
            .answers_with::<AcceptedView>(
                200,
                "With dryRun=true: the answer that there would be. Nothing is made. Without it: the agreement, Rejected, of the \
                 same pending acceptance that came before.",
            )
            .makes::<AcceptedView>()
            .answers_with::<AcceptedView>(202, "Taken, and decided later; Location says where.")
            .xml("wsag:CreateAgreementInput", "wsag:CreateAgreementResponse"),
        )
        .merge(agreement_part_routes())
        .merge(agreement_verb_routes())
}

/// The routes of an agreement and of its parts.
fn agreement_part_routes() -> Routes {
    let part = |id, summary| Operation::new(id, "agreements", summary).if_none_match();
    Routes::default()
        .get(
            "/agreements/{id}",
            async |call: Call, format: Format, id: Id| answer_agreement_part(call, format, id, None).await,
            part("getAgreement", "An agreement")
                .answers::<AgreementView>()
                .xml("", "wsag:AgreementProperties"),
        )
        .get(
            "/agreements/{id}/state",
            async |call: Call, format: Format, id: Id| answer_agreement_part(call, format, id, Some(Part::State)).await,
            part("getAgreementState", "Its state")
                .answers::<StateView<'_>>()
                .xml("", "wsag:AgreementState"),
        )
        .get(
            "/agreements/{id}/terms",
            async |call: Call, format: Format, id: Id| answer_agreement_part(call, format, id, Some(Part::Terms)).await,
            part("getAgreementTerms", "The terms of its offer")
                .answers_as_read::<Terms>()
                .xml("", "wsag:Terms"),
        )
        .get(
            "/agreements/{id}/context",
            async |call: Call, format: Format, id: Id| {
                answer_agreement_part(call, format, id, Some(Part::Context)).await
            },
            part("getAgreementContext", "The context of its offer")
                .answers_as_read::<Context>()
                .xml("", "wsag:Context"),
        )
        .get(
            "/agreements/{id}/service-terms",
            async |call: Call, format: Format, id: Id| {
                answer_agreement_part(call, format, id, Some(Part::Services)).await
            },
            part("getServiceTerms", "The state of its service")
                .answers::<ServiceTermsView<'_>>()
                .xml("", "bsp:ServiceTermStates"),
        )
        .get(
            "/agreements/{id}/guarantee-terms",
            async |call: Call, format: Format, id: Id| {
                answer_agreement_part(call, format, id, Some(Part::Guarantees)).await
            },
            part("getGuaranteeTerms", "Its guarantees and their states")
                .answers::<GuaranteeTermsView<'_>>()
                .xml("", "bsp:GuaranteeTermStates"),
        )
        .get(
            "/agreements/{id}/events",
            get_agreement_events,
            Operation::new("listAgreementEvents", "agreements", "Its timeline").answers::<TimelineView>(),
        )
        .get(
            "/agreements/{id}/ending",
            get_agreement_ending,
            Operation::new(
                "getAgreementEnding",
                "agreements",
                "What its end would cost now: nothing is ended; a domain that carries it out is asked for its charge",
            )
            .answers::<EndingView>(),
        )
}

/// The routes of what changes an agreement.
fn agreement_verb_routes() -> Routes {
    Routes::default()
        .post(
            "/agreements/{id}/terminate",
            post_agreement_termination,
            Operation::new("terminateAgreement", "agreements", "Ends it before its time")
                .query::<ChangeParameters>()
                .once()
                .if_match()
                .may_take::<requests::Reason>()
                .answers::<AgreementView>()
                .xml("wsag:TerminateInput", "wsag:TerminateResponse"),
        )
        .post(
            "/agreements/{id}/evict",
            post_agreement_eviction,
            Operation::new(
                "evictAgreement",
                "operation",
                "Ends it at once: its party is told the reason, and gets the penalties of its guarantees and the compensation",
            )
            .for_operators()
            .query::<ChangeParameters>()
            .once()
            .if_match()
            .takes::<Eviction>()
            .answers::<EvictedView>(),
        )
        .post(
            "/agreements/{id}/move",
            post_agreement_move,
            Operation::new(
                "moveAgreement",
                "operation",
                "Gives a waiting agreement another resource or start inside what was agreed; its party is told",
            )
            .for_operators()
            .query::<ChangeParameters>()
            .once()
            .if_match()
            .takes::<Move>()
            .answers::<AgreementView>(),
        )
}

/// POST /agreements: an offer becomes an agreement, or is refused with the reason.
async fn post_agreement(
    call: Call,
    format: Format,
    Query(asked): Query<CreateParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let mut use_cases = call.use_cases(asked.dry_run);
    let mut key = key.filter(|_| !asked.dry_run);
    let party = call.party_of(asked.party)?;
    if party != call.party() {
        use_cases = Arc::new(use_cases.booked_by(call.party(), &party).await?);
        key = key.map(|key| key.on_behalf_of(&party));
    }
    let accepted = Box::pin(service::create_agreement(
        &use_cases, &party, input, asked.hold, key,
    ))
    .await?;
    let (status, document): (_, fn(&AcceptedView, &str) -> String) = match accepted.agreement.state.as_str() {
        "Pending" => (StatusCode::ACCEPTED, service::write_create_pending_response),
        // What became of the same request, which came before.
        "Rejected" => (StatusCode::OK, service::write_create_pending_response),
        _ => (StatusCode::CREATED, service::write_create_response),
    };
    let answer = format.answer(&accepted, || document(&accepted, &call.base));
    if asked.dry_run {
        // Nothing was created.
        return Ok(answer);
    }
    let location = [(header::LOCATION, accepted.agreement.path())];
    let answer = (status, location, answer).into_response();
    Ok(tag_agreement_version(answer, accepted.agreement.version))
}

/// GET /agreements: the caller's own, newest first, a page at a time.
async fn get_agreements(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let start = read_query_instant("start", query.start.as_deref())?;
    let end = read_query_instant("end", query.end.as_deref())?;
    let words = AgreementState::ALL.map(AgreementState::word);
    let filter = AgreementFilter {
        party: call.scope_of(query.party)?.party().map(ToOwned::to_owned),
        state: read_query_word("state", query.state.as_deref(), AgreementState::from_word, &words)?,
        name: read_query_text("name", query.name)?,
        initiator_id: query.agreement_id,
        ..service::agreement_list_filter(start, end)
    };
    let page = service::list_agreements(&call.service, filter, query.after, query.limit).await?;
    let next = page.next;
    Ok(call.paged(Json(page).into_response(), next))
}

/// GET /agreements/{id}, which is AgreementProperties, or a part of it, with its entity tag.
async fn answer_agreement_part(call: Call, format: Format, Id(id): Id, part: Option<Part>) -> Answer {
    let shown = service::show_agreement(&call.service, call.scope(), id).await?;
    let mut answer = match format {
        Format::Xml => xml_response(shown.document(part)),
        Format::Json => select_agreement_part(&shown, part),
    };
    if part.is_none_or(|part| part == Part::State) && shown.view.has_unversioned() {
        answer.extensions_mut().insert(ChangesByItself);
    }
    Ok(tag_agreement_version(answer, shown.view.version))
}

/// GET /agreements/{id}/events: the timeline.
async fn get_agreement_events(call: Call, _: JsonTaken, Id(id): Id) -> Answer {
    let timeline = service::show_timeline(&call.service, call.scope(), id).await?;
    Ok(Json(timeline).into_response())
}

/// GET /agreements/{id}/ending: the cost of ending it now.
async fn get_agreement_ending(call: Call, Id(id): Id, Query(NoParameters {}): Query<NoParameters>) -> Answer {
    let ending = service::cost_of_ending(&call.service, call.scope(), id, call.party());
    Ok(Json(ending.await?).into_response())
}

/// POST /agreements/{id}/terminate.
async fn post_agreement_termination(
    call: Call,
    format: Format,
    Id(id): Id,
    IfMatch(versions): IfMatch,
    Query(asked): Query<ChangeParameters>,
    PostedBody { input, key }: PostedBody,
) -> Answer {
    let order = TerminateRequest {
        id,
        input,
        by: call.party().to_owned(),
        versions,
        key: key.filter(|_| !asked.dry_run),
    };
    let view = service::terminate_agreement(&call.use_cases(asked.dry_run), call.scope(), order).await?;
    Ok(tag_agreement_version(
        format.answer(&view, service::write_terminate_response),
        view.version,
    ))
}

/// POST /agreements/{id}/evict: an operator ends it, with the reason.
async fn post_agreement_eviction(
    call: Call,
    Id(id): Id,
    IfMatch(versions): IfMatch,
    Query(asked): Query<ChangeParameters>,
    posted: PostedBody,
) -> Answer {
    require_evictor(&call.caller)?;
    let (body, key) = posted.json()?;
    let order = EvictRequest {
        id,
        body,
        by: call.party().to_owned(),
        versions,
        key: key.filter(|_| !asked.dry_run),
    };
    let view = service::evict_agreement(&call.use_cases(asked.dry_run), order).await?;
    let version = view.agreement.version;
    Ok(tag_agreement_version(Json(view).into_response(), version))
}

/// POST /agreements/{id}/move: an operator gives it another place inside what was agreed.
async fn post_agreement_move(
    call: Call,
    Id(id): Id,
    IfMatch(versions): IfMatch,
    Query(asked): Query<ChangeParameters>,
    posted: PostedBody,
) -> Answer {
    require_operator(&call.caller)?;
    let (body, key) = posted.json()?;
    let order = MoveRequest {
        id,
        body,
        by: call.party().to_owned(),
        versions,
        key: key.filter(|_| !asked.dry_run),
    };
    let view = service::move_agreement(&call.use_cases(asked.dry_run), order).await?;
    let version = view.version;
    Ok(tag_agreement_version(Json(view).into_response(), version))
}

/// An answer about an agreement in this version.
fn tag_agreement_version(mut answer: Response, version: i64) -> Response {
    answer
        .headers_mut()
        .insert(header::ETAG, entity_tag_of_version(version));
    answer
}

/// The part of an agreement's flat rendering that has the part's name.
fn select_agreement_part(shown: &AgreementDetails, part: Option<Part>) -> Response {
    let view = &shown.view;
    match part {
        Some(Part::State) => {
            let (state, version) = (view.state.as_str(), view.version);
            Json(StateView { state, version }).into_response()
        }
        Some(Part::Services) => {
            let service_state = view.service_state.as_str();
            Json(ServiceTermsView { service_state }).into_response()
        }
        Some(Part::Guarantees) => {
            let guarantees = &view.guarantees;
            Json(GuaranteeTermsView { guarantees }).into_response()
        }
        Some(Part::Terms) => Json(&shown.terms).into_response(),
        Some(Part::Context) => Json(&shown.context).into_response(),
        None => Json(view).into_response(),
    }
}
