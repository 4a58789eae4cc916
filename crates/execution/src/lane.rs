//! One resource's side of the dispatcher. All calls of its executor are made here: each under a time-out, only a limited
//! number at a time, and never two about one agreement, so that an executor that hangs holds a few threads and delays no
//! other.

pub(super) mod nodes;
pub(super) mod prepare;
mod staging;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use domain::agreement::{Agreement, AgreementState, CannotStart, JobEnd, Limit, Run, RunOutcome};
use domain::catalogue::{Application, Catalogue};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use scheduler::{Interval, counted};
use task::KeptTasks;
use task::lock::lock;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{error, info, warn};
use uuid::Uuid;
use writer::Planner;

use super::{ExecutionError, Executor, JobSpec, JobStatus, PieceSpec, SaveWork};
use crate::faults::{Faults, ResourceUse};
use crate::files::inputs::{InputFiles, MirrorError};
use crate::hosts::Hosts;
use crate::job::limits::OUTPUT_LIMIT;
use crate::job::spec::WORTH_STARTING;
use crate::lane::nodes::processors_on_nodes;
use crate::lane::staging::{
    end_after_staging, end_unstarted_in_staging, find_job_with_staged_files, is_staged_start_unreported,
    report_started_after_staging, start_after_staging,
};
use crate::lead::{Lead, Report};
use crate::shared_executor::{CALLS_MAX, CallSubject, SharedExecutor};
use crate::staging::Stager;

/// The shared parts of all lanes.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) planner: Planner,
    /// Where it is asked about jobs, and told of them.
    pub(super) lead: Lead,
    /// The replicas that local resources belong to.
    pub(super) hosts: Hosts,
    pub(super) catalogue: watch::Receiver<Arc<Catalogue>>,
    /// The files that jobs may read.
    pub(super) files: InputFiles,
    /// It moves files of jobs.
    pub(super) staging: Stager,
    pub(super) clock: Clock,
    /// The present faults, for operators.
    pub(super) faults: Faults,
    /// The clusters that have not been looked at since the start.
    pub(super) unseen: watch::Sender<BTreeSet<String>>,
    /// The tasks of the lanes are kept among these.
    pub(super) tasks: KeptTasks,
}

/// Why an agreement could not be attended to, or the planner asked; every one is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Planner(#[from] planner::Error),
    /// The uploaded files could not be brought up to date.
    #[error(transparent)]
    Files(#[from] MirrorError),
    #[error(transparent)]
    Executor(#[from] ExecutionError),
    /// Of the job of an agreement that another process has started.
    #[error(
        "the job of the agreement {0} has begun, and this process has no records of it: they are with the process that has started it"
    )]
    NoRecords(Uuid),
    #[error("the task was cut off")]
    CutOff(#[from] JoinError),
    /// The faults that its checks have found, in their words.
    #[error("{0}")]
    Unfit(String),
    #[error("the executor has not answered within {}", counted(.0.as_secs_f64(), "second"))]
    NoAnswer(Duration),
}

/// One resource with its executor.
pub(super) struct Lane {
    pub(super) resource: String,
    pub(super) shared: SharedExecutor,
    pub(super) context: Arc<Context>,
    /// Whether the plan has been handed over once since the start: it is known then how early slots are reserved.
    pub(super) has_followed: AtomicBool,
    /// Has the nodes looked at now.
    pub(super) look_now: Notify,
    /// Whether the plan that was last handed over to a cluster was empty.
    pub(super) is_cleared: AtomicBool,
}

/// Why a job is not started.
enum StartFailure {
    /// Its time is over, one way or another.
    Over(RunOutcome),
    /// It never can be.
    Unable(CannotStart),
}

impl From<RunOutcome> for StartFailure {
    fn from(outcome: RunOutcome) -> Self {
        Self::Over(outcome)
    }
}

/// Says on its end that a call has returned.
struct OpenCall {
    shared: SharedExecutor,
    about: CallSubject,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        lock(&self.shared.asked).remove(&self.about);
    }
}

impl Lane {
    /// A lane for a resource with this executor.
    pub(super) fn new(resource: String, shared: SharedExecutor, context: Arc<Context>) -> Self {
        Self {
            resource,
            shared,
            context,
            has_followed: AtomicBool::new(false),
            look_now: Notify::new(),
            is_cleared: AtomicBool::new(false),
        }
    }

