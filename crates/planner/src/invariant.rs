//! Faults that must never happen to the plan, and their effects.
//!
//! A decision takes slots out of the plan and puts them back a moment later, and relies on the plan in many other ways. Where
//! this fails, other parts of the plan may be wrong too: the plan in memory is not the stored one any more. The code that
//! finds this notes it here and returns. Before a batch is stored, the writer looks here. Where something is noted, it stores
//! nothing of the batch, reads the plan anew, and answers that the requests are worth another try. So no decision has to undo
//! anything (`docs/decisions/0006`).

use domain::agreement::Agreement;
use uuid::Uuid;

use crate::state::State;

impl State {
    /// The fault that must never happen and did; none where the plan may be used. O(1).
    pub fn why_impossible(&self) -> Option<&str> {
        self.schedules.why_impossible()
    }

    /// Notes that something has happened that must never happen.
    pub(super) fn note_impossible(&mut self, what: impl FnOnce() -> String) {
        self.schedules.note_impossible(what);
    }

    /// A live agreement that must be there.
    pub(super) fn must_get(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.agreements.get(id).cloned();
        self.schedules.note_unless(agreement.is_some(), || {
            format!("agreement {id} is not in the plan")
        });
        agreement
    }

    /// The live agreement with the slot that a schedule knows by a number, which must be there, and which of its slots that is.
    pub(super) fn must_get_slot(&mut self, number: u64) -> Option<(Agreement, usize)> {
        let found = self
            .placement
            .slot_by_number(&self.agreements, number)
            .map(|(agreement, index)| (agreement.clone(), index));
        self.schedules.note_unless(found.is_some(), || {
            format!("no agreement has the number {number}")
        });
        found
    }
}
