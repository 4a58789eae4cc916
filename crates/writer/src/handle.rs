//! The handle to the planner: the verbs of other modules, each a command to the planner's task.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use domain::agreement::{Agreement, Shape};
use domain::clock::Clock;
use domain::resources::{KeptNodes, NodeReport, Repaired, Reporter, Resource, ResourceAgreements, Unused};
use metrics::{Exposition, metrics};
use planner::{
    AcceptedOffer, Decider, Error, Foresight, Idempotency, NegotiationLimits, PartyUsage, Picture, Plan,
    Reconfiguration, Request, ResourceChanges, Result, SUGGESTIONS_MAX, Scope, Settings, Suggestion,
    Termination,
};
use scheduler::Time;
use store::{Lease, Store};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::batches::DecisionRecord;
use crate::command::{Command, Reply};
use crate::error::StartError;
use crate::metrics::{PlannerMetrics, expose_census};
use crate::recent_view::RecentView;
use crate::signals::Signals;
use crate::stored_plan;
use crate::writer::Writer;

/// Commands that may wait: beyond this the service answers 503 rather than let clients queue for seconds.
const QUEUE_MAX: usize = 1_024;
/// A planner that takes longer to report its state is busy; its own numbers are left out then.
const CENSUS_WAIT: Duration = Duration::from_secs(1);

metrics! {
    READY = Gauge "bespeak_ready": "Whether the plan is in step with the store.";
    QUEUE = Gauge "bespeak_planner_queue": "Commands that wait to be decided.";
}

/// The handle to the planner: cheap to clone.
#[derive(Debug, Clone)]
pub struct Planner {
    pub(super) suggested: broadcast::Sender<Suggestion>,
    /// Those since the start, until there is a listener.
    pub(super) unheard: Arc<Mutex<Option<broadcast::Receiver<Suggestion>>>>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) due: watch::Receiver<Option<Time>>,
    pub(super) stored: watch::Receiver<u64>,
    pub(super) ready: watch::Receiver<bool>,
    pub(super) epoch: i64,
    pub(super) negotiating: NegotiationLimits,
    pub(super) resources: watch::Receiver<Arc<[Resource]>>,
    pub(super) foresight: watch::Receiver<Arc<Foresight>>,
    pub(super) measured: Arc<Mutex<PlannerMetrics>>,
    pub(super) pictures: Arc<RecentView<Picture>>,
    pub(super) usages: Arc<RecentView<Vec<PartyUsage>>>,
    pub(super) distrusted: Arc<OnceLock<String>>,
    /// Whether everything is decided on a copy of the plan, and nothing is stored.
    is_dry: bool,
    /// The party of the operator that books for others.
    pub(super) booked_by: Option<Arc<str>>,
    /// Whether an operator asks.
    is_unbounded: bool,
}

