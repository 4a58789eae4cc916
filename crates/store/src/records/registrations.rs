//! Where parties have their events told, and how far each telling has come.

use domain::clock::Micros;
use uuid::Uuid;

use crate::batch::trail::Trail;
use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// Where the events of a party are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its id, another each time that it is put.
    pub id: Uuid,
    /// The party.
    pub party: String,
    /// The name that the party has given.
    pub name: String,
    /// The address; none where it only has the secret for the calls of single agreements.
    pub address: Option<String>,
    /// The secret that signs the calls.
    pub secret: String,
    /// When it was put.
    pub created: Micros,
    /// The number of the last event that was told.
    pub told: i64,
    /// How often the next event was tried.
    pub attempts: u32,
    /// When that failed for the first time; none where it did not fail.
    pub failing: Option<Micros>,
    /// When it is tried next.
    pub due: Micros,
}

/// Stores a registration, in place of the one of this name, which has been told the same events; a new one is told the events from
/// now on. False where the party has `most` others.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn put_registration(store: &Store, mut registration: Registration, most: usize) -> Result<bool> {
    let mut transaction = store.begin().await?;
    // One after the other, and between two batches.
    registration.told = transaction
        .read_lease(statements::LOCK_TRAIL, Trail::of)
        .await?
        .number;
    let others = transaction
        .read(
            statements::REGISTRATIONS,
            &[(&registration.party).into()],
            |row| row.text("name"),
        )
        .await?;
    if others.iter().filter(|name| **name != registration.name).count() >= most {
        transaction.rollback().await?;
        return Ok(false);
    }
    transaction
        .execute(statements::REGISTER, &registration.values())
        .await?;
    transaction.commit().await?;
    Ok(true)
}

/// The registrations of a party, by name.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn registrations_of_party(store: &Store, party: &str) -> Result<Vec<Registration>> {
    store
        .read(statements::REGISTRATIONS, &[party.into()], Registration::of)
        .await
}

/// Removes a registration; false where there is none of this name.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn remove_registration_named(store: &Store, party: &str, name: &str) -> Result<bool> {
    let values = [party.into(), name.into()];
    Ok(store.write(statements::UNREGISTER, &values).await? > 0)
}

/// At most `limit` registrations with an event that is to be told by `now`, the longest due first, and at most `of_each` of one
/// party. So slow receivers of one party do not delay other parties. The events of a party without a valid key wait.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn registrations_due(
    store: &Store,
    now: Micros,
    limit: u32,
    of_each: u32,
) -> Result<Vec<Registration>> {
    let values = [now.into(), limit.into(), of_each.into()];
    store
        .read(statements::REGISTRATIONS_DUE, &values, Registration::of)
        .await
}

/// Whether a registration is still to be told events at `now`: it was not removed or replaced, and a key of its party works.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn is_registration_to_be_told(store: &Store, id: Uuid, now: Micros) -> Result<bool> {
    let values = [id.into(), now.into()];
    let found = store.read_one(statements::IS_TO_BE_TOLD, &values, |row| row.id("id"));
    Ok(found.await?.is_some())
}

/// Notes that the events up to a number were told at `now`: others that are due have their turn before the next one.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn note_registration_told(store: &Store, id: Uuid, number: i64, now: Micros) -> Result<()> {
    let values = [id.into(), number.into(), now.into()];
    store.write(statements::TOLD, &values).await.map(drop)
}

/// Notes that the events up to a number are not told any more.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn note_registration_dropped(store: &Store, id: Uuid, number: i64) -> Result<()> {
    store
        .write(statements::EVENTS_DROPPED, &[id.into(), number.into()])
        .await
        .map(drop)
}

/// Notes that the next event could not be told at `now`, and when it is to be tried again.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn postpone_registration(store: &Store, id: Uuid, due: Micros, now: Micros) -> Result<()> {
    let values = [id.into(), due.into(), now.into()];
    store.write(statements::TELLING_FAILED, &values).await.map(drop)
}

/// Removes a registration whose receiver is gone for good.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn remove_registration(store: &Store, id: Uuid) -> Result<()> {
    store
        .write(statements::REGISTRATION_GONE, &[id.into()])
        .await
        .map(drop)
}

record! {
    Registration: id, party, name, address, secret, created "created_us", told, attempts,
    failing "failing_us", due "due_us"
}
