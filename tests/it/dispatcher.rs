//! From the plan to real processes and back: planner, store, dispatcher and local executor together, without the API.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod missed_slots;
mod packing;
mod restart;
mod unreachable_nodes;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::agreement::{Agreement, AgreementState, Job, Limit, Run, RunOutcome, ServiceState, Shape};
use domain::catalogue::{Application, Catalogue, CatalogueError, JobLimits};
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::Resource;
use execution::dispatcher::{Dispatcher, SharedExecutor};
use execution::executors::Executors;
use execution::files::inputs::InputFiles;
use execution::files::job_folders::{JobFolders, Removal};
use execution::job::limits::AllowedLimits;
use execution::local_executor::LocalExecutor;
use execution::staging::{Stager, TransferRules};
use execution::{ExecutionError, Executor, JobSpec, JobStatus};
use planner::{BeginDue, Place, ReportStarted, Request, Settings, Terminate};
use scheduler::Seconds;
use store::{Store, agreements, executions};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;

use crate::support::processes::JobsFolder;
use crate::support::{block_on, deadline_here};

/// How long a test waits for an event that should come within a second or two, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_mins(1);
const CAPACITY: u32 = 64;
/// The template of work that is run again when it is lost.
const RESTARTING: &str = "restarting";

/// A service without its API: it can be stopped and started again on the same folder.
struct Service {
    folder: Arc<JobsFolder>,
    planner: Planner,
    store: Store,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Service {
    /// One that plans and makes the plan happen.
    async fn start(folder: &Arc<JobsFolder>) -> Self {
        Self::start_with(folder, catalogue(folder.path()).unwrap()).await
    }

    async fn start_with(folder: &Arc<JobsFolder>, catalogue: Catalogue) -> Self {
        let executors = [("local".to_owned(), SharedExecutor::new(executor(folder.path())))];
        Self::start_on(folder, catalogue, executors.into()).await
    }

    async fn start_on(
        folder: &Arc<JobsFolder>,
        catalogue: Catalogue,
        executors: Vec<(String, SharedExecutor)>,
    ) -> Self {
        let names: Vec<_> = executors.iter().map(|(name, _)| name.as_str()).collect();
        let mut service = Self::start_planner(folder, &names).await;
        let files = InputFiles::new(folder.path(), 0).unwrap();
        let planner = service.planner.clone();
        let (folders, clock) = (JobFolders::new(folder.path(), None).unwrap(), Clock::system());
        let (_, catalogue) = watch::channel(Arc::new(catalogue));
        let executors = Executors::of(executors);
        let staging = Stager::new(TransferRules::default(), folders, clock.clone());
        let dispatcher = Dispatcher::new(planner, executors, catalogue, files, staging, clock);
        service
            .tasks
            .push(tokio::spawn(dispatcher.run(service.stop.clone())));
        service
    }

    /// One that only plans, as one that is killed right after it has decided.
    async fn start_planner(folder: &Arc<JobsFolder>, resources: &[&str]) -> Self {
        Self::start_planner_by(folder, resources, Clock::system()).await
    }

    /// The same by another clock than the system's.
    async fn start_planner_by(folder: &Arc<JobsFolder>, resources: &[&str], clock: Clock) -> Self {
        let store = Store::open(&format!("sqlite:{}", folder.path().join("bespeak.db").display()))
            .await
            .unwrap();
        let lease = store.acquire_lease().await.unwrap();
        let resource = |name: &&str| Resource::new(name, "local", CAPACITY);
        let mut settings = Settings::new(resources.iter().map(resource).collect(), 86_400);
        settings.restarting.insert(RESTARTING.to_owned());
        let stop = CancellationToken::new();
        let (planner, task) = Planner::start(settings, store.clone(), lease, clock, stop.clone())
            .await
            .unwrap();
        Self {
            folder: Arc::clone(folder),
            planner,
            store,
            stop,
            tasks: vec![task],
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
        self.store.close().await;
    }

    /// Reserves one node and has a script run there, `seconds` long, from `delay` seconds from now.
    async fn place(&self, text: &str, delay: Seconds, seconds: Seconds) -> Agreement {
        self.place_nodes(1, text, delay, seconds).await
    }

    async fn place_nodes(&self, nodes: u32, text: &str, delay: Seconds, seconds: Seconds) -> Agreement {
        let proposal = Self::proposal(nodes, text, delay, seconds);
        self.planner.send(Place(proposal)).await.unwrap().agreement
    }

    fn proposal(nodes: u32, text: &str, delay: Seconds, seconds: Seconds) -> Request {
        let ready = Clock::system().now() + delay;
        Request {
            template: "advance-reservation".into(),
            ready: Some(ready),
            // A minute more: the present passes on until this is decided, on a busy machine by some seconds.
            deadline: Some(ready + seconds + 60),
            job: Some(Job {
                application: "script".into(),
                arguments: vec![text.into()],
                ..Job::default()
            }),
            document: "<offer/>".into(),
            ..Request::new(
                Uuid::now_v7(),
                "physics",
                vec![Shape {
                    nodes,
                    duration: seconds,
                }],
            )
        }
    }

    async fn agreement(&self, id: Uuid) -> Agreement {
        agreements::agreement(&self.store, id).await.unwrap().unwrap()
    }

    /// Waits until an agreement is as it should be.
    async fn until(&self, id: Uuid, what: &str, is: impl Fn(&Agreement) -> bool) -> Agreement {
        let asked = Instant::now();
        loop {
            let agreement = self.agreement(id).await;
            if is(&agreement) {
                return agreement;
            }
            assert!(
                asked.elapsed() < deadline_here(PATIENCE),
                "not {what} after {PATIENCE:?}: {agreement:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until an agreement is over; its job has completed.
    async fn completes(&self, id: Uuid) {
        assert_eq!(self.over(id).await.outcome, Some(RunOutcome::Completed));
    }

    async fn over(&self, id: Uuid) -> Agreement {
        let agreement = self
            .until(id, "over", |agreement| agreement.state.is_final())
            .await;
        assert_eq!(agreement.service, ServiceState::Completed);
        agreement
    }

    async fn started(&self, id: Uuid) -> Agreement {
        self.until(id, "started", |agreement| agreement.started.is_some())
            .await
    }

    fn file(&self, one_agreement: &Agreement, name: &str) -> PathBuf {
        self.folder
            .path()
            .join("jobs")
            .join(one_agreement.id.to_string())
            .join("work")
            .join(name)
    }
}

/// One application, a shell that takes a script as a text.
fn catalogue(folder: &Path) -> Result<Catalogue, CatalogueError> {
    let program = folder.join("script");
    fs::write(&program, "#!/bin/sh\neval \"$1\"\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    Catalogue::new(vec![Application {
        name: "script".into(),
        version: None,
        description: String::new(),
        program,
        arguments: Vec::new(),
        limits: JobLimits::default(),
        checkpoint: None,
        isolation: None,
    }])
}

fn executor(folder: &Path) -> LocalExecutor {
    LocalExecutor::new(folder)
        .unwrap()
        .with_executable(Path::new(env!("CARGO_BIN_EXE_bespeak")))
}

/// An executor of this machine. None of its calls returns as long as it hangs.
struct Hanging {
    local: LocalExecutor,
    hangs: Arc<AtomicBool>,
    /// Calls that wait, now and at most.
    waiting: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Hanging {
    fn hang(&self) {
        let now = self.waiting.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.waiting.1.fetch_max(now, Ordering::SeqCst);
        let started = Instant::now();
        while self.hangs.load(Ordering::SeqCst) {
            // The test waits twice at most before it ends this. One that has failed does not: it is not to hang, too.
            assert!(started.elapsed() < PATIENCE * 3, "the call still hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.waiting.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Executor for Hanging {
    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError> {
        self.hang();
        self.local.start(job)
    }

    fn poll(&self, job: Run) -> Result<JobStatus, ExecutionError> {
        self.hang();
        self.local.poll(job)
    }

    fn stop(&self, job: Run) -> Result<(), ExecutionError> {
        self.hang();
        self.local.stop(job)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(100)
    }
}

fn folder() -> Arc<JobsFolder> {
    Arc::new(JobsFolder::new())
}

#[test]
fn a_job_starts_at_its_slot_and_its_end_completes_the_agreement_and_frees_the_rest_of_the_slot() {
    block_on(async {
        let service = Service::start(&folder()).await;
        let agreement = service.place("echo done > done", 2, 3_600).await;
        let over = service.over(agreement.id).await;
        assert_eq!(
            (over.state, over.outcome),
            (AgreementState::Complete, Some(RunOutcome::Completed))
        );
        assert!(
            over.started.unwrap() >= agreement.placement().start.seconds() * MICROS_PER_SECOND,
            "{over:?}"
        );
        assert!(over.released() < agreement.placement().end, "{over:?}");
        assert_eq!(
            fs::read_to_string(service.file(&agreement, "done")).unwrap(),
            "done\n"
        );
        let executions = executions::executions_of_agreement(&service.store, agreement.id)
            .await
            .unwrap();
        assert_eq!(executions.len(), 1);
        assert_eq!(executions[0].outcome, RunOutcome::Completed);
        assert!(executions[0].run_time > 0 && executions[0].queue_time >= 0);
        service.stop().await;
    });
}

#[test]
fn a_job_that_does_not_end_in_its_slot_is_killed_and_recorded_as_killed() {
    block_on(async {
        let service = Service::start(&folder()).await;
        let agreement = service.place("sleep 1000", 0, 2).await;
        let over = service.over(agreement.id).await;
        assert_eq!(over.state, AgreementState::Complete);
        assert_eq!(over.outcome, Some(RunOutcome::Killed));
        service.stop().await;
    });
}

#[test]
fn a_terminated_job_is_stopped_and_then_its_agreement_is_terminated() {
    block_on(async {
        let service = Service::start(&folder()).await;
        let agreement = service.place("sleep 1000; touch late", 0, 3_600).await;
        service.started(agreement.id).await;
        let terminating = service
            .planner
            .send(Terminate::of(agreement.id, None))
            .await
            .unwrap();
        assert_eq!(terminating.state, AgreementState::ObservedAndTerminating);
        let over = service.over(agreement.id).await;
        assert_eq!(
            (over.state, over.outcome),
            (AgreementState::Terminated, Some(RunOutcome::Terminated))
        );
        assert!(!service.file(&agreement, "late").exists());
        service.stop().await;
    });
}

#[test]
fn a_job_runs_on_while_the_service_is_down_and_is_followed_once_it_is_back() {
    block_on(async {
        let folder = folder();
        let service = Service::start(&folder).await;
        let text = "echo x >> runs; while [ ! -e go ]; do sleep 0.05; done; exit 5";
        let agreement = service.place(text, 0, 3_600).await;
        service.started(agreement.id).await;
        let go = service.file(&agreement, "go");
        let runs = service.file(&agreement, "runs");
        service.stop().await;

        fs::write(go, "").unwrap();
        let service = Service::start(&folder).await;
        let over = service.over(agreement.id).await;
        assert_eq!(over.state, AgreementState::Complete);
        assert_eq!(over.outcome, Some(RunOutcome::Failed { exit: 5 }));
        assert_eq!(fs::read_to_string(runs).unwrap(), "x\n");
        service.stop().await;
    });
}

#[test]
fn a_job_whose_slot_began_just_before_the_service_died_starts_once_it_is_back() {
    block_on(async {
        let folder = folder();
        let service = Service::start_planner(&folder, &["local"]).await;
        let agreement = service.place("echo x >> runs", 0, 3_600).await;
        assert_eq!(service.planner.send(BeginDue).await.unwrap().len(), 1);
        let to_start = agreements::agreements_to_start(&service.store, &agreement.party)
            .await
            .unwrap();
        assert_eq!(to_start.len(), 1, "its folder is not made: its inputs are kept");
        service.stop().await;

        let service = Service::start(&folder).await;
        service.completes(agreement.id).await;
        let to_start = agreements::agreements_to_start(&service.store, &agreement.party)
            .await
            .unwrap();
        assert_eq!(to_start, []);
        assert_eq!(
            fs::read_to_string(service.file(&agreement, "runs")).unwrap(),
            "x\n"
        );
        service.stop().await;
    });
}

#[test]
fn a_job_that_cannot_or_should_not_be_started_any_more_is_closed_without_running() {
    block_on(async {
        let folder = folder();
        // It stands until all three have begun, the shortest too.
        let clock = Clock::standing_at(Clock::system().micros());
        let service = Service::start_planner_by(&folder, &["local"], clock.clone()).await;
        let place = async |seconds| {
            let rigid = Request {
                ready: Some(clock.now()),
                deadline: Some(clock.now() + seconds),
                ..Service::proposal(1, "touch ran", 0, seconds)
            };
            service.planner.send(Place(rigid)).await.unwrap().agreement
        };
        let late = place(1).await;
        let terminated = place(3_600).await;
        let traceless = place(3_600).await;
        assert_eq!(service.planner.send(BeginDue).await.unwrap().len(), 3);
        service
            .planner
            .send(Terminate::of(terminated.id, None))
            .await
            .unwrap();
        service
            .planner
            .send(ReportStarted {
                run: Run::first(traceless.id),
                at: clock.micros(),
            })
            .await
            .unwrap();
        service
            .until(late.id, "late", |late| {
                late.placement().end <= Clock::system().now()
            })
            .await;
        service.stop().await;

        let service = Service::start(&folder).await;
        for (agreement, state, outcome) in [
            (late, AgreementState::Complete, RunOutcome::Lost),
            (terminated, AgreementState::Terminated, RunOutcome::Terminated),
            (traceless, AgreementState::Complete, RunOutcome::Lost),
        ] {
            let over = service.over(agreement.id).await;
            assert_eq!((over.state, over.outcome), (state, Some(outcome)));
            assert!(!service.file(&agreement, "ran").exists());
        }
        service.stop().await;
    });
}

#[test]
fn a_failing_disk_delays_a_job_and_loses_nothing() {
    block_on(async {
        let folder = folder();
        let jobs = folder.path().join("jobs");
        fs::write(&jobs, "not a folder").unwrap();
        let service = Service::start(&folder).await;
        let broken = service.place("echo x >> runs", 0, 3_600).await;
        service
            .until(broken.id, "begun", |agreement| {
                agreement.service == ServiceState::Processing
            })
            .await;
        fs::remove_file(&jobs).unwrap();
        service.completes(broken.id).await;
        assert_eq!(fs::read_to_string(service.file(&broken, "runs")).unwrap(), "x\n");
        service.stop().await;
    });
}

#[test]
fn more_jobs_at_once_than_are_attended_to_at_once_all_run() {
    block_on(async {
        let service = Service::start(&folder()).await;
        let mut agreements = Vec::new();
        for _ in 0..CAPACITY {
            agreements.push(service.place("echo x >> runs", 3, 600).await);
        }
        for agreement in &agreements {
            service.completes(agreement.id).await;
            assert_eq!(
                fs::read_to_string(service.file(agreement, "runs")).unwrap(),
                "x\n"
            );
        }
        service.stop().await;
    });
}

#[test]
fn a_resource_that_hangs_holds_nobody_else_and_goes_on_where_it_was() {
    block_on(async {
        let folder = folder();
        let (hangs, waiting) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let hanging = Hanging {
            local: executor(folder.path()),
            hangs: Arc::clone(&hangs),
            waiting: Arc::clone(&waiting),
        };
        let executors = vec![
            ("hanging".to_owned(), SharedExecutor::new(hanging)),
            ("local".to_owned(), SharedExecutor::new(executor(folder.path()))),
        ];
        let service = Service::start_on(&folder, catalogue(folder.path()).unwrap(), executors).await;
        let held = service.place_nodes(CAPACITY, "echo x >> runs", 0, 3_600).await;
        assert_eq!(held.resource, "hanging");
        let free = service.place("echo x >> runs", 0, 3_600).await;
        assert_eq!(free.resource, "local");
        service.completes(free.id).await;
        // Long enough for the call that hangs to be given up on and another to be thought of.
        let later = service.place("sleep 1", 0, 3_600).await;
        service.completes(later.id).await;
        assert_eq!(service.agreement(held.id).await.started, None);

        hangs.store(false, Ordering::SeqCst);
        service.completes(held.id).await;
        assert_eq!(fs::read_to_string(service.file(&held, "runs")).unwrap(), "x\n");
        let most = waiting.1.load(Ordering::SeqCst);
        assert_eq!(most, 1, "one agreement is never asked about twice at a time");
        service.stop().await;
    });
}

#[test]
fn a_job_that_takes_more_than_its_resource_allows_is_stopped_and_everybody_is_told_of_what() {
    block_on(async {
        let folder = folder();
        let allowance = AllowedLimits {
            resource: JobLimits {
                processes: Some(4),
                ..JobLimits::default()
            },
            ..AllowedLimits::default()
        };
        let shared = SharedExecutor::new(executor(folder.path())).allowing(allowance);
        let catalogue = catalogue(folder.path()).unwrap();
        let service = Service::start_on(&folder, catalogue, vec![("local".to_owned(), shared)]).await;
        let text = "for i in 1 2 3 4 5 6; do sleep 1000 & done; wait";
        let one = service.place(text, 0, 600).await;
        let over = service.over(one.id).await;
        let limit = Limit::Processes;
        assert_eq!(over.outcome, Some(RunOutcome::Exceeded { limit }));
        let events = agreements::events_of_agreement(&service.store, one.id)
            .await
            .unwrap();
        assert!(
            events
                .iter()
                .any(|event| event.detail == "stopped because it took more processes than it may"),
            "{events:?}"
        );
        let executions = executions::executions_of_agreement(&service.store, one.id)
            .await
            .unwrap();
        assert_eq!(executions[0].outcome, RunOutcome::Exceeded { limit });
        service.stop().await;
    });
}

#[test]
fn a_party_whose_folders_have_more_than_its_quota_has_no_job_started_and_is_told_why() {
    block_on(async {
        let folder = folder();
        let folders = JobFolders::new(folder.path(), Some(1 << 20)).unwrap();
        let shared = SharedExecutor::new(executor(folder.path())).among(folders.clone());
        let catalogue = catalogue(folder.path()).unwrap();
        let service = Service::start_on(&folder, catalogue, vec![("local".to_owned(), shared)]).await;
        let fills = service.place("head -c 3000000 /dev/zero > file", 0, 600).await;
        service.completes(fills.id).await;
        folders.enforce_quotas().unwrap();
        let next = service.place("touch ran", 0, 600).await;
        let over = service.over(next.id).await;
        let limit = Limit::Files;
        assert_eq!(
            (over.outcome, over.started),
            (Some(RunOutcome::Exceeded { limit }), None)
        );
        let events = agreements::events_of_agreement(&service.store, next.id)
            .await
            .unwrap();
        let told = "not started because its party's jobs take more room for files than they may";
        assert!(events.iter().any(|event| event.detail == told), "{events:?}");
        assert!(!service.file(&next, "").exists());
        assert_eq!(folders.remove_ended(fills.id).unwrap(), Removal::Removed);
        assert_eq!(folders.remove_ended(fills.id).unwrap(), Removal::NothingThere);
        let last = service.place("true", 0, 600).await;
        service.completes(last.id).await;
        service.stop().await;
    });
}
