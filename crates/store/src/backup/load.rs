//! Fills an empty database from the text of another one, all in one transaction: where anything is wrong, it stays empty.

use std::io::{BufRead, Read};
use std::path::Path;

use serde::Deserialize;

use super::schema::{
    Tables, be_patient, copied_tables_of_schema, kind_of_schema_column, read_tables_of_schema,
};
use super::{CopyError, Progress};
use crate::engine::bulk::Kind;
use crate::engine::connect::connect_to_database;
use crate::engine::files::IfMissing;
use crate::engine::hosts::APPLICATION;
use crate::engine::migrations::{self, NEWEST};
use crate::engine::transaction::Transaction;
use crate::engine::{Connection, Engine};
use crate::records::trail_lines::append_restore_line;
use crate::signed_heads::{SignedLines, SignedRestore};
use crate::verify::verify_everything;

/// The longest line, in bytes: many times the largest document, and a bound on memory.
const LINE_MAX: u64 = 64 << 20;
/// Rows are stored together until they have so many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// The line before the rows of a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    table: String,
    columns: Vec<String>,
}

/// The counts of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadCounts {
    /// Rows of all tables.
    pub rows: u64,
}

/// Makes sure that a database is empty, or is a SQLite file that is missing.
///
/// # Errors
/// [`CopyError::NotEmpty`], and those of reading.
pub async fn check_empty_before_load(url: &str) -> Result<(), CopyError> {
    let file = url.strip_prefix("sqlite:");
    if file.is_some_and(|path| !Path::new(path.strip_prefix("//").unwrap_or(path)).exists()) {
        return Ok(());
    }
    let database = connect_to_database(url, APPLICATION, IfMissing::Refuse).await?;
    let mut transaction = Transaction::begin(&database.writers).await?;
    refuse_to_load_over_content(&mut transaction).await?;
    Ok(transaction.rollback().await?)
}

async fn refuse_to_load_over_content(connection: &mut Connection) -> Result<(), CopyError> {
    match read_tables_of_schema(connection).await?.pop_first() {
        None => Ok(()),
        Some((table, _)) => Err(CopyError::NotEmpty(table)),
    }
}