impl Planner {
    /// Rebuilds the plan from the store, starts the task that owns it, and has it take over the configured resources, as
    /// [`Planner::configure`] does. The task ends when `stop` is cancelled, and cancels it itself when it may decide no longer
    /// (its lease is lost).
    ///
    /// # Errors
    /// When the store cannot be read or written, or does not hold a valid plan (over capacity, an unknown resource).
    pub async fn start(
        settings: Settings,
        store: Store,
        lease: Lease,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<(Self, tokio::task::JoinHandle<()>), StartError> {
        let plan = Self::read_plan(&settings, &store, &clock).await?;
        Self::start_with(plan, settings, store, lease, clock, stop).await
    }

    /// Rebuilds the plan from the store: what [`Planner::start`] does first, for a caller that has something else to do meanwhile.
    ///
    /// # Errors
    /// Those of [`Planner::start`] that are about reading.
    pub async fn read_plan(settings: &Settings, store: &Store, clock: &Clock) -> Result<Plan, StartError> {
        let mut plan = stored_plan::read_plan(settings, store, clock).await?;
        plan.note_free_time_everywhere();
        Ok(plan)
    }

    /// The rest of [`Planner::start`], with the plan that was read under the same lease.
    ///
    /// # Errors
    /// When the configured resources cannot be taken over.
    pub async fn start_with(
        plan: Plan,
        settings: Settings,
        store: Store,
        lease: Lease,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<(Self, tokio::task::JoinHandle<()>), StartError> {
        let (commands, queue) = mpsc::channel(QUEUE_MAX);
        let (due_sender, due) = watch::channel(plan.next_due());
        let (ready_sender, ready) = watch::channel(true);
        let (stored_sender, stored) = watch::channel(0);
        let (suggested, unheard) = broadcast::channel(SUGGESTIONS_MAX);
        let (resources_sender, resources) = watch::channel(plan.resources().into());
        let (foresight_sender, foresight) = watch::channel(Arc::clone(plan.foresight()));
        let signals = Signals {
            suggested: suggested.clone(),
            due: due_sender,
            stored: stored_sender,
            ready: ready_sender,
            resources: resources_sender,
            foresight: foresight_sender,
            measured: Arc::default(),
        };
        let (measured, epoch) = (Arc::clone(&signals.measured), lease.epoch);
        let negotiating = settings.negotiation;
        let configuration = Reconfiguration {
            id: Uuid::now_v7(),
            party: None,
            settings: settings.clone(),
            is_start: true,
            is_dry: false,
        };
        let writer = Writer::new(settings, plan, store, lease, clock, signals, queue);
        let task = task::spawn(writer.run(stop));
        let planner = Self {
            suggested,
            unheard: Arc::new(Mutex::new(Some(unheard))),
            commands,
            due,
            stored,
            ready,
            epoch,
            negotiating,
            resources,
            foresight,
            measured,
            pictures: Arc::default(),
            usages: Arc::default(),
            distrusted: Arc::default(),
            is_dry: false,
            booked_by: None,
            is_unbounded: false,
        };
        let configured = planner.configure(configuration).await;
        let changes = configured.map_err(|why| StartError::Unconfigured(why.to_string()))?;
        warn_of_displaced_agreements(&changes);
        Ok((planner, task))
    }

    /// The handle of a process that stands by: it knows the resources, and nothing is decided by it.
    pub fn of_other_process(
        negotiating: NegotiationLimits,
        resources: watch::Receiver<Arc<[Resource]>>,
    ) -> Self {
        let (commands, _) = mpsc::channel(1);
        Self {
            suggested: broadcast::channel(1).0,
            unheard: Arc::default(),
            commands,
            due: watch::channel(None).1,
            stored: watch::channel(0).1,
            ready: watch::channel(false).1,
            epoch: 0,
            negotiating,
            resources,
            foresight: watch::channel(Arc::default()).1,
            measured: Arc::default(),
            pictures: Arc::default(),
            usages: Arc::default(),
            distrusted: Arc::default(),
            is_dry: false,
            booked_by: None,
            is_unbounded: false,
        }
    }

    /// The same planner, which decides on a copy of the plan of which nothing is kept.
    #[must_use]
    pub fn dry(&self) -> Self {
        Self {
            is_dry: true,
            ..self.clone()
        }
    }

    /// The same planner, with which an operator of a party makes agreements for others: the trail says so of each.
    #[must_use]
    pub fn booked_by(&self, operator: &str) -> Self {
        Self {
            booked_by: Some(operator.into()),
            ..self.clone()
        }
    }

    /// The same planner for an operator, whom no number of agreements and questions bounds.
    #[must_use]
    pub fn unbounded(&self) -> Self {
        Self {
            is_unbounded: true,
            ..self.clone()
        }
    }

    /// Whether nothing that it decides is kept.
    pub fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// Whether the plan is in step with the store.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow() && !self.commands.is_closed() && self.distrusted().is_none()
    }

    /// Waits until its task has taken a command out of the queue and answered it, after all that is being stored; or has dropped it,
    /// because it cannot use its store now. Once the task has ended this waits for ever.
    pub async fn await_any_answer(&self) {
        let (reply, answer) = oneshot::channel();
        let command = Command::new(None, reply, |_, _| Ok(()));
        if self.commands.send(command).await.is_ok() {
            let _ = answer.await;
        }
        if self.commands.is_closed() {
            std::future::pending::<()>().await;
        }
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

    /// Whether this process leads.
    pub fn leads(&self) -> bool {
        self.epoch > 0
    }

    /// The epoch of the lease under which it decides: whether that is still the stored one only the store knows.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The resources of the domain, the retired ones among them.
    pub fn resources(&self) -> Arc<[Resource]> {
        Arc::clone(&self.resources.borrow())
    }

    /// Changes with them.
    pub fn subscribe_resources(&self) -> watch::Receiver<Arc<[Resource]>> {
        self.resources.clone()
    }

    /// The executor of a resource, by the resource's name.
    pub fn executor_of(&self, resource: &str) -> Option<String> {
        let resources = self.resources.borrow();
        let found = resources
            .iter()
            .find(|one_resource| one_resource.name == resource);
        found.map(|found| found.kind.clone())
    }

    /// The limits of negotiations.
    pub fn negotiating(&self) -> NegotiationLimits {
        self.negotiating
    }

    /// Places an offer inside its window, where accepted agreements that may still move make room for it; once this
    /// answers, the agreement is stored, and every move with it.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no place, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn place(&self, request: Request) -> Result<AcceptedOffer> {
        let (party, id) = (request.party.clone(), request.id);
        let scope = request.idempotency.as_ref().map(Idempotency::scope);
        let booked_by = self.booked_by.clone();
        let count = move |decider: &mut Decider<'_>, decided: &mut Result<_>| {
            decider.note_refused(&party, id, decided);
            decider.note_booked(booked_by.as_deref(), decided);
            DecisionRecord::of("offer", decided)
        };
        self.send(|reply| {
            Command::that_may_wait(
                (id, request),
                scope,
                reply,
                |decider, proposal| decider.place(proposal),
                count,
            )
        })
        .await
    }

