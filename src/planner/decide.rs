//! The decisions: from the plan and a command to the changes that are stored and the answer that is given. Nothing
//! here waits or stores; the writer does.

use std::collections::HashMap;

use scheduler::{Decision, Interval, Move, Request, Time};
use uuid::Uuid;

use super::budget::Payer;
use super::plan::{request_of, revenue};
use super::pricing::Priced;
use super::{Accepted, Error, Plan, Proposal, Settings, Termination};
use crate::agreement::{
    Agreement, AgreementState, Event, EventKind, Execution, GuaranteeState, JobEnd, Money, Outcome,
    ServiceState, assess,
};
use crate::clock::{Micros, second_after, second_of};
use crate::store::{Change, Idempotent};

/// What the requests with the idempotency keys of parties were answered, by party and key.
pub(super) type Remembered = HashMap<(String, String), Idempotent>;

/// A request that was let in.
struct Admitted {
    resource: String,
    slot: Interval,
    moved: Vec<Move>,
    price: Option<Money>,
}

/// What is decided with: the plan, the present, and the changes that the batch has so far.
pub(super) struct Decider<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a mut Plan,
    pub(super) now: Micros,
    pub(super) batch: &'a mut Vec<Change>,
    pub(super) remembered: Remembered,
}

impl Decider<'_> {
    /// Decides about an offer: it is placed inside its window, and accepted agreements that may move make room for it.
    pub(super) fn place(&mut self, proposal: Proposal) -> Result<Accepted, Error> {
        self.is_new(proposal.idempotency.as_ref())?;
        let now = second_of(self.now);
        let window = self
            .window(&proposal, now)
            .map_err(|refusal| Error::Refused(Box::new(refusal)))?;
        self.fix_those_who_have_waited(now);
        let number = self.plan.next_number();
        let mut agreement = agreement_of(&proposal, window, self.now);
        let request = request_of(&agreement, number);
        let payer = Payer {
            party: &proposal.party,
            budget: proposal.budget,
        };
        let Some(admitted) = self.admit(payer, &request, now) else {
            return Err(Error::Refused(Box::new(self.no_place(payer, &request, now))));
        };
        let Admitted {
            resource,
            slot,
            moved,
            price,
        } = admitted;
        (agreement.resource, agreement.placement, agreement.price) = (resource, slot, price);
        self.plan.insert(agreement.clone(), number);
        let detail = match moved.len() {
            0 => format!("placed on {} as the first fit in its window", agreement.resource),
            count => format!(
                "placed on {}; {count} others moved inside their windows",
                agreement.resource
            ),
        };
        self.batch.push(Change::CreateAgreement {
            agreement: Box::new(agreement.clone()),
            document: proposal.document,
            events: vec![self.event(EventKind::Accepted, detail)],
        });
        let moved = self.moved(&moved, "to let another agreement in");
        let own = moved
            .into_iter()
            .filter(|other| other.party == agreement.party)
            .collect();
        let accepted = Accepted {
            agreement,
            moved: own,
        };
        self.remember(proposal.idempotency, &accepted);
        Ok(accepted)
    }

    /// Lets a request in on the resource where it completes first as the plans stand, ties to the first configured; on
    /// one where others have to move only if it fits on none as it stands.
    fn admit(&mut self, payer: Payer<'_>, request: &Request, now: Time) -> Option<Admitted> {
        let window = request.window_at(now);
        let mut ranked: Vec<_> = (0..self.plan.resources.len())
            .filter_map(|index| {
                // How busy it is without the newcomer, and from when on it can pay.
                let load = self.load(index, window);
                let ready = self.affordable_from(index, load, payer, request, window)?;
                let tree = self.plan.resources[index].schedule.tree();
                let payable = Interval::new(ready, window.end);
                let start = tree.earliest_fit(request.nodes, request.duration, payable);
                Some((start.is_none(), start, index, ready, load))
            })
            .collect();
        ranked.sort_unstable_by_key(|of| (of.0, of.1, of.2));
        for (_, _, index, ready, load) in ranked {
            let priced = |slot| Priced {
                party: payer.party,
                request,
                slot,
                window,
            };
            let least = request.slot(window.end - request.duration);
            let request = Request {
                ready: if ready > window.start {
                    ready
                } else {
                    request.ready
                },
                revenue: revenue(self.price_under(load, index, priced(least))),
                ..*request
            };
            let of = &mut self.plan.resources[index];
            if let Decision::Accepted { placement, moved } = of.schedule.submit(now, &request) {
                return Some(Admitted {
                    resource: of.resource.name.clone(),
                    slot: placement.slot,
                    moved,
                    price: self.price_under(load, index, priced(placement.slot)),
                });
            }
        }
        None
    }

    /// Fixes the placements of those who have waited for the provider's fraction of their wait (paper 000, section
    /// 4.2), before a newcomer is put in order.
    fn fix_those_who_have_waited(&mut self, now: Time) {
        let Some(fraction) = self.settings.fix_after else {
            return;
        };
        let waited = |agreement: &&Agreement| {
            let submitted = second_of(agreement.created);
            fraction.reached(now - submitted, agreement.placement.start - submitted)
        };
        let due: Vec<Agreement> = self.plan.flexible().filter(waited).cloned().collect();
        for mut agreement in due {
            self.plan.fix(&agreement);
            agreement.fixed = true;
            let event = self.event(EventKind::Fixed, "its slot moves no more".to_owned());
            self.update(agreement, vec![event]);
        }
    }

    /// Takes over what a schedule has moved; answers with the agreements as they are now.
    fn moved(&mut self, moves: &[Move], why: &str) -> Vec<Agreement> {
        let mut moved = Vec::with_capacity(moves.len());
        for of in moves {
            let Some(mut agreement) = self.plan.by_number(of.id).cloned() else {
                continue;
            };
            agreement.placement = Interval::of(of.to, agreement.duration);
            let by = of.to - of.from;
            let direction = if by < 0 { "earlier" } else { "later" };
            let detail = format!("{} seconds {direction}, {why}", by.abs());
            let event = self.event(EventKind::Moved, detail);
            moved.push(self.update(agreement, vec![event]));
        }
        moved
    }

    /// Places what waits anew where it can start earlier: the work of an idle moment. Left out for a resource where
    /// more than `waiting_max` wait.
    pub(super) fn improve(&mut self, waiting_max: usize) {
        let now = second_of(self.now);
        let mut moves: Vec<Move> = Vec::new();
        for of in &mut self.plan.resources {
            if of.schedule.waiting().count() <= waiting_max {
                moves.extend(of.schedule.improve(now));
            }
        }
        self.moved(&moves, "into time that was free");
    }

    /// Ends an agreement before its time.
    pub(super) fn terminate(&mut self, order: Termination) -> Result<Agreement, Error> {
        self.is_new(order.idempotency.as_ref())?;
        let agreement = self.live(order.id)?;
        if order.party.is_some_and(|party| party != agreement.party) {
            return Err(Error::NotFound);
        }
        if order
            .versions
            .is_some_and(|may| !may.contains(&agreement.version))
        {
            return Err(Error::Changed);
        }
        let ending = self.terminated(agreement)?;
        self.remember(order.idempotency, &ending);
        Ok(ending)
    }

    /// Ends an agreement at once, or has its job stopped first.
    fn terminated(&mut self, mut agreement: Agreement) -> Result<Agreement, Error> {
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

    /// Puts a changed agreement into the plan and the batch. One that is over gives its nodes back, however it ended,
    /// and those who use what it has left free move with it.
    fn update(&mut self, mut agreement: Agreement, events: Vec<Event>) -> Agreement {
        agreement.version += 1;
        let release = self.plan.is_bound(agreement.id) && agreement.state.is_final();
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
        // A node whose work ended within a second is free from the next one on.
        let moves = self.plan.replace(agreement.clone(), second_after(self.now));
        self.moved(&moves, "into time that became free");
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
        input_bytes: bytes(end.input_bytes),
        output_bytes: bytes(end.output_bytes),
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

/// A count as it is stored.
fn bytes(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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

/// The agreement that an offer becomes, before it has a place.
fn agreement_of(proposal: &Proposal, window: Interval, now: Micros) -> Agreement {
    Agreement {
        id: proposal.id,
        party: proposal.party.clone(),
        name: proposal.name.clone(),
        template: proposal.template.clone(),
        resource: String::new(),
        nodes: proposal.nodes,
        duration: proposal.duration,
        ready: window.start,
        deadline: window.end,
        placement: window,
        fixed: false,
        price: None,
        job: proposal.job.clone(),
        guarantees: proposal.guarantees.clone(),
        state: AgreementState::Observed,
        service: ServiceState::NotReady,
        started: None,
        ended: None,
        outcome: None,
        created: now,
        version: 1,
    }
}
