//! The durable data. The only module that knows sqlx.
//!
//! One SQL text serves two engines: SQLite, a file in the data folder that one process owns, and Postgres. Their differences are
//! in [`engine`] and [`connect`]; every statement is a constant in [`statements`]; everything else is written once, generic over
//! the engine.
//!
//! Two rules keep it right. Only a decider writes decisions: [`Store::acquire_lease`] gives it an epoch, and every batch of
//! [`Store::commit`] is refused once a later epoch exists. And a batch is one transaction: an answer to a client was stored
//! together with everything that belongs to it, or not at all.

mod agreements;
mod archive;
mod batch;
mod bindings;
mod bulk;
mod call_backs;
mod commit;
mod connect;
mod engine;
mod error;
mod executions;
mod history;
mod idempotency;
mod key_changes;
mod keys;
mod lease;
mod ledger;
mod migrations;
mod negotiations;
mod nodes;
mod notes;
mod pruning;
mod resources;
mod room;
mod rows;
mod statements;
mod trail;
mod transaction;
mod verify;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{Pool, Postgres, Sqlite};

pub use bindings::Binding;
pub use call_backs::{CallBack, Undecided};
pub use commit::Change;
pub use error::Error;
pub use history::{Condition, Learned, PastExecution, ResourceHour, Sample, SamplesKept};
pub use idempotency::{IDEMPOTENCY_KEPT, Idempotent};
pub use key_changes::{KEYS_KEPT, KeyChanges};
pub use keys::{KeyRow, SessionRow};
pub use lease::Lease;
pub use negotiations::Succession;
pub use nodes::NodeRow;
pub use notes::TrailLine;
pub use pruning::{ExecutionHour, Kept};
pub use resources::ResourceRow;
pub use rows::hex;
pub use verify::{Finding, Invariant};

use connect::Missing;
use engine::{Dialect, Value, execute, fetch_each};
use rows::Columns;
use trail::Trail;

/// A database that is open and has our schema. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// The engines that the store runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file of this machine, owned by one process.
    Sqlite,
    /// A server.
    Postgres,
}

enum Inner {
    Sqlite {
        database: Database<Sqlite>,
        lock: PathBuf,
    },
    Postgres {
        database: Database<Postgres>,
        options: Box<sqlx::postgres::PgConnectOptions>,
    },
}

/// Connections of one engine.
struct Database<D: Dialect> {
    /// One connection on SQLite, where a second could only wait for it.
    writers: Pool<D>,
    /// On Postgres the same as the writers.
    readers: Pool<D>,
    /// The end of the audit trail as this process knows it: where it is another, a batch finds that out.
    trail: Mutex<Trail>,
}

/// Runs an expression on the database of whichever engine it is.
macro_rules! on {
    ($store:expr, $database:ident => $body:expr) => {
        match &*$store.inner {
            crate::store::Inner::Sqlite {
                database: $database, ..
            } => $body,
            crate::store::Inner::Postgres {
                database: $database, ..
            } => $body,
        }
    };
}
use on;

impl Store {
    /// Opens `postgres://…`, `postgresql://…` or `sqlite:PATH`, and brings its schema up to date. A file that is
    /// missing is created, readable by its owner only; its folder must exist.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Schema`] where a later version has been here, [`Error::Unavailable`].
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_file(url, Missing::Create).await
    }

    /// The same, where a SQLite file that is missing is a mistake.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub async fn open_existing(url: &str) -> Result<Self, Error> {
        Self::open_file(url, Missing::Refuse).await
    }

    async fn open_file(url: &str, missing: Missing) -> Result<Self, Error> {
        let store = Self {
            inner: Arc::new(connect::connect(url, missing).await?),
        };
        on!(store, database => migrations::run(database).await)?;
        Ok(store)
    }

    /// The engine that it runs on.
    pub fn kind(&self) -> Engine {
        match *self.inner {
            Inner::Sqlite { .. } => Engine::Sqlite,
            Inner::Postgres { .. } => Engine::Postgres,
        }
    }

    /// Has the engine prepare every statement that the store can make, so that one that does not fit the schema is
    /// found before it is needed.
    ///
    /// # Errors
    /// [`Error::Schema`] with the statement's name and the message of the engine.
    pub async fn check_statements(&self) -> Result<(), Error> {
        on!(self, database => database.prepare_all().await)
    }

    /// Closes every connection once it is returned. Afterwards everything fails with [`Error::Unavailable`].
    pub async fn close(&self) {
        on!(self, database => {
            database.readers.close().await;
            database.writers.close().await;
        });
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("Store")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

impl<D: Dialect> Database<D> {
    fn new(writers: Pool<D>, readers: Pool<D>) -> Self {
        Self {
            writers,
            readers,
            trail: Mutex::new(Trail::empty()),
        }
    }

    /// The end of the audit trail as far as it is known.
    fn trail(&self) -> Trail {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of a later end.
    fn went_on(&self, trail: Trail) {
        *self.trail.lock().unwrap_or_else(PoisonError::into_inner) = trail;
    }

    /// Reads the rows of one statement.
    async fn read<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_, D>) -> Result<T, Error> + Send,
    ) -> Result<Vec<T>, Error>
    where
        T: Send,
    {
        let mut connection = self.readers.acquire().await?;
        read_on::<D, T>(&mut connection, sql, values, one).await
    }

    async fn prepare_all(&self) -> Result<(), Error> {
        let mut connection = self.writers.acquire().await?;
        for (name, sql) in statements::ALL {
            D::prepare(&mut connection, sql)
                .await
                .map_err(|error| Error::Schema(format!("statement {name}: {error}")))?;
        }
        for bulk in bulk::ALL_BULK {
            D::prepare(&mut connection, D::statement(bulk))
                .await
                .map_err(|error| Error::Schema(format!("statement {}: {error}", bulk.name)))?;
        }
        Ok(())
    }

    /// Runs one statement that is a transaction by itself, and says how many rows it changed.
    async fn write(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Error> {
        let mut connection = self.writers.acquire().await?;
        Ok(execute::<D>(&mut connection, sql, values).await?)
    }
}

/// Reads the rows of one statement on a connection. A row of the driver takes many times the memory of the value made from it
/// (each column of SQLite is an allocation of its own), so it is dropped before the next one comes.
async fn read_on<D: Dialect, T: Send>(
    connection: &mut D::Connection,
    sql: &'static str,
    values: &[Value<'_>],
    one: impl Fn(&Columns<'_, D>) -> Result<T, Error> + Send,
) -> Result<Vec<T>, Error> {
    let mut made = Vec::new();
    let into = &mut made;
    let each = move |row: &D::Row| {
        into.push(one(&Columns::of(row))?);
        Ok(())
    };
    fetch_each::<D>(connection, sql, values, each).await?;
    Ok(made)
}
