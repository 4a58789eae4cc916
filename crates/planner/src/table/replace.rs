//! An agreement that is to be replaced is out of the plan while its successor is looked for, and back in it afterwards
//! unless it was replaced. If its slot has begun, it goes on meanwhile: only the rest of its slot is given up, and its
//! successor takes over the running work.

use domain::agreement::Agreement;
use scheduler::Request;
use uuid::Uuid;

use crate::context::{Search, View};
use crate::error::{Error, Result};
use crate::placement::find;
use crate::requests::{request_of_agreement, request_of_slot};

/// Takes an agreement out of its resource's schedule, or the rest of its slot if it has begun; all others stay
/// where they are.
pub(crate) fn lift_replaced_agreement(search: &mut Search<'_>, id: Uuid) -> Result<Agreement> {
    let lifted = liftable_agreement(search, id)?;
    take_out(search, &lifted);
    Ok(lifted)
}

/// Takes an agreement out that is there yet.
pub(crate) fn take_out(search: &mut Search<'_>, agreement: &Agreement) {
    let taken = find::take_slots_out(search, agreement, 0, search.present_second());
    let all = agreement.slots.len() - agreement.slots_over();
    search.schedules.note_unless(taken.len() == all, || {
        format!("agreement {} is not where it lies", agreement.id)
    });
}

/// An agreement that can be taken out, and is there yet.
pub(crate) fn liftable_agreement(search: &mut Search<'_>, id: Uuid) -> Result<Agreement> {
    let agreement = search.agreements.get(id).cloned().ok_or(Error::NotFound)?;
    // Within its last second there is nothing left to give up.
    let begun = agreement.is_being_carried_out();
    let goes_on = begun && agreement.slot().end > search.present_second() + 1;
    // Until it is reported that a slot is over, it is not known where the next ones may lie.
    if begun && !goes_on && agreement.has_more_slots() {
        return Err(Error::Unavailable);
    }
    // A slot that was not begun in time has left the plan.
    let waits = agreement.is_waiting() && agreement.slot().end > search.present_second();
    if !waits && !goes_on {
        return Err(Error::Conflict("being ended, or at its end"));
    }
    search
        .placement
        .planned_slot(search.schedules, &agreement, 0)
        .ok_or(Error::Unavailable)?;
    Ok(agreement)
}

/// The rest of the slot of an agreement that has begun, as its resource's schedule has it: it begins at this
/// instant.
pub(crate) fn running_of(view: View<'_>, at: usize, agreement: &Agreement, number: u64) -> Request {
    let now = view.present_second();
    let resource = view.schedules.get(at);
    let now = resource.map_or(now, |resource_plan| resource_plan.schedule.now().max(now));
    let end = agreement.slot().end;
    Request {
        ready: now,
        deadline: end,
        duration: end - now,
        nodes: agreement.slot_nodes(),
        ..request_of_agreement(agreement, number)
    }
}

/// Puts a slot of an agreement in progress where it lies: the one that has begun begins at this instant.
pub(crate) fn put_slot_back(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    index: usize,
    number: u64,
) {
    let (request, start) = if index < agreement.slots_begun() {
        let rest = running_of(search.view(), at, agreement, number);
        (rest, rest.ready)
    } else {
        let start = agreement.slots[index].placement.start;
        (request_of_slot(agreement, number, index), start)
    };
    search
        .schedules
        .put_back(at, search.present_second(), &request, start);
}
