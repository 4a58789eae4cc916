//! The differences of the two engines, behind one small trait, so that everything above is written once.
//!
//! The bodies of the common part are the same for both and are made by a macro. The reason is that sqlx states its bounds per
//! value and per connection: generic code over them would repeat a page of bounds at every function.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use futures_util::TryStreamExt;
use scheduler::Time;
use sqlx::error::BoxDynError;
use sqlx::{Arguments, Executor, Row, SqlSafeStr};
use uuid::Uuid;

use super::Error;
use super::bulk::TakesRows;
use super::key_changes;

/// A database that takes longer than this for the next row does not answer any more.
const ROW_WAIT: Duration = Duration::from_secs(30);

/// A database that does not answer.
pub(super) fn silence() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        "the database did not answer",
    ))
}

/// A value for a placeholder. A column holds one of these three, or nothing.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
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

/// A database engine that the store can use.
pub(super) trait Dialect: TakesRows {
    /// Begins a transaction that writes.
    const BEGIN: &'static str;
    /// Begins a transaction that reads one state of the database, whichever writes happen meanwhile.
    const BEGIN_SNAPSHOT: &'static str;
    /// Makes others that migrate wait until this transaction ends; `None` where [`Self::BEGIN`] does so.
    const LOCK_MIGRATIONS: Option<&'static str>;
    /// Tells other processes that keys have changed; `None` where they look each time.
    const NOTIFY_KEYS: Option<&'static str>;
    /// The migrations of this engine only, by version.
    const OWN_MIGRATIONS: &'static [(i64, &'static str)];

    /// Appends a value to the arguments of a statement.
    fn push(arguments: &mut Self::Arguments, value: &Value<'_>) -> Result<(), BoxDynError>;

    /// Runs a statement and says how many rows it changed.
    fn execute(
        connection: &mut Self::Connection,
        sql: &'static str,
        arguments: Self::Arguments,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Runs a statement and fetches its rows.
    fn fetch(
        connection: &mut Self::Connection,
        sql: &'static str,
        arguments: Self::Arguments,
    ) -> impl Future<Output = sqlx::Result<Vec<Self::Row>>> + Send;

    /// Runs a statement and hands over its rows one by one: only one of them is in memory at a time. The first that `each` fails
    /// with ends it.
    fn fetch_each(
        connection: &mut Self::Connection,
        sql: &'static str,
        arguments: Self::Arguments,
        each: impl FnMut(&Self::Row) -> Result<(), Error> + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Runs a text of several statements without arguments.
    fn script(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Has a statement checked by the engine without running it.
    fn prepare(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The integer of a column, if it is not null.
    fn integer(row: &Self::Row, column: &str) -> sqlx::Result<Option<i64>>;

    /// The text of a column, if it is not null.
    fn text(row: &Self::Row, column: &str) -> sqlx::Result<Option<String>>;

    /// The id of a column, if it is not null.
    fn id(row: &Self::Row, column: &str) -> sqlx::Result<Option<Uuid>>;
}

/// The part of [`Dialect`] that reads the same for both engines.
macro_rules! common {
    () => {
        fn push(arguments: &mut Self::Arguments, value: &Value<'_>) -> Result<(), BoxDynError> {
            match value {
                Value::Integer(integer) => arguments.add(*integer),
                Value::Text(text) => arguments.add(text.as_deref()),
                Value::Id(id) => arguments.add(*id),
            }
        }

        async fn execute(
            connection: &mut Self::Connection,
            sql: &'static str,
            arguments: Self::Arguments,
        ) -> sqlx::Result<u64> {
            Ok(sqlx::query_with(sql, arguments)
                .execute(connection)
                .await?
                .rows_affected())
        }

        async fn fetch(
            connection: &mut Self::Connection,
            sql: &'static str,
            arguments: Self::Arguments,
        ) -> sqlx::Result<Vec<Self::Row>> {
            sqlx::query_with(sql, arguments).fetch_all(connection).await
        }

        async fn fetch_each(
            connection: &mut Self::Connection,
            sql: &'static str,
            arguments: Self::Arguments,
            mut each: impl FnMut(&Self::Row) -> Result<(), Error> + Send,
        ) -> Result<(), Error> {
            let mut rows = sqlx::query_with(sql, arguments).fetch(connection);
            loop {
                let next = tokio::time::timeout(ROW_WAIT, rows.try_next());
                match next.await.map_err(|_| silence())?? {
                    Some(row) => each(&row)?,
                    None => return Ok(()),
                }
            }
        }

        async fn script(connection: &mut Self::Connection, sql: &'static str) -> sqlx::Result<()> {
            sqlx::raw_sql(sql).execute(connection).await.map(|_| ())
        }

        async fn prepare(connection: &mut Self::Connection, sql: &'static str) -> sqlx::Result<()> {
            connection.prepare(sql.into_sql_str()).await.map(|_| ())
        }

        fn integer(row: &Self::Row, column: &str) -> sqlx::Result<Option<i64>> {
            row.try_get(column)
        }

        fn text(row: &Self::Row, column: &str) -> sqlx::Result<Option<String>> {
            row.try_get(column)
        }

        fn id(row: &Self::Row, column: &str) -> sqlx::Result<Option<Uuid>> {
            row.try_get(column)
        }
    };
}

impl Dialect for sqlx::Sqlite {
    // Taking the write lock at once: a transaction that reads first and writes later could find that another has
    // written in between, and fail.
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const BEGIN_SNAPSHOT: &'static str = "BEGIN";
    const LOCK_MIGRATIONS: Option<&'static str> = None;
    const NOTIFY_KEYS: Option<&'static str> = None;
    const OWN_MIGRATIONS: &'static [(i64, &'static str)] = &[];

    common!();
}

impl Dialect for sqlx::Postgres {
    // Not SERIALIZABLE: the lease's row is locked by every batch and the versions are checked, which conflicts less. Rows
    // are found by their indexes: a plan that was made while a table was small reads all of it for as long as it is kept.
    const BEGIN: &'static str =
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL enable_seqscan = off";
    const BEGIN_SNAPSHOT: &'static str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    const LOCK_MIGRATIONS: Option<&'static str> = Some("SELECT pg_advisory_xact_lock(7018974217)");
    const NOTIFY_KEYS: Option<&'static str> = Some(key_changes::NOTIFY);
    const OWN_MIGRATIONS: &'static [(i64, &'static str)] =
        &[(1, include_str!("../../migrations/postgres/0001_first.sql"))];

    common!();
}

/// Runs a statement and says how many rows it changed.
pub(super) async fn execute<D: Dialect>(
    connection: &mut D::Connection,
    sql: &'static str,
    values: &[Value<'_>],
) -> sqlx::Result<u64> {
    D::execute(connection, sql, arguments::<D>(values)?).await
}

/// Runs a statement and fetches its rows.
pub(super) async fn fetch<D: Dialect>(
    connection: &mut D::Connection,
    sql: &'static str,
    values: &[Value<'_>],
) -> sqlx::Result<Vec<D::Row>> {
    D::fetch(connection, sql, arguments::<D>(values)?).await
}

/// Runs a statement and hands over its rows one by one.
pub(super) async fn fetch_each<D: Dialect>(
    connection: &mut D::Connection,
    sql: &'static str,
    values: &[Value<'_>],
    each: impl FnMut(&D::Row) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    D::fetch_each(connection, sql, arguments::<D>(values)?, each).await
}

fn arguments<D: Dialect>(values: &[Value<'_>]) -> sqlx::Result<D::Arguments> {
    let mut arguments = D::Arguments::default();
    for value in values {
        D::push(&mut arguments, value).map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
