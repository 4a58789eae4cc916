//! Pages as answers: their headers, the files that they load, and the answer where there is none.

use std::cell::OnceCell;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};

use super::failure::Failure;
use super::frame::{PATH, VISITOR};
use super::zone::Zone;
use super::{Answer, session};

/// The headers of every page. The pages hold no script themselves and load nothing from elsewhere, so that even a string that
/// slipped through unescaped could do nothing. The referrer goes to our own pages only: without any, browsers would also leave out the
/// origin of a form, which is checked.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
             form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// How long a browser may keep these, in the words of its header.
const ASSET_KEPT: &str = "private, max-age=600";

/// A page as an answer.
pub(super) fn render_page(status: StatusCode, template: &impl Template) -> Answer {
    let body = template
        .render()
        .map_err(|why| Failure::internal(format!("a page cannot be rendered: {why}")))?;
    Ok((status, Html(body)).into_response())
}

/// Gives a page what it reads of its request, and its headers.
pub(super) async fn guard_page(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let zone = Zone::of_headers(request.headers());
    let answer = VISITOR.scope(OnceCell::new(), next.run(request));
    with_page_headers(zone.scope(PATH.scope(path, answer)).await)
}

pub(super) fn with_page_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// A file that pages load.
pub(super) fn page_asset(media_type: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, ASSET_KEPT),
    ];
    (headers, text).into_response()
}

/// What a browser keeps as a file of this name.
pub(super) fn page_attachment(kind: &str, file: &str, content: impl IntoResponse) -> Response {
    let disposition = format!("attachment; filename=\"{file}\"");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, &*disposition),
    ];
    (headers, content).into_response()
}

pub(super) async fn no_such_page(State(api): State<api::Api>, headers: HeaderMap) -> Failure {
    // The page is for the visitor, where there is one.
    match session::visitor_of_request(&api, &headers).await {
        Ok(_) => Failure::NotFound,
        Err(why) => why,
    }
}

pub(super) async fn no_such_method(method: Method) -> Failure {
    Failure::Request(api::Error::MethodNotAllowed(method.to_string()))
}
