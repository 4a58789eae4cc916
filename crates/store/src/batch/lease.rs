//! Never two deciders. The lease is two things at once. It is a lock that dies with its process, so that a restart after kill -9
//! need not wait for anything to time out. And it is an epoch that rises with every holder, so that a decider that has lost its
//! lock without noticing cannot write any more.
//!
//! On Postgres the lock is a session's, and sessions end while their process lives: an administrator ends one, the server
//! restarts, a network fails. So the holder watches the lease ([`Store::check_lease`]) and takes its lock again
//! ([`Store::retake_lease`]) under the epoch that it has. That is safe: a process that wants a new epoch must have the lock
//! first. So an epoch which is unchanged once the lock is ours again says that no other process has decided in between, and that
//! none can from here on. A later epoch says that another process has taken over, for good.
//!
//! With each look the holder compares the end of the audit trail that it knows with the one that is stored: where its line is gone the
//! database has gone back, and it may not decide either.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::known_trail::{confirm_known_trail_end, confirm_known_trail_end_by_pool, is_same_end};
use super::trail::Trail;
use crate::engine::connect::DatabasePlace;
use crate::engine::error::is_lock_timeout_error;
use crate::engine::hosts::Hosts;
use crate::engine::{Columns, Connection, Error, Result, silent_database_error, statements};
use crate::store::{ANSWER_WAIT, Store};

/// How long to wait for the lock of a SQLite file: longer than a busy machine takes to start a program (see [`lock_lease_file_soon`]).
const FILE_WAIT: Duration = Duration::from_secs(10);
/// After how long the log says that the lock is waited for.
const FILE_TOLD_AFTER: Duration = Duration::from_secs(1);
/// How long to wait between two tries.
const FILE_PAUSE: Duration = Duration::from_millis(20);
/// How long Postgres may take to notice that the last holder's connection is gone.
const POSTGRES_WAIT: &str = "SET lock_timeout = '3s'";
/// How long Postgres may take to notice it where another process may have taken over by then, which the epoch tells soon.
const POSTGRES_RETAKE_WAIT: &str = "SET lock_timeout = '300ms'";
/// The advisory lock of deciders; the number is arbitrary, and one that nothing else on the database uses.
pub(super) const LOCK_NUMBER: i64 = 7_018_974_218;
const POSTGRES_LOCK: &str = "SELECT pg_advisory_lock(7018974218)";
const POSTGRES_UNLOCK: &str = "SELECT pg_advisory_unlock(7018974218)";
/// How long a look at the epoch of a file may hold up decisions.
const GLANCE: Duration = Duration::from_millis(100);
/// A connection that does not answer for this long does not hold anything that we may rely on.
pub(super) const SESSION_ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long it may take to open a session and to have the lock in it, the wait for another holder included.
const SESSION_WAIT: Duration = Duration::from_secs(10);
/// The ends of the names of sessions with the lock: of a process that decides, and of one that reads the plan before.
pub(super) const DECIDER: &str = "decider";
pub(super) const STARTING: &str = "starting";
/// Gives a session another name.
pub(super) const NAME_SESSION: &str = "SELECT set_config('application_name', $1, false)";

/// The right to decide, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    /// Counts the holders from 1; every batch is written under it.
    pub epoch: i64,
    lock: Lock,
    /// The name that its session gets with the first look, where that still has the name of a process that starts.
    name_later: Option<String>,
}

#[derive(Debug)]
enum Lock {
    /// Released when the file is closed, at the latest by the death of the process.
    File(File),
    /// Released when the session ends; none once it is known to have ended.
    Session(Option<Box<PgConnection>>),
}

impl Store {
    /// Takes the lease. From here on no other process can write a batch: one that was being committed has ended.
    ///
    /// # Errors
    /// [`Error::LeaseHeld`] where another process has it.
    pub async fn acquire_lease(&self) -> Result<Lease> {
        let lock = match &self.database.place {
            DatabasePlace::File { lock, .. } => Lock::File(lock_lease_file_soon(lock).await?),
            DatabasePlace::Server(hosts) => {
                Lock::Session(Some(lock_lease_session(hosts, POSTGRES_WAIT).await?))
            }
        };
        self.lease_under_lock(lock, None).await
    }

