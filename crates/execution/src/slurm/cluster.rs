//! A cluster: what was seen of it, and the questions that all else asks of it. The functions that act on it are in the files around
//! this one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::past::Condition;
use domain::resources::{BusyTime, KeptNodes};
use scheduler::{Seconds, Time};
use task::lock::lock;
use uuid::Uuid;

use crate::files::job_folders::JobFolders;
use crate::job::folder::Folder;
use crate::slurm::commands::SlurmCommands;
use crate::slurm::error::Error;
use crate::slurm::helper::socket::HelperSocket;
use crate::slurm::job_row::{JobKey, JobRow};
use crate::slurm::jobs::script::SCRIPT;
use crate::slurm::jobs::shared_folder::Owner;
use crate::slurm::jobs::verdict::Verdict;
use crate::slurm::query::{PartitionRow, ReservationRow, query_jobs, query_partitions};
use crate::slurm::reservations::refused_targets::RefusedTargets;
use crate::slurm::reservations::reservation_rate::ReservationRate;
use crate::slurm::settings::{PREFIX, SlurmSettings, slurm_name_of_run};
use crate::slurm::snapshot::{HeldReservations, LastSnapshot};
use crate::{Cost, ExecutionError, JobSpec};

/// How long the list of jobs is good for: running jobs are asked about several times a second, and many at once.
const LIST_GOOD_FOR: Duration = Duration::from_secs(2);
/// How many times as long as it takes to list the jobs the list is good for: a controller with a long queue has better things to do.
const LIST_GOOD_TIMES: u32 = 5;
/// How long the list of partitions is cached: no longer than the margin by which reservations are made early
/// (`reservations::follow_plan::MARGIN`).
const PARTITIONS_GOOD_FOR: Duration = Duration::from_mins(1);
/// How often a submission or a cancellation is repeated.
pub(crate) const TRY_EVERY: Duration = Duration::from_secs(1);

/// A cluster, as all functions see it that act on it.
#[derive(Debug)]
pub(crate) struct SlurmCluster {
    pub(super) settings: SlurmSettings,
    pub(super) slurm: SlurmCommands,
    /// Carries out operations that need rights, where the service does not have them.
    pub(super) helper: Option<Arc<HelperSocket>>,
    /// The place of each node in the settings.
    pub(super) numbers: HashMap<String, usize>,
    /// Where the jobs' durable records are.
    pub(super) folders: JobFolders,
    /// A file for each reservation that this service has made, by its id: others in the same cluster may use the same
    /// names.
    pub(super) marks: PathBuf,
    /// The script that every job begins with.
    pub(super) script: PathBuf,
    pub(super) rate: Mutex<ReservationRate>,
    pub(super) seen: ClusterState,
}

/// The observations of a cluster, and the deeds there, since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct ClusterState {
    listed: Mutex<Option<JobListing>>,
    /// The cluster's answer when its nodes were last looked at, while nothing has changed since.
    pub(super) observed: Mutex<LastSnapshot>,
    /// When the cost was last counted, and the cost so far.
    pub(super) costs: Mutex<(Option<Instant>, Cost)>,
    /// The partitions, and when they were asked for.
    pub(super) partitions: Mutex<Option<(Instant, Vec<PartitionRow>)>>,
    /// The reservations that Slurm held at the last look; none before the first.
    pub(super) kept: Mutex<Option<Vec<KeptNodes>>>,
    /// The slots with reservations that were made or changed after the last look, and not read back yet.
    pub(super) made: Mutex<HashSet<Run>>,
    /// The reservations that Slurm was last asked for and has refused.
    pub(super) refused: Mutex<Option<RefusedTargets>>,
    /// The due slots that Slurm did not hold as planned at the last look: their agreements and begins.
    pub(super) lacking: Mutex<Vec<(Uuid, Time)>>,
    /// Up to how many seconds before their begin slots are reserved; none before the first look.
    pub(super) reserves_within: Mutex<Option<Seconds>>,
    /// When nodes are not to be used, as the plan has it.
    pub(super) left_out: Mutex<Vec<BusyTime>>,
    pub(super) handed: Mutex<HashMap<Uuid, ReservationUse>>,
    /// Whether Slurm could not be asked since it last listed the jobs: the use of reservations meanwhile is not known.
    pub(super) blind: AtomicBool,
    /// The condition of the cluster when the states of its nodes were last asked for.
    pub(super) condition: Mutex<Option<(Instant, Condition)>>,
    /// The users of this machine that were looked up.
    pub(super) owners: Mutex<HashMap<String, Owner>>,
    /// Held while the files of a job are fetched: a later fetch brings newer files.
    pub(super) fetching: Arc<Mutex<()>>,
    /// When something was last tried for a job that is not worth trying in every round.
    pub(super) tried: Mutex<HashMap<Run, Instant>>,
    /// Slurm's verdicts on jobs, by the options of their submission, and when they were given.
    pub(super) verdicts: Mutex<HashMap<Vec<OsString>, (Instant, Verdict)>>,
    /// The planned slots with judged jobs.
    pub(super) judged: Mutex<HashSet<Run>>,
}

