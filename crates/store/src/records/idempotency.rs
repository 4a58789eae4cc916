//! The effect of a request with an `Idempotency-Key`, so that the same request again has no second effect.

use domain::change::{IDEMPOTENCY_KEPT, Idempotent};
use domain::clock::Micros;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// Keys that are forgotten by one statement: on SQLite decisions wait for it.
const FORGOTTEN_AT_ONCE: u32 = 1_000;

/// The effect of a party's key. One older than [`IDEMPOTENCY_KEPT`] may still be found, and counts as forgotten.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn idempotent_request(store: &Store, party: &str, key: &str) -> Result<Option<Idempotent>> {
    let values = [party.into(), key.into()];
    store
        .read_one(statements::IDEMPOTENT, &values, Idempotent::of)
        .await
}

/// Forgets the keys that are older than [`IDEMPOTENCY_KEPT`] at `now`, and answers how many there were.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn forget_idempotent_requests(store: &Store, now: Micros) -> Result<u64> {
    let before = now.saturating_sub(IDEMPOTENCY_KEPT);
    let mut forgotten = 0;
    loop {
        let values = [before.into(), FORGOTTEN_AT_ONCE.into()];
        let portion = store.write(statements::FORGET_IDEMPOTENT, &values).await?;
        forgotten += portion;
        if portion < u64::from(FORGOTTEN_AT_ONCE) {
            return Ok(forgotten);
        }
    }
}

record! { Idempotent: party, key, request_hash, answer, created "created_us" }

// As it stands in that statement.
const _: () = assert!(IDEMPOTENCY_KEPT == 86_400_000_000);
