//! The page to sign in, by itself or in place of a page that only a signed-in visitor may see.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::Frame;

/// The sign in form.
#[derive(Template)]
#[template(path = "portal/sign_in.html")]
pub(super) struct SignIn {
    frame: Frame,
    /// The problem of the key that was sent.
    error: Option<&'static str>,
    /// The address of our page to go to afterwards.
    back: Option<String>,
}

impl SignIn {
    /// The form as an answer.
    pub(super) fn answer(status: StatusCode, error: Option<&'static str>, back: Option<String>) -> Response {
        let title = if error.is_some() {
            "Error: Sign in"
        } else {
            "Sign in"
        };
        let form = Self {
            frame: Frame::outside(title),
            error,
            back,
        };
        let body = form
            .render()
            .map_or_else(|_| title.into_response(), |body| Html(body).into_response());
        let mut response = (status, body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer realm=\"bespeak\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        response
    }

    /// The form in place of a page that only a signed-in visitor may see.
    pub(super) fn asked(back: Option<String>) -> Response {
        Self::answer(StatusCode::UNAUTHORIZED, None, back)
    }

    /// The form as a page of its own, with the address to go to afterwards.
    pub(super) fn offered(back: Option<String>) -> Response {
        Self::answer(StatusCode::OK, None, back)
    }
}
