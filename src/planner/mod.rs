//! The single writer of a domain. It owns the plan: one slot tree a resource and every agreement that still occupies
//! one. Commands come in by a bounded queue and are decided one after another. They are answered only after their batch
//! is stored (group commit), so that every answer to a client survives a crash.
//!
//! The database is the truth. When a commit fails, or its outcome is unknown, or something is found in the plan that must
//! never happen, the plan is read anew before anything else is decided.

mod admission;
mod batches;
mod commands;
mod decide;
mod error;
mod idempotency;
mod invariant;
mod lifecycle;
mod live;
mod metrics;
mod numbers;
mod offers;
mod placement;
mod plan;
mod reserving;
mod resources;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use scheduler::domain::Objective;
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Interval, Order, Rate, Seconds, Time};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use admission::availability::Availability;
pub use admission::pricing::Pricing;
pub use admission::quotas::{Negotiating, Quotas};
pub use error::{AlternativeSlot, Error, Refusal};
pub use idempotency::Idempotency;
pub use invariant::IMPOSSIBLE;
pub use lifecycle::overrun::Overruns;
pub use lifecycle::pending::{CallBackTarget, Settlement, Ways};
pub use lifecycle::reports::Unable;
pub use offers::accept::{Acceptance, Lost};
pub use offers::exchange::{Bargain, OfferWords};
pub use offers::negotiate::{Initiation, NegotiationEnd};
pub use offers::propose::{Proposals, Proposed, Suggestion};
pub use offers::quote::{About, Ask, Candidate, Quote, Weights};
pub use offers::ranking::best_of;
pub use placement::move_up::Improving;
pub use plan::Plan;
pub use resources::failures::Failures;
pub use resources::node_status::{NodeCounts, NodeOverride, NodeStatus};
pub use resources::nodes::{
    BusyTime, KeptNodes, NodeReport, NodeState, Planned, ReportedState, Reporter, Unused,
};
pub use resources::resource::{Resource, Scaling};

use crate::agreement::{
    Agreement, Barred, Currency, Filter, Guarantee, Job, JobEnd, Money, NegotiationInstance,
    NegotiationOffer, PlacementConstraints, Run, Shape, Wording,
};
use crate::clock::{Clock, Micros};
use crate::store::{self, Lease, Store};

/// Commands that may wait: beyond this the service answers 503 rather than let clients queue for seconds.
const QUEUE_MAX: usize = 1_024;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The resources, in the order in which ties are broken.
    pub resources: Vec<Resource>,
    /// How far ahead the provider plans, in seconds.
    pub horizon: Seconds,
    /// The criterion for the better of two resources for an offer.
    pub objective: Objective,
    /// The order in which waiting agreements are placed when others come.
    pub order: Order,
    /// How much work a decision may do on one resource, counted as [`scheduler::Schedule::budgeted`] does.
    pub decision_work: u64,
    /// After which fraction of its wait an agreement moves no more; `None` for never.
    pub fix_after: Option<Fraction>,
    /// The content of a refusal.
    pub refusals: Refusals,
    /// The waiting agreements that are moved up while no command waits.
    pub improving: Improving,
    /// How failures of nodes are taken.
    pub failures: Failures,
    /// How much the provider proposes by itself.
    pub proposals: Proposals,
    /// By how much slots are made longer for work that is not over.
    pub overruns: Overruns,
    /// The ids of the templates that allow a restart: lost work of their agreements is run again from its start.
    pub restarting: BTreeSet<String>,
    /// The price list; `None` where nothing is charged.
    pub pricing: Option<Pricing>,
    /// How negotiations are bounded.
    pub negotiation: Negotiating,
    /// How much one party may have and ask.
    pub quotas: Quotas,
}

/// How much a refusal shows of the plan: a provider may not want to show how busy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// How far outside the window alternatives may lie, as a fraction of the duration.
    pub alternatives_phi: Fraction,
    /// Whether the smallest changes that would have been accepted are told.
    pub relaxations: bool,
    /// Whether it is told when nodes are free.
    pub availability: bool,
    /// Times are shown in steps of this number of seconds, 1 for exact times; alternatives that lie on no such step are
    /// left out.
    pub coarsen: Seconds,
}

impl Settings {
    /// The rates of the resources, by name.
    pub fn rates(&self) -> BTreeMap<String, Rate> {
        self.resources
            .iter()
            .map(|of| (of.name.clone(), of.rate))
            .collect()
    }

