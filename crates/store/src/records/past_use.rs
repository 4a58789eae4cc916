//! How the resources were used.

use std::collections::BTreeMap;

use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::Time;

use crate::engine::{Result, statements};
use crate::store::Store;

/// How a resource was used in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PastUse {
    /// Node-seconds that agreements had.
    pub booked: i64,
    /// Node-microseconds for which the processes ran of work that has ended.
    pub used: Micros,
}

/// How each resource was used from an instant until `now`, as far as nothing of that time is archived. Takes time in proportion to the
/// agreements of that time and their nodes.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn past_use_of_resources(
    store: &Store,
    since: Time,
    now: Time,
) -> Result<BTreeMap<String, PastUse>> {
    let mut found: BTreeMap<String, PastUse> = BTreeMap::new();
    let seconds = [since.into(), now.into()];
    let booked = store.read(statements::BOOKED_BETWEEN, &seconds, |row| {
        Ok((row.text("resource")?, row.integer("booked_s")?))
    });
    for (resource, booked) in booked.await? {
        found.entry(resource).or_default().booked = booked;
    }
    let micros = [since, now].map(|at| at.seconds().saturating_mul(MICROS_PER_SECOND).into());
    let used = store.read(statements::USED_BETWEEN, &micros, |row| {
        Ok((row.text("resource")?, row.integer("used_us")?))
    });
    for (resource, used) in used.await? {
        found.entry(resource).or_default().used = used;
    }
    Ok(found)
}