    /// Attends to each agreement, several at a time, and never to one twice at a time. Once the executor has not answered,
    /// the rest is left for another time.
    pub(super) async fn attend_to_all(
        self: &Arc<Self>,
        agreements: Vec<Agreement>,
    ) -> Vec<(Uuid, Result<(), Failure>)> {
        let mut tasks = JoinSet::new();
        let mut rest = agreements.into_iter();
        let mut results = Vec::new();
        loop {
            while tasks.len() < CALLS_MAX
                && let Some(agreement) = rest.next()
            {
                let lane = Arc::clone(self);
                tasks.spawn(async move { (agreement.id, lane.attend(agreement).await) });
            }
            match tasks.join_next().await {
                Some(Ok(result)) => {
                    if let (_, Err(Failure::NoAnswer(_))) = &result {
                        rest = Vec::new().into_iter();
                    }
                    results.push(result);
                }
                Some(Err(cut_off)) => error!(%cut_off, "attending to an agreement failed"),
                None => break,
            }
        }
        results
    }

    /// Does the missing steps between the state of an agreement and the state of its job.
    async fn attend(&self, agreement: Agreement) -> Result<(), Failure> {
        let (id, own) = (agreement.id, Run::from(&agreement));
        let work = own.agreement;
        if own.attempt > 0 {
            let way = self.call(Some(work), move |executor| executor.end_earlier_attempts(own));
            if !way.await? {
                return Ok(());
            }
            if agreement.waits_to_run_again() {
                // Nothing is left of the job that was lost, and the next one waits for its slot.
                return Ok(self.context.lead.report_stopped(id).await?);
            }
        }
        let end = slot_end_in_lane(&agreement);
        // It goes on as it was started where its application can no longer save it.
        let application = self.application_of(&agreement);
        let application = application.filter(|application| application.checkpoint.is_some());
        let save = application.map(|application| save_of_work_in_lane(&agreement, &application));
        let is_over = agreement.state.is_final();
        let look = move |executor: &dyn Executor| {
            let status = executor.poll(own)?;
            if matches!(status, JobStatus::Running { .. }) && !is_over {
                if let Some(save) = save {
                    executor.save_before_end(own, save)?;
                }
                executor.keep_until(own, end)?;
            }
            Ok(status)
        };
        let status = self.call(Some(work), look).await?;
        let end = match status {
            JobStatus::NotStarted if lane_lacks_records(self, &agreement) => {
                return Err(Failure::NoRecords(id));
            }
            JobStatus::NotStarted if self.starts_later(&agreement).await? => {
                end_unstarted_in_staging(self, &agreement, RunOutcome::Lost).await?
            }
            JobStatus::NotStarted => match find_job_with_staged_files(self, &agreement).await? {
                Ok(job) => return start_after_staging(self, &agreement, job).await,
                Err(StartFailure::Over(outcome)) => {
                    end_unstarted_in_staging(self, &agreement, outcome).await?
                }
                Err(StartFailure::Unable(why)) => return self.report_unable(&agreement, why).await,
            },
            JobStatus::Running { started } => {
                if is_over || agreement.state == AgreementState::ObservedAndTerminating {
                    self.call(Some(work), move |executor| executor.stop(own)).await?;
                }
                if let Some(at) = started.filter(|_| is_staged_start_unreported(&agreement)) {
                    report_started_after_staging(self, &agreement, at).await?;
                }
                None
            }
            JobStatus::Ended(end) => end_after_staging(self, &agreement, end).await?,
        };
        match end {
            Some(end) => self.report_ended(&agreement, end).await,
            None => Ok(()),
        }
    }

    /// Starts a job, where the saved work that it is to go on from is there.
    async fn start(&self, agreement: &Agreement, mut job: JobSpec) -> Result<(), Failure> {
        job.processors = processors_on_nodes(self, agreement).await;
        let start = move |executor: &dyn Executor| {
            if !executor.can_resume(&job)? {
                return Ok(false);
            }
            info!(agreement = %job.agreement, program = %job.program.display(), "starting");
            executor.start(&job).map(|()| true)
        };
        if self.call(Some(agreement.execution_id()), start).await? {
            return Ok(());
        }
        self.report_unable(agreement, CannotStart::NothingSaved).await
    }

    /// The catalogue's entry for the application of an agreement.
    fn application_of(&self, agreement: &Agreement) -> Option<Application> {
        let job = agreement.job.as_ref()?;
        let catalogue = self.context.catalogue.borrow();
        let found = catalogue.find(&job.application, job.version.as_deref());
        found.cloned()
    }

