//! Brings a database's schema up to date, all steps in one transaction. Of two processes that start at once, the second waits for
//! the first. One that dies half-way has done nothing. Both engines can undo changes of a schema.

use sha2::{Digest, Sha256};

use super::engine::{Dialect, execute, fetch};
use super::rows::Columns;
use super::{Database, Error, statements};

/// A step that every database takes once, in order of its version.
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "first",
        sql: include_str!("../../migrations/0001_first.sql"),
    },
    Migration {
        version: 2,
        name: "prices",
        sql: include_str!("../../migrations/0002_prices.sql"),
    },
    Migration {
        version: 3,
        name: "negotiations",
        sql: include_str!("../../migrations/0003_negotiations.sql"),
    },
    Migration {
        version: 4,
        name: "answers",
        sql: include_str!("../../migrations/0004_answers.sql"),
    },
    Migration {
        version: 5,
        name: "leeway",
        sql: include_str!("../../migrations/0005_leeway.sql"),
    },
    Migration {
        version: 6,
        name: "resource-history",
        sql: include_str!("../../migrations/0006_resource_history.sql"),
    },
    Migration {
        version: 7,
        name: "ledger",
        sql: include_str!("../../migrations/0007_ledger.sql"),
    },
    Migration {
        version: 8,
        name: "pending",
        sql: include_str!("../../migrations/0008_pending.sql"),
    },
    Migration {
        version: 9,
        name: "node states",
        sql: include_str!("../../migrations/0009_node_states.sql"),
    },
    Migration {
        version: 10,
        name: "trail",
        sql: include_str!("../../migrations/0010_trail.sql"),
    },
    Migration {
        version: 11,
        name: "successions",
        sql: include_str!("../../migrations/0011_successions.sql"),
    },
    Migration {
        version: 12,
        name: "node reasons",
        sql: include_str!("../../migrations/0012_node_reasons.sql"),
    },
    Migration {
        version: 13,
        name: "notes",
        sql: include_str!("../../migrations/0013_notes.sql"),
    },
    Migration {
        version: 14,
        name: "origins",
        sql: include_str!("../../migrations/0014_origins.sql"),
    },
    Migration {
        version: 15,
        name: "pieces",
        sql: include_str!("../../migrations/0015_pieces.sql"),
    },
    Migration {
        version: 16,
        name: "pending offers",
        sql: include_str!("../../migrations/0016_pending_offers.sql"),
    },
    Migration {
        version: 17,
        name: "pruning",
        sql: include_str!("../../migrations/0017_pruning.sql"),
    },
    Migration {
        version: 18,
        name: "refusals",
        sql: include_str!("../../migrations/0018_refusals.sql"),
    },
    Migration {
        version: 19,
        name: "lost",
        sql: include_str!("../../migrations/0019_lost.sql"),
    },
    Migration {
        version: 20,
        name: "proposals",
        sql: include_str!("../../migrations/0020_proposals.sql"),
    },
    Migration {
        version: 21,
        name: "checkpoint",
        sql: include_str!("../../migrations/0021_checkpoint.sql"),
    },
    Migration {
        version: 22,
        name: "archive",
        sql: include_str!("../../migrations/0022_archive.sql"),
    },
    Migration {
        version: 23,
        name: "requests",
        sql: include_str!("../../migrations/0023_requests.sql"),
    },
];

pub(super) async fn run<D: Dialect>(database: &Database<D>) -> Result<(), Error> {
    let mut transaction = database.begin().await?;
    if let Some(lock) = D::LOCK_MIGRATIONS {
        execute::<D>(&mut transaction, lock, &[]).await?;
    }
    execute::<D>(&mut transaction, statements::CREATE_MIGRATIONS, &[]).await?;
    let applied = fetch::<D>(&mut transaction, statements::APPLIED_MIGRATIONS, &[]).await?;
    for (row, migration) in applied.iter().zip(MIGRATIONS) {
        let row = Columns::<D>::of(row);
        if row.integer("version")? != migration.version || row.text("checksum")? != checksum::<D>(migration) {
            return Err(Error::Schema(format!(
                "its step {} is another",
                migration.version
            )));
        }
    }
    if applied.len() > MIGRATIONS.len() {
        return Err(Error::Schema("a later version of bespeak has been here".into()));
    }
    for migration in &MIGRATIONS[applied.len()..] {
        D::script(&mut transaction, migration.sql).await?;
        if let Some(sql) = own::<D>(migration) {
            D::script(&mut transaction, sql).await?;
        }
        execute::<D>(
            &mut transaction,
            statements::RECORD_MIGRATION,
            &[
                migration.version.into(),
                migration.name.into(),
                checksum::<D>(migration).as_str().into(),
            ],
        )
        .await?;
    }
    Ok(transaction.commit().await?)
}

/// The part that the engine adds to a step.
fn own<D: Dialect>(migration: &Migration) -> Option<&'static str> {
    D::OWN_MIGRATIONS
        .iter()
        .find(|(version, _)| *version == migration.version)
        .map(|(_, sql)| *sql)
}

fn checksum<D: Dialect>(migration: &Migration) -> String {
    let mut digest = Sha256::new();
    digest.update(migration.sql);
    digest.update(own::<D>(migration).unwrap_or_default());
    super::hex(&digest.finalize())
}
