//! The life cycle of an agreement as values and total functions: its parts, the order of its states, and the assessment of its
//! guarantees. Nothing here is stored, sent or waited for; the planner applies it.

mod assessment;
mod at_peer;
mod cannot_start;
mod delivered;
mod energy;
mod filter;
mod job;
mod ledger;
mod money;
mod move_record;
mod notes;
mod offers;
mod party_events;
mod placement_constraints;
mod run;
mod shape_changes;
mod slots;
mod staging;
mod state;
mod stored_time;
mod stretch;
mod values;
mod wording;

use delivered::{PUNCTUAL, START_TOLERANCE};
use scheduler::{Interval, Seconds, Time, worded};
use serde::{Deserialize, Serialize};
use stretch::node_seconds_of_stretches;
use uuid::Uuid;

use crate::clock::{MICROS_PER_SECOND, Micros, second_after, second_of};

pub use assessment::{Guarantee, assess, next_assessment};
pub use at_peer::{AtPeer, GuaranteeAtPeer, HeldAtPeer, SeenAtPeer};
pub use cannot_start::CannotStart;
pub use energy::EnergyUse;
pub use filter::{Filter, Measure, RESOURCE, attribute_of_filter_kind};
pub use job::{Job, JobEnd};
pub use ledger::{Account, Balance, Entry, Posting, PostingKind};
pub use money::{AMOUNT_MAX, Currency, Money, Spender, add_to_sums, part_of_amount};
pub use move_record::{MoveRecord, RecordedMove};
pub use notes::{Note, NoteKind};
pub use offers::{
    NegotiationInstance, NegotiationOffer, NegotiationState, OfferTerms, PriceDiscounts, Promise,
    ProposalReason,
};
pub use party_events::{PartyEvent, PartyEventKind};
pub use placement_constraints::{BarredResource, Cuts, PlacementConstraints, Shape};
pub use run::{Limit, NoRun, Run, RunOutcome};
pub use shape_changes::ShapeChanges;
pub use slots::{Slot, Slots};
pub use staging::{BroughtFiles, MovedFiles, Source, StagedFile, StagingEnd, staging_transfer_rate};
pub use state::ServiceState;
pub use stretch::{Stretch, held_stretches, stretches_held_beyond};
pub use values::{Compensation, CompensationValue, Obligated, Values};
pub use wording::Wording;
pub use wsag::agreement_state::AgreementState;
pub use wsag::negotiations::{NegotiationRole, OfferState};
pub use wsag::quotation::OfferKind;
pub use wsag::states::GuaranteeState;
pub use wsag::terms::CompositorChoice;

/// An agreement as the planner holds it and the store keeps it, without the offer's document.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// Assigned by the service; `UUIDv7`, so that ids sort by creation.
    pub id: Uuid,
    /// The party that made the offer and alone may see it.
    pub party: String,
    /// The name that the offer gave.
    pub name: Option<String>,
    /// The id that its initiator gave it, where the offer had one.
    pub initiator_id: Option<String>,
    /// The template that the offer was made from.
    pub template: String,
    /// The resource that holds the placement.
    pub resource: String,
    /// Contract duration in seconds: the sum of its slots, without the time that was added to them.
    pub duration: Seconds,
    /// Earliest start T^r.
    pub ready: Time,
    /// Latest completion D.
    pub deadline: Time,
    /// Its slots, in order of time. [`Agreement::loads`] has the nodes that it keeps from others once its work has ended.
    pub slots: Slots,
    /// Whether its placement moves no more inside its window.
    pub fixed: bool,
    /// Its price, settled with the placement and not changed by a move. `None` where nothing is priced.
    pub price: Option<Money>,
    /// The other places and sizes that it may have.
    pub constraints: PlacementConstraints,
    /// The job to run; `None` reserves nodes and runs nothing.
    pub job: Option<Job>,
    /// The guarantee terms and their states.
    pub guarantees: Vec<Guarantee>,
    /// The choice, where the offer left one and it is decided.
    pub choices: Vec<CompositorChoice>,
    /// State of the agreement.
    pub state: AgreementState,
    /// State of its service terms: they describe one service and move together.
    pub service: ServiceState,
    /// When the work really started.
    pub started: Option<Micros>,
    /// When the work really ended.
    pub ended: Option<Micros>,
    /// How the work ended.
    pub outcome: Option<RunOutcome>,
    /// When the offer was accepted.
    pub created: Micros,
    /// Counts changes, from 1; the entity tag.
    pub version: i64,
    /// The agreement that gives its work the id by which it is known outside, where this agreement has taken over that work while
    /// it ran.
    pub origin: Option<Uuid>,
}

