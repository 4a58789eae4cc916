//! The effect of a request with an `Idempotency-Key`, so that the same request again has no second effect.

use domain::clock::{MICROS_PER_SECOND, Micros};

use crate::database::Store;
use crate::engine::{Record, Result, record, statements};

/// Keys that are forgotten by one statement: on SQLite decisions wait for it.
const FORGOTTEN_AT_ONCE: u32 = 1_000;

/// How long a key is kept, in microseconds: a day, the longest that a client may go on repeating a request.
pub const IDEMPOTENCY_KEPT: Micros = 24 * 60 * 60 * MICROS_PER_SECOND;

/// A request with a key, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotent {
    /// The party that sent it; keys of different parties have nothing to do with each other.
    pub party: String,
    /// The key.
    pub key: String,
    /// A digest of the request: another request under the same key is the client's mistake.
    pub request_hash: String,
    /// The answer, in the words of its author: the same request again gets the same answer.
    pub answer: String,
    /// When.
    pub created: Micros,
}

impl Store {
    /// The effect of a party's key. One older than [`IDEMPOTENCY_KEPT`] may still be found, and counts as forgotten.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn idempotent(&self, party: &str, key: &str) -> Result<Option<Idempotent>> {
        let values = [party.into(), key.into()];
        self.read_one(statements::IDEMPOTENT, &values, Idempotent::of)
            .await
    }

    /// Forgets the keys that are older than [`IDEMPOTENCY_KEPT`] at `now`, and answers how many there were.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn forget_idempotent(&self, now: Micros) -> Result<u64> {
        let before = now.saturating_sub(IDEMPOTENCY_KEPT);
        let mut forgotten = 0;
        loop {
            let values = [before.into(), FORGOTTEN_AT_ONCE.into()];
            let portion = self.write(statements::FORGET_IDEMPOTENT, &values).await?;
            forgotten += portion;
            if portion < u64::from(FORGOTTEN_AT_ONCE) {
                return Ok(forgotten);
            }
        }
    }
}

record! { Idempotent: party, key, request_hash, answer, created "created_us" }

// As it stands in that statement.
const _: () = assert!(IDEMPOTENCY_KEPT == 86_400_000_000);
