//! The tasks of a process while it serves, and their end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use execution::files::job_folders::JobFolders;
use learning::LearningPace;
use prediction::Predictions;
use store::Store;
use task::Keeper;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::Planner;

use super::folders::start_keeping_folders;
use super::listener::address_of_listener;
use super::manager::Manager;
use super::{HOURLY, SELDOM, SOON};
use crate::cli::Failure;
use crate::cli::config::Config;
use api::RequestLimits;
use callbacks::{CallBacks, DroppedCounts};
use service::Service;

/// How often the wall time is compared with the time that has passed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at the clock again and again, and logs each step of it.
pub(super) async fn notice_clock_steps(clock: Clock) {
    loop {
        if let Some(step) = clock.look_in_words() {
            warn!("{step}");
        }
        task::note_success();
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The parts of a service while it serves.
pub(super) struct Tasks {
    pub(super) manager: Manager,
    pub(super) served: JoinHandle<()>,
    pub(super) decided: JoinHandle<()>,
    pub(super) dispatched: JoinHandle<()>,
    /// The task that notes failed sign-ins, at last those before the stop.
    pub(super) noted: JoinHandle<()>,
    /// How long running work may take to end after the stop.
    pub(super) patience: Duration,
    /// The requests that run.
    pub(super) places: RequestLimits,
}

impl Tasks {
    /// Opens the service, and waits until it is told to stop or one of its tasks has ended by itself; stops the others then.
    pub(super) async fn until_stopped(
        mut self,
        open: impl Future<Output = Infallible>,
        stop: &CancellationToken,
        (planner_stop, told): (&CancellationToken, CancellationToken),
    ) -> Result<(), Failure> {
        let lost = tokio::select! {
            () = told.cancelled() => None,
            never = open => match never {},
            _ = &mut self.decided => Some("the planner has stopped: another process decides now"),
            // Neither should end by itself. The process ends then, so that its supervisor restarts it: without the first no
            // request is answered, without the second no job starts.
            _ = &mut self.served => Some("the HTTP server has stopped by itself"),
            _ = &mut self.dispatched => Some("the dispatcher has stopped by itself"),
        };
        info!("stopping");
        self.manager.stopping();
        stop.cancel();
        // All requests that run are answered first. What clients still read of their answers does not keep another process from the lead.
        if !self.served.is_finished() {
            tokio::select! {
                () = self.places.await_none() => {}
                _ = &mut self.served => {}
            }
        }
        // First the dispatcher, then the planner. Each is waited for once: a task that has ended before cannot be waited for again.
        // The wait has an end: without its store the planner sends no answers. A request without an answer is not promised, so
        // the planner may be cut off.
        let dispatched = async {
            if !self.dispatched.is_finished() {
                let _ = self.dispatched.await;
            }
        };
        let both = async { tokio::join!(dispatched, self.noted) };
        let _ = tokio::time::timeout(self.patience, both).await;
        planner_stop.cancel();
        if !self.decided.is_finished() && tokio::time::timeout(self.patience, self.decided).await.is_err() {
            warn!("the planner still waited for the store and is cut off");
        }
        if !self.served.is_finished() {
            let _ = self.served.await;
        }
        lost.map_or(Ok(()), |why| Err(Failure::Unavailable(why.to_owned())))
    }
}

/// Starts what is done without being asked for. Returns the task that notes failed sign-ins.
pub(super) fn start_service_tasks(service: &Service, suggests: Planner, keeper: &Keeper) -> JoinHandle<()> {
    let proposes = service.clone();
    // There may be nothing to propose.
    keeper.keep(("proposals", Duration::MAX), move |stop| {
        service::propose_changes(proposes.clone(), suggests.subscribe_suggestions(), stop)
    });
    let seeks = service.clone();
    keeper.keep(("places-at-peers", SOON), move |stop| {
        service::seek_places_at_peers(seeks.clone(), stop)
    });
    // Operators' pages show the last sums, so there have to be some.
    service::show_past_use(service);
    let notes = service.clone();
    // None may fail.
    keeper.keep(("failed-sign-ins", Duration::MAX), move |stop| {
        service::note_failed_sign_ins(notes.clone(), stop)
    })
}

/// Begins to make the calls that are stored. Returns the address of the service in them, and the count of those that are dropped.
pub(super) fn start_call_back_task(
    config: &Config,
    store: &Store,
    clock: &Clock,
    (scheme, listening): (&str, SocketAddr),
    keeper: &Keeper,
) -> (Arc<str>, DroppedCounts) {
    let address = address_of_listener(config, scheme, listening);
    let (store, clock, own) = (store.clone(), clock.clone(), Arc::clone(&address));
    let call_backs = CallBacks::new(store, clock, config.call_backs(), own);
    let dropped = call_backs.dropped();
    keeper.keep(("call-backs", SOON), move |stop| call_backs.clone().run(stop));
    (address, dropped)
}

/// Starts to learn from ended executions at a pace. The resources of the configuration are taken over by now.
pub(super) fn start_learning_task(
    known: Predictions,
    config: &Config,
    (store, clock): (&Store, &Clock),
    pace: LearningPace,
    keeper: &Keeper,
) {
    let (store, clock, setup) = (store.clone(), clock.clone(), config.predictions());
    keeper.keep(("predictions", SELDOM), move |stop| {
        learning::keep_knowledge(known.clone(), store.clone(), setup, clock.clone(), pace, stop)
    });
}

/// Starts to remove old data: the folders of jobs, and executions that are not needed.
pub(super) fn start_removal_tasks(
    config: &Config,
    folders: JobFolders,
    store: &Store,
    clock: &Clock,
    keeper: &Keeper,
) {
    let policy = config.history.policy();
    let (of_history, at) = (store.clone(), clock.clone());
    keeper.keep(("history", HOURLY), move |stop| {
        learning::prune_history(policy, of_history.clone(), at.clone(), stop)
    });
    start_keeping_folders(folders, (store, clock), config.execution.folders_kept(), keeper);
}
