//! Writing a batch of decisions: one transaction, under an epoch, and with a definite outcome wherever there can be
//! one. On PostgreSQL a batch of independent statements is one statement, and so one way to the server and back.
//!
//! The rows to write, with the hashes of the trail, are made before the transaction begins, from the end of the trail as the last
//! batch left it, which the batch states. Where another process has appended to it meanwhile, they are made again. Where the end is not
//! there any more, the database has gone back: nothing is written. Each table takes one way to the database.
//!
//! Every batch writes its own id into the lease's row. That locks the row, so that a decider that took over waits for the batch
//! before it reads anything. When the connection breaks around COMMIT, the row is locked again: that waits until the server has
//! ended the broken transaction, and the id in the row says which end it had. A single statement may not have reached the server
//! by then. So the row counts how often it was asked, and the statement states that number: it writes nothing once it comes too late.

use std::time::Duration;

use domain::change::Change;
use uuid::Uuid;

use super::held_nodes::held_nodes_before;
use super::known_trail::confirm_known_trail_end;
use super::lease::no_lease_row;
use super::tables::{BatchTables, Failure};
use super::trail::Trail;
use crate::engine::connection::Pool;
use crate::engine::joined::{JoinOutcome, JoinedStatement, are_independent};
use crate::engine::{
    Connection, Error, Result, Value, is_contention_error, is_error_of_undone_transaction,
    silent_database_error, statements,
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
        if self.commit_by_one_statement(epoch, id, &known, &tables).await? {
            self.known.note(tables.trail);
            return Ok(());
        }
        let begun = tokio::time::timeout(ANSWER_WAIT, self.begin()).await;
        let mut transaction = begun.map_err(|_| silent_database_error())??;
        let writing = async {
            let settled = begin_commit(&mut transaction, epoch, id, (&known, &tables.trail)).await?;
            if settled.is_some() {
                tables.write(&mut transaction).await?;
                return Ok::<_, Failure>((transaction, tables.trail, settled));
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
            let settled = begin_commit(&mut transaction, epoch, id, (&stored, &tables.trail)).await?;
            tables.write(&mut transaction).await?;
            Ok((transaction, tables.trail, settled))
        };
        let writers = &self.database.writers;
        let (transaction, trail, settled) = writers.answer(ANSWER_WAIT, writing).await??;
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
                if let Some(settled) = settled {
                    self.known.note_settled(settled);
                }
                Ok(())
            }
            Ok(Err(error)) if is_contention_error(&error) || is_error_of_undone_transaction(&error) => {
                Err(error.into())
            }
            Ok(Err(error)) | Err(error) => Err(Failure::Unknown(error)),
        }
    }

    /// Writes a batch whose statements are independent by one statement, which is a transaction by itself. False where it is not one, or it
    /// does not fit the store, which the other way then says in words: nothing is written.
    async fn commit_by_one_statement(
        &self,
        epoch: i64,
        id: Uuid,
        known: &Trail,
        tables: &BatchTables<'_>,
    ) -> Result<bool, Failure> {
        let (Pool::Postgres(sessions), Some(settled)) = (&self.database.writers, self.known.settled()) else {
            return Ok(false);
        };
        let parts = tables.parts()?;
        if !are_independent(&parts) {
            return Ok(false);
        }
        let mut guard = guard_values(epoch, id, (known, &tables.trail)).to_vec();
        guard.push(settled.into());
        let statement = JoinedStatement::of(statements::GUARD_BATCH, &guard, &parts)?;
        let opened = tokio::time::timeout(ANSWER_WAIT, sessions.take_batch_session()).await;
        let mut session = opened.map_err(|_| silent_database_error())??;
        let joined = statement.execute(&mut session.session);
        match self.database.writers.answer(ANSWER_WAIT, joined).await {
            Ok(Ok(joined)) => {
                sessions.keep_batch_session(session);
                Ok(joined == JoinOutcome::Written)
            }
            Ok(Err(error)) if is_error_of_undone_transaction(&error) => {
                sessions.keep_batch_session(session);
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
            Ok((of_batch, row.integer("settled")?, Trail::of(row)?))
        });
        let (found, settled, stored) = found.await?;
        confirm_known_trail_end(&mut transaction, &known, &stored).await?;
        transaction.commit().await?;
        self.known.note_settled(settled);
        self.known.note(stored);
        Ok(found)
    }
}

/// Locks the lease's row and has the trail go on; answers how often it was found out what became of a batch. None where the epoch or the
/// end of the trail is another than is known.
async fn begin_commit(
    connection: &mut Connection,
    epoch: i64,
    id: Uuid,
    trails: (&Trail, &Trail),
) -> Result<Option<i64>> {
    let values = guard_values(epoch, id, trails);
    let begun = connection.read(statements::BEGIN_BATCH, &values, |row| row.integer("settled"));
    Ok(begun.await?.pop())
}

/// The values of [`statements::BEGIN_BATCH`], and the first of [`statements::GUARD_BATCH`]: for the end of the trail before the batch, and
/// the one after it.
fn guard_values<'a>(epoch: i64, id: Uuid, (known, after): (&'a Trail, &'a Trail)) -> [Value<'a>; 7] {
    [
        epoch.into(),
        id.into(),
        known.number.into(),
        (&known.hash).into(),
        after.number.into(),
        (&after.hash).into(),
        after.sums.to_string().into(),
    ]
}
