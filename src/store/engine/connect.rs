//! Opening either engine from its address, with the settings that our promises rest on.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Postgres, Sqlite};

use super::connection::Pool;
use super::error::{Error, Result, is_contention};

/// The beginning of the names of our sessions on a server.
pub(in crate::store) const APPLICATION: &str = "bespeak";
/// Connections to Postgres: the decider needs one, and this many reads go on beside it before one waits.
const POSTGRES_CONNECTIONS: u32 = 8;
/// Readers of a SQLite file: more than the cores of a small machine gain nothing.
const SQLITE_READERS: u32 = 4;
/// How long a caller waits for a free connection before it gets the error that the database is not available.
const ACQUIRE_WAIT: Duration = Duration::from_secs(5);
/// How long a writer waits for another process's transaction on the same SQLite file.
const SQLITE_BUSY_WAIT: Duration = Duration::from_secs(5);
/// Pages that a reading connection keeps; a negative number is in KiB: the system keeps the file's pages already, once for all.
const SQLITE_READER_CACHE: &str = "-256";
/// The longest a SQLite write-ahead log stays after a checkpoint, in bytes.
const SQLITE_LOG_BYTES: &str = "67108864";

/// Limits that Postgres enforces on our sessions, so that none of them waits or holds a lock without end. The keep-alives let the
/// server notice within half a minute that a decider's machine has gone, and release its lease.
const POSTGRES_SESSION: [(&str, &str); 7] = [
    ("client_min_messages", "warning"),
    ("statement_timeout", "60s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];
/// Acknowledged means durable, also on a server with another default; a stricter default is kept.
const POSTGRES_DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// How long to wait before a SQLite file that others are just opening is tried again.
const SQLITE_OPEN_PAUSE: Duration = Duration::from_millis(20);

/// A database that is open.
pub(in crate::store) struct Database {
    /// One connection on SQLite, where a second could only wait for it.
    pub(in crate::store) writers: Pool,
    /// On Postgres the same as the writers.
    pub(in crate::store) readers: Pool,
    pub(in crate::store) place: Place,
}

/// Where the database is.
pub(in crate::store) enum Place {
    /// A file, with another one beside it to lock.
    File { lock: PathBuf },
    /// A server.
    Server(Box<PgConnectOptions>),
}

/// The action where a SQLite file does not exist.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum Missing {
    Create,
    Refuse,
}

/// Opens a database; sessions on a server have the name `application`.
pub(in crate::store) async fn connect_to_database(
    url: &str,
    application: &str,
    missing: Missing,
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

async fn connect_to_sqlite(path: &Path, missing: Missing) -> Result<Database> {
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
            Err(error) if is_contention(&error) && began.elapsed() < SQLITE_BUSY_WAIT => {
                tokio::time::sleep(SQLITE_OPEN_PAUSE).await;
            }
            opened => break opened?,
        }
    };
    let readers = pool().max_connections(SQLITE_READERS).connect_lazy_with(
        options
            .pragma("query_only", "ON")
            .pragma("cache_size", SQLITE_READER_CACHE),
    );
    let mut lock = path.into_os_string();
    lock.push(".lock");
    Ok(Database {
        writers: Pool::Sqlite(writers),
        readers: Pool::Sqlite(readers),
        place: Place::File { lock: lock.into() },
    })
}

/// Creates the file where it is missing, so that it is private from its first moment; SQLite gives its log the same
/// permissions. Answers with the file's real path: two names of one file must not be two locks.
fn create_database_file(path: &Path, missing: Missing) -> std::io::Result<PathBuf> {
    OpenOptions::new()
        .create(matches!(missing, Missing::Create))
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    path.canonicalize()
}

async fn connect_to_postgres(url: &str, application: &str) -> Result<Database> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|error| Error::Address(format!("the database address is not one: {error}")))?
        .application_name(application)
        .options(POSTGRES_SESSION);
    let pool = PoolOptions::<Postgres>::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(ACQUIRE_WAIT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(POSTGRES_DURABLE)
                    .execute(connection)
                    .await
                    .map(|_| ())
            })
        })
        .connect_with(options.clone())
        .await?;
    Ok(Database {
        writers: Pool::Postgres(pool.clone()),
        readers: Pool::Postgres(pool),
        place: Place::Server(Box::new(options)),
    })
}
