//! Work that is done in pieces: the agreement's state after the end of each piece, and the handling of a piece that has
//! lost its place.
//!
//! Each piece is a request of its own in its resource's schedule, with a window of its own in which it moves for others like
//! anything that waits. The windows of an agreement's pieces never overlap, so that the pieces keep their order; they are
//! drawn anew whenever one of them moves, begins or ends. One that has lost its nodes before it began goes
//! elsewhere between its neighbours (`docs/design/planning.md`).

use domain::agreement::{Agreement, AgreementState, EventKind, JobEnd, ServiceState};
use scheduler::Time;

use crate::decider::Decider;
use crate::plan::Plan;
use crate::requests::request_of_slot;
use crate::slot_numbers::SlotOf;

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
            self.plan.stop_lost_work_later(lost.clone());
        }
        Some(lost)
    }
}

impl Plan {
    /// The agreement with this slot number, and the index of the slot in it.
    pub(crate) fn slot_by_number(&self, number: u64) -> Option<(&Agreement, usize)> {
        let SlotOf { agreement, index } = self.placement.numbers.slot(number)?;
        let agreement = self.get(agreement)?;
        (index < agreement.slots.len()).then_some((agreement, index))
    }

    /// The same where that slot has not begun.
    pub(crate) fn waiting_slot_by_number(&self, number: u64) -> Option<(&Agreement, usize)> {
        let (agreement, index) = self.slot_by_number(number)?;
        let waits = agreement.state == AgreementState::Observed && agreement.slots_begun() <= index;
        waits.then_some((agreement, index))
    }

    /// Has the slots of an agreement that have not begun move in the windows that they have now.
    pub(crate) fn open_windows(&mut self, agreement: &Agreement) {
        // The window of one alone follows from nothing that moves.
        if !agreement.slots.is_split() {
            return;
        }
        for index in agreement.slots_begun()..agreement.slots.len() {
            let Some((at, number)) = self.planned_slot(agreement, index) else {
                return;
            };
            // It may have lost its place, or be about to begin.
            let Some((old, start)) = self.schedules.waiting_request(at, number) else {
                continue;
            };
            let mut request = request_of_slot(agreement, number, index);
            if agreement.fixed || self.table.is_counted_on(agreement.id) {
                request = request.fixed_to(start);
            }
            // Most of them are as they were, and to take one out has the schedule look at all others again.
            if request.window() != old.window() && self.schedules.withdraw(at, number).is_some() {
                self.schedules.put_back(at, Time::MIN, &request, start);
            }
        }
    }
}

#[cfg(test)]
mod tests;
