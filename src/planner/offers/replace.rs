//! An agreement that is to be replaced is out of the plan while its successor is looked for, and back in it afterwards
//! unless it was replaced. If its slot has begun, it goes on meanwhile: only the rest of its slot is given up, and its
//! successor takes over the running work.

use scheduler::Request;
use uuid::Uuid;

use crate::agreement::{Agreement, Event, EventKind, GuaranteeState, Job};
use crate::clock::second_of;
use crate::planner::decide::Decider;
use crate::planner::plan::request_of;
use crate::planner::{Error, Proposal};
use crate::store::Change;

/// The parts of work in pieces that cannot change any more.
pub(in crate::planner) const PIECES_BEGUN: &str =
    "being carried out in pieces, which are not changed any more";

/// An agreement that is out of the plan for a while.
pub(in crate::planner) struct Lifted {
    pub(in crate::planner) agreement: Agreement,
}

impl Lifted {
    /// Whether its slot has begun.
    pub(in crate::planner) fn has_begun(&self) -> bool {
        self.agreement.is_being_carried_out()
    }

    /// Whether a proposal keeps the parts that cannot change once the slot has begun: the job, the resource, the number
    /// of nodes, and the start.
    pub(in crate::planner) fn goes_on_in(&self, proposal: &Proposal) -> bool {
        let old = &self.agreement;
        proposal.job.as_ref().map(Job::first_time) == old.job.as_ref().map(Job::first_time)
            && proposal.filters == old.leeway.filters
            && proposal.shapes.iter().any(|shape| shape.nodes == old.nodes())
            && proposal.ready.is_none_or(|ready| ready <= old.placement().start)
    }
}

impl Decider<'_> {
    /// Takes an agreement out of its resource's schedule, or the rest of its slot if it has begun; all others stay
    /// where they are.
    pub(in crate::planner) fn lift(&mut self, id: Uuid) -> Result<Lifted, Error> {
        let lifted = self.liftable(id)?;
        self.take_out(&lifted);
        Ok(lifted)
    }

    /// Takes an agreement out that is there yet.
    pub(in crate::planner) fn take_out(&mut self, of: &Lifted) {
        let now = second_of(self.now);
        let agreement = &of.agreement;
        let taken = self.take_slots_out(agreement, 0, now);
        let all = agreement.slots.len() - agreement.slots_over();
        self.plan.resources.impossible.unless(taken.len() == all, || {
            format!("agreement {} is not where it lies", agreement.id)
        });
    }

    /// An agreement that can be taken out, and is there yet.
    pub(in crate::planner) fn liftable(&mut self, id: Uuid) -> Result<Lifted, Error> {
        let agreement = self.plan.get(id).cloned().ok_or(Error::NotFound)?;
        let now = second_of(self.now);
        // Within its last second there is nothing left to give up.
        let goes_on = agreement.is_being_carried_out() && agreement.slot().end > now + 1;
        if !agreement.is_waiting() && !goes_on {
            return Err(Error::Conflict("being ended, or at its end"));
        }
        if agreement.slots.is_split() && goes_on {
            return Err(Error::Conflict(PIECES_BEGUN));
        }
        self.plan.planned_slot(&agreement, 0).ok_or(Error::Unavailable)?;
        Ok(Lifted { agreement })
    }

    /// The rest of the slot of an agreement that has begun, as its resource's schedule has it: it begins at this
    /// instant.
    pub(in crate::planner) fn running_of(&self, at: usize, agreement: &Agreement, number: u64) -> Request {
        let now = second_of(self.now);
        let now = self
            .plan
            .resources
            .get(at)
            .map_or(now, |of| of.schedule.now().max(now));
        let end = agreement.slot().end;
        Request {
            ready: now,
            deadline: end,
            duration: end - now,
            nodes: agreement.slot_nodes(),
            ..request_of(agreement, number)
        }
    }

    /// Continues the running work of an old agreement under a new one. Its nodes belong to the new one from the start,
    /// and so does its job. Returns the new agreement after this.
    pub(in crate::planner) fn take_over(&mut self, old: &Agreement, mut new: Agreement) -> Agreement {
        self.hand_over_nodes(old, new.id, new.slot().end);
        new.service = old.service;
        new.has_started(old.started);
        new.job.clone_from(&old.job);
        let goes_on = self.event(EventKind::Begun, format!("goes on with what runs for {}", old.id));
        self.update(new, vec![goes_on])
    }

    /// Gives the nodes of an agreement that has begun to another, or to itself, until `end`.
    pub(in crate::planner) fn hand_over_nodes(&mut self, old: &Agreement, to: Uuid, end: scheduler::Time) {
        self.plan.hand_over(old, to, end);
        self.batch.push(Change::HandOverNodes {
            from: old.id,
            to,
            now: second_of(self.now),
            end,
        });
    }

    /// The assessments of the guarantees of an agreement by now are settled with it. The agreement that goes on with its
    /// work knows them, and owes nothing for them again. Nor does it owe anything for a guarantee that it adds: the work
    /// that has begun may have broken it already. Returns the lines for the old one's timeline.
    pub(in crate::planner) fn settle_guarantees(
        &mut self,
        old: &mut Agreement,
        new: &mut Agreement,
    ) -> Vec<Event> {
        let events = self.assess(old);
        for guarantee in &mut new.guarantees {
            let found = old.guarantees.iter().find(|of| of.name == guarantee.name);
            if found.is_none_or(|of| of.state != GuaranteeState::NotDetermined) {
                guarantee.values.penalties.clear();
                guarantee.values.rewards.clear();
            }
            if let Some(found) = found.filter(|of| of.state != GuaranteeState::NotDetermined) {
                guarantee.state = found.state;
                guarantee.evidence.clone_from(&found.evidence);
                guarantee.values.determined = found.values.determined;
            }
        }
        events
    }
}
