//! Transactions, the only way in which the store begins one.
//!
//! A pool takes a connection back without a look at its transactions, and the driver's own count of them goes wrong: where its
//! disk is full SQLite ends a transaction by itself, and the driver's ROLLBACK then fails. No transaction could ever begin on
//! that connection again. So the statements are sent here, and a connection goes back to its pool only after a COMMIT or a
//! ROLLBACK that succeeded. Any other is closed, and the pool opens a new one in its place.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::connection::{Connection, Pool};

// SQLite takes the write lock at once: a transaction that reads first and writes later could find that another has written in
// between, and fail.
const SQLITE_BEGIN: &str = "BEGIN IMMEDIATE";
const SQLITE_BEGIN_SNAPSHOT: &str = "BEGIN";
// Not SERIALIZABLE: the lease's row is locked by every batch and the versions are checked, which conflicts less. Rows
// are found by their indexes, as in sessions for batches.
const POSTGRES_BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL enable_seqscan = off";
const POSTGRES_BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// A server that takes longer than this to begin a transaction counts as gone.
const BEGIN_WAIT: Duration = Duration::from_secs(30);
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// An open transaction. One that is dropped is rolled back, by closing its connection.
pub(crate) struct Transaction {
    connection: Connection,
    has_ended: bool,
}

impl Transaction {
    /// Begins a transaction that writes.
    pub(crate) async fn begin(writers: &Pool) -> sqlx::Result<Self> {
        let statement = match writers {
            Pool::Sqlite(_) => SQLITE_BEGIN,
            Pool::Postgres(_) => POSTGRES_BEGIN,
        };
        Self::begin_by(writers, statement).await
    }

    /// Begins a transaction that reads one state of the database, whichever writes happen meanwhile.
    pub(crate) async fn snapshot(readers: &Pool) -> sqlx::Result<Self> {
        let statement = match readers {
            Pool::Sqlite(_) => SQLITE_BEGIN_SNAPSHOT,
            Pool::Postgres(_) => POSTGRES_BEGIN_SNAPSHOT,
        };
        Self::begin_by(readers, statement).await
    }

    async fn begin_by(pool: &Pool, statement: &'static str) -> sqlx::Result<Self> {
        let mut transaction = Self {
            connection: pool.acquire().await?,
            has_ended: false,
        };
        pool.answer(BEGIN_WAIT, transaction.script(statement)).await??;
        Ok(transaction)
    }

    /// Makes the writes durable.
    pub(crate) async fn commit(self) -> sqlx::Result<()> {
        self.end(COMMIT).await
    }

    /// Undoes the writes, and keeps the connection.
    pub(crate) async fn rollback(self) -> sqlx::Result<()> {
        self.end(ROLLBACK).await
    }

    async fn end(mut self, statement: &'static str) -> sqlx::Result<()> {
        self.script(statement).await?;
        self.has_ended = true;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
