//! The handle to the planner: it sends commands to the planner's task, and tells what can be known without one.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::agreement::Shape;
use domain::clock::Clock;
use domain::resources::{Repaired, Resource};
use metrics::{Exposition, metrics};
use planner::{
    Command, CommandOptions, Configure, Decider, Decision, DecisionStep, Error, Foresight, NegotiationLimits,
    Request, ResourceChanges, Result, SUGGESTIONS_MAX, Settings, State, Suggestion, TakeCensus,
};
use scheduler::Time;
use store::open_state::OpenState;
use store::{Lease, Store};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::command::{Question, QueuedCommand};
use crate::error::StartError;
use crate::metrics::{PlannerMetrics, expose_census};
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
    suggested: broadcast::Sender<Suggestion>,
    /// Those since the start, until there is a listener.
    unheard: Arc<Mutex<Option<broadcast::Receiver<Suggestion>>>>,
    commands: mpsc::Sender<QueuedCommand>,
    due: watch::Receiver<Option<Time>>,
    stored: watch::Receiver<u64>,
    ready: watch::Receiver<bool>,
    epoch: i64,
    negotiating: NegotiationLimits,
    resources: watch::Receiver<Arc<[Resource]>>,
    foresight: watch::Receiver<Arc<Foresight>>,
    pub(super) measured: Arc<Mutex<PlannerMetrics>>,
    distrusted: Arc<OnceLock<String>>,
}

impl Planner {
    /// Rebuilds the plan from the store, starts the task that owns it, and has it take over the configured resources, as
    /// [`Configure`] does. The task ends when `stop` is cancelled, and cancels it itself when it may decide no longer
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
        let plan = Self::read_plan(&settings, &store, &clock, None).await?;
        Self::start_with(plan, settings, store, lease, clock, stop).await
    }

    /// Rebuilds the plan from the store: what [`Planner::start`] does first, for a caller that has something else to do meanwhile, or has
    /// `read` the open state already.
    ///
    /// # Errors
    /// Those of [`Planner::start`] that are about reading.
    pub async fn read_plan(
        settings: &Settings,
        store: &Store,
        clock: &Clock,
        read: Option<OpenState>,
    ) -> Result<State, StartError> {
        let mut plan = stored_plan::read_plan(settings, store, clock, read).await?;
        plan.note_free_time_everywhere();
        Ok(plan)
    }

    /// The rest of [`Planner::start`], with the plan that was read under the same lease.
    ///
    /// # Errors
    /// When the configured resources cannot be taken over.
    pub async fn start_with(
        plan: State,
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
        let distrusted = Arc::default();
        let signals = Signals {
            distrusted: Arc::clone(&distrusted),
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
        let configuration = Configure {
            id: Uuid::now_v7(),
            party: None,
            settings: settings.clone(),
            is_start: true,
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
            distrusted,
        };
        let configured = planner.send(configuration).await;
        let changes = configured.map_err(|why| StartError::Unconfigured(why.to_string()))?;
        warn_when_planner_displaces(&changes);
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
            distrusted: Arc::default(),
        }
    }

    /// Whether the plan is in step with the store.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow() && !self.commands.is_closed() && self.distrusted().is_none()
    }

    /// Waits until its task has taken a command out of the queue and answered it, after all that is being stored; or has dropped it,
    /// because it cannot use its store now. Once the task has ended this waits for ever.
    pub async fn await_any_answer(&self) {
        let (reply, answer) = oneshot::channel();
        let command = QueuedCommand::new(Ping, CommandOptions::default(), reply);
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

    /// Has a command decided.
    ///
    /// # Errors
    /// Those that the command names.
    pub fn send<C: Command>(&self, command: C) -> impl Future<Output = Result<C::Answer>> + Send {
        self.send_with(command, CommandOptions::default())
    }

    /// Has a command decided as these options say.
    ///
    /// # Errors
    /// Those that the command names.
    pub async fn send_with<C: Command>(&self, command: C, options: CommandOptions) -> Result<C::Answer> {
        if self.distrusted().is_some() {
            return Err(Error::Unavailable);
        }
        self.queue(command, options).await
    }

    /// Has a question answered by the plan as it is, also where nothing is decided any more.
    ///
    /// # Errors
    /// The errors that the question names.
    pub fn ask<Q: Question>(&self, question: Q) -> impl Future<Output = Result<Q::Answer>> + Send {
        self.queue(question, CommandOptions::default())
    }

    async fn queue<C: Command>(&self, command: C, options: CommandOptions) -> Result<C::Answer> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .try_send(QueuedCommand::new(command, options, reply))
            .map_err(|_| Error::Unavailable)?;
        answer.await.unwrap_or(Err(Error::Unavailable))
    }

    /// The next instant at which [`BeginDue`](planner::BeginDue) has something to do; it changes with the plan.
    pub fn subscribe(&self) -> watch::Receiver<Option<Time>> {
        self.due.clone()
    }

    /// Changes with the plan: when a batch is stored, and when a command begins or ends to wait for a cluster.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.stored.clone()
    }

    /// The suggestions of the provider for proposals to parties. The first listener hears all since the start, a later one those
    /// from now on.
    pub fn subscribe_suggestions(&self) -> broadcast::Receiver<Suggestion> {
        let first = self.unheard.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.suggested.subscribe())
    }

    /// Counts a tariff of energy that could not be read.
    pub fn count_unread_tariff(&self) {
        let measured = &self.measured;
        measured
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unread_tariffs += 1;
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
        let census = tokio::time::timeout(CENSUS_WAIT, self.ask(TakeCensus)).await;
        if let Ok(Ok(census)) = census {
            expose_census(&census, text);
        }
        self.measured
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .expose(text);
    }
}

/// A command that asks for nothing but an answer.
struct Ping;

impl Command for Ping {
    type Answer = ();

    fn decide(self, _: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(()))
    }
}

/// Says in the log what a start has changed because the configuration has other resources than before: a file that was forgotten at
/// the start shows there.
fn warn_when_planner_displaces(changes: &ResourceChanges) {
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
