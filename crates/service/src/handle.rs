//! The service: what callers hold, and every use case works with.

use std::sync::Arc;
use std::time::Duration;

use address::Policy;
use domain::agreement::{Currency, Spender};
use domain::catalogue::Catalogue;
use domain::clock::Clock;
use execution::executors::Executors;
use execution::faults::{Faults, ResourceUse};
use execution::files::inputs::InputFiles;
use execution::files::job_folders::JobFolders;
use execution::staging::TransferRules;
use metrics::{Exposition, metrics};
use planner::{Command, CommandOptions};
use prediction::Predictions;
use store::{Store, call_backs, keys};
use tokio::sync::{Mutex, Notify, Semaphore, mpsc, watch};
use uuid::Uuid;
use writer::{Planner, Question};

use super::error::{Error, Result};
use super::failed_sign_ins::FailedSignIns;
use super::templates::{OfferedTemplates, Templates};
use super::views::past_use::PastUses;
use super::views::resource_changes::ReloadOrder;
use callbacks::DroppedCounts;
use federation::Federation;
use federation::neighbours::Neighbours;
use replicas::Replicas;

/// A store that does not answer for this time is not ready. Probes wait longer.
const PING_WAIT: Duration = Duration::from_secs(1);

metrics! {
    LEADS = Gauge "bespeak_leads": "Whether this process leads: one of the processes on a database does.";
    TROUBLES = Gauge "bespeak_resource_troubles":
        "In how many of its doings a resource fails at the moment; /resources says which and why.";
    DROPPED = Counter "bespeak_call_backs_dropped_total":
        "Decisions and events that could not be told for a day, and are not told any more.";
    CALL_BACKS = Gauge "bespeak_call_backs_waiting": "Decisions with a call-back that is still to be made.";
}

/// What the use cases work with: the planner, the store, the templates and the files. It is cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(super) planner: Planner,
    /// How the caller's commands are to be decided.
    pub(super) options: CommandOptions,
    pub(super) store: Store,
    pub(super) templates: OfferedTemplates,
    /// The applications that offers may name.
    catalogue: watch::Receiver<Arc<Catalogue>>,
    pub(super) clock: Clock,
    /// The files that jobs may read.
    pub(super) files: InputFiles,
    /// The jobs' folders.
    pub(super) jobs: JobFolders,
    /// The knowledge of run times; none where the service does not learn them.
    pub predictions: Option<Predictions>,
    /// The allowed receivers of call-backs.
    pub may_call: Policy,
    /// The count of what could not be told.
    pub dropped: DroppedCounts,
    /// The address of the service in call-backs.
    pub address: Arc<str>,
    /// The provider's rules for moving files of jobs.
    pub staging: TransferRules,
    /// The present faults of resources.
    pub faults: Faults,
    /// The executors of resources, for the metrics and the refusals of clusters.
    pub executors: Executors,
    /// The other domains that may be asked; none where there are none.
    pub federation: Option<Federation>,
    /// Where orders to read the configuration again go; none where there is nothing to read.
    pub reloading: Option<mpsc::Sender<ReloadOrder>>,
    /// The other processes on this database; none where there cannot be any.
    pub replicas: Option<Replicas>,
    /// The domains beside this one; none where the configuration names it nothing among others.
    pub neighbours: Option<Neighbours>,
    /// Had by the one that fits the templates to the resources, from reading these until the templates are offered.
    pub(super) fitting: Arc<Mutex<()>>,
    /// The key that asks, where it may spend only so much.
    pub(super) spender: Option<Spender>,
    /// Rung when there is a pending agreement to decide.
    pub(super) undecided: Arc<Notify>,
    /// The failed sign-ins that the trail does not have yet.
    pub(super) failed_sign_ins: FailedSignIns,
    /// How the resources were used lately.
    pub(super) past_uses: PastUses,
    /// Documents that are read at the same time: reading is work for a processor, so as many as there are.
    pub(super) reading: Arc<Semaphore>,
}

