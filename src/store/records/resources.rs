//! The resources as they are configured, and their earlier capacities.

use super::agreements;
use crate::agreement::Agreement;
use crate::clock::Micros;
use crate::store::database::Store;
use crate::store::engine::{Connection, Error, Record, Result, record, statements};
use crate::store::verify::{Capacity, overbooked};

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
    pub async fn put_resources(&self, resources: &[ResourceRow], now: Micros) -> Result<()> {
        let mut transaction = self.begin().await?;
        check_promises(&mut transaction, resources).await?;
        for resource in resources {
            let values = resource.values();
            transaction.execute(statements::PUT_RESOURCE, &values).await?;
            let values = [(&resource.name).into(), now.into()];
            transaction.execute(statements::RECORD_CAPACITY, &values).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The resources, by name.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn resources(&self) -> Result<Vec<ResourceRow>> {
        self.read(statements::RESOURCES, &[], ResourceRow::of).await
    }
}

record! { ResourceRow: name, kind, capacity }

/// Refuses capacities that are less than the nodes promised on them. Stored, they would turn a mistake in a configuration into a
/// violated invariant, and a lasting one.
async fn check_promises(connection: &mut Connection, resources: &[ResourceRow]) -> Result<()> {
    let before = connection
        .read(statements::RESOURCES, &[], ResourceRow::of)
        .await?;
    let shrunk = |row: &&ResourceRow| {
        before
            .iter()
            .any(|before| before.name == row.name && before.capacity > row.capacity)
    };
    if !resources.iter().any(|row| shrunk(&row)) {
        return Ok(());
    }
    let live = connection
        .read(statements::LIVE_AGREEMENTS, &[], agreements::read)
        .await?;
    for resource in resources.iter().filter(shrunk) {
        let loads: Vec<_> = live
            .iter()
            .filter(|agreement| agreement.resource == resource.name)
            .flat_map(Agreement::loads)
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
