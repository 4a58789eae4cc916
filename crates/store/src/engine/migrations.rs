//! Brings a database's schema up to date, all steps in one transaction. Of two processes that start at once, the second waits for
//! the first. One that dies half-way has done nothing. Both engines can undo changes of a schema.
//!
//! Where several processes serve from one database, those of the version before go on beside the first of a new one. So a step adds
//! what its version needs, and leaves what the version before uses. A **contract step** removes the old parts later; its name begins
//! with `contract `. The last steps of a version may be such: they are put off until no process is there that does not
//! know them ([`finish_migrations`]).

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::connection::{Connection, Engine, Pool};
use super::error::{Error, Result, is_lock_timeout_error};
use super::hex::hex;
use super::statements;
use super::transaction::Transaction;

/// Makes other processes that migrate a Postgres wait until the transaction ends; on SQLite its beginning does so.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7018974217)";

/// A change of the schema waits for no lock longer than this: other processes wait behind it.
const POSTGRES_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '2s'";
/// How long a start tries to get such locks, and its pause between two tries.
const LOCKS_WAIT: Duration = Duration::from_mins(5);
const LOCKS_PAUSE: Duration = Duration::from_millis(500);
/// How many sessions there are of processes that know fewer steps than this.
const OLDER_SESSIONS: &str = "SELECT COUNT(*) AS older FROM pg_stat_activity a WHERE a.datname = current_database() \
    AND a.application_name LIKE 'bespeak %' AND NOT EXISTS (SELECT 1 FROM replicas r WHERE r.schema_version >= $1 \
    AND r.name = SPLIT_PART(a.application_name, ' ', 2))";
/// How the name of a step begins that takes away what the version before uses.
const CONTRACT: &str = "contract ";

/// A step: its name and its text.
type MigrationStep = (&'static str, &'static str);

/// The texts of migrations, each with its name.
macro_rules! migrations {
    ($($name:literal in $file:literal,)+) => {
        &[$(($name, include_str!(concat!("../../../../migrations/", $file, ".sql")))),+]
    };
}

/// The steps that every database takes once: their names and texts, in order of their versions, which count from 1.
const MIGRATIONS: &[MigrationStep] = migrations! {
    "first" in "0001_first",
};
/// What Postgres adds to the first step.
const POSTGRES_FIRST: &str = include_str!("../../../../migrations/postgres/0001_first.sql");

/// The newest version of the schema, which is the number of steps.
pub(crate) const NEWEST: usize = MIGRATIONS.len();

/// Why a database is refused that has another layout under the same number.
const UNRELEASED: &str = "it was made by a version before the first release; start with an empty data folder or database: \
    nothing in this one has been changed";

/// How many steps this version needs: all but the contract steps at the end.
pub(crate) fn needed_steps() -> usize {
    migrations_needed_of(MIGRATIONS)
}

/// The sum of the texts up to a version, without what only one engine has; none where this program does not know the version.
pub(crate) fn sum_of_migration_steps(version: usize) -> Option<String> {
    let mut digest = Sha256::new();
    for (_, sql) in MIGRATIONS.get(..version)? {
        digest.update(sql);
    }
    Some(hex(&digest.finalize()))
}

fn migrations_needed_of(steps: &[MigrationStep]) -> usize {
    let needed = steps.iter().rposition(|(name, _)| !name.starts_with(CONTRACT));
    needed.map_or(0, |last| last + 1)
}

