//! Nodes are held before they are promised. On a cluster that others use, a slot that begins soon may be gone before the cluster
//! holds its nodes. So the command that asks for such a slot waits here: the plan keeps the slot, nothing is stored, and the
//! resource's executor reserves the nodes as it does for agreements ([`super::Planned`]). When it holds them the command is
//! decided again, with this slot. Where the cluster refuses, it is decided anew after the next report of the nodes.

pub(super) mod reserved_nodes;

mod acceptances;
mod begins;

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Interval, Move, Reason, Seconds, Time};
use uuid::Uuid;

use super::commands::answer;
use super::decide::{Decider, begins_too_late};
use super::{Command, Error, Plan, Planner, Proposal, Refusal, Reply};
use crate::agreement::Agreement;
use crate::clock::{MICROS_PER_SECOND, Micros, second_of};
use crate::planner::admission::refuse::bare;
use crate::planner::batches::Answer;
use crate::planner::lifecycle::pieces::requests_of;
use crate::planner::placement::admit::{Admitted, Wanted};

/// Seconds between a command and the begin of a slot that has to be reserved: as long as reserving takes.
const BEGINS_AFTER: Seconds = 3;
/// For how long a command waits for its cluster.
const PATIENCE: Micros = 20 * MICROS_PER_SECOND;
/// Commands that may wait: each holds a connection, and more are a flood.
const WAITING_MAX: usize = 128;
/// Slots that a cluster may refuse before its requester is told. The next one begins 3, 6, 12 and 24 seconds after the refused one.
const TRIES_MAX: u32 = 5;

/// How far the decision of a command has come.
#[derive(Debug)]
pub(super) enum Step<T, C> {
    /// It is decided.
    Done(T),
    /// It is decided again when the cluster holds the nodes; the request comes back.
    Wait(C),
}

#[cfg(test)]
impl<T, C> Step<T, C> {
    /// The decision.
    pub(super) fn done(self) -> T {
        match self {
            Self::Done(done) => done,
            Self::Wait(_) => panic!("it waits for its cluster"),
        }
    }
}

/// The state of the nodes of a waiting command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReservationState {
    Unknown,
    Reserved,
    /// The cluster does not hold them, and its nodes were not reported since.
    Refused,
    /// They were reported: another slot may be found.
    RefusedAndReported,
}

/// A command that waits until its cluster holds the nodes.
struct Waiting {
    /// There from when the writer hands it over.
    command: Option<Command>,
    /// The agreement that the command would make.
    agreement: Agreement,
    admitted: Admitted,
    /// Agreements that have moved for it.
    moved: Vec<Agreement>,
    /// How they moved on its resource. Where the cluster refuses, they move back: it still holds their nodes there.
    moves: Vec<Move>,
    /// The numbers under which its slots are kept; none where an offer keeps them.
    numbers: Vec<u64>,
    /// The agreement on its resource that this one takes the place of, where it does.
    replaces: Option<Replaced>,
    tried: Tried,
    outcome: ReservationState,
}

/// An agreement that stays as it is while the acceptance of its successor waits, which has its nodes then.
#[derive(Debug, Clone, Copy)]
struct Replaced {
    work: Uuid,
    /// Its successor goes on with the running work.
    has_begun: bool,
}

/// The tries of a waiting command so far.
#[derive(Debug, Clone, Copy)]
struct Tried {
    since: Micros,
    /// How many slots its cluster has refused.
    slots: u32,
    /// When the next one begins at the earliest: the nodes that the plan counts as free may be others at each moment of a slot.
    not_before: Option<Time>,
}

/// A slot with reserved nodes.
pub(super) struct Reserved {
    pub(super) admitted: Admitted,
    pub(super) window: Interval,
    pub(super) moved: Vec<Agreement>,
}

/// The answer of the cluster, with which a waiting command is decided again.
enum Verdict {
    Reserved(Box<Reserved>),
    Refused(Tried),
    NoAnswer,
}

/// The commands that wait for their clusters, by the ids of the agreements that they would make.
#[derive(Default)]
pub(super) struct Reserving {
    waiting: BTreeMap<Uuid, Waiting>,
    /// The answer of the cluster for the present command, where it has waited.
    verdict: Option<(Uuid, Verdict)>,
    /// Up to how many seconds before their begin slots have to be reserved, by the names of the resources where they have.
    within: BTreeMap<String, Seconds>,
    /// When the slot of the present command begins at the earliest, where others were refused.
    not_before: Option<Time>,
    /// Whether one has come or gone that executors have not been told of.
    has_changed: bool,
}

