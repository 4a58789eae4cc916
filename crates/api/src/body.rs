//! The bodies of requests, which are read whole, within a bound of size and time.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::conditions::read_idempotency_key;
use super::format::Format;
use super::path::path_with_canonical_ids;
use super::{Api, Error};
use access::Caller;
use service::{Input, RequestKey};

/// The largest body, in bytes: section 7 of the protocol.
pub(super) const BODY_MAX: usize = 256 * 1_024;

/// How much of a body that is too large is read before the connection is given up, in bytes.
const READ_MAX: usize = 4 * BODY_MAX;

/// The body of a request, and its key where it has one.
pub(super) struct PostedBody {
    pub(super) input: Input,
    pub(super) key: Option<RequestKey>,
}

impl FromRequest<Api> for PostedBody {
    type Rejection = Error;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Error> {
        let key = read_idempotency_key(request.headers())?.map(str::to_owned);
        let caller = request.extensions().get::<Caller>().cloned();
        let target = format!(
            "{} {}",
            request.method(),
            path_with_canonical_ids(request.uri().path())
        );
        let input = read_body_input(api, request).await?;
        // Without a caller, no request comes so far.
        let key = key.zip(caller);
        let key = key.map(|(key, caller)| RequestKey::new(&caller.party, &key, &target, input.bytes()));
        Ok(Self { input, key })
    }
}

impl PostedBody {
    /// The body and the key of an operation that is in JSON only.
    pub(super) fn json(self) -> Result<(Vec<u8>, Option<RequestKey>), Error> {
        Ok((json_of_input(self.input)?, self.key))
    }
}

/// The body of a request, in the representation that its `Content-Type` names.
pub(super) async fn read_body_input(api: &Api, request: Request) -> Result<Input, Error> {
    let format = format_of_body(request.headers())?;
    let bytes = read_whole_body(api, request).await?;
    Ok(match format {
        Format::Xml => Input::Xml(bytes),
        Format::Json => Input::Json(bytes),
    })
}

/// The body of a request that carries JSON.
pub(super) async fn read_json_body(api: &Api, request: Request) -> Result<Vec<u8>, Error> {
    json_of_input(read_body_input(api, request).await?)
}

/// The bytes of a body in JSON.
fn json_of_input(input: Input) -> Result<Vec<u8>, Error> {
    match input {
        Input::Json(input) => Ok(input),
        Input::Xml(_) => Err(body_is_not_json()),
    }
}

/// That an operation takes JSON alone.
pub(super) fn body_is_not_json() -> Error {
    let what = "expected application/json: this operation is in JSON only";
    Error::UnsupportedMediaType(what.to_owned())
}

/// The format that the headers of a body name; XML where they name none. It must be UTF-8, as it stands. `text/xml` is another
/// name of the same (RFC 7303), and a form's type is the one that `curl --data-binary @offer.xml` sends for any file.
fn format_of_body(headers: &HeaderMap) -> Result<Format, Error> {
    if let Some(coding) = headers.get(header::CONTENT_ENCODING)
        && coding != "identity"
    {
        let what = "a body without Content-Encoding is expected";
        return Err(Error::UnsupportedMediaType(what.to_owned()));
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(Format::Xml);
    };
    let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = value.split(';').map(str::trim);
    let format = match parts.next().unwrap_or_default() {
        "application/xml" | "text/xml" | "application/x-www-form-urlencoded" => Format::Xml,
        "application/json" => Format::Json,
        other => {
            return Err(Error::UnsupportedMediaType(format!(
                "expected application/xml or application/json, found {other:?}"
            )));
        }
    };
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    match charset.map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8" | "us-ascii") => Ok(format),
        Some(other) => Err(Error::UnsupportedMediaType(format!(
            "expected UTF-8, found the charset {other:?}"
        ))),
    }
}

/// Refuses a body that is too large before a part of it has come, where its client waits for that word (RFC 9110, section 10.1.1).
///
/// # Errors
/// [`Error::BodyTooLarge`].
pub(super) fn refuse_announced_body(headers: &HeaderMap) -> Result<(), Error> {
    let waits = headers.get(header::EXPECT);
    let waits = waits.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if waits && length.is_some_and(|length| length > BODY_MAX as u64) {
        return Err(Error::BodyTooLarge(BODY_MAX));
    }
    Ok(())
}

/// The body of a request.
///
/// # Errors
/// Where it is too long, too slow, or breaks off.
pub async fn read_whole_body(api: &Api, request: Request) -> Result<Vec<u8>, Error> {
    refuse_announced_body(request.headers())?;
    match tokio::time::timeout(api.body_timeout, read_bounded_body(request.into_body())).await {
        Err(_) => Err(Error::BodyTimeout),
        Ok(read) => read,
    }
}

/// Reads a body to its end. One that is too large is read on for a while, into nothing: a client that is still sending
/// does not look at the answer yet, and would see a broken connection in its place.
async fn read_bounded_body(mut body: Body) -> Result<Vec<u8>, Error> {
    let (mut kept, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|why| Error::BodyBroken(why.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= BODY_MAX {
            kept.extend_from_slice(&data);
        } else if length > READ_MAX {
            break;
        }
    }
    if length > BODY_MAX {
        Err(Error::BodyTooLarge(BODY_MAX))
    } else {
        Ok(kept)
    }
}
