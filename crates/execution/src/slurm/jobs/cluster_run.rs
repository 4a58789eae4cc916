//! A run on a cluster: its job is submitted into the reservation of its agreement, followed to its end, cancelled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::agreement::{JobEnd, Run, RunOutcome};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};
use task::lock::lock;
use tracing::warn;

use crate::job::folder::Folder;
use crate::job::folder::outputs::Stream;
use crate::job::spec::WORTH_STARTING;
use crate::slurm::cluster::{SlurmCluster, TRY_EVERY};
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::{Operation, SubmitOperation};
use crate::slurm::job_row::{JobRow, JobState};
use crate::slurm::jobs::accounting::outcome_by_accounting;
use crate::slurm::jobs::cancel::cancel_jobs;
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::jobs::script::{OVERTIME, STOPPED, TERMINATED, TURNED_AWAY};
use crate::slurm::jobs::shared_folder::{EndInSharedFolder, SharedFolder};
use crate::slurm::jobs::submission::submit_with_own_rights;
use crate::slurm::query::query_exit_of_job;
use crate::{ExecutionError, JobSpec, JobStatus, SaveWork};

/// How long past its slot's end a job is waited for that has begun and that Slurm does not know.
const ORPHAN_WAIT: Micros = 60 * MICROS_PER_SECOND;
/// How long after Slurm has given it its nodes a job may say that its program began: its user writes that record, and would be
/// paid for a late start after a later one.
const BEGINS_WITHIN: Micros = 3 * MICROS_PER_SECOND;
/// Seconds that only a job lasts that has run.
const RAN: i64 = 3;
/// By how much submissions that come to nothing slow the next one down at most.
const TRIES_SLOWER_MAX: u32 = 30;

/// A run on a cluster that was asked for, with its folders.
pub(crate) struct ClusterRun<'a> {
    cluster: &'a SlurmCluster,
    /// The service's own folder of it.
    pub(crate) folder: Folder,
    pub(crate) job: JobSpec,
    /// Its folder on the disk of the nodes.
    pub(crate) work: SharedFolder,
}

impl<'c> ClusterRun<'c> {
    /// The run that a folder is of; none before its intent.
    pub(crate) fn in_folder(
        cluster: &'c SlurmCluster,
        folder: Folder,
    ) -> Result<Option<Self>, ExecutionError> {
        let Some(job) = folder.spec()? else {
            return Ok(None);
        };
        Ok(Some(Self {
            work: Self::shared_folder(cluster, &job)?,
            cluster,
            folder,
            job,
        }))
    }

    /// The folder of a job on the disk of the nodes.
    pub(crate) fn shared_folder(
        cluster: &SlurmCluster,
        job: &JobSpec,
    ) -> Result<SharedFolder, ExecutionError> {
        let (id, owner) = (job.run(), owner_of_jobs(cluster, &job.party)?);
        let work_dir = &cluster.settings.work_dir;
        let first = if id.slot > 1 {
            let first = Run::first(job.agreement);
            let noted = cluster.job_folder(first).shared()?;
            Some(noted.unwrap_or_else(|| work_dir.join(first.to_string())))
        } else {
            None
        };
        Ok(SharedFolder::of(work_dir, id, first, owner).with_helper(cluster.helper.as_ref(), &job.party))
    }

