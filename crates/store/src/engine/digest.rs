//! Digests of rows, by which it is seen that a row was changed. A row is written as its table and then, by the names of the columns, each
//! name and content with their lengths; what is null is left out. So a column that a later version adds changes no digest while it is
//! empty.

use std::io::Write;

use sha2::{Digest, Sha256};

use super::stored_value::Value;

/// The first half of the SHA-256 of a row.
pub(crate) type RowDigest = [u8; 16];

/// The digest of a row of a table, from its columns by name.
pub(super) fn digest_of_row<'v>(
    table: &str,
    columns: impl Iterator<Item = (&'static str, &'v Value<'v>)>,
) -> RowDigest {
    let mut row = Vec::with_capacity(2_048);
    add_to_digested_row(&mut row, table);
    let mut text = Vec::new();
    for (name, value) in columns {
        text.clear();
        let text = match value {
            // Writing into memory cannot fail.
            Value::Integer(Some(integer)) => {
                let _ = write!(text, "{integer}");
                &text
            }
            Value::Id(Some(id)) => {
                let _ = write!(text, "{id}");
                &text
            }
            Value::Text(Some(text)) => text.as_bytes(),
            Value::Integer(None) | Value::Id(None) | Value::Text(None) | Value::Bytes(_) => continue,
        };
        add_to_digested_row(&mut row, name);
        add_to_digested_row(&mut row, text);
    }
    let mut half = RowDigest::default();
    half.copy_from_slice(&Sha256::digest(&row)[..size_of::<RowDigest>()]);
    half
}

/// A text is preceded by its length, so that no two rows are written the same.
fn add_to_digested_row(row: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    row.extend_from_slice(&(text.len() as u64).to_be_bytes());
    row.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::hex::hex;
    use super::*;

    /// Databases have digests that were made so.
    #[test]
    fn a_row_is_digested_as_it_ever_was() {
        let columns = [
            ("a", "x".into()),
            ("b", Value::from(-5_i64)),
            ("empty", Value::Text(None)),
            ("id", Uuid::from_u128(7).into()),
        ];
        let digest = digest_of_row("t", columns.iter().map(|(name, value)| (*name, value)));
        assert_eq!(hex(&digest), "e0b28a9f1c69553793846ffbc6b6a7e7");
    }
}
