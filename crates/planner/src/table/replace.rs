//! An agreement that is to be replaced is out of the plan while its successor is looked for, and back in it afterwards
//! unless it was replaced. If its slot has begun, it goes on meanwhile: only the rest of its slot is given up, and its
//! successor takes over the running work.

use domain::agreement::{Agreement, NegotiationInstance, ProposalReason, Stretch};
use scheduler::Request;
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::context::{Bargaining, Search, View};
use crate::error::{Error, OfferLoss, Result};
use crate::placement::find;
use crate::schedules::need::{request_of_agreement, request_of_slot};
use crate::table::Table;

/// Takes an agreement out of its resource's schedule, or the rest of its slot if it has begun; all others stay
/// where they are.
pub(crate) fn lift_replaced_agreement(search: &mut Search<'_>, id: Uuid) -> Result<Agreement> {
    let lifted = replaceable_agreement(search, id)?;
    take_replaced_out(search, &lifted);
    Ok(lifted)
}

/// Takes an agreement out that is there yet.
pub(crate) fn take_replaced_out(search: &mut Search<'_>, agreement: &Agreement) {
    let taken = find::take_slots_out(search, agreement, 0, search.present_second());
    let all = agreement.slots.len() - agreement.slots_over();
    search.schedules.note_unless(taken.len() == all, || {
        format!("agreement {} is not where it lies", agreement.id)
    });
}

/// An agreement that can be taken out, and is there yet.
pub(crate) fn replaceable_agreement(search: &mut Search<'_>, id: Uuid) -> Result<Agreement> {
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
pub(crate) fn running_to_replace(view: View<'_>, at: usize, agreement: &Agreement, number: u64) -> Request {
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
pub(crate) fn put_replaced_slot_back(
    search: &mut Search<'_>,
    at: usize,
    agreement: &Agreement,
    index: usize,
    number: u64,
) {
    let (request, start) = if index < agreement.slots_begun() {
        let rest = running_to_replace(search.view(), at, agreement, number);
        (rest, rest.ready)
    } else {
        let start = agreement.slots[index].placement.start;
        (request_of_slot(agreement, number, index), start)
    };
    search
        .schedules
        .put_back(at, search.present_second(), &request, start);
}

impl Table {
    /// The agreement that a negotiation is to replace, while it is in force.
    pub(crate) fn renegotiated<'a>(
        &self,
        agreements: &'a Agreements,
        negotiation: Uuid,
    ) -> Option<&'a Agreement> {
        agreements.get(self.get(negotiation)?.instance.agreement?)
    }

    /// The nodes that a party already has where it negotiates: the slots of the agreement that is to be replaced.
    pub(super) fn replaced_stretches(
        &self,
        agreements: &Agreements,
        negotiation: Uuid,
        resource: &str,
    ) -> Vec<Stretch> {
        let in_force = |agreement: &&Agreement| agreement.is_waiting() || agreement.is_being_carried_out();
        let agreement = self.renegotiated(agreements, negotiation).filter(in_force);
        let here = agreement.filter(|agreement| agreement.resource == resource);
        here.map_or_else(Vec::new, |each| each.slots.stretches())
    }
}

/// Keeps an agreement that is being renegotiated where it lies, as long as offers count on its place.
pub(super) fn pin_replaced(search: &mut Search<'_>, negotiation: Uuid) {
    if let Some(agreement) = search.table.renegotiated(search.agreements, negotiation).cloned() {
        search.placement.fix(search.schedules, &agreement);
    }
}

/// Lets it move again.
pub(crate) fn unpin_replaced(bargaining: &mut Bargaining<'_>, negotiation: Uuid) {
    let now = bargaining.present_second();
    let moves = |agreement: &&Agreement| {
        agreement.has_more_to_begin() && !agreement.fixed && !bargaining.table.is_counted_on(agreement.id)
    };
    let agreement = bargaining
        .table
        .renegotiated(bargaining.agreements, negotiation)
        .filter(moves);
    let Some(agreement) = agreement.cloned() else {
        return;
    };
    if let Some((at, _)) = bargaining
        .placement
        .planned_slot(bargaining.schedules, &agreement, 0)
    {
        for (request, start) in
            find::take_slots_out(&mut bargaining.search(), &agreement, agreement.slots_begun(), now)
        {
            bargaining.schedules.put_back(at, now, &request, start);
        }
    }
}

/// Takes the agreement that a negotiation is to replace out of the plan; none where there is none, or where it could
/// not be kept and its party gets this offer instead.
pub(crate) fn lift_replaced(
    search: &mut Search<'_>,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    let replaced = agreement_to_replace(search, instance)?;
    if let Some(agreement) = &replaced {
        take_replaced_out(search, agreement);
    }
    Ok(replaced)
}

/// The agreement that a negotiation is to replace, which stays in the plan.
///
/// # Errors
/// [`OfferLoss::Replaced`] where it cannot be replaced any more, [`Error::Unavailable`] where that is not known yet.
pub(crate) fn agreement_to_replace(
    search: &mut Search<'_>,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    let lifted = match instance.agreement {
        Some(_) if instance.proposed == Some(ProposalReason::Broken) => Ok(None),
        // Another agreement in its place would know nothing of the job that was lost, and might run beside it.
        Some(id) if search.life.stopping_of(id).is_some() => Err(Error::Lost(OfferLoss::Replaced)),
        Some(id) => replaceable_agreement(search, id).map(Some),
        None => Ok(None),
    };
    lifted.map_err(|why| match why {
        Error::Unavailable => why,
        _ => Error::Lost(OfferLoss::Replaced),
    })
}
