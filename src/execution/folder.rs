//! A job's folder: the durable record of what is to run, what was started and how it ended, with the job's working
//! folder and its outputs. The service, the job's supervisor and its launcher know of each other by these files alone,
//! so that any of them may be killed at any time.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `spec.json` | the executor, once | the intent: what is to run, and until when |
//! | `lock` | the supervisor | locked while one is at work; which process that is |
//! | `claim.json` | the launcher or the supervisor, whoever is first, once | the job started as this process, or never will |
//! | `stop` | the executor | the job is to be stopped |
//! | `end.json` | the supervisor, once | how it ended; nothing runs any more |
//!
//! The claim is what makes a job start at most once: it is created exclusively, by the very process that then becomes
//! the job.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::process::ProcessIdentity;
use super::{ExecutionError, JobSpec};
use crate::agreement::JobEnd;
use crate::clock::Micros;

/// Bytes of output that one read answers with at most, so that a reader's memory is bounded.
pub const OUTPUT_PAGE_MAX: usize = 1 << 20;
/// Bytes of a record at most: 64 arguments of 1,024 characters and as many paths fit many times.
const RECORD_MAX: u64 = 4 << 20;

const SPEC: &str = "spec.json";
const LOCK: &str = "lock";
const CLAIM: &str = "claim.json";
const STOP: &str = "stop";
const END: &str = "end.json";
const WORK: &str = "work";

/// The folder of one job.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
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
        at: Micros,
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

impl Stream {
    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// The bytes from the offset on, at most [`OUTPUT_PAGE_MAX`].
    pub bytes: Vec<u8>,
    /// How many bytes the output has by now.
    pub size: u64,
}

/// Held while a supervisor is at work; the system releases it when that process is gone, however it went.
pub(super) struct Lock {
    _file: File,
}

impl Folder {
    /// The folder of an agreement's job below the folder of all jobs, there or not.
    pub fn of(jobs: &Path, agreement: Uuid) -> Self {
        Self {
            path: jobs.join(agreement.to_string()),
        }
    }

    /// The folder at a path.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the job runs.
    pub fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Makes the folder of a job below `jobs` with everything that the job needs, and then, durably, the intent to run
    /// it. An intent that is there stays as it is.
    pub(super) fn create(jobs: &Path, job: &JobSpec) -> Result<Self, ExecutionError> {
        let folder = Self::of(jobs, job.agreement);
        let work = folder.work();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&work)
            .map_err(ExecutionError::system("create", &work))?;
        for input in &job.inputs {
            let link = work.join(input.file_name().unwrap_or_default());
            match symlink(input, &link) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(ExecutionError::system("link", link)(error));
                }
                _ => {}
            }
        }
        for path in [jobs, folder.path(), &work] {
            sync_folder(path).map_err(ExecutionError::system("sync", path))?;
        }
        folder.write_once(SPEC, job)?;
        Ok(folder)
    }

    /// The intent to run the job; `None` before there is one.
    pub(super) fn spec(&self) -> Result<Option<JobSpec>, ExecutionError> {
        self.read(SPEC)
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

    /// Leaves the request to stop the job.
    pub(super) fn ask_to_stop(&self) -> Result<(), ExecutionError> {
        self.write_once(STOP, &()).map(|_| ())
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

    /// A new file for an output, empty.
    pub(super) fn create_output(&self, stream: Stream) -> Result<File, ExecutionError> {
        let path = self.path.join(stream.name());
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        options
            .open(&path)
            .map_err(ExecutionError::system("create", path))
    }

    /// The log of the job's supervisors, for whoever looks for the reason of a failure.
    pub(super) fn open_log(&self) -> Result<File, ExecutionError> {
        let path = self.path.join("supervisor.log");
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
        let bytes = |stream: Stream| fs::metadata(self.path.join(stream.name())).map_or(0, |meta| meta.len());
        bytes(Stream::Out) + bytes(Stream::Err)
    }

    /// Reads an output from an offset, while it is being written or afterwards; one that is not there is empty.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn output(&self, stream: Stream, offset: u64) -> Result<OutputPage, ExecutionError> {
        let path = self.path.join(stream.name());
        let read = || -> io::Result<OutputPage> {
            let mut file = match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok(OutputPage {
                        bytes: Vec::new(),
                        size: 0,
                    });
                }
                file => file?,
            };
            let size = file.metadata()?.len();
            let mut bytes = Vec::new();
            if offset < size {
                file.seek(SeekFrom::Start(offset))?;
                file.take(OUTPUT_PAGE_MAX as u64).read_to_end(&mut bytes)?;
            }
            Ok(OutputPage { bytes, size })
        };
        read().map_err(ExecutionError::system("read", &path))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ExecutionError> {
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

    /// Writes a record that appears whole and durably or not at all, unless it is there already; answers whether this
    /// call wrote it. Once this answers, whichever way, the record is durable.
    fn write_once(&self, name: &str, record: &impl Serialize) -> Result<bool, ExecutionError> {
        let path = self.path.join(name);
        let draft = self.path.join(format!(".{name}.{}", Uuid::now_v7()));
        let write = || -> io::Result<bool> {
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            // Unlike a rename, a link does not replace what another process may have put there.
            let written = match fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
                linked => linked.map(|()| true)?,
            };
            sync_folder(&self.path)?;
            Ok(written)
        };
        let written = write().map_err(ExecutionError::system("write", &path));
        // A draft that stays behind does no harm: nobody reads it.
        let _ = fs::remove_file(&draft);
        written
    }
}

