//! Which nodes belong to which agreement, from when its slot begins until it has used it.

use scheduler::{Interval, Time};
use uuid::Uuid;

use super::engine::{Dialect, execute};
use super::rows::Columns;
use super::{Error, Store, on, statements};

/// A node that an agreement has for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Name of the resource.
    pub resource: String,
    /// Number of the node in the resource, from 0.
    pub node: u32,
    /// From when until when.
    pub interval: Interval,
    /// Its owner.
    pub agreement: Uuid,
}

impl Store {
    /// The bindings of agreements that are not final, and those that last beyond `now` (of agreements that ended within
    /// this second), by resource, node and start.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn bindings(&self, now: Time) -> Result<Vec<Binding>, Error> {
        on!(self, database => database.read(statements::LIVE_BINDINGS, &[now.into()], read).await)
    }
}

pub(super) fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<Binding, Error> {
    Ok(Binding {
        resource: row.text("resource")?,
        node: row.count("node")?,
        interval: row.interval("start_s", "end_s")?,
        agreement: row.id("agreement")?,
    })
}

/// Binds one node; false where it has another owner in the interval.
pub(super) async fn bind<D: Dialect>(
    connection: &mut D::Connection,
    agreement: Uuid,
    resource: &str,
    node: u32,
    interval: Interval,
) -> Result<bool, sqlx::Error> {
    let values = [
        resource.into(),
        node.into(),
        interval.start.into(),
        interval.end.into(),
        agreement.into(),
    ];
    Ok(execute::<D>(connection, statements::BIND_NODE, &values).await? == 1)
}

/// Gives the nodes that an agreement has at `now` to another, or to itself, until `end`.
pub(super) async fn hand_over<D: Dialect>(
    connection: &mut D::Connection,
    from: Uuid,
    to: Uuid,
    (now, end): (Time, Time),
) -> Result<(), sqlx::Error> {
    let values = [from.into(), to.into(), end.into(), now.into()];
    execute::<D>(connection, statements::HAND_OVER_NODES, &values).await?;
    Ok(())
}

/// Ends every binding of an agreement at `end`, if it does not end before.
pub(super) async fn release<D: Dialect>(
    connection: &mut D::Connection,
    agreement: Uuid,
    end: Time,
) -> Result<(), sqlx::Error> {
    let values = [agreement.into(), end.into()];
    execute::<D>(connection, statements::RELEASE_NODES, &values).await?;
    execute::<D>(connection, statements::SHORTEN_BINDINGS, &values).await?;
    Ok(())
}
