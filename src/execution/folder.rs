//! A job's folder: the durable record of what is to run, what was started and how it ended, with the job's working
//! folder and its outputs. The service, the job's supervisor and its launcher know of each other by these files alone,
//! so that any of them may be killed at any time.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `spec.json` | the executor, once | the intent: what is to run, and until when |
//! | `lock` | the supervisor | locked while one is at work; which process that is |
//! | `inputs.json` | the executor, once | which files it was given to read, so that what they grow counts as written |
//! | `claim.json` | the launcher or the supervisor, whoever is first, once | the job started as this process, or never will |
//! | `until.json` | the executor | until when it may run, where that has changed since the intent |
//! | `save.json` | the executor | whether it is told to save its work, where that has changed since the intent |
//! | `stop` | the executor | the job is to be stopped |
//! | `shared.json` | the executor, once | where the job's other folder is, on a disk that a cluster's nodes share |
//! | `copied.json` | the executor, once | for how long its inputs were copied there |
//! | `put-off.json` | the executor, once | the job's user has had it wait on its cluster |
//! | `end.json` | the supervisor, once | how it ended; nothing runs any more |
//!
//! When its agreement is over, a folder is packed (`packed`): `end.json` is replaced by one that has what is still read of the others.
//!
//! The claim is what makes a job start at most once: it is created exclusively, by the very process that then becomes
//! the job.
//!
//! Work that was lost and is run again has a new folder each time, and that of the time before is put aside under its name
//! with the number of its time, from 0.
//!
//! Work that is done in pieces has such records for each piece, those of the second and later ones in folders of their own
//! inside, and one working folder and one pair of outputs for all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::began::Began;
use super::files::{modified, put_input};
use super::limits::Excess;
use super::process::ProcessIdentity;
use super::tree::{self, KnownFile, Walk};
use super::{ExecutionError, JobId, JobSpec, SaveWork};
use crate::agreement::JobEnd;
use crate::catalogue::is_file_name;
use crate::clock::Micros;

/// Bytes of a record at most: 64 arguments of 1,024 characters and as many paths fit many times.
const RECORD_MAX: u64 = 4 << 20;

/// Files of a job's working folder that are listed at most: as many as a person looks through.
const WRITTEN_FILES_MAX: usize = 1_000;

const SPEC: &str = "spec.json";
const INPUTS: &str = "inputs.json";
const LOCK: &str = "lock";
const CLAIM: &str = "claim.json";
const UNTIL: &str = "until.json";
const SAVE: &str = "save.json";
const STOP: &str = "stop";
const END: &str = "end.json";
const WORK: &str = "work";
const TEMPORARY: &str = "tmp";
const LOG: &str = "supervisor.log";
/// What the folders of the records of later pieces are called, followed by the number.
pub(super) const PIECE: &str = "piece-";
/// What stands between the name and the number of a folder that was put aside.
pub(super) const ASIDE: char = '.';

/// The folder of one job.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Where the records are.
    path: PathBuf,
    /// Where the working folder and the outputs are.
    common: PathBuf,
}

/// What became of the intent to run a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Claim {
    /// It runs, or ran, as this process.
    Started {
        /// The process, leader of the job's process group.
        process: ProcessIdentity,
        /// When it started.
        #[serde(flatten)]
        began: Began,
    },
    /// It never started and never will.
    Abandoned,
}

/// One of a job's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The standard output.
    Out,
    /// The standard error output.
    Err,
}

/// What a job has written: one of its two outputs, or a file that it left in its working folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// An output.
    Stream(Stream),
    /// A file, by a name that [`is_file_name`] admits.
    File(String),
}

/// A file that a job has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its name.
    pub name: String,
    /// Its length by now.
    pub bytes: u64,
    /// When it was last written to.
    pub modified: Micros,
}

