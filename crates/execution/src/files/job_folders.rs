//! The folders of all jobs together: how much of the disk each party has with them, and how long they are kept.
//!
//! While the folders of a party's jobs have more than its quota, none of its jobs starts, and jobs that go on writing are
//! stopped. A folder is packed when its job and its agreement have ended, and removed some time after; never before.

mod places;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::agreement::{Limit, Run};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use scheduler::Seconds;
use store::{Store, agreements};
use task::lock::lock;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use uuid::Uuid;

use crate::ExecutionError;
use crate::files::cluster_records::ClusterRecords;
use crate::files::{if_file_is_there, tree};
use crate::job::excess::Excess;
use crate::job::folder::{ASIDE, Folder, PIECE};
use crate::slurm::jobs::shared_disk::{OUT_OF_SIGHT, SharedDisk};
use crate::slurm::settings::SlurmSettings;

/// How often the files of running jobs are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Looking takes at most this fraction (1 / `SHARE`) of a processor's time.
const SHARE: u32 = 50;
/// The longest pause between two looks, however long they take.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// How often to look for folders that are to be packed, and for folders that have passed their time.
const SWEEP: Duration = Duration::from_hours(1);
/// The prefix of the name of a folder that is being removed: no id begins with it.
const DOOMED: char = '.';

/// The folders of all jobs of this process. Clones share their knowledge.
#[derive(Debug, Clone)]
pub struct JobFolders {
    /// Below the data folder of this process.
    own: PathBuf,
    /// The folder with the records of clusters, and with those of their jobs, where it is not the data folder.
    common: Option<Arc<ClusterRecords>>,
    /// The disks of clusters, on which jobs have folders, too.
    disks: Arc<Mutex<Arc<[SharedDisk]>>>,
    /// The most bytes that the folders of one party may have together; none for no limit.
    quota: Option<u64>,
    /// The known sizes, by the folder's name.
    known: Arc<Mutex<HashMap<String, KnownFolder>>>,
    /// The names of damaged folders that the log has named.
    damaged: Arc<Mutex<HashSet<String>>>,
}

/// One job's folder.
#[derive(Debug, Clone)]
struct KnownFolder {
    party: String,
    bytes: u64,
    /// When its job ended, if it has: then it grows no more.
    ended: Option<Micros>,
}

/// The result of a look at a folder.
enum FolderChange {
    /// The files of its job grow.
    Grown,
    /// Nothing new.
    Same,
    /// Its job has ended, and the size of its files is not known yet.
    Ended,
}

/// The result of a request to remove a job's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// There was none.
    NothingThere,
    /// It stays: the job goes on.
    Running,
}

/// Why folders could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// It could not be found out whether their agreements are over.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The system refused.
    #[error(transparent)]
    System(#[from] ExecutionError),
}

impl JobFolders {
    /// The folders of jobs in a data folder. The folders of one party may have `quota` bytes together.
    ///
    /// # Errors
    /// When the current folder is needed to make a path absolute and is gone.
    pub fn new(data_dir: &Path, quota: Option<u64>) -> std::io::Result<Self> {
        Ok(Self {
            own: std::path::absolute(data_dir)?.join("jobs"),
            common: None,
            disks: Arc::new(Mutex::new(Arc::new([]))),
            quota,
            known: Arc::default(),
            damaged: Arc::default(),
        })
    }

    /// Takes in the files of jobs on the disk of a cluster, or takes note of its other settings.
    pub fn add_cluster(&self, cluster: &SlurmSettings) {
        let mut disks = lock(&self.disks);
        let (disk, others) = (SharedDisk::of(cluster), disks.iter().cloned());
        *disks = others
            .filter(|other| !other.is_at(&disk))
            .chain([disk.clone()])
            .collect();
    }

    fn disks(&self) -> Arc<[SharedDisk]> {
        Arc::clone(&lock(&self.disks))
    }

    /// Looks for the records of clusters in a folder of their own.
    #[must_use]
    pub fn with_records(self, records: Option<ClusterRecords>) -> Self {
        let common = records.map(Arc::new);
        Self { common, ..self }
    }

    /// Leaves out the folders that other processes use, too.
    #[must_use]
    pub fn of_this_process(self) -> Self {
        Self { common: None, ..self }
    }

