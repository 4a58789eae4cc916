//! The parameters of a query, and how they are read. axum answers those that it cannot read in words of its own; here they are errors
//! like all others.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use wsag::time::DateTime;

use super::Error;

/// The parameters of a query.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(named)| Self(named))
            .map_err(|why| Error::Query(why.body_text()))
    }
}

/// A query without parameters: an operation that has none refuses `dryRun` rather than do what was only asked about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// The parameters of a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChangeParameters {
    /// Whether nothing is done, and it is only answered what the answer would be, with status 200.
    #[serde(default, deserialize_with = "read_query_flag")]
    #[schemars(example = true)]
    pub(super) dry_run: bool,
}

/// Reads a parameter that is `true` or `false`. The error for another word says so.
pub(super) fn read_query_flag<'de, D: Deserializer<'de>>(word: D) -> Result<bool, D::Error> {
    match &*String::deserialize(word)? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(D::Error::custom("true or false is expected")),
    }
}

/// Reads the text of a filter of a query.
///
/// # Errors
/// [`Error::Query`] for the character U+0000, which not every store takes.
pub(super) fn read_query_text(name: &str, text: Option<String>) -> Result<Option<String>, Error> {
    match text {
        Some(text) if text.contains('\0') => {
            Err(Error::Query(format!("{name}: it has the character U+0000")))
        }
        text => Ok(text),
    }
}

/// Reads a word of a filter of a query.
pub(super) fn read_query_word<T>(
    name: &str,
    word: Option<&str>,
    read: fn(&str) -> Option<T>,
    all: &[&str],
) -> Result<Option<T>, Error> {
    let unknown = || Error::Query(format!("{name}: one of {} is expected", all.join(", ")));
    word.map(|word| read(word).ok_or_else(unknown)).transpose()
}

/// Reads an instant of a query.
pub(super) fn read_query_instant(name: &str, text: Option<&str>) -> Result<Option<DateTime>, Error> {
    text.map(DateTime::of_rfc3339)
        .transpose()
        .map_err(|why| Error::Query(format!("{name}: a dateTime is expected: {why}")))
}
