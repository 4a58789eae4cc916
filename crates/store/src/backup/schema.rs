//! The tables as the database has them, and the order in which they are copied.

use std::collections::BTreeMap;

use super::CopyError;
use crate::engine::bulk::Kind;
use crate::engine::{Connection, Engine, Error, Result};

/// The tables of a backup: rows stand after those that they refer to.
pub(super) const TABLES: [&str; 31] = [
    "resources",
    "capacities",
    "template_versions",
    "agreements",
    "agreement_documents",
    "moves",
    "events",
    "node_bindings",
    "executions",
    "idempotency",
    "lease",
    "api_keys",
    "negotiations",
    "offers",
    "pending_agreements",
    "resource_samples",
    "resource_hours",
    "execution_hours",
    "ledger",
    "ledger_days",
    "call_backs",
    "node_states",
    "successions",
    "notes",
    "archived_documents",
    "archived_events",
    "archived_bindings",
    "registrations",
    "party_events",
    "spendings",
    "peer_agreements",
];
/// The tables that no backup has. The files of parties are in it as files, on either engine: a service that starts on the restored
/// folder stores them in its database again.
const LEFT_OUT: [&str; 7] = [
    "schema_migrations",
    "sessions",
    "party_files",
    "party_file_parts",
    "party_file_changes",
    "replicas",
    "resource_hosts",
];

/// Tables whose rows refer to older ones of the same table: they are copied in the order of their ids.
pub(super) const OLDEST_FIRST: [&str; 2] = ["agreements", "offers"];

const SQLITE_COLUMNS: &str = "SELECT m.name AS of_table, c.name AS of_column, c.type AS kind FROM sqlite_master AS m \
    JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, c.cid";
const POSTGRES_COLUMNS: &str = "SELECT CAST(c.table_name AS TEXT) AS of_table, CAST(c.column_name AS TEXT) AS of_column, \
    CAST(c.data_type AS TEXT) AS kind FROM information_schema.columns AS c JOIN information_schema.tables AS t \
    ON t.table_schema = c.table_schema AND t.table_name = c.table_name \
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position";

/// A large table takes longer than one of the service's statements may.
const POSTGRES_PATIENCE: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";

/// The columns of each table with the types that they were declared with.
pub(super) type Tables = BTreeMap<String, Vec<(String, String)>>;

/// Reads the tables that are there.
pub(super) async fn read_tables_of_schema(connection: &mut Connection) -> Result<Tables> {
    let sql = match connection.engine() {
        Engine::Sqlite => SQLITE_COLUMNS,
        Engine::Postgres => POSTGRES_COLUMNS,
    };
    let columns = connection.read(sql, &[], |row| {
        Ok((row.text("of_table")?, (row.text("of_column")?, row.text("kind")?)))
    });
    let mut tables = Tables::new();
    for (table, column) in columns.await? {
        tables.entry(table).or_default().push(column);
    }
    Ok(tables)
}

/// The tables that a backup of this schema has.
pub(super) fn copied_tables_of_schema(mut tables: Tables) -> Tables {
    tables.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    tables
}

/// The kind of a column.
pub(super) fn kind_of_schema_column(declared: &str) -> Result<Kind> {
    match declared.to_ascii_lowercase().as_str() {
        "bigint" => Ok(Kind::Integer),
        "text" => Ok(Kind::Text),
        "uuid" => Ok(Kind::Id),
        other => Err(Error::Schema(format!("it has a column of the type {other:?}"))),
    }
}

/// Lets statements of this transaction take their time.
pub(super) async fn be_patient(connection: &mut Connection) -> Result<(), CopyError> {
    if connection.engine() == Engine::Postgres {
        connection.script(POSTGRES_PATIENCE).await?;
    }
    Ok(())
}
