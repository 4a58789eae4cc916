//! The sessions with PostgreSQL that are kept for use: a pool of those with the primary. When another server becomes the primary, they
//! are left with their pool, and another pool is begun. Some may be with a server that stands still, and would fill the old one.
//!
//! Beside the pool, one session is kept for batches: a pool asks a session whether it is still there after each use.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Postgres};

use super::error::silent_database_error;
use super::hosts::Hosts;

/// The decider needs one, and this many reads go on beside it before one waits.
const SESSIONS: u32 = 8;
/// After how long without use a session is asked whether it is still there.
const TRUSTED: Duration = Duration::from_secs(1);
/// Rows are found by their indexes: a plan that was made while a table was small reads all of it for as long as it is kept. A batch that
/// is one statement begins as a transaction does that is begun for one, whatever is configured for the database or the role.
const BEGIN_BATCH_SESSION: &str = "SET enable_seqscan = off; \
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE";
/// How long a session may take to answer before it is used again, or of several servers before it is kept.
const PING_WAIT: Duration = Duration::from_secs(1);

/// Sessions with the primary.
pub(crate) struct Sessions {
    hosts: Arc<Hosts>,
    acquire_wait: Duration,
    /// With the place of its server.
    pool: Mutex<(usize, sqlx::Pool<Postgres>)>,
    of_batches: Mutex<Option<BatchSession>>,
}

/// A session in which batches are written, each by one statement.
pub(crate) struct BatchSession {
    pub(crate) session: PgConnection,
    /// The place of its server.
    primary: usize,
    used: Instant,
}

impl Sessions {
    pub(super) fn new(hosts: Arc<Hosts>, acquire_wait: Duration) -> Self {
        let primary = hosts.primary();
        let pool = new_pool_of_sessions(&hosts, primary, acquire_wait);
        Self {
            hosts,
            acquire_wait,
            pool: Mutex::new((primary, pool)),
            of_batches: Mutex::default(),
        }
    }

    /// The session for batches. It is opened where there is none that answers. A caller gives it back unless it may be broken.
    pub(crate) async fn take_batch_session(&self) -> sqlx::Result<BatchSession> {
        let primary = self.hosts.primary();
        let kept = self.of_batches().take();
        if let Some(mut kept) = kept.filter(|kept| kept.primary == primary)
            && (kept.used.elapsed() < TRUSTED || ping_session(&mut kept.session).await.is_ok())
        {
            return Ok(kept);
        }
        let mut session = self.acquire().await?.detach();
        sqlx::raw_sql(BEGIN_BATCH_SESSION).execute(&mut session).await?;
        Ok(BatchSession {
            session,
            primary,
            used: Instant::now(),
        })
    }

    /// Keeps the session for the next batch.
    pub(crate) fn keep_batch_session(&self, session: BatchSession) {
        let mut of_batches = self.of_batches();
        if !self.pool().1.is_closed() {
            *of_batches = Some(BatchSession {
                used: Instant::now(),
                ..session
            });
        }
    }

    fn of_batches(&self) -> MutexGuard<'_, Option<BatchSession>> {
        self.of_batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session, which is opened where none is free.
    pub(super) async fn acquire(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        loop {
            let (primary, pool) = self.pool();
            tokio::select! {
                got = pool.acquire() => match got {
                    Err(why) if self.hosts.has_several() && !pool.is_closed() => {
                        // Where there is no primary, this says so in words.
                        self.hosts.look_for_primary().await?;
                        if self.hosts.primary() == primary {
                            return Err(why);
                        }
                    }
                    got => return got,
                },
                () = self.hosts.wait_for_other_primary(primary) => {}
            }
        }
    }

    /// Waits for an answer in a session, at most so long, and no longer once another server is the primary.
    ///
    /// # Errors
    /// That the database is silent, where no answer comes.
    pub(super) async fn answer<T>(&self, wait: Duration, answer: impl Future<Output = T>) -> sqlx::Result<T> {
        let primary = self.hosts.primary();
        tokio::select! {
            biased;
            answered = tokio::time::timeout(wait, answer) => answered.map_err(|_| silent_database_error()),
            () = self.hosts.wait_for_other_primary(primary) => Err(silent_database_error()),
        }
    }

    /// Closes every session once it is returned.
    pub(super) async fn close(&self) {
        // The pool counts as closed from here on.
        let (_, pool) = self.pool();
        let closing = pool.close();
        let kept = self.of_batches().take();
        if let Some(kept) = kept {
            // The server may be gone.
            let _ = tokio::time::timeout(PING_WAIT, kept.session.close()).await;
        }
        closing.await;
    }

    /// The pool of the primary, with its place.
    fn pool(&self) -> (usize, sqlx::Pool<Postgres>) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let primary = self.hosts.primary();
        if pool.0 != primary && !pool.1.is_closed() {
            *pool = (
                primary,
                new_pool_of_sessions(&self.hosts, primary, self.acquire_wait),
            );
        }
        pool.clone()
    }
}

fn new_pool_of_sessions(hosts: &Arc<Hosts>, primary: usize, acquire_wait: Duration) -> sqlx::Pool<Postgres> {
    let of_new = Arc::clone(hosts);
    let mut pool = PoolOptions::<Postgres>::new()
        .max_connections(SESSIONS)
        .acquire_timeout(acquire_wait)
        .test_before_acquire(false)
        .before_acquire(|session, seen| {
            Box::pin(async move { Ok(seen.idle_for < TRUSTED || ping_session(session).await?) })
        })
        .after_connect(move |session, _| {
            let hosts = Arc::clone(&of_new);
            Box::pin(async move { hosts.begin_session(session).await.map(drop) })
        });
    if hosts.has_several() {
        pool = pool.after_release(|session, _| Box::pin(ping_session(session)));
    }
    pool.connect_lazy_with(hosts.options(primary).cloned().unwrap_or_default())
}

/// Whether a session answers in time; the error says that it does not.
async fn ping_session(session: &mut PgConnection) -> sqlx::Result<bool> {
    let answered = tokio::time::timeout(PING_WAIT, session.ping()).await;
    answered.unwrap_or_else(|_| Err(silent_database_error()))?;
    Ok(true)
}
