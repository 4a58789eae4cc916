//! The errors of the store, by the caller's next step.

use domain::resources::CorruptRow;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use uuid::Uuid;

/// What a call of the store comes to.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store did not carry out a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be reached or is too busy; nothing was written. The caller may try again.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] Box<sqlx::Error>),
    /// The connection broke while a batch was being committed, and the store could not find out in time whether it was. Before it
    /// goes on, the caller asks [`crate::Store::retake_lease`], which answers with the last batch.
    #[error("it is not known whether the last batch was stored: {why}")]
    Unknown {
        /// The batch.
        batch: Uuid,
        /// How the connection broke.
        #[source]
        why: Box<sqlx::Error>,
    },
    /// The stored state is not the one that the change was made from; nothing was written.
    #[error("the stored state has changed meanwhile: {0}")]
    Conflict(String),
    /// Another process decides on this database.
    #[error("another process has this database: {0}")]
    LeaseHeld(String),
    /// Another decider has taken over since; nothing was written. The caller must stop deciding.
    #[error("another decider has taken over")]
    LeaseLost,
    /// The database is not as this process, or one before it, has left it: it has gone back, or a file of it was removed. Nothing
    /// was acknowledged. The caller must stop deciding.
    #[error("the database is not as the service has left it: {0}")]
    Damaged(String),
    /// A column of a stored row has an invalid value.
    #[error("the database has an invalid row: {0}")]
    Corrupt(String),
    /// The address of the database is not one, or its file cannot be opened.
    #[error("{0}")]
    Address(String),
    /// The database was made by a later version, or its migrations were edited.
    #[error("the database has another schema than this version: {0}")]
    Schema(String),
    /// Anything else that the database refused: a bug or a damaged database.
    #[error("the database refused: {0}")]
    Database(#[source] Box<sqlx::Error>),
}

/// `SQLITE_BUSY` and `SQLITE_LOCKED`, the low byte of every variety of them.
const SQLITE_BUSY: [i32; 2] = [5, 6];
/// The disk is full: nothing of the transaction was written.
const SQLITE_FULL: i32 = 13;
/// Errors that may pass: no memory, a file system that fails (over its quota, with no block for the shared index), the disk is
/// full, a file that cannot be opened (no descriptor is left).
const SQLITE_TRANSIENT: [i32; 4] = [7, 10, SQLITE_FULL, 14];

/// Postgres: a wait for a lock took too long.
const LOCK_TIMEOUT: &str = "55P03";

impl From<CorruptRow> for Error {
    fn from(CorruptRow(why): CorruptRow) -> Self {
        Self::Corrupt(why)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(_) if is_transient_error(&error) => Self::Unavailable(Box::new(error)),
            sqlx::Error::Database(refused) => match refused.kind() {
                sqlx::error::ErrorKind::Other | sqlx::error::ErrorKind::NotNullViolation => {
                    Self::Database(Box::new(error))
                }
                _ => Self::Conflict(refused.message().to_owned()),
            },
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::BeginFailed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(Box::new(error)),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Corrupt(error.to_string()),
            _ => Self::Database(Box::new(error)),
        }
    }
}

/// A database that does not answer.
pub(crate) fn silent_database_error() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the database did not answer",
    ))
}

/// Whether the same statements may well succeed later.
fn is_transient_error(error: &sqlx::Error) -> bool {
    if is_contention_error(error) {
        return true;
    }
    let Some(code) = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
    else {
        return false;
    };
    if error.as_database_error().is_some_and(is_sqlite) {
        return sqlite_code(&code).is_some_and(|code| SQLITE_TRANSIENT.contains(&code));
    }
    // Postgres: connection exceptions, insufficient resources, the server going down or coming up, a statement or a
    // wait for a lock that took too long, a standby.
    code.starts_with("08")
        || code.starts_with("53")
        || matches!(
            &*code,
            "57P01" | "57P02" | "57P03" | "57014" | LOCK_TIMEOUT | "25006"
        )
}

/// Whether Postgres was told not to wait any longer for a lock.
pub(crate) fn is_lock_timeout_error(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.as_deref() == Some(LOCK_TIMEOUT)
}

/// Whether it failed only because of others, so that the same transaction may be run again at once.
pub(crate) fn is_contention_error(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else {
        return false;
    };
    let Some(code) = error.code() else { return false };
    if is_sqlite(error) {
        return sqlite_code(&code).is_some_and(|code| SQLITE_BUSY.contains(&code));
    }
    // Serialization failure and deadlock.
    matches!(&*code, "40001" | "40P01")
}

/// Whether a COMMIT that failed so has certainly not been carried out, now or after a crash. SQLite, where the disk is full, has
/// not written the frame that ends a transaction. Postgres has undone a transaction if it reports an error for it; where it goes
/// down meanwhile (`FATAL`, `PANIC`) that is not known.
pub(crate) fn is_error_of_undone_transaction(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else {
        return false;
    };
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        return error.severity() == PgSeverity::Error;
    }
    let code = error.code();
    is_sqlite(error) && code.and_then(|code| sqlite_code(&code)) == Some(SQLITE_FULL)
}

/// Whether Postgres was to divide by zero.
pub(crate) fn is_division_by_zero(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.and_then(sqlx::error::DatabaseError::code).as_deref() == Some("22012")
}

/// The primary result code of any variety of it.
fn sqlite_code(code: &str) -> Option<i32> {
    Some(code.parse::<i32>().ok()? & 0xff)
}

fn is_sqlite(error: &(dyn sqlx::error::DatabaseError + 'static)) -> bool {
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
}
