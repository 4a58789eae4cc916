//! The cookies of requests, and the cookie of a session.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};

/// The name of the session's cookie, and the one under TLS: browsers take it from an answer by TLS only.
const COOKIE: &str = "bespeak_session";
const SECURE_COOKIE: &str = "__Secure-bespeak_session";

/// A cookie among those of a request.
pub(super) fn cookie_of_request<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// The name of the session's cookie where the service has an address.
pub(super) fn name_of_session_cookie(base: &str) -> &'static str {
    if base.starts_with("https:") {
        SECURE_COOKIE
    } else {
        COOKIE
    }
}

/// An answer that sets the session's cookie.
pub(super) fn with_session_cookie(
    base: &str,
    value: &str,
    max_age_seconds: i64,
    answer: Redirect,
) -> Response {
    let name = name_of_session_cookie(base);
    let secure = if name == SECURE_COOKIE { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path=/portal; Max-Age={max_age_seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut response = answer.into_response();
    // Hexadecimal digits between fixed texts.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        assert_eq!(
            cookie_of_request(&headers(&[("cookie", "a=1; bespeak_session=abc; b=2")]), COOKIE),
            Some("abc")
        );
        assert_eq!(
            cookie_of_request(&headers(&[("cookie", "xbespeak_session=abc")]), COOKIE),
            None
        );
        assert_eq!(cookie_of_request(&headers(&[]), COOKIE), None);
    }

    #[test]
    fn the_cookie_is_for_our_pages_alone_and_secure_where_the_address_is() {
        let set = |base| {
            let response = with_session_cookie(base, "abc", 60, Redirect::to("/portal"));
            response.headers()[header::SET_COOKIE]
                .to_str()
                .unwrap()
                .to_owned()
        };
        let plain = "bespeak_session=abc; Path=/portal; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(set("http://here"), plain);
        assert_eq!(set("https://here"), format!("__Secure-{plain}; Secure"));
    }
}