impl Stream {
    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// What a job needed only while it ran, where it is in nobody's way.
pub(super) struct PutAway {
    folder: OwnedFd,
    name: String,
}

impl PutAway {
    /// Removes it, which takes the longer the more there is.
    pub(super) fn remove(self) -> io::Result<()> {
        tree::remove_from(&self.folder, self.name.as_ref())
    }
}

/// Held while a supervisor is at work; the system releases it when that process is gone, however it went.
pub(super) struct Lock {
    _file: File,
}

impl Folder {
    /// The folder of an agreement's job below the folder of all jobs, there or not.
    pub fn of(jobs: &Path, agreement: Uuid) -> Self {
        Self::of_job(jobs, agreement.into())
    }

    /// The folder of a job below the folder of all jobs, there or not.
    pub fn of_job(jobs: &Path, job: JobId) -> Self {
        let common = jobs.join(job.agreement.to_string());
        let path = match job.piece {
            1 => common.clone(),
            piece => common.join(format!("{PIECE}{piece}")),
        };
        Self { path, common }
    }

    /// The folder at a path.
    pub fn at(path: &Path) -> Self {
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
    pub fn work(&self) -> PathBuf {
        self.common.join(WORK)
    }

    /// Where the job puts what it needs only while it runs.
    pub fn temporary(&self) -> PathBuf {
        self.common.join(TEMPORARY)
    }

    /// Puts away what the job needed only while it ran, to be removed whatever is at its place by then; none where there is
    /// nothing.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn put_away_temporary(&self) -> io::Result<Option<PutAway>> {
        let name = format!(".{TEMPORARY}.{}", Uuid::now_v7());
        let folder = OwnedFd::from(File::open(&self.common)?);
        match rustix::fs::renameat(&folder, TEMPORARY, &folder, &name) {
            Err(Errno::NOENT) => Ok(None),
            moved => Ok(moved.map(|()| Some(PutAway { folder, name }))?),
        }
    }

    /// Adds a line about the job to what it wrote to its standard error output.
    pub(super) fn tell(&self, line: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let mut file = options.open(self.common.join(Stream::Err.name()))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Makes the folder of a job below `jobs` with everything that the job needs, and then, durably, the intent to run
    /// it. An intent that is there stays as it is.
    pub(super) fn create(jobs: &Path, job: &JobSpec) -> Result<Self, ExecutionError> {
        let folder = Self::of_job(jobs, job.id());
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
            let known = put_input(input, &link, &draft).and_then(|()| KnownFile::at(&link));
            inputs.extend(known.map_err(ExecutionError::system("link", link))?);
        }
        // By a later piece something else may stand at their names.
        if !inputs.is_empty() && folder.path == folder.common {
            folder.write_once(INPUTS, &inputs)?;
        }
        for path in [jobs, &folder.common, folder.path(), &work] {
            sync_folder(path).map_err(ExecutionError::system("sync", path))?;
        }
        folder.write_once(SPEC, job)?;
        Ok(folder)
    }

    /// Puts the records of a job that was lost aside, durably, with the number of its time, so that there may be another one of
    /// its identity. With those of work in one, or of a first piece, goes all that it wrote.
    pub(super) fn put_aside(&self, time: u32) -> Result<(), ExecutionError> {
        let name = self.path.file_name().unwrap_or_default().display();
        let aside = self.path.with_file_name(format!("{name}{ASIDE}{time}"));
        let rename = || {
            fs::rename(&self.path, &aside)?;
            aside.parent().map_or(Ok(()), sync_folder)
        };
        rename().map_err(ExecutionError::system("put aside", &self.path))
    }

    /// The intent to run the job, with the end that its slot has by now; `None` before there is one.
    pub(super) fn spec(&self) -> Result<Option<JobSpec>, ExecutionError> {
        let Some(mut job) = self.read::<JobSpec>(SPEC)? else {
            return Ok(None);
        };
        job.slot_end = self.until()?.unwrap_or(job.slot_end);
        Ok(Some(job))
    }

    /// Until when the job may run, where that has changed since the intent.
    pub(super) fn until(&self) -> Result<Option<Micros>, ExecutionError> {
        self.read(UNTIL)
    }

    /// Has the job stop at another instant, durably.
    pub(super) fn put_until(&self, end: Micros) -> Result<(), ExecutionError> {
        self.write_anew(UNTIL, &end)
    }