/// Makes what was created, linked or renamed in a folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_written_once_and_the_first_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(folder.path());
        assert_eq!(folder.claim().unwrap(), None);
        assert!(folder.decide(&Claim::Abandoned).unwrap());
        let process = ProcessIdentity::current().unwrap();
        assert!(!folder.decide(&Claim::Started { process, at: 1 }).unwrap());
        assert_eq!(folder.claim().unwrap(), Some(Claim::Abandoned));
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "drafts are removed"
        );
    }

    #[test]
    fn of_many_deciders_at_once_one_decides() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(folder.path());
        let decided = std::thread::scope(|scope| {
            let deciders: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| folder.decide(&Claim::Abandoned).unwrap()))
                .collect();
            deciders
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|won| *won)
                .count()
        });
        assert_eq!(decided, 1);
    }

    #[test]
    fn one_supervisor_at_a_time_holds_the_lock_and_is_known_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(folder.path());
        assert!(!folder.is_supervised());
        let lock = folder.lock().unwrap();
        assert!(lock.is_some() && folder.is_supervised());
        assert!(folder.lock().unwrap().is_none());
        drop(lock);
        assert!(folder.lock().unwrap().is_some());
    }

    #[test]
    fn a_damaged_record_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(END), "{").unwrap();
        let error = Folder::at(folder.path()).end().unwrap_err();
        assert!(matches!(error, ExecutionError::Damaged { .. }), "{error}");
    }

    #[test]
    fn an_output_is_read_in_bounded_pages() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stdout"), vec![b'x'; OUTPUT_PAGE_MAX + 3]).unwrap();
        let folder = Folder::at(folder.path());
        let size = OUTPUT_PAGE_MAX as u64 + 3;
        let first = folder.output(Stream::Out, 0).unwrap();
        assert_eq!((first.bytes.len(), first.size), (OUTPUT_PAGE_MAX, size));
        assert_eq!(
            folder.output(Stream::Out, OUTPUT_PAGE_MAX as u64).unwrap().bytes,
            b"xxx"
        );
        assert_eq!(
            folder.output(Stream::Out, u64::MAX).unwrap(),
            OutputPage {
                bytes: Vec::new(),
                size
            }
        );
        assert_eq!(
            folder.output(Stream::Err, 0).unwrap(),
            OutputPage {
                bytes: Vec::new(),
                size: 0
            }
        );
    }
}
