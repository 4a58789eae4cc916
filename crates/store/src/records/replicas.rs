//! The processes that serve from one database, and which of them the local resources belong to.

use std::collections::BTreeMap;

use domain::clock::Micros;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// A process that serves, or has served, from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    /// Its name, the same after a restart.
    pub name: String,
    /// The address at which the others reach it.
    pub address: String,
    /// SHA-256 of the secret by which the others know it, in lower-case hexadecimal.
    pub digest: String,
    /// When it was started last.
    pub joined: Micros,
    /// How many steps of the schema its program knows.
    pub schema_version: i64,
}

/// Stores the address of a replica, in place of the one that its name had before.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn put_replica(store: &Store, row: &ReplicaRow) -> Result<()> {
    store
        .write(statements::PUT_REPLICA, &row.values())
        .await
        .map(drop)
}

/// All replicas that there have been, by their names.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn all_replicas(store: &Store) -> Result<Vec<ReplicaRow>> {
    store.read(statements::REPLICAS, &[], ReplicaRow::of).await
}

/// The replicas that local resources belong to, by the names of the resources.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn replicas_of_resources(store: &Store) -> Result<BTreeMap<String, String>> {
    let hosts = store.read(statements::RESOURCE_HOSTS, &[], |row| {
        Ok((row.text("resource")?, row.text("replica")?))
    });
    Ok(hosts.await?.into_iter().collect())
}

/// Stores which replica a local resource belongs to.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn put_replica_of_resource(store: &Store, resource: &str, replica: &str) -> Result<()> {
    let values = [resource.into(), replica.into()];
    store
        .write(statements::PUT_RESOURCE_HOST, &values)
        .await
        .map(drop)
}

/// Has all local resources of a replica belong to another name: it is called so from now on.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn rename_replica(store: &Store, before: &str, after: &str) -> Result<()> {
    let values = [before.into(), after.into()];
    store.write(statements::RENAME_RESOURCE_HOST, &values).await?;
    store
        .write(statements::FORGET_REPLICA, &values[..1])
        .await
        .map(drop)
}

record! { ReplicaRow: name, address, digest, joined "joined_us", schema_version }
