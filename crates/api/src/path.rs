//! The values of a path. axum answers those that it cannot read in words of its own; here they are errors like all others. A path that is not UTF-8 names nothing, as any other path that leads nowhere.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

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

/// The id that is the only variable part of a path.
pub(super) struct Id(pub(super) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Path(text) = Path::<String>::from_request_parts(parts, state).await?;
        read_id_in_path(&text).map(Self)
    }
}

/// An id from a path; a text that is no id names nothing.
pub(super) fn read_id_in_path(text: &str) -> Result<Uuid, Error> {
    text.parse().map_err(|_| service::Error::NotFound.into())
}

/// A path, with each id in it as it is written here: there are several ways to write one.
pub(super) fn path_with_canonical_ids(path: &str) -> String {
    let segment = |text: &str| {
        text.parse::<Uuid>()
            .map_or_else(|_| text.to_owned(), |id| id.to_string())
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}
