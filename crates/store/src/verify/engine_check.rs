//! The engine's own check of its files: rows that a page lost, and indexes that do not have what their tables have.

use super::findings::{FINDINGS_MAX_ROWS, Finding, Invariant};
use crate::engine::{Connection, Engine, Error, Result};
use crate::store::Store;

/// The answer of SQLite where nothing is wrong.
const OK: &str = "ok";
/// References to rows that are not there: connections of other programs need not keep them.
const SQLITE_REFERENCES: &str = "SELECT COUNT(*) || ' rows of ' || \"table\" || ' name rows of ' || parent || ' that are not there' \
    FROM pragma_foreign_key_check GROUP BY \"table\", parent ORDER BY \"table\", parent";

/// The check of a large table takes longer than a statement of the service may.
const POSTGRES_PATIENCE: &str = "SET statement_timeout = 0";
/// One row where the functions of `pg_amcheck` are in the database and this user may call them.
const HAS_AMCHECK: &str = "SELECT CAST('yes' AS TEXT) FROM pg_proc p JOIN pg_extension e ON e.extname = 'amcheck' \
    AND e.extnamespace = p.pronamespace WHERE p.proname IN ('verify_heapam', 'bt_index_check') \
    AND has_function_privilege(p.oid, 'EXECUTE') HAVING COUNT(DISTINCT p.proname) = 2";
const TABLES_BY_AMCHECK: &str = "SELECT CAST(c.relname AS TEXT) || ', block ' || f.blkno || ': ' || f.msg FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL verify_heapam(c.oid) f \
    WHERE c.relkind = 'r' AND n.nspname = current_schema() ORDER BY 1 LIMIT 1000";
const INDEXES: &str = "SELECT CAST(c.oid AS TEXT) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'i' AND a.amname = 'btree' \
    AND n.nspname = current_schema() ORDER BY c.relname";

/// Has the engine check its own files: `PRAGMA integrity_check`; on PostgreSQL what `pg_amcheck` does, where its functions are in the
/// database and may be called. Reads everything, for as long as that takes, and changes the session: for a process of its own.
///
/// # Errors
/// The errors of reading.
pub async fn check_by_engine(store: &Store) -> Result<Vec<Finding>> {
    let mut connection = store.database.readers.acquire().await?;
    let wrong = match connection.engine() {
        Engine::Sqlite => {
            let check = format!("PRAGMA integrity_check({FINDINGS_MAX_ROWS})");
            let mut said = connection.read_at_leisure(check).await?;
            said.retain(|line| line != OK);
            said
        }
        Engine::Postgres => check_by_amcheck(&mut connection).await?,
    };
    Ok(wrong.into_iter().map(finding_of_engine).collect())
}

/// The references that SQLite finds broken; PostgreSQL lets none come about.
pub(super) async fn find_broken_references(connection: &mut Connection) -> Result<Vec<Finding>> {
    if connection.engine() == Engine::Postgres {
        return Ok(Vec::new());
    }
    let broken = connection.read_at_leisure(SQLITE_REFERENCES.to_owned()).await?;
    Ok(broken.into_iter().map(finding_of_engine).collect())
}

async fn check_by_amcheck(connection: &mut Connection) -> Result<Vec<String>> {
    if connection
        .read_at_leisure(HAS_AMCHECK.to_owned())
        .await?
        .is_empty()
    {
        return Ok(Vec::new());
    }
    connection.script(POSTGRES_PATIENCE).await?;
    let mut wrong = connection.read_at_leisure(TABLES_BY_AMCHECK.to_owned()).await?;
    for index in connection.read_at_leisure(INDEXES.to_owned()).await? {
        // The number of a relation, as the server has written it. Its heap is compared, too.
        let check = format!("SELECT CAST(bt_index_check({index}, true) AS TEXT)");
        match connection.read_at_leisure(check).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(found)) if found.code().is_some_and(|code| code.starts_with("XX")) => {
                wrong.push(found.message().to_owned());
            }
            Err(why) => return Err(Error::from(why)),
        }
    }
    Ok(wrong)
}

fn finding_of_engine(what: String) -> Finding {
    Finding::new(Invariant::Readable, "database".to_owned(), what)
}