    /// Resources planned so far ahead, in order of missing deadline, with placements that may move until they start.
    pub fn new(resources: Vec<Resource>, horizon: Seconds) -> Self {
        Self {
            resources,
            horizon,
            objective: Objective::EarliestCompletion,
            order: Order::Mdf,
            decision_work: scheduler::admission::BUDGET,
            fix_after: None,
            refusals: Refusals {
                alternatives_phi: Fraction::percent(100),
                relaxations: true,
                availability: true,
                coarsen: 1,
            },
            improving: Improving::ANY,
            failures: Failures::default(),
            proposals: Proposals::default(),
            overruns: Overruns::default(),
            restarting: BTreeSet::new(),
            pricing: None,
            negotiation: Negotiating::default(),
            quotas: Quotas::default(),
        }
    }
}

/// An offer as the planner sees it: already checked against its template.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The id that the agreement will have.
    pub id: Uuid,
    /// The party that makes the offer.
    pub party: String,
    /// The name in the offer.
    pub name: Option<String>,
    /// The template it was made from.
    pub template: String,
    /// The sizes that it may have with their durations, from most nodes to fewest; at least one.
    pub shapes: Vec<Shape>,
    /// The meaning of these durations.
    pub scaling: Scaling,
    /// How its work may be cut, where it may.
    pub preemption: Option<Preemption>,
    /// The conditions on the nodes.
    pub filters: Vec<Filter>,
    /// The resources where the cluster would refuse its job.
    pub barred: Vec<Barred>,
    /// The millionths of its wait after which its slot is to move no more.
    pub fix_at_ppm: Option<u32>,
    /// How far outside its window alternatives may lie, as a fraction of the duration, where it says.
    pub deviation_max: Option<Fraction>,
    /// Earliest start; one before now is moved to now.
    pub ready: Option<Time>,
    /// Latest completion; the horizon where there is none.
    pub deadline: Option<Time>,
    /// The job to run.
    pub job: Option<Job>,
    /// Its guarantee terms.
    pub guarantees: Vec<Guarantee>,
    /// The most that it may cost, in the provider's currency; `None` for no limit.
    pub budget: Option<Money>,
    /// Its choice, where the offer leaves one.
    pub choices: Vec<CompositorChoice>,
    /// The offer as it came, to be shown again.
    pub document: Wording,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<Accepted>>,
}

impl Proposal {
    /// The leeway of its agreement beside its placement; `in_pieces` where its work is cut.
    pub(crate) fn leeway(&self, in_pieces: bool) -> PlacementConstraints {
        PlacementConstraints {
            shapes: match self.scaling {
                Scaling::Contract => Vec::new(),
                Scaling::ReferenceRate => self.shapes.clone(),
            },
            pieces_differ: in_pieces && self.preemption.is_some_and(|cut| cut.independent()),
            filters: self.filters.clone(),
            barred: self.barred.clone(),
            fix_at_ppm: self.fix_at_ppm,
        }
    }
}

/// An offer that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The agreement that it became.
    pub agreement: Agreement,
    /// The same party's other agreements that moved inside their windows to make room for it.
    pub moved: Vec<Agreement>,
    /// The choice, where the offer left one.
    pub choices: Vec<CompositorChoice>,
}

/// The choice from an offer's compositor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositorChoice {
    /// Path of the compositor.
    pub path: String,
    /// Which of its members hold, counted from 1.
    pub members: Vec<u32>,
}

/// An order to end an agreement before its time.
#[derive(Debug, Clone)]
pub struct Termination {
    /// Which agreement.
    pub id: Uuid,
    /// The party that it must be of; none for any.
    pub party: Option<String>,
    /// Whether the provider takes its time back, and not its party ends it.
    pub by_provider: bool,
    /// The versions that it may have, where the caller names some.
    pub versions: Option<Vec<i64>>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<Agreement>>,
}

impl Termination {
    /// Of an agreement in any version. It must be `party`'s where a party is named.
    pub fn of(id: Uuid, party: Option<String>) -> Self {
        Self {
            id,
            party,
            by_provider: false,
            versions: None,
            idempotency: None,
        }
    }
}

/// The effects of a change of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Agreements that lost their work with its nodes.
    pub lost: usize,
    /// Agreements that got another place.
    pub moved: usize,
    /// Agreements for which there is no place any more.
    pub broken: usize,
    /// Offers that were held and cannot be kept.
    pub withdrawn: usize,
}