/// Applies the steps that this version needs.
pub(crate) async fn run_migrations(writers: &Pool) -> Result<()> {
    let began = Instant::now();
    loop {
        match try_migrations(writers).await {
            Err(Error::Unavailable(why)) if is_lock_timeout_error(&why) && began.elapsed() < LOCKS_WAIT => {
                tracing::info!("a change of the schema waits for what others do in the database");
                tokio::time::sleep(LOCKS_PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn try_migrations(writers: &Pool) -> Result<()> {
    let mut transaction = Transaction::begin(writers).await?;
    wait_for_other_migrations(&mut transaction).await?;
    let needed = match transaction.engine() {
        // It has one process.
        Engine::Sqlite => NEWEST,
        Engine::Postgres => {
            transaction.script(POSTGRES_LOCK_WAIT).await?;
            needed_steps()
        }
    };
    transaction.execute(statements::CREATE_MIGRATIONS, &[]).await?;
    let applied = applied_steps(&mut transaction).await?;
    let contract = last_contract_migration(MIGRATIONS, applied, needed);
    if let Some(contract) = contract
        // The first step makes the table in which processes say what they know.
        && applied > 0
        && has_process_before_migration(&mut transaction, contract).await?
    {
        return Err(Error::Schema(
            "processes of the version before the last still use it: upgrade them by one version first".into(),
        ));
    }
    migrate_up_to(&mut transaction, needed).await?;
    Ok(transaction.commit().await?)
}

/// The version of the last contract step among those that are missing.
fn last_contract_migration(steps: &[MigrationStep], applied: usize, needed: usize) -> Option<usize> {
    let missing = steps.get(applied..needed)?;
    let last = missing.iter().rposition(|(name, _)| name.starts_with(CONTRACT))?;
    Some(applied + last + 1)
}

/// Whether a process is there that does not know the step of this version. One that has been started since the steps before it were
/// applied knows it.
pub(crate) async fn has_process_before_migration(
    connection: &mut Connection,
    version: usize,
) -> Result<bool> {
    if connection.engine() == Engine::Sqlite {
        return Ok(false);
    }
    let known = [i64::try_from(version).unwrap_or(i64::MAX).into()];
    let older = connection.read(OLDER_SESSIONS, &known, |row| row.integer("older"));
    Ok(older.await?.iter().any(|older| *older > 0))
}

/// Applies the contract steps that are left, unless a process of an earlier version is there; whether it has.
pub(crate) async fn finish_migrations(writers: &Pool) -> Result<bool> {
    let mut transaction = Transaction::begin(writers).await?;
    wait_for_other_migrations(&mut transaction).await?;
    transaction.script(POSTGRES_LOCK_WAIT).await?;
    let is_alone = !has_process_before_migration(&mut transaction, NEWEST).await?;
    if is_alone {
        migrate_up_to(&mut transaction, NEWEST).await?;
    }
    transaction.commit().await?;
    Ok(is_alone)
}

/// Waits for other processes that migrate, and makes later ones wait until the transaction ends.
pub(crate) async fn wait_for_other_migrations(transaction: &mut Transaction) -> Result<()> {
    if transaction.engine() == Engine::Postgres {
        transaction.script(POSTGRES_LOCK).await?;
    }
    Ok(())
}

/// Applies the steps that are missing, up to the one of this version.
pub(crate) async fn migrate_up_to(connection: &mut Connection, version: usize) -> Result<()> {
    apply_migration_steps(connection, MIGRATIONS, version).await
}

async fn apply_migration_steps(
    connection: &mut Connection,
    steps: &[MigrationStep],
    version: usize,
) -> Result<()> {
    connection.execute(statements::CREATE_MIGRATIONS, &[]).await?;
    let applied = migrations_applied_of(connection, steps).await?;
    let missing = steps.iter().zip(1_i64..).take(version).skip(applied);
    for (&(name, sql), version) in missing {
        connection.script(sql).await?;
        if let Some(own) = own_part(connection.engine(), version) {
            connection.script(own).await?;
        }
        let step = [
            version.into(),
            name.into(),
            checksum_of_migration(sql, connection.engine(), version).into(),
        ];
        connection.execute(statements::RECORD_MIGRATION, &step).await?;
    }
    Ok(())
}

/// How many steps have been applied: each is the step of this version.
pub(crate) async fn applied_steps(connection: &mut Connection) -> Result<usize> {
    migrations_applied_of(connection, MIGRATIONS).await
}

async fn migrations_applied_of(connection: &mut Connection, steps: &[MigrationStep]) -> Result<usize> {
    let applied = connection.read(statements::APPLIED_MIGRATIONS, &[], |row| {
        Ok((row.integer("version")?, row.text("checksum")?))
    });
    let applied = applied.await?;
    for (stored, (&(_, sql), version)) in applied.iter().zip(steps.iter().zip(1_i64..)) {
        if *stored != (version, checksum_of_migration(sql, connection.engine(), version)) {
            return Err(Error::Schema(UNRELEASED.into()));
        }
    }
    if applied.len() > steps.len() {
        return Err(Error::Schema("a later version of bespeak has been here".into()));
    }
    Ok(applied.len())
}

/// The part of a step that only one engine has.
fn own_part(engine: Engine, version: i64) -> Option<&'static str> {
    ((engine, version) == (Engine::Postgres, 1)).then_some(POSTGRES_FIRST)
}

fn checksum_of_migration(sql: &str, engine: Engine, version: i64) -> String {
    let mut digest = Sha256::new();
    digest.update(sql);
    digest.update(own_part(engine, version).unwrap_or_default());
    hex(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::connect::connect_to_database;
    use crate::engine::files::IfMissing;
    use crate::engine::hosts::APPLICATION;

    #[tokio::test]
    async fn a_database_gets_the_steps_that_it_lacks_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("bespeak.db").display());
        let database = connect_to_database(&url, APPLICATION, IfMissing::Create)
            .await
            .unwrap();
        let steps: [MigrationStep; 4] = [
            (
                "old",
                "CREATE TABLE t (a BIGINT NOT NULL); INSERT INTO t VALUES (1);",
            ),
            (
                "new",
                "ALTER TABLE t ADD COLUMN b BIGINT; UPDATE t SET b = a + 1;",
            ),
            ("contract new", "ALTER TABLE t DROP COLUMN a;"),
            (
                "wrong",
                "INSERT INTO t VALUES (3); INSERT INTO missing VALUES (3);",
            ),
        ];
        let mut transaction = Transaction::begin(&database.writers).await.unwrap();
        for (known, version) in [(1, 1), (3, 2), (3, 2), (3, 3)] {
            apply_migration_steps(&mut transaction, &steps[..known], version)
                .await
                .unwrap();
            assert_eq!(
                migrations_applied_of(&mut transaction, &steps).await.unwrap(),
                version
            );
        }
        transaction.commit().await.unwrap();
        let mut transaction = Transaction::begin(&database.writers).await.unwrap();
        let refused = migrations_applied_of(&mut transaction, &steps[..2])
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("a later version"), "{refused}");
        let edited = [("old", "CREATE TABLE t (a BIGINT);"), steps[1], steps[2]];
        let refused = migrations_applied_of(&mut transaction, &edited)
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("before the first release"),
            "{refused}"
        );
        apply_migration_steps(&mut transaction, &steps, 4)
            .await
            .unwrap_err();
        drop(transaction);
        let mut transaction = Transaction::begin(&database.writers).await.unwrap();
        assert_eq!(migrations_applied_of(&mut transaction, &steps).await.unwrap(), 3);
        let kept = transaction.read("SELECT b FROM t", &[], |row| row.integer("b"));
        assert_eq!(kept.await.unwrap(), [2]);
    }

    #[test]
    fn the_contract_steps_at_the_end_of_a_version_are_not_needed() {
        let steps: [MigrationStep; 6] =
            ["a", "contract a", "b", "c", "contract b", "contract c"].map(|name| (name, ""));
        assert_eq!(migrations_needed_of(&steps), 4);
        assert_eq!(migrations_needed_of(&steps[..2]), 1);
        assert_eq!(migrations_needed_of(&steps[1..2]), 0);
        // One in between has to be applied, where it has not been.
        assert_eq!(last_contract_migration(&steps, 1, 4), Some(2));
        assert_eq!(last_contract_migration(&steps, 0, 6), Some(6));
        assert_eq!(last_contract_migration(&steps, 2, 4), None);
        assert_eq!(last_contract_migration(&steps, 4, 4), None);
        assert_eq!(last_contract_migration(&steps, 5, 4), None, "all were applied");
    }
}
