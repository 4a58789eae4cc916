//! The end of the audit trail that no failover takes back, as the database has it. The trail has to go on from the end that this process
//! knows.

use super::known_trail::confirm_known_trail_end_by_pool;
use super::lease::{SESSION_ANSWER_WAIT, no_lease_row};
use super::trail::Trail;
use crate::engine::{Engine, Result, statements};
use crate::store::Store;

/// Takes note of the end of the audit trail, for a process that does not decide: it may have to take over from one that is lost together
/// with the server of the database.
///
/// # Errors
/// [`crate::Error::Damaged`] where the database has gone back since the last call; [`crate::Error::Unavailable`].
pub async fn follow_trail_end(store: &Store) -> Result<()> {
    lasting_trail_end(store).await.map(drop)
}

/// The end of the audit trail that no failover takes back, of which this process takes note. A line that can be read need not be such
/// a one: a server that has crashed and is back shows a commit that its standby does not have, and that nobody was told of.
///
/// # Errors
/// [`crate::Error::Damaged`] where the database has gone back; [`crate::Error::Unavailable`].
pub(crate) async fn lasting_trail_end(store: &Store) -> Result<Trail> {
    let end = find_lasting_trail_end(store).await;
    store.told(end)
}

async fn find_lasting_trail_end(store: &Store) -> Result<Trail> {
    let known = store.known.trail();
    let found = store.read_one(statements::TRAIL, &[], Trail::of).await?;
    let read = found.ok_or_else(no_lease_row)?;
    if read == known {
        return Ok(read);
    }
    let stored = match store.kind() {
        // What can be read is on the disk.
        Engine::Sqlite => read,
        Engine::Postgres => settle_trail_end(store).await?,
    };
    confirm_known_trail_end_by_pool(&store.database.readers, &known, &stored).await?;
    store.known.note(stored.clone());
    Ok(stored)
}

/// The stored end, by a statement that writes and is a transaction by itself: its commit waits for the standbys as that of a batch
/// does, and thereby for everything before it. It needs no second message, so a process that stands still in it locks nothing.
async fn settle_trail_end(store: &Store) -> Result<Trail> {
    let writers = &store.database.writers;
    let mut connection = writers.acquire().await?;
    let settled = connection.read_lease(statements::LOCK_TRAIL, Trail::of);
    let settled = writers.answer(SESSION_ANSWER_WAIT, settled).await;
    // The server may still be at it.
    settled.inspect_err(|_| connection.close_on_drop())?
}
