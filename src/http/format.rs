//! Which of the two representations an answer takes: XML carries the WS-Agreement documents, JSON a flat rendering.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Error;

/// A representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Xml,
    Json,
    /// The client takes neither.
    Neither,
}

impl Format {
    /// What the `Accept` header asks for: the best by its quality, XML where it leaves the choice.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Self::Xml;
        }
        let ranges = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        let mut best = (0.0, Self::Neither);
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/xml" | "text/xml" | "application/*" | "text/*" | "*/*" => Self::Xml,
                "application/json" | "application/problem+json" => Self::Json,
                _ => continue,
            };
            let quality = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(1.0, |q| q.parse().unwrap_or(0.0));
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }

    /// An answer with status 200 in the representation asked for.
    pub(super) fn answer<T: Serialize>(
        self,
        view: &T,
        xml: impl FnOnce() -> String,
    ) -> Result<Response, Error> {
        match self {
            Self::Xml => Ok(document(xml())),
            Self::Json => Ok(axum::Json(view).into_response()),
            Self::Neither => Err(Error::NotAcceptable),
        }
    }
}

/// An XML document as a body.
pub(super) fn document(xml: String) -> Response {
    ([(header::CONTENT_TYPE, "application/xml; charset=utf-8")], xml).into_response()
}

impl<S: Sync> FromRequestParts<S> for Format {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Format {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        Format::of(&headers)
    }

    #[test]
    fn the_accept_header_decides_by_quality_and_leaves_xml_in_doubt() {
        assert_eq!(Format::of(&HeaderMap::new()), Format::Xml);
        for (accept, format) in [
            ("*/*", Format::Xml),
            ("application/json", Format::Json),
            ("Application/JSON; charset=utf-8", Format::Json),
            ("application/xml;q=0.5, application/json", Format::Json),
            ("application/json;q=0.5, */*;q=0.8", Format::Xml),
            (
                "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
                Format::Xml,
            ),
            ("image/png", Format::Neither),
            ("application/json;q=0", Format::Neither),
            ("", Format::Neither),
        ] {
            assert_eq!(of(accept), format, "{accept:?}");
        }
    }
}