    /// The lease under the lock that a session has. Its process counts as one that starts until [`Store::check_lease`] is first called.
    pub(super) async fn lease_of_session(&self, mut session: Box<PgConnection>) -> Result<Lease> {
        let name = |role| match &self.database.place {
            DatabasePlace::Server(hosts) => Some(hosts.name_of_session(role)),
            DatabasePlace::File { .. } => None,
        };
        let named = sqlx::query(NAME_SESSION)
            .bind(name(STARTING))
            .execute(&mut *session);
        named.await?;
        self.lease_under_lock(Lock::Session(Some(session)), name(DECIDER))
            .await
    }

    async fn lease_under_lock(&self, lock: Lock, name_later: Option<String>) -> Result<Lease> {
        let epoch = tokio::time::timeout(ANSWER_WAIT, self.next_lease_epoch()).await;
        Ok(Lease {
            epoch: self.told(epoch.unwrap_or_else(|_| Err(silent_database_error().into())))?,
            lock,
            name_later,
        })
    }

    async fn next_lease_epoch(&self) -> Result<i64> {
        self.database.confirm_files()?;
        let known = self.known.trail();
        let mut transaction = self.begin().await?;
        let found = transaction.read_lease(statements::NEXT_EPOCH, |row| {
            let (epoch, stored) = read_lease_row(row)?;
            Ok((epoch, row.integer("settled")?, stored))
        });
        let (epoch, settled, stored) = found.await?;
        confirm_known_trail_end(&mut transaction, &known, &stored).await?;
        transaction.commit().await?;
        self.known.note_settled(settled);
        self.known.note(stored);
        Ok(epoch)
    }

    /// The epoch of the present holder, or of the last one.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn lease_epoch(&self) -> Result<i64> {
        let epoch = self
            .read_one(statements::EPOCH, &[], |row| row.integer("epoch"))
            .await?;
        epoch.ok_or_else(no_lease_row)
    }

    /// Whether a lease still holds, by one read of the database: over the session that has the lock, where that is a
    /// session's. Batches are safe without asking; this is for a holder that has nothing to write.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] where another process has taken over. [`Error::Damaged`] where the database has gone back, or its files
    /// were removed. [`Error::Unavailable`] where the lock is gone, or does not answer within some seconds; [`Store::retake_lease`] may get
    /// it back.
    pub async fn check_lease(&self, lease: &mut Lease) -> Result<()> {
        let looked = self.look_at_lease(lease).await;
        self.told(looked)
    }

    async fn look_at_lease(&self, lease: &mut Lease) -> Result<()> {
        let known = self.known.trail();
        let Lock::Session(session) = &mut lease.lock else {
            self.database.confirm_files()?;
            let read = async {
                let found = self.read_one(statements::LEASE, &[], read_lease_row).await?;
                let (epoch, stored) = found.ok_or_else(no_lease_row)?;
                confirm_known_trail_end_by_pool(&self.database.readers, &known, &stored).await?;
                Ok::<_, Error>(epoch)
            };
            // A file is locked for as long as the process lives: a read that fails, or waits behind others, says nothing about
            // the lock.
            return match tokio::time::timeout(GLANCE, read).await {
                Ok(Ok(epoch)) => lease.confirm(epoch),
                Ok(Err(damaged @ Error::Damaged(_))) => Err(damaged),
                _ => Ok(()),
            };
        };
        let answered = async {
            let connection = session.as_deref_mut().ok_or_else(silent_database_error)?;
            if let Some(name) = lease.name_later.take() {
                let named = sqlx::query(NAME_SESSION).bind(name).execute(&mut *connection);
                named.await?;
            }
            let row = sqlx::query(statements::LEASE).fetch_optional(connection);
            read_lease_row(&Columns::Postgres(&row.await?.ok_or_else(no_lease_row)?))
        };
        let answered = tokio::time::timeout(SESSION_ANSWER_WAIT, answered).await;
        match answered.unwrap_or_else(|_| Err(silent_database_error().into())) {
            Ok((epoch, stored)) if is_same_end(&known, &stored) => lease.confirm(epoch),
            // The session may be with a server of which another one has taken the place, so the others are asked.
            Ok((epoch, stored)) => match self.confirm_trail_outside_lease().await {
                Err(damaged @ Error::Damaged(_)) => Err(damaged),
                Ok(()) if stored.number < known.number => {
                    *session = None;
                    Err(silent_database_error().into())
                }
                // That they do not answer says nothing about this one.
                _ => lease.confirm(epoch),
            },
            // The lock is kept: another process would find the same.
            Err(damaged @ Error::Damaged(_)) => Err(damaged),
            Err(why) => {
                *session = None;
                Err(why)
            }
        }
    }

    /// Makes sure, over another session than the lease's, that the trail goes on from its known end.
    async fn confirm_trail_outside_lease(&self) -> Result<()> {
        let known = self.known.trail();
        let found = self.read_one(statements::TRAIL, &[], Trail::of).await?;
        let stored = found.ok_or_else(no_lease_row)?;
        confirm_known_trail_end_by_pool(&self.database.readers, &known, &stored).await
    }

    /// Takes the lock of a lease again where its session has ended, under the same epoch. When this returns, no batch is being
    /// written any more, not even one with a broken connection. Answers with the last batch that was written.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] where another process has taken over; the lease is worth nothing any more. [`Error::Damaged`] where the
    /// database has gone back. After all others it may be tried again: [`Error::Unavailable`], and [`Error::LeaseHeld`] where another
    /// session has the lock and has not decided anything. That session may be our own old one, where the server has not noticed yet that it is gone.
    pub async fn retake_lease(&self, lease: &mut Lease) -> Result<Option<Uuid>> {
        if let Err(over @ (Error::LeaseLost | Error::Damaged(_))) = self.check_lease(lease).await {
            return Err(over);
        }
        if let (Lock::Session(None), DatabasePlace::Server(hosts)) = (&lease.lock, &self.database.place) {
            // Asked first, as another process that has the lock is waited for.
            lease.confirm(self.lease_epoch().await?)?;
            lease.lock = Lock::Session(Some(lock_lease_session(hosts, POSTGRES_RETAKE_WAIT).await?));
        }
        let (epoch, last) = tokio::time::timeout(SESSION_WAIT, self.settled_last_commit())
            .await
            .map_err(|_| silent_database_error())??;
        lease.confirm(epoch)?;
        Ok(last)
    }
}

