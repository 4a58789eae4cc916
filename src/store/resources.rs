//! The resources as they are configured, and what they had before.

use super::engine::{Dialect, execute};
use super::rows::Columns;
use super::{Database, Error, Store, on, statements};
use crate::clock::Micros;

/// A set of identical nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its name, which agreements refer to.
    pub name: String,
    /// Which executor it has.
    pub kind: String,
    /// Its nodes.
    pub capacity: u32,
}

impl Store {
    /// Stores the resources as configured from `now` on. One that is no longer among them stays, for the agreements
    /// that refer to it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn put_resources(&self, resources: &[ResourceRow], now: Micros) -> Result<(), Error> {
        on!(self, database => put(database, resources, now).await)
    }

    /// The resources, by name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn resources(&self) -> Result<Vec<ResourceRow>, Error> {
        on!(self, database => database.read(statements::RESOURCES, &[], read).await)
    }
}

fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<ResourceRow, Error> {
    Ok(ResourceRow {
        name: row.text("name")?,
        kind: row.text("kind")?,
        capacity: row.count("capacity")?,
    })
}

async fn put<D: Dialect>(
    database: &Database<D>,
    resources: &[ResourceRow],
    now: Micros,
) -> Result<(), Error> {
    let mut transaction = database.writers.begin_with(D::BEGIN).await?;
    for resource in resources {
        let values = [
            (&resource.name).into(),
            (&resource.kind).into(),
            resource.capacity.into(),
        ];
        execute::<D>(&mut transaction, statements::PUT_RESOURCE, &values).await?;
        let values = [(&resource.name).into(), now.into()];
        execute::<D>(&mut transaction, statements::RECORD_CAPACITY, &values).await?;
    }
    Ok(transaction.commit().await?)
}