    /// The job of an agreement that was not started; where it is not to be started, why.
    fn job_to_start(&self, agreement: &Agreement) -> Result<JobSpec, StartFailure> {
        if agreement.state == AgreementState::ObservedAndTerminating {
            return Err(RunOutcome::Terminated.into());
        }
        // An agreement that is over has lost its nodes. A start that was reported and has left no trace was on a disk that is
        // gone: it is not repeated.
        let is_past = agreement.slot().end <= self.context.clock.now();
        let is_gone = agreement.slot_started().is_some() && !agreement.is_being_brought();
        if is_past || agreement.state.is_final() || is_gone {
            return Err(RunOutcome::Lost.into());
        }
        let job = agreement.job.as_ref().ok_or(RunOutcome::Lost)?;
        let Some(application) = self.application_of(agreement) else {
            error!(agreement = %agreement.id, application = job.application, "no longer in the catalogue");
            return Err(StartFailure::Unable(CannotStart::NoApplication));
        };
        let folders = self.shared.folders.as_ref();
        if folders.is_some_and(|folders| folders.excess(&agreement.party).is_some()) {
            let limit = Limit::Files;
            return Err(RunOutcome::Exceeded { limit }.into());
        }
        let limits = self
            .shared
            .allowance
            .of(application.limits, agreement.slot_nodes());
        let piece = piece_in_lane(agreement, &application);
        let save = piece.and_then(|piece| piece.save);
        if save.is_some_and(|save| {
            is_too_late_to_begin_in_lane(agreement.slot(), save, self.context.clock.micros())
        }) {
            return Err(RunOutcome::Lost.into());
        }
        let resumes = piece.filter(|piece| piece.number > 1);
        let resume = application.checkpoint.as_ref().filter(|_| resumes.is_some());
        let resume = resume.into_iter().flat_map(|checkpoint| &checkpoint.resume);
        Ok(JobSpec {
            agreement: agreement.execution_id(),
            party: agreement.party.clone(),
            application: job.application.clone(),
            program: application.program.clone(),
            arguments: job.arguments.iter().chain(resume).cloned().collect(),
            inputs: application
                .files(&job.arguments)
                .into_iter()
                .filter_map(|name| self.context.files.find(&agreement.party, name))
                .collect(),
            staged: Vec::new(),
            nodes: agreement.slot_nodes(),
            processors: Vec::new(),
            slot_end: slot_end_in_lane(agreement),
            output_limit: limits.output.unwrap_or(OUTPUT_LIMIT),
            limits,
            isolation: application.isolation,
            piece,
            restarts: job.restarts,
        })
    }

    /// Whether a job starts in another slot, because more than half of its slot is over, and not by what is brought for it: the
    /// service was down. Where there is no other one, the job has the rest.
    async fn starts_later(&self, agreement: &Agreement) -> Result<bool, Failure> {
        let slot = agreement.slot();
        let late = self.context.clock.now() - slot.start;
        let waits_for_files = agreement
            .job
            .as_ref()
            .is_some_and(|job| job.fetched().next().is_some());
        let is_begun = agreement.state == AgreementState::Observed && agreement.slot_started().is_none();
        let is_late = late > slot.duration() / 2 && slot.end > self.context.clock.now();
        if !is_begun || !is_late || waits_for_files || agreement.slots.is_split() {
            return Ok(false);
        }
        Ok(self.context.lead.could_start_later(agreement.id).await?)
    }

    async fn report_ended(&self, agreement: &Agreement, end: JobEnd) -> Result<(), Failure> {
        let (outcome, began, staging) = (end.outcome.word(), end.started, end.staging.clone());
        let told = self
            .context
            .lead
            .report(agreement.into(), Report::Ended(Box::new(end), staging))
            .await;
        if is_report_of_lane_taken(told)? {
            if let Some(at) = began.filter(|_| agreement.slot_started().is_none()) {
                self.note_delay(agreement, at);
            }
            info!(agreement = %agreement.id, outcome, "ended");
        }
        Ok(())
    }

    /// Counts a job that began at an instant, by how late that was in its slot.
    fn note_delay(&self, agreement: &Agreement, began: Micros) {
        let due = agreement.slot().start.seconds().saturating_mul(MICROS_PER_SECOND);
        let delay = Duration::from_micros((began - due).max(0).unsigned_abs());
        lock(&self.shared.delays).observe(delay.as_secs_f64());
    }

    async fn report_unable(&self, agreement: &Agreement, why: CannotStart) -> Result<(), Failure> {
        let told = self
            .context
            .lead
            .report(agreement.into(), Report::Unable(why))
            .await;
        if is_report_of_lane_taken(told)? {
            warn!(agreement = %agreement.id, why = why.words(), "cannot go on");
        }
        Ok(())
    }

    /// Keeps account of failures: reports each when it is new, and when it is over.
    pub(super) fn note(&self, doing: ResourceUse, failure: Option<&Failure>) {
        let (resource, what) = (&self.resource, doing.word());
        let message = failure.map(ToString::to_string);
        let now = self.context.clock.micros();
        if self.context.faults.note(resource, doing, message.clone(), now) {
            match message {
                None => info!(resource, what, "works again"),
                Some(message) => warn!(resource, what, message, "failed; trying again"),
            }
        }
    }

