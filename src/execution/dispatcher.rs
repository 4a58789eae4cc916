//! The task that makes the plan happen: begins the slots that are due, has their jobs started, follows them, stops those
//! of terminated agreements, and tells the planner how they went.
//!
//! It remembers nothing that matters. In each round it asks the planner what is to run and the executor how each of it
//! stands, and does what is missing between the two; what failed, or was cut off by a crash, is simply still missing in
//! the next round. So a restart is no special case.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scheduler::Time;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use uuid::Uuid;

use super::local::OUTPUT_LIMIT;
use super::{ExecutionError, Executor, JobSpec, JobStatus};
use crate::agreement::{Agreement, AgreementState, JobEnd, Outcome};
use crate::catalogue::Catalogue;
use crate::clock::{Clock, MICROS_PER_SECOND};
use crate::planner::{self, Planner};

/// How often running jobs are looked at.
const TICK: Duration = Duration::from_millis(200);
/// The longest wait with nothing running: the clock may be stepped, so it is looked at again.
const IDLE: Duration = Duration::from_secs(1);
/// Agreements attended to at the same time: enough for their reports to share transactions, few enough to leave disk and
/// planner to others.
const ATTENDED_MAX: usize = 32;
/// How long to wait after a failure before the next try, at first and at most; it doubles in between.
const RETRY: (Duration, Duration) = (TICK, Duration::from_secs(10));

/// Makes the plan happen.
pub struct Dispatcher {
    hands: Arc<Hands>,
    /// What goes wrong at the moment, by agreement; `None` for what concerns them all.
    troubles: HashMap<Option<Uuid>, Trouble>,
}

/// What it acts with.
struct Hands {
    planner: Planner,
    executor: Box<dyn Executor>,
    catalogue: Arc<Catalogue>,
    /// The provider's data folder.
    files: PathBuf,
    clock: Clock,
}

