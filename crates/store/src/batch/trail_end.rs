//! The end of the audit trail in the database: the one that no failover takes back, and whether it goes on from the end that this process
//! knows.

use super::known_trail::{confirm_known_trail_end, is_same_end};
use super::lease::{SESSION_ANSWER_WAIT, no_lease_row};
use super::trail::Trail;
use crate::engine::{Engine, Result, statements};
use crate::store::Store;

impl Store {
    /// Takes note of the end of the audit trail, for a process that does not decide: it may have to take over from one that is lost together
    /// with the server of the database.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] where the database has gone back since the last call; [`crate::Error::Unavailable`].
    pub async fn follow_trail_end(&self) -> Result<()> {
        self.lasting_trail_end().await.map(drop)
    }

    /// The end of the audit trail that no failover takes back, of which this process takes note. A line that can be read need not be such
    /// a one: a server that has crashed and is back shows a commit that its standby does not have, and that nobody was told of.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] where the database has gone back; [`crate::Error::Unavailable`].
    pub(crate) async fn lasting_trail_end(&self) -> Result<Trail> {
        let end = self.find_lasting_trail_end().await;
        self.told(end)
    }

    async fn find_lasting_trail_end(&self) -> Result<Trail> {
        let known = self.known.trail();
        let found = self.read_one(statements::TRAIL, &[], Trail::of).await?;
        let read = found.ok_or_else(no_lease_row)?;
        if read == known {
            return Ok(read);
        }
        let stored = match self.kind() {
            // What can be read is on the disk.
            Engine::Sqlite => read,
            Engine::Postgres => self.settle_trail_end().await?,
        };
        self.confirm_trail_end(&known, &stored).await?;
        self.known.note(stored.clone());
        Ok(stored)
    }

    /// The stored end, by a statement that writes and is a transaction by itself: its commit waits for the standbys as that of a batch
    /// does, and thereby for everything before it. It needs no second message, so a process that stands still in it locks nothing.
    async fn settle_trail_end(&self) -> Result<Trail> {
        let writers = &self.database.writers;
        let mut connection = writers.acquire().await?;
        let settled = connection.read_lease(statements::SETTLE, Trail::of);
        let settled = writers.answer(SESSION_ANSWER_WAIT, settled).await;
        // The server may still be at it.
        settled.inspect_err(|_| connection.close_on_drop())?
    }

    /// Makes sure, over any session, that the trail goes on from its known end.
    pub(super) async fn confirm_trail_end_by_others(&self) -> Result<()> {
        let known = self.known.trail();
        let found = self.read_one(statements::TRAIL, &[], Trail::of).await?;
        self.confirm_trail_end(&known, &found.ok_or_else(no_lease_row)?)
            .await
    }

    /// Makes sure that a stored end, which was read after the other one was known, goes on from that one.
    pub(super) async fn confirm_trail_end(&self, known: &Trail, stored: &Trail) -> Result<()> {
        if is_same_end(known, stored) {
            return Ok(());
        }
        let mut connection = self.database.readers.acquire().await?;
        confirm_known_trail_end(&mut connection, known, stored).await
    }
}
