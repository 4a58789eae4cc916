//! Several statements about rows as one, on PostgreSQL: it takes one way to the server and back, and is a transaction by itself.
//!
//! Each of them is a data-modifying `WITH` query. The first is a guard, which changes one row, or none. The others have no rows where it
//! has changed none. All see the state before the statement, and the server runs them in any order. So they must be independent
//! ([`are_independent`]); foreign keys are checked at the end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{AssertSqlSafe, Row};

use super::bulk::Bulk;
use super::connection::arguments_of_values;
use super::error::is_division_by_zero;
use super::stored_value::Value;

/// A statement about rows, with their values row by row.
pub(crate) type Part<'a> = (&'static Bulk, &'a [Value<'a>]);

/// What became of a joined statement that has ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinOutcome {
    /// All is written.
    Written,
    /// Nothing is written: the guard has changed no row, or a row that has to change one of the database did not.
    Unfit,
}

/// A statement that joins others, with its arguments.
pub(crate) struct JoinedStatement {
    text: String,
    arguments: PgArguments,
}

/// Whether statements leave the same rows in whichever order they are run, and where none sees what another has changed. Each reads only
/// the table that it changes. So it suffices that no two change one table, or that they do so in rows with other ids.
pub(crate) fn are_independent(parts: &[Part<'_>]) -> bool {
    let mut ids_by_table = BTreeMap::new();
    parts
        .iter()
        .all(|(bulk, values)| match ids_by_table.entry(bulk.table()) {
            Entry::Vacant(first) => {
                first.insert(bulk.ids(values));
                true
            }
            Entry::Occupied(mut before) => match (before.get_mut(), bulk.ids(values)) {
                (Some(before), Some(ids)) if before.is_disjoint(&ids) => {
                    before.extend(ids);
                    true
                }
                _ => false,
            },
        })
}

impl JoinedStatement {
    /// Joins independent statements behind a guard, which has its own values. The text is the same for each combination of them, so the
    /// server prepares it once for each session.
    ///
    /// # Errors
    /// [`sqlx::Error::Encode`] where a value is of another kind than its column.
    pub(crate) fn of(guard: &str, values: &[Value<'_>], parts: &[Part<'_>]) -> sqlx::Result<Self> {
        let mut arguments: PgArguments = arguments_of_values(values)?;
        let mut text = format!("WITH guard AS ({guard} RETURNING 1)");
        let mut fits = String::new();
        let mut next = values.len() + 1;
        for (at, (bulk, values)) in parts.iter().enumerate() {
            let part = bulk.postgres_text(next, " WHERE EXISTS (SELECT 1 FROM guard)");
            // Writing into a text cannot fail.
            let _ = write!(text, ", part{at} AS ({part}");
            if bulk.each.is_some() {
                text.push_str(" RETURNING 1");
                let _ = write!(
                    fits,
                    " AND (SELECT COUNT(*) FROM part{at}) = CARDINALITY(${next}) * (SELECT COUNT(*) FROM guard)"
                );
            }
            text.push(')');
            next += bulk.width();
            bulk.add_arrays(&mut arguments, values)
                .map_err(sqlx::Error::Encode)?;
        }
        // Only an error undoes a statement that is a transaction by itself.
        let _ = write!(text, " SELECT COUNT(*), 1 / (TRUE{fits})::INTEGER FROM guard");
        Ok(Self { text, arguments })
    }

    /// Runs it. An error with severity `ERROR` undoes all of it. After any other it may be carried out, now or later: the server may not
    /// have begun yet.
    pub(crate) async fn execute(self, session: &mut PgConnection) -> sqlx::Result<JoinOutcome> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.arguments);
        // To its end: a row comes before the server has committed.
        match query.fetch_all(session).await {
            Ok(rows) => {
                let held = rows.first().map(|row| row.try_get::<i64, _>(0)).transpose()?;
                Ok(if held == Some(1) {
                    JoinOutcome::Written
                } else {
                    JoinOutcome::Unfit
                })
            }
            Err(error) if is_division_by_zero(&error) => Ok(JoinOutcome::Unfit),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::bulk::{self, ALL_BULK};
    use super::*;

    #[test]
    fn statements_that_change_rows_of_one_table_are_independent_where_their_ids_are_others() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let made = |id: Uuid| {
            let mut row = vec![Value::Id(None); bulk::INSERT_NEGOTIATIONS.width()];
            row[0] = id.into();
            row
        };
        let ended = |id: Uuid| vec![Value::from(id), Value::from(1_i64)];
        let (first, second, end) = (made(one), ended(other), ended(one));
        let document = [one.into(), "".into(), Value::Id(None)];
        let insert: Part<'_> = (&bulk::INSERT_NEGOTIATIONS, &first);
        let documents: Part<'_> = (&bulk::INSERT_DOCUMENTS, &document);
        assert!(are_independent(&[insert, documents]));
        assert!(are_independent(&[insert, (&bulk::END_NEGOTIATIONS, &second)]));
        assert!(!are_independent(&[insert, (&bulk::END_NEGOTIATIONS, &end)]));
        let (given, released) = ([Value::from(one)], [Value::from(other)]);
        let pending: [Part<'_>; 2] = [(&bulk::DECIDED, &given), (&bulk::DECIDED, &released)];
        assert!(!are_independent(&pending), "rows without ids may be the same");
    }

    /// What [`are_independent`] rests on. Foreign keys of others are looked at by the server itself.
    #[test]
    fn a_statement_of_a_batch_reads_only_the_table_that_it_changes() {
        let of_batches = ALL_BULK
            .iter()
            .filter(|bulk| bulk.name != "NODES_OF" && !bulk.name.starts_with("ARCHIVE_"));
        for bulk in of_batches {
            let table = bulk.table();
            assert!(!table.is_empty(), "{}", bulk.name);
            let text = bulk.postgres_text(1, "");
            let words: Vec<_> = text
                .split([' ', '(', ')'])
                .filter(|word| !word.is_empty())
                .collect();
            for pair in words.windows(2) {
                if matches!(pair[0], "FROM" | "JOIN") {
                    let is_known = ["unnest", "r", "SELECT", table].contains(&pair[1]);
                    assert!(is_known, "{} reads {}", bulk.name, pair[1]);
                }
            }
        }
    }
}