/// The use of one reservation.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReservationUse {
    /// For how long Slurm was seen to hold it and to have no job in it; a restart of the service begins anew, and time
    /// without a look, or in which Slurm could not be asked, does not count, in favour of the user.
    pub(super) unused: Duration,
    /// When it was last seen to be held; none where it was not at the last look.
    pub(super) seen: Option<Instant>,
    pub(super) warned: bool,
    /// Whether a job was seen in it.
    pub(super) used: bool,
    /// The jobs that were seen in it with nodes; they outlast it.
    pub(super) jobs: HashSet<JobKey>,
    pub(super) over: bool,
}

/// The jobs that Slurm knows of, or why it did not say, and when it was asked.
#[derive(Debug, Clone)]
struct JobListing {
    at: Instant,
    took: Duration,
    jobs: Result<Arc<Vec<JobRow>>, Error>,
}

impl SlurmCluster {
    /// A cluster, with its records below the service's data folder. Slurm need not be up.
    pub(super) fn new(settings: SlurmSettings, data_dir: &Path) -> Result<Self, ExecutionError> {
        let data_dir = std::path::absolute(data_dir).map_err(ExecutionError::system("find", data_dir))?;
        let marks = data_dir.join("reservations").join(&settings.resource);
        fs::create_dir_all(&marks).map_err(ExecutionError::system("create", &marks))?;
        let script = data_dir.join("slurm-job.sh");
        fs::write(&script, SCRIPT).map_err(ExecutionError::system("write", &script))?;
        let numbers = settings.nodes.iter().enumerate();
        Ok(Self {
            slurm: SlurmCommands {
                programs: settings.programs.clone(),
                configuration: settings.configuration.clone(),
                patience: settings.patience,
                calls: Arc::default(),
            },
            helper: HelperSocket::of(&settings),
            numbers: numbers.map(|(number, name)| (name.clone(), number)).collect(),
            folders: JobFolders::new(&data_dir, None).map_err(ExecutionError::system("find", &data_dir))?,
            marks,
            script,
            rate: Mutex::new(ReservationRate::new(settings.changes_a_minute)),
            seen: ClusterState::default(),
            settings,
        })
    }

    /// The cluster with its job folders among these, where quotas are enforced, and with its marks in the folder that these have
    /// for the records of clusters.
    pub(super) fn among(self, folders: JobFolders) -> Result<Self, ExecutionError> {
        let marks = match folders.records() {
            Some(records) => records.take_marks(&self.settings.resource, &self.marks)?,
            None => self.marks,
        };
        Ok(Self {
            folders,
            marks,
            ..self
        })
    }

    /// Makes sure, before a change, that no process has led after this one, where that can be told.
    pub(super) fn check_lead(&self) -> Result<(), ExecutionError> {
        let records = self.folders.records();
        records.map_or(Ok(()), |records| records.check_lead())
    }

    /// The jobs that Slurm knows of, as of just now. Two callers at the same time get one answer, also when
    /// it is that Slurm is down.
    pub(super) fn jobs_listed_by_cluster(&self) -> Result<Arc<Vec<JobRow>>, Error> {
        let mut listed = lock(&self.seen.listed);
        match listed.as_ref() {
            Some(listed) if listed.at.elapsed() < LIST_GOOD_FOR.max(listed.took * LIST_GOOD_TIMES) => {
                listed.jobs.clone()
            }
            _ => self.list_jobs(&mut listed),
        }
    }

