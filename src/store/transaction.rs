//! Transactions, the only way in which the store begins one.
//!
//! A pool takes a connection back without a look at its transactions, and the driver's own count of them goes wrong: where its
//! disk is full SQLite ends a transaction by itself, and the driver's ROLLBACK then fails. No transaction could ever begin on
//! that connection again. So the statements are sent here, and a connection goes back to its pool only after a COMMIT or a
//! ROLLBACK that succeeded. Any other is closed, and the pool opens a new one in its place.

use std::ops::{Deref, DerefMut};

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use super::Database;
use super::engine::Dialect;

const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// An open transaction. One that is dropped is rolled back, by closing its connection.
pub(super) struct Transaction<D: Dialect> {
    connection: PoolConnection<D>,
    has_ended: bool,
}

impl<D: Dialect> Database<D> {
    /// Begins a transaction that writes.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction<D>> {
        Transaction::begin(&self.writers, D::BEGIN).await
    }

    /// Begins a transaction that reads one state of the database, whichever writes happen meanwhile.
    pub(super) async fn snapshot(&self) -> sqlx::Result<Transaction<D>> {
        Transaction::begin(&self.readers, D::BEGIN_SNAPSHOT).await
    }
}

impl<D: Dialect> Transaction<D> {
    async fn begin(pool: &Pool<D>, statement: &'static str) -> sqlx::Result<Self> {
        let mut transaction = Self {
            connection: pool.acquire().await?,
            has_ended: false,
        };
        D::script(&mut transaction.connection, statement).await?;
        Ok(transaction)
    }

    /// Makes the writes durable.
    pub(super) async fn commit(self) -> sqlx::Result<()> {
        self.end(COMMIT).await
    }

    /// Undoes the writes, and keeps the connection.
    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        self.end(ROLLBACK).await
    }

    async fn end(mut self, statement: &'static str) -> sqlx::Result<()> {
        D::script(&mut self.connection, statement).await?;
        self.has_ended = true;
        Ok(())
    }
}

impl<D: Dialect> Drop for Transaction<D> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

impl<D: Dialect> Deref for Transaction<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        &self.connection
    }
}

impl<D: Dialect> DerefMut for Transaction<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        &mut self.connection
    }
}
