//! Slots that begin late, because the service was down or the clock was stepped. One that is much too late has another place
//! where there is one, with or without a job (`super::lost_work`). A reservation that is a little late begins at once, and ends as
//! much later where its nodes are free for that. What was delivered in the end is told by the agreement itself.

use domain::agreement::{Agreement, EventKind};
use scheduler::{Interval, Seconds, counted};

use crate::context::View;
use crate::decider::Decider;
use crate::life::{billing, update};
use crate::placement::trial;
use crate::request::request_of_stretch;
use crate::table::holds;

/// By how many seconds the slot of an agreement begins late that begins now. The nodes of a reservation that its cluster
/// holds are its party's, also while the service is down.
pub(crate) fn lateness_of_start(view: View<'_>, agreement: &Agreement) -> Seconds {
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
    holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    let placed = trial::run_trial(&mut decider.search(), |search| {
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
    events.extend(billing::assess_and_post(decider, &mut placed));
    update::update(decider, placed, events)
}

#[cfg(test)]
mod tests;
