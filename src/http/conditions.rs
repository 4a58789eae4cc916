//! What the headers of a request ask for: that it has no effect twice (`Idempotency-Key`), that the agreement is still as the client last
//! saw it (`If-Match`, RFC 9110, section 13.1.1), and the format of the answer (`Accept`).

use axum::extract::FromRequestParts;
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use super::Error;
use super::format::Format;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest `Idempotency-Key` that is kept.
const KEY_LENGTH_MAX: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
pub(super) fn read_idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=KEY_LENGTH_MAX).contains(&key.len()) && values.next().is_none() => Ok(Some(key)),
        _ => Err(Error::Header(format!(
            "Idempotency-Key: one key of 1 to {KEY_LENGTH_MAX} visible ASCII characters is expected"
        ))),
    }
}

/// The versions that an agreement may have for a request to be carried out; none where any will do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IfMatch(pub(super) Option<Vec<i64>>);

impl IfMatch {
    /// `*`, or entity tags. A weak one, and one that we never gave, matches nothing.
    fn read(headers: &HeaderMap) -> Result<Self, Error> {
        let mut versions = Vec::new();
        let mut has_some = false;
        for value in headers.get_all(header::IF_MATCH) {
            has_some = true;
            let text = value.to_str().unwrap_or_default().trim();
            if text == "*" {
                return Ok(Self(None));
            }
            let Some(tags) = read_strong_tags(text) else {
                return Err(Error::Header(format!(
                    "If-Match: * or entity tags such as \"3\" are expected, not {text}"
                )));
            };
            versions.extend(tags.iter().filter_map(|tag| tag.parse::<i64>().ok()));
        }
        Ok(Self(has_some.then_some(versions)))
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::read(&parts.headers)
    }
}

/// The strong ones among a list of entity tags, without their quotes; none where it is no such list. Commas may stand
/// inside a tag.
fn read_strong_tags(list: &str) -> Option<Vec<&str>> {
    let mut tags = Vec::new();
    let mut rest = list.trim_start();
    loop {
        let weak = rest.strip_prefix("W/");
        let (tag, after) = weak.unwrap_or(rest).strip_prefix('"')?.split_once('"')?;
        if tag.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        if weak.is_none() {
            tags.push(tag);
        }
        rest = after.trim_start();
        if rest.is_empty() {
            return Some(tags);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

/// The entity tag of a version.
pub(super) fn entity_tag_of_version(version: i64) -> HeaderValue {
    // Digits between quotes.
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes are visible ASCII")
}

impl<S: Sync> FromRequestParts<S> for Format {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::of(&parts.headers).ok_or(Error::NotAcceptable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn if_match(values: &[&'static str]) -> Result<Option<Vec<i64>>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_static(value));
        }
        match IfMatch::read(&headers) {
            Ok(IfMatch(versions)) => Ok(versions),
            Err(why) => Err(why.to_string()),
        }
    }

    #[test]
    fn if_match_takes_a_star_and_lists_of_tags_and_a_weak_tag_matches_nothing() {
        assert_eq!(if_match(&[]), Ok(None));
        assert_eq!(if_match(&["*"]), Ok(None));
        assert_eq!(if_match(&["\"3\""]), Ok(Some(vec![3])));
        assert_eq!(if_match(&["\"3\" , W/\"4\",\"a,b\""]), Ok(Some(vec![3])));
        assert_eq!(if_match(&["\"3\"", "\"5\""]), Ok(Some(vec![3, 5])));
        assert_eq!(if_match(&["W/\"3\""]), Ok(Some(vec![])));
        for wrong in ["3", "\"3", "\"3\" \"4\"", "\"3\",", "", "\"a b\""] {
            assert!(if_match(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_request_has_one_key_or_none() {
        let mut headers = HeaderMap::new();
        assert!(read_idempotency_key(&headers).is_ok_and(|key| key.is_none()));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a b"));
        assert!(read_idempotency_key(&headers).is_ok_and(|key| key == Some("a b")));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("c"));
        assert!(read_idempotency_key(&headers).is_err());
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static(""));
        assert!(read_idempotency_key(&headers).is_err());
    }
}
