//! The values of a page's path. One that is not UTF-8 leads nowhere, and is answered as any other such.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::Failure;

/// The variable parts of a page's path.
pub(super) struct PagePath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PagePath<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        axum::extract::Path::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Path(named)| Self(named))
            .map_err(|_| Failure::NotFound)
    }
}