impl Agreement {
    /// The id under which its job, its folder and its nodes are known outside: that of the first agreement of this work, also
    /// after several replacements.
    pub fn execution_id(&self) -> Uuid {
        self.origin.unwrap_or(self.id)
    }

    /// The latest end of its slots beyond its window: by `limit`, and before it expires.
    pub fn latest_end(&self, limit: Time) -> Time {
        self.constraints.expires.map_or(limit, |at| limit.min(Time(at)))
    }

    /// Whether it has a place: one that is not decided, or was rejected, has none.
    pub fn is_placed(&self) -> bool {
        !self.placement().is_empty()
    }

    /// The window `[T^r, D)`.
    pub fn window(&self) -> Interval {
        Interval::new(self.ready, self.deadline)
    }

    /// The part of its window in which its slot may move: where it is long enough for its work.
    pub fn room(&self) -> Interval {
        let Some((start, end)) = self.constraints.room else {
            return self.window();
        };
        // A slot that was made longer, or had to move, may reach beyond it.
        let lies = self.placement();
        Interval::new(Time(start).min(lies.start), Time(end).max(lies.end))
    }

    /// Whether its slot has begun and is not over, and its end was not requested.
    pub fn is_being_carried_out(&self) -> bool {
        self.state == AgreementState::Observed && self.service.is_ready()
    }

    /// Whether nodes were promised that its party has not been given, and so has not had to use or to pay.
    pub fn never_had_nodes(&self) -> bool {
        self.job.is_none() && self.started.is_none()
    }

    /// How many jobs it has had before: each was lost, or was never started in its slot.
    pub fn restarts(&self) -> u32 {
        self.job.as_ref().map_or(0, |job| job.restarts)
    }

    /// Whether its work was lost before, and it waits for its next slot.
    pub fn waits_to_run_again(&self) -> bool {
        self.state == AgreementState::Observed
            && matches!(self.service, ServiceState::NotReady | ServiceState::Idle)
            && self.restarts() > 0
    }

    /// Whether all or some of it is still to begin, and may move until it does unless it is fixed.
    pub fn has_more_to_begin(&self) -> bool {
        self.state == AgreementState::Observed && self.slots_begun() < self.slots.len()
    }

    /// Whether it could not move if it might: its slots are as long as its window.
    pub fn fills_its_window(&self) -> bool {
        self.planned_seconds() == self.window().duration()
    }

    /// The node-seconds that its price was agreed for: those that it has, unless the provider has given it another shape.
    pub fn priced_node_seconds(&self) -> u128 {
        let priced = self.constraints.priced_node_seconds;
        priced.map_or_else(|| self.node_seconds(), u128::from)
    }

    /// The changes of its shape that its terms leave open at an instant: none where it has begun, or ran before, or moves no more.
    pub fn shape_changes_at(&self, now: Time) -> Option<ShapeChanges> {
        // A run before may still go on, or its files lie there.
        let is_first = self.restarts() == 0 && self.slots_over() == 0;
        let waits = self.is_waiting() && !self.fixed && self.placement().start > now && is_first;
        let open = self.constraints.open_shape_changes();
        open.filter(|changes| waits && changes.is_open_at(now))
    }

    /// Whether it is accepted and its slot has not begun.
    pub fn is_waiting(&self) -> bool {
        self.state == AgreementState::Observed && self.service == ServiceState::NotReady
    }

    /// Whether files are being brought for the job of its slot, whose process has not started.
    pub fn is_being_brought(&self) -> bool {
        let waits = |job: &Job| job.brought.is_none() && job.fetched().next().is_some();
        self.service == ServiceState::Processing
            && self.slots_over() == 0
            && self.job.as_ref().is_some_and(waits)
    }

    /// Whether a slot of it has begun and is not over.
    pub fn has_nodes(&self) -> bool {
        match self.service {
            ServiceState::Processing => true,
            ServiceState::Idle => !self.is_between_slots(),
            ServiceState::NotReady | ServiceState::Completed => false,
        }
    }

    /// Notes that the work that runs, or goes on next, is lost for good. Answers the outcome of the whole: where that slot was
    /// beyond the contract, the agreement has had its contract and was stopped after it.
    pub fn lose(&mut self) -> RunOutcome {
        let over = self.slots_over();
        if !self.adds_to_contract(over) {
            return RunOutcome::Lost;
        }
        self.slots[over].lost = true;
        RunOutcome::Killed
    }

