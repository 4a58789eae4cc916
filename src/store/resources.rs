//! The resources as they are configured, and their earlier capacities.

use super::engine::{Dialect, execute};
use super::rows::Columns;
use super::verify::{Capacity, Load, overbooked};
use super::{Database, Error, Store, agreements, on, read_on, statements};
use crate::agreement::Agreement;
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
    /// [`Error::Conflict`] where one is to have fewer nodes than live agreements were promised on it;
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
    let mut transaction = database.begin().await?;
    check_promises::<D>(&mut transaction, resources).await?;
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

/// Refuses capacities that are less than the nodes promised on them. Stored, they would turn a mistake in a configuration into a
/// violated invariant, and a lasting one.
async fn check_promises<D: Dialect>(
    connection: &mut D::Connection,
    resources: &[ResourceRow],
) -> Result<(), Error> {
    let before = read_on::<D, _>(connection, statements::RESOURCES, &[], read).await?;
    let shrunk = |row: &&ResourceRow| {
        before
            .iter()
            .any(|before| before.name == row.name && before.capacity > row.capacity)
    };
    if !resources.iter().any(|row| shrunk(&row)) {
        return Ok(());
    }
    let live = read_on::<D, _>(connection, statements::LIVE_AGREEMENTS, &[], agreements::read).await?;
    for resource in resources.iter().filter(shrunk) {
        let loads: Vec<_> = live
            .iter()
            .filter(|agreement| agreement.resource == resource.name)
            .flat_map(Agreement::loads)
            .map(|(interval, nodes)| Load { interval, nodes })
            .collect();
        let capacity = Capacity {
            since: 0,
            nodes: resource.capacity,
        };
        if let Some(peak) = overbooked(&loads, &[capacity]).first() {
            return Err(Error::Conflict(format!("resource {}: {peak}", resource.name)));
        }
    }
    Ok(())
}