    /// Ends an agreement before its time: at once when nothing of it runs, else as soon as its job has been stopped.
    ///
    /// # Errors
    /// [`Error::NotFound`] also when it has ended already, [`Error::Changed`] when it is in another version,
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`] where it could not be stored.
    pub async fn terminate(&self, termination: Termination) -> Result<Agreement> {
        let scope = termination.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, |decider, decisions| {
            let decided = decider.terminate(termination);
            decisions.push(DecisionRecord::of("termination", &decided));
            decided
        })
        .await
    }

    /// Begins every slot that is due, and closes every reservation without a job at the end of its slot. Returns the
    /// agreements with a job to start now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it could not be stored; nothing has begun then.
    pub async fn begin_due(&self) -> Result<Vec<Agreement>> {
        self.ask(|decider| decider.begin_due()).await
    }

    /// The agreements with a job that runs or is about to run, including the agreements that are being terminated.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn running(&self) -> Result<Vec<Agreement>> {
        self.ask(|decider| Ok(decider.running())).await
    }

    /// The numbers of the nodes that an agreement has been given for its slot; none before that has begun.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn nodes_of(&self, id: Uuid) -> Result<Vec<u32>> {
        self.ask(move |decider| Ok(decider.nodes_of(id))).await
    }

    /// The agreements that are not over and have their place on a resource, in order of start, with their nodes. The
    /// agreements that commands wait for are among them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn planned_on(&self, resource: String) -> Result<ResourceAgreements> {
        self.ask(move |decider| Ok(decider.planned_on(&resource))).await
    }

    /// A picture of the plan. One that was taken lately is shown again: for a tenth of a millisecond for each slot on it, so for a
    /// second at 10,000 slots. The planner takes one in O(n log n) for n slots, and none while no page asks.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where none has been taken yet and the planner has stopped.
    pub async fn picture(&self) -> Result<Arc<Picture>> {
        let take = self.ask(|decider| {
            let picture = decider.picture();
            let slots = picture.slots();
            Ok((picture, slots))
        });
        self.pictures.recent(Instant::now(), take).await
    }

    /// What a party has; what all have where none is named, by their names.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn usage(&self, party: Option<String>) -> Result<Vec<PartyUsage>> {
        self.ask(move |decider| {
            Ok(match party {
                Some(party) => vec![decider.usage_of(party)],
                None => decider.usage_of_all(),
            })
        })
        .await
    }

    /// What all parties have, by their names, as it was lately: it is shown again for as long as a picture with as many slots.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it was never asked for and the planner has stopped.
    pub async fn recent_usage(&self) -> Result<Arc<Vec<PartyUsage>>> {
        let take = self.ask(|decider| {
            let usage = decider.usage_of_all();
            let agreements = usage.iter().map(|usage| usage.agreements).sum();
            Ok((usage, agreements))
        });
        self.usages.recent(Instant::now(), take).await
    }

    /// Takes note of the nodes that a resource keeps for its agreements, all of them: those are bound when their slots
    /// begin.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn keep_nodes(&self, resource: String, kept: Vec<KeptNodes>) -> Result<()> {
        self.ask(move |decider| {
            decider.keep_nodes(&resource, kept);
            Ok(())
        })
        .await
    }

    /// Records that a party does not use the nodes that its agreement without a job has been given.
    ///
    /// # Errors
    /// [`Error::NotFound`] where no such agreement has its slot now, [`Error::Unavailable`] where it could not be stored.
    pub async fn report_unused(&self, id: Uuid, unused: Unused) -> Result<()> {
        self.ask(move |decider| decider.treat_unused_slot(id, unused))
            .await
    }

    /// Takes the states of the nodes of a resource and repairs the plan. Work on nodes that are gone is lost. A waiting
    /// agreement that no longer fits gets another place, or its party is told that there is none. Nodes that come back are
    /// used.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] where it could not be stored.
    pub async fn set_nodes(&self, resource: String, by: Reporter, report: NodeReport) -> Result<Repaired> {
        self.ask(move |decider| decider.set_nodes(&resource, by, &report))
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

    /// A size of a proposal as it would be at most on a resource, by the resource's name; `None` where there is no such resource, or
    /// it has too few nodes.
    pub fn size_on(&self, resource: &str, request: &Request, shape: Shape) -> Option<Shape> {
        let resources = self.resources();
        self.foresight().size_on(&resources, resource, request, shape)
    }

    /// A size of a proposal as it would be at most on each resource that has enough nodes for it, by the resource's name.
    pub fn sizes_on_each(&self, request: &Request, shape: Shape) -> Vec<(String, Shape)> {
        self.foresight().sizes_on_each(&self.resources(), request, shape)
    }

    /// Foresees the work of a proposal on each resource, so that the planner finds it foreseen. Called on a thread that reads offers.
    pub fn foresee(&self, request: &Request) {
        self.foresight().foresee(request);
    }

    /// What foresees by the present settings.
    fn foresight(&self) -> Arc<Foresight> {
        Arc::clone(&self.foresight.borrow())
    }

    /// Writes the counts of this module. The numbers from the plan are left out where the planner does not answer in
    /// time.
    pub async fn expose(&self, text: &mut Exposition) {
        text.number(READY, u8::from(self.is_ready()));
        text.number(QUEUE, self.commands.max_capacity() - self.commands.capacity());
        let census = tokio::time::timeout(CENSUS_WAIT, self.ask(|decider| Ok(decider.census()))).await;
        if let Ok(Ok(census)) = census {
            expose_census(&census, text);
        }
        self.measured
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .expose(text);
    }

    /// Has something decided that may be decided twice, and is not counted.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&mut Decider<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.ask_once(None, |decider, _| verb(decider)).await
    }

    /// Has something decided, once for an idempotency key, and maybe counted.
    pub(super) async fn ask_once<T: Send + 'static>(
        &self,
        scope: Option<Scope>,
        verb: impl FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.send(|reply| Command::new(scope, reply, verb)).await
    }

    /// Has a command decided.
    pub(super) async fn send<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        if self.distrusted().is_some() {
            return Err(Error::Unavailable);
        }
        let (reply, answer) = oneshot::channel();
        self.commands
            .try_send(command(reply).on_copy(self.is_dry).unbounded(self.is_unbounded))
            .map_err(|_| Error::Unavailable)?;
        answer.await.unwrap_or(Err(Error::Unavailable))
    }
}

/// Says in the log what a start has changed because the configuration has other resources than before: a file that was forgotten at
/// the start shows there.
fn warn_of_displaced_agreements(changes: &ResourceChanges) {
    let Repaired { moved, broken, .. } = changes.effects;
    if moved + broken > 0 {
        let resources = changes
            .resources
            .iter()
            .map(|(resource, words)| format!("{}: {words}", resource.name));
        let resources = resources.collect::<Vec<_>>().join("; ");
        tracing::warn!(
            moved,
            broken,
            resources,
            "the configuration has other resources: agreements moved, or have no place"
        );
    }
}
