//! The store itself: opening it, and the ways to read and to write that everything else here uses.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::batch::known_trail::KnownTrail;
use super::engine::bulk::ALL_BULK;
use super::engine::connect::{Database, DatabasePlace, connect_to_database};
use super::engine::durability::weak_durability_settings;
use super::engine::files::IfMissing;
use super::engine::hosts::APPLICATION;
use super::engine::transaction::Transaction;
use super::engine::{Columns, Engine, Error, Result, Value, migrations, statements};
use super::records::recorded_moves::ReadMoves;

/// A server that takes longer than this for a batch, or for a COMMIT, counts as gone. It is shorter than the server's own limit: a
/// COMMIT that waits for a standby and is cut off there is done on this server alone, and reported as done.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Writes SQLite's log into the file and empties it, once no other transaction reads or writes.
const WRITE_LOG_INTO_FILE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// A database that is open and has our schema. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    pub(super) database: Arc<Database>,
    /// The end of the audit trail as this process knows it, and what was found that stops all decisions.
    pub(super) known: Arc<KnownTrail>,
    /// The recorded moves that this process has read.
    pub(super) moves: Arc<ReadMoves>,
}

impl Store {
    /// Opens `postgres://…`, `postgresql://…` or `sqlite:PATH`, and brings its schema up to date. A file that is
    /// missing is created, readable by its owner only; its folder must exist. Of several servers that an address names, the
    /// primary is taken, now and later.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Schema`] where a later version has been here, [`Error::Unavailable`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_named(url, APPLICATION).await
    }

    /// Opens a Postgres as the process of this name, so that others can see which process leads; as [`Store::open`] otherwise.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub async fn open_as(url: &str, replica: &str) -> Result<Self> {
        Self::open_named(url, &format!("{APPLICATION} {replica}")).await
    }

    async fn open_named(url: &str, application: &str) -> Result<Self> {
        Self::open_with(url, application, IfMissing::Create).await
    }

    /// Opens a database that is there: a SQLite file that is missing is a mistake.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub async fn open_existing(url: &str) -> Result<Self> {
        Self::open_with(url, APPLICATION, IfMissing::Refuse).await
    }

    async fn open_with(url: &str, application: &str, missing: IfMissing) -> Result<Self> {
        let store = Self::of(connect_to_database(url, application, missing).await?);
        migrations::run_migrations(&store.database.writers).await?;
        Ok(store)
    }

    /// The database that is there, whatever its schema is.
    pub(super) async fn open_without_migrations(url: &str) -> Result<Self> {
        Ok(Self::of(
            connect_to_database(url, APPLICATION, IfMissing::Refuse).await?,
        ))
    }

    fn of(database: Database) -> Self {
        Self {
            database: Arc::new(database),
            known: Arc::default(),
            moves: Arc::default(),
        }
    }

    /// The engine that it runs on.
    pub fn kind(&self) -> Engine {
        match self.database.place {
            DatabasePlace::File { .. } => Engine::Sqlite,
            DatabasePlace::Server(_) => Engine::Postgres,
        }
    }

    /// Has the engine prepare every statement that the store can make, so that one that does not fit the schema is
    /// found before it is needed.
    ///
    /// # Errors
    /// [`Error::Schema`] with the statement's name and the message of the engine.
    pub async fn check_statements(&self) -> Result<()> {
        let mut connection = self.database.writers.acquire().await?;
        let bulk = ALL_BULK
            .iter()
            .map(|bulk| (bulk.name, bulk.statement(self.kind())));
        for (name, sql) in statements::ALL.iter().copied().chain(bulk) {
            connection
                .prepare(sql)
                .await
                .map_err(|error| Error::Schema(format!("statement {name}: {error}")))?;
        }
        Ok(())
    }

    /// The settings of the database by which something that was acknowledged may be lost, each in words that say what to do.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn weak_settings(&self) -> Result<Vec<&'static str>> {
        weak_durability_settings(&mut self.database.readers.acquire().await?).await
    }

    /// Whether contract steps of the schema are left: what processes of an earlier version may still need is there. A later
    /// version may have been here meanwhile: none is left then for this one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn has_unfinished_steps(&self) -> Result<bool> {
        let applied = self.read(statements::APPLIED_MIGRATIONS, &[], |_| Ok(()));
        Ok(applied.await?.len() < migrations::NEWEST)
    }

    /// Whether a process is on the database that knows fewer steps of the schema than this; never on SQLite, which has one process.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn has_older_process(&self, steps: usize) -> Result<bool> {
        let mut connection = self.database.readers.acquire().await?;
        migrations::has_process_before_migration(&mut connection, steps).await
    }

    /// Applies the contract steps that are left, unless a process of an earlier version is there. Whether it has.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where others use the tables, too: a later try may succeed.
    pub async fn finish_migrations(&self) -> Result<bool> {
        migrations::finish_migrations(&self.database.writers).await
    }

    /// Closes every connection once it is returned. Afterwards everything fails with [`Error::Unavailable`]. The last process that
    /// closes a SQLite file leaves it whole, without a log beside it.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Writes the log of a SQLite file into the file, and closes it: from then on the one file is the whole database. Does nothing on a
    /// server.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the log stays, and belongs to the file. [`Error::Damaged`] where the file may be another one by now: it is
    /// left as it is.
    pub async fn make_whole(&self) -> Result<()> {
        if self.kind() == Engine::Sqlite {
            self.known.refuse_damaged()?;
            self.database.confirm_files()?;
            let mut connection = self.database.writers.acquire().await?;
            connection.script(WRITE_LOG_INTO_FILE).await?;
            drop(connection);
            self.close().await;
        }
        Ok(())
    }

    /// Writes what the open files of a SQLite database have to a new file beside it, where they were removed or replaced under this
    /// process: all that it has stored is in it. Answers with its name; with none on a server.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the file cannot be written.
    pub async fn rescue(&self) -> Result<Option<PathBuf>> {
        match &self.database.place {
            DatabasePlace::File { files, .. } => files.rescue().await.map(Some),
            DatabasePlace::Server(_) => Ok(None),
        }
    }

    /// Keeps the end of the audit trail in a file from now on, as this process knows it to be stored. A later process compares it with the
    /// trail ([`Store::verify_known_lines`]).
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn keep_trail_end(&self, path: &Path) -> io::Result<()> {
        self.known.keep_in(path)
    }

    /// What was found that stops all decisions by this process, once there is something: the database has gone back, or its files were
    /// removed.
    pub fn damage(&self) -> watch::Receiver<Option<String>> {
        self.known.damage()
    }

    /// The result as it is. All listeners hear of its error where that is [`Error::Damaged`].
    pub(super) fn told<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(Error::Damaged(what)) = &result {
            self.known.note_damage(what);
        }
        result
    }

    /// Reads the rows of one statement.
    pub(super) async fn read<T: Send>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let readers = &self.database.readers;
        let mut connection = readers.acquire().await?;
        readers.answer(None, connection.read(sql, values, one)).await?
    }

    /// Reads the only row of one statement, if there is one.
    pub(super) async fn read_one<T: Send>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Option<T>> {
        Ok(self.read(sql, values, one).await?.pop())
    }

    /// Reads all rows by the first of two statements, or only those of one name by the second ([`super::engine::connection::Connection::read_of`]).
    pub(super) async fn read_all_or_named<T: Send>(
        &self,
        name: Option<&str>,
        values: &[Value<'_>],
        statements: [&'static str; 2],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let readers = &self.database.readers;
        let mut connection = readers.acquire().await?;
        readers
            .answer(None, connection.read_of(name, values, statements, one))
            .await?
    }

    /// Runs one statement that is a transaction by itself, and says how many rows it changed.
    pub(super) async fn write(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64> {
        let writers = &self.database.writers;
        let mut connection = writers.acquire().await?;
        Ok(writers.answer(None, connection.execute(sql, values)).await??)
    }

    /// Begins a transaction that writes.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction> {
        Transaction::begin(&self.database.writers).await
    }

    /// Begins a transaction that reads one state of the database, whichever writes happen meanwhile.
    pub(super) async fn snapshot(&self) -> sqlx::Result<Transaction> {
        Transaction::snapshot(&self.database.readers).await
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("Store")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}