    /// The jobs that Slurm knows of now.
    pub(super) fn jobs_now(&self) -> Result<Arc<Vec<JobRow>>, Error> {
        self.list_jobs(&mut lock(&self.seen.listed))
    }

    fn list_jobs(&self, listed: &mut Option<JobListing>) -> Result<Arc<Vec<JobRow>>, Error> {
        let asked = Instant::now();
        // Its jobs are in our partition; others' jobs on our nodes are in the partitions that share them.
        let jobs = self
            .partitions_of_cluster_nodes()
            .and_then(|partitions| {
                let mut names = BTreeSet::from([self.settings.partition.as_str()]);
                names.extend(partitions.iter().map(|row| row.name.as_str()));
                query_jobs(&self.slurm, &Vec::from_iter(names).join(","))
            })
            .map(Arc::new);
        *listed = Some(JobListing {
            at: Instant::now(),
            took: asked.elapsed(),
            jobs: jobs.clone(),
        });
        jobs
    }

    /// The partitions of the cluster, as of a minute ago at most: they change with the configuration.
    pub(super) fn partitions(&self) -> Result<Vec<PartitionRow>, Error> {
        let known = lock(&self.seen.partitions).clone();
        if let Some((at, partitions)) = known
            && at.elapsed() < PARTITIONS_GOOD_FOR
        {
            return Ok(partitions);
        }
        let partitions = query_partitions(&self.slurm)?;
        *lock(&self.seen.partitions) = Some((Instant::now(), partitions.clone()));
        Ok(partitions)
    }

    /// Our partition and all that share nodes with it.
    pub(super) fn partitions_of_cluster_nodes(&self) -> Result<Vec<PartitionRow>, Error> {
        let mut partitions = self.partitions()?;
        let is_ours = |node: &String| self.numbers.contains_key(node);
        partitions.retain(|row| row.name == self.settings.partition || row.nodes.iter().any(is_ours));
        Ok(partitions)
    }

    /// Whether nodes are reserved for a job, or may be: it was not looked at since the start.
    pub(super) fn may_be_reserved(&self, job: &JobSpec) -> bool {
        let run = job.run();
        let is_kept = lock(&self.seen.kept)
            .as_ref()
            .is_none_or(|kept| kept.iter().any(|kept| kept.run == run));
        is_kept || lock(&self.seen.made).contains(&run)
    }

    /// Forgets the list of jobs, because it has changed by our own doing.
    pub(super) fn forget_list(&self) {
        *lock(&self.seen.listed) = None;
    }

    /// Whether it is time for another try at something for a job; that it is now tried is noted.
    pub(super) fn may_try(&self, id: Run, pause: Duration) -> bool {
        let mut tried = lock(&self.seen.tried);
        tried.retain(|_, at| at.elapsed() < pause);
        if tried.contains_key(&id) {
            return false;
        }
        tried.insert(id, Instant::now());
        true
    }

    /// The numbers of the nodes of the resource among these.
    pub(super) fn numbers_of<'a>(
        &'a self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> impl Iterator<Item = usize> {
        let numbers = names.into_iter().filter_map(|name| self.numbers.get(name));
        numbers.copied()
    }

    /// The numbers of the nodes of a reservation.
    pub(super) fn reserved_node_numbers(&self, row: &ReservationRow) -> Vec<usize> {
        self.numbers_of(&row.nodes).collect()
    }

    /// The reservations among these that are named after slots of this resource.
    pub(super) fn held_reservations(&self, rows: &[ReservationRow]) -> HeldReservations {
        let named = rows.iter();
        let named = named.filter_map(|row| Some((self.run_of_name(&row.name)?, row.clone())));
        named.collect()
    }

    /// The name of a reservation, and of its job, on this resource.
    pub(super) fn name_of_run(&self, id: Run) -> String {
        slurm_name_of_run(&self.settings.resource, id)
    }

    /// Which reservation or job of ours has this name, if one of this resource has.
    pub(super) fn run_of_name(&self, name: &str) -> Option<Run> {
        let rest = name.strip_prefix(PREFIX)?.strip_prefix(&self.settings.resource)?;
        rest.strip_prefix('-')?.parse().ok()
    }

    /// The service's own folder of a job.
    pub(super) fn job_folder(&self, run: Run) -> Folder {
        Folder::of(self.folders.place_on_cluster(run.agreement), run)
    }
}
