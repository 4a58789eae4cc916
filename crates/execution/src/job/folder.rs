//! A job's folder: the durable record of the intent, the start and the end of the job, with the job's working
//! folder and its outputs. The service, the job's supervisor and its launcher know of each other by these files alone,
//! so that any of them may be killed at any time.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `spec.json` | the executor, once | the intent: the program to run, and until when |
//! | `lock` | the supervisor | locked while one is at work; which process that is |
//! | `inputs.json` | the executor, once | which files it was given to read, so that their growth counts as written |
//! | `claim.json` | the first of launcher and supervisor, once | the job started as this process, or never will |
//! | `.stdout.pipe`, `.stderr.pipe` | the supervisor | nothing: the job's outputs pass through them |
//! | `isolation` | the tool that isolates the job | how that went, and the exit status of its program |
//! | `until.json` | the executor | until when it may run, where that has changed since the intent |
//! | `save.json` | the executor | whether it is told to save its work, where that has changed since the intent |
//! | `stop` | the executor | the job is to be stopped |
//! | `shared.json` | the executor, once | where the job's other folder is, on a disk that a cluster's nodes share |
//! | `copied.json` | the executor, once | for how long its inputs were copied there |
//! | `put-off.json` | the executor, once | the job's user has had it wait on its cluster |
//! | `staging.json` | the service | how far the files have come that are moved for it |
//! | `incomplete` | the executor, once | not all files that it left on its cluster's disk came back |
//! | `end.json` | the supervisor, once | how it ended; nothing runs any more |
//!
//! When its agreement is over, a folder is packed (`packed`): `end.json` is replaced by one that has the still needed parts of
//! the others.
//!
//! The claim makes a job start at most once: it is created exclusively, by the same process that then becomes the job.
//!
//! Work that was lost and is run again has a new folder each time, and that of the time before is put aside under its name
//! with the number of its time, from 0.
//!
//! Work in several slots has such records for each slot, and one working folder and one pair of outputs for all. The
//! records of the second and later slots are in folders of their own inside.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::agreement::{JobEnd, Run};
use domain::clock::Micros;
use rustix::fs::FlockOperation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::files::if_file_is_there;
use crate::files::inputs::put_input_file;
use crate::files::known_file::KnownFile;
use crate::files::tree;
use crate::files::walk::Walk;
use crate::job::excess::Excess;
use crate::job::process::ProcessIdentity;
use crate::job::staging_record::StagingRecord;
use crate::job::start_time::StartTime;
use crate::{ExecutionError, JobSpec, SaveWork, StagedInput};

/// Bytes of a record at most: 64 arguments of 1,024 characters and as many paths fit many times.
const RECORD_MAX: u64 = 4 << 20;

const SPEC: &str = "spec.json";
const INPUTS: &str = "inputs.json";
const LOCK: &str = "lock";
const CLAIM: &str = "claim.json";
const ISOLATION: &str = "isolation";
const UNTIL: &str = "until.json";
const SAVE: &str = "save.json";
const STOP: &str = "stop";
const END: &str = "end.json";
const SHARED: &str = "shared.json";
const COPIED: &str = "copied.json";
const PUT_OFF: &str = "put-off.json";
const STAGING: &str = "staging.json";
const INCOMPLETE: &str = "incomplete";
const WORK: &str = "work";
const PARTS: &str = "parts";
const TEMPORARY: &str = "tmp";
const LOG: &str = "supervisor.log";
/// The name of the folders of the records of later slots, followed by the number.
pub(crate) const PIECE: &str = "piece-";
/// The separator between the name and the number of a folder that was put aside.
pub(crate) const ASIDE: char = '.';

/// The folder of one job.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Where the records are.
    path: PathBuf,
    /// Where the working folder and the outputs are.
    common: PathBuf,
}

/// The result of the intent to run a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Claim {
    /// It runs, or ran, as this process.
    Started {
        /// The process, leader of the job's process group.
        process: ProcessIdentity,
        /// When it started.
        #[serde(flatten)]
        began: StartTime,
    },
    /// It never started and never will.
    Abandoned,
}

