//! Work that is done in pieces: the agreement's state after the end of each piece, and the handling of a piece that has
//! lost its place.
//!
//! Each piece is a request of its own in its resource's schedule, with a window of its own in which it moves for others like
//! anything that waits. The windows of an agreement's pieces never overlap, so that the pieces keep their order; they are
//! drawn anew whenever one of them moves, begins or ends. One that has lost its nodes before it began goes
//! elsewhere between its neighbours (`docs/design/planning.md`).

use domain::agreement::{Agreement, AgreementState, EventKind, JobEnd, ServiceState};

use crate::decider::Decider;

impl Decider<'_> {
    /// Records that a piece has ended and its work is saved: it gives its nodes back, and the next one is waited for.
    pub(crate) fn end_piece(&mut self, mut agreement: Agreement, end: &JobEnd) {
        let (number, slots) = (agreement.slot_number(), agreement.slots.len());
        agreement.note_started(end.started);
        agreement.end_slot(end.ended);
        agreement.service = ServiceState::Idle;
        let brought = end.staging.as_ref().and_then(|staging| staging.brought);
        let mut events = self.note_brought_files(&mut agreement, brought);
        let detail = format!("piece {number} of {slots} is over, its work saved");
        events.push(self.event(EventKind::Checkpointed, detail));
        events.extend(self.assess(&mut agreement));
        self.update(agreement, events);
    }

    /// Ends an agreement that cannot be carried out any more, and stops its running work.
    pub(crate) fn lose_agreement_because(
        &mut self,
        mut agreement: Agreement,
        kind: EventKind,
        why: String,
    ) -> Option<Agreement> {
        let had_job = agreement.service == ServiceState::Processing;
        agreement.outcome = Some(agreement.lose());
        let mut events = vec![self.event(kind, why)];
        events.extend(
            self.must_close(&mut agreement, AgreementState::Complete, self.now)
                .ok()?,
        );
        let lost = self.update(agreement, events);
        if had_job {
            self.plan.life.stop_lost_work_later(lost.clone());
        }
        Some(lost)
    }
}

#[cfg(test)]
mod tests;
