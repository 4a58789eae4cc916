//! Bodies: read whole, within a bound of size and time.

use axum::extract::Request;
use axum::http::header;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{Api, Error};

/// The largest body, in bytes: section 7 of the protocol.
const BODY_MAX: usize = 256 * 1_024;

/// The body of a request that carries an XML document.
///
/// A form's content type is taken for XML too: it is what `curl --data-binary @offer.xml` says of anything.
pub(super) async fn xml(api: &Api, request: Request) -> Result<Vec<u8>, Error> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default());
    let kind = kind.map(|kind| {
        kind.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    });
    match kind.as_deref() {
        None | Some("application/xml" | "text/xml" | "application/x-www-form-urlencoded") => {}
        Some(other) => {
            return Err(Error::UnsupportedMediaType(format!(
                "expected application/xml, found {other}; offers in JSON are not offered by this version"
            )));
        }
    }
    whole(api, request).await
}

/// The body of a request.
pub(crate) async fn whole(api: &Api, request: Request) -> Result<Vec<u8>, Error> {
    let read = Limited::new(request.into_body(), BODY_MAX).collect();
    match tokio::time::timeout(api.body_timeout, read).await {
        Err(_) => Err(Error::BodyTimeout),
        Ok(Err(why)) if why.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Error::BodyTooLarge(BODY_MAX))
        }
        Ok(Err(why)) => Err(Error::BodyBroken(why.to_string())),
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
    }
}
