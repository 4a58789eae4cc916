//! The executor of a cluster, as the dispatcher sees it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::agreement::{JobEnd, Run};
use domain::clock::{Clock, Micros, second_of};
use domain::past::Condition;
use domain::resources::{BusyTime, KeptNodes, NodeReport, Unused};
use scheduler::{Seconds, Time};
use task::lock::lock;
use uuid::Uuid;

use crate::files::job_folders::JobFolders;
use crate::job::folder::Folder;
use crate::slurm::checks::{check_all, check_all_with_job};
use crate::slurm::cluster::{SlurmCluster, TRY_EVERY};
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::{Operation, Part, SharedFolderRecord};
use crate::slurm::job_row::JobState;
use crate::slurm::jobs::cluster_run::ClusterRun;
use crate::slurm::jobs::dry_run::{dry_run_planned_jobs, judge_by_dry_run};
use crate::slurm::jobs::shared_disk::OUT_OF_SIGHT;
use crate::slurm::jobs::submission::SECONDS_PER_MINUTE;
use crate::slurm::jobs::verdict::Verdict;
use crate::slurm::nodes::{CONDITION_GOOD_FOR, report_nodes};
use crate::slurm::reservations::follow_plan::follow_plan;
use crate::slurm::reservations::handover::unused_after_handover;
use crate::slurm::settings::SlurmSettings;
use crate::{
    Calls, Cost, ExecutionError, Executor, JobSpec, JobStatus, PlannedSlot, ProspectiveJob, SaveWork,
    SetupCheck,
};

/// Makes reservations in a Slurm cluster and runs jobs in them.
#[derive(Debug)]
pub struct SlurmExecutor(SlurmCluster);

impl SlurmExecutor {
    /// An executor for a cluster, with its records below the service's data folder. Slurm need not be up.
    ///
    /// # Errors
    /// When the data folder cannot be written.
    pub fn new(settings: SlurmSettings, data_dir: &Path) -> Result<Self, ExecutionError> {
        SlurmCluster::new(settings, data_dir).map(Self)
    }

    /// The executor with its job folders among these, where quotas are enforced, and with its marks in the folder that these have
    /// for the records of clusters.
    ///
    /// # Errors
    /// When that folder cannot be used.
    pub fn among(self, folders: JobFolders) -> Result<Self, ExecutionError> {
        self.0.among(folders).map(Self)
    }

    /// Checks all, and whether a job on a node finds the shared folder, and the time of its clock, where such a job is over within
    /// `wait`. A network disk may take half a minute to show a file here that was written there.
    pub fn check_with_job(&self, wait: Duration) -> Vec<SetupCheck> {
        check_all_with_job(&self.0, wait)
    }
}

impl Executor for SlurmExecutor {
    fn prepare(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        self.0.check_lead()?;
        follow_plan(&self.0, slots)?;
        dry_run_planned_jobs(&self.0, slots);
        Ok(())
    }

    fn refusal_of(&self, job: &ProspectiveJob) -> Option<String> {
        match judge_by_dry_run(&self.0, job) {
            Verdict::Refuses(said) => Some(said),
            Verdict::Takes | Verdict::Unknown(_) => None,
        }
    }

    fn leave_out(&self, nodes: Vec<BusyTime>) {
        *lock(&self.0.seen.left_out) = nodes;
    }

    fn kept_nodes(&self) -> Vec<KeptNodes> {
        lock(&self.0.seen.kept).clone().unwrap_or_default()
    }

    fn refused(&self) -> Vec<(Uuid, Time)> {
        lock(&self.0.seen.lacking).clone()
    }

    fn reserves_within(&self) -> Option<Seconds> {
        *lock(&self.0.seen.reserves_within)
    }

    fn hands_over_within(&self) -> Option<Seconds> {
        let within = self.reserves_within();
        within.map(|within| {
            if self.0.settings.reserve_at_once {
                Seconds::MAX
            } else {
                within
            }
        })
    }

    fn cost(&self) -> Option<Cost> {
        Some(lock(&self.0.seen.costs).1)
    }

    fn unused(&self) -> Vec<(Uuid, Unused)> {
        unused_after_handover(&self.0)
    }

    fn can_resume(&self, job: &JobSpec) -> Result<bool, ExecutionError> {
        let work_dir = &self.0.settings.work_dir;
        let failed = |error| ExecutionError::system("look into", work_dir)(error);
        if job.run().slot == 1
            || ClusterRun::shared_folder(&self.0, job)?
                .exists(Part::Work)
                .map_err(failed)?
        {
            return Ok(true);
        }
        // Where nothing is, the disk may be away.
        if fs::read_dir(work_dir).map_err(failed)?.next().is_none() {
            return Err(failed(std::io::Error::other("it is empty: is its disk there?")));
        }
        Ok(false)
    }

    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError> {
        self.0.check_lead()?;
        let place = self.0.folders.place_on_cluster(job.agreement);
        if place == self.0.folders.path() {
            Folder::create(place, job)?;
        } else {
            let copied = Folder::of(place, job.run()).copy_inputs(job.clone())?;
            Folder::create(place, &copied)?;
        }
        self.poll(job.run()).map(drop)
    }