    /// The folder with the records of clusters, where it is not the data folder.
    pub(crate) fn records(&self) -> Option<&Arc<ClusterRecords>> {
        self.common.as_ref()
    }

    /// Has this process use the records of clusters under an epoch of the lease from now on.
    pub fn lead_under(&self, epoch: i64) {
        if let Some(records) = &self.common {
            records.lead_under(epoch);
        }
    }

    /// Where they are, but for those of clusters.
    pub(crate) fn path(&self) -> &Path {
        &self.own
    }

    /// How much more than its quota a party has, as of the last look.
    pub(crate) fn excess(&self, party: &str) -> Option<Excess> {
        let most = self.quota?;
        let known = lock(&self.known);
        let own = known.values().filter(|known| known.party == party);
        // Of one that cannot be looked into there is more than can be counted.
        let found = own.fold(0, |sum: u64, folder| sum.saturating_add(folder.bytes));
        (found > most).then_some(Excess {
            limit: Limit::Files,
            found,
            most,
        })
    }

    /// Looks at the files of jobs, and stops jobs that write more than the quota of their party. Costs a look at every
    /// file of the jobs that run. A fault in one folder does not stop the look at the others.
    ///
    /// # Errors
    /// When the folders cannot be listed; the next look goes on.
    pub fn enforce_quotas(&self) -> Result<(), ExecutionError> {
        let there = self.folders()?;
        let names: HashSet<&str> = there.iter().map(|(name, _)| name.as_str()).collect();
        lock(&self.known).retain(|name, _| names.contains(name.as_str()));
        lock(&self.damaged).retain(|name| names.contains(name.as_str()));
        let (mut ended, mut grown) = (Vec::new(), Vec::new());
        for name in names {
            match self.look_or_log(name, false) {
                FolderChange::Ended => ended.push(name),
                FolderChange::Grown => grown.push(name),
                FolderChange::Same => {}
            }
        }
        self.stop_beyond_quota(&grown);
        // Each of them once, so these may take their time.
        for name in ended {
            self.look_or_log(name, true);
        }
        Ok(())
    }

    /// Looks at the files of one job, and logs the fault of its folder, once.
    fn look_or_log(&self, name: &str, also_ended: bool) -> FolderChange {
        let looked = self.look_at(name, also_ended).inspect_err(|error| {
            if lock(&self.damaged).insert(name.to_owned()) {
                warn!(job = name, %error, "the size of the job's folder is not known");
            }
        });
        // The files of a job that has ended are still to be looked at.
        if matches!(looked, Ok(FolderChange::Same | FolderChange::Grown)) {
            lock(&self.damaged).remove(name);
        }
        looked.unwrap_or(FolderChange::Same)
    }

    /// Looks at the files of one job, unless their size is known and grows no more; of one that has ended only where that is
    /// asked for.
    fn look_at(&self, name: &str, also_ended: bool) -> Result<FolderChange, ExecutionError> {
        let before = lock(&self.known).get(name).cloned();
        if before.as_ref().is_some_and(|known| known.ended.is_some()) {
            return Ok(FolderChange::Same);
        }
        let folder = self.last_of(name)?;
        let brought = || Folder::at(&self.folder(name)).brought_bytes();
        let Some(spec) = folder.spec()? else {
            // Its files are being brought.
            if let Some(record) = folder.staging()? {
                let (party, bytes, ended) = (record.party, brought()?, None);
                lock(&self.known).insert(name.to_owned(), KnownFolder { party, bytes, ended });
            }
            return Ok(FolderChange::Same);
        };
        // Asked before: its output until its end counts.
        let ended = folder.end()?.map(|end| end.ended);
        // After a slot that saves its work another one may write.
        let saves = folder.save(&spec)?.is_some();
        let ended = ended.filter(|_| !saves);
        if ended.is_some() && !also_ended {
            return Ok(FolderChange::Ended);
        }
        // To the job they are inputs, which do not count as written.
        let bytes = folder.walked()?.bytes().saturating_add(brought()?);
        let party = spec.party;
        let mut known = lock(&self.known);
        // It may have been put aside meanwhile, and the folder in its place has not ended.
        if ended.is_some() && folder.end()?.is_none() {
            return Ok(FolderChange::Same);
        }
        known.insert(name.to_owned(), KnownFolder { party, bytes, ended });
        let has_grown = ended.is_none() && before.is_some_and(|known| bytes > known.bytes);
        Ok(if has_grown {
            FolderChange::Grown
        } else {
            FolderChange::Same
        })
    }

