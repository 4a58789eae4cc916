//! What the headers of a request ask for: that it has no effect twice (`Idempotency-Key`), that the agreement is still as the client last
//! saw it, or is not (`If-Match` and `If-None-Match`, RFC 9110, section 13.1), and the format of the answer (`Accept`).

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;

use super::format::{Format, JsonTaken};
use super::{Answer, Error};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest `Idempotency-Key` that is kept.
const KEY_LENGTH_MAX: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
pub(super) fn read_idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let is_key = |key: &str| {
        (1..=KEY_LENGTH_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match value.to_str() {
        Ok(key) if is_key(key) && values.next().is_none() => Ok(Some(key)),
        _ => Err(Error::Header(format!(
            "Idempotency-Key: one key of 1 to {KEY_LENGTH_MAX} visible ASCII characters without spaces is expected"
        ))),
    }
}

/// The versions that an agreement may have for a request to be carried out; none where any will do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IfMatch(pub(super) Option<Vec<i64>>);

impl IfMatch {
    /// `*`, or entity tags. A weak one, and one that we never gave, matches nothing.
    fn read(headers: &HeaderMap) -> Result<Self, Error> {
        Ok(Self(match EntityTags::read(headers, &header::IF_MATCH)? {
            None | Some(EntityTags::Any) => None,
            Some(EntityTags::These(tags)) => Some(tags.iter().filter_map(EntityTag::version).collect()),
        }))
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::read(&parts.headers)
    }
}

/// The entity tags that a condition names (RFC 9110, section 13.1).
enum EntityTags {
    /// `*`: whatever there is.
    Any,
    These(Vec<EntityTag>),
}

/// An entity tag.
struct EntityTag {
    is_weak: bool,
    /// Its text, without the quotes.
    text: String,
}

impl EntityTag {
    /// The version of an agreement, where it is one as we give it.
    fn version(&self) -> Option<i64> {
        let version = self.text.parse::<i64>().ok();
        version.filter(|version| !self.is_weak && version.to_string() == self.text)
    }
}

impl EntityTags {
    /// Those of a header; none where there is no such header.
    fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, Error> {
        let mut tags = Vec::new();
        for value in headers.get_all(name) {
            let text = value.to_str().unwrap_or_default().trim();
            if text == "*" {
                return Ok(Some(Self::Any));
            }
            let Some(found) = read_entity_tags(text) else {
                return Err(wrong_entity_tags(name, text));
            };
            tags.extend(found);
        }
        if tags.is_empty() && headers.contains_key(name) {
            return Err(wrong_entity_tags(name, "none"));
        }
        Ok(Some(tags).filter(|tags| !tags.is_empty()).map(Self::These))
    }

    /// Whether one of them is the tag of an answer, by the strong comparison or by the weak one.
    fn has(&self, tag: Option<&str>, strongly: bool) -> bool {
        let Self::These(tags) = self else { return true };
        let own = tag.map(|tag| tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"'));
        tags.iter()
            .any(|tag| own == Some(tag.text.as_str()) && !(strongly && tag.is_weak))
    }
}

fn wrong_entity_tags(name: &HeaderName, found: &str) -> Error {
    let name = if name == header::IF_MATCH {
        "If-Match"
    } else {
        "If-None-Match"
    };
    Error::Header(format!(
        "{name}: * or entity tags such as \"3\" are expected, not {found}"
    ))
}

/// A list of entity tags; none where it is no such list. Commas may stand inside a tag, and members may be empty (RFC 9110, section 5.6.1.2).
fn read_entity_tags(list: &str) -> Option<Vec<EntityTag>> {
    let mut tags = Vec::new();
    let mut rest = list.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
            continue;
        }
        let weak = rest.strip_prefix("W/");
        let (tag, after) = weak.unwrap_or(rest).strip_prefix('"')?.split_once('"')?;
        if tag.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        tags.push(EntityTag {
            is_weak: weak.is_some(),
            text: tag.to_owned(),
        });
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
    Some(tags)
}

/// Marks an answer of which a part may change without its version: what is looked at beside an agreement.
#[derive(Clone, Copy)]
pub(super) struct ChangesByItself;

/// Answers a read under conditions: 412 where what is here is not what `If-Match` names, and 304 without a body where it is what
/// `If-None-Match` names (RFC 9110, section 13.2.2). What has no entity tag matches `*` only.
pub(super) async fn check_conditions_of_read(request: Request, next: Next) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(next.run(request).await);
    }
    let wanted = EntityTags::read(request.headers(), &header::IF_MATCH);
    let known = EntityTags::read(request.headers(), &header::IF_NONE_MATCH);
    let mut answer = next.run(request).await;
    // A condition counts only where the answer would be good without it, also one that cannot be read (RFC 9110, section 13.2.1).
    if answer.status() != StatusCode::OK {
        return Ok(answer);
    }
    let (wanted, known) = (wanted?, known?);
    let tag = answer.headers().get(header::ETAG);
    let tag = tag.and_then(|tag| tag.to_str().ok());
    if wanted.is_some_and(|wanted| !wanted.has(tag, true)) {
        return Err(Error::NotMatched);
    }
    let is_same = answer.extensions().get::<ChangesByItself>().is_none();
    if known.is_some_and(|known| matches!(known, EntityTags::Any) || is_same && known.has(tag, false)) {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        *answer.body_mut() = Body::empty();
        answer.headers_mut().remove(header::CONTENT_TYPE);
        answer.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok(answer)
}

/// The entity tag of a version.
pub(super) fn entity_tag_of_version(version: i64) -> HeaderValue {
    // Digits between quotes.
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes are visible ASCII")
}

impl<S: Sync> FromRequestParts<S> for Format {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::of(&parts.headers).ok_or(Error::NotAcceptable("application/xml or application/json"))
    }
}

impl<S: Sync> FromRequestParts<S> for JsonTaken {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::of(&parts.headers).ok_or(Error::NotAcceptable("application/json"))
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
        // Members of a list may be empty.
        for list in ["\"3\",", ",\"3\"", " , \"3\" ,, ", "\"3\",,W/\"4\""] {
            assert_eq!(if_match(&[list]), Ok(Some(vec![3])), "{list:?}");
        }
        assert_eq!(if_match(&["\"03\", \"+3\""]), Ok(Some(vec![])));
        for wrong in ["3", "\"3", "\"3\" \"4\"", ",", "", "\"a b\""] {
            assert!(if_match(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_request_has_one_key_or_none() {
        let mut headers = HeaderMap::new();
        assert!(read_idempotency_key(&headers).is_ok_and(|key| key.is_none()));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("!a~"));
        assert!(read_idempotency_key(&headers).is_ok_and(|key| key == Some("!a~")));
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("c"));
        assert!(read_idempotency_key(&headers).is_err());
        // By the pattern that OpenAPI states.
        for wrong in ["", "a b", "a\tb", "\"a\" b"] {
            headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static(wrong));
            assert!(read_idempotency_key(&headers).is_err(), "{wrong:?}");
        }
    }
}
