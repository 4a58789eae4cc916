//! A process of the service: the parts that it opens at its start, and those that it puts together when it leads.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use execution::dispatcher::Dispatcher;
use execution::executors::Executors;
use execution::files::inputs::InputFiles;
use execution::files::job_folders::JobFolders;
use execution::staging::Stager;
use learning::LearningPace;
use planner::Settings;
use prediction::{Knowledge, Predictions};
use rustls::ServerConfig;
use store::open_state::OpenState;
use store::{Lease, Store, resources, templates};
use task::{Keeper, KeptTasks};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::{Planner, StartError};

use super::announcement::announce_service;
use super::database::{open_database, start_migrating_database};
use super::folders::{make_data_folder, open_input_folder, open_job_folders};
use super::front_end::FrontEnd;
use super::listener::{open_listener, scheme_of_listener};
use super::manager::Manager;
use super::prices::Prices;
use super::read_config::ReadConfig;
use super::reload::Reloader;
use super::store_check::TrailCheck;
use super::tasks::{
    Tasks, notice_clock_steps, start_call_back_task, start_learning_task, start_removal_tasks,
    start_service_tasks,
};
use super::{Options, SOON, descriptors, executors, heads, peers, replicas, store_check};
use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::config::trail::Trail;
use ::replicas::Replicas;
use access::{Access, OperatorKey, ensure_operator_key};
use api::Stage;
use federation::Federation;
use service::Service;

/// How long a start waits for the first look at the clusters, to be ready with them.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// Orders to read the configuration again that may wait.
const RELOADS_MAX: usize = 8;

/// All that a process has before it leads.
pub(super) struct Process {
    pub(super) options: Options,
    pub(super) read: ReadConfig,
    /// The configuration at its start, where it has been read again since.
    pub(super) opened: Option<Config>,
    pub(super) manager: Manager,
    pub(super) hangup: Signal,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    /// Has tasks run until `stop`.
    pub(super) keeper: Keeper,
    /// Cancelled when the process is told to stop.
    pub(super) told: CancellationToken,
    pub(super) address: SocketAddr,
    pub(super) stage: watch::Sender<Stage>,
    pub(super) served: JoinHandle<()>,
    pub(super) tls: Option<watch::Sender<Arc<ServerConfig>>>,
    pub(super) data_dir: PathBuf,
    pub(super) store: Store,
    /// The other processes on its database; none where there cannot be any.
    pub(super) replicas: Option<Replicas>,
    pub(super) front: FrontEnd,
    pub(super) key: OperatorKey,
    pub(super) folders: JobFolders,
    pub(super) files: InputFiles,
    /// Moves the files of jobs, whichever process leads.
    pub(super) stager: Stager,
    pub(super) federation: Option<Federation>,
    pub(super) executors: Executors,
    pub(super) predictions: Predictions,
    /// Whether it has stood by: it has said where it listens and, after ten seconds, has learned from ended executions.
    pub(super) has_stood_by: bool,
    /// The check of the open state, where it has stood by.
    pub(super) checked: Option<store_check::CheckTask>,
    /// Keeps the data folder from other processes.
    pub(super) _folder: File,
}

impl Process {
    /// Listens, and opens everything that neither a leader nor others may lack. All requests are answered 503 meanwhile.
    pub(super) async fn begin(options: Options) -> Result<Self, Failure> {
        let manager = Manager::of_environment();
        // From here on it does not end the process.
        let hangup = signal(SignalKind::hangup()).map_err(Failure::unavailable)?;
        let mut read = ReadConfig::from(options.store.config.clone(), None).await?;
        let clock = Clock::system();
        read.check_expiry(&clock)?;
        let config = &read.config;
        // Before anything is opened.
        let connections = descriptors::share_descriptors(&config.limits, config.clusters().len())?;
        let measured = api::RequestMetrics::since(clock.micros());
        let data_dir = make_data_folder(&options.store.data_dir)?;
        let (tls, certificate) = read.tls.take().map(watch::channel).unzip();
        let scheme = scheme_of_listener(tls.is_some(), &options)?;
        let stop = CancellationToken::new();
        let tasks = KeptTasks::default();
        let keeper = tasks.until(&stop);
        let watched = clock.clone();
        keeper.keep(("clock-steps", SOON), move |stop| {
            let notices = notice_clock_steps(watched.clone());
            async move {
                stop.run_until_cancelled(notices).await;
            }
        });
        let told = hear_stop_of_process();
        let (listener, address) = open_listener(options.at.listen).await?;
        // Answers from the start, so that probes see a service that is not ready rather than none.
        let (stage, present) = watch::channel(Stage::Starting);
        let bounds = api::ListenerBounds {
            proxies: config.proxy.proxies().map_err(Failure::Usage)?,
            ..config.limits.bounds(connections.clone())
        };
        let served = task::spawn(api::serve(listener, certificate, present, bounds, stop.clone()));

        manager.say("opening the store");
        heads::refuse_missing_file_with_heads(&options.store.database_url(), &config.trail, &data_dir)
            .await?;
        let (store, name, folder) = open_database(&options, &data_dir).await?;
        heads::compare_trail_with_heads(&store, &config.trail, &data_dir).await?;
        let end = Trail::end_file(&data_dir);
        store
            .keep_trail_end(&end)
            .map_err(|why| Failure::Unavailable(format!("{}: {why}", end.display())))?;
        let replicas =
            replicas::join_replicas(&options, config, (&name, scheme, address), &store, &clock).await?;
        let (access, key) = open_access_of_process(&store, &clock, (config, &data_dir), &keeper).await?;
        let folders = open_job_folders(config, &data_dir)?;
        let (federation, followed) =
            peers::open_federation_of_peers(config, &data_dir, &store, &clock).await?;
        let executors = executors::make_executors(config, &folders, &data_dir, followed)?;
        let files = open_input_folder(config, &data_dir, &store).await?;
        let stager = Stager::new(config.staging.rules(), folders.clone(), clock.clone());
        let predictions = Predictions::of(Knowledge::default());
        Ok(Self {
            files,
            stager,
            options,
            read,
            opened: None,
            manager,
            hangup,
            clock,
            stop,
            keeper,
            told,
            address,
            stage,
            served,
            tls,
            data_dir,
            store,
            replicas,
            front: FrontEnd {
                access,
                measured,
                connections,
                tasks,
                scheme,
            },
            key,
            folders,
            federation,
            executors,
            predictions,
            has_stood_by: false,
            checked: None,
            _folder: folder,
        })
    }

