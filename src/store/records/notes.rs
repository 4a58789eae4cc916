//! The lines of the audit trail that are no agreement's, and the whole trail as operators read it.

use uuid::Uuid;

use super::key_changes::NOTIFY;
use crate::agreement::Note;
use crate::clock::Micros;
use crate::store::batch::trail::Trail;
use crate::store::database::Store;
use crate::store::engine::bulk;
use crate::store::engine::{Columns, Engine, Result, Value, statements};

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

impl Store {
    /// At most `limit` lines of the audit trail after the one with a number, in order.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn trail(&self, after: i64, limit: u32) -> Result<Vec<TrailLine>> {
        let values = [after.into(), limit.into()];
        self.read(statements::TRAIL_LINES, &values, read_note_row).await
    }

    /// The line of a request that was refused, if it was noted.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn refusal_line(&self, request: Uuid) -> Result<Option<TrailLine>> {
        self.read_one(statements::REFUSED_REQUEST, &[request.into()], read_note_row)
            .await
    }

    /// The timeline of an agreement with the lines of the negotiations that led to it and that were about it, in the order of the
    /// trail.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn timeline(&self, agreement: Uuid) -> Result<Vec<TrailLine>> {
        self.read(statements::TIMELINE, &[agreement.into()], read_note_row)
            .await
    }

    /// Carries out one statement that is no decision, and if it changes anything appends its note, in one transaction. Answers
    /// whether it did. The listeners for changes of keys are notified: only Postgres has any. The lease's row makes it wait for a
    /// batch that is being written, and a batch for it.
    pub(in crate::store) async fn write_noted(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        note: &Note,
    ) -> Result<bool> {
        let mut transaction = self.begin().await?;
        let mut trail = transaction.read_lease(statements::LOCK_TRAIL, Trail::of).await?;
        if transaction.execute(sql, values).await? == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        let line = note_row(&mut trail, note);
        transaction.execute_bulk(&bulk::INSERT_NOTES, &line).await?;
        let end = [trail.number.into(), (&trail.hash).into()];
        transaction.execute(statements::END_TRAIL, &end).await?;
        if transaction.engine() == Engine::Postgres {
            transaction.script(NOTIFY).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

pub(in crate::store) fn read_note_row(row: &Columns<'_>) -> Result<TrailLine> {
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

/// The columns of [`crate::store::engine::bulk::INSERT_NOTES`]: a line that the trail goes on by.
pub(in crate::store) fn note_row(trail: &mut Trail, note: &Note) -> [Value<'static>; 8] {
    let words = [note.kind.word(), &note.detail];
    let about = (note.subject, note.negotiation);
    trail.append_note(about, note.at, note.party.as_deref(), words);
    [
        trail.number.into(),
        trail.hash.clone().into(),
        note.at.into(),
        note.kind.word().into(),
        note.subject.into(),
        note.negotiation.into(),
        note.party.clone().into(),
        note.detail.clone().into(),
    ]
}