    /// The nodes that it has on the average of its time, to the nearest: all of them where none of its slots has others.
    pub fn mean_nodes(&self) -> u32 {
        let seconds = u128::from(self.planned_seconds().max(1).unsigned_abs());
        let mean = (self.slots.node_seconds() + seconds / 2) / seconds;
        u32::try_from(mean).unwrap_or(self.nodes())
    }

    /// Notes when the process really started that runs in its slot.
    pub fn note_started(&mut self, at: Option<Micros>) {
        let over = self.slots_over();
        if let Some(slot) = self.slots.get_mut(over) {
            slot.started = at;
        }
        self.started = self.slots.iter().find_map(|slot| slot.started);
    }

    /// When the nodes are free again that it had last: from its start on where no slot of it is over.
    pub fn released(&self) -> Time {
        let last = self.slots[..self.slots_over()].last();
        last.map_or(self.placement().start, |slot| slot.occupied().end)
    }

    /// Seconds beyond its contract that it has used once it is over.
    pub fn used_overrun(&self) -> Seconds {
        let used: Seconds = self.used_slots().iter().map(|(time, _)| time.duration()).sum();
        (used - self.undelivered_seconds() - self.duration).clamp(0, self.overrun())
    }

    /// Gives up the slot that is to follow the one that runs and was added to its contract, if there is one; the deadline is
    /// again as it was before.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let mut without = self.clone();
        let next = self.slots_over() + 1;
        if self.adds_to_contract(next) {
            without.deadline = self.slots[next].deadline_before.unwrap_or(self.deadline);
            without.slots.0.truncate(next);
            without.deadline = without.deadline.max(without.placement().end);
        }
        without
    }

    /// For how long its processes have run that have ended, in microseconds; none where none has.
    pub fn run_time(&self) -> Option<Micros> {
        let ran = |slot: &Slot| Some((slot.ended? - slot.started?).max(0));
        self.slots.iter().filter_map(ran).reduce(|one, next| one + next)
    }

    /// For how long its processes have run by an instant, in microseconds.
    pub fn run_time_by(&self, now: Micros) -> Micros {
        let ran = |slot: &Slot| Some((slot.ended.unwrap_or(now) - slot.started?).max(0));
        self.slots.iter().filter_map(ran).sum()
    }

    /// For how long its processes will have run when its slots are over, in microseconds.
    pub fn run_time_to_end(&self) -> Micros {
        let runs = |slot: &Slot| {
            let [start, end] = [slot.placement.start, slot.placement.end]
                .map(|time| time.seconds().saturating_mul(MICROS_PER_SECOND));
            slot.ended.unwrap_or(end) - slot.started.unwrap_or(start)
        };
        self.slots.iter().map(runs).sum()
    }

    /// Whether the start that it was promised has passed by `now` without a begin, and its slot lies later.
    pub fn has_missed_start(&self, now: Time) -> bool {
        let promised = self.promised_start();
        promised < now && promised < self.placement().start
    }

    /// Keeps the start that it had `before` as the promised one, where it begins later now: where it was to move no more, or the
    /// start is over. A start that was moved while it lay ahead was told, and is promised in place of the one before.
    pub fn keep_promised_start(&mut self, before: &Self, now: Time) {
        let start = before.placement().start;
        let is_promised = before.is_placed() && (before.fixed || start <= now);
        if !is_promised || before.slots_over() > 0 || self.placement().start <= start {
            return;
        }
        self.constraints.promised.get_or_insert(start.seconds());
    }

    /// The price of the overruns, at the agreed rate; none where nothing is priced.
    pub fn overrun_price(&self) -> Option<Money> {
        // Even where earlier slots have time left, the time beyond the contract is the last that it has had.
        let used: Vec<_> = self.used_slots().into_iter().rev().collect();
        self.price_of_seconds(node_seconds_of_stretches(&used, self.used_overrun()))
    }

    /// The price of this many more seconds of the running slot, at the agreed rate; none where nothing is priced.
    pub fn price_of_more(&self, seconds: Seconds) -> Option<Money> {
        self.price_of_seconds(u128::from(self.slot_nodes()) * u128::from(seconds.max(0).unsigned_abs()))
    }

    /// The price of this many node-seconds, at the agreed rate.
    fn price_of_seconds(&self, more: u128) -> Option<Money> {
        let number = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
        Some(part_of_amount(
            self.price?,
            number(more),
            number(self.priced_node_seconds()),
        ))
    }

    /// By how many seconds its present slot begins late where its party has its nodes from an instant on; 0 where that is in
    /// time. What is agreed for at once cannot begin before it is agreed.
    pub fn lateness(&self, had: Time) -> Seconds {
        let start = self.slot().start;
        let agreed = if self.origin.is_none() {
            second_after(self.created)
        } else {
            start
        };
        let late = had - start.max(agreed);
        // A job has tolerances of its own.
        let is_late = late > PUNCTUAL || self.job.is_some();
        if is_late { late.max(0) } else { 0 }
    }

    /// Notes that the job of the present slot was begun so many seconds late, unless it has hardly had time to come up. Of a
    /// reservation without a job it is known when its nodes were handed over.
    pub fn note_late_job(&mut self, late: Seconds) {
        let most = self.slot().duration().max(0);
        if let Some(job) = self.job.as_mut() {
            job.late_in_slot = if late > START_TOLERANCE { late.min(most) } else { 0 };
        }
    }

    /// Notes what the end of the job of the present slot tells of its begin. A job that had not come up when its party ended it was
    /// late until then, and of a job at a peer the peer tells how late it was.
    pub fn note_late_end(&mut self, end: &JobEnd) {
        let never_came = end.outcome == RunOutcome::Terminated && end.started.is_none();
        let late = if never_came {
            self.lateness(second_of(end.ended))
        } else {
            end.late
        };
        if late > START_TOLERANCE {
            self.note_late_job(late);
        }
    }
}