    /// How a job, with the intent that its folder has, is told to save its work by now.
    pub(super) fn save(&self, intent: &JobSpec) -> Result<Option<SaveWork>, ExecutionError> {
        // A record of nothing says that it is not told.
        let changed: Option<Vec<SaveWork>> = self.read(SAVE)?;
        let intended = intent.piece.and_then(|piece| piece.save);
        Ok(changed.map_or(intended, |save| save.first().copied()))
    }

    /// Has the job be told to save its work, or not be told, durably.
    pub(super) fn put_save(&self, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        self.write_anew(SAVE, &Vec::from_iter(save))
    }

    /// Whether the job started; `None` while nobody knows.
    pub(super) fn claim(&self) -> Result<Option<Claim>, ExecutionError> {
        self.read(CLAIM)
    }

    /// Decides whether the job starts, unless that is decided already; answers whether this call decided.
    pub(super) fn decide(&self, claim: &Claim) -> Result<bool, ExecutionError> {
        self.write_once(CLAIM, claim)
    }

    /// How the job ended; `None` while it has not.
    pub(super) fn end(&self) -> Result<Option<JobEnd>, ExecutionError> {
        self.read(END)
    }

    /// Records how the job ended.
    pub(super) fn write_end(&self, end: &JobEnd) -> Result<(), ExecutionError> {
        self.write_once(END, end).map(|_| ())
    }

    /// Leaves the request to stop the job, with what there is too much of where that is why.
    pub(super) fn ask_to_stop(&self, why: Option<&Excess>) -> Result<(), ExecutionError> {
        self.write_once(STOP, &why).map(|_| ())
    }

    /// What there is too much of, where the job is to be stopped because of that.
    pub(super) fn why_stopped(&self) -> Result<Option<Excess>, ExecutionError> {
        self.read(STOP).map(Option::flatten)
    }

    /// Goes through what takes space on the disk because of the job: all of its folder but what it was given to read.
    pub(super) fn walk(&self) -> Result<Walk, ExecutionError> {
        let inputs = Self::at(&self.common).read(INPUTS)?.unwrap_or_default();
        Walk::through(&self.common, inputs).map_err(ExecutionError::system("look into", &self.common))
    }

    /// The same to its end.
    pub(super) fn walked(&self) -> Result<Walk, ExecutionError> {
        let walked = self.walk()?.finish();
        walked.map_err(ExecutionError::system("look into", &self.common))
    }

    /// Whether the job is to be stopped.
    pub(super) fn stop_asked(&self) -> bool {
        self.path.join(STOP).exists()
    }

    /// Takes the lock of the supervisor for this process; `None` where another holds it.
    pub(super) fn lock(&self) -> Result<Option<Lock>, ExecutionError> {
        let path = self.path.join(LOCK);
        let failed = |error| ExecutionError::system("lock", &path)(error);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            locked => locked.map_err(|errno| failed(errno.into()))?,
        }
        let identity = ProcessIdentity::current().map_err(failed)?;
        let identity = serde_json::to_vec(&identity).map_err(|error| failed(error.into()))?;
        file.set_len(0)
            .and_then(|()| file.write_all(&identity))
            .map_err(failed)?;
        Ok(Some(Lock { _file: file }))
    }

    /// Whether a supervisor is at work. One that has not yet said so is missed; a second one then finds the lock taken.
    pub(super) fn is_supervised(&self) -> bool {
        let identity = self.read::<ProcessIdentity>(LOCK).ok().flatten();
        identity.is_some_and(|supervisor| supervisor.is_alive())
    }

    /// A file for an output: a new one, empty, or for a later piece of work the one of the pieces before, at its end.
    pub(super) fn create_output(&self, stream: Stream) -> Result<File, ExecutionError> {
        let path = self.common.join(stream.name());
        let is_later = self.path != self.common;
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        if is_later {
            options.append(true)
        } else {
            options.truncate(true).write(true)
        };
        options
            .open(&path)
            .map_err(ExecutionError::system("create", path))
    }