    fn poll(&self, one_run: Run) -> Result<JobStatus, ExecutionError> {
        // Where the disk of the records is away, none is found.
        self.0.check_lead()?;
        let folder = self.0.job_folder(one_run);
        if let Some(end) = folder.end()? {
            return Ok(JobStatus::Ended(end));
        }
        let run = ClusterRun::in_folder(&self.0, folder)?;
        run.map_or(Ok(JobStatus::NotStarted), |run| run.status())
    }

    /// Its user may write that record; one that is wrong spares the provider a loss.
    fn recorded_job_end(&self, one_run: Run) -> Result<Option<JobEnd>, ExecutionError> {
        let folder = self.0.job_folder(one_run);
        if let Some(end) = folder.end()? {
            return Ok(Some(end));
        }
        let Some(run) = ClusterRun::in_folder(&self.0, folder)? else {
            return Ok(None);
        };
        let unread = ExecutionError::system("read the record in", run.work.path());
        let ended = run.work.ended_for_sure().map_err(unread)?;
        ended
            .map(|ended| run.conclude_as_recorded(ended, None))
            .transpose()
    }

    /// The change goes to the job's script, which stops it to the second, to the service's own record, and to Slurm. Slurm's
    /// limit counts from the job's start in whole minutes.
    fn keep_until(&self, one_run: Run, end: Micros) -> Result<(), ExecutionError> {
        let Some(run) = ClusterRun::in_folder(&self.0, self.0.job_folder(one_run))? else {
            return Ok(());
        };
        if run.job.slot_end != end {
            run.work
                .put(SharedFolderRecord::Until(second_of(end).seconds()))?;
            run.folder.put_until(end)?;
        }
        if run.folder.until()?.is_none() {
            return Ok(());
        }
        let listed = self.0.jobs_listed_by_cluster()?;
        for row in run.among(&listed).filter(|row| row.state == JobState::Running) {
            let (Some(start), Some(limit)) = (row.start, row.end) else {
                continue;
            };
            if limit >= second_of(end) || !self.0.may_try(run.job.run(), TRY_EVERY) {
                continue;
            }
            let seconds = second_of(end) - start;
            let minutes = (seconds + SECONDS_PER_MINUTE - 1) / SECONDS_PER_MINUTE;
            carry_out_operation(
                &self.0,
                Operation::Limit {
                    job: row.id.clone(),
                    minutes,
                },
            )?;
            self.0.forget_list();
        }
        Ok(())
    }

    fn stop(&self, one_run: Run) -> Result<(), ExecutionError> {
        let folder = self.0.job_folder(one_run);
        let Some(job) = folder.spec()? else { return Ok(()) };
        if folder.end()?.is_some() || folder.stop_asked() {
            return Ok(());
        }
        folder.ask_to_stop(None)?;
        lock(&self.0.seen.tried).remove(&job.run());
        self.poll(one_run).map(drop)
    }

    /// The job's script looks for that, and the service's own record says how its end is meant.
    fn save_before_end(&self, one_run: Run, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        if let Some(ClusterRun {
            folder, job, work, ..
        }) = ClusterRun::in_folder(&self.0, self.0.job_folder(one_run))?
            && folder.save(&job)?.is_some() != save.is_some()
        {
            work.put(SharedFolderRecord::Save(save))?;
            folder.put_save(save)?;
        }
        Ok(())
    }

    /// A node that Slurm cannot reach may run on. There the job's own script stops it: the script finds the end of its slot in
    /// the place where it looks, and has some time to see it.
    fn end_earlier_attempts(&self, run: Run) -> Result<bool, ExecutionError> {
        let folder = self.0.job_folder(run);
        let Some(before) = folder.spec()?.filter(|spec| spec.restarts < run.attempt) else {
            return Ok(true);
        };
        let (run_before, work) = (before.run(), ClusterRun::shared_folder(&self.0, &before)?);
        let now = Clock::system().micros();
        let is_over = work.ended().is_some() || !work.is_claimed()? || now > before.slot_end + OUT_OF_SIGHT;
        if folder.end()?.is_some() && is_over {
            self.0.folders.put_aside(run_before)?;
            return Ok(true);
        }
        if before.slot_end > now {
            self.keep_until(run_before, now)?;
        }
        self.stop(run_before)?;
        // It is cancelled, or has its end recorded, in the course of this.
        let status = self.poll(run_before)?;
        debug_assert_ne!(status, JobStatus::NotStarted, "it has an intent");
        Ok(false)
    }

    fn node_states(&self) -> Result<NodeReport, ExecutionError> {
        report_nodes(&self.0)
    }

    fn calls(&self) -> Calls {
        lock(&self.0.slurm.calls).clone()
    }

    fn check(&self) -> Vec<SetupCheck> {
        check_all(&self.0)
    }

    fn condition(&self) -> Option<Condition> {
        let (at, condition) = (*lock(&self.0.seen.condition))?;
        (at.elapsed() <= CONDITION_GOOD_FOR).then_some(condition)
    }

    fn is_cluster(&self) -> bool {
        true
    }

    fn patience(&self) -> Duration {
        self.0.settings.patience_of_use()
    }
}
