//! Whether a database has room, found out by taking some.

use domain::change::{Change, IDEMPOTENCY_KEPT, Idempotent};
use sha2::{Digest, Sha256};

use crate::engine::{Result, hex};
use crate::records::idempotency::forget_idempotent_requests;
use crate::store::Store;

/// Bytes that are written to find out: more than a batch of ordinary offers takes, little enough to be written again and again.
const ROOM: usize = 256 * 1_024;

/// Writes a quarter of a MiB and removes it again, as the holder of the lease with this epoch. A database on a full disk may
/// still take a row that fits on a page that it has, and refuse the next batch.
///
/// # Errors
/// The errors of [`Store::commit`], which are `Error::Unavailable` where there is no room.
pub async fn prove_free_space(store: &Store, epoch: i64) -> Result<()> {
    // An answer of the year 1970 to a party without a name: no request finds it, and where this process dies in
    // between, it is forgotten with other old answers.
    let filler = Idempotent {
        party: String::new(),
        key: String::new(),
        request_hash: String::new(),
        answer: filler_of_free_space(),
        created: 0,
    };
    let forgotten_at = filler.created + IDEMPOTENCY_KEPT + 1;
    forget_idempotent_requests(store, forgotten_at).await?;
    store.commit(epoch, &[Change::RememberRequest(filler)]).await?;
    forget_idempotent_requests(store, forgotten_at).await?;
    Ok(())
}

/// Text that no engine can store in less room.
fn filler_of_free_space() -> String {
    let mut text = String::with_capacity(ROOM);
    let mut digest = Sha256::digest([]);
    while text.len() < ROOM {
        text += &hex(&digest);
        digest = Sha256::digest(digest);
    }
    text
}