/// Makes the schema of a version in an empty database, fills it with the rows of a text, brings it up to date, and checks everything that is
/// stored then. The audit trail says so with its last line. A SQLite file that is missing is made. A service that starts on the database meanwhile waits, and fails.
///
/// # Errors
/// [`CopyError::NotEmpty`], [`CopyError::Damaged`], [`CopyError::Inconsistent`], and those of reading and writing. The database is as empty
/// afterwards as before.
pub async fn load_database(
    url: &str,
    schema: usize,
    from: &mut (dyn BufRead + Send),
    (signed, restore): (SignedLines, &SignedRestore<'_>),
    progress: Progress<'_>,
) -> Result<LoadCounts, CopyError> {
    let database = connect_to_database(url, APPLICATION, IfMissing::Create).await?;
    let mut transaction = Transaction::begin(&database.writers).await?;
    be_patient(&mut transaction).await?;
    migrations::wait_for_other_migrations(&mut transaction).await?;
    refuse_to_load_over_content(&mut transaction).await?;
    migrations::migrate_up_to(&mut transaction, schema).await?;
    let tables = copied_tables_of_schema(read_tables_of_schema(&mut transaction).await?);
    let rows = load_tables(&mut transaction, tables, from, progress).await?;
    migrations::migrate_up_to(&mut transaction, NEWEST).await?;
    let (findings, _) = verify_everything(&mut transaction, signed).await?;
    if !findings.is_empty() {
        return Err(CopyError::Inconsistent(findings));
    }
    append_restore_line(&mut transaction, restore).await?;
    transaction.commit().await?;
    database.close().await;
    Ok(LoadCounts { rows })
}

async fn load_tables(
    connection: &mut Connection,
    mut missing: Tables,
    from: &mut (dyn BufRead + Send),
    progress: Progress<'_>,
) -> Result<u64, CopyError> {
    let (mut rows, mut batch) = (0, LoadBatch::default());
    while let Some(line) = next_line_to_load(from)? {
        if line.starts_with('[') {
            rows += 1;
            batch.add(&line);
            if batch.text.len() > BATCH_BYTES {
                batch.store(connection).await?;
                progress(rows);
            }
            continue;
        }
        batch.store(connection).await?;
        let head: Head = serde_json::from_str(&line).map_err(|why| CopyError::Damaged(why.to_string()))?;
        let columns = missing
            .remove(&head.table)
            .ok_or_else(|| CopyError::Damaged(format!("it has the table {:?}", head.table)))?;
        // A row that the schema's steps have put there.
        let clear = format!("DELETE FROM {}", head.table);
        connection.execute_made(clear, None).await?;
        batch = LoadBatch::of(&head, &columns, connection.engine())?;
    }
    batch.store(connection).await?;
    match missing.pop_first() {
        None => Ok(rows),
        Some((table, _)) => Err(CopyError::Damaged(format!("it lacks the table {table}"))),
    }
}

/// The next line without its end.
fn next_line_to_load(from: &mut (dyn BufRead + Send)) -> Result<Option<String>, CopyError> {
    let mut line = String::new();
    if from.take(LINE_MAX).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    if line.pop() != Some('\n') {
        return Err(CopyError::Damaged("a line is cut off".into()));
    }
    Ok(Some(line))
}

/// Rows of one table that are stored together.
#[derive(Default)]
struct LoadBatch {
    /// Adds to the table the rows of a JSON text.
    statement: String,
    /// The rows so far, separated by commas.
    text: String,
    count: u64,
}

impl LoadBatch {
    /// No rows yet of the table that a line names, which has these columns.
    fn of(head: &Head, columns: &[(String, String)], engine: Engine) -> Result<Self, CopyError> {
        if head.columns.len() != columns.len() {
            return Err(other_columns(&head.table));
        }
        let mut values = Vec::new();
        // The names are used as they stand in the schema, whatever the text says.
        let mut names = Vec::new();
        for (at, column) in head.columns.iter().enumerate() {
            let known = columns.iter().find(|(name, _)| name == column);
            let (name, declared) = known.ok_or_else(|| other_columns(&head.table))?;
            names.push(name.as_str());
            values.push(match (kind_of_schema_column(declared)?, engine) {
                (Kind::Id, Engine::Sqlite) => format!("UNHEX(value ->> {at})"),
                (Kind::Id, Engine::Postgres) => format!("CAST(value ->> {at} AS UUID)"),
                (Kind::Integer, Engine::Postgres) => format!("CAST(value ->> {at} AS BIGINT)"),
                (Kind::Integer | Kind::Text, _) => format!("value ->> {at}"),
            });
        }
        let (names, values) = (names.join(", "), values.join(", "));
        let rows = match engine {
            Engine::Sqlite => "json_each($1)",
            Engine::Postgres => "json_array_elements(CAST($1 AS JSON))",
        };
        let table = &head.table;
        Ok(Self {
            statement: format!("INSERT INTO {table} ({names}) SELECT {values} FROM {rows}"),
            ..Self::default()
        })
    }

    fn add(&mut self, row: &str) {
        if self.count > 0 {
            self.text.push(',');
        }
        self.text.push_str(row);
        self.count += 1;
    }

    /// Stores the rows, and has none then.
    async fn store(&mut self, connection: &mut Connection) -> Result<(), CopyError> {
        if self.count == 0 {
            return Ok(());
        }
        if self.statement.is_empty() {
            return Err(CopyError::Damaged("it begins with a row".into()));
        }
        let rows = format!("[{}]", self.text);
        let stored = connection
            .execute_made(self.statement.clone(), Some(&rows))
            .await?;
        if stored != self.count {
            return Err(CopyError::Damaged("a line is more than one row".into()));
        }
        self.text.clear();
        self.count = 0;
        Ok(())
    }
}

fn other_columns(table: &str) -> CopyError {
    CopyError::Damaged(format!("the table {table} has other columns in it"))
}
