//! How processes that keep keys in memory learn that another has changed one.
//!
//! Only Postgres has other processes to notify. On SQLite nothing is notified: a look-up there stays in this process. The process
//! that changes a key notifies a channel in the same transaction. A process that keeps keys listens. It shares a lock with others
//! of its kind for as long as its kept keys may be used. After each notification it forgets its keys, gives the lock back and
//! takes it again. So a revocation that has had the lock for itself knows that every process has heard of it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Postgres;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgListener;

use crate::engine::connect::DatabasePlace;
use crate::engine::hosts::Hosts;
use crate::engine::{Engine, Error, Result, silent_database_error};
use crate::store::Store;

/// The longest that a key may be kept. A revocation waits as long for the listening processes; by then they have forgotten it.
pub const KEYS_KEPT: Duration = Duration::from_secs(10);

const CHANNEL: &str = "bespeak_keys";
/// Sent with a change.
pub(crate) const NOTIFY: &str = "NOTIFY bespeak_keys";
/// The number of the lock is arbitrary, and one that nothing else on the database uses.
const LOCK_SHARED: &str = "SELECT pg_advisory_lock_shared(7018974219)";
const UNLOCK_SHARED: &str = "SELECT pg_advisory_unlock_shared(7018974219)";
/// Ends with an error where a listening process does not answer for as long as a key may be kept.
const PASS_LOCK: &str = "SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock(7018974219)";
/// A server that does not answer for this long counts as gone.
const LISTEN_WAIT: Duration = Duration::from_secs(20);

/// Hears of changes of keys.
#[derive(Debug)]
pub struct KeyChanges {
    hosts: Arc<Hosts>,
    listener: Option<PgListener>,
}

/// The listener for changes of keys; `None` where they need not be kept.
pub fn key_change_listener(store: &Store) -> Option<KeyChanges> {
    match &store.database.place {
        DatabasePlace::File { .. } => None,
        DatabasePlace::Server(hosts) => Some(KeyChanges {
            hosts: Arc::clone(hosts),
            listener: None,
        }),
    }
}

/// Waits until every listening process has heard of the stored changes.
pub(crate) async fn await_key_change_listeners(store: &Store) -> Result<()> {
    if store.kind() == Engine::Sqlite {
        return Ok(());
    }
    let mut transaction = store.begin().await?;
    match transaction.script(PASS_LOCK).await {
        Ok(()) => Ok(transaction.rollback().await?),
        Err(error) => match Error::from(error) {
            // By now the kept keys are forgotten.
            Error::Unavailable(_) => Ok(()),
            other => Err(other),
        },
    }
}

impl KeyChanges {
    /// Waits for a change. When this returns, keys that were looked up before may have changed. Keys that are looked up from then
    /// on may be kept for [`KEYS_KEPT`] until it returns again. The first time it returns as soon as it listens.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where changes are not heard of, so that nothing may be kept. It may be asked again.
    pub async fn heard(&mut self) -> Result<()> {
        let Some(mut listener) = self.listener.take() else {
            let listening = tokio::time::timeout(LISTEN_WAIT, listen_for_key_changes(&self.hosts));
            self.listener = Some(listening.await.map_err(|_| silent_database_error())??);
            return Ok(());
        };
        let passed = async {
            sqlx::raw_sql(UNLOCK_SHARED).execute(&mut listener).await?;
            sqlx::raw_sql(LOCK_SHARED).execute(&mut listener).await
        };
        tokio::time::timeout(LISTEN_WAIT, passed)
            .await
            .map_err(|_| silent_database_error())??;
        listener.try_recv().await?.ok_or_else(silent_database_error)?;
        self.listener = Some(listener);
        Ok(())
    }
}

async fn listen_for_key_changes(hosts: &Hosts) -> sqlx::Result<PgListener> {
    let options = hosts.options_of_primary("keys").await?;
    // Of its own: a listener keeps its connection.
    let pool = PoolOptions::<Postgres>::new().max_connections(1);
    let mut listener = PgListener::connect_with(&pool.connect_with(options).await?).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    sqlx::raw_sql(LOCK_SHARED).execute(&mut listener).await?;
    Ok(listener)
}
