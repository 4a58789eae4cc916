//! All errors of a request, and the one place where an error becomes a status, a body and, for faults that are ours to mend, a
//! line in the log.
//!
//! A handler's [`Error`] travels in the extensions of its response to [`name_xml_of_error_as_asked`], which knows the formats that the client
//! accepts: the fault document of WS-Agreement in XML, problem details (RFC 9457) in JSON.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::{debug, error};

use super::Api;
use super::format::{Format, name_as_text_xml, xml_response};
use super::log::REQUEST_ID;
use access::hide_keys;
use service::{OfferView, RefusalView};

/// The errors of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No key, or none that is valid.
    #[error("a valid key is needed: send it as `Authorization: Bearer KEY`")]
    NoKey,
    /// The key is valid, and not for this.
    #[error("this needs a key with {0}")]
    Forbidden(&'static str),
    /// Nothing of this kind is at this path.
    #[error("{0}")]
    NotFound(String),
    /// The path does not take this method.
    #[error("this path does not take {0}")]
    MethodNotAllowed(String),
    /// The client accepts no representation of the answer; with it, those that there are.
    #[error("this is answered in {0}")]
    NotAcceptable(&'static str),
    /// The body did not come in time.
    #[error("the body did not arrive in time")]
    BodyTimeout,
    /// The body is larger than is read.
    #[error("the body is larger than {0} bytes")]
    BodyTooLarge(usize),
    /// The target is longer than any of ours.
    #[error("the path and query are longer than {0} bytes")]
    TargetTooLong(usize),
    /// What is read has another entity tag than `If-Match` names.
    #[error("what is here has none of the entity tags that If-Match names")]
    NotMatched,
    /// The body ended before its end.
    #[error("the body could not be read: {0}")]
    BodyBroken(String),
    /// The body is of a type that is not read here.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// A part of the query is wrong.
    #[error("{0}")]
    Query(String),
    /// A header is wrong.
    #[error("{0}")]
    Header(String),
    /// More requests than are worked on at once.
    #[error("too many requests at once; try again")]
    Busy,
    /// More requests of one party, or of one address without a known key, than are worked on at once.
    #[error("too many requests of one party or address at once; try again")]
    TooManyAtOnce,
    /// No process leads that the request could be passed on to.
    #[error("no process decides at the moment; try again")]
    NoLeader,
    /// The process that leads was lost while it had the request.
    #[error(
        "the process that decides was lost while it had this request, which it may have carried out: send it again with an \
         Idempotency-Key, or look first"
    )]
    LeaderLost,
    /// The use case failed.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// A fault of ours.
    #[error("the service failed; the log tells more under this request's id")]
    Internal,
}

/// What went wrong with a request, as RFC 9457 has it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem<'a> {
    /// The type of error.
    #[schemars(example = &"urn:bespeak:error:no-capacity-in-window")]
    r#type: String,
    /// The status in words.
    #[schemars(with = "String", example = &"Conflict")]
    title: Option<&'static str>,
    /// The status code of HTTP.
    #[schemars(range(min = 400, max = 599), example = 409)]
    status: u16,
    /// More, in words.
    #[schemars(example = &"no node is free")]
    detail: String,
    /// The path of the request.
    #[schemars(example = &"/agreements")]
    instance: Cow<'a, str>,
    /// The kind of error, for programs.
    #[schemars(example = &"NO_CAPACITY_IN_WINDOW")]
    code: &'static str,
    /// The id of the request, as in X-Request-Id and the log.
    #[schemars(example = &"019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3")]
    request_id: &'a str,
    /// The mistakes, each with its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<Mistake<'a>>>,
    /// Why there is no offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a RefusalView>,
    /// The fresh offers in place of the one that was accepted too late.
    #[serde(skip_serializing_if = "Option::is_none")]
    offers: Option<Vec<OfferView>>,
}

/// A mistake in a request.
#[derive(Serialize, JsonSchema)]
struct Mistake<'a> {
    /// Its place: a JSON pointer (RFC 6901), or the path of an element in a document.
    #[schemars(example = &"/nodes")]
    path: &'a str,
    /// The mistake, in words.
    #[schemars(example = &"a whole number from 1 to 4 is expected, not 5")]
    message: &'a str,
}

