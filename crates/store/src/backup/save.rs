//! Writes the database as text, beside a service that serves.

use std::io::Write;

use super::schema::{
    OLDEST_FIRST, TABLES, be_patient, copied_tables_of_schema, kind_of_schema_column, read_tables_of_schema,
};
use super::{CopyError, Progress};
use crate::engine::bulk::Kind;
use crate::engine::{Connection, Engine, Error, migrations};
use crate::signed_heads::SignedLines;
use crate::store::Store;
use crate::verify::verify_everything;

const RUNNING: &str = "SELECT COUNT(*) AS running FROM agreements WHERE service = 'Processing'";

/// The counts of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyCounts {
    /// Rows of all tables.
    pub rows: u64,
    /// The version of the schema.
    pub schema: usize,
    /// Agreements whose jobs ran.
    pub running: i64,
    /// The number of the last line of the audit trail.
    pub trail: i64,
}

/// Checks the stored state as [`Store::verify_with`] does, and writes all of it as text. Both see one state: the one at the
/// beginning of the call, whichever writes happen meanwhile.
///
/// # Errors
/// [`CopyError::Inconsistent`] where the checks find something; a database of an earlier version, as it would have to be changed;
/// those of reading and writing.
pub async fn save_database(
    store: &Store,
    signed: SignedLines,
    to: &mut (dyn Write + Send),
    progress: Progress<'_>,
) -> Result<CopyCounts, CopyError> {
    let mut snapshot = store.snapshot().await?;
    let connection: &mut Connection = &mut snapshot;
    be_patient(connection).await?;
    let schema = migrations::applied_steps(connection).await?;
    let mut tables = copied_tables_of_schema(read_tables_of_schema(connection).await?);
    let (findings, trail) = verify_everything(connection, signed).await?;
    if !findings.is_empty() {
        return Err(CopyError::Inconsistent(findings));
    }
    let running = connection.read(RUNNING, &[], |row| row.integer("running"));
    let running = running.await?.pop().unwrap_or_default();
    let mut rows = 0;
    for name in TABLES {
        let columns = tables.remove(name).unwrap_or_default();
        save_table(connection, name, &columns, to, &mut || {
            rows += 1;
            progress(rows);
        })
        .await?;
    }
    snapshot.rollback().await?;
    // A test compares the lists, so this is a table of another program, or of a schema that was edited.
    if let Some(other) = tables.keys().next() {
        let why = format!("it has a table {other}, which no backup would have");
        return Err(Error::Schema(why).into());
    }
    Ok(CopyCounts {
        rows,
        schema,
        running,
        trail: trail.number,
    })
}

/// Opens the database that is there as it is, and brings nothing up to date.
///
/// # Errors
/// [`Error::Schema`] where its schema is not that of this version; those of [`Store::open`].
pub async fn open_to_save(url: &str) -> Result<Store, Error> {
    let store = Store::open_without_migrations(url).await?;
    let mut snapshot = store.snapshot().await?;
    let tables = read_tables_of_schema(&mut snapshot).await?;
    let applied = if tables.contains_key("schema_migrations") {
        migrations::applied_steps(&mut snapshot).await?
    } else {
        0
    };
    snapshot.rollback().await?;
    match applied {
        _ if applied >= migrations::needed_steps() => Ok(store),
        0 => Err(Error::Schema("no service has been here yet".into())),
        _ => Err(Error::Schema(
            "an earlier version of bespeak was the last one here: use that version, or start this one first"
                .into(),
        )),
    }
}

async fn save_table(
    connection: &mut Connection,
    name: &str,
    columns: &[(String, String)],
    to: &mut (dyn Write + Send),
    count: &mut (dyn FnMut() + Send),
) -> Result<(), CopyError> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let head = serde_json::json!({ "table": name, "columns": names });
    writeln!(to, "{head}")?;
    let mut values = Vec::new();
    for (column, declared) in columns {
        values.push(match (kind_of_schema_column(declared)?, connection.engine()) {
            (Kind::Id, Engine::Sqlite) => format!("NULLIF(LOWER(HEX({column})), '')"),
            (Kind::Id, Engine::Postgres) => format!("REPLACE(CAST({column} AS TEXT), '-', '')"),
            (Kind::Integer | Kind::Text, _) => column.clone(),
        });
    }
    let values = values.join(", ");
    let row = match connection.engine() {
        Engine::Sqlite => format!("json_array({values})"),
        Engine::Postgres => format!("CAST(json_build_array({values}) AS TEXT)"),
    };
    let order = if OLDEST_FIRST.contains(&name) {
        " ORDER BY id"
    } else {
        ""
    };
    let sql = format!("SELECT {row} FROM {name}{order}");
    connection
        .each_text(sql, |row| {
            count();
            Ok::<_, CopyError>(writeln!(to, "{row}")?)
        })
        .await
}