    /// Stops the jobs among these with a party that has more than its quota.
    fn stop_beyond_quota(&self, grown: &[&str]) {
        for name in grown {
            let party = lock(&self.known)
                .get(*name)
                .map(|agreement| agreement.party.clone());
            let Some(party) = party else { continue };
            if let Some(excess) = self.excess(&party) {
                warn!(
                    job = name,
                    party, "stopped: its party's jobs have written more than they may"
                );
                let asked = self
                    .last_of(name)
                    .and_then(|folder| folder.ask_to_stop(Some(&excess)));
                if let Err(error) = asked {
                    warn!(job = name, %error, "the job could not be stopped");
                }
            }
        }
    }

    /// Removes the folders of jobs that ended before `before` once their agreements are over. Returns their number. A folder
    /// that cannot be removed stays for a later sweep; the others are removed.
    ///
    /// # Errors
    /// When the store cannot be asked or the folders not listed; a later sweep goes on.
    pub async fn sweep(&self, store: &Store, before: Micros) -> Result<usize, SweepError> {
        let ended = self
            .run_blocking(move |folders| folders.ended_before(before))
            .await?;
        let remove = |folders: &Self, name: &str| folders.remove_named(name).map(drop);
        self.act_on_those_over(store, ended, remove).await
    }

    /// Packs the folders of ended jobs of which nothing runs any more, once their agreements are over. Returns their number. A
    /// folder that cannot be packed is left for a later call; the others are packed.
    ///
    /// # Errors
    /// When the store cannot be asked or the folders not listed; a later call goes on.
    pub async fn pack(&self, store: &Store, now: Micros) -> Result<usize, SweepError> {
        let loose = self.run_blocking(move |folders| folders.loose(now)).await?;
        self.act_on_those_over(store, loose, Self::pack_named).await
    }

    /// Does an action with each of these folders that belongs to an ended agreement. Returns their number.
    async fn act_on_those_over(
        &self,
        store: &Store,
        found: Vec<(String, Uuid)>,
        what: fn(&Self, &str) -> Result<(), ExecutionError>,
    ) -> Result<usize, SweepError> {
        let mut done = 0;
        for (name, id) in found {
            if !agreements::is_work_of_agreement_over(store, id).await? {
                continue;
            }
            match self.run_blocking(move |folders| what(folders, &name)).await {
                Ok(()) => done += 1,
                Err(error) => warn!(agreement = %id, %error, "the folder stays as it is for now"),
            }
        }
        Ok(done)
    }

    /// The unpacked folders of jobs that have ended in all slots, with their agreements.
    fn loose(&self, now: Micros) -> Result<Vec<(String, Uuid)>, ExecutionError> {
        let mut folders = self.folders()?;
        folders.retain(|(name, id)| {
            let is_loose = self.is_to_be_packed(name, now);
            let told =
                is_loose.inspect_err(|error| debug!(agreement = %id, %error, "the folder is not packed"));
            told.unwrap_or(false)
        });
        Ok(folders)
    }

    fn is_to_be_packed(&self, name: &str, now: Micros) -> Result<bool, ExecutionError> {
        let parts = job_folders_of_agreement(&self.folder(name))?;
        let mut is_loose = false;
        for part in parts.iter().filter(|part| part.is_loose()) {
            if part.end()?.is_none() {
                return Ok(false);
            }
            // A cluster's word is not the last one: its nodes may not answer, and its jobs come late.
            let slot_end = part.spec()?.map_or(Micros::MAX, |spec| spec.slot_end);
            if part.shared()?.is_some() && now <= slot_end.saturating_add(OUT_OF_SIGHT) {
                return Ok(false);
            }
            is_loose = true;
        }
        Ok(is_loose)
    }

    /// Packs the folder of a job that is over for good, and the folders of its runs on a cluster's disk.
    fn pack_named(&self, name: &str) -> Result<(), ExecutionError> {
        for part in job_folders_of_agreement(&self.folder(name))? {
            if !part.is_loose() {
                continue;
            }
            if let Some(shared) = part.shared()? {
                SharedDisk::with(&shared, &self.disks()).pack(&shared)?;
            }
            part.pack()?;
        }
        Ok(())
    }