type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// The commands of the planner.
enum Command {
    Place(Box<Proposal>, Reply<Accepted>),
    Pend(Box<lifecycle::pending::Pending>, Reply<Accepted>),
    Settle(Box<Settlement>, Reply<Agreement>),
    Terminate(Box<Termination>, Reply<Agreement>),
    Availability(Availability, Reply<Option<Vec<Interval>>>),
    BeginDue(Reply<Vec<Agreement>>),
    Running(Reply<Vec<Agreement>>),
    Census(Reply<metrics::Census>),
    PlannedOn(String, Reply<Planned>),
    SetNodes {
        resource: String,
        by: Reporter,
        report: NodeReport,
        reply: Reply<Repaired>,
    },
    SayNodes(NodeOverride, Reply<Repaired>),
    Nodes(String, Reply<Vec<NodeStatus>>),
    NodeCounts(Reply<Vec<NodeCounts>>),
    Open(String, Reply<()>),
    KeepNodes {
        resource: String,
        kept: Vec<KeptNodes>,
        reply: Reply<()>,
    },
    Unused {
        id: Uuid,
        unused: Unused,
        reply: Reply<()>,
    },
    Started {
        run: Run,
        at: Micros,
        reply: Reply<()>,
    },
    Ended {
        run: Run,
        end: JobEnd,
        reply: Reply<()>,
    },
    Unable {
        run: Run,
        why: Unable,
        reply: Reply<()>,
    },
    Stopped(Uuid, Reply<()>),
    Initiate(Box<Initiation>, Reply<NegotiationInstance>),
    EndNegotiation(Box<NegotiationEnd>, Reply<NegotiationInstance>),
    Keep(Box<Idempotency<String>>, String, Reply<()>),
    Quote(Box<Ask>, Reply<Quote>),
    Bargain(Box<Bargain>, Reply<Vec<NegotiationOffer>>),
    Propose(Box<Proposed>, Reply<Vec<NegotiationOffer>>),
    Accept(Box<Acceptance>, Reply<Accepted>),
    Reserving(String, Vec<(Uuid, Time)>, Seconds, Reply<()>),
    /// For tests: makes a fault of the plan happen that must never happen.
    #[cfg(test)]
    Meddle(Box<dyn FnOnce(&mut Plan) + Send + Sync>, Reply<()>),
}

/// The handle to the planner: cheap to clone.
#[derive(Debug, Clone)]
pub struct Planner {
    suggested: broadcast::Sender<Suggestion>,
    commands: mpsc::Sender<Command>,
    due: watch::Receiver<Option<Time>>,
    stored: watch::Receiver<u64>,
    ready: watch::Receiver<bool>,
    epoch: i64,
    negotiating: Negotiating,
    resources: Arc<[Resource]>,
    currency: Option<Currency>,
    measured: Arc<Mutex<metrics::Measured>>,
    distrusted: Arc<OnceLock<String>>,
}

impl Planner {
    /// Rebuilds the plan from the store and starts the task that owns it. The task ends when `stop` is cancelled, and
    /// cancels it itself when it may decide no longer (its lease is lost).
    ///
    /// # Errors
    /// When the store cannot be read, or does not hold a valid plan (over capacity, an unknown resource).
    pub async fn start(
        settings: Settings,
        store: Store,
        lease: Lease,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<(Self, tokio::task::JoinHandle<()>), StartError> {
        let mut plan = writer::read_plan(&settings, &store, &clock).await?;
        plan.resources.note_free_time_everywhere();
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let (due_sender, due) = watch::channel(plan.next_due());
        let (ready_sender, ready) = watch::channel(true);
        let (stored_sender, stored) = watch::channel(0);
        let (suggested, _) = broadcast::channel(offers::propose::WAITING_MAX);
        let signals = writer::Signals {
            suggested: suggested.clone(),
            due: due_sender,
            stored: stored_sender,
            ready: ready_sender,
            measured: Arc::default(),
        };
        let (measured, epoch) = (Arc::clone(&signals.measured), lease.epoch);
        let negotiating = settings.negotiation;
        let resources = settings.resources.as_slice().into();
        let currency = settings.pricing.as_ref().map(|pricing| pricing.currency);
        let writer = writer::Writer::new(settings, plan, store, lease, clock, signals, queue);
        let task = tokio::spawn(writer.run(stop));
        let planner = Self {
            suggested,
            commands,
            due,
            stored,
            ready,
            epoch,
            negotiating,
            resources,
            currency,
            measured,
            distrusted: Arc::default(),
        };
        Ok((planner, task))
    }

    /// Whether the plan is in step with the store.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow() && !self.commands.is_closed() && self.distrusted().is_none()
    }

