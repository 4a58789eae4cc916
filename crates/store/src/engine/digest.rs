//! Digests of rows, by which it is seen that a row was changed. A row is written as its table and then, by the names of the columns, each
//! name and content with their lengths; what is null is left out. So a column that a later version adds changes no digest while it is
//! empty.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::stored_value::Value;

/// The first half of the SHA-256 of a row.
pub(crate) type RowDigest = [u8; 16];

/// The digest of a row of a table, from its columns in any order.
pub(super) fn digest_of_row<'v>(
    table: &str,
    columns: impl Iterator<Item = (&'static str, &'v Value<'v>)>,
) -> RowDigest {
    let text = |(name, value): (&'static str, &'v Value<'v>)| {
        let text = match value {
            Value::Integer(integer) => integer.map(|integer| integer.to_string().into()),
            Value::Text(text) => text.as_deref().map(Cow::Borrowed),
            Value::Id(id) => id.as_ref().map(|id| id.to_string().into()),
            Value::Bytes(_) => None,
        };
        Some((name, text?))
    };
    let mut texts: Vec<(&str, Cow<'v, str>)> = columns.filter_map(text).collect();
    texts.sort_unstable();
    let mut digest = Sha256::new();
    add_to_row_digest(&mut digest, table);
    for (name, text) in texts {
        add_to_row_digest(&mut digest, name);
        add_to_row_digest(&mut digest, &text);
    }
    let mut half = RowDigest::default();
    half.copy_from_slice(&digest.finalize()[..size_of::<RowDigest>()]);
    half
}

/// A text is preceded by its length, so that no two rows are written the same.
fn add_to_row_digest(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text);
}