    /// The folders with a job that ended before then, with their agreements. Removes the rest of earlier removals.
    fn ended_before(&self, before: Micros) -> Result<Vec<(String, Uuid)>, ExecutionError> {
        self.remove_doomed()?;
        let mut over = Vec::new();
        for (name, id) in self.folders()? {
            match self
                .last_of(&name)
                .and_then(|folder| job_folder_ended_at(&folder))
            {
                Ok(ended) => over.extend(ended.filter(|ended| *ended < before).map(|_| (name, id))),
                Err(error) => warn!(agreement = %id, %error, "the folder could not be read and stays"),
            }
        }
        Ok(over)
    }

    /// Removes the folder of a job of an ended agreement, if the job has ended too, and the folders of its earlier
    /// runs.
    ///
    /// # Errors
    /// When the system refuses; the next sweep removes the rest.
    pub fn remove_ended(&self, id: Uuid) -> Result<Removal, ExecutionError> {
        let mut own = self.folders()?;
        own.retain(|(_, each)| *each == id);
        for (name, _) in &own {
            let last = self.last_of(name)?;
            if last.spec()?.is_some() && last.end()?.is_none() {
                return Ok(Removal::Running);
            }
        }
        let mut removal = Removal::NothingThere;
        for (name, _) in &own {
            if self.remove_named(name)? {
                removal = Removal::Removed;
            }
        }
        Ok(removal)
    }

    /// Removes the folder of an ended job of an ended agreement. Returns whether there was one.
    ///
    /// # Errors
    /// When the system refuses; the next sweep removes the rest.
    pub fn remove(&self, id: Uuid) -> Result<bool, ExecutionError> {
        self.remove_named(&id.to_string())
    }

    fn remove_named(&self, name: &str) -> Result<bool, ExecutionError> {
        let path = self.folder(name);
        // Those that the job, and each slot, has on a disk of its cluster.
        for folder in job_folders_of_agreement(&path)? {
            if let Some(shared) = folder.shared()? {
                SharedDisk::with(&shared, &self.disks()).remove(&shared)?;
            }
        }
        let doomed = path.with_file_name(format!("{DOOMED}{}", Uuid::now_v7()));
        // In one step: half of a folder could not be recognised.
        let renamed = if_file_is_there(fs::rename(&path, &doomed));
        let Some(()) = renamed.map_err(ExecutionError::system("remove", &path))? else {
            return Ok(false);
        };
        lock(&self.known).remove(name);
        tree::remove_tree(&doomed).map_err(ExecutionError::system("remove", &doomed))?;
        Ok(true)
    }

