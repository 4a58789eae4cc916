//! The decisions: from the plan and a command to the changes that are stored and the answer that is given. Nothing
//! here waits or stores; the writer does.

use std::collections::HashMap;

use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use super::{Error, JobEnd, Plan, Proposal, Refusal, Settings};
use crate::agreement::{
    Agreement, AgreementState, Event, EventKind, Execution, GuaranteeState, Outcome, ServiceState, assess,
};
use crate::clock::{Micros, second_of};
use crate::store::{Change, Idempotent};

/// What the idempotency keys of parties did, by party and key.
pub(super) type Remembered = HashMap<(String, String), Idempotent>;

/// What is decided with: the plan, the present, and the changes that the batch has so far.
pub(super) struct Decider<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a mut Plan,
    pub(super) now: Micros,
    pub(super) batch: &'a mut Vec<Change>,
    pub(super) remembered: Remembered,
}

impl Decider<'_> {
    /// Places an offer by first fit: on the resource where it completes first, ties to the first configured.
    pub(super) fn place(&mut self, proposal: Proposal) -> Result<Agreement, Error> {
        if let Some(request) = &proposal.idempotency {
            let key = (request.party.clone(), request.key.clone());
            if let Some(earlier) = self.remembered.get(&key) {
                return Err(Error::Repeated(Box::new(earlier.clone())));
            }
        }
        let now = second_of(self.now);
        let window = self
            .window(&proposal, now)
            .map_err(|refusal| Error::Refused(Box::new(refusal)))?;
        let earliest = self
            .plan
            .resources
            .iter()
            .enumerate()
            .filter_map(|(index, of)| {
                let start = of.tree.earliest_fit(proposal.nodes, proposal.duration, window)?;
                Some((start, index, of.resource.name.clone()))
            })
            .min();
        let Some((start, _, resource)) = earliest else {
            return Err(Error::Refused(Box::new(self.no_capacity(&proposal, window, now))));
        };
        let agreement = Agreement {
            id: proposal.id,
            party: proposal.party,
            name: proposal.name,
            template: proposal.template,
            resource,
            nodes: proposal.nodes,
            duration: proposal.duration,
            ready: window.start,
            deadline: window.end,
            placement: Interval::of(start, proposal.duration),
            job: proposal.job,
            guarantees: proposal.guarantees,
            state: AgreementState::Observed,
            service: ServiceState::NotReady,
            started: None,
            ended: None,
            outcome: None,
            created: self.now,
            version: 1,
        };
        // The fit was found on this very plan, so the only failure left is a plan that contradicts itself.
        self.plan
            .insert(agreement.clone())
            .map_err(|_| Error::Unavailable)?;
        if let Some(request) = &proposal.idempotency {
            self.remembered
                .insert((request.party.clone(), request.key.clone()), request.clone());
        }
        let detail = format!("placed on {} as the first fit in its window", agreement.resource);
        self.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: proposal.document,
            events: vec![self.event(EventKind::Accepted, detail)],
            idempotency: proposal.idempotency,
        });
        Ok(agreement)
    }

    /// The window that an offer asks for, from now on and within the horizon.
    fn window(&self, proposal: &Proposal, now: Time) -> Result<Interval, Refusal> {
        let horizon = now + self.settings.horizon;
        let ready = proposal.ready.unwrap_or(now).max(now);
        let deadline = proposal.deadline.unwrap_or(horizon);
        let capacity = self
            .plan
            .resources
            .iter()
            .map(|of| of.resource.capacity)
            .max()
            .unwrap_or(0);
        let (reason, binding) = if proposal.nodes > capacity {
            (
                Reason::SizeExceedsCapacity,
                format!(
                    "{} nodes are asked for, and the largest resource has {capacity}",
                    proposal.nodes
                ),
            )
        } else if deadline - proposal.duration < now {
            (
                Reason::WindowInThePast,
                "the window ends too soon from now for the duration".to_owned(),
            )
        } else if deadline - ready < proposal.duration {
            (
                Reason::WindowContradictory,
                "the window is shorter than the duration".to_owned(),
            )
        } else if deadline > horizon {
            (
                Reason::HorizonExceeded,
                format!("the provider plans {} days ahead", self.settings.horizon / 86_400),
            )
        } else {
            return Ok(Interval::new(ready, deadline));
        };
        Err(Refusal {
            reason,
            binding,
            earlier: None,
            later: None,
        })
    }

    /// The refusal of an offer that no resource has room for, with the nearest slots outside its window.
    fn no_capacity(&self, proposal: &Proposal, window: Interval, now: Time) -> Refusal {
        let duration = proposal.duration;
        // A slot that starts before the window's start ends before `start + duration`; one that ends after the
        // window's end starts after `end − duration`.
        let before = Interval::new(now, window.start + duration - 1);
        let after = Interval::new(window.end - duration + 1, now + self.settings.horizon);
        let trees = || self.plan.resources.iter().map(|of| &of.tree);
        let earlier = trees()
            .filter_map(|tree| tree.latest_fit(proposal.nodes, duration, before))
            .max();
        let later = trees()
            .filter_map(|tree| tree.earliest_fit(proposal.nodes, duration, after))
            .min();
        Refusal {
            reason: Reason::NoCapacityInWindow,
            binding: format!(
                "no resource has {} nodes free for {duration} seconds anywhere in the window",
                proposal.nodes
            ),
            earlier: earlier.map(|start| Interval::of(start, duration)),
            later: later.map(|start| Interval::of(start, duration)),
        }
    }

    /// Ends an agreement before its time.
    pub(super) fn terminate(&mut self, id: Uuid, party: Option<&str>) -> Result<Agreement, Error> {
        let mut agreement = self.live(id)?;
        if party.is_some_and(|party| party != agreement.party) {
            return Err(Error::NotFound);
        }
        // Asked before: its job is being stopped.
        let Some(terminating) = agreement.state.terminating() else {
            return Ok(agreement);
        };
        agreement.state = terminating;
        let mut events = vec![self.event(EventKind::Terminating, "asked for by its party".to_owned())];
        if agreement.service != ServiceState::Processing {
            if agreement.service == ServiceState::Idle {
                agreement.outcome = Some(Outcome::Terminated);
            }
            events.extend(self.close(&mut agreement, AgreementState::Terminated, self.now)?);
        }
        Ok(self.update(agreement, events))
    }

    /// Begins every slot that is due and closes the reservations that are over.
    pub(super) fn begin_due(&mut self) -> Result<Vec<Agreement>, Error> {
        let now = second_of(self.now);
        let mut starting = Vec::new();
        for id in self.plan.due_by(now) {
            let agreement = self.live(id)?;
            if agreement.service == ServiceState::Idle {
                self.finish(agreement, Outcome::Completed)?;
            } else if agreement.placement.end <= now {
                // The service was down for the whole slot.
                self.finish(agreement, Outcome::Lost)?;
            } else if let Some(begun) = self.begin(agreement, now) {
                starting.push(begun);
            }
        }
        Ok(starting)
    }

    /// Begins one slot: binds its nodes; answers with the agreement if there is a job to start.
    fn begin(&mut self, mut agreement: Agreement, now: Time) -> Option<Agreement> {
        let nodes = self.plan.bind(&agreement, now);
        let interval = Interval::new(agreement.placement.start.max(now), agreement.placement.end);
        agreement.service = if agreement.job.is_some() {
            ServiceState::Processing
        } else {
            ServiceState::Idle
        };
        if agreement.job.is_none() {
            agreement.started = Some(self.now);
        }
        let detail = format!("on nodes {} of {}", numbers(&nodes), agreement.resource);
        let bind = Change::BindNodes {
            agreement: agreement.id,
            resource: agreement.resource.clone(),
            nodes,
            interval,
        };
        let event = self.event(EventKind::Started, detail);
        let agreement = self.update(agreement, vec![event]);
        self.batch.push(bind);
        agreement.job.is_some().then_some(agreement)
    }

    /// Ends a reservation that runs nothing, at the end of its slot.
    fn finish(&mut self, mut agreement: Agreement, outcome: Outcome) -> Result<(), Error> {
        agreement.outcome = Some(outcome);
        let end = agreement.placement.end.seconds() * crate::clock::MICROS_PER_SECOND;
        let events = self.close(&mut agreement, AgreementState::Complete, end)?;
        self.update(agreement, events);
        Ok(())
    }

    /// Records the real start of a job.
    pub(super) fn started(&mut self, id: Uuid, at: Micros) -> Result<(), Error> {
        let mut agreement = self.processing(id)?;
        if agreement.started.is_none() {
            agreement.started = Some(at);
            self.update(agreement, Vec::new());
        }
        Ok(())
    }

    /// Records the end of a job and everything that follows from it.
    pub(super) fn ended(&mut self, id: Uuid, end: &JobEnd) -> Result<(), Error> {
        let mut agreement = self.processing(id)?;
        agreement.started = end.started.or(agreement.started);
        agreement.outcome = Some(end.outcome);
        let last = match (agreement.state, end.outcome) {
            (AgreementState::ObservedAndTerminating, Outcome::Terminated) => AgreementState::Terminated,
            _ => AgreementState::Complete,
        };
        let mut events = vec![Event {
            at: end.ended,
            kind: EventKind::Ended,
            detail: describe(end.outcome),
        }];
        events.extend(self.close(&mut agreement, last, end.ended)?);
        let agreement = self.update(agreement, events);
        self.batch
            .extend(execution(&agreement, end).map(|of| Change::RecordExecution(Box::new(of))));
        Ok(())
    }

    /// Ends the service of an agreement, assesses its guarantees and closes it: all in one step, so that nobody sees
    /// a complete agreement with an open guarantee.
    fn close(
        &self,
        agreement: &mut Agreement,
        last: AgreementState,
        ended: Micros,
    ) -> Result<Vec<Event>, Error> {
        agreement.ended = Some(ended);
        agreement.service = ServiceState::Completed;
        agreement.state = agreement
            .state
            .to(last)
            .map_err(|_| Error::Conflict(agreement.state.word()))?;
        let mut events = Vec::new();
        let mut guarantees = std::mem::take(&mut agreement.guarantees);
        for guarantee in &mut guarantees {
            assess(guarantee, agreement);
            if guarantee.state != GuaranteeState::NotDetermined {
                let evidence = guarantee.evidence.as_deref().unwrap_or_default();
                let detail = format!("{} {}: {evidence}", guarantee.name, guarantee.state.word());
                events.push(self.event(EventKind::Assessed, detail));
            }
        }
        agreement.guarantees = guarantees;
        events.push(self.event(EventKind::Closed, agreement.state.word().to_owned()));
        Ok(events)
    }

    fn live(&self, id: Uuid) -> Result<Agreement, Error> {
        self.plan.get(id).cloned().ok_or(Error::NotFound)
    }

    fn processing(&self, id: Uuid) -> Result<Agreement, Error> {
        let agreement = self.live(id)?;
        if agreement.service == ServiceState::Processing {
            Ok(agreement)
        } else {
            Err(Error::NotFound)
        }
    }

    /// Puts a changed agreement into the plan and the batch; one that is over gives its nodes back, however it ended.
    fn update(&mut self, mut agreement: Agreement, events: Vec<Event>) -> Agreement {
        agreement.version += 1;
        let release = self.plan.is_bound(agreement.id) && agreement.state.is_final();
        self.plan.replace(agreement.clone());
        self.batch.push(Change::UpdateAgreement {
            agreement: Box::new(agreement.clone()),
            events,
        });
        if release {
            self.batch.push(Change::ReleaseNodes {
                agreement: agreement.id,
                end: agreement.occupied().end,
            });
        }
        agreement
    }

    fn event(&self, kind: EventKind, detail: String) -> Event {
        Event {
            at: self.now,
            kind,
            detail,
        }
    }
}