impl Folder {
    /// The folder of a run below the folder of all jobs, there or not: that of the slot's present attempt.
    pub(crate) fn of(jobs: &Path, run: Run) -> Self {
        let common = jobs.join(run.agreement.to_string());
        match run.slot {
            1 => Self::at(&common),
            slot => Self::at(&common.join(format!("{PIECE}{slot}"))),
        }
    }

    /// The folder at a path.
    pub(crate) fn at(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_later = name.is_some_and(|name| name.starts_with(PIECE));
        let common = path.parent().filter(|_| is_later).unwrap_or(path);
        Self {
            path: path.to_owned(),
            common: common.to_owned(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the job runs.
    pub(crate) fn work(&self) -> PathBuf {
        self.common.join(WORK)
    }

    /// Where the working folder and the outputs of all its slots are.
    pub(crate) fn common(&self) -> &Path {
        &self.common
    }

    /// Whether it is the folder of a later slot: its job goes on in the working folder of the first.
    pub(crate) fn is_later(&self) -> bool {
        self.path != self.common
    }

    /// The place for files that the job needs only while it runs.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.common.join(TEMPORARY)
    }

    /// Puts away the files that the job needed only while it ran. Returns their removal, which takes the longer the more there
    /// is, and is right even if new files are at their place by then; none where there are no such files.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn put_away_temporary(&self) -> io::Result<Option<impl FnOnce() -> io::Result<()> + use<>>> {
        let name = format!(".{TEMPORARY}.{}", Uuid::now_v7());
        let folder = OwnedFd::from(File::open(&self.common)?);
        let moved = if_file_is_there(rustix::fs::renameat(&folder, TEMPORARY, &folder, &name))?;
        Ok(moved.map(|()| move || tree::remove_from_tree(&folder, name.as_ref())))
    }

    /// Makes the folder of a job below `jobs` with everything that the job needs, and then, durably, the intent to run
    /// it. An intent that is there stays as it is.
    pub(crate) fn create(jobs: &Path, job: &JobSpec) -> Result<Self, ExecutionError> {
        let folder = Self::of(jobs, job.run());
        let work = folder.work();
        for path in [&work, &folder.temporary(), &folder.path] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(ExecutionError::system("create", path))?;
        }
        let mut inputs = Vec::new();
        for input in &job.inputs {
            let link = work.join(input.file_name().unwrap_or_default());
            let draft = folder.temporary().join("input");
            let known = put_input_file(input, &link, &draft, false).and_then(|()| KnownFile::at(&link));
            inputs.extend(known.map_err(ExecutionError::system("link", link))?);
        }
        for staged in &job.staged {
            let known = folder.put_staged(staged);
            inputs.extend(known.map_err(ExecutionError::system("bring", work.join(&staged.name)))?);
        }
        // By a later slot something else may stand at their names.
        if !inputs.is_empty() && !folder.is_later() {
            folder.write_once(INPUTS, &inputs)?;
        }
        for path in [jobs, &folder.common, folder.path(), &work] {
            sync_folder(path).map_err(ExecutionError::system("sync", path))?;
        }
        folder.write_once(SPEC, job)?;
        Ok(folder)
    }

    /// Whether a job was begun here, also where the folder has been packed since.
    pub(crate) fn is_begun(&self) -> bool {
        [SPEC, END].iter().any(|name| self.path.join(name).exists())
    }

