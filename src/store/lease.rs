//! Never two deciders. The lease is two things at once: a lock that dies with its process, so that a restart after
//! kill -9 need not wait for anything to time out; and an epoch that rises with every holder, so that a decider that
//! has lost its lock without noticing cannot write any more.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Postgres};
use tokio::sync::Mutex;

use super::engine::{Dialect, fetch};
use super::rows::Columns;
use super::{Database, Error, Inner, Store, on, statements};

/// How long Postgres may take to notice that the last holder's connection is gone.
const POSTGRES_WAIT: &str = "SET lock_timeout = '3s'";
/// The advisory lock of deciders; the number is arbitrary, and one that nothing else on the database uses.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_lock(7018974218)";
const POSTGRES_UNLOCK: &str = "SELECT pg_advisory_unlock(7018974218)";
/// A connection that does not answer for this long does not hold anything that we may rely on.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The right to decide, until it is dropped.
pub struct Lease {
    /// Counts the holders from 1; every batch is written under it.
    pub epoch: i64,
    lock: Lock,
}

enum Lock {
    /// Released when the file is closed, at the latest by the death of the process.
    File(File),
    /// Released when the session ends.
    Session(Box<Mutex<PgConnection>>),
}

impl Store {
    /// Takes the lease. From here on nobody else's batch can be written: one that was being committed has ended.
    ///
    /// # Errors
    /// [`Error::LeaseHeld`] where another process has it.
    pub async fn acquire_lease(&self) -> Result<Lease, Error> {
        let lock = match &*self.inner {
            Inner::Sqlite { lock, .. } => Lock::File(lock_file(lock)?),
            Inner::Postgres { options, .. } => {
                Lock::Session(Box::new(Mutex::new(lock_session(options).await?)))
            }
        };
        let epoch = on!(self, database => next_epoch(database).await)?;
        Ok(Lease { epoch, lock })
    }
}

impl Lease {
    /// Whether the lock is still ours, as far as can be told. Batches are safe without asking; this is for saying
    /// that the service is not ready, and for taking the lease anew.
    pub async fn is_held(&self) -> bool {
        match &self.lock {
            Lock::File(_) => true,
            Lock::Session(session) => {
                let answered = async { session.lock().await.ping().await.is_ok() };
                tokio::time::timeout(ANSWER_WAIT, answered).await.unwrap_or(false)
            }
        }
    }

    /// Gives the lease up, and returns when another can take it.
    pub async fn release(self) {
        match self.lock {
            Lock::File(file) => drop(file),
            Lock::Session(session) => {
                let mut session = session.into_inner();
                // Where this fails the session is gone, and the lock with it.
                let _ = <Postgres as Dialect>::script(&mut session, POSTGRES_UNLOCK).await;
                let _ = session.close().await;
            }
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// Locks a file beside the database. The file stays: removing it would let two processes lock two files of one name.
fn lock_file(path: &Path) -> Result<File, Error> {
    let failed =
        |error: std::io::Error| Error::Address(format!("cannot lock the file {}: {error}", path.display()));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::LeaseHeld(format!("{} is locked", path.display()))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Opens a session of its own and locks in it: a pool would hand the session to others, or close it.
async fn lock_session(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    let mut session = options
        .clone()
        .application_name("bespeak decider")
        .connect()
        .await?;
    <Postgres as Dialect>::script(&mut session, POSTGRES_WAIT).await?;
    match <Postgres as Dialect>::script(&mut session, POSTGRES_LOCK).await {
        Ok(()) => Ok(session),
        Err(error)
            if error
                .as_database_error()
                .is_some_and(|error| error.code().as_deref() == Some("55P03")) =>
        {
            Err(Error::LeaseHeld("its advisory lock is taken".into()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn next_epoch<D: Dialect>(database: &Database<D>) -> Result<i64, Error> {
    let mut transaction = database.begin().await?;
    let rows = fetch::<D>(&mut transaction, statements::NEXT_EPOCH, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Corrupt("the lease has no row".into()))?;
    let epoch = Columns::<D>::of(row).integer("epoch")?;
    transaction.commit().await?;
    Ok(epoch)
}