    /// The log of the job's supervisors, for whoever looks for the reason of a failure.
    pub(super) fn open_log(&self) -> Result<File, ExecutionError> {
        let path = self.path.join(LOG);
        let mut options = OpenOptions::new();
        options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(ExecutionError::system("open", path))
    }

    /// Bytes of the outputs as they are kept.
    pub(super) fn output_bytes(&self) -> u64 {
        let bytes =
            |stream: Stream| fs::metadata(self.common.join(stream.name())).map_or(0, |meta| meta.len());
        bytes(Stream::Out) + bytes(Stream::Err)
    }

    /// One of the outputs as a file, once there is one. One that is empty is not kept.
    pub fn stream(&self, stream: Stream) -> Option<WrittenFile> {
        let (bytes, modified) = match fs::metadata(self.common.join(stream.name())) {
            Ok(meta) => (meta.len(), modified(&meta)),
            Err(_) => (0, self.ran_until()?),
        };
        Some(WrittenFile {
            name: stream.name().to_owned(),
            bytes,
            modified,
        })
    }

    /// What a name means among the things that the job writes: its outputs always, a file of its working folder where
    /// there is one. Inputs, links and folders are none.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn written(&self, name: &str) -> Result<Option<Written>, ExecutionError> {
        let streams = [Stream::Out, Stream::Err];
        if let Some(stream) = streams.into_iter().find(|stream| stream.name() == name) {
            return Ok(Some(Written::Stream(stream)));
        }
        let files = self.written_files()?;
        Ok(files
            .into_iter()
            .find(|file| file.name == name)
            .map(|file| Written::File(file.name)))
    }

    /// The files that the job has left in its working folder, by name: the first [`WRITTEN_FILES_MAX`] found.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn written_files(&self) -> Result<Vec<WrittenFile>, ExecutionError> {
        let inputs = self.spec()?.map(|spec| spec.inputs).unwrap_or_default();
        let is_input = |name: &str| {
            inputs
                .iter()
                .any(|input| input.file_name().is_some_and(|input| input == name))
        };
        let work = self.work();
        let list = || -> io::Result<Vec<WrittenFile>> {
            let entries = match fs::read_dir(&work) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries?,
            };
            let mut files = Vec::new();
            for entry in entries {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                // Of a link, this is about the link.
                let meta = match entry.metadata() {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    meta => meta?,
                };
                if meta.is_file() && is_file_name(&name) && !is_input(&name) {
                    files.push(WrittenFile {
                        name,
                        bytes: meta.len(),
                        modified: modified(&meta),
                    });
                }
                if files.len() == WRITTEN_FILES_MAX {
                    break;
                }
            }
            files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            Ok(files)
        };
        list().map_err(ExecutionError::system("list", &work))
    }

    /// Opens what the job has written, while it is being written or afterwards; none where it is not there.
    ///
    /// # Errors
    /// When the system refuses, or a job has put something else where a file was.
    pub fn open(&self, written: &Written) -> Result<Option<File>, ExecutionError> {
        let path = match written {
            Written::Stream(stream) => self.common.join(stream.name()),
            Written::File(name) => self.work().join(name),
        };
        // A job owns its folder: what it links to is not its own writing, and a pipe would never end.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let open = || -> io::Result<Option<File>> {
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(flags.bits().cast_signed())
                .open(&path);
            let file = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                file => file?,
            };
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is no file"));
            }
            Ok(Some(file))
        };
        open().map_err(ExecutionError::system("open", &path))
    }

    fn read_file<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ExecutionError> {
        let path = self.path.join(name);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file
                .and_then(|file| file.take(RECORD_MAX).read_to_end(&mut bytes))
                .map_err(ExecutionError::system("read", &path))?,
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| ExecutionError::Damaged {
                path,
                reason: error.to_string(),
            })
    }

    /// Writes a record, durably, where nobody looks for it; answers where.
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
            // Unlike a rename, a link does not replace what another process may have put there.
            let linked = fs::hard_link(&draft, &path);
            // A draft that stays behind does no harm: nobody reads it.
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

/// Makes what was created, linked or renamed in a folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

mod cluster;
mod packed;
#[cfg(test)]
mod tests;