    /// Puts the records of a job that was lost aside, with the number of its time.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn put_aside(&self, run: Run) -> Result<(), ExecutionError> {
        self.place_of_run(run)?.put_aside(run.attempt)?;
        // The known size is that of the attempt before.
        lock(&self.known).remove(&run.agreement.to_string());
        Ok(())
    }

    /// Removes the rest of an earlier removal.
    fn remove_doomed(&self) -> Result<(), ExecutionError> {
        for name in self.names_in_places()? {
            if name.starts_with(DOOMED) {
                let path = self.folder(&name);
                if let Err(error) = tree::remove_tree(&path) {
                    warn!(path = %path.display(), %error, "a folder to be removed stays for now");
                }
            }
        }
        Ok(())
    }

    /// Does an action off the async threads. An answer that never comes is as if the system had refused.
    async fn run_blocking<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Self) -> Result<T, ExecutionError> + Send + 'static,
    ) -> Result<T, ExecutionError> {
        let folders = self.clone();
        let cut_off = |error| ExecutionError::system("list", "jobs")(std::io::Error::other(error));
        let done = task::spawn_blocking(move || action(&folders)).await;
        done.map_err(cut_off)?
    }

    /// Looks again and again, and sweeps now and then the folders of jobs that ended `kept` seconds ago, until `stop`.
    pub async fn run_until_stopped(self, store: Store, clock: Clock, kept: Seconds, stop: CancellationToken) {
        let mut swept: Option<Instant> = None;
        // The disk of a cluster may be slow, or away: the look at local jobs does not wait for it.
        let mut clearing: Option<tokio::task::JoinHandle<()>> = None;
        let mut pause = Duration::ZERO;
        while stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_some()
        {
            let began = Instant::now();
            match self.run_blocking(Self::enforce_quotas).await {
                Ok(()) => task::note_success(),
                Err(error) => warn!(%error, "the sizes of job folders are not known"),
            }
            pause = (began.elapsed() * SHARE).clamp(LOOK, PAUSE_MAX);
            let is_clearing = clearing.as_ref().is_some_and(|task| !task.is_finished());
            if !is_clearing && swept.is_none_or(|at| at.elapsed() >= SWEEP) {
                let (folders, store, now) = (self.clone(), store.clone(), clock.micros());
                clearing = Some(task::spawn(
                    async move { folders.clear_up(&store, now, kept).await },
                ));
                swept = Some(Instant::now());
            }
        }
        if let Some(clearing) = clearing {
            clearing.abort();
        }
    }

    /// Removes folders that have passed their time, packs the folders of ended jobs, and removes the drafts that crashes have
    /// left on the disks of clusters.
    async fn clear_up(&self, store: &Store, now: Micros, kept: Seconds) {
        match self.sweep(store, now - kept * MICROS_PER_SECOND).await {
            Ok(0) => {}
            Ok(removed) => info!(removed, "removed folders of jobs after their time was over"),
            Err(error) => warn!(%error, "job folders could not be removed in time"),
        }
        match self.pack(store, now).await {
            Ok(0) => {}
            Ok(packed) => info!(packed, "packed folders of jobs that are over"),
            Err(error) => warn!(%error, "folders of jobs are not packed"),
        }
        for disk in self.disks().iter() {
            let disk = disk.clone();
            if let Err(error) = self.run_blocking(move |_| disk.clear()).await {
                warn!(%error, "drafts of folders stay for now");
            }
        }
    }

    /// The folders of jobs by name, including the ones that were put aside, each with its agreement.
    fn folders(&self) -> Result<Vec<(String, Uuid)>, ExecutionError> {
        let with_agreement = |name: String| {
            let id = name.split(ASIDE).next()?.parse().ok()?;
            Some((name, id))
        };
        Ok(self
            .names_in_places()?
            .into_iter()
            .filter_map(with_agreement)
            .collect())
    }

    /// The folder of this name, or inside of it that of the last slot that there is one of.
    fn last_of(&self, name: &str) -> Result<Folder, ExecutionError> {
        let first = self.folder(name);
        let number = |name: &String| name.strip_prefix(PIECE)?.parse::<u32>().ok();
        let last = names_of_job_folders(&first)?
            .iter()
            .flatten()
            .filter_map(number)
            .max();
        Ok(match last {
            Some(piece) => Folder::at(&first.join(format!("{PIECE}{piece}"))),
            None => Folder::at(&first),
        })
    }
}

/// The folder of a job, and those inside of it of later slots and of their times before; none where it is not there.
fn job_folders_of_agreement(path: &Path) -> Result<Vec<Folder>, ExecutionError> {
    let Some(names) = names_of_job_folders(path)? else {
        return Ok(Vec::new());
    };
    let pieces = names.iter().filter(|name| name.starts_with(PIECE));
    let pieces = pieces.map(|name| Folder::at(&path.join(name)));
    Ok(pieces.chain([Folder::at(path)]).collect())
}

/// When the job of a folder ended; where nothing was started in it, when its files were last moved.
fn job_folder_ended_at(folder: &Folder) -> Result<Option<Micros>, ExecutionError> {
    if let Some(end) = folder.end()? {
        return Ok(Some(end.ended));
    }
    let brought = if folder.spec()?.is_none() {
        folder.staging()?
    } else {
        None
    };
    Ok(brought.map(|record| record.last()))
}

/// The names in a folder; none where that is not there.
fn names_of_job_folders(path: &Path) -> Result<Option<Vec<String>>, ExecutionError> {
    let entries = if_file_is_there(fs::read_dir(path)).map_err(ExecutionError::system("list", path))?;
    let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
    Ok(entries.map(|entries| entries.flatten().filter_map(name).collect()))
}

#[cfg(test)]
mod tests;
