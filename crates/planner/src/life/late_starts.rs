//! Slots that begin late, because the service was down or the clock was stepped. One that is much too late has another place
//! where there is one, with or without a job (`super::retry`). A reservation that is a little late begins at once, and ends as
//! much later where its nodes are free for that. What was delivered in the end is told by the agreement itself.

use domain::agreement::{Agreement, AgreementState, EventKind, RunOutcome};
use domain::clock::MICROS_PER_SECOND;
use scheduler::{Interval, Seconds, counted};

use crate::context::View;
use crate::decider::Decider;
use crate::error::Result;
use crate::life::{billing, update};
use crate::placement::transaction;
use crate::requests::request_of_stretch;
use crate::table::negotiate;

/// By how many seconds the slot of an agreement begins late that begins now. The nodes of a reservation that its cluster
/// holds are its party's, also while the service is down.
pub(crate) fn lateness(view: View<'_>, agreement: &Agreement) -> Seconds {
    let now = view.present_second();
    let resource = view.schedules.named(&agreement.resource);
    let kept = resource.filter(|_| agreement.job.is_none());
    let kept = kept.and_then(|kept| kept.kept_for(agreement));
    let whole = kept.filter(|kept| kept.nodes.len() >= agreement.slot_nodes() as usize);
    agreement.lateness(whole.map_or(now, |kept| kept.since.min(now)))
}

/// Has a reservation that is a little late end as much later as it begins, also beyond its deadline, where its nodes are
/// free for that and it does not expire before. Returns it as it is now.
pub(crate) fn prolong_late_slot(decider: &mut Decider<'_>, agreement: Agreement) -> Agreement {
    let now = decider.present_second();
    let (slot, nodes) = agreement.slots[0].stretch();
    let (late, later) = (now - slot.start, Interval::of(now, slot.duration()));
    if later.end > agreement.latest_end(now + decider.settings.horizon) {
        return agreement;
    }
    // The offers in its place rely on its not having begun, and it begins now.
    negotiate::release_holds_about(&mut decider.bargaining(), agreement.id);
    let placed = transaction::run_trial(&mut decider.search(), |search| {
        let (at, number) = search.placement.planned_slot(search.schedules, &agreement, 0)?;
        search
            .placement
            .take_slot_out(search.schedules, &agreement, 0, now);
        let mut placed = agreement.clone();
        placed.place_slot(0, (later, nodes));
        let request = request_of_stretch(&placed, number, (later, nodes));
        search.schedules.put(at, now, &request, now).then_some(placed)
    });
    let Some(mut placed) = placed else {
        return agreement;
    };
    placed.keep_promised_start(&agreement, now);
    let detail = format!(
        "it begins {} late, and ends as much later",
        counted(late, "second")
    );
    let mut events = vec![decider.event(EventKind::Moved, detail)];
    events.extend(billing::assess(decider, &mut placed));
    update::update(decider, placed, events)
}

/// Ends a reservation that runs nothing: at the end of its slot, or once it is known whether its peer has handed over its nodes,
/// where that was waited for. One that its party has ended is terminated, and not lost.
pub(crate) fn finish_reservation(decider: &mut Decider<'_>, mut agreement: Agreement) -> Result<()> {
    let (outcome, last) = if agreement.state == AgreementState::ObservedAndTerminating {
        (RunOutcome::Terminated, AgreementState::Terminated)
    } else if agreement.never_had_nodes() {
        (RunOutcome::Lost, AgreementState::Complete)
    } else {
        (RunOutcome::Completed, AgreementState::Complete)
    };
    agreement.outcome = Some(outcome);
    let end = agreement.slot().end.seconds() * MICROS_PER_SECOND;
    let end = end.min(decider.now);
    let mut events = Vec::new();
    if agreement.never_had_nodes() {
        let detail = format!("{} has never held its nodes for it", agreement.resource);
        events.push(decider.event(EventKind::Ended, detail));
    }
    let shortfall = agreement.shortfall_in_words();
    events.extend(shortfall.map(|shortfall| decider.event(EventKind::Ended, shortfall)));
    events.extend(update::must_close(decider, &mut agreement, last, end)?);
    update::update(decider, agreement, events);
    Ok(())
}

#[cfg(test)]
mod tests;
