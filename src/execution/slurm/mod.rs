//! A cluster that Slurm runs, shared with batch jobs that know nothing of us.
//!
//! Every slot becomes a reservation of named nodes in good time: no later than the longest job that could reach into it,
//! counted back from its start, so that no batch job ever does ([`reservations`]). A job is submitted into its reservation when
//! the slot begins ([`jobs`]); a slot without a job hands its reservation to the user of its party.
//!
//! Slurm may be down, slow or forgetful at any time. So our reservations and jobs have the names of their runs ([`Run`]), and are
//! compared with the plan again and again. That nothing runs twice does not rest on Slurm's memory: a job first claims its folder
//! on the disk that all nodes share ([`jobs::shared_folder`]), and a second job goes away.

mod checks;
mod commands;
mod condition;
mod helper;
mod hostlist;
mod jobs;
mod policy;
mod query;
mod reservations;
mod snapshot;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scheduler::{Seconds, Time};
use uuid::Uuid;

pub use commands::Error;
use commands::Slurm;
use helper::Helper;
pub use helper::Serving as Helping;
use helper::operation::{Operation, Submission};
pub use hostlist::expand as expand_nodes;
pub(crate) use jobs::disk::{Disk, OUT_OF_SIGHT};
use jobs::dry_run::{GivenVerdict, Verdict};
use jobs::shared_folder;
pub use policy::{Policies, Policy};
use query::{JobRow, PartitionRow};
use reservations::cost::Costs;
use reservations::follow_plan::Refused;
use reservations::handover::Handed;
use reservations::rate::RateLimit;
use snapshot::Observed;

use super::files::retention::JobFolders;
use super::job::folder::Folder;
use super::{
    Calls, Check, Cost, ExecutionError, Executor, JobSpec, JobStatus, PlannedSlot, ProspectiveJob, SaveWork,
};
use crate::agreement::{JobEnd, Run};
use crate::clock::Micros;
use crate::planner::{BusyTime, KeptNodes, NodeReport, Unused};
use crate::store::Condition;

/// How long the list of jobs is good for: running jobs are asked about several times a second, and many at once.
const LIST_GOOD_FOR: Duration = Duration::from_secs(2);
/// The same in times that it takes to list them: a controller with a long queue has better things to do.
const LIST_GOOD_TIMES: u32 = 5;
/// How long the list of partitions is cached: no longer than the margin by which reservations are made early
/// (`reservations::follow_plan::MARGIN`).
const PARTITIONS_GOOD_FOR: Duration = Duration::from_mins(1);
/// Calls that one use of the executor makes, for the time that it may take in all.
const CALLS_OF_ONE_USE: u32 = 6;
/// The prefix of the names of our reservations and jobs.
const PREFIX: &str = "bespeak-";

/// A cluster as the provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The resource's name.
    pub resource: String,
    /// The partition that its jobs go to.
    pub partition: String,
    /// Its nodes by name; the planner knows each by its place in this list.
    pub nodes: Vec<String>,
    /// The ones among them that batch jobs never get.
    pub dedicated: Vec<String>,
    /// The folder of Slurm's programs, where they are not among the system's.
    pub programs: Option<PathBuf>,
    /// Slurm's configuration file; where Slurm looks by itself without.
    pub configuration: Option<PathBuf>,
    /// A folder that this machine and all nodes share: each job has its own in there.
    pub work_dir: PathBuf,
    /// The socket of the helper for operations that need rights; without one the service carries them out itself.
    pub helper: Option<PathBuf>,
    /// The account of parties that are not named in `parties`.
    pub account: Account,
    /// The accounts of parties, by name.
    pub parties: BTreeMap<String, Account>,
    /// The site's further options for jobs and reservations.
    pub policies: Policies,
    /// How long each of Slurm's commands may take.
    pub patience: Duration,
    /// Seconds that a node is left alone after others' use: Slurm kills late.
    pub turnaround: Seconds,
    /// Seconds before their begin from which on slots are reserved at the earliest; the longest job's limit without.
    pub lead: Option<Seconds>,
    /// Changes of reservations that the cluster gets in a minute at most.
    pub changes_a_minute: u32,
    /// Seconds without a job after which a reservation that was handed to a user is taken back; never without. The user's
    /// party is told when half of them are over.
    pub reclaim_after: Option<Seconds>,
}

/// The owner of jobs on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The Unix user.
    pub user: String,
    /// The account that Slurm charges; the user's default without it.
    pub account: Option<String>,
}

