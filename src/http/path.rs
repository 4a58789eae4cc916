//! The values of a path. axum answers a path that is not UTF-8 in words of its own; here it names nothing, as any other path that
//! leads nowhere, and is answered as such.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Error;

/// The variable parts of a path.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        axum::extract::Path::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Path(named)| Self(named))
            .map_err(|why| Error::NotFound(why.body_text()))
    }
}
