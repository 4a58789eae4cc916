//! The line of each request in the log, and the id by which a client and the log name the request.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::{Instrument, field};
use uuid::Uuid;

use super::{FEEDS, origin_of_request};
use access::{Caller, hide_keys};

/// Every answer has it, and every log line of its request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request its id and, when it is answered, its line in the log.
pub(super) async fn log_request(mut request: Request, next: Next) -> Response {
    let id = Uuid::now_v7().to_string();
    // A UUID is a valid header value: hexadecimal digits and hyphens.
    let value = HeaderValue::from_str(&id).expect("a UUID is visible ASCII");
    let (method, path) = (request.method().clone(), path_in_log(request.uri().path()));
    request.headers_mut().insert(REQUEST_ID, value.clone());
    let peer = origin_of_request(&request).map(field::display);
    // The sender is known later.
    let span = tracing::info_span!("request", id, peer, party = field::Empty, key = field::Empty);
    async move {
        let begun = tokio::time::Instant::now();
        let mut response = next.run(request).await;
        let status = response.status().as_u16();
        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(%method, path, status, elapsed_us, "answered");
        let headers = response.headers_mut();
        // An answer that was passed on has the one by which the other process knows it.
        headers.entry(REQUEST_ID).or_insert(value);
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        response
    }
    .instrument(span)
    .await
}

/// The path of a request without secrets.
fn path_in_log(path: &str) -> String {
    if path.starts_with(FEEDS) {
        format!("{FEEDS}…")
    } else {
        hide_keys(path).into_owned()
    }
}

/// Notes the sender of the present request in its log.
pub fn log_caller(caller: &Caller) {
    let span = tracing::Span::current();
    span.record("party", &caller.party);
    span.record("key", field::display(caller.key));
}