impl Settings {
    /// The account of a party's jobs and reservations.
    pub fn account_of(&self, party: &str) -> &Account {
        self.parties.get(party).unwrap_or(&self.account)
    }
}

/// The name of a run's reservation on a resource, and of its job there. It has the resource in it because several may be of one
/// cluster, and an agreement may move between them.
pub fn name_of(resource: &str, run: Run) -> String {
    format!("{PREFIX}{resource}-{run}")
}

/// Makes reservations in a Slurm cluster and runs jobs in them.
#[derive(Debug)]
pub struct SlurmExecutor {
    settings: Settings,
    slurm: Slurm,
    /// Carries out operations that need rights, where the service does not have them.
    helper: Option<Arc<Helper>>,
    /// The place of each node in the settings.
    numbers: HashMap<String, usize>,
    /// Where the jobs' durable records are.
    folders: JobFolders,
    /// A file for each reservation that this service has made, by its id: others in the same cluster may use the same
    /// names.
    marks: PathBuf,
    /// The script that every job begins with.
    script: PathBuf,
    listed: Mutex<Option<Listed>>,
    /// The cluster's answer when its nodes were last looked at, while nothing has changed since.
    observed: Mutex<Observed>,
    rate: Mutex<RateLimit>,
    costs: Mutex<Costs>,
    /// The partitions, and when they were asked for.
    partitions: Mutex<Option<(Instant, Vec<PartitionRow>)>>,
    /// The reservations that Slurm held at the last look; none before the first.
    kept: Mutex<Option<Vec<KeptNodes>>>,
    /// The slots with reservations that were made or changed after the last look, and not read back yet.
    made: Mutex<HashSet<Run>>,
    /// The reservations that Slurm was last asked for and has refused.
    refused: Mutex<Option<Refused>>,
    /// The due slots that Slurm did not hold as planned at the last look: their agreements and begins.
    lacking: Mutex<Vec<(Uuid, Time)>>,
    /// Up to how many seconds before their begin slots are reserved; none before the first look.
    reserves_within: Mutex<Option<Seconds>>,
    /// When nodes are not to be used, as the plan has it.
    left_out: Mutex<Vec<BusyTime>>,
    handed: Mutex<HashMap<Uuid, Handed>>,
    /// Whether Slurm could not be asked since it last listed the jobs: the use of reservations meanwhile is not known.
    blind: AtomicBool,
    /// The condition of the cluster when the states of its nodes were last asked for.
    condition: Mutex<Option<(Instant, Condition)>>,
    /// The users of this machine that were looked up.
    owners: Mutex<HashMap<String, shared_folder::Owner>>,
    /// Held while the files of a job are fetched: a later fetch brings newer files.
    fetching: Arc<Mutex<()>>,
    /// When something was last tried for a job that is not worth trying in every round.
    tried: Mutex<HashMap<Run, Instant>>,
    /// Slurm's verdicts on jobs, by the options of their submission.
    verdicts: Mutex<HashMap<Vec<OsString>, GivenVerdict>>,
    /// The planned slots with judged jobs.
    judged: Mutex<HashSet<Run>>,
}

/// The jobs that Slurm knows of, or why it did not say, and when it was asked.
#[derive(Debug, Clone)]
struct Listed {
    at: Instant,
    took: Duration,
    jobs: Result<Arc<Vec<JobRow>>, Error>,
}

impl SlurmExecutor {
    /// An executor for a cluster, with its records below the service's data folder. Slurm need not be up.
    ///
    /// # Errors
    /// When the data folder cannot be written.
    pub fn new(settings: Settings, data_dir: &Path) -> Result<Self, ExecutionError> {
        let data_dir = std::path::absolute(data_dir).map_err(ExecutionError::system("find", data_dir))?;
        let marks = data_dir.join("reservations").join(&settings.resource);
        fs::create_dir_all(&marks).map_err(ExecutionError::system("create", &marks))?;
        let script = data_dir.join("slurm-job.sh");
        fs::write(&script, jobs::status::SCRIPT).map_err(ExecutionError::system("write", &script))?;
        let numbers = settings.nodes.iter().enumerate();
        Ok(Self {
            slurm: Slurm {
                programs: settings.programs.clone(),
                configuration: settings.configuration.clone(),
                patience: settings.patience,
                calls: Arc::default(),
            },
            helper: Helper::of(&settings),
            numbers: numbers.map(|(number, name)| (name.clone(), number)).collect(),
            folders: JobFolders::new(&data_dir, None).map_err(ExecutionError::system("find", &data_dir))?,
            marks,
            script,
            listed: Mutex::default(),
            observed: Mutex::default(),
            costs: Mutex::default(),
            rate: Mutex::new(RateLimit::new(settings.changes_a_minute)),
            settings,
            partitions: Mutex::default(),
            kept: Mutex::default(),
            made: Mutex::default(),
            refused: Mutex::default(),
            lacking: Mutex::default(),
            reserves_within: Mutex::default(),
            left_out: Mutex::default(),
            handed: Mutex::default(),
            blind: AtomicBool::new(false),
            condition: Mutex::default(),
            owners: Mutex::default(),
            fetching: Arc::default(),
            tried: Mutex::default(),
            verdicts: Mutex::default(),
            judged: Mutex::default(),
        })
    }

