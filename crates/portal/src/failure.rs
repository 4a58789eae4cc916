//! An error of a page, as a page. Status, words and the line in the log are those of the API.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::Frame;
use super::request::refusal::refusal_reason_in_words;
use super::sign_in::SignIn;
use super::text;

/// Why a page is not shown.
#[derive(Debug)]
pub(super) enum Failure {
    /// The visitor is not signed in; the address of the page to come back to afterwards.
    SignedOut(Option<String>),
    /// The form was sent by another site, or lacks the token of its session.
    Forged,
    /// There is no such page, or it is another party's.
    NotFound,
    /// An error that a request to the API can have too.
    Request(api::Error),
}

#[derive(Template)]
#[template(path = "portal/error.html")]
struct ErrorPage {
    frame: Frame,
    heading: String,
    sentences: Vec<String>,
}

impl Failure {
    /// A fault of ours.
    pub(super) fn internal(what: String) -> Self {
        Self::Request(service::Error::Internal(what).into())
    }
}

impl From<api::Error> for Failure {
    fn from(error: api::Error) -> Self {
        match error {
            api::Error::Service(service::Error::NotFound) => Self::NotFound,
            other => Self::Request(other),
        }
    }
}

impl From<service::Error> for Failure {
    fn from(error: service::Error) -> Self {
        api::Error::from(error).into()
    }
}

impl From<access::Error> for Failure {
    fn from(error: access::Error) -> Self {
        match error {
            access::Error::Store(why) => service::Error::from(why).into(),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::SignedOut(back) => SignIn::asked(back),
            Self::Forged => error_page(
                StatusCode::FORBIDDEN,
                "This form was not sent from here",
                vec![
                    "Nothing was done. Go back, load the page again, and send the form once more.".to_owned(),
                ],
            ),
            Self::NotFound => error_page(
                StatusCode::NOT_FOUND,
                "There is no such page",
                vec!["Nothing is at this address, or it is not yours to see.".to_owned()],
            ),
            Self::Request(error) => page_of_request_error(&error),
        }
    }
}

/// The page of an error that a request to the API can have too.
pub(super) fn page_of_request_error(error: &api::Error) -> Response {
    error.log();
    let status = error.status().0;
    let heading = if status.is_server_error() {
        "This did not work"
    } else {
        "This cannot be done"
    };
    let mut response = error_page(status, heading, sentences_of_error(error));
    if error.leaves_body() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// What an error says to people, a sentence each.
fn sentences_of_error(error: &api::Error) -> Vec<String> {
    match error {
        api::Error::Service(service::Error::Refused(refusal)) => vec![
            refusal_reason_in_words(refusal.reason.word()).to_owned(),
            format!("{}.", text::capitalised(&refusal.binding_constraint)),
        ],
        api::Error::Service(service::Error::Changed) => vec![
            "It has changed since the page was shown. Nothing was done. Go back, load the page again, and look at it once more."
                .to_owned(),
        ],
        api::Error::Service(service::Error::KeyReused) => vec![
            "This form was sent before with other words. Nothing was done now. Load the page again, and send it once more."
                .to_owned(),
        ],
        other => other.error_descriptions(),
    }
}

fn error_page(status: StatusCode, heading: &str, sentences: Vec<String>) -> Response {
    let page = ErrorPage {
        frame: Frame::of_request(heading),
        heading: heading.to_owned(),
        sentences,
    };
    let body = page.render().map_or_else(
        |_| heading.to_owned().into_response(),
        |body| Html(body).into_response(),
    );
    (status, body).into_response()
}
