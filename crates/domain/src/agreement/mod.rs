//! The life cycle of an agreement as values and total functions: its parts, the order of its states, and the assessment of its
//! guarantees. Nothing here is stored, sent or waited for; the planner applies it.

mod assessment;
mod at_peer;
mod cannot_start;
mod delivered;
mod energy;
mod holds;
mod ledger;
mod money;
mod notes;
mod offers;
mod party_events;
mod placement_constraints;
mod run;
mod slots;
mod staging;
mod state;
mod stored_time;
mod values;
mod wording;

use scheduler::{Interval, Seconds, Time, worded};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use assessment::{Guarantee, assess, next_assessment};
pub use at_peer::{AtPeer, GuaranteeAtPeer, HeldAtPeer, SeenAtPeer};
pub use cannot_start::CannotStart;
pub use energy::EnergyUse;
pub use holds::{Stretch, held_stretches, stretches_held_beyond};
pub use ledger::{AMOUNT_MAX, Account, Balance, Entry, Posting, PostingKind};
pub use money::{Currency, Money, Spender};
pub use notes::{Note, NoteKind};
pub use offers::{
    NegotiationInstance, NegotiationOffer, NegotiationState, OfferTerms, Promise, ProposalReason,
};
pub use party_events::{PartyEvent, PartyEventKind};
pub use placement_constraints::{BarredResource, Filter, Measure, PlacementConstraints, RESOURCE, Shape};
pub use run::{NoRun, Run};
pub use slots::{Slot, Slots};
pub use staging::{BroughtFiles, MovedFiles, Source, StagedFile, StagingEnd, transfer_rate};
pub use state::ServiceState;
pub use values::{Compensation, CompensationValue, Obligated, Values, part_of_amount};
pub use wording::Wording;
pub use wsag::negotiations::{NegotiationRole, OfferState};
pub use wsag::quotation::OfferKind;
pub use wsag::states::{AgreementState, GuaranteeState};
pub use wsag::terms::CompositorChoice;

use crate::clock::Micros;

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

    /// Whether it is accepted and its slot has not begun.
    pub fn is_waiting(&self) -> bool {
        self.state == AgreementState::Observed && self.service == ServiceState::NotReady
    }
}

/// The work of an agreement: an application of the provider's catalogue and its arguments, already checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Name in the catalogue.
    pub application: String,
    /// Version in the catalogue, where it declares one.
    pub version: Option<String>,
    /// The arguments, in the order that the catalogue declares.
    pub arguments: Vec<String>,
    /// How many jobs it has had before: each was lost, or was never started in its slot. The next one runs from the start, or
    /// from the work that the piece before has saved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// How many of them were never started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u32,
    /// Seconds of its slots that are over, by which it was begun late in them: the provider was late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: Seconds,
    /// Seconds by which its present run was begun late in its slot, while that is not over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_in_slot: Seconds,
    /// The files that are moved for it, in the order in which they were named, each name once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<StagedFile>,
    /// Bytes of the uploaded files that it names, as they were when it was offered. On this machine they are only linked; on a
    /// cluster they are copied to its disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uploaded_bytes: u64,
    /// The files that were brought for its present run, once its process has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<BroughtFiles>,
}

impl Job {
    /// The job as it was before anything of it was lost.
    #[must_use]
    pub fn first_time(&self) -> Self {
        Self {
            restarts: 0,
            missed: 0,
            late: 0,
            late_in_slot: 0,
            brought: None,
            ..self.clone()
        }
    }
}

/// Whether a count is zero, and need not be written.
fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

worded! {
    /// A resource of which a job may have only a limited amount.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Limit {
        /// Memory of all its processes together.
        Memory = "memory",
        /// Processes, and threads among them.
        Processes = "processes",
        /// Room on the disk for the files that it writes.
        Files = "room for files",
    }
}

