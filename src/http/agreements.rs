//! Agreements: made from offers, shown, listed and terminated.

use axum::Extension;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::format::{Format, document};
use super::path::Path;
use super::{Api, Error, body, scope};
use crate::access::Caller;
use crate::negotiation::{self, AgreementView, Part};

/// The longest `Idempotency-Key` that is kept.
const IDEMPOTENCY_KEY_MAX: usize = 255;

/// Where a page of a list begins, and how long it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    after: Option<Uuid>,
    limit: Option<u32>,
}

/// POST /agreements: an offer becomes an agreement, or is refused with the reason.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    request: Request,
) -> Result<Response, Error> {
    if format == Format::Neither {
        return Err(Error::NotAcceptable);
    }
    let key = idempotency_key(request.headers())?;
    let base = base_address(&api, request.headers());
    let offer = body::xml(&api, request).await?;
    let accepted = api.negotiation.create(&caller.party, offer, key).await?;
    let body = match format {
        Format::Xml => document(negotiation::created(&accepted, &base)),
        _ => axum::Json(&accepted).into_response(),
    };
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, accepted.agreement.path())],
        body,
    )
        .into_response())
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
    format.answer(&page.view(), || page.document(&base))
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
    format.answer(&timeline.view(), || timeline.document())
}

/// GET /agreements/{id}/files: what the job has written.
pub(super) async fn files(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let files = api.negotiation.outputs(scope(&caller), id_of(&id)?).await?;
    format.answer(&files, || files.document())
}

/// GET /agreements/{id}/files/{name}: what the job wrote, to `stdout`, `stderr` or a file of its working folder.
pub(super) async fn file(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Error> {
    let output = api.negotiation.output(scope(&caller), id_of(&id)?, &name).await?;
    let body = body::of(output).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// POST /agreements/{id}/terminate.
pub(super) async fn terminate(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    format: Format,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Error> {
    let id = id_of(&id)?;
    if format == Format::Neither {
        return Err(Error::NotAcceptable);
    }
    let input = body::xml(&api, request).await?;
    let view = api.negotiation.terminate(scope(&caller), id, input).await?;
    format.answer(&view, negotiation::terminated)
}

/// One part of an agreement, or the whole, with its entity tag.
async fn part(api: &Api, caller: &Caller, format: Format, id: &str, part: Part) -> Result<Response, Error> {
    let (view, xml) = api.negotiation.show(scope(caller), id_of(id)?, part).await?;
    let mut response = match part {
        Part::Whole => format.answer(&view, || xml)?,
        _ => format.answer(&select(&view, part), || xml)?,
    };
    // Digits between quotes.
    if let Ok(tag) = format!("\"{}\"", view.version).parse() {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// The part of an agreement's flat rendering that has the part's name.
fn select(view: &AgreementView, part: Part) -> impl Serialize + '_ {
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
            guarantees: &'a [crate::negotiation::GuaranteeView],
        },
        Whole(&'a AgreementView),
    }
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
        Part::Whole | Part::Terms | Part::Context => Selected::Whole(view),
    }
}

/// An id from a path; what is no id names nothing.
fn id_of(text: &str) -> Result<Uuid, Error> {
    text.parse()
        .map_err(|_| crate::negotiation::Error::NotFound.into())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=IDEMPOTENCY_KEY_MAX).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(Error::Query(format!(
            "Idempotency-Key: expected 1 to {IDEMPOTENCY_KEY_MAX} visible ASCII characters"
        ))),
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
    format!("http://{host}")
}
