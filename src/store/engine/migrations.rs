//! Brings a database's schema up to date, all steps in one transaction. Of two processes that start at once, the second waits for
//! the first. One that dies half-way has done nothing. Both engines can undo changes of a schema.

use sha2::{Digest, Sha256};

use super::connection::{Engine, Pool};
use super::error::Error;
use super::rows::hex;
use super::statements;
use super::transaction::Transaction;

/// Makes other processes that migrate a Postgres wait until the transaction ends; on SQLite its beginning does so.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7018974217)";

/// The steps that every database takes once: their names and texts, in order of their versions, which count from 1.
const MIGRATIONS: &[(&str, &str)] = &[
    ("first", include_str!("../../../migrations/0001_first.sql")),
    ("prices", include_str!("../../../migrations/0002_prices.sql")),
    (
        "negotiations",
        include_str!("../../../migrations/0003_negotiations.sql"),
    ),
    ("answers", include_str!("../../../migrations/0004_answers.sql")),
    ("leeway", include_str!("../../../migrations/0005_leeway.sql")),
    (
        "resource-history",
        include_str!("../../../migrations/0006_resource_history.sql"),
    ),
    ("ledger", include_str!("../../../migrations/0007_ledger.sql")),
    ("pending", include_str!("../../../migrations/0008_pending.sql")),
    (
        "node states",
        include_str!("../../../migrations/0009_node_states.sql"),
    ),
    ("trail", include_str!("../../../migrations/0010_trail.sql")),
    (
        "successions",
        include_str!("../../../migrations/0011_successions.sql"),
    ),
    (
        "node reasons",
        include_str!("../../../migrations/0012_node_reasons.sql"),
    ),
    ("notes", include_str!("../../../migrations/0013_notes.sql")),
    ("origins", include_str!("../../../migrations/0014_origins.sql")),
    ("pieces", include_str!("../../../migrations/0015_pieces.sql")),
    (
        "pending offers",
        include_str!("../../../migrations/0016_pending_offers.sql"),
    ),
    ("pruning", include_str!("../../../migrations/0017_pruning.sql")),
    ("refusals", include_str!("../../../migrations/0018_refusals.sql")),
    ("lost", include_str!("../../../migrations/0019_lost.sql")),
    (
        "proposals",
        include_str!("../../../migrations/0020_proposals.sql"),
    ),
    (
        "checkpoint",
        include_str!("../../../migrations/0021_checkpoint.sql"),
    ),
    ("archive", include_str!("../../../migrations/0022_archive.sql")),
    ("requests", include_str!("../../../migrations/0023_requests.sql")),
];

/// What Postgres adds to the first step.
const POSTGRES_FIRST: &str = include_str!("../../../migrations/postgres/0001_first.sql");

pub(in crate::store) async fn run(writers: &Pool) -> Result<(), Error> {
    let mut transaction = Transaction::begin(writers).await?;
    let engine = transaction.engine();
    if engine == Engine::Postgres {
        transaction.script(POSTGRES_LOCK).await?;
    }
    transaction.execute(statements::CREATE_MIGRATIONS, &[]).await?;
    let applied = transaction.read(statements::APPLIED_MIGRATIONS, &[], |row| {
        Ok((row.integer("version")?, row.text("checksum")?))
    });
    let applied = applied.await?;
    let steps = MIGRATIONS.iter().zip(1_i64..);
    for (index, (&(name, sql), version)) in steps.enumerate() {
        let own = ((engine, version) == (Engine::Postgres, 1)).then_some(POSTGRES_FIRST);
        let mut digest = Sha256::new();
        digest.update(sql);
        digest.update(own.unwrap_or_default());
        let checksum = hex(&digest.finalize());
        match applied.get(index) {
            Some((stored, sum)) if (*stored, sum) == (version, &checksum) => {}
            Some(_) => return Err(Error::Schema(format!("its step {version} is another"))),
            None => {
                transaction.script(sql).await?;
                if let Some(own) = own {
                    transaction.script(own).await?;
                }
                let step = [version.into(), name.into(), checksum.into()];
                transaction.execute(statements::RECORD_MIGRATION, &step).await?;
            }
        }
    }
    if applied.len() > MIGRATIONS.len() {
        return Err(Error::Schema("a later version of bespeak has been here".into()));
    }
    Ok(transaction.commit().await?)
}
