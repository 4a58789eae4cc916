//! Agreements: made from offers, shown, listed and terminated.

use axum::Extension;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::conditions::{IdempotencyKey, IfMatch, entity_tag};
use super::format::{Format, document};
use super::path::Path;
use super::{Api, Error, body, scope};
use crate::access::Caller;
use crate::negotiation::{
    self, AgreementView, ContextView, GuaranteeView, Part, Shown, TerminateRequest, TermsView,
};

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
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let base = base_address(&api, request.headers());
    let offer = body::input(&api, request).await?;
    let key = key.of(&caller, "POST /agreements", offer.bytes());
    let accepted = api.negotiation.create(&caller.party, offer, key).await?;
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
    query: Result<Query<PageQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Error> {
    let Query(query) = query.map_err(|why| Error::Query(why.body_text()))?;
    let base = base_address(&api, &headers);
    let page = api
        .negotiation
        .list(scope(&caller), query.after, query.limit)
        .await?;
    Ok(format.answer(&page.view(), || page.document(&base)))
}

/// GET /agreements/{id}: AgreementProperties.
pub(super) async fn show(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::Whole).await
}

/// GET /agreements/{id}/state.
pub(super) async fn state(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::State).await
}

/// GET /agreements/{id}/terms.
pub(super) async fn terms(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::Terms).await
}

/// GET /agreements/{id}/context.
pub(super) async fn context(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::Context).await
}

/// GET /agreements/{id}/service-terms.
pub(super) async fn service_terms(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::ServiceTerms).await
}

/// GET /agreements/{id}/guarantee-terms.
pub(super) async fn guarantee_terms(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    part(&api, &caller, format, &id, Part::GuaranteeTerms).await
}

/// GET /agreements/{id}/events: the timeline.
pub(super) async fn events(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let timeline = api.negotiation.timeline(scope(&caller), id_of(&id)?).await?;
    Ok(format.answer(&timeline.view(), || timeline.document()))
}

/// GET /agreements/{id}/files: the files that the job has written.
pub(super) async fn files(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let files = api.negotiation.outputs(scope(&caller), id_of(&id)?).await?;
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
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    api.negotiation
        .remove_outputs(scope(&caller), id_of(&id)?)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// POST /agreements/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    IfMatch(versions): IfMatch,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    let input = body::input(&api, request).await?;
    let key = key.of(
        &caller,
        &format!("POST /agreements/{id}/terminate"),
        input.bytes(),
    );
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

/// One part of an agreement, or the whole, with its entity tag.
async fn part(api: &Api, caller: &Caller, format: Format, id: &str, part: Part) -> Result<Response, Error> {
    let shown = api.negotiation.show(scope(caller), id_of(id)?, part).await?;
    let version = shown.view.version;
    let answer = match format {
        Format::Xml => document(shown.document),
        Format::Json => axum::Json(select(&shown, part)).into_response(),
    };
    Ok(tagged(answer, version))
}

/// An answer about an agreement in this version.
fn tagged(mut answer: Response, version: i64) -> Response {
    answer.headers_mut().insert(header::ETAG, entity_tag(version));
    answer
}

/// The part of an agreement's flat rendering that has the part's name.
fn select(shown: &Shown, part: Part) -> impl Serialize + '_ {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Selected<'a> {
        State {
            state: &'a str,
            version: i64,
        },
        Service {
            #[serde(rename = "serviceState")]
            state: &'a str,
        },
        Guarantees {
            guarantees: &'a [GuaranteeView],
        },
        Terms(&'a TermsView),
        Context(&'a ContextView),
        Whole(&'a AgreementView),
    }
    let view = &shown.view;
    match part {
        Part::State => Selected::State {
            state: &view.state,
            version: view.version,
        },
        Part::ServiceTerms => Selected::Service {
            state: &view.service_state,
        },
        Part::GuaranteeTerms => Selected::Guarantees {
            guarantees: &view.guarantees,
        },
        Part::Terms => Selected::Terms(&shown.terms),
        Part::Context => Selected::Context(&shown.context),
        Part::Whole => Selected::Whole(view),
    }
}

/// An id from a path; a text that is no id names nothing.
pub(super) fn id_of(text: &str) -> Result<Uuid, Error> {
    text.parse()
        .map_err(|_| crate::negotiation::Error::NotFound.into())
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