impl Reserving {
    /// Takes over the reports of executors from before the plan was rebuilt. Commands that waited are not decided.
    pub(super) fn recall(&mut self, before: &Self) {
        self.within.clone_from(&before.within);
    }

    /// The agreements on a resource that commands wait for.
    pub(super) fn on(&self, resource: &str) -> impl Iterator<Item = &Agreement> {
        let all = self.waiting.values().map(|of| &of.agreement);
        all.filter(move |of| of.resource == resource)
    }

    /// The work on a resource that the agreements of waiting commands replace, by the ids of these agreements.
    pub(super) fn replaced_on(&self, resource: &str) -> BTreeMap<Uuid, Uuid> {
        let here = self
            .waiting
            .iter()
            .filter(|(_, of)| of.agreement.resource == resource);
        here.filter_map(|(id, of)| Some((*id, of.replaces?.work)))
            .collect()
    }

    /// Up to which begin slots on a resource have to be reserved, where it reserves slots.
    pub(super) fn near_until(&self, resource: &str, now: Time) -> Option<Time> {
        let within = self.within.get(resource)?;
        Some(Time(now.seconds().saturating_add(*within)))
    }

    /// The work of the agreements on a resource that have moved for commands.
    pub(super) fn moved_on(&self, resource: &str) -> impl Iterator<Item = Uuid> {
        let moved = self.waiting.values().flat_map(|of| &of.moved);
        moved
            .filter(move |of| of.resource == resource)
            .map(Agreement::execution_id)
    }

    /// The numbers under which slots are kept on a resource.
    pub(super) fn numbers_on(&self, resource: &str) -> impl Iterator<Item = u64> {
        let here = self
            .waiting
            .values()
            .filter(move |of| of.agreement.resource == resource);
        here.flat_map(|of| of.numbers.iter().copied())
    }

    /// The node-seconds of a party's waiting commands, without acceptances: the offers count for those.
    pub(super) fn node_seconds(&self, party: &str) -> u128 {
        let own = self.waiting.values().filter(|of| of.agreement.party == party);
        own.filter(|of| !of.numbers.is_empty())
            .map(|of| of.agreement.node_seconds())
            .sum()
    }

    /// Whether slots were refused for the present command.
    pub(super) fn has_refused(&self) -> bool {
        self.not_before.is_some()
    }

    /// Whether the commands that wait have changed since this was last asked.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Whether a command waits.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the commands that were taken to be decided again and are not; the numbers of their slots, by resource.
    fn take_dropped(&mut self) -> Vec<(usize, u64)> {
        let dropped = self.waiting.extract_if(.., |_, of| of.command.is_none());
        let slots = dropped.flat_map(|(_, of)| {
            of.numbers
                .into_iter()
                .map(move |number| (of.admitted.resource, number))
        });
        slots.collect()
    }

    fn is_needed(&self, agreement: &Agreement, now: Time) -> bool {
        let near = self.near_until(&agreement.resource, now);
        near.is_some_and(|until| agreement.slot().start <= until)
    }

    /// The slot that was reserved for an agreement, once.
    fn take(&mut self, id: Uuid) -> Option<Reserved> {
        match self.verdict.take() {
            Some((of, Verdict::Reserved(reserved))) if of == id => Some(*reserved),
            other => {
                self.verdict = other;
                None
            }
        }
    }

    /// The tries for an agreement, if there were any. The error says in words that its cluster has refused too often, or did not
    /// answer.
    fn tried(&mut self, id: Uuid, now: Micros) -> Result<Option<Tried>, String> {
        let verdict = self.verdict.take().filter(|(of, _)| *of == id);
        let seconds = PATIENCE / MICROS_PER_SECOND;
        match verdict.map(|(_, verdict)| verdict) {
            Some(Verdict::Refused(tried)) if tried.slots < TRIES_MAX && now - tried.since < PATIENCE => {
                Ok(Some(tried))
            }
            Some(Verdict::Refused(tried)) => Err(refused_in_words(tried.slots)),
            Some(Verdict::NoAnswer) => Err(format!(
                "the cluster has not reserved the nodes within {seconds} seconds"
            )),
            Some(Verdict::Reserved(_)) | None => Ok(None),
        }
    }
}

