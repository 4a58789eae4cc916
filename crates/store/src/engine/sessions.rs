//! The sessions with PostgreSQL that are kept for use: a pool of those with the primary. When another server becomes the primary, they
//! are left with their pool, and another pool is begun. Some may be with a server that stands still, and would fill the old one.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Postgres};

use super::error::silent_database_error;
use super::hosts::Hosts;

/// The decider needs one, and this many reads go on beside it before one waits.
const SESSIONS: u32 = 8;
/// How long a session of several servers may take to answer before it is used again, or kept.
const PING_WAIT: Duration = Duration::from_secs(1);

/// Sessions with the primary.
pub(crate) struct Sessions {
    hosts: Arc<Hosts>,
    acquire_wait: Duration,
    /// With the place of its server.
    pool: Mutex<(usize, sqlx::Pool<Postgres>)>,
}

impl Sessions {
    pub(super) fn new(hosts: Arc<Hosts>, acquire_wait: Duration) -> Self {
        let primary = hosts.primary();
        let pool = new_pool_of_sessions(&hosts, primary, acquire_wait);
        Self {
            hosts,
            acquire_wait,
            pool: Mutex::new((primary, pool)),
        }
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
        self.pool().1.close().await;
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
        .after_connect(move |session, _| {
            let hosts = Arc::clone(&of_new);
            Box::pin(async move { hosts.begin_session(session).await.map(drop) })
        });
    if hosts.has_several() {
        pool = pool
            .test_before_acquire(false)
            .before_acquire(|session, _| Box::pin(ping_session(session)))
            .after_release(|session, _| Box::pin(ping_session(session)));
    }
    pool.connect_lazy_with(hosts.options(primary).cloned().unwrap_or_default())
}

/// Whether a session answers in time; the error says that it does not.
async fn ping_session(session: &mut PgConnection) -> sqlx::Result<bool> {
    let answered = tokio::time::timeout(PING_WAIT, session.ping()).await;
    answered.unwrap_or_else(|_| Err(silent_database_error()))?;
    Ok(true)
}