    /// The same with its job folders among these folders, where quotas are enforced.
    #[must_use]
    pub fn among(self, folders: JobFolders) -> Self {
        Self { folders, ..self }
    }

    /// The jobs that Slurm knows of, as of just now. Two callers at the same time get one answer, also when
    /// it is that Slurm is down.
    fn listed_jobs(&self) -> Result<Arc<Vec<JobRow>>, Error> {
        let mut listed = lock(&self.listed);
        match listed.as_ref() {
            Some(listed) if listed.at.elapsed() < LIST_GOOD_FOR.max(listed.took * LIST_GOOD_TIMES) => {
                listed.jobs.clone()
            }
            _ => self.list_jobs(&mut listed),
        }
    }

    /// The jobs that Slurm knows of now.
    fn jobs_now(&self) -> Result<Arc<Vec<JobRow>>, Error> {
        self.list_jobs(&mut lock(&self.listed))
    }

    fn list_jobs(&self, listed: &mut Option<Listed>) -> Result<Arc<Vec<JobRow>>, Error> {
        let asked = Instant::now();
        // Its jobs are in our partition; others' jobs on our nodes are in the partitions that share them.
        let jobs = self
            .sharing_partitions()
            .and_then(|names| self.slurm.jobs(&names))
            .map(Arc::new);
        *listed = Some(Listed {
            at: Instant::now(),
            took: asked.elapsed(),
            jobs: jobs.clone(),
        });
        jobs
    }

    /// The partitions of the cluster, as of a minute ago at most: they change with the configuration.
    fn partitions(&self) -> Result<Vec<PartitionRow>, Error> {
        let known = lock(&self.partitions).clone();
        if let Some((at, partitions)) = known
            && at.elapsed() < PARTITIONS_GOOD_FOR
        {
            return Ok(partitions);
        }
        let partitions = self.slurm.partitions()?;
        *lock(&self.partitions) = Some((Instant::now(), partitions.clone()));
        Ok(partitions)
    }

    /// The names of our partition and of all that share nodes with it, without doubles.
    fn sharing_partitions(&self) -> Result<Vec<String>, Error> {
        let mut names = vec![self.settings.partition.clone()];
        for row in self.partitions()? {
            if row.nodes.iter().any(|node| self.numbers.contains_key(node)) && !names.contains(&row.name) {
                names.push(row.name);
            }
        }
        Ok(names)
    }

    /// Whether nodes are reserved for a job, or may be: it was not looked at since the start.
    fn may_be_kept(&self, job: &JobSpec) -> bool {
        let run = job.run();
        let is_kept = lock(&self.kept)
            .as_ref()
            .is_none_or(|kept| kept.iter().any(|of| of.run == run));
        is_kept || lock(&self.made).contains(&run)
    }

    /// Forgets the list of jobs, because it has changed by our own doing.
    fn forget_list(&self) {
        *lock(&self.listed) = None;
    }

    /// The longest that a job of our partition may last, in seconds; `None` for ever.
    fn longest_job(&self) -> Result<Option<i64>, Error> {
        let partitions = self.partitions()?;
        let ours = partitions.iter().find(|row| row.name == self.settings.partition);
        Ok(ours.and_then(|row| row.longest_job))
    }

    /// Whether it is time for another try at something for a job; that it is now tried is noted.
    fn may_try(&self, id: Run, pause: Duration) -> bool {
        let mut tried = lock(&self.tried);
        tried.retain(|_, at| at.elapsed() < pause);
        if tried.contains_key(&id) {
            return false;
        }
        tried.insert(id, Instant::now());
        true
    }

