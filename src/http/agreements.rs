//! Agreements: made from offers, shown, listed and terminated.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use domain::agreement::AgreementState;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;
use wsag::states::Part;

use super::availability::read_instant_of_query;
use super::body::{self, PostedBody};
use super::call::Call;
use super::conditions::{ChangesByItself, IfMatch, entity_tag_of_version};
use super::format::{Format, JsonTaken, xml_response};
use super::path::{Id, NoParameters, Path, Query, read_filter_text, read_id_in_path};
use super::resources::{ChangeParameters, read_true_or_false, require_operator};
use super::{Answer, Api, Error};
use crate::access::Caller;
use crate::negotiation::{
    self, AcceptedView, AgreementDetails, AgreementFilter, EvictRequest, MoveRequest, TerminateRequest,
};

/// Which agreements are listed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Only those with this AgreementId.
    agreement_id: Option<String>,
    state: Option<String>,
    party: Option<String>,
    name: Option<String>,
    /// Only those with a place in this time.
    start: Option<String>,
    end: Option<String>,
    after: Option<Uuid>,
    limit: Option<u32>,
}

/// A word of a filter.
pub(super) fn read_filter_word<T>(
    name: &str,
    word: Option<&str>,
    read: fn(&str) -> Option<T>,
    all: &[&str],
) -> Result<Option<T>, Error> {
    let unknown = || Error::Query(format!("{name}: one of {} is expected", all.join(", ")));
    word.map(|word| read(word).ok_or_else(unknown)).transpose()
}

/// The parameters of an offer that is to become an agreement.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateParameters {
    #[serde(default, deserialize_with = "read_true_or_false")]
    dry_run: bool,
    /// Whether the fresh offers are held that it gets where it accepts an offer too late.
    #[serde(default, deserialize_with = "read_true_or_false")]
    hold: bool,
    /// Whose agreement it is to be; of others than operators only their own.
    party: Option<String>,
}

/// POST /agreements: an offer becomes an agreement, or is refused with the reason.
pub(super) async fn post_agreement(
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
    let accepted = Box::pin(use_cases.create_agreement(&party, input, asked.hold, key)).await?;
    let (status, document): (_, fn(&AcceptedView, &str) -> String) = match accepted.agreement.state.as_str() {
        "Pending" => (StatusCode::ACCEPTED, negotiation::write_create_pending_response),
        // What became of the same request, which came before.
        "Rejected" => (StatusCode::OK, negotiation::write_create_pending_response),
        _ => (StatusCode::CREATED, negotiation::write_create_response),
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
pub(super) async fn get_agreements(call: Call, _: JsonTaken, Query(query): Query<ListQuery>) -> Answer {
    let start = read_instant_of_query("start", query.start.as_deref())?;
    let end = read_instant_of_query("end", query.end.as_deref())?;
    let words = AgreementState::ALL.map(AgreementState::word);
    let filter = AgreementFilter {
        party: call.scope_of(query.party)?.party().map(ToOwned::to_owned),
        state: read_filter_word("state", query.state.as_deref(), AgreementState::from_word, &words)?,
        name: read_filter_text("name", query.name)?,
        initiator_id: query.agreement_id,
        ..negotiation::agreements_within(start, end)
    };
    let page = call
        .negotiation
        .list_agreements(filter, query.after, query.limit)
        .await?;
    let next = page.next;
    Ok(call.paged(Json(page).into_response(), next))
}

/// GET /agreements/{id}, which is AgreementProperties, or a part of it, with its entity tag.
pub(super) fn get_agreement_part(one_part: Option<Part>) -> MethodRouter<Api> {
    get(async move |call: Call, format: Format, Id(id): Id| {
        let shown = call.negotiation.show_agreement(call.scope(), id).await?;
        let mut answer = match format {
            Format::Xml => xml_response(shown.document(one_part)),
            Format::Json => select_agreement_part(&shown, one_part),
        };
        if one_part.is_none_or(|part| part == Part::State) && shown.view.has_unversioned() {
            answer.extensions_mut().insert(ChangesByItself);
        }
        Ok::<_, Error>(tag_agreement_version(answer, shown.view.version))
    })
}

/// GET /agreements/{id}/events: the timeline.
pub(super) async fn get_agreement_events(call: Call, _: JsonTaken, Id(id): Id) -> Answer {
    let timeline = call.negotiation.timeline(call.scope(), id).await?;
    Ok(Json(timeline).into_response())
}

/// GET /agreements/{id}/ending: the cost of ending it now.
pub(super) async fn get_agreement_ending(
    call: Call,
    Id(id): Id,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let ending = call.negotiation.cost_of_ending(call.scope(), id, call.party());
    Ok(Json(ending.await?).into_response())
}

/// GET /agreements/{id}/files: the files that the job has written.
pub(super) async fn get_agreement_files(call: Call, _: JsonTaken, Id(id): Id) -> Answer {
    let files = call.negotiation.outputs(call.scope(), id).await?;
    Ok(Json(files).into_response())
}

/// GET /agreements/{id}/files/{name}: the bytes that the job wrote, to `stdout`, `stderr` or a file of its working folder.
pub(super) async fn get_agreement_file(call: Call, Path((id, name)): Path<(String, String)>) -> Answer {
    let output = call
        .negotiation
        .output(call.scope(), read_id_in_path(&id)?, &name)
        .await?;
    let body = body::body_of_output(output).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /agreements/{id}/files: everything that the job has left, before its time is over.
pub(super) async fn delete_agreement_files(
    call: Call,
    Id(id): Id,
    Query(NoParameters {}): Query<NoParameters>,
) -> Result<StatusCode, Error> {
    call.negotiation.remove_outputs(call.scope(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// POST /agreements/{id}/terminate.
pub(super) async fn post_agreement_termination(
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
    let view = call
        .use_cases(asked.dry_run)
        .terminate_agreement(call.scope(), order)
        .await?;
    Ok(tag_agreement_version(
        format.answer(&view, negotiation::write_terminate_response),
        view.version,
    ))
}

/// POST /agreements/{id}/evict: an operator ends it, with the reason.
pub(super) async fn post_agreement_eviction(
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
    let view = call.use_cases(asked.dry_run).evict_agreement(order).await?;
    let version = view.agreement.version;
    Ok(tag_agreement_version(Json(view).into_response(), version))
}

/// POST /agreements/{id}/move: an operator gives it another place inside what was agreed.
pub(super) async fn post_agreement_move(
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
    let view = call.use_cases(asked.dry_run).move_agreement(order).await?;
    let version = view.version;
    Ok(tag_agreement_version(Json(view).into_response(), version))
}

/// Lets in operators whose key may spend any amount: penalties and compensation would be paid past a cap.
pub(crate) fn require_evictor(caller: &Caller) -> Result<(), Error> {
    require_operator(caller)?;
    if caller.limits.spending_cap.is_some() {
        return Err(Error::Forbidden("the role of operators, without a spending cap"));
    }
    Ok(())
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
        Some(Part::State) => Json(json!({ "state": view.state, "version": view.version })).into_response(),
        Some(Part::Services) => Json(json!({ "serviceState": view.service_state })).into_response(),
        Some(Part::Guarantees) => Json(BTreeMap::from([("guarantees", &view.guarantees)])).into_response(),
        Some(Part::Terms) => Json(&shown.terms).into_response(),
        Some(Part::Context) => Json(&shown.context).into_response(),
        None => Json(view).into_response(),
    }
}