    /// How its job stands; submits it where it should be there and is not.
    pub(crate) fn status(&self) -> Result<JobStatus, ExecutionError> {
        let (cluster, folder, job, work) = (self.cluster, &self.folder, &self.job, &self.work);
        let now = Clock::system().micros();
        let overtime = now > job.slot_end + OVERTIME;
        let recorded = work.ended();
        let listed = match (cluster.jobs_listed_by_cluster(), recorded) {
            // After its slot nothing is gained by a wrong word, and a controller may be down for days.
            (Err(_), Some(ended)) if overtime => {
                return self.conclude_as_recorded(ended, None).map(JobStatus::Ended);
            }
            (listed, _) => listed?,
        };
        let ours: Vec<&JobRow> = self.among(&listed).collect();
        // Where Slurm ends a job, its program's end may be recorded as its own before Slurm says that it was cancelled.
        let awaits_slurm =
            recorded.is_some_and(|ended| ended.status == TERMINATED) && !overtime && !folder.stop_asked();
        // Its user may write any record of its end; while Slurm says that it runs, it does.
        let runs = |row: &&&JobRow| {
            let is_over = row.state == JobState::Completing && recorded.is_some() && !awaits_slurm;
            !row.state.is_final() && !is_over
        };
        let alive: Vec<&JobRow> = ours.iter().filter(runs).copied().collect();
        if !alive.is_empty() {
            let name = cluster.name_of_run(job.run());
            if alive.iter().any(|row| row.is_put_off(&name)) {
                folder.note_put_off()?;
            }
            if (overtime || folder.stop_asked()) && cluster.may_try(job.run(), TRY_EVERY) {
                cancel_jobs(cluster, &alive)?;
            }
            let running = alive.iter().find(|row| row.state == JobState::Running);
            let started = running.map_or_else(|| work.started(), |row| self.started(Some(row), now));
            return Ok(JobStatus::Running { started });
        }
        // Of several submissions only one has begun; the others were turned away at once.
        let row = ours.iter().max_by_key(|row| row.lasted()).copied();
        // Where the program's end was seen before the script was told of it, the script has taken that for its own.
        // So it is also where a node failed: Slurm ends the rest of its job.
        let by_slurm = row.is_some_and(|row| matches!(row.state, JobState::Cancelled | JobState::Lost));
        let recorded = recorded.filter(|ended| !(by_slurm && ended.status == TERMINATED));
        if let Some(ended) = recorded {
            return self.conclude_as_recorded(ended, row).map(JobStatus::Ended);
        }
        for row in &ours {
            if let Some(outcome) = self.outcome_by_slurm(row)? {
                let ended = row.end.map_or(now, |end| end.seconds() * MICROS_PER_SECOND);
                let end = self.conclude(outcome, ended.min(now), Some(row))?;
                return Ok(JobStatus::Ended(end));
            }
        }
        self.status_of_unknown(u32::try_from(ours.len()).unwrap_or(u32::MAX))
    }

