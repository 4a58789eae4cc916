//! The two engines behind one connection, so that everything above is written once.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use futures_util::TryStreamExt;
use scheduler::Time;
use sqlx::pool::PoolConnection;
use sqlx::{Arguments, Encode, Executor, Postgres, SqlSafeStr, Sqlite, Type};
use uuid::Uuid;

use super::error::Error;
use super::rows::Columns;

/// A database that takes longer than this for the next row does not answer any more.
const ROW_WAIT: Duration = Duration::from_secs(30);

/// The engines that the store runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file of this machine, owned by one process.
    Sqlite,
    /// A server.
    Postgres,
}

/// Connections to a database.
#[derive(Clone)]
pub(in crate::store) enum Pool {
    Sqlite(sqlx::Pool<Sqlite>),
    Postgres(sqlx::Pool<Postgres>),
}

/// One of them.
pub(in crate::store) enum Connection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl Pool {
    /// Waits for a free connection.
    pub(in crate::store) async fn acquire(&self) -> sqlx::Result<Connection> {
        Ok(match self {
            Self::Sqlite(pool) => Connection::Sqlite(pool.acquire().await?),
            Self::Postgres(pool) => Connection::Postgres(pool.acquire().await?),
        })
    }

    /// Closes every connection once it is returned.
    pub(in crate::store) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Connection {
    pub(in crate::store) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement and says how many rows it changed.
    pub(in crate::store) async fn execute(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> sqlx::Result<u64> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query_with(sql, arguments::<Sqlite>(values)?);
                query.execute(&mut **connection).await?.rows_affected()
            }
            Self::Postgres(connection) => {
                let query = sqlx::query_with(sql, arguments::<Postgres>(values)?);
                query.execute(&mut **connection).await?.rows_affected()
            }
        })
    }

    /// Reads the rows of one statement. A row of the driver takes many times the memory of the value made from it (each column
    /// of SQLite is an allocation of its own), so it is dropped before the next one comes.
    pub(in crate::store) async fn read<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_>) -> Result<T, Error> + Send,
    ) -> Result<Vec<T>, Error> {
        let mut made = Vec::new();
        match self {
            Self::Sqlite(connection) => {
                let mut rows = sqlx::query_with(sql, arguments::<Sqlite>(values)?).fetch(&mut **connection);
                while let Some(row) = in_time(rows.try_next()).await? {
                    made.push(one(&Columns::Sqlite(&row))?);
                }
            }
            Self::Postgres(connection) => {
                let mut rows = sqlx::query_with(sql, arguments::<Postgres>(values)?).fetch(&mut **connection);
                while let Some(row) = in_time(rows.try_next()).await? {
                    made.push(one(&Columns::Postgres(&row))?);
                }
            }
        }
        Ok(made)
    }

    /// Reads all rows by the first of two statements, or only those of one name by the second: it takes the name after the
    /// other values.
    pub(in crate::store) async fn read_of<T: Send>(
        &mut self,
        name: Option<&str>,
        values: &[Value<'_>],
        [of_all, of_one]: [&'static str; 2],
        one: impl Fn(&Columns<'_>) -> Result<T, Error> + Send,
    ) -> Result<Vec<T>, Error> {
        match name {
            None => self.read(of_all, values, one).await,
            Some(name) => self.read(of_one, &[values, &[name.into()]].concat(), one).await,
        }
    }

    /// Runs a text of several statements without arguments.
    pub(in crate::store) async fn script(&mut self, sql: &'static str) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(connection) => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop),
            Self::Postgres(connection) => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop),
        }
    }

    /// Does not give the connection back to its pool when it is dropped.
    pub(in crate::store) fn close_on_drop(&mut self) {
        match self {
            Self::Sqlite(connection) => connection.close_on_drop(),
            Self::Postgres(connection) => connection.close_on_drop(),
        }
    }

    /// Has the engine check a statement without running it.
    pub(in crate::store) async fn prepare(&mut self, sql: &'static str) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(connection) => connection.prepare(sql.into_sql_str()).await.map(drop),
            Self::Postgres(connection) => connection.prepare(sql.into_sql_str()).await.map(drop),
        }
    }
}

/// The next row, if the database answers in time.
async fn in_time<T>(next: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(ROW_WAIT, next)
        .await
        .unwrap_or_else(|_| Err(silence()))
}

/// A database that does not answer.
pub(in crate::store) fn silence() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the database did not answer",
    ))
}

/// A value for a placeholder. A column holds one of these three, or nothing.
#[derive(Debug, Clone)]
pub(in crate::store) enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Id(Option<Uuid>),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(Some(value.into()))
    }
}

impl From<Time> for Value<'_> {
    fn from(value: Time) -> Self {
        Self::Integer(Some(value.seconds()))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_deref().into()
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(value: Option<String>) -> Self {
        Self::Text(value.map(Cow::Owned))
    }
}

impl From<Uuid> for Value<'_> {
    fn from(value: Uuid) -> Self {
        Self::Id(Some(value))
    }
}

impl From<Option<Uuid>> for Value<'_> {
    fn from(value: Option<Uuid>) -> Self {
        Self::Id(value)
    }
}

/// Values as the arguments of a statement.
fn arguments<D: sqlx::Database>(values: &[Value<'_>]) -> sqlx::Result<D::Arguments>
where
    Option<i64>: for<'q> Encode<'q, D> + Type<D>,
    Option<Uuid>: for<'q> Encode<'q, D> + Type<D>,
    for<'q> Option<&'q str>: Encode<'q, D> + Type<D>,
{
    let mut arguments = D::Arguments::default();
    for value in values {
        match value {
            Value::Integer(integer) => arguments.add(*integer),
            Value::Text(text) => arguments.add(text.as_deref()),
            Value::Id(id) => arguments.add(*id),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
