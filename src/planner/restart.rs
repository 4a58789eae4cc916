//! Work that was lost and is run again, where its template has it so: from its start, or with work in pieces from what the
//! piece before has saved.
//!
//! Its agreement waits again, for a place in what is left of its window, as it did before its slot began; nothing of it
//! is given up but the nodes that it had. The job of the time before is stopped, where anything is left of it, before the
//! next one starts (`docs/decisions/0404`).

use scheduler::{Interval, Seconds, Time};

use super::admit::shape_of;
use super::decide::{Decider, execution};
use super::pieces::CLUSTER;
use super::plan::request_of;
use super::repair::by;
use super::resources::Wish;
use crate::agreement::{Agreement, AgreementState, EventKind, Execution, JobEnd, Outcome, ServiceState};
use crate::clock::second_of;
use crate::store::Change;

/// How often work is run again at most: what is lost so often is not lost by chance.
const RESTARTS_MAX: u32 = 10;
/// The kind of resources that are all this machine.
const LOCAL: &str = "local";
/// Seconds that it may take until nothing is left on a cluster of a job that ran there: longer than its executor waits for that.
const CLEARED_AFTER: Seconds = 20;

impl Decider<'_> {
    /// Whether the work of an agreement would be run again if it were lost now.
    pub(super) fn may_restart(&self, agreement: &Agreement) -> bool {
        self.settings.restarting.contains(&agreement.template) && self.can_restart(agreement)
    }

    /// Whether work that came to this end is run again: where it was lost and its template has that so, or where it is a piece
    /// that nobody could start in its time, of which nothing has run.
    fn may_go_on_after(&self, agreement: &Agreement, end: &JobEnd) -> bool {
        let missed = !agreement.pieces.is_empty() && end.started.is_none() && self.can_restart(agreement);
        end.outcome == Outcome::Lost && (missed || self.may_restart(agreement))
    }

    fn can_restart(&self, agreement: &Agreement) -> bool {
        let job = agreement.job.as_ref();
        agreement.state == AgreementState::Observed
            && agreement.service == ServiceState::Processing
            && job.is_some_and(|job| job.restarts < RESTARTS_MAX)
            && self.plan.resources.place(&agreement.resource).is_some()
    }

    /// Has the work of an agreement that came to this end run again, where it is to be and there is a place for it; whether it
    /// is.
    pub(super) fn goes_on_after(&mut self, agreement: &Agreement, end: &JobEnd) -> bool {
        if !self.may_go_on_after(agreement, end) {
            return false;
        }
        self.vacate(agreement);
        self.run_again(agreement, end, why_lost(end))
    }

    /// Whether an agreement may go to a resource: work that was lost is run again where its job of before can be stopped.
    pub(super) fn may_go_to(&self, at: usize, agreement: &Agreement) -> bool {
        agreement.restarts() == 0 || self.makes_way(at, agreement)
    }

    /// Whether a resource can tell that nothing is left of a job on that of an agreement: it is the same, or both are this
    /// machine.
    fn makes_way(&self, at: usize, agreement: &Agreement) -> bool {
        let there = self.plan.resources.get(at).map(|of| of.resource.name.as_str());
        there.is_some_and(|there| {
            there == agreement.resource || self.is_local(there) && self.is_local(&agreement.resource)
        })
    }

    /// Whether a resource is this machine.
    pub(super) fn is_local(&self, resource: &str) -> bool {
        let of = self.plan.resources.place(resource);
        let of = of.and_then(|at| self.plan.resources.get(at));
        of.is_some_and(|of| of.resource.kind == LOCAL)
    }

    /// The next second, in which work that is lost now may begin again: two losses never fall into one instant.
    fn after_now(&self) -> Time {
        second_of(self.now) + 1
    }

    /// Takes the slot of work that is lost, and its nodes, out of the plan, so that they can be planned anew.
    pub(super) fn vacate(&mut self, agreement: &Agreement) {
        // What was offered in its place counts on its going on.
        self.release_about(agreement.id);
        let next = self.after_now();
        let number = self.plan.number(agreement.id);
        if let Some((at, number)) = self.plan.resources.place(&agreement.resource).zip(number) {
            let number = number + agreement.pieces_over() as u64;
            self.plan.resources.vacate(at, next, number);
        }
        self.plan.unbind(agreement, next);
    }

    /// Has lost work, whose slot has been vacated, wait for another place in its window; `false` where there is none, and
    /// nothing has changed then.
    pub(super) fn run_again(&mut self, agreement: &Agreement, end: &JobEnd, why: &str) -> bool {
        let next = self.after_now();
        // What was to be added to this time is not to the next.
        let agreement = &self.give_back_rest(agreement, next);
        let at = self.plan.resources.place(&agreement.resource);
        let of = at.and_then(|at| self.plan.resources.get(at));
        let on_cluster = of.is_some_and(|of| of.resource.kind == CLUSTER);
        // On this machine its job has ended, or does so within a moment; what never started leaves nothing.
        let leaves = on_cluster && end.started.is_some();
        let cleared = next + if leaves { CLEARED_AFTER } else { 0 };
        let waits = Agreement {
            ready: agreement.ready.max(cleared),
            ..agreement.clone()
        };
        let placed = if agreement.pieces.is_empty() {
            self.place_lost(&waits, next)
        } else {
            self.place_lost_pieces(&waits, next)
        };
        let Some(mut placed) = placed else {
            return false;
        };
        placed.ready = agreement.ready;
        placed.has_started(end.started);
        let mut events = self.assess(&mut placed);
        let (detail, service) = match agreement.pieces_over() {
            0 => ("its start".to_owned(), ServiceState::NotReady),
            over => (format!("what piece {over} has saved"), ServiceState::Idle),
        };
        let mut detail = format!("{why}: it is run again from {detail}");
        if placed.resource != agreement.resource {
            detail += &format!(" on {}", placed.resource);
        }
        detail += &format!(", {}", by(placed.slot().start - agreement.slot().start));
        events.push(self.event(EventKind::Restarted, detail));

        self.plan.forget_slot(agreement.id);
        // Its nodes of before are told by its timeline; those that are bound to it are of the slot that it has.
        self.batch.push(Change::ReleaseNodes {
            agreement: agreement.id,
            end: agreement.slot().start,
        });
        placed.service = service;
        placed.has_started(None);
        if service == ServiceState::NotReady {
            placed.started = None;
        }
        if let Some(job) = &mut placed.job {
            job.restarts += 1;
        }
        let waiting = self.update(placed, events);
        self.plan.stop_later(waiting);
        let lost = lost_execution(agreement, end);
        self.batch
            .extend(lost.map(|of| Change::RecordExecution(Box::new(of))));
        true
    }

    /// The agreement of lost work with a place in what is left of its window: one that is free, else one on its resource for
    /// which others move inside their windows.
    fn place_lost(&mut self, agreement: &Agreement, next: Time) -> Option<Agreement> {
        let at = self.plan.resources.place(&agreement.resource)?;
        let request = request_of(agreement, self.plan.number(agreement.id)?);
        let (shape, scaling) = shape_of(agreement);
        let wish = Wish {
            shape,
            scaling,
            window: Interval::new(agreement.ready.max(next), agreement.deadline),
            filters: &agreement.leeway.filters,
            except: None,
        };
        let best = self.plan.resources.best(&wish, self.settings.objective).ok();
        let (at, slot) = if let Some((to, best)) = best.filter(|(to, _)| self.makes_way(*to, agreement)) {
            let there = scheduler::Request {
                duration: best.slot.duration(),
                ..request
            };
            let put = self.plan.resources.put(to, next, &there, best.slot.start);
            put.then_some((to, best.slot))?
        } else {
            let (placement, moves) = self.plan.resources.submit(at, next, &request)?;
            self.moved(&moves, "to let one in whose work was lost");
            (at, placement.slot)
        };
        Some(Agreement {
            resource: self.plan.resources.get(at)?.resource.name.clone(),
            placement: slot,
            duration: slot.duration(),
            fixed: false,
            ..agreement.clone()
        })
    }

    /// The end of work that was lost with its nodes.
    pub(super) fn lost_now(&self, agreement: &Agreement) -> JobEnd {
        JobEnd {
            outcome: Outcome::Lost,
            started: agreement.slot_started(),
            ended: self.now,
            input_bytes: 0,
            output_bytes: 0,
            truncated: false,
            transfer_in: 0,
            transfer_out: 0,
        }
    }
}

/// Why work waits again that came to this end, in words for its party.
fn why_lost(end: &JobEnd) -> &'static str {
    match end.started {
        Some(_) => "its work is gone without a trace of its end",
        None => "nobody could start it in its time",
    }
}

/// The record of what was lost.
fn lost_execution(agreement: &Agreement, end: &JobEnd) -> Option<Execution> {
    let mut lost = agreement.clone();
    lost.has_started(end.started);
    lost.end_piece(end.ended);
    lost.ended = Some(end.ended);
    execution(&lost, end)
}