impl Error {
    /// The status and the code of this error, for programs.
    pub fn status(&self) -> (StatusCode, &'static str) {
        use service::Error as S;
        match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN"),
            Self::NotFound(_) | Self::Service(S::NotFound) => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Self::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::NotAcceptable(_) => (StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE"),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "BODY_TIMEOUT"),
            Self::BodyTooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE"),
            Self::TargetTooLong(_) => (StatusCode::URI_TOO_LONG, "TARGET_TOO_LONG"),
            Self::BodyBroken(_) => (StatusCode::BAD_REQUEST, "BODY_BROKEN"),
            Self::Query(_) => (StatusCode::BAD_REQUEST, "BAD_QUERY"),
            Self::Service(S::Limit(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "BAD_LIMIT"),
            Self::Header(_) => (StatusCode::BAD_REQUEST, "BAD_HEADER"),
            Self::UnsupportedMediaType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
            Self::Service(S::Malformed(_) | S::MalformedJson(_)) => (StatusCode::BAD_REQUEST, "MALFORMED"),
            Self::Service(S::Invalid(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "INVALID"),
            Self::Service(S::NotOffered(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "NOT_OFFERED"),
            Self::Service(S::BadName) => (StatusCode::UNPROCESSABLE_ENTITY, "BAD_NAME"),
            Self::Service(S::QuotaExceeded(_)) => (StatusCode::CONFLICT, "QUOTA_EXCEEDED"),
            Self::Service(S::KeyReused) => (StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED"),
            Self::Service(S::Refused(refusal)) => (StatusCode::CONFLICT, refusal.reason.word()),
            Self::Service(S::Lost(lost)) if lost.is_withdrawn() => (StatusCode::GONE, "WITHDRAWN"),
            Self::Service(S::Lost(lost)) if lost.has_expired() => (StatusCode::GONE, "EXPIRED"),
            Self::Service(S::Gone(_)) => (StatusCode::GONE, "EXPIRED"),
            Self::Service(S::IdTaken(_)) => (StatusCode::CONFLICT, "AGREEMENT_ID_TAKEN"),
            Self::Service(S::Conflict(_) | S::Lost(_)) => (StatusCode::CONFLICT, "STATE"),
            Self::NotMatched | Self::Service(S::Changed) => (StatusCode::PRECONDITION_FAILED, "CHANGED"),
            Self::TooManyAtOnce => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS"),
            Self::Service(S::TooOften(_)) => (StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "BUSY"),
            Self::Service(S::AskingPeer) => (StatusCode::SERVICE_UNAVAILABLE, "ASKING_PEER"),
            Self::NoLeader | Self::LeaderLost | Self::Service(S::Unavailable | S::Short(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE")
            }
            Self::Service(S::Internal(_)) | Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        }
    }

    /// Logs faults that are ours to mend, and all others at the level for debugging.
    pub fn log(&self) {
        let (status, code) = self.status();
        if status.is_server_error() {
            error!(code, error = ?self, "request failed");
        } else {
            debug!(code, error = %self, "request refused");
        }
    }

    /// The failure of a use case behind it, if there is one.
    fn cause(&self) -> Option<&service::Error> {
        match self {
            Self::Service(cause) => Some(cause),
            _ => None,
        }
    }

    /// Whether a part of the body may be left that is not worth reading, so that the connection is to be closed.
    pub fn leaves_body(&self) -> bool {
        matches!(
            self,
            Self::BodyTimeout
                | Self::BodyTooLarge(_)
                | Self::BodyBroken(_)
                | Self::Service(
                    service::Error::BadName | service::Error::QuotaExceeded(_) | service::Error::Short(_)
                )
        )
    }

    /// The descriptions that the caller may see, a sentence each.
    pub fn error_descriptions(&self) -> Vec<String> {
        match self {
            Self::Service(service::Error::Invalid(violations) | service::Error::NotOffered(violations)) => {
                violations.0.iter().map(ToString::to_string).collect()
            }
            Self::Service(service::Error::Internal(_)) => vec![Self::Internal.to_string()],
            other => vec![hide_keys(&other.to_string()).into_owned()],
        }
    }

    fn problem(&self, instance: &str, request_id: &str) -> Value {
        let (status, code) = self.status();
        let mut problem = Problem {
            r#type: format!(
                "urn:bespeak:error:{}",
                code.to_ascii_lowercase().replace('_', "-")
            ),
            title: status.canonical_reason(),
            status: status.as_u16(),
            detail: self.error_descriptions().join("; "),
            instance: hide_keys(instance),
            code,
            request_id,
            violations: None,
            refusal: None,
            offers: None,
        };
        match self.cause() {
            Some(service::Error::Invalid(violations) | service::Error::NotOffered(violations)) => {
                let mistakes = violations.0.iter().map(|violation| Mistake {
                    path: &violation.path,
                    message: &violation.message,
                });
                problem.violations = Some(mistakes.collect());
            }
            Some(service::Error::Refused(refusal)) => problem.refusal = Some(refusal),
            Some(service::Error::Lost(lost)) => problem.offers = Some(lost.offers()),
            _ => {}
        }
        json!(problem)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = self.status().0;
        let mut response = status.into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// Makes a page of an error.
pub(super) type ErrorPage = fn(&Error) -> Response;

/// Gives XML the name that the client asks for.
pub(super) async fn name_xml_of_error_as_asked(
    state: State<(Api, ErrorPage)>,
    request: Request,
    next: Next,
) -> Response {
    let is_text = Format::is_text(request.headers());
    let mut response = give_error_body(state, request, next).await;
    if is_text {
        name_as_text_xml(&mut response);
    }
    response
}

/// Gives an error its body, in a format that the client accepts, and logs faults that are ours to mend. An error around a page is
/// a page.
async fn give_error_body(
    State((api, page)): State<(Api, ErrorPage)>,
    request: Request,
    next: Next,
) -> Response {
    let format = Format::of_error(request.headers());
    let instance = request.uri().path().to_owned();
    let id = request.headers().get(REQUEST_ID).cloned();
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<Arc<Error>>() else {
        return response;
    };
    api.measured.error(error.status().1);
    if instance == super::PAGES
        || instance
            .strip_prefix(super::PAGES)
            .is_some_and(|rest| rest.starts_with('/'))
    {
        return page(&error);
    }
    let (status, code) = error.status();
    error.log();
    let id = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
    let mut body = if format == Format::Json {
        let problem = error.problem(&instance, id).to_string();
        ([(header::CONTENT_TYPE, "application/problem+json")], problem).into_response()
    } else {
        let fault = service::fault_of_error(
            api.service.clock().micros(),
            code,
            &error.error_descriptions(),
            error.cause(),
        );
        xml_response(fault)
    };
    *body.status_mut() = status;
    let headers = body.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"bespeak\""),
        );
    }
    let retry = match &*error {
        Error::TooManyAtOnce => Some("1"),
        // These quotas are counted by the minute.
        Error::Service(service::Error::TooOften(_)) => Some("60"),
        _ => (status == StatusCode::SERVICE_UNAVAILABLE).then_some("1"),
    };
    if let Some(seconds) = retry {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
    }
    if error.leaves_body() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(allow) = response.headers_mut().remove(header::ALLOW) {
        headers.insert(header::ALLOW, allow);
    }
    body
}

/// Answers a panic: a fault of ours, logged, and no reason to stop serving others.
#[expect(clippy::needless_pass_by_value, reason = "the shape that the layer asks for")]
pub(super) fn answer_panic_with_error(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    error!(message, "a request panicked");
    Error::Internal.into_response()
}

/// Answers a path that nothing is at.
pub(super) async fn unknown_path_error(request: Request) -> Error {
    let path = request.uri().path();
    Error::NotFound(format!(
        "nothing is at {path}; see /openapi.json, /templates and /agreements"
    ))
}

/// Answers a method that a path does not take.
pub(super) async fn unknown_method_error(request: Request) -> Error {
    Error::MethodNotAllowed(request.method().to_string())
}

impl From<access::Error> for Error {
    fn from(error: access::Error) -> Self {
        Self::Service(match error {
            access::Error::Store(error) => error.into(),
            access::Error::Invalid(what) => service::Error::invalid(what),
            access::Error::LastOfOperators => service::Error::Conflict(error.to_string()),
            access::Error::File { .. } | access::Error::Random(_) => {
                service::Error::Internal(error.to_string())
            }
        })
    }
}
