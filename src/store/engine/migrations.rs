//! Brings a database's schema up to date, all steps in one transaction. Of two processes that start at once, the second waits for
//! the first. One that dies half-way has done nothing. Both engines can undo changes of a schema.

use sha2::{Digest, Sha256};

use super::connection::{Connection, Engine, Pool};
use super::error::{Error, Result};
use super::rows::hex;
use super::statements;
use super::transaction::Transaction;

/// Makes other processes that migrate a Postgres wait until the transaction ends; on SQLite its beginning does so.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7018974217)";

/// The texts of migrations, each with its name.
macro_rules! migrations {
    ($($name:literal in $file:literal,)+) => {
        &[$(($name, include_str!(concat!("../../../migrations/", $file, ".sql")))),+]
    };
}

/// The steps that every database takes once: their names and texts, in order of their versions, which count from 1.
const MIGRATIONS: &[(&str, &str)] = migrations! {
    "first" in "0001_first",
    "prices" in "0002_prices",
    "negotiations" in "0003_negotiations",
    "answers" in "0004_answers",
    "leeway" in "0005_leeway",
    "resource-history" in "0006_resource_history",
    "ledger" in "0007_ledger",
    "pending" in "0008_pending",
    "node states" in "0009_node_states",
    "trail" in "0010_trail",
    "successions" in "0011_successions",
    "node reasons" in "0012_node_reasons",
    "notes" in "0013_notes",
    "origins" in "0014_origins",
    "pieces" in "0015_pieces",
    "pending offers" in "0016_pending_offers",
    "pruning" in "0017_pruning",
    "refusals" in "0018_refusals",
    "lost" in "0019_lost",
    "proposals" in "0020_proposals",
    "checkpoint" in "0021_checkpoint",
    "archive" in "0022_archive",
    "requests" in "0023_requests",
    "transfers" in "0024_transfers",
    "resources" in "0025_resources",
    "registrations" in "0026_registrations",
    "past" in "0027_past",
    "peers" in "0028_peers",
    "replicas" in "0029_replicas",
};
/// What Postgres adds to the first step.
const POSTGRES_FIRST: &str = include_str!("../../../migrations/postgres/0001_first.sql");

/// The newest version of the schema, which is the number of steps.
pub(in crate::store) const NEWEST: usize = MIGRATIONS.len();

pub(in crate::store) async fn run_migrations(writers: &Pool) -> Result<()> {
    let mut transaction = Transaction::begin(writers).await?;
    wait_for_other_migrations(&mut transaction).await?;
    migrate_up_to(&mut transaction, NEWEST).await?;
    Ok(transaction.commit().await?)
}

/// Waits for other processes that migrate, and makes later ones wait until the transaction ends.
pub(in crate::store) async fn wait_for_other_migrations(transaction: &mut Transaction) -> Result<()> {
    if transaction.engine() == Engine::Postgres {
        transaction.script(POSTGRES_LOCK).await?;
    }
    Ok(())
}

/// Applies the steps that are missing, up to the one of this version.
pub(in crate::store) async fn migrate_up_to(connection: &mut Connection, version: usize) -> Result<()> {
    connection.execute(statements::CREATE_MIGRATIONS, &[]).await?;
    let applied = applied_steps(connection).await?;
    let steps = MIGRATIONS.iter().zip(1_i64..).take(version);
    for (&(name, sql), version) in steps.skip(applied) {
        connection.script(sql).await?;
        if let Some(own) = own_part(connection.engine(), version) {
            connection.script(own).await?;
        }
        let step = [
            version.into(),
            name.into(),
            checksum(sql, connection.engine(), version).into(),
        ];
        connection.execute(statements::RECORD_MIGRATION, &step).await?;
    }
    Ok(())
}

/// How many steps have been applied: each is the step of this version.
pub(in crate::store) async fn applied_steps(connection: &mut Connection) -> Result<usize> {
    let applied = connection.read(statements::APPLIED_MIGRATIONS, &[], |row| {
        Ok((row.integer("version")?, row.text("checksum")?))
    });
    let applied = applied.await?;
    for (stored, (&(_, sql), version)) in applied.iter().zip(MIGRATIONS.iter().zip(1_i64..)) {
        if *stored != (version, checksum(sql, connection.engine(), version)) {
            return Err(Error::Schema(format!("its step {version} is another")));
        }
    }
    if applied.len() > MIGRATIONS.len() {
        return Err(Error::Schema("a later version of bespeak has been here".into()));
    }
    Ok(applied.len())
}

/// The part of a step that only one engine has.
fn own_part(engine: Engine, version: i64) -> Option<&'static str> {
    ((engine, version) == (Engine::Postgres, 1)).then_some(POSTGRES_FIRST)
}

fn checksum(sql: &str, engine: Engine, version: i64) -> String {
    let mut digest = Sha256::new();
    digest.update(sql);
    digest.update(own_part(engine, version).unwrap_or_default());
    hex(&digest.finalize())
}
