//! The values of a path and its query. axum answers those that it cannot read in words of its own; here they are errors like all
//! others. A path that is not UTF-8 names nothing, as any other path that leads nowhere.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::Error;
use crate::service;

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

/// The text of a filter.
///
/// # Errors
/// [`Error::Query`] for the character U+0000, which not every store takes.
pub(super) fn read_filter_text(name: &str, text: Option<String>) -> Result<Option<String>, Error> {
    match text {
        Some(text) if text.contains('\0') => {
            Err(Error::Query(format!("{name}: it has the character U+0000")))
        }
        text => Ok(text),
    }
}

/// The parameters of a query.
pub(super) struct Query<T>(pub(super) T);

/// A query without parameters: an operation that has none refuses `dryRun` rather than do what was only asked about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(named)| Self(named))
            .map_err(|why| Error::Query(why.body_text()))
    }
}