    /// Calls the executor off the async threads, unless it is still at an earlier call about the same.
    async fn call<T: Send + 'static>(
        &self,
        about: Option<Uuid>,
        call: impl FnOnce(&dyn Executor) -> Result<T, ExecutionError> + Send + 'static,
    ) -> Result<T, Failure> {
        self.call_within(self.shared.executor.patience(), about, call)
            .await
    }

    /// Makes a call as [`Lane::call`] does, which may take as long as `patience`.
    async fn call_within<T: Send + 'static>(
        &self,
        patience: Duration,
        about: Option<Uuid>,
        call: impl FnOnce(&dyn Executor) -> Result<T, ExecutionError> + Send + 'static,
    ) -> Result<T, Failure> {
        let no_answer = || Failure::NoAnswer(patience);
        let asked = self.open_call_about(about).ok_or_else(no_answer)?;
        let shared = &self.shared;
        let answer = shared.answer_within(patience, &shared.calls, asked, call);
        Ok(answer.await.ok_or_else(no_answer)???)
    }

    /// Notes that a call about something is made; `None` while an earlier one has not returned.
    fn open_call_about(&self, about: Option<Uuid>) -> Option<OpenCall> {
        let about = (self.resource.clone(), about);
        let is_new = lock(&self.shared.asked).insert(about.clone());
        is_new.then(|| OpenCall {
            shared: self.shared.clone(),
            about,
        })
    }
}

/// The data for the job of an agreement about the slot that it serves.
fn piece_in_lane(agreement: &Agreement, application: &Application) -> Option<PieceSpec> {
    let pieces = agreement.slots.is_split().then_some(agreement.slots.len())?;
    Some(PieceSpec {
        number: agreement.slot_number(),
        of: u32::try_from(pieces).ok()?,
        save: save_of_work_in_lane(agreement, application),
    })
}

/// How the running work of an agreement is told to save itself.
fn save_of_work_in_lane(agreement: &Agreement, application: &Application) -> Option<SaveWork> {
    let checkpoint = application.checkpoint.as_ref();
    let save = checkpoint.filter(|_| agreement.has_more_slots());
    save.map(|checkpoint| SaveWork {
        signal: checkpoint.signal,
        grace: i64::from(checkpoint.grace).saturating_mul(MICROS_PER_SECOND),
    })
}

/// Whether a slot would have to save its work before it has done any to speak of.
fn is_too_late_to_begin_in_lane(slot: Interval, save: SaveWork, now: Micros) -> bool {
    let [whole, left] = [slot.start.seconds() * MICROS_PER_SECOND, now]
        .map(|from| slot.end.seconds() * MICROS_PER_SECOND - from - save.grace);
    left < WORTH_STARTING.min(whole / 2)
}

/// When the slot of an agreement ends.
fn slot_end_in_lane(agreement: &Agreement) -> Micros {
    agreement.slot().end.seconds().saturating_mul(MICROS_PER_SECOND)
}

/// Whether another process may have the records of an agreement's job that was not started here. Such a job may still run, and is left
/// alone until the records are there, or its agreement is terminated.
fn lane_lacks_records(lane: &Lane, agreement: &Agreement) -> bool {
    let has_begun = agreement.slot_started().is_some() && !agreement.is_being_brought();
    let goes_on = agreement.state == AgreementState::Observed;
    let has_others = lane.context.hosts.is_one_of_several();
    lane.shared.is_cluster() && has_others && has_begun && goes_on
}

/// A report that the planner has no use for was made before, and its answer was lost, not its effect; or it came too late.
/// Whether it had one.
fn is_report_of_lane_taken(reported: Result<(), planner::Error>) -> Result<bool, Failure> {
    match reported {
        Err(planner::Error::NotFound) => Ok(false),
        reported => Ok(reported.map(|()| true)?),
    }
}

#[cfg(test)]
mod tests {
    use domain::catalogue::CheckpointSignal;
    use scheduler::Time;

    use super::*;

    #[test]
    fn a_piece_is_not_started_where_it_would_have_to_save_its_work_at_once() {
        let late = |seconds: i64, grace: i64, now_millis: i64| {
            let save = SaveWork {
                signal: CheckpointSignal::Term,
                grace: grace * MICROS_PER_SECOND,
            };
            is_too_late_to_begin_in_lane(
                Interval::new(Time(100), Time(100 + seconds)),
                save,
                now_millis * 1_000,
            )
        };
        assert!(!late(60, 10, 100_000) && !late(60, 10, 149_000));
        assert!(late(60, 10, 149_001) && late(60, 10, 159_000));
        assert!(!late(11, 10, 100_500), "half of what it has besides is enough");
        assert!(late(11, 10, 100_501));
    }
}
