//! Opening either engine from its address, with the settings that our promises rest on.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Sqlite};

use super::address::parse_postgres_address;
use super::connection::Pool;
use super::error::{Error, Result, is_contention_error};
use super::files::{DatabaseFiles, IfMissing, create_database_file};
use super::hosts::{Hosts, NO_PRIMARY};
use super::sessions::Sessions;

/// Readers of a SQLite file: more than the cores of a small machine gain nothing.
const SQLITE_READERS: u32 = 4;
/// How long a caller waits for a free connection before it gets the error that the database is not available.
const ACQUIRE_WAIT: Duration = Duration::from_secs(5);
/// How long a writer waits for another process's transaction on the same SQLite file.
const SQLITE_BUSY_WAIT: Duration = Duration::from_secs(5);
/// Rows that a reading connection has ready: half of what the checks read at a time. With fewer its thread sleeps and is woken for each
/// row where rows take longer to use than to read; each takes some kilobytes.
const SQLITE_ROWS_READY: usize = 500;
/// Pages that a reading connection keeps; a negative number is in KiB: the system keeps the file's pages already, once for all.
const SQLITE_READER_CACHE: &str = "-256";
/// The longest a SQLite write-ahead log stays after a checkpoint, in bytes.
const SQLITE_LOG_BYTES: &str = "67108864";

/// Limits that Postgres enforces on our sessions, so that none of them waits or holds a lock without end. The keep-alives let the
/// server notice within half a minute that a decider's machine has gone, and release its lease.
const POSTGRES_SESSION: [(&str, &str); 9] = [
    ("client_min_messages", "warning"),
    // Its estimates for large tables make it compile statements for longer than they take.
    ("jit", "off"),
    // A page of a party by start would read and sort all that it has by id, rather than begin where the index by start says.
    ("enable_incremental_sort", "off"),
    ("statement_timeout", "60s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];
/// How long to wait before a server that cannot be reached is tried again, at the start.
const POSTGRES_OPEN_PAUSE: Duration = Duration::from_millis(50);

/// How long to wait before a SQLite file that others are just opening is tried again.
const SQLITE_OPEN_PAUSE: Duration = Duration::from_millis(20);

/// A database that is open.
pub(crate) struct Database {
    /// One connection on SQLite, where a second could only wait for it.
    pub(crate) writers: Pool,
    /// On Postgres the same as the writers.
    pub(crate) readers: Pool,
    pub(crate) place: DatabasePlace,
}

/// Where the database is.
pub(crate) enum DatabasePlace {
    /// A file, with another one beside it to lock.
    File {
        lock: PathBuf,
        files: Box<DatabaseFiles>,
    },
    /// A server, or several that replicate each other.
    Server(Arc<Hosts>),
}

impl Database {
    /// Closes every connection once it is returned.
    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writers.close().await;
        if let DatabasePlace::File { files, .. } = &self.place {
            files.close().await;
        }
    }

    /// Makes sure that the files that are open are those of the database; on a server there is nothing to look at.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn confirm_files(&self) -> Result<()> {
        match &self.place {
            DatabasePlace::File { files, .. } => files.confirm(),
            DatabasePlace::Server(_) => Ok(()),
        }
    }
}

/// Opens a database; sessions on a server have the name `application`.
pub(crate) async fn connect_to_database(
    url: &str,
    application: &str,
    missing: IfMissing,
) -> Result<Database> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return connect_to_sqlite(Path::new(path.strip_prefix("//").unwrap_or(path)), missing).await;
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return connect_to_postgres(url, application).await;
    }
    // The address is not repeated: it may hold a password.
    Err(Error::Address(
        "a database address begins with postgres://, postgresql:// or sqlite:".into(),
    ))
}

async fn connect_to_sqlite(path: &Path, missing: IfMissing) -> Result<Database> {
    let path = create_database_file(path, missing).map_err(|error| {
        Error::Address(format!(
            "cannot open the database file {}: {error}",
            path.display()
        ))
    })?;
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(SQLITE_BUSY_WAIT);
    let pool = || {
        PoolOptions::<Sqlite>::new()
            .acquire_timeout(ACQUIRE_WAIT)
            .idle_timeout(None)
            .max_lifetime(None)
    };
    let writing = options
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("journal_size_limit", SQLITE_LOG_BYTES);
    let began = Instant::now();
    let writers = loop {
        match pool().max_connections(1).connect_with(writing.clone()).await {
            // Turning a new file to write-ahead logging is the one lock that SQLite does not wait for.
            Err(error) if is_contention_error(&error) && began.elapsed() < SQLITE_BUSY_WAIT => {
                tokio::time::sleep(SQLITE_OPEN_PAUSE).await;
            }
            opened => break opened?,
        }
    };
    let files = DatabaseFiles::of(&path, writing.connect().await?);
    let readers = pool().max_connections(SQLITE_READERS).connect_lazy_with(
        options
            .pragma("query_only", "ON")
            .pragma("cache_size", SQLITE_READER_CACHE)
            .row_buffer_size(SQLITE_ROWS_READY),
    );
    let mut lock = path.into_os_string();
    lock.push(".lock");
    Ok(Database {
        writers: Pool::Sqlite(writers),
        readers: Pool::Sqlite(readers),
        place: DatabasePlace::File {
            lock: lock.into(),
            files: Box::new(files),
        },
    })
}

async fn connect_to_postgres(url: &str, application: &str) -> Result<Database> {
    let options = parse_postgres_address(url)?.into_iter();
    let options = options.map(|host| host.application_name(application).options(POSTGRES_SESSION));
    let hosts = Arc::new(Hosts::new(options.collect()));
    let began = Instant::now();
    while let Err(error) = hosts.look_for_primary().await {
        if !may_connect_later(&error) || began.elapsed() > ACQUIRE_WAIT {
            return Err(error.into());
        }
        tokio::time::sleep(POSTGRES_OPEN_PAUSE).await;
    }
    let sessions = Arc::new(Sessions::new(Arc::clone(&hosts), ACQUIRE_WAIT));
    Ok(Database {
        writers: Pool::Postgres(Arc::clone(&sessions)),
        readers: Pool::Postgres(sessions),
        place: DatabasePlace::Server(hosts),
    })
}

/// Whether a server that refuses sessions may just be starting, or be about to become the primary.
fn may_connect_later(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(why) => why.kind() == ErrorKind::ConnectionRefused || why.kind() == NO_PRIMARY,
        sqlx::Error::Database(why) => why.is_transient_in_connect_phase(),
        _ => false,
    }
}
