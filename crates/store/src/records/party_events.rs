//! The events that parties are told of.

use domain::agreement::PartyEvent;
use domain::clock::Micros;
use scheduler::Time;
use uuid::Uuid;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// At most `limit` events of a party after the one with a number, in order.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn events_of_party_after(
    store: &Store,
    party: &str,
    after: i64,
    limit: u32,
) -> Result<Vec<PartyEvent>> {
    let values = [party.into(), after.into(), limit.into()];
    store
        .read(statements::PARTY_EVENTS, &values, <PartyEvent as Record>::of)
        .await
}

/// The starts that were announced after an instant, each with its agreement, in order.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn starts_announced_to_parties(store: &Store, after: Micros) -> Result<Vec<(Uuid, Time)>> {
    store
        .read(statements::STARTS_ANNOUNCED, &[after.into()], |row| {
            Ok((row.id("agreement")?, row.get("planned_start_s")?))
        })
        .await
}

/// Forgets the events before an instant.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn forget_party_events(store: &Store, before: Micros) -> Result<u64> {
    store
        .write(statements::FORGET_PARTY_EVENTS, &[before.into()])
        .await
}

/// The last event of a party after the one with a number that happened at an instant or before, and how many such there are; none
/// where there is none.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn events_of_party_until(
    store: &Store,
    party: &str,
    after: i64,
    at: Micros,
) -> Result<Option<(i64, u32)>> {
    let values = [party.into(), after.into(), at.into()];
    let found = store.read_one(statements::EVENTS_UNTIL, &values, |row| {
        let newest = row.maybe_integer("newest")?;
        Ok(newest.zip(Some(row.count("many")?)))
    });
    Ok(found.await?.flatten())
}

record! {
    PartyEvent: party, number, id, at "at_us", kind, agreement, negotiation, state,
    planned "planned_start_s" "planned_end_s", detail
}