/// The record of an execution for prediction; none where no process ever ran.
fn execution(agreement: &Agreement, end: &JobEnd) -> Option<Execution> {
    let job = agreement.job.as_ref()?;
    let started = agreement.started?;
    let slot = agreement.placement.start.seconds() * crate::clock::MICROS_PER_SECOND;
    Some(Execution {
        agreement: agreement.id,
        application: job.application.clone(),
        version: job.version.clone(),
        arguments: job.arguments.clone(),
        input_bytes: end.input_bytes,
        output_bytes: end.output_bytes,
        resource: agreement.resource.clone(),
        nodes: agreement.nodes,
        planned: agreement.placement,
        estimate: agreement.duration,
        queue_time: (started - slot).max(0),
        run_time: (end.ended - started).max(0),
        // Inputs of local jobs are linked, not copied, and outputs stay where they are.
        transfer_in: 0,
        transfer_out: 0,
        outcome: end.outcome,
        ended: end.ended,
    })
}

fn describe(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed => "exit status 0".to_owned(),
        Outcome::Failed { exit } => format!("exit status {exit}"),
        Outcome::Killed => "stopped at the end of its slot".to_owned(),
        Outcome::Terminated => "stopped because the agreement was terminated".to_owned(),
        Outcome::Lost => "gone without a trace of its end".to_owned(),
    }
}

fn numbers(nodes: &[u32]) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