    /// Leads, until it is told to stop or may not lead any more.
    pub(super) async fn lead(mut self, lease: Lease) -> Result<(), Failure> {
        self.folders.lead_under(lease.epoch);
        self.manager.say("reading the plan from the store");
        // The manager has been told that it serves, and would take it for dead.
        let alive = self
            .has_stood_by
            .then(|| task::spawn(self.manager.clone().keep_alive_at_first()));
        let checking =
            store_check::check_open_store(self.checked.take(), self.store.clone(), self.clock.clone());
        let checking = task::spawn(checking);
        templates::keep_template_versions(&self.store, &self.read.templates.versions()).await?;
        let (config, mut settings) = (self.read.config, self.read.settings);
        let (store, clock, stop, keeper) = (self.store, self.clock, self.stop, self.keeper);
        if !self.has_stood_by {
            let learned = learn_before_start(&config, &settings, &store, &clock).await;
            self.predictions.renew(learned);
        }
        settings.predictions = Some(self.predictions.clone());
        let (planner, decided, planner_stop) =
            start_planner(settings, &store, lease, &clock, checking).await?;
        heads::start_signing_heads(&config.trail, &self.data_dir, &store, &clock, &keeper)?;
        start_removal_tasks(&config, self.folders.clone(), &store, &clock, &keeper);
        start_migrating_database(&store, &keeper);
        let hosts =
            replicas::take_hosts_of_replicas(self.replicas.as_ref(), &config, &planner, &keeper).await?;
        let prices = Prices::new(planner.clone(), config.series());
        let pace = LearningPace::of_leader(self.has_stood_by);
        start_learning_task(self.predictions.clone(), &config, (&store, &clock), pace, &keeper);
        store_check::start_store_check((&store, &planner), self.has_stood_by, &keeper);
        let suggests = planner.clone();
        let (catalogue_sender, catalogue) = watch::channel(Arc::new(self.read.catalogue));
        self.stager.take_over(config.staging.rules());
        let (decides, runs, known) = (planner.clone(), self.executors.clone(), catalogue.clone());
        let dispatcher = Dispatcher::new(
            decides,
            runs,
            known,
            self.files.clone(),
            self.stager,
            clock.clone(),
        );
        let dispatcher = dispatcher.among(hosts.clone(), None, keeper.tasks().clone());
        let (faults, unseen) = (dispatcher.faults(), dispatcher.unseen());
        let run = dispatcher.run(stop.clone());
        let dispatched = task::spawn(keeper.tasks().clone().watch(("dispatcher", SOON), run));
        executors::start_sampling_executors((&planner, &hosts), &self.executors, &store, &clock, &keeper);

        let of_planner = (&planner, &store, &clock);
        let neighbours = peers::start_peers(self.federation.as_ref(), &config, of_planner, &keeper);
        let at = (self.front.scheme, self.address);
        let (address, dropped) = start_call_back_task(&config, &store, &clock, at, &keeper);
        let (ask_to_reload, orders) = mpsc::channel(RELOADS_MAX);
        let (templates, files) = (self.read.templates, self.files);
        let mut service = Service::new(planner, store, templates, catalogue, clock, files, self.folders);
        service.predictions = Some(self.predictions);
        (service.neighbours, service.federation) = (neighbours, self.federation);
        (service.may_call, service.address) = (config.call_backs(), address);
        service.dropped = dropped;
        (service.faults, service.executors) = (faults, self.executors);
        (service.staging, service.reloading) = (config.staging.rules(), Some(ask_to_reload));
        service.replicas = self.replicas;
        service::fit_templates_to_resources(&service)
            .await
            .map_err(Failure::unavailable)?;
        let api = self.front.api(service.clone(), &config, &stop);
        let tasks = Tasks {
            manager: self.manager.clone(),
            served: self.served,
            decided,
            dispatched,
            noted: start_service_tasks(&service, suggests, &keeper),
            places: api.places.clone(),
            patience: config.limits.shutdown_timeout(),
        };
        let (inputs, outputs) = ((prices, orders, self.hangup), (catalogue_sender, self.tls));
        let (options, configs) = (&self.options, (self.opened, config));
        let mut reloader = Reloader::new(options, configs, service.clone(), inputs, outputs);
        reloader.manager = self.manager.clone();
        let open = async {
            await_first_look(unseen).await;
            reloader.prices.await_first().await;
            let decides = service.clone();
            keeper.keep(("pending-agreements", SOON), move |stop| {
                service::decide_pending(decides.clone(), stop)
            });
            self.stage
                .send_replace(Stage::Leading(api::router(api, portal::portal_pages())));
            if !self.has_stood_by {
                announce_service(self.front.scheme, self.address, &self.key, &self.options.store);
            }
            self.manager.ready();
            // Both tell the manager of later events.
            reloader.start(&keeper);
            self.manager.start_telling(service, &keeper);
            if let Some(alive) = alive {
                alive.abort();
            }
            std::future::pending().await
        };
        Box::pin(tasks.until_stopped(open, &stop, (&planner_stop, self.told))).await
    }