    /// Decides nothing from now on, because the stored data have this fault.
    pub fn distrust(&self, finding: String) {
        // The first finding is as good as any.
        let _ = self.distrusted.set(finding);
    }

    /// Why nothing is decided any more, if that is so.
    pub fn distrusted(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    /// The epoch of the lease under which it decides: whether that is still the stored one only the store knows.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The executor of a resource, by the resource's name.
    pub fn kind_of(&self, resource: &str) -> Option<&str> {
        let found = self.resources.iter().find(|of| of.name == resource);
        found.map(|of| of.kind.as_str())
    }

    /// The currency of charges; `None` where nothing is charged.
    pub fn currency(&self) -> Option<Currency> {
        self.currency
    }

    /// The limits of negotiations.
    pub fn negotiating(&self) -> Negotiating {
        self.negotiating
    }

    /// Places an offer inside its window, where accepted agreements that may still move make room for it; once this
    /// answers, the agreement is stored, and every move with it.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no place, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn place(&self, proposal: Proposal) -> Result<Accepted, Error> {
        self.ask(|reply| Command::Place(Box::new(proposal), reply)).await
    }

    /// Ends an agreement before its time: at once when nothing of it runs, else as soon as its job has been stopped.
    ///
    /// # Errors
    /// [`Error::NotFound`] also when it has ended already, [`Error::Changed`] when it is in another version,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`] where it could not be stored.
    pub async fn terminate(&self, termination: Termination) -> Result<Agreement, Error> {
        self.ask(|reply| Command::Terminate(Box::new(termination), reply))
            .await
    }

    /// Begins every slot that is due, and closes every reservation without a job at the end of its slot. Returns the
    /// agreements with a job to start now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it could not be stored; nothing has begun then.
    pub async fn begin_due(&self) -> Result<Vec<Agreement>, Error> {
        self.ask(Command::BeginDue).await
    }

    /// The agreements with a job that runs or is about to run, including the agreements that are being terminated.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn running(&self) -> Result<Vec<Agreement>, Error> {
        self.ask(Command::Running).await
    }

    /// The agreements that are not over and have their place on a resource, in order of start, with their nodes. The
    /// agreements that commands wait for are among them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn planned_on(&self, resource: String) -> Result<Planned, Error> {
        self.ask(|reply| Command::PlannedOn(resource, reply)).await
    }

    /// Takes note of the nodes that a resource keeps for its agreements, all of them: those are bound when their slots
    /// begin.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn keep_nodes(&self, resource: String, kept: Vec<KeptNodes>) -> Result<(), Error> {
        self.ask(|reply| Command::KeepNodes {
            resource,
            kept,
            reply,
        })
        .await
    }

    /// Records that a party does not use the nodes that its agreement without a job has been given.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such agreement has its slot now, [`Error::Unavailable`] where it could not be stored.
    pub async fn report_unused(&self, id: Uuid, unused: Unused) -> Result<(), Error> {
        self.ask(|reply| Command::Unused { id, unused, reply }).await
    }

    /// Takes the states of the nodes of a resource and repairs the plan. Work on nodes that are gone is lost. A waiting
    /// agreement that no longer fits gets another place, or its party is told that there is none. Nodes that come back are
    /// used.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] where it could not be stored.
    pub async fn set_nodes(
        &self,
        resource: String,
        by: Reporter,
        report: NodeReport,
    ) -> Result<Repaired, Error> {
        self.ask(|reply| Command::SetNodes {
            resource,
            by,
            report,
            reply,
        })
        .await
    }

    /// The next instant at which [`Planner::begin_due`] has something to do; it changes with the plan.
    pub fn subscribe(&self) -> watch::Receiver<Option<Time>> {
        self.due.clone()
    }

    /// Changes with the plan: when a batch is stored, and when a command begins or ends to wait for a cluster.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.stored.clone()
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Error> {
        if self.distrusted().is_some() {
            return Err(Error::Unavailable);
        }
        let (reply, answer) = oneshot::channel();
        self.commands
            .try_send(command(reply))
            .map_err(|_| Error::Unavailable)?;
        answer.await.unwrap_or(Err(Error::Unavailable))
    }
}

/// Why the planner could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The stored data are no valid plan for the configured resources.
    #[error("the stored plan does not hold: {0}")]
    Inconsistent(String),
}

#[cfg(test)]
mod tests;