impl Service {
    /// The use cases over a planner, a store and the provider's templates.
    pub fn new(
        planner: Planner,
        store: Store,
        templates: Templates,
        catalogue: watch::Receiver<Arc<Catalogue>>,
        clock: Clock,
        files: InputFiles,
        jobs: JobFolders,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            planner,
            options: CommandOptions::default(),
            store,
            templates: OfferedTemplates::of(templates),
            catalogue,
            clock,
            files,
            jobs,
            predictions: None,
            may_call: Policy::default(),
            dropped: DroppedCounts::default(),
            address: Arc::default(),
            staging: TransferRules::default(),
            faults: Faults::default(),
            executors: Executors::of([]),
            federation: None,
            reloading: None,
            neighbours: None,
            replicas: None,
            fitting: Arc::default(),
            spender: None,
            undecided: Arc::default(),
            failed_sign_ins: FailedSignIns::default(),
            past_uses: PastUses::default(),
            reading: Arc::new(Semaphore::new(processors)),
        }
    }

    /// The address of an agreement where no request names the service's.
    pub(super) fn agreement_address(&self, id: Uuid) -> String {
        format!("{}/agreements/{id}", self.address)
    }

    /// Whether offers can be decided now: the plan is in step with the store, which answers, and no other process has
    /// taken over.
    pub async fn is_ready(&self) -> bool {
        let epoch = tokio::time::timeout(PING_WAIT, self.store.lease_epoch());
        self.planner.is_ready() && matches!(epoch.await, Ok(Ok(epoch)) if epoch == self.planner.epoch())
    }

    /// Waits until the planner answers anything, also that it cannot decide now.
    pub async fn await_any_answer(&self) {
        self.planner.await_any_answer().await;
    }

    /// The fault that was found in the store, because of which nothing is decided any more.
    pub fn distrusted(&self) -> Option<&str> {
        self.planner.distrusted()
    }

    /// The resources on which nothing new is promised, because they have not passed their checks.
    pub fn closed_resources(&self) -> Vec<String> {
        self.faults.failing_in(ResourceUse::PassChecks)
    }

    /// The clusters that do not tell how their nodes stand.
    pub fn silent_clusters(&self) -> Vec<String> {
        self.faults.failing_in(ResourceUse::TellNodes)
    }

    /// Writes the counts of this module and the ones below.
    pub async fn expose(&self, text: &mut Exposition) {
        text.number(LEADS, u8::from(self.planner.leads()));
        if !self.planner.leads() {
            // The rest is the leader's to tell.
            return;
        }
        self.planner.expose(text).await;
        execution::metrics::expose_cluster_metrics(&self.executors.clusters(), text);
        let resources = self.planner.resources();
        let in_service = resources.iter().filter(|resource| !resource.is_retired());
        let troubles = in_service.map(|each| (&each.name, self.faults.of(&each.name).len()));
        text.numbers(TROUBLES, "resource", troubles);
        let waiting = tokio::time::timeout(PING_WAIT, call_backs::call_backs_waiting(&self.store)).await;
        if let Ok(Ok(waiting)) = waiting {
            text.number(CALL_BACKS, waiting);
        }
        text.numbers(DROPPED, "kind", self.dropped.counts());
        if let Some(neighbours) = &self.neighbours {
            neighbours.expose(text);
        }
    }

    /// The currency that agreements are charged in; `None` where nothing is charged.
    pub fn currency(&self) -> Option<Currency> {
        self.templates.currency()
    }

    /// The applications that offers may name.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Changes with the plan, so that pages know when to read it again.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.planner.subscribe_changes()
    }

    /// The clock that decisions go by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Runs work on a document that may name files of its party: they are looked for as they are by now. Where it looks for one, it is done
    /// again after the folder has caught up; most documents name none.
    pub(super) async fn run_work_with_files<T: Send + 'static>(
        &self,
        work: impl Fn(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let service = Self {
            files: self.files.not_looked_for(),
            ..self.clone()
        };
        // The work has all of a document, and goes into the future of its caller otherwise.
        let with_work = Box::pin(service.run_document_work(move |service| (work(service), work)));
        let (done, work) = with_work.await?;
        if !service.files.were_looked_for() {
            return Ok(done);
        }
        self.files.catch_up().await?;
        Box::pin(self.run_document_work(work)).await
    }

    /// Runs work on a document off the threads that serve connections, a bounded number at a time.
    pub(super) async fn run_document_work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let service = self.clone();
        // The semaphore is never closed.
        let permit = Arc::clone(&self.reading)
            .acquire_owned()
            .await
            .map_err(|_| Error::Unavailable)?;
        let done = task::run_blocking(move || {
            let done = work(&service);
            drop(permit);
            done
        });
        let panicked = |_| Error::Internal("the work on a document has panicked".to_owned());
        done.await.map_err(panicked)
    }

    /// Has a question answered, also where nothing is decided any more.
    pub(super) fn ask<Q: Question>(
        &self,
        question: Q,
    ) -> impl Future<Output = planner::Result<Q::Answer>> + Send {
        self.planner.ask(question)
    }

    /// Has a command of the caller decided.
    pub(super) fn send<C: Command>(
        &self,
        command: C,
    ) -> impl Future<Output = planner::Result<C::Answer>> + Send {
        self.send_or_try(command, false)
    }

    /// Has a command of the caller decided, or only tried where that is wanted.
    pub(super) fn send_or_try<C: Command>(
        &self,
        command: C,
        is_dry: bool,
    ) -> impl Future<Output = planner::Result<C::Answer>> + Send {
        self.planner.send_with(command, self.options.or_dry(is_dry))
    }

    /// The same use cases, which store nothing and hold nothing: what they answer is what they would answer. Each decision is
    /// taken back once it is made.
    #[must_use]
    pub fn dry(&self) -> Self {
        Self {
            options: self.options.or_dry(true),
            ..self.clone()
        }
    }

    /// The same use cases for an operator of a party that books for another one: its agreements are the other party's, and the trail
    /// says who has made them.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the other party has no key, so that nobody could see them; [`Error::Unavailable`].
    pub async fn booked_by(&self, operator: &str, party: &str) -> Result<Self> {
        if !keys::has_party_key(&self.store, party).await? {
            return Err(Error::Conflict(format!(
                "no key belongs to the party {party:?}: nobody could see what is booked for it"
            )));
        }
        Ok(Self {
            options: CommandOptions {
                booked_by: Some(operator.into()),
                ..self.options.clone()
            },
            ..self.clone()
        })
    }

    /// The same use cases for an operator, whom no number of agreements and questions bounds.
    #[must_use]
    pub fn unbounded(&self) -> Self {
        Self {
            options: CommandOptions {
                is_unbounded: true,
                ..self.options.clone()
            },
            ..self.clone()
        }
    }

    /// The same use cases for a key that may spend only so much.
    #[must_use]
    pub fn with_cap(&self, spender: Spender) -> Self {
        Self {
            spender: Some(spender),
            ..self.clone()
        }
    }
}
