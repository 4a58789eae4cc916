//! Agreements: made from offers, shown, listed and terminated.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;
use wsag::states::Part;

use super::body::{self, Posted};
use super::conditions::{IfMatch, entity_tag};
use super::format::{Format, document};
use super::path::{Id, Path, Query, id_of};
use super::{Api, Error, scope};
use crate::access::Caller;
use crate::negotiation::{self, Shown, TerminateRequest};

/// Where a page of a list begins, and how long it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    pub(super) after: Option<Uuid>,
    pub(super) limit: Option<u32>,
}

/// POST /agreements: an offer becomes an agreement, or is refused with the reason.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    headers: HeaderMap,
    Posted { input, key }: Posted,
) -> Result<Response, Error> {
    let base = base_address(&api, &headers);
    let accepted = api.negotiation.create(&caller.party, input, key).await?;
    let is_pending = accepted.agreement.state == "Pending";
    let answer = format.answer(&accepted, || {
        if is_pending {
            negotiation::pending(&accepted, &base)
        } else {
            negotiation::created(&accepted, &base)
        }
    });
    let status = if is_pending {
        StatusCode::ACCEPTED
    } else {
        StatusCode::CREATED
    };
    let location = [(header::LOCATION, accepted.agreement.path())];
    let answer = (status, location, answer).into_response();
    Ok(tagged(answer, accepted.agreement.version))
}

/// GET /agreements: the caller's own, newest first, a page at a time.
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
        .list(scope(&caller), query.after, query.limit)
        .await?;
    Ok(format.answer(&page.view(), || page.document(&base)))
}

/// GET /agreements/{id}, which is AgreementProperties, or a part of it, with its entity tag.
pub(super) fn part(of: Option<Part>) -> MethodRouter<Api> {
    get(
        async move |State(api): State<Api>,
                    Extension(caller): Extension<Caller>,
                    format: Format,
                    Id(id): Id| {
            let shown = api.negotiation.show(scope(&caller), id).await?;
            let answer = match format {
                Format::Xml => document(shown.document(of)),
                Format::Json => select(&shown, of),
            };
            Ok::<_, Error>(tagged(answer, shown.view.version))
        },
    )
}

/// GET /agreements/{id}/events: the timeline.
pub(super) async fn events(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Id(id): Id,
) -> Result<Response, Error> {
    let timeline = api.negotiation.timeline(scope(&caller), id).await?;
    Ok(format.answer(&timeline.view(), || timeline.document()))
}

/// GET /agreements/{id}/files: the files that the job has written.
pub(super) async fn files(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Id(id): Id,
) -> Result<Response, Error> {
    let files = api.negotiation.outputs(scope(&caller), id).await?;
    Ok(format.answer(&files, || files.document()))
}

/// GET /agreements/{id}/files/{name}: the bytes that the job wrote, to `stdout`, `stderr` or a file of its working folder.
pub(super) async fn file(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Error> {
    let output = api.negotiation.output(scope(&caller), id_of(&id)?, &name).await?;
    let body = body::of(output).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// DELETE /agreements/{id}/files: everything that the job has left, before its time is over.
pub(super) async fn remove_files(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<StatusCode, Error> {
    api.negotiation.remove_outputs(scope(&caller), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// POST /agreements/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Id(id): Id,
    IfMatch(versions): IfMatch,
    Posted { input, key }: Posted,
) -> Result<Response, Error> {
    let order = TerminateRequest {
        id,
        input,
        by: caller.party.clone(),
        versions,
        key,
    };
    let view = api.negotiation.terminate(scope(&caller), order).await?;
    Ok(tagged(
        format.answer(&view, negotiation::terminated),
        view.version,
    ))
}

/// An answer about an agreement in this version.
fn tagged(mut answer: Response, version: i64) -> Response {
    answer.headers_mut().insert(header::ETAG, entity_tag(version));
    answer
}

/// The part of an agreement's flat rendering that has the part's name.
fn select(shown: &Shown, part: Option<Part>) -> Response {
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

/// The address that the client knows the service by, for the endpoint references in documents.
pub(crate) fn base_address(api: &Api, headers: &HeaderMap) -> String {
    if let Some(address) = &api.public_address {
        return address.trim_end_matches('/').to_owned();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("localhost");
    format!("{}://{host}", api.scheme)
}
