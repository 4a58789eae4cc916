//! Reading rows. A column with an invalid value is [`Error::Corrupt`], never a panic.

use scheduler::{Interval, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::error::Error;
use crate::agreement::{Currency, Limit, Money, RunOutcome};

/// The columns of one row, by name.
pub(in crate::store) enum Columns<'r> {
    Sqlite(&'r SqliteRow),
    Postgres(&'r PgRow),
}

impl Columns<'_> {
    pub(in crate::store) fn maybe_integer(&self, column: &str) -> Result<Option<i64>, Error> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }?)
    }

    pub(in crate::store) fn maybe_text(&self, column: &str) -> Result<Option<String>, Error> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }?)
    }

    pub(in crate::store) fn maybe_id(&self, column: &str) -> Result<Option<Uuid>, Error> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }?)
    }

    pub(in crate::store) fn integer(&self, column: &str) -> Result<i64, Error> {
        self.maybe_integer(column)?.ok_or_else(|| null(column))
    }

    pub(in crate::store) fn text(&self, column: &str) -> Result<String, Error> {
        self.maybe_text(column)?.ok_or_else(|| null(column))
    }

    pub(in crate::store) fn id(&self, column: &str) -> Result<Uuid, Error> {
        self.maybe_id(column)?.ok_or_else(|| null(column))
    }

    /// A number of nodes or the number of a node.
    pub(in crate::store) fn count(&self, column: &str) -> Result<u32, Error> {
        let count = self.integer(column)?;
        u32::try_from(count).map_err(|_| Error::Corrupt(format!("{column} is {count}")))
    }

    pub(in crate::store) fn interval(&self, start: &str, end: &str) -> Result<Interval, Error> {
        Ok(Interval::new(
            Time(self.integer(start)?),
            Time(self.integer(end)?),
        ))
    }

    /// A word from a closed list.
    pub(in crate::store) fn word<T>(
        &self,
        column: &str,
        named: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let word = self.text(column)?;
        named(&word).ok_or_else(|| Error::Corrupt(format!("{column} is {word:?}")))
    }

    /// An amount in one column and its currency in another; none where either is null.
    pub(in crate::store) fn maybe_money(&self, micros: &str, currency: &str) -> Result<Option<Money>, Error> {
        let (micros, code) = (self.maybe_integer(micros)?, self.maybe_text(currency)?);
        let Some((micros, code)) = micros.zip(code) else {
            return Ok(None);
        };
        let known =
            Currency::parse(&code).ok_or_else(|| Error::Corrupt(format!("{currency} is {code:?}")))?;
        Ok(Some(Money::new(micros, known)))
    }

    /// A value kept as JSON.
    pub(in crate::store) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, Error> {
        self.maybe_json(column)?.ok_or_else(|| null(column))
    }

    pub(in crate::store) fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.maybe_text(column)? else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
    }

    /// An outcome: its word in `outcome`, and the exit status of one that failed in `exit_status`.
    pub(in crate::store) fn maybe_outcome(&self) -> Result<Option<RunOutcome>, Error> {
        let Some(word) = self.maybe_text("outcome")? else {
            return Ok(None);
        };
        let exit = self.maybe_integer("exit_status")?;
        let exit = exit.map(i32::try_from).transpose().ok().flatten();
        let candidates = [
            RunOutcome::Completed,
            RunOutcome::Killed,
            RunOutcome::Checkpointed,
            RunOutcome::Terminated,
            RunOutcome::Lost,
        ];
        exit.map(|exit| RunOutcome::Failed { exit })
            .into_iter()
            .chain(candidates)
            .chain(Limit::ALL.map(|limit| RunOutcome::Exceeded { limit }))
            .find(|outcome| outcome.word() == word)
            .map(Some)
            .ok_or_else(|| Error::Corrupt(format!("outcome is {word:?} with exit status {exit:?}")))
    }
}

fn null(column: &str) -> Error {
    Error::Corrupt(format!("{column} is null"))
}

/// A value as the JSON that is stored.
pub(in crate::store) fn to_json<T: Serialize>(value: &T) -> String {
    // The records that are kept as JSON are structs of strings and words: writing them cannot fail.
    serde_json::to_string(value).expect("a record of strings and words is JSON")
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
