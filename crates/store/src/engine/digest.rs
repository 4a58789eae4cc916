//! Digests of rows, by which it is seen that a row was changed. A row is written as its table and then, by the names of the columns, each
//! name and content with their lengths; what is null is left out. So a column that a later version adds changes no digest while it is
//! empty.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::bulk::{Bulk, Kind};
use super::connection::Value;
use super::error::Result;
use super::rows::Columns;

/// The first half of the SHA-256 of a row.
pub(crate) type RowDigest = [u8; 16];

impl Bulk {
    /// The digest of a row of a table that is to be written, with the values of all columns in the order of the statement.
    pub(crate) fn digest(&self, table: &str, values: &[Value<'_>]) -> RowDigest {
        let columns = self.columns.iter().map(|(name, _)| *name);
        digest_of_row(table, columns.zip(values))
    }

    /// The digest of a row of a table as it is stored.
    pub(crate) fn stored_digest(&self, table: &str, row: &Columns<'_>) -> Result<RowDigest> {
        let mut values = Vec::with_capacity(self.columns.len());
        for (name, kind) in self.columns {
            values.push(match kind {
                Kind::Integer => Value::Integer(row.maybe_integer(name)?),
                Kind::Text => Value::Text(row.maybe_text(name)?.map(Into::into)),
                Kind::Id => Value::Id(row.maybe_id(name)?),
            });
        }
        Ok(self.digest(table, &values))
    }
}

fn digest_of_row<'v>(table: &str, columns: impl Iterator<Item = (&'static str, &'v Value<'v>)>) -> RowDigest {
    let text = |(name, value): (&'static str, &Value<'_>)| {
        let text = match value {
            Value::Integer(integer) => integer.map(|integer| integer.to_string()),
            Value::Text(text) => text.as_ref().map(ToString::to_string),
            Value::Id(id) => id.as_ref().map(Uuid::to_string),
            Value::Bytes(_) => None,
        };
        Some((name, text?))
    };
    let mut texts: Vec<(&str, String)> = columns.filter_map(text).collect();
    texts.sort_unstable();
    let mut digest = Sha256::new();
    add(&mut digest, table);
    for (name, text) in texts {
        add(&mut digest, name);
        add(&mut digest, &text);
    }
    let mut half = RowDigest::default();
    half.copy_from_slice(&digest.finalize()[..size_of::<RowDigest>()]);
    half
}

/// A text is preceded by its length, so that no two rows are written the same.
fn add(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text);
}
