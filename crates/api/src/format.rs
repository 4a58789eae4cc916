//! Which of the two representations an answer takes: XML carries the WS-Agreement documents, JSON a flat rendering.

use std::cmp::Ordering;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use service::StoredAnswer;

/// A representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Xml,
    Json,
}

/// The client takes JSON: for answers that have no other form.
pub(super) struct JsonTaken;

impl JsonTaken {
    /// None where the `Accept` header leaves JSON out.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let ranges: Vec<_> = MediaRange::accepted(headers).collect();
        let is_taken = !headers.contains_key(header::ACCEPT)
            || quality_of_media_type(&ranges, "application", "json") > 0;
        is_taken.then_some(Self)
    }
}

/// A range of media types that a client accepts, and how much it likes it, in thousandths.
struct MediaRange {
    kind: String,
    subtype: String,
    quality: u16,
}

impl Format {
    /// The format that the `Accept` header asks for (RFC 9110, section 12.5.1): each representation has the quality of the most
    /// precise range that it lies in, and the better one is taken. Where they are equal, or there is no such header, the answer is in the
    /// format of the request's body, and in XML where it has none. None where the client takes neither.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let alike = Self::of_body(headers);
        if !headers.contains_key(header::ACCEPT) {
            return Some(alike);
        }
        let ranges: Vec<_> = MediaRange::accepted(headers).collect();
        let xml = quality_of_media_type(&ranges, "application", "xml").max(quality_of_text_xml(&ranges));
        let json = quality_of_media_type(&ranges, "application", "json");
        match xml.cmp(&json) {
            Ordering::Equal if xml == 0 => None,
            Ordering::Equal => Some(alike),
            Ordering::Greater => Some(Self::Xml),
            Ordering::Less => Some(Self::Json),
        }
    }

    /// The format of a request's body by its type.
    fn of_body(headers: &HeaderMap) -> Self {
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else {
            Self::Xml
        }
    }

    /// Whether an answer in XML is to be named `text/xml`, the other name of the same (RFC 7303): the client likes that better.
    pub(super) fn is_text(headers: &HeaderMap) -> bool {
        let ranges: Vec<_> = MediaRange::accepted(headers).collect();
        quality_of_text_xml(&ranges) > quality_of_media_type(&ranges, "application", "xml")
    }

    /// Whether a client is a browser that asks for a page: it names HTML.
    pub(super) fn is_page(headers: &HeaderMap) -> bool {
        MediaRange::accepted(headers)
            .any(|range| range.quality > 0 && range.kind == "text" && range.subtype == "html")
    }

    /// The format of an error: the same, where problem details count as JSON, and XML for a client that takes neither.
    pub(super) fn of_error(headers: &HeaderMap) -> Self {
        let names_problems = MediaRange::accepted(headers)
            .any(|range| range.quality > 0 && range.kind == "application" && range.subtype == "problem+json");
        match Self::of(headers) {
            None if names_problems => Self::Json,
            format => format.unwrap_or(Self::Xml),
        }
    }

    /// An answer with status 200 that is written in both.
    pub(super) fn respond_stored(self, told: StoredAnswer) -> Response {
        match self {
            Self::Xml => xml_response(told.document),
            Self::Json => ([(header::CONTENT_TYPE, "application/json")], told.json).into_response(),
        }
    }

    /// An answer with status 200 in this representation.
    pub(super) fn answer<T: Serialize>(self, view: &T, xml: impl FnOnce() -> String) -> Response {
        match self {
            Self::Xml => xml_response(xml()),
            Self::Json => axum::Json(view).into_response(),
        }
    }
}

impl MediaRange {
    /// The ranges that a request names.
    fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Self> {
        let values = headers.get_all(header::ACCEPT).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).filter_map(Self::read)
    }

    /// Reads `type/subtype;…;q=…`. Other parameters change nothing: our types have none that matters. None where it is
    /// no such range, or where its quality is no quality.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        Some(Self {
            kind: kind.trim().to_ascii_lowercase(),
            subtype: subtype.trim().to_ascii_lowercase(),
            quality: weight.map_or(Some(1_000), read_quality_thousandths)?,
        })
    }
}

/// A quality as RFC 9110 writes it, 0 to 1 with at most three decimals, in thousandths.
fn read_quality_thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1_000),
        _ => None,
    }
}

/// The quality of `text/xml`, as far as it is meant: a range of every type is asked for our own name of it.
fn quality_of_text_xml(ranges: &[MediaRange]) -> u16 {
    let named = ranges.iter().any(|range| range.kind == "text");
    if named {
        quality_of_media_type(ranges, "text", "xml")
    } else {
        0
    }
}

