//! Writing a batch of decisions: one transaction, under an epoch, and with a definite outcome wherever there can be
//! one.
//!
//! The rows to write, with the hashes of the trail, are made before the transaction begins, from the end of the trail as the last
//! batch left it, which the batch states. Where another process has appended to it meanwhile, they are made again. Where the end is not
//! there any more, the database has gone back: nothing is written. Each table takes one way to the database.
//!
//! Every batch writes its own id into the lease's row. That locks the row, so that a decider that took over waits for the batch
//! before it reads anything. When the connection breaks around COMMIT, the row is locked again: that waits until the server has
//! ended the broken transaction, and the id in the row says which end it had.

use std::time::Duration;

use domain::change::Change;
use uuid::Uuid;

use super::held_nodes::held_nodes_before;
use super::known_trail::confirm_known_trail_end;
use super::lease::no_lease_row;
use super::tables::{BatchTables, Failure};
use super::trail::Trail;
use crate::engine::{
    Connection, Error, Result, is_contention_error, is_error_of_undone_transaction, silent_database_error,
    statements,
};
use crate::store::{ANSWER_WAIT, Store};

/// How often a batch is tried where it only stood in another transaction's way, or was found not to be stored.
const ATTEMPTS: u32 = 4;
/// How often the outcome of a COMMIT is asked for, and how long to wait before the second time; it doubles then. With the time of
/// the attempts themselves, this is about as long as a server's restart.
const INQUIRIES: u32 = 6;
const INQUIRY_WAIT: Duration = Duration::from_millis(100);

impl Store {
    /// Writes one batch in one transaction, for the holder of the lease with this epoch. Takes time in proportion to
    /// the batch.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] where a later epoch exists, [`Error::Conflict`] where a change does not fit the store,
    /// [`Error::Unavailable`], [`Error::Damaged`] where the database is not as it was left; after these nothing was written, or only into
    /// files that are lost. [`Error::Unknown`] where the connection broke around COMMIT and
    /// the database did not come back in time.
    pub async fn commit(&self, epoch: i64, batch: &[Change]) -> Result<()> {
        self.known.refuse_damaged()?;
        let id = Uuid::now_v7();
        let mut attempt = 1;
        loop {
            let again: Error = match Box::pin(self.commit_batch(epoch, id, batch)).await {
                Ok(()) => return Ok(()),
                Err(Failure::Refused(error)) => return self.told(Err(error)),
                Err(Failure::Contention(error)) => error.into(),
                Err(Failure::Unknown(error)) => match self.was_batch_committed(epoch, id).await {
                    Some(true) => return Ok(()),
                    Some(false) => error.into(),
                    None => {
                        return Err(Error::Unknown {
                            batch: id,
                            why: Box::new(error),
                        });
                    }
                },
            };
            if attempt == ATTEMPTS {
                return Err(again);
            }
            tracing::warn!(attempt, error = %again, "a batch is written again");
            attempt += 1;
        }
    }

    /// One attempt.
    async fn commit_batch(&self, epoch: i64, id: Uuid, batch: &[Change]) -> Result<(), Failure> {
        let known = self.known.trail();
        let held = held_nodes_before(self, batch).await?;
        let tables = BatchTables::of(batch, &known, &held)?;
        let begun = tokio::time::timeout(ANSWER_WAIT, self.begin()).await;
        let mut transaction = begun.map_err(|_| silent_database_error())??;
        let writing = async {
            if begin_commit(&mut transaction, epoch, id, (&known, &tables.trail)).await? {
                tables.write(&mut transaction).await?;
                return Ok::<_, Failure>((transaction, tables.trail));
            }
            let rows = transaction.read(statements::LOCK_TRAIL, &[], |row| {
                Ok((row.integer("epoch")?, Trail::of(row)?))
            });
            // A key was made or revoked since, or another process decides, or the database has gone back.
            let (current, stored) = rows.await?.pop().ok_or_else(no_lease_row)?;
            confirm_known_trail_end(&mut transaction, &known, &stored).await?;
            if current != epoch {
                return Err(Error::LeaseLost.into());
            }
            let tables = BatchTables::of(batch, &stored, &held)?;
            begin_commit(&mut transaction, epoch, id, (&stored, &tables.trail)).await?;
            tables.write(&mut transaction).await?;
            Ok((transaction, tables.trail))
        };
        let writers = &self.database.writers;
        let (transaction, trail) = writers.answer(ANSWER_WAIT, writing).await??;
        // What goes into a file that was removed is not there after the end of this process.
        if let Err(gone) = self.database.confirm_files() {
            // A connection that is dropped is opened anew, to what has the name now.
            let _ = transaction.rollback().await;
            return Err(gone.into());
        }
        match writers.answer(ANSWER_WAIT, transaction.commit()).await {
            Ok(Ok(())) => {
                self.database.confirm_files()?;
                self.known.note(trail);
                Ok(())
            }
            Ok(Err(error)) if is_contention_error(&error) || is_error_of_undone_transaction(&error) => {
                Err(error.into())
            }
            Ok(Err(error)) | Err(error) => Err(Failure::Unknown(error)),
        }
    }

    /// Whether a batch was stored after all, where that can be found out: `None` where the database does not come back, or
    /// another decider has written since.
    async fn was_batch_committed(&self, epoch: i64, id: Uuid) -> Option<bool> {
        let mut wait = INQUIRY_WAIT;
        for inquiry in 1..=INQUIRIES {
            match tokio::time::timeout(ANSWER_WAIT, self.settled_last_commit()).await {
                Ok(Ok((current, last))) => return (current == epoch).then_some(last == Some(id)),
                Ok(Err(Error::Damaged(_))) => return None,
                Ok(Err(error)) => tracing::warn!(inquiry, %error, "the outcome of a batch is not known yet"),
                Err(_) => tracing::warn!(inquiry, "the outcome of a batch is not known yet: no answer"),
            }
            if inquiry < INQUIRIES {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        None
    }

    /// The epoch and the last batch, once no transaction that writes is open any more.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the database has gone back.
    pub(crate) async fn settled_last_commit(&self) -> Result<(i64, Option<Uuid>)> {
        let settled = self.settle_last_commit().await;
        self.told(settled)
    }

    async fn settle_last_commit(&self) -> Result<(i64, Option<Uuid>)> {
        self.database.confirm_files()?;
        let known = self.known.trail();
        let mut transaction = self.begin().await?;
        let found = transaction.read_lease(statements::SETTLE, |row| {
            let of_batch = (row.integer("epoch")?, row.maybe_id("batch")?);
            Ok((of_batch, Trail::of(row)?))
        });
        let (found, stored) = found.await?;
        confirm_known_trail_end(&mut transaction, &known, &stored).await?;
        transaction.commit().await?;
        self.known.note(stored);
        Ok(found)
    }
}

/// Locks the lease's row and has the trail go on; false where the epoch or the end of the trail is another than is known.
async fn begin_commit(
    connection: &mut Connection,
    epoch: i64,
    id: Uuid,
    (known, after): (&Trail, &Trail),
) -> Result<bool, sqlx::Error> {
    let values = [
        epoch.into(),
        id.into(),
        known.number.into(),
        (&known.hash).into(),
        after.number.into(),
        (&after.hash).into(),
        after.sums.to_string().into(),
    ];
    Ok(connection.execute(statements::BEGIN_BATCH, &values).await? == 1)
}
