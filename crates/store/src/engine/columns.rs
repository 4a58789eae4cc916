//! The columns of a row, by name. A column with an invalid value is [`Error::Corrupt`], never a panic.

use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, ValueRef};
use uuid::Uuid;

use super::error::{Error, Result};

/// The columns of one row, by name.
pub(crate) enum Columns<'r> {
    Sqlite(&'r SqliteRow),
    Postgres(&'r PgRow),
}

impl Columns<'_> {
    pub(crate) fn is_null(&self, column: &str) -> Result<bool> {
        Ok(either!(self, row => row.try_get_raw(column)?.is_null()))
    }

    pub(crate) fn maybe_integer(&self, column: &str) -> Result<Option<i64>> {
        Ok(either!(self, row => row.try_get(column))?)
    }

    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        Ok(either!(self, row => row.try_get(column))?)
    }

    /// The same as [`Self::maybe_text`], borrowed from the row. The column cannot be read as another type than text afterwards.
    pub(crate) fn maybe_borrowed_text(&self, column: &str) -> Result<Option<&str>> {
        Ok(either!(self, row => row.try_get(column))?)
    }

    pub(crate) fn maybe_id(&self, column: &str) -> Result<Option<Uuid>> {
        Ok(either!(self, row => row.try_get(column))?)
    }

    pub(crate) fn bytes(&self, column: &str) -> Result<Vec<u8>> {
        let bytes: Option<Vec<u8>> = either!(self, row => row.try_get(column))?;
        bytes.ok_or_else(|| null_in_column(column))
    }

    pub(crate) fn integer(&self, column: &str) -> Result<i64> {
        self.maybe_integer(column)?.ok_or_else(|| null_in_column(column))
    }

    pub(crate) fn text(&self, column: &str) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| null_in_column(column))
    }

    pub(crate) fn borrowed_text(&self, column: &str) -> Result<&str> {
        self.maybe_borrowed_text(column)?
            .ok_or_else(|| null_in_column(column))
    }

    pub(crate) fn id(&self, column: &str) -> Result<Uuid> {
        self.maybe_id(column)?.ok_or_else(|| null_in_column(column))
    }

    /// A number of nodes or the number of a node.
    pub(crate) fn count(&self, column: &str) -> Result<u32> {
        let count = self.integer(column)?;
        u32::try_from(count).map_err(|_| Error::Corrupt(format!("{column} is {count}")))
    }

    /// A word from a closed list.
    pub(crate) fn word<T>(&self, column: &str, named: impl Fn(&str) -> Option<T>) -> Result<T> {
        let word = self.borrowed_text(column)?;
        named(word).ok_or_else(|| Error::Corrupt(format!("{column} is {word:?}")))
    }
}

fn null_in_column(column: &str) -> Error {
    Error::Corrupt(format!("{column} is null"))
}

/// A value kept as JSON.
pub(crate) fn read_json_column<T: DeserializeOwned>(row: &Columns<'_>, column: &str) -> Result<T> {
    serde_json::from_str(row.borrowed_text(column)?)
        .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
}