/// The quality of a media type: that of the most precise range that it lies in, and 0 where it lies in none.
fn quality_of_media_type(ranges: &[MediaRange], kind: &str, subtype: &str) -> u16 {
    let precision = |range: &MediaRange| match (range.kind.as_str(), range.subtype.as_str()) {
        (range, this) if range == kind && this == subtype => Some(2),
        (range, "*") if range == kind => Some(1),
        ("*", "*") => Some(0),
        _ => None,
    };
    ranges
        .iter()
        .filter_map(|range| Some((precision(range)?, range.quality)))
        .max()
        .map_or(0, |(_, quality)| quality)
}

/// The types of XML documents: ours, and the older name for a client that asks for it.
const XML: HeaderValue = HeaderValue::from_static("application/xml; charset=utf-8");
const TEXT_XML: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");

/// Gives a document the other name of XML.
pub(super) fn name_as_text_xml(response: &mut Response) {
    if let Some(kind) = response.headers_mut().get_mut(header::CONTENT_TYPE)
        && *kind == XML
    {
        *kind = TEXT_XML;
    }
}

/// An XML document as a body.
pub(super) fn xml_response(xml: String) -> Response {
    ([(header::CONTENT_TYPE, XML)], xml).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        headers
    }

    #[test]
    fn the_accept_header_decides_by_quality_and_leaves_xml_in_doubt() {
        assert_eq!(Format::of(&HeaderMap::new()), Some(Format::Xml));
        let mut json = HeaderMap::new();
        json.insert(
            header::CONTENT_TYPE,
            "Application/JSON; charset=utf-8".parse().unwrap(),
        );
        assert_eq!(Format::of(&json), Some(Format::Json));
        for (accept, format) in [("*/*", Format::Json), ("application/xml, */*;q=0.9", Format::Xml)] {
            json.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Format::of(&json), Some(format), "{accept}");
        }
        for (accept, format) in [
            ("*/*", Some(Format::Xml)),
            ("application/*", Some(Format::Xml)),
            ("application/json", Some(Format::Json)),
            ("Application/JSON; charset=utf-8", Some(Format::Json)),
            ("application/xml;q=0.5, application/json", Some(Format::Json)),
            ("application/json;q=0.5, */*;q=0.8", Some(Format::Xml)),
            ("application/json, */*;q=0.8", Some(Format::Json)),
            ("application/xml;q=0, */*", Some(Format::Json)),
            (
                "application/xml; Q=0.0 , application/*;q=0.001",
                Some(Format::Json),
            ),
            ("*/*, application/xml;q=0, application/json;q=0", None),
            ("application/xml;q=2, application/json;q=0.1", Some(Format::Json)),
            ("application/xml;q=x", None),
            (
                "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
                Some(Format::Xml),
            ),
            ("text/xml", Some(Format::Xml)),
            ("text/*", Some(Format::Xml)),
            ("text/xml;q=0.4, application/json;q=0.5", Some(Format::Json)),
            ("text/xml;q=0, text/html", None),
            ("image/png", None),
            ("application/json;q=0", None),
            ("", None),
        ] {
            assert_eq!(Format::of(&headers(accept)), format, "{accept:?}");
        }
    }

    #[test]
    fn xml_has_the_name_that_is_asked_for() {
        for (accept, text, page) in [
            ("text/xml", true, false),
            ("application/xml, text/xml", false, false),
            ("application/xml;q=0.9, text/xml", true, false),
            ("text/html, application/xml;q=0.9, */*;q=0.8", false, true),
            ("*/*", false, false),
        ] {
            let headers = headers(accept);
            assert_eq!(
                (Format::is_text(&headers), Format::is_page(&headers)),
                (text, page),
                "{accept}"
            );
        }
    }

    #[test]
    fn json_is_taken_unless_the_accept_header_leaves_it_out() {
        assert!(JsonTaken::of(&HeaderMap::new()).is_some());
        for (accept, taken) in [
            ("*/*", true),
            ("application/xml, application/json;q=0.1", true),
            ("application/xml", false),
            ("*/*, application/json;q=0", false),
        ] {
            assert_eq!(JsonTaken::of(&headers(accept)).is_some(), taken, "{accept}");
        }
    }

    #[test]
    fn an_error_is_told_to_everybody() {
        for (accept, format) in [
            ("image/png", Format::Xml),
            ("application/problem+json", Format::Json),
            ("application/problem+json;q=0", Format::Xml),
            ("application/json", Format::Json),
        ] {
            assert_eq!(Format::of_error(&headers(accept)), format, "{accept:?}");
        }
    }
}
