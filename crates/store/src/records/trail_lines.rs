//! The lines of the audit trail that are no agreement's, and the whole trail as operators read it.

use domain::agreement::{Note, NoteKind};
use domain::clock::Micros;
use uuid::Uuid;

use super::key_changes::NOTIFY;
use crate::batch::known_trail::confirm_known_trail_end;
use crate::batch::rows::note_line_row;
use crate::batch::sums::TableSums;
use crate::batch::trail::Trail;
use crate::batch::trail_end::lasting_trail_end;
use crate::engine::bulk;
use crate::engine::{Columns, Connection, Engine, Result, Value, statements};
use crate::signed_heads::{Head, SignedRestore};
use crate::store::{ANSWER_WAIT, Store};

/// A line of the audit trail, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailLine {
    /// Its place in the chain, from 1.
    pub number: i64,
    /// The chain's hash up to here, itself included.
    pub hash: String,
    /// When it happened.
    pub at: Micros,
    /// The kind of the event, in a word.
    pub kind: String,
    /// The particulars, in words.
    pub detail: String,
    /// The id of its subject.
    pub subject: Uuid,
    /// The negotiation that it belongs to, where it is one's.
    pub negotiation: Option<Uuid>,
    /// Its party, where the line names one.
    pub party: Option<String>,
}

/// At most `limit` lines of the audit trail after the one with a number, in order.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn trail_lines_after(store: &Store, after: i64, limit: u32) -> Result<Vec<TrailLine>> {
    let values = [after.into(), limit.into()];
    store
        .read(statements::TRAIL_LINES, &values, read_trail_line)
        .await
}

/// At most `limit` changes of the plan that no party asks for, out of the lines of the audit trail after the one with a number, the newest
/// first. At most `moves` of them are moves of one agreement.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn plan_changes_after(store: &Store, after: i64, moves: u32, limit: u32) -> Result<Vec<TrailLine>> {
    let values = [after.into(), moves.into(), limit.into()];
    store
        .read(statements::PLAN_CHANGES, &values, read_trail_line)
        .await
}

/// The line of a request that was refused, if it was noted.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn trail_line_of_refusal(store: &Store, request: Uuid) -> Result<Option<TrailLine>> {
    store
        .read_one(statements::REFUSED_REQUEST, &[request.into()], read_trail_line)
        .await
}

/// The timeline of an agreement with the lines of the negotiations that led to it and that were about it, in the order of the
/// trail.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn trail_lines_of_agreement(store: &Store, agreement: Uuid) -> Result<Vec<TrailLine>> {
    store
        .read(statements::TIMELINE, &[agreement.into()], read_trail_line)
        .await
}

/// The end of the audit trail, at this instant.
///
/// # Errors
/// The errors of reading.
pub async fn last_trail_line(store: &Store, at: Micros) -> Result<Head> {
    let ends = store.read(statements::TRAIL, &[], Trail::of).await?;
    let Trail { number, hash, .. } = ends.into_iter().next().unwrap_or_default();
    Ok(Head { number, hash, at })
}

/// The end of the audit trail that no failover takes back, to be signed.
///
/// # Errors
/// `Error::Damaged` where the database has gone back; `Error::Unavailable`.
pub async fn last_lasting_trail_line(store: &Store, at: Micros) -> Result<Head> {
    let Trail { number, hash, .. } = lasting_trail_end(store).await?;
    Ok(Head { number, hash, at })
}

/// Writes into the audit trail that the database was restored by other means than [`crate::backup::load_database`]. No process
/// may have the lease but the caller.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn append_trail_line_of_restore(store: &Store, restore: &SignedRestore<'_>) -> Result<()> {
    let mut transaction = store.begin().await?;
    append_restore_line(&mut transaction, restore).await?;
    Ok(transaction.commit().await?)
}

/// Appends a note to the audit trail about something that is no decision of the planner.
///
/// # Errors
/// `Error::Unavailable`, `Error::Damaged`.
pub async fn add_note(store: &Store, note: &Note) -> Result<()> {
    write_with_trail_line(store, &[], note).await.map(drop)
}

/// Carries out statements that are no decision, and appends their note, in one transaction: all of it, or nothing where the first of
/// them changes nothing. Answers whether it did. The listeners for changes of keys are notified of such changes: only Postgres has any. The
/// lease's row makes it wait for a batch that is being written, and a batch for it.
pub(crate) async fn write_with_trail_line(
    store: &Store,
    writes: &[(&'static str, &[Value<'_>])],
    note: &Note,
) -> Result<bool> {
    let written = try_write_with_trail_line(store, writes, note).await;
    store.told(written)
}

async fn try_write_with_trail_line(
    store: &Store,
    writes: &[(&'static str, &[Value<'_>])],
    note: &Note,
) -> Result<bool> {
    store.known.refuse_damaged()?;
    let known = store.known.trail();
    let mut transaction = store.begin().await?;
    let mut trail = transaction.read_lease(statements::LOCK_TRAIL, Trail::of).await?;
    confirm_known_trail_end(&mut transaction, &known, &trail).await?;
    for (at, (sql, values)) in writes.iter().enumerate() {
        if transaction.execute(sql, values).await? == 0 && at == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
    }
    append_note_trail_line(&mut transaction, &mut trail, note, None).await?;
    let changes_keys = matches!(
        note.kind,
        NoteKind::KeyAdded | NoteKind::KeyRevoked | NoteKind::KeyExpires
    );
    if changes_keys && transaction.engine() == Engine::Postgres {
        transaction.script(NOTIFY).await?;
    }
    if let Err(gone) = store.database.confirm_files() {
        transaction.rollback().await?;
        return Err(gone);
    }
    let writers = &store.database.writers;
    writers.answer(ANSWER_WAIT, transaction.commit()).await??;
    store.known.note(trail);
    Ok(true)
}

/// Appends the line of a restore to the audit trail, whose end is the last line that was restored.
pub(crate) async fn append_restore_line(
    connection: &mut Connection,
    restore: &SignedRestore<'_>,
) -> Result<()> {
    let mut trail = connection.read_lease(statements::LOCK_TRAIL, Trail::of).await?;
    let detail = restore.detail(trail.number, &trail.hash);
    let note = Note::new(restore.at, NoteKind::Restored, (Uuid::now_v7(), None), detail);
    append_note_trail_line(connection, &mut trail, &note, None).await
}

/// Appends a note to the audit trail that is no decision's, with the sums that it states. The caller has locked the end of the trail.
pub(crate) async fn append_note_trail_line(
    connection: &mut Connection,
    trail: &mut Trail,
    note: &Note,
    sums: Option<TableSums>,
) -> Result<()> {
    let line = note_line_row(trail, note, sums);
    bulk::INSERT_NOTES.execute(connection, &line).await?;
    let end = [
        trail.number.into(),
        (&trail.hash).into(),
        trail.sums.to_string().into(),
    ];
    connection.execute(statements::END_TRAIL, &end).await?;
    Ok(())
}

pub(crate) fn read_trail_line(row: &Columns<'_>) -> Result<TrailLine> {
    Ok(TrailLine {
        number: row.maybe_integer("number")?.unwrap_or(0),
        hash: row.maybe_text("hash")?.unwrap_or_default(),
        at: row.integer("at_us")?,
        kind: row.text("kind")?,
        detail: row.text("detail")?,
        subject: row.id("subject")?,
        negotiation: row.maybe_id("negotiation")?,
        party: row.maybe_text("party")?,
    })
}