    /// Cancels jobs by their numbers.
    fn cancel(&self, jobs: &[&JobRow]) -> Result<(), Error> {
        if jobs.is_empty() {
            return Ok(());
        }
        let cancelled = self.act(Operation::Cancel {
            jobs: jobs.iter().map(|job| job.id.clone()).collect(),
        });
        self.forget_list();
        match cancelled {
            // It ended in between.
            Err(Error::Refused { said, .. })
                if said.contains("already completing") || said.contains("Invalid job id") =>
            {
                Ok(())
            }
            cancelled => cancelled.map(drop),
        }
    }

    /// Has a job submitted that has its folder.
    fn have_submitted(
        &self,
        job: &JobSpec,
        save: Option<SaveWork>,
        work: &shared_folder::SharedFolder,
    ) -> Result<(), ExecutionError> {
        let Some(place) = work.place() else {
            return self.submit(job, save, work);
        };
        let submission = Submission::of(job, save, place.clone());
        let submitted = self.act(Operation::Submit(Box::new(submission)));
        self.forget_list();
        Ok(submitted.map(drop)?)
    }

    /// The name of a reservation, and of its job, on this resource.
    fn name_of(&self, id: Run) -> String {
        name_of(&self.settings.resource, id)
    }

    /// Which reservation or job of ours has this name, if one of this resource has.
    fn id_of(&self, name: &str) -> Option<Run> {
        let rest = name.strip_prefix(PREFIX)?.strip_prefix(&self.settings.resource)?;
        rest.strip_prefix('-')?.parse().ok()
    }

    fn mark(&self, id: Run) -> PathBuf {
        self.marks.join(id.to_string())
    }

    /// The service's own folder of a job.
    fn folder(&self, run: Run) -> Folder {
        Folder::of(self.folders.path(), run)
    }
}

impl Executor for SlurmExecutor {
    fn prepare(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        self.follow_plan(slots)?;
        self.judge_planned(slots);
        Ok(())
    }

    fn refusal_of(&self, job: &ProspectiveJob) -> Option<String> {
        match self.judge(job) {
            Verdict::Refuses(said) => Some(said),
            Verdict::Takes | Verdict::Unknown(_) => None,
        }
    }

    fn leave_out(&self, nodes: Vec<BusyTime>) {
        *lock(&self.left_out) = nodes;
    }

    fn kept_nodes(&self) -> Vec<KeptNodes> {
        lock(&self.kept).clone().unwrap_or_default()
    }

    fn refused(&self) -> Vec<(Uuid, Time)> {
        lock(&self.lacking).clone()
    }

    fn reserves_within(&self) -> Option<Seconds> {
        *lock(&self.reserves_within)
    }

    fn cost(&self) -> Option<Cost> {
        Some(self.cost_so_far())
    }

    fn unused(&self) -> Vec<(Uuid, Unused)> {
        self.unused_now()
    }

    fn can_resume(&self, job: &JobSpec) -> Result<bool, ExecutionError> {
        let work_dir = &self.settings.work_dir;
        let failed = |error| ExecutionError::system("look into", work_dir)(error);
        if job.run().slot == 1
            || self
                .shared_folder_of(job)?
                .exists(shared_folder::Part::Work)
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
        self.intend(job)?;
        self.status(job.run()).map(drop)
    }

    fn poll(&self, job: Run) -> Result<JobStatus, ExecutionError> {
        self.status(job)
    }

    fn recorded_end(&self, job: Run) -> Result<Option<JobEnd>, ExecutionError> {
        self.end_by_record(job)
    }

    fn keep_until(&self, job: Run, end: Micros) -> Result<(), ExecutionError> {
        self.stop_at(job, end)
    }

    fn stop(&self, job: Run) -> Result<(), ExecutionError> {
        self.ask_to_stop(job)
    }

    fn save_before_end(&self, job: Run, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        self.tell_to_save(job, save)
    }

    fn end_earlier_attempts(&self, run: Run) -> Result<bool, ExecutionError> {
        self.end_attempt_before(run)
    }

    fn node_states(&self) -> Result<NodeReport, ExecutionError> {
        self.report_nodes()
    }

    fn calls(&self) -> Vec<Calls> {
        let counted = lock(&self.slurm.calls);
        let calls = counted.iter().map(|((program, outcome), count)| Calls {
            program,
            outcome,
            count: *count,
        });
        calls.collect()
    }

    fn check(&self) -> Vec<Check> {
        self.check_all()
    }

    fn condition(&self) -> Option<Condition> {
        self.condition_now()
    }

    fn is_cluster(&self) -> bool {
        true
    }

    fn patience(&self) -> Duration {
        self.settings.patience * CALLS_OF_ONE_USE
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
