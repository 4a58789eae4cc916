//! A line of the audit trail about something that is decided elsewhere.

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};

/// Something that is decided elsewhere is to have a line in the audit trail. It is answered once the line is stored.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddNote {
    /// The kind of the line.
    pub kind: NoteKind,
    /// The id of its subject.
    pub subject: Uuid,
    /// Its party, where it has one.
    pub party: Option<String>,
    /// The particulars, in words.
    pub detail: String,
}

impl Command for AddNote {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.batch.push(Change::Note(Note {
            party: self.party,
            ..Note::new(decider.now, self.kind, (self.subject, None), self.detail)
        }));
        Ok(DecisionStep::Done(()))
    }
}
