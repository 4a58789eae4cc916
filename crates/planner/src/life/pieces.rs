//! Work that is done in pieces: the agreement's state after the end of each piece, and the handling of a piece that has
//! lost its place.
//!
//! Each piece is a request of its own in its resource's schedule, with a window of its own in which it moves for others like
//! anything that waits. The windows of an agreement's pieces never overlap, so that the pieces keep their order; they are
//! drawn anew whenever one of them moves, begins or ends. One that has lost its nodes before it began goes
//! elsewhere between its neighbours (`docs/design/planning.md`).

use domain::agreement::{Agreement, AgreementState, EventKind, JobEnd, ServiceState};

use crate::decider::Decider;
use crate::life::{billing, executions, update};

/// Ends an agreement that cannot be carried out any more, and stops its running work.
pub(crate) fn lose_agreement_because(
    decider: &mut Decider<'_>,
    mut agreement: Agreement,
    kind: EventKind,
    why: String,
) -> Option<Agreement> {
    let had_job = agreement.service == ServiceState::Processing;
    agreement.outcome = Some(agreement.lose());
    let mut events = vec![decider.event(kind, why)];
    events.extend(update::must_close(decider, &mut agreement, AgreementState::Complete, decider.now).ok()?);
    let lost = update::update(decider, agreement, events);
    if had_job {
        decider.state.life.stop_lost_work_later(lost.clone());
    }
    Some(lost)
}

/// Records that a piece has ended and its work is saved: it gives its nodes back, and the next one is waited for.
pub(crate) fn end_piece(decider: &mut Decider<'_>, mut agreement: Agreement, end: &JobEnd) {
    let (number, slots) = (agreement.slot_number(), agreement.slots.len());
    agreement.note_started(end.started);
    agreement.end_slot(end.ended);
    agreement.service = ServiceState::Idle;
    let brought = end.staging.as_ref().and_then(|staging| staging.brought);
    let mut events = executions::note_brought_files(decider.view(), &mut agreement, brought);
    let detail = format!("piece {number} of {slots} is over, its work saved");
    events.push(decider.event(EventKind::Checkpointed, detail));
    events.extend(billing::assess(decider, &mut agreement));
    update::update(decider, agreement, events);
}

#[cfg(test)]
mod tests;
