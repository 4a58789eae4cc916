//! An agreement that is to be replaced is out of the plan while its successor is looked for, and back in it afterwards
//! unless it was replaced. If its slot has begun, it goes on meanwhile: only the rest of its slot is given up, and its
//! successor takes over the running work.

use domain::agreement::{Agreement, Event, EventKind, GuaranteeState};
use domain::change::Change;
use scheduler::Request;
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::requests::{request_of_agreement, request_of_slot};

impl Decider<'_> {
    /// Takes an agreement out of its resource's schedule, or the rest of its slot if it has begun; all others stay
    /// where they are.
    pub(crate) fn lift_replaced_agreement(&mut self, id: Uuid) -> Result<Agreement> {
        let lifted = self.liftable_agreement(id)?;
        self.take_out(&lifted);
        Ok(lifted)
    }

    /// Takes an agreement out that is there yet.
    pub(crate) fn take_out(&mut self, agreement: &Agreement) {
        let taken = self.take_slots_out(agreement, 0, self.present_second());
        let all = agreement.slots.len() - agreement.slots_over();
        self.plan.schedules.note_unless(taken.len() == all, || {
            format!("agreement {} is not where it lies", agreement.id)
        });
    }

    /// An agreement that can be taken out, and is there yet.
    pub(crate) fn liftable_agreement(&mut self, id: Uuid) -> Result<Agreement> {
        let agreement = self.plan.agreements.get(id).cloned().ok_or(Error::NotFound)?;
        // Within its last second there is nothing left to give up.
        let begun = agreement.is_being_carried_out();
        let goes_on = begun && agreement.slot().end > self.present_second() + 1;
        // Until it is reported that a slot is over, it is not known where the next ones may lie.
        if begun && !goes_on && agreement.has_more_slots() {
            return Err(Error::Unavailable);
        }
        // A slot that was not begun in time has left the plan.
        let waits = agreement.is_waiting() && agreement.slot().end > self.present_second();
        if !waits && !goes_on {
            return Err(Error::Conflict("being ended, or at its end"));
        }
        self.plan
            .placement
            .planned_slot(&mut self.plan.schedules, &agreement, 0)
            .ok_or(Error::Unavailable)?;
        Ok(agreement)
    }

    /// The rest of the slot of an agreement that has begun, as its resource's schedule has it: it begins at this
    /// instant.
    pub(crate) fn running_of(&self, at: usize, agreement: &Agreement, number: u64) -> Request {
        let now = self.present_second();
        let resource = self.plan.schedules.get(at);
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
    pub(crate) fn put_slot_back(&mut self, at: usize, agreement: &Agreement, index: usize, number: u64) {
        let (request, start) = if index < agreement.slots_begun() {
            let rest = self.running_of(at, agreement, number);
            (rest, rest.ready)
        } else {
            let start = agreement.slots[index].placement.start;
            (request_of_slot(agreement, number, index), start)
        };
        self.plan
            .schedules
            .put_back(at, self.present_second(), &request, start);
    }

    /// Continues the work of an old agreement under a new one. Its nodes, where it has any, belong to the new one from the
    /// start. Returns the new agreement after this.
    pub(crate) fn take_over(&mut self, old: &Agreement, new: Agreement) -> Agreement {
        if old.has_nodes() {
            self.hand_over_nodes(old, new.id, new.slot().end);
        }
        let goes_on = self.event(EventKind::Begun, format!("goes on with what runs for {}", old.id));
        self.update(new, vec![goes_on])
    }

    /// Gives the nodes of an agreement that has begun to another, or to itself, until `end`.
    pub(crate) fn hand_over_nodes(&mut self, old: &Agreement, to: Uuid, end: scheduler::Time) {
        self.plan.life.hand_over(&mut self.plan.schedules, old, to, end);
        self.batch.push(Change::HandOverNodes {
            from: old.id,
            to,
            now: self.present_second(),
            end,
        });
        if end < old.slot().end {
            self.keep_freed_out_of_use(&old.resource);
        }
    }

    /// The assessments of the guarantees of an agreement by now are settled with it. The agreement that goes on with its
    /// work knows them, and owes nothing for them again. Nor does it owe anything for a guarantee that it adds: the work
    /// that has begun may have broken it already. Returns the lines for the old one's timeline.
    pub(crate) fn settle_guarantees(&mut self, old: &mut Agreement, new: &mut Agreement) -> Vec<Event> {
        let events = self.assess(old);
        new.constraints.promised = old.constraints.promised;
        for guarantee in &mut new.guarantees {
            let found = old
                .guarantees
                .iter()
                .find(|one_guarantee| one_guarantee.name == guarantee.name);
            if found.is_none_or(|found| found.state != GuaranteeState::NotDetermined) {
                guarantee.values.penalties.clear();
                guarantee.values.rewards.clear();
            }
            if let Some(found) = found.filter(|found| found.state != GuaranteeState::NotDetermined) {
                guarantee.state = found.state;
                guarantee.evidence.clone_from(&found.evidence);
                guarantee.values.determined = found.values.determined;
            }
        }
        events
    }
}