/// Whether a count is zero, and need not be written.
fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// One line of an agreement's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened.
    pub at: Micros,
    /// The kind of the event.
    pub kind: EventKind,
    /// The particulars, in words for its party.
    pub detail: String,
}

worded! {
    /// The events of an agreement.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EventKind {
        /// The offer was taken, and is to be decided.
        Offered = "offered",
        /// A peer was asked to carry it out.
        Forwarded = "forwarded",
        /// The offer was accepted and placed.
        Accepted = "accepted",
        /// The placement moved inside its window to let another agreement in, or into time that became free.
        Moved = "moved",
        /// The placement moves no more: it has waited long enough under the provider's policy.
        Fixed = "fixed",
        /// The slot began: its nodes are bound, and its job is handed to the executor. That its process runs is [`Self::Running`].
        Begun = "begun",
        /// Its party uses none of its nodes, and may lose them.
        Unused = "unused",
        /// Its work is not over as its slot nears its end: the slot was made longer, or why not.
        Overrun = "overrun",
        /// It has lost its place and there is no other: its nodes are out of use, or nothing could be started in its slot.
        Broken = "broken",
        /// Its work was lost, or was never started in its slot, and waits for another slot.
        Restarted = "restarted",
        /// Files are being brought for its job.
        Staging = "staging",
        /// Files have been brought for its job, or sent.
        Staged = "staged",
        /// The job's process runs.
        Running = "running",
        /// A piece of the work ended, and its result is saved for the next.
        Checkpointed = "checkpointed",
        /// The work ended.
        Ended = "ended",
        /// A guarantee was assessed.
        Assessed = "assessed",
        /// A guarantee's penalty was posted, or a compensation.
        Penalty = "penalty",
        /// A guarantee's reward was posted.
        Reward = "reward",
        /// The price or a fee was posted.
        Charged = "charged",
        /// Termination was asked for.
        Terminating = "terminating",
        /// Another agreement has taken its place, or it the place of another.
        Superseded = "superseded",
        /// A final state was reached.
        Closed = "closed",
    }
}

/// One finished piece of work, kept for prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// The agreement that it served.
    pub agreement: Uuid,
    /// Name in the catalogue.
    pub application: String,
    /// Version in the catalogue, where it declares one.
    pub version: Option<String>,
    /// The arguments that matter for its length.
    pub arguments: Vec<String>,
    /// Bytes of input files.
    pub input_bytes: i64,
    /// Bytes of captured output.
    pub output_bytes: i64,
    /// Where it ran.
    pub resource: String,
    /// On how many nodes.
    pub nodes: u32,
    /// Planned start and completion.
    pub planned: Interval,
    /// Paper 004's estimate of its completion, in seconds from the start of its slot, as it was made when it got that; 0 where none was
    /// made.
    pub estimate: Seconds,
    /// From the slot's start to the process's start, in microseconds.
    pub queue_time: Micros,
    /// From the process's start to its end, in microseconds.
    pub run_time: Micros,
    /// For how long files were on their way to where it ran, in microseconds.
    pub transfer_in: Micros,
    /// For how long files were on their way from there.
    pub transfer_out: Micros,
    /// Bytes that were moved in `transfer_in`.
    pub moved_in: i64,
    /// Bytes that were moved in `transfer_out`.
    pub moved_out: i64,
    /// How it ended.
    pub outcome: RunOutcome,
    /// When it ended.
    pub ended: Micros,
}