    /// Puts copies of the files that a job reads into its working folder, so that a process on another machine finds them there. Returns
    /// the job that reads the copies.
    pub(crate) fn copy_inputs(&self, job: JobSpec) -> Result<JobSpec, ExecutionError> {
        if self.is_later() {
            return Ok(job);
        }
        let (work, temporary) = (self.work(), self.temporary());
        for path in [&work, &temporary] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(ExecutionError::system("create", path))?;
        }
        for (name, from) in job.uploads() {
            let copy = work.join(name);
            let copied = put_input_file(from, &copy, &temporary.join("input"), true);
            copied.map_err(ExecutionError::system("copy", copy))?;
        }
        let inputs = job.inputs.iter();
        let inputs = inputs.map(|input| work.join(input.file_name().unwrap_or_default()));
        let inputs = inputs.collect();
        Ok(JobSpec { inputs, ..job })
    }

    /// Puts a file that was brought, or uploaded, into the working folder, unless it is there.
    fn put_staged(&self, staged: &StagedInput) -> io::Result<Option<KnownFile>> {
        let link = self.work().join(&staged.name);
        if let Some(from) = &staged.from {
            // The job may change a file that is sent afterwards: it has a copy.
            put_input_file(from, &link, &self.temporary().join("input"), staged.returns)?;
        } else if fs::symlink_metadata(&link).is_err() {
            fs::rename(self.part(&staged.name), &link)?;
        }
        KnownFile::at(&link)
    }

    /// Where a file is put that is brought for the job, until all are there.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.common.join(PARTS).join(name)
    }

    /// Removes what has been brought of files and is not in the working folder.
    pub(crate) fn remove_parts(&self) -> Result<(), ExecutionError> {
        let parts = self.common.join(PARTS);
        tree::remove_tree(&parts).map_err(ExecutionError::system("remove", parts))
    }

    /// Removes files of the working folder, where they are there.
    pub(crate) fn remove_files<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), ExecutionError> {
        for name in names {
            let path = self.work().join(name);
            let is_file = fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir());
            if is_file {
                if_file_is_there(fs::remove_file(&path)).map_err(ExecutionError::system("remove", path))?;
            }
        }
        Ok(())
    }

    /// How far the files have come that are moved for the job; none where none are.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn staging(&self) -> Result<Option<StagingRecord>, ExecutionError> {
        self.read_record(STAGING)
    }

    /// Notes, durably, how far they have come. There may be no folder yet.
    pub(crate) fn put_staging(&self, record: &StagingRecord) -> Result<(), ExecutionError> {
        let mut folder = DirBuilder::new();
        let made = folder.recursive(true).mode(0o700).create(&self.path);
        made.map_err(ExecutionError::system("create", &self.path))?;
        self.write_anew(STAGING, record)
    }

    /// Bytes of the files that were brought for it from addresses and are still there. The caller has the first slot's folder.
    pub(crate) fn brought_bytes(&self) -> Result<u64, ExecutionError> {
        let Some(record) = self.staging()? else {
            return Ok(0);
        };
        let is_there = |name: &str| {
            let places = [self.part(name), self.work().join(name)];
            places.iter().any(|path| fs::symlink_metadata(path).is_ok())
        };
        let there = record.brought.files.iter().filter(|file| is_there(&file.name));
        Ok(there.map(|file| file.bytes).sum())
    }

    /// Notes, durably, that not all files of the job could be had from its cluster's disk.
    pub(crate) fn note_incomplete(&self) -> Result<(), ExecutionError> {
        self.write_once(INCOMPLETE, &true).map(drop)
    }

    /// Whether that has been noted.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.common.join(INCOMPLETE).exists()
    }

    /// Puts the records of a job that was lost aside, durably, with the number of its attempt, so that there may be another
    /// job of its identity. For work in one slot, or for a first slot, all of its output goes with them.
    pub(crate) fn put_aside(&self, time: u32) -> Result<(), ExecutionError> {
        let name = self.path.file_name().unwrap_or_default().display();
        let aside = self.path.with_file_name(format!("{name}{ASIDE}{time}"));
        let rename = || {
            fs::rename(&self.path, &aside)?;
            aside.parent().map_or(Ok(()), sync_folder)
        };
        rename().map_err(ExecutionError::system("put aside", &self.path))
    }

    /// The intent to run the job, with the end that its slot has by now; `None` before there is one.
    pub(crate) fn spec(&self) -> Result<Option<JobSpec>, ExecutionError> {
        let Some(mut job) = self.read_record::<JobSpec>(SPEC)? else {
            return Ok(None);
        };
        job.slot_end = self.until()?.unwrap_or(job.slot_end);
        Ok(Some(job))
    }

    /// Until when the job may run, where that has changed since the intent.
    pub(crate) fn until(&self) -> Result<Option<Micros>, ExecutionError> {
        self.read_record(UNTIL)
    }

    /// Has the job stop at another instant, durably.
    pub(crate) fn put_until(&self, end: Micros) -> Result<(), ExecutionError> {
        self.write_anew(UNTIL, &end)
    }

    /// How a job, with the intent that its folder has, is told to save its work by now.
    pub(crate) fn save(&self, intent: &JobSpec) -> Result<Option<SaveWork>, ExecutionError> {
        // A record of nothing says that it is not told.
        let changed: Option<Vec<SaveWork>> = self.read_record(SAVE)?;
        let intended = intent.piece.and_then(|piece| piece.save);
        Ok(changed.map_or(intended, |save| save.first().copied()))
    }

    /// Has the job be told to save its work, or not be told, durably.
    pub(crate) fn put_save(&self, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        self.write_anew(SAVE, &Vec::from_iter(save))
    }

    /// Whether the job started; `None` while that is not decided.
    pub(crate) fn claim(&self) -> Result<Option<Claim>, ExecutionError> {
        self.read_record(CLAIM)
    }

    /// Decides whether the job starts, unless that is decided already; answers whether this call decided.
    pub(crate) fn decide_claim(&self, claim: &Claim) -> Result<bool, ExecutionError> {
        self.write_once(CLAIM, claim)
    }

    /// Takes the claim of a process back that is gone and has run nothing of the job: another one may start it.
    pub(crate) fn take_back_claim(&self) -> Result<(), ExecutionError> {
        let path = self.path.join(CLAIM);
        let take = if_file_is_there(fs::remove_file(&path)).and_then(|_| sync_folder(&self.path));
        take.map_err(ExecutionError::system("take back", path))
    }

    /// Where the tool that isolates the job says how that went.
    pub(crate) fn isolation_status(&self) -> PathBuf {
        self.path.join(ISOLATION)
    }

    /// How the job ended; `None` while it has not.
    pub(crate) fn end(&self) -> Result<Option<JobEnd>, ExecutionError> {
        self.read_record(END)
    }

    /// Records how the job ended.
    pub(crate) fn write_end(&self, end: &JobEnd) -> Result<(), ExecutionError> {
        self.write_once(END, end).map(|_| ())
    }

    /// Leaves the request to stop the job, with the exceeded limit where this is the reason.
    pub(crate) fn ask_to_stop(&self, why: Option<&Excess>) -> Result<(), ExecutionError> {
        self.write_once(STOP, &why).map(|_| ())
    }

    /// The exceeded limit, where the job is to be stopped because of it.
    pub(crate) fn why_stopped(&self) -> Result<Option<Excess>, ExecutionError> {
        self.read_record(STOP).map(Option::flatten)
    }

    /// Notes, durably, that the job has another folder, on a disk that nodes of a cluster share; the first note stays.
    pub(crate) fn note_shared(&self, path: &Path) -> Result<(), ExecutionError> {
        self.write_once(SHARED, &path).map(drop)
    }

    /// The job's other folder, there or not; none where it never had one.
    pub(crate) fn shared(&self) -> Result<Option<PathBuf>, ExecutionError> {
        self.read_record(SHARED)
    }

    /// Notes, durably, for how long the job's inputs were copied; the first note stays.
    pub(crate) fn note_copied(&self, took: Micros) -> Result<(), ExecutionError> {
        self.write_once(COPIED, &took).map(drop)
    }

    /// For how long the job's inputs were copied; none where they were not.
    pub(crate) fn copy_duration(&self) -> Result<Option<Micros>, ExecutionError> {
        self.read_record(COPIED)
    }

    /// Notes, durably, that the job's own user has had it wait for something else than its nodes.
    pub(crate) fn note_put_off(&self) -> Result<(), ExecutionError> {
        if self.was_put_off() {
            return Ok(());
        }
        self.write_once(PUT_OFF, &true).map(drop)
    }

    /// Whether that has been noted.
    pub(crate) fn was_put_off(&self) -> bool {
        self.path().join(PUT_OFF).exists()
    }

    /// The files that the job was given to read.
    pub(crate) fn given_files(&self) -> Result<Vec<KnownFile>, ExecutionError> {
        Ok(Self::at(&self.common).read_record(INPUTS)?.unwrap_or_default())
    }

    /// Goes through the files that take space on the disk because of the job: all of its folder except its inputs, and these others.
    pub(crate) fn walk(&self, others: Vec<KnownFile>) -> Result<Walk, ExecutionError> {
        let known = self.given_files()?.into_iter().chain(others);
        Walk::through(&self.common, known.collect())
            .map_err(ExecutionError::system("look into", &self.common))
    }

    /// Goes through the files as [`Folder::walk`] does, to the end.
    pub(crate) fn walked(&self) -> Result<Walk, ExecutionError> {
        let walked = self.walk(Vec::new())?.finish();
        walked.map_err(ExecutionError::system("look into", &self.common))
    }

    /// Whether the job is to be stopped.
    pub(crate) fn stop_asked(&self) -> bool {
        self.path.join(STOP).exists()
    }

    /// Takes the lock of the supervisor for this process; `None` where another holds it. The system releases it when the
    /// process is gone, however it went.
    pub(crate) fn lock(&self) -> Result<Option<File>, ExecutionError> {
        let path = self.path.join(LOCK);
        let lock = || -> io::Result<Option<File>> {
            let mut options = OpenOptions::new();
            let options = options.create(true).truncate(false).write(true).mode(0o600);
            let mut file = options.open(&path)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                locked => locked?,
            }
            let identity = serde_json::to_vec(&ProcessIdentity::current()?)?;
            file.set_len(0)?;
            file.write_all(&identity)?;
            Ok(Some(file))
        };
        lock().map_err(ExecutionError::system("lock", &path))
    }

    /// Whether a supervisor is at work. One that has not yet said so is missed; a second one then finds the lock taken.
    pub(crate) fn is_supervised(&self) -> bool {
        let identity = self.read_record::<ProcessIdentity>(LOCK).ok().flatten();
        identity.is_some_and(|supervisor| supervisor.is_alive())
    }

    /// The log of the job's supervisors, with the reasons of failures.
    pub(crate) fn open_log(&self) -> Result<File, ExecutionError> {
        let path = self.path.join(LOG);
        let mut options = OpenOptions::new();
        options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(ExecutionError::system("open", path))
    }

    fn read_file<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ExecutionError> {
        let path = self.path.join(name);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(RECORD_MAX).read_to_end(&mut bytes));
        let read = if_file_is_there(read).map_err(ExecutionError::system("read", &path))?;
        let record = read.map(|_| serde_json::from_slice(&bytes)).transpose();
        record.map_err(|error| ExecutionError::Damaged {
            path,
            reason: error.to_string(),
        })
    }

    /// Writes a record durably under the name of a draft. Returns its path.
    fn draft(&self, name: &str, record: &impl Serialize) -> io::Result<PathBuf> {
        let draft = self.path.join(format!(".{name}.{}", Uuid::now_v7()));
        let mut options = OpenOptions::new();
        let mut file = options.create_new(true).write(true).mode(0o600).open(&draft)?;
        let written = file.write_all(&serde_json::to_vec(record)?);
        if let Err(error) = written.and_then(|()| file.sync_all()) {
            // The disk may be full, and this tried again and again.
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(draft)
    }

    /// Writes a record in place of the one that is there, durably.
    fn write_anew(&self, name: &str, record: &impl Serialize) -> Result<(), ExecutionError> {
        let path = self.path.join(name);
        let write = || -> io::Result<()> {
            fs::rename(self.draft(name, record)?, &path)?;
            sync_folder(&self.path)
        };
        write().map_err(ExecutionError::system("write", &path))
    }

    /// Writes a record that appears whole and durably or not at all, unless it is there already; answers whether this
    /// call wrote it. Once this answers, whichever way, the record is durable.
    fn write_once(&self, name: &str, record: &impl Serialize) -> Result<bool, ExecutionError> {
        let path = self.path.join(name);
        let write = || -> io::Result<bool> {
            let draft = self.draft(name, record)?;
            // Unlike a rename, a link does not replace a file that another process may have put there.
            let linked = fs::hard_link(&draft, &path);
            // A draft that stays behind does no harm: it is never read.
            let _ = fs::remove_file(&draft);
            let written = match linked {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
                linked => linked.map(|()| true)?,
            };
            sync_folder(&self.path)?;
            Ok(written)
        };
        write().map_err(ExecutionError::system("write", &path))
    }
}

/// Makes the creations, links and renames in a folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub mod outputs;
mod packing;
#[cfg(test)]
mod tests;
