//! The two engines behind one connection, so that everything above is written once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Encode, Executor, IntoArguments, Postgres, SqlSafeStr, Sqlite, Type};
use uuid::Uuid;

use super::columns::Columns;
use super::error::{Result, silent_database_error};
use super::sessions::Sessions;
use super::stored_value::Value;

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
pub(crate) enum Pool {
    Sqlite(sqlx::Pool<Sqlite>),
    Postgres(Arc<Sessions>),
}

/// One connection to a database.
pub(crate) enum Connection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl Pool {
    /// Waits for a free connection.
    pub(crate) async fn acquire(&self) -> sqlx::Result<Connection> {
        Ok(match self {
            Self::Sqlite(pool) => Connection::Sqlite(pool.acquire().await?),
            Self::Postgres(sessions) => Connection::Postgres(sessions.acquire().await?),
        })
    }

    /// Closes every connection once it is returned.
    pub(crate) async fn close(&self) {
        either!(self, pool => pool.close().await);
    }

    /// Waits for an answer of the database, at most so long where a time is given. Of several servers it does not wait for one whose place as the primary
    /// another one has taken.
    ///
    /// # Errors
    /// That the database is silent.
    pub(crate) async fn answer<T>(
        &self,
        wait: impl Into<Option<Duration>>,
        answer: impl Future<Output = T>,
    ) -> sqlx::Result<T> {
        let wait = wait.into().unwrap_or(Duration::MAX);
        match self {
            Self::Postgres(sessions) => sessions.answer(wait, answer).await,
            Self::Sqlite(_) => {
                let answered = tokio::time::timeout(wait, answer).await;
                answered.map_err(|_| silent_database_error())
            }
        }
    }
}

impl Connection {
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<u64> {
        Ok(either!(self, connection => {
            let query = query_with_values(sql, values)?;
            query.execute(&mut **connection).await?.rows_affected()
        }))
    }

    /// Reads the rows of one statement.
    pub(crate) async fn read<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut made = Vec::new();
        let all = &mut made;
        self.each_row(sql, values, move |row| {
            all.push(one(row)?);
            Ok(())
        })
        .await?;
        Ok(made)
    }

    /// Does an action with each row of a statement. A row of the driver takes many times the memory of the value made from it (each
    /// column of SQLite is an allocation of its own), so it is dropped before the next one comes.
    pub(crate) async fn each_row(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        mut action: impl FnMut(&Columns<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut rows = query_with_values(sql, values)?.fetch(&mut **connection);
                while let Some(row) = next_row_in_time(rows.try_next()).await? {
                    action(&Columns::Sqlite(&row))?;
                }
            }
            Self::Postgres(connection) => {
                let mut rows = query_with_values(sql, values)?.fetch(&mut **connection);
                while let Some(row) = next_row_in_time(rows.try_next()).await? {
                    action(&Columns::Postgres(&row))?;
                }
            }
        }
        Ok(())
    }

    /// Reads all rows by the first of two statements, or only those of one name by the second: it takes the name after the
    /// other values.
    pub(crate) async fn read_of<T: Send>(
        &mut self,
        name: Option<&str>,
        values: &[Value<'_>],
        [of_all, of_one]: [&'static str; 2],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        match name {
            None => self.read(of_all, values, one).await,
            Some(name) => self.read(of_one, &[values, &[name.into()]].concat(), one).await,
        }
    }

    /// Does an action with each row of a statement that is made from the names of the schema, and has one column of text. None of
    /// them stays in memory.
    pub(crate) async fn each_text<E: From<sqlx::Error>>(
        &mut self,
        sql: String,
        mut action: impl FnMut(&str) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        either!(self, connection => {
            let mut rows = sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).fetch(&mut **connection);
            while let Some(text) = next_row_in_time(rows.try_next()).await? {
                action(&text)?;
            }
        });
        Ok(())
    }

    /// Reads the only column of a statement, which is text, for as long as it takes. It has no arguments, and few rows.
    pub(crate) async fn read_at_leisure(&mut self, sql: String) -> sqlx::Result<Vec<String>> {
        either!(self, connection => {
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut **connection).await
        })
    }

    /// Runs a statement that is made from the names of the schema, perhaps with a text as its argument, and says how many rows it changed.
    pub(crate) async fn execute_made(&mut self, sql: String, text: Option<&str>) -> sqlx::Result<u64> {
        Ok(either!(self, connection => {
            let query = sqlx::query(AssertSqlSafe(sql));
            let query = if let Some(text) = text { query.bind(text) } else { query };
            query.execute(&mut **connection).await?.rows_affected()
        }))
    }

    /// Runs a text of several statements without arguments.
    pub(crate) async fn script(&mut self, sql: &'static str) -> sqlx::Result<()> {
        either!(self, connection => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop))
    }

    /// Does not give the connection back to its pool when it is dropped.
    pub(crate) fn close_on_drop(&mut self) {
        either!(self, connection => connection.close_on_drop());
    }

    /// Has the engine check a statement without running it.
    pub(crate) async fn prepare(&mut self, sql: &'static str) -> sqlx::Result<()> {
        either!(self, connection => connection.prepare(sql.into_sql_str()).await.map(drop))
    }
}

/// The next row, if the database answers in time.
async fn next_row_in_time<T>(next: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(ROW_WAIT, next)
        .await
        .unwrap_or_else(|_| Err(silent_database_error()))
}

/// A statement with its arguments.
fn query_with_values<D: sqlx::Database>(
    sql: &'static str,
    values: &[Value<'_>],
) -> sqlx::Result<Query<'static, D, D::Arguments>>
where
    D::Arguments: IntoArguments<D>,
    Option<i64>: for<'q> Encode<'q, D> + Type<D>,
    Option<Uuid>: for<'q> Encode<'q, D> + Type<D>,
    for<'q> Option<&'q str>: Encode<'q, D> + Type<D>,
    for<'q> Option<&'q [u8]>: Encode<'q, D> + Type<D>,
{
    Ok(sqlx::query_with(sql, arguments_of_values(values)?))
}

/// The values of placeholders as the arguments of a statement.
pub(super) fn arguments_of_values<A: Arguments>(values: &[Value<'_>]) -> sqlx::Result<A>
where
    Option<i64>: for<'q> Encode<'q, A::Database> + Type<A::Database>,
    Option<Uuid>: for<'q> Encode<'q, A::Database> + Type<A::Database>,
    for<'q> Option<&'q str>: Encode<'q, A::Database> + Type<A::Database>,
    for<'q> Option<&'q [u8]>: Encode<'q, A::Database> + Type<A::Database>,
{
    let mut arguments = A::default();
    for value in values {
        match value {
            Value::Integer(integer) => arguments.add(*integer),
            Value::Text(text) => arguments.add(text.as_deref()),
            Value::Id(id) => arguments.add(*id),
            Value::Bytes(bytes) => arguments.add(bytes.as_deref()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