    /// Its jobs among those that Slurm lists. Any user may give a job its name.
    pub(crate) fn among<'a>(&self, listed: &'a [JobRow]) -> impl Iterator<Item = &'a JobRow> + use<'a> {
        let (name, user) = (self.cluster.name_of_run(self.job.run()), self.work.owner.user);
        let ours = listed.iter();
        ours.filter(move |row| row.name == name && row.user == user)
    }

    /// How a job stands that Slurm does not know, or knows only by `tried` submissions that came to nothing.
    fn status_of_unknown(&self, tried: u32) -> Result<JobStatus, ExecutionError> {
        let (cluster, folder, job, work) = (self.cluster, &self.folder, &self.job, &self.work);
        let now = Clock::system().micros();
        let over = |outcome| self.conclude(outcome, now, None).map(JobStatus::Ended);
        if work.is_claimed()? {
            // Slurm has forgotten it. It may run on, and must not be run again; its script writes down its end.
            if now > job.slot_end + ORPHAN_WAIT {
                return over(RunOutcome::Lost);
            }
            let started = work.started();
            return Ok(JobStatus::Running { started });
        }
        if folder.stop_asked() {
            return over(RunOutcome::Terminated);
        }
        // It would do nothing but save its work.
        let save = folder.save(job)?;
        if now >= job.slot_end - save.map_or(0, |save| save.grace + WORTH_STARTING) {
            return over(RunOutcome::Lost);
        }
        // Without its nodes Slurm would only refuse it.
        let pause = TRY_EVERY * (tried + 1).min(TRIES_SLOWER_MAX);
        if cluster.may_be_reserved(job) && cluster.may_try(job.run(), pause) {
            folder.note_shared(work.path())?;
            let began = Instant::now();
            if work.create(job, save, &folder.work())? {
                folder.note_copied(micros_of_run(began.elapsed()))?;
            }
            self.submit(save)?;
        }
        Ok(JobStatus::Running { started: None })
    }

    /// Has its job submitted, which has its folder.
    fn submit(&self, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        let (cluster, work) = (self.cluster, &self.work);
        cluster.check_lead()?;
        let submission = SubmitOperation::of(&self.job, save, work.place.clone());
        if cluster.helper.is_none() {
            return submit_with_own_rights(cluster, &submission, work);
        }
        let submitted = carry_out_operation(cluster, Operation::Submit(Box::new(submission)));
        cluster.forget_list();
        Ok(submitted.map(drop)?)
    }

    /// How a job ended that left no record of its own; `None` for one that came to nothing.
    fn outcome_by_slurm(&self, row: &JobRow) -> Result<Option<RunOutcome>, ExecutionError> {
        let (job, stop_asked) = (&self.job, self.folder.stop_asked());
        let lasted_until = |at| row.end.is_some_and(|end| end >= second_of(at));
        let cut = lasted_until(job.slot_end);
        let claimed = self.work.is_claimed()?;
        let had_nodes = claimed || !row.nodes.is_empty();
        Ok(match row.state {
            // Its user has given the name to something else: our script claims a job before it starts it.
            JobState::Completed | JobState::TimedOut if !claimed && row.lasted() < RAN => None,
            JobState::Waiting | JobState::Starting | JobState::Running | JobState::Completing => None,
            // Slurm does not know whether it was told to save its work before it ended.
            JobState::Completed => Some(match self.folder.save(job)? {
                Some(save) if lasted_until(job.slot_end - save.grace) => {
                    outcome_of_saved_cluster_run(stop_asked)
                }
                _ => RunOutcome::Completed,
            }),
            JobState::TimedOut => Some(RunOutcome::Killed),
            JobState::Cancelled if stop_asked => Some(RunOutcome::Terminated),
            // One that waited all slot long was not stopped in anything: the nodes that it was promised never took it, unless
            // its user had put it off, or given them to something else.
            JobState::Cancelled if cut && !had_nodes => {
                let by_its_user = self.folder.was_put_off() || self.was_ousted(row)?;
                let (ended, lost) = (RunOutcome::Terminated, RunOutcome::Lost);
                Some(if by_its_user { ended } else { lost })
            }
            JobState::Cancelled if cut => Some(RunOutcome::Killed),
            JobState::Cancelled => outcome_by_accounting(self.cluster, row, job)?,
            JobState::Lost => Some(RunOutcome::Lost),
            JobState::Failed => match query_exit_of_job(&self.cluster.slurm, &row.id)? {
                exit if TURNED_AWAY.contains(&exit) => None,
                // It was refused, or its nodes could not begin it: nothing that its program did, and worth another try.
                // One that ran has removed its claim.
                _ if !claimed && row.lasted() < RAN => None,
                exit => Some(RunOutcome::Failed { exit }),
            },
        })
    }

    /// Whether another job of the same user has had nodes of the reservation that a job waited for.
    fn was_ousted(&self, row: &JobRow) -> Result<bool, Error> {
        let name = self.cluster.name_of_run(self.job.run());
        let ousts = |other: &JobRow| {
            other.id != row.id
                && other.user == row.user
                && other.reservation.as_deref() == Some(name.as_str())
                && other.lasted() >= RAN
        };
        Ok(self.cluster.jobs_listed_by_cluster()?.iter().any(ousts))
    }

    /// Records the end of a job, with its outputs, where it lasts. Outputs that cannot be read delay nothing.
    fn conclude(
        &self,
        outcome: RunOutcome,
        ended: Micros,
        row: Option<&JobRow>,
    ) -> Result<JobEnd, ExecutionError> {
        let (cluster, folder, job, work) = (self.cluster, &self.folder, &self.job, &self.work);
        let began = Instant::now();
        let (mut output_bytes, mut truncated) = (0, false);
        // The output of all slots is fetched anew with each.
        let common = cluster.job_folder(Run::first(job.agreement));
        for stream in Stream::ALL {
            let mut kept = common.create_output(stream)?;
            match work.copy_output(stream, &mut kept, job.output_limit) {
                Ok((bytes, more)) => (output_bytes, truncated) = (output_bytes + bytes, truncated || more),
                Err(error) => {
                    warn!(agreement = %job.agreement, output = stream.word(), %error, "not fetched");
                    truncated = true;
                }
            }
        }
        // Its party may have removed the inputs of the first slot; a later slot does not know them any more.
        let given = common.spec()?.as_ref().unwrap_or(job).given_for_good();
        let (from, to, agreement) = (work.clone(), folder.work(), job.agreement);
        let fetching = Arc::clone(&cluster.seen.fetching);
        let fetch = move || {
            let _one = lock(&fetching);
            let (bytes, fetched) = from.fetch_files(&given, &to);
            if let Err(error) = &fetched {
                warn!(%agreement, %error, "files not fetched");
            }
            (bytes, fetched.is_ok())
        };
        // The next slot waits for the end of this one.
        let (later, fetched_bytes) = if outcome == RunOutcome::Checkpointed {
            (Some(fetch), 0)
        } else {
            let (bytes, all) = fetch();
            if !all {
                common.note_incomplete()?;
            }
            (None, bytes)
        };
        let outcome = match folder.why_stopped()? {
            Some(excess) if outcome == RunOutcome::Terminated => RunOutcome::Exceeded { limit: excess.limit },
            _ => outcome,
        };
        let given_at = row
            .and_then(|row| row.start)
            .map(|at| at.seconds() * MICROS_PER_SECOND);
        let copied = folder.copy_duration()?;
        let end = JobEnd {
            outcome,
            // One that never had its nodes has not begun, and one that has its claim has.
            started: self
                .started(row.filter(|row| !row.nodes.is_empty()), ended)
                .or(work.is_claimed()?.then_some(given_at.unwrap_or(ended).min(ended))),
            ended,
            input_bytes: job.input_bytes(),
            output_bytes,
            truncated,
            transfer_in: copied.unwrap_or(0),
            transfer_out: micros_of_run(began.elapsed()),
            moved_in: copied.map_or(0, |_| job.input_bytes()),
            moved_out: output_bytes + fetched_bytes,
            late: 0,
            staging: None,
        };
        folder.write_end(&end)?;
        if let Some(fetch) = later {
            let at_once = fetch.clone();
            if std::thread::Builder::new().spawn(fetch).is_err() {
                let _ = at_once();
            }
        }
        Ok(end)
    }

    /// Records the end of its program by its own record.
    pub(crate) fn conclude_as_recorded(
        &self,
        ended: EndInSharedFolder,
        row: Option<&JobRow>,
    ) -> Result<JobEnd, ExecutionError> {
        let stop_asked = self.folder.stop_asked();
        let outcome = match ended.status {
            0 if ended.told => outcome_of_saved_cluster_run(stop_asked),
            0 => RunOutcome::Completed,
            status if STOPPED.contains(&status) && ended.at >= self.job.slot_end => RunOutcome::Killed,
            _ if stop_asked => RunOutcome::Terminated,
            exit => RunOutcome::Failed { exit },
        };
        self.conclude(outcome, ended.at, row)
    }

    /// When its program began: by its user's record, as far as Slurm's own data allow it.
    fn started(&self, row: Option<&JobRow>, now: Micros) -> Option<Micros> {
        let recorded = self.work.started();
        let Some(given) = row.and_then(|row| row.start) else {
            return recorded;
        };
        let given = given.seconds() * MICROS_PER_SECOND;
        let latest = given + BEGINS_WITHIN;
        recorded
            .map(|at| at.clamp(given, latest))
            .or((now > latest).then_some(latest))
    }
}

/// How a job ended that ended well after it was told to save its work.
fn outcome_of_saved_cluster_run(stop_asked: bool) -> RunOutcome {
    if stop_asked {
        RunOutcome::Terminated
    } else {
        RunOutcome::Checkpointed
    }
}

fn micros_of_run(took: Duration) -> Micros {
    Micros::try_from(took.as_micros()).unwrap_or(Micros::MAX)
}