impl Lease {
    /// Whether the epoch that is stored is this one.
    fn confirm(&self, stored: i64) -> Result<()> {
        if stored == self.epoch {
            Ok(())
        } else {
            Err(Error::LeaseLost)
        }
    }

    /// Gives the lease up, and returns when another can take it.
    pub async fn release(self) {
        match self.lock {
            Lock::File(file) => drop(file),
            Lock::Session(None) => {}
            Lock::Session(Some(mut session)) => {
                // Where this fails the session is gone, and the lock with it.
                let _ = sqlx::raw_sql(POSTGRES_UNLOCK).execute(&mut *session).await;
                let _ = session.close().await;
            }
        }
    }
}

/// Locks a file beside the database; waits for a moment where it is locked. A process that another thread, or the last
/// holder, was just starting has the file open until it becomes its program.
async fn lock_lease_file_soon(path: &Path) -> Result<File> {
    let began = Instant::now();
    let mut told = false;
    loop {
        match lock_lease_file(path) {
            Err(Error::LeaseHeld(_)) if began.elapsed() < FILE_WAIT => {
                if !told && began.elapsed() > FILE_TOLD_AFTER {
                    tracing::info!(file = %path.display(), "another process has this database; waiting for it to end");
                    told = true;
                }
                tokio::time::sleep(FILE_PAUSE).await;
            }
            locked => return locked,
        }
    }
}

/// Locks a file beside the database. The file stays: removing it would let two processes lock two files of one name.
fn lock_lease_file(path: &Path) -> Result<File> {
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
async fn lock_lease_session(hosts: &Hosts, wait: &'static str) -> Result<Box<PgConnection>> {
    let locked = async {
        let mut session = hosts.connect(DECIDER).await?;
        sqlx::raw_sql(wait).execute(&mut session).await?;
        sqlx::raw_sql(POSTGRES_LOCK).execute(&mut session).await?;
        Ok(Box::new(session))
    };
    let locked: sqlx::Result<_> = tokio::time::timeout(SESSION_WAIT, locked)
        .await
        .unwrap_or_else(|_| Err(silent_database_error()));
    locked.map_err(|error| {
        if is_lock_timeout_error(&error) {
            Error::LeaseHeld("its advisory lock is taken".into())
        } else {
            error.into()
        }
    })
}

impl Connection {
    /// Reads the row of the lease by one statement.
    pub(crate) async fn read_lease<T: Send>(
        &mut self,
        sql: &'static str,
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.read(sql, &[], one).await?.pop().ok_or_else(no_lease_row)
    }
}

/// That the one row of the lease is gone. Without it no batch can be written, and the end of the trail is not known.
pub(super) fn no_lease_row() -> Error {
    Error::Damaged("the row of its lease is not there".into())
}

fn read_lease_row(row: &Columns<'_>) -> Result<(i64, Trail)> {
    Ok((row.integer("epoch")?, Trail::of(row)?))
}