    /// Ends a process that was told to stop before it led.
    pub(super) async fn end(self) -> Result<(), Failure> {
        info!("stopping");
        self.manager.stopping();
        self.stop.cancel();
        let _ = self.served.await;
        Ok(())
    }
}

/// The access rules and the operator's key, which is made at the first start.
async fn open_access_of_process(
    store: &Store,
    clock: &Clock,
    (config, data_dir): (&Config, &Path),
    keeper: &Keeper,
) -> Result<(Access, OperatorKey), Failure> {
    let access = Access::new(store.clone(), clock.clone());
    let access = access.with_operators_for(config.keys.operators_last());
    let hears = access.clone();
    // It hears nothing as long as no key changes.
    keeper.keep(("key-changes", Duration::MAX), move |stop| {
        hears.clone().hear_of_key_changes(stop)
    });
    let key = ensure_operator_key(&access, data_dir).await;
    let key = key.map_err(Failure::unavailable)?;
    Ok((access, key))
}

/// Starts the planner, which the token stops, on a plan that is made of the open state that was checked. Nothing is decided before the
/// check of the audit trail, which goes on meanwhile, has succeeded, too.
async fn start_planner(
    settings: Settings,
    store: &Store,
    lease: Lease,
    clock: &Clock,
    checking: JoinHandle<Result<Option<(OpenState, TrailCheck)>, Failure>>,
) -> Result<(Planner, JoinHandle<()>, CancellationToken), Failure> {
    let refused = |why: StartError| Failure::Refused(why.to_string());
    let (open, trail) = checking.await.map_err(Failure::unavailable)??.unzip();
    let plan = Planner::read_plan(&settings, store, clock, open).await;
    if let Some(trail) = trail {
        // A finding says more than an error of the plan that comes from it.
        trail.end().await?;
    }
    let stop = CancellationToken::new();
    let (store, clock) = (store.clone(), clock.clone());
    let plan = plan.map_err(refused)?;
    let started = Planner::start_with(plan, settings, store, lease, clock, stop.clone()).await;
    let (planner, decided) = started.map_err(refused)?;
    Ok((planner, decided, stop))
}

/// What is known before the planner starts, for the resources as they will be: where it takes over others, agreements may have to
/// move.
async fn learn_before_start(config: &Config, settings: &Settings, store: &Store, clock: &Clock) -> Knowledge {
    let (_, ladder) = config.predictions();
    let learned = async {
        let (rows, now) = (resources::all_resources(store).await?, clock.micros());
        let machines = planner::machines_as_configured(rows, &settings.resources, now)?;
        learning::learn_for_machines(store, (machines, ladder), clock.now()).await
    };
    learned.await.unwrap_or_else(|error: store::Error| {
        warn!(%error, "the start goes without predictions");
        Knowledge::default()
    })
}

/// Waits for the first look at each cluster, before which it promises nothing. Where one does not answer, the other resources do
/// not wait for it.
async fn await_first_look(mut unseen: watch::Receiver<BTreeSet<String>>) {
    let _ = tokio::time::timeout(FIRST_LOOK, unseen.wait_for(BTreeSet::is_empty)).await;
}

/// Cancelled by SIGINT or SIGTERM, from now on.
fn hear_stop_of_process() -> CancellationToken {
    let told = CancellationToken::new();
    let hears = told.clone();
    task::spawn(async move {
        await_stop_of_process().await;
        hears.cancel();
    });
    told
}

/// Waits for SIGINT or SIGTERM.
async fn await_stop_of_process() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        warn!("cannot listen for signals; only a kill stops this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