impl Planner {
    /// Records which agreements a resource could not reserve nodes for, with the begins of their slots, and from how many seconds
    /// before their begin it reserves slots: slots that begin within that time are promised from now on when their nodes are held.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn report_reserving(
        &self,
        resource: String,
        refused: Vec<(Uuid, Time)>,
        within: Seconds,
    ) -> Result<(), Error> {
        self.ask(|reply| Command::Reserving(resource, refused, within, reply))
            .await
    }
}

impl Decider<'_> {
    /// Notes how a resource reserves nodes.
    pub(super) fn note_reserving(&mut self, resource: &str, refused: &[(Uuid, Time)], within: Seconds) {
        let reserving = &mut self.plan.reserving;
        reserving.within.insert(resource.to_owned(), within);
        for of in reserving.waiting.values_mut() {
            // A slot that was tried before says nothing of this one.
            let is_refused = |(slot, _): &(Interval, u32)| refused.contains(&(of.agreement.id, slot.start));
            let is_its = of.agreement.resource == resource && of.agreement.loads().iter().any(is_refused);
            let is_moved = of.moved.iter().any(|moved| {
                moved.resource == resource && refused.contains(&(moved.execution_id(), moved.slot().start))
            });
            if (is_its || is_moved) && of.outcome == ReservationState::Unknown {
                of.outcome = ReservationState::Refused;
            }
        }
    }

    /// Notes for which commands a resource holds the nodes.
    pub(super) fn note_reserved(&mut self, resource: &str) {
        let now = second_of(self.now);
        let at = self.plan.resources.place(resource);
        let Some(of) = at.and_then(|at| self.plan.resources.get(at)) else {
            return;
        };
        let near = self.plan.reserving.near_until(resource, now);
        // A slot that has moved to a later time is reserved when that time comes. A slot that has moved again or is over
        // does not count.
        let moves = self.plan.reserving.waiting.values().flat_map(|of| &of.moves);
        let missing: BTreeSet<u64> = moves
            .filter(|moved| near.is_some_and(|until| moved.to <= until))
            .filter(|moved| {
                self.plan
                    .slot_by_number(moved.id)
                    .is_some_and(|(agreement, index)| {
                        let slot = agreement.slots.get(index);
                        slot.is_some_and(|slot| slot.placement.start == moved.to)
                            && agreement.resource == resource
                            && !of.holds_slot(agreement, index, now)
                    })
            })
            .map(|moved| moved.id)
            .collect();
        for waiting in self.plan.reserving.waiting.values_mut() {
            let is_its = waiting.agreement.resource == resource && of.holds(&waiting.agreement, near, now);
            let is_missing = |moved: &Move| missing.contains(&moved.id);
            if is_its && waiting.outcome == ReservationState::Unknown && !waiting.moves.iter().any(is_missing)
            {
                waiting.outcome = ReservationState::Reserved;
            }
        }
    }

    /// Notes that the nodes of a resource were reported.
    pub(super) fn note_reported(&mut self, resource: &str) {
        for of in self.plan.reserving.waiting.values_mut() {
            if of.agreement.resource == resource && of.outcome == ReservationState::Refused {
                of.outcome = ReservationState::RefusedAndReported;
            }
        }
    }

    /// Finds the place of an offer, as [`Decider::admitted_or`] does; none where its cluster has to hold it first.
    pub(super) fn reserved_or(
        &mut self,
        proposal: &Proposal,
        refused: impl FnOnce(&mut Self, &Wanted<'_>, Reason, Time) -> Refusal,
    ) -> Result<Option<(Agreement, Admitted, u64)>, Refusal> {
        if let Some(reserved) = self.plan.reserving.take(proposal.id) {
            let number = self.plan.next_number();
            let agreement = self.agreement_of(proposal, reserved.window, &reserved.admitted);
            self.put_reserved(&agreement, number, reserved.admitted.resource);
            return Ok(Some((agreement, reserved.admitted, number)));
        }
        let tried = self.plan.reserving.tried(proposal.id, self.now);
        let tried = tried.map_err(|why| bare(Reason::NoCapacityInWindow, why))?;
        self.plan.reserving.not_before = tried.and_then(|tried| tried.not_before);
        let admitted = self.admitted_or(proposal, refused);
        self.plan.reserving.not_before = None;
        let (agreement, admitted, number) = match (admitted, tried) {
            (Ok(admitted), _) => admitted,
            (Err(refusal), Some(tried)) if is_about_time(refusal.reason) => {
                return Err(bare(Reason::NoCapacityInWindow, refused_in_words(tried.slots)));
            }
            (Err(refusal), _) => return Err(refusal),
        };
        if !self.plan.reserving.is_needed(&agreement, second_of(self.now)) {
            return Ok(Some((agreement, admitted, number)));
        }
        if self.plan.reserving.is_full() {
            self.make_room(&admitted);
            for request in requests_of(&agreement, number) {
                let now = second_of(self.now);
                self.plan.resources.vacate(admitted.resource, now, request.id);
            }
            let many = format!("{WAITING_MAX} requests wait for their clusters; another try may succeed");
            return Err(bare(Reason::NoCapacityInWindow, many));
        }
        self.keep_until_reserved(agreement, admitted, number, tried);
        Ok(None)
    }

    /// Puts an agreement where its slots were kept until now.
    pub(super) fn put_reserved(&mut self, agreement: &Agreement, number: u64, at: usize) {
        let now = second_of(self.now);
        let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
        for (request, start) in requests_of(agreement, number).into_iter().zip(starts) {
            self.plan.resources.put_back(at, now, &request, start);
        }
    }

    /// Keeps the slots of an agreement that were just found for it; they do not move.
    fn keep_until_reserved(
        &mut self,
        agreement: Agreement,
        mut admitted: Admitted,
        number: u64,
        tried: Option<Tried>,
    ) {
        let now = second_of(self.now);
        let moved = self.make_room(&admitted);
        let moves = std::mem::take(&mut admitted.moved);
        admitted.transferred.clear();
        let (id, at) = (agreement.id, admitted.resource);
        let mut numbers = Vec::new();
        for (request, (slot, nodes)) in requests_of(&agreement, number).into_iter().zip(agreement.loads()) {
            self.plan.resources.vacate(at, now, request.id);
            let fixed = scheduler::Request {
                id: self.plan.table.next_hold(),
                ready: slot.start,
                deadline: slot.end,
                nodes,
                ..request
            };
            self.plan.resources.put_back(at, now, &fixed, slot.start);
            numbers.push(fixed.id);
        }
        self.wait(agreement, admitted, numbers, tried);
        if let Some(waiting) = self.plan.reserving.waiting.get_mut(&id) {
            (waiting.moved, waiting.moves) = (moved, moves);
        }
    }

    fn wait(&mut self, agreement: Agreement, admitted: Admitted, numbers: Vec<u64>, tried: Option<Tried>) {
        let tried = tried.unwrap_or(Tried {
            since: self.now,
            slots: 0,
            not_before: None,
        });
        let waiting = Waiting {
            command: None,
            admitted,
            moved: Vec::new(),
            moves: Vec::new(),
            numbers,
            replaces: None,
            tried,
            outcome: ReservationState::Unknown,
            agreement,
        };
        self.plan.reserving.has_changed = true;
        self.plan.reserving.waiting.insert(waiting.agreement.id, waiting);
    }

    /// Decides a command about an agreement. Where it has to wait for its cluster, `again` makes the command that is decided later;
    /// nothing is answered then, and `count` is not called.
    pub(super) fn decide_or_wait<T: Send + 'static, C>(
        &mut self,
        id: Uuid,
        reply: Reply<T>,
        decide: impl FnOnce(&mut Self) -> Result<Step<T, C>, Error>,
        again: impl FnOnce(C, Reply<T>) -> Command,
        count: impl FnOnce(&mut Self, &Result<T, Error>),
    ) -> Answer {
        self.come_back(id);
        let decided = match decide(self) {
            Ok(Step::Done(decided)) => Ok(decided),
            Ok(Step::Wait(asked)) => {
                if let Some(waiting) = self.plan.reserving.waiting.get_mut(&id) {
                    waiting.command = Some(again(asked, reply));
                }
                return Box::new(|_| {});
            }
            Err(why) => Err(why),
        };
        count(self, &decided);
        answer(reply, decided)
    }

    /// Agreements that have moved for an agreement while its command waited.
    pub(super) fn moved_before(&mut self, id: Uuid) -> Vec<Agreement> {
        match &mut self.plan.reserving.verdict {
            Some((of, Verdict::Reserved(reserved))) if *of == id => std::mem::take(&mut reserved.moved),
            _ => Vec::new(),
        }
    }

    /// Takes the commands that are to be decided again. Their slots are kept until then.
    pub(super) fn decidable(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for waiting in self.plan.reserving.waiting.values_mut() {
            let is_settled = matches!(
                waiting.outcome,
                ReservationState::Reserved | ReservationState::RefusedAndReported
            );
            if is_settled || self.now - waiting.tried.since > PATIENCE {
                commands.extend(waiting.command.take());
            }
        }
        commands
    }

    /// Begins a command about an agreement. Where it has waited, its kept slots leave the plan, so that it can have them now.
    fn come_back(&mut self, id: Uuid) {
        let now = second_of(self.now);
        self.plan.reserving.verdict = None;
        let Some(waiting) = self.plan.reserving.waiting.remove(&id) else {
            return;
        };
        let at = waiting.admitted.resource;
        self.plan.reserving.has_changed |= waiting.outcome != ReservationState::Reserved;
        // Nodes that were taken out of use took it with them.
        let is_kept = waiting
            .numbers
            .iter()
            .all(|number| self.plan.resources.has(at, *number));
        for number in &waiting.numbers {
            self.plan.resources.vacate(at, now, *number);
        }
        let verdict = match waiting.outcome {
            // One that is reserved too late is tried again, later.
            ReservationState::Reserved if is_kept && !waiting.is_too_late(now) => {
                Verdict::Reserved(Box::new(Reserved {
                    window: waiting.agreement.window(),
                    admitted: waiting.admitted,
                    moved: waiting.moved,
                }))
            }
            ReservationState::Unknown if waiting.tried.slots == 0 => Verdict::NoAnswer,
            _ => Verdict::Refused(Tried {
                since: waiting.tried.since,
                slots: waiting.tried.slots + 1,
                not_before: Some(
                    waiting.agreement.slot().start.max(now)
                        + (BEGINS_AFTER << waiting.tried.slots.min(TRIES_MAX)),
                ),
            }),
        };
        if !matches!(verdict, Verdict::Reserved(_)) {
            self.move_back(at, &waiting.moves);
        }
        self.plan.reserving.verdict = Some((id, verdict));
    }

    /// Moves agreements back that have moved for a command, after the cluster has refused the command's slot: all of
    /// them, or none where a place is taken or one of them may move no more.
    fn move_back(&mut self, at: usize, moves: &[Move]) {
        let now = second_of(self.now);
        let back = self.attempt(|this| {
            let mut back = Vec::new();
            for of in moves {
                let is_there = |start: Time| start == of.to && of.from > now;
                let waits = this.plan.resources.waiting(at, of.id);
                if waits.is_some_and(|(_, start)| is_there(start)) {
                    let (agreement, _) = this.plan.slot_by_number(of.id)?;
                    if agreement.fixed || this.plan.table.is_counted_on(agreement.id) {
                        return None;
                    }
                    let (request, _) = this.plan.resources.withdraw(at, of.id)?;
                    back.push((request, of.from));
                }
            }
            let are_back = this.plan.resources.put_all(at, now, &back);
            are_back.then_some(back)
        });
        let moves = |(request, _): &(scheduler::Request, Time)| {
            let of = moves.iter().find(|of| of.id == request.id)?;
            Some(Move {
                id: of.id,
                from: of.to,
                to: of.from,
            })
        };
        let moves: Vec<Move> = back.iter().flatten().filter_map(moves).collect();
        self.moved(&moves, "back: the cluster has refused the new place");
    }
}

impl Plan {
    /// Gives up the slots of commands that had waited and were dropped.
    pub(super) fn forget_dropped(&mut self, now: Time) {
        for (at, number) in self.reserving.take_dropped() {
            self.resources.vacate(at, now, number);
        }
    }
}

impl Waiting {
    /// Whether the slot is over, or its rest may be too short for a job that begins in it.
    fn is_too_late(&self, now: Time) -> bool {
        let goes_on = self.replaces.is_some_and(|of| of.has_begun);
        self.agreement.slot().end <= now || !goes_on && begins_too_late(&self.agreement, now)
    }
}

/// Whether a later begin may be the reason for a refusal.
fn is_about_time(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoCapacityInWindow | Reason::WindowContradictory | Reason::WindowInThePast
    )
}

fn refused_in_words(slots: u32) -> String {
    let slots = match slots {
        1 => "a slot".to_owned(),
        slots => format!("{slots} slots"),
    };
    format!("the cluster has refused to reserve the nodes of {slots} in the window, and no later one is left")
}