/// Why an agreement could not be attended to, or the planner asked; every one is tried again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Planner(#[from] planner::Error),
    #[error(transparent)]
    Executor(#[from] ExecutionError),
    #[error("the task was cut off")]
    CutOff(#[from] tokio::task::JoinError),
}

/// A failure that lasts.
struct Trouble {
    /// What was last said about it.
    message: String,
    wait: Duration,
    next_try: Instant,
}

impl Dispatcher {
    /// A dispatcher of the planner's jobs to an executor, with the applications and the data folder of the provider.
    /// The executor stops jobs by the system's clock; `clock` only decides when their slots begin.
    pub fn new(
        planner: Planner,
        executor: impl Executor + 'static,
        catalogue: Arc<Catalogue>,
        files: PathBuf,
        clock: Clock,
    ) -> Self {
        let hands = Hands {
            planner,
            executor: Box::new(executor),
            catalogue,
            files,
            clock,
        };
        Self {
            hands: Arc::new(hands),
            troubles: HashMap::new(),
        }
    }

    /// Runs until `stop` is cancelled. Jobs that run then run on, and are followed again after the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut due = self.hands.planner.subscribe();
        // Those of an earlier run of the service are followed from the start.
        let mut following = true;
        while !stop.is_cancelled() {
            following = self.round(following).await;
            let next = *due.borrow_and_update();
            let wait = if following { TICK } else { self.until(next) };
            tokio::select! {
                () = stop.cancelled() => {}
                changed = due.changed() => {
                    // Without a planner nothing is due, and soon somebody cancels.
                    if changed.is_err() {
                        tokio::time::sleep(wait).await;
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// How long there is nothing to do when that is the next instant with something due. No less than a tick: what fails
    /// is tried again, but not at once.
    fn until(&self, next: Option<Time>) -> Duration {
        let left = next.map(|at| at.seconds().saturating_mul(MICROS_PER_SECOND) - self.hands.clock.micros());
        left.map_or(IDLE, |left| {
            Duration::from_micros(u64::try_from(left).unwrap_or(0))
        })
        .clamp(TICK, IDLE)
    }

    /// Begins what is due and attends to what runs; answers whether anything may be running.
    async fn round(&mut self, following: bool) -> bool {
        if !self.may_try(None) {
            return following;
        }
        let outcome = self.what_runs(following).await;
        self.note(None, outcome.as_ref().err());
        let Ok(running) = outcome else { return true };
        let any = !running.is_empty();
        self.troubles
            .retain(|id, _| running.iter().any(|agreement| Some(agreement.id) == *id));
        self.attend_to_all(running).await;
        any
    }

    /// Begins what is due, and lists what is to run now.
    async fn what_runs(&self, following: bool) -> Result<Vec<Agreement>, Failure> {
        let planner = &self.hands.planner;
        let due = *planner.subscribe().borrow();
        let begun = if due.is_some_and(|at| at <= self.hands.clock.now()) {
            planner.begin_due().await?
        } else {
            Vec::new()
        };
        if following || !begun.is_empty() {
            Ok(planner.running().await?)
        } else {
            Ok(Vec::new())
        }
    }

    /// Attends to each agreement, several at a time, and never to one twice at a time.
    async fn attend_to_all(&mut self, agreements: Vec<Agreement>) {
        let mut tasks = JoinSet::new();
        let mut rest = agreements
            .into_iter()
            .filter(|agreement| self.may_try(Some(agreement.id)))
            .collect::<Vec<_>>();
        let mut results = Vec::new();
        loop {
            while tasks.len() < ATTENDED_MAX
                && let Some(agreement) = rest.pop()
            {
                let hands = Arc::clone(&self.hands);
                tasks.spawn(async move { (agreement.id, hands.attend(agreement).await) });
            }
            match tasks.join_next().await {
                Some(Ok(result)) => results.push(result),
                Some(Err(cut_off)) => error!(%cut_off, "attending to an agreement failed"),
                None => break,
            }
        }
        for (id, result) in results {
            self.note(Some(id), result.as_ref().err());
        }
    }

    /// Whether it is time for a try, as far as earlier failures go.
    fn may_try(&self, of: Option<Uuid>) -> bool {
        self.troubles
            .get(&of)
            .is_none_or(|trouble| trouble.next_try <= Instant::now())
    }

    /// Keeps account of what fails: says it when it is new, and when it is over.
    fn note(&mut self, of: Option<Uuid>, failure: Option<&Failure>) {
        let Some(failure) = failure else {
            if self.troubles.remove(&of).is_some() {
                info!(agreement = ?of, "works again");
            }
            return;
        };
        let message = failure.to_string();
        let before = self.troubles.get(&of);
        if before.is_none_or(|before| before.message != message) {
            warn!(agreement = ?of, %message, "failed; trying again");
        }
        let wait = before.map_or(RETRY.0, |before| (before.wait * 2).min(RETRY.1));
        self.troubles.insert(
            of,
            Trouble {
                message,
                wait,
                next_try: Instant::now() + wait,
            },
        );
    }
}

impl Hands {
    /// Does what is missing between what an agreement says and how its job stands.
    async fn attend(self: Arc<Self>, agreement: Agreement) -> Result<(), Failure> {
        let id = agreement.id;
        match self.blocking(move |executor| executor.follow(id)).await? {
            JobStatus::NotStarted => match self.job_to_start(&agreement) {
                Ok(job) => {
                    info!(agreement = %id, program = %job.program.display(), "starting");
                    self.blocking(move |executor| executor.start(&job)).await
                }
                Err(outcome) => {
                    let ended = self.clock.micros();
                    let end = JobEnd {
                        outcome,
                        started: agreement.started,
                        ended,
                        input_bytes: 0,
                        output_bytes: 0,
                        truncated: false,
                    };
                    self.report_ended(id, end).await
                }
            },
            JobStatus::Running { started } => {
                if agreement.state == AgreementState::ObservedAndTerminating {
                    self.blocking(move |executor| executor.stop(id)).await?;
                }
                match started {
                    Some(at) if agreement.started.is_none() => {
                        known(self.planner.report_started(id, at).await)
                    }
                    _ => Ok(()),
                }
            }
            JobStatus::Ended(end) => self.report_ended(id, end).await,
        }
    }

    /// The job of an agreement that nobody has started; where it is not to be started, what has become of it.
    fn job_to_start(&self, agreement: &Agreement) -> Result<JobSpec, Outcome> {
        if agreement.state == AgreementState::ObservedAndTerminating {
            return Err(Outcome::Terminated);
        }
        // A start that was reported and has left no trace was on a disk that is gone: it is not repeated.
        if agreement.started.is_some() || agreement.placement.end <= self.clock.now() {
            return Err(Outcome::Lost);
        }
        let job = agreement.job.as_ref().ok_or(Outcome::Lost)?;
        let Some(application) = self.catalogue.find(&job.application, job.version.as_deref()) else {
            error!(agreement = %agreement.id, application = job.application, "no longer in the catalogue");
            return Err(Outcome::Lost);
        };
        Ok(JobSpec {
            agreement: agreement.id,
            program: application.program.clone(),
            arguments: job.arguments.clone(),
            inputs: application
                .files(&job.arguments)
                .into_iter()
                .map(|name| self.files.join(name))
                .collect(),
            nodes: agreement.nodes,
            slot_end: agreement
                .placement
                .end
                .seconds()
                .saturating_mul(MICROS_PER_SECOND),
            output_limit: OUTPUT_LIMIT,
        })
    }

    async fn report_ended(&self, id: Uuid, end: JobEnd) -> Result<(), Failure> {
        known(self.planner.report_ended(id, end).await)?;
        info!(agreement = %id, outcome = end.outcome.word(), "ended");
        Ok(())
    }

    /// Calls the executor off the async threads.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&dyn Executor) -> Result<T, ExecutionError> + Send + 'static,
    ) -> Result<T, Failure> {
        let hands = Arc::clone(self);
        Ok(tokio::task::spawn_blocking(move || call(hands.executor.as_ref())).await??)
    }
}

/// A report that the planner has no use for was made before: its answer was lost, not its effect.
fn known(reported: Result<(), planner::Error>) -> Result<(), Failure> {
    match reported {
        Err(planner::Error::NotFound) => Ok(()),
        reported => Ok(reported?),
    }
}