/// How the work of an agreement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RunOutcome {
    /// The process ended by itself with status 0, or a reservation without a job reached its end.
    Completed,
    /// The process ended by itself with another status.
    Failed {
        /// Its exit status; 128 + signal when a signal ended it.
        exit: i32,
    },
    /// Stopped at the slot's end.
    Killed,
    /// Stopped at the end of a piece, after it had saved its work to go on in the next: never how an agreement ends.
    Checkpointed,
    /// Stopped because the agreement was terminated.
    Terminated,
    /// Stopped because it took more than its application may.
    Exceeded {
        /// The limit that it exceeded.
        limit: Limit,
    },
    /// Its files could not be brought or sent, for a reason of its party's.
    Unstaged,
    /// Never started, or gone without a trace of its end.
    Lost,
}

impl RunOutcome {
    /// One of each kind.
    pub fn each() -> impl Iterator<Item = Self> {
        let plain = [
            Self::Completed,
            Self::Failed { exit: 1 },
            Self::Killed,
            Self::Checkpointed,
            Self::Terminated,
            Self::Unstaged,
            Self::Lost,
        ];
        plain
            .into_iter()
            .chain(Limit::ALL.map(|limit| Self::Exceeded { limit }))
    }

    /// The word that is stored and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
            Self::Killed => "killed",
            Self::Checkpointed => "checkpointed",
            Self::Terminated => "terminated",
            Self::Exceeded { limit } => match limit {
                Limit::Memory => "exceeded-memory",
                Limit::Processes => "exceeded-processes",
                Limit::Files => "exceeded-files",
            },
            Self::Unstaged => "failed-staging",
            Self::Lost => "lost",
        }
    }

    /// The outcome that a word and, of a process that failed, its exit status name.
    pub fn from_words(word: &str, exit: Option<i32>) -> Option<Self> {
        match Self::each().find(|outcome| outcome.word() == word)? {
            Self::Failed { .. } => exit.map(|exit| Self::Failed { exit }),
            other => Some(other),
        }
    }

    /// The exit status, where a process ended by itself.
    pub fn exit(self) -> Option<i32> {
        match self {
            Self::Completed => Some(0),
            Self::Failed { exit } => Some(exit),
            Self::Killed
            | Self::Checkpointed
            | Self::Terminated
            | Self::Exceeded { .. }
            | Self::Unstaged
            | Self::Lost => None,
        }
    }
}

/// How the job of an agreement ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// How.
    pub outcome: RunOutcome,
    /// When its process started, where it did; where files were brought for it, when that began.
    pub started: Option<Micros>,
    /// When it ended, and its files were sent, where that was to be; of a lost one, when that was found.
    pub ended: Micros,
    /// Bytes of its input files.
    pub input_bytes: u64,
    /// Bytes kept of its outputs.
    pub output_bytes: u64,
    /// Whether it wrote more than was kept.
    pub truncated: bool,
    /// For how long its inputs were copied to where it ran, where they were.
    #[serde(default)]
    pub transfer_in: Micros,
    /// For how long its outputs were copied from there.
    #[serde(default)]
    pub transfer_out: Micros,
    /// Bytes that were copied in that time to where it ran.
    #[serde(default)]
    pub moved_in: u64,
    /// Bytes that were copied in that time from there.
    #[serde(default)]
    pub moved_out: u64,
    /// Seconds of its slot that were over when it began, as a peer tells it that has run it; 0 of all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: Seconds,
    /// What became of its files, where some were to be moved. The record of its end has nothing of that.
    #[serde(skip)]
    pub staging: Option<Box<StagingEnd>>,
}

impl JobEnd {
    /// One without files.
    pub const fn new(outcome: RunOutcome, started: Option<Micros>, ended: Micros) -> Self {
        Self {
            outcome,
            started,
            ended,
            input_bytes: 0,
            output_bytes: 0,
            truncated: false,
            transfer_in: 0,
            transfer_out: 0,
            moved_in: 0,
            moved_out: 0,
            late: 0,
            staging: None,
        }
    }
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
    /// The estimate of its run time in seconds: the slot it was given.
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
