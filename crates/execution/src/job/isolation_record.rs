//! The record that the tool that isolates a job keeps in the job's folder: the namespace of its processes, and how its program ended. The job
//! cannot write it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::Pid;
use serde::Deserialize;

use crate::files::if_file_is_there;
use crate::job::process_stat::read_while_process_runs;
use crate::job::shortage::is_shortage;

/// Where processes share memory by files.
const SHARED_MEMORY: &str = "/dev/shm";

/// What the tool has recorded of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IsolationRecord {
    /// The first process of the job's process namespace, by its number here, and the namespace, once there is one.
    first: Option<(i32, u64)>,
    /// The exit status of its program; 128 + signal where a signal ended it. None where the tool has not run it to its end: it could
    /// not isolate it, or was killed.
    pub(crate) exit: Option<i32>,
}

/// Reads the record of the tool; an empty one where there is none.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn read_isolation_record(status: &Path) -> io::Result<IsolationRecord> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Line {
        child_pid: Option<i32>,
        pid_namespace: Option<u64>,
        exit_code: Option<i32>,
    }
    let text = if_file_is_there(fs::read_to_string(status))?.unwrap_or_default();
    // A line for the start of the program, and one for its end.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(
        lines.fold(IsolationRecord::default(), |read, line| IsolationRecord {
            first: read.first.or(line.child_pid.zip(line.pid_namespace)),
            exit: read.exit.or(line.exit_code),
        }),
    )
}

/// The files in memory that a job has in a `/dev/shm` of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedMemory {
    /// The device that they are on.
    pub(crate) device: u64,
    /// How much they take.
    pub(crate) bytes: u64,
}

impl SharedMemory {
    /// Of the process that the system shows in this folder.
    fn of(folder: &str) -> Option<Self> {
        let own = format!("{folder}/root{SHARED_MEMORY}");
        let device = |path: &str| fs::metadata(path).ok().map(|meta| meta.dev());
        let mounted = device(&own).filter(|found| Some(*found) != device(SHARED_MEMORY))?;
        let room = rustix::fs::statvfs(&own).ok()?;
        Some(Self {
            device: mounted,
            bytes: room.f_blocks.saturating_sub(room.f_bfree) * room.f_frsize,
        })
    }
}

/// A process namespace that is held: as long as it is, no other gets its number.
#[derive(Debug)]
pub(crate) struct RecordedNamespace {
    number: u64,
    /// The number of its first process here.
    first: i32,
    _held: File,
}

impl RecordedNamespace {
    /// Holds the namespace of the job that has this record; none where its first process is gone, or is not there yet.
    ///
    /// # Errors
    /// Where the system lacks something that it may have again later.
    pub(crate) fn of(record: &Path) -> io::Result<Option<Self>> {
        let Some((first, number)) = read_isolation_record(record)?.first else {
            return Ok(None);
        };
        let held = match File::open(format!("/proc/{first}/ns/pid")) {
            Err(error) if is_shortage(&error) => return Err(error),
            Err(_) => return Ok(None),
            Ok(held) => held,
        };
        // The number of the process may be another's by now.
        let is_that = held.metadata()?.ino() == number;
        Ok(is_that.then_some(Self {
            number,
            first,
            _held: held,
        }))
    }

    /// What is in its `/dev/shm`; none where its first process is gone, or has no view of its own yet.
    pub(crate) fn shared_memory(&self) -> Option<SharedMemory> {
        let first = Pid::from_raw(self.first).filter(|first| self.has(*first))?;
        read_while_process_runs(first, |folder| Ok(SharedMemory::of(folder))).ok()??
    }

    /// Whether a process is in it; `false` for processes of other users.
    pub(crate) fn has(&self, pid: Pid) -> bool {
        let link = fs::read_link(format!("/proc/{pid}/ns/pid"));
        link.is_ok_and(|link| link == Path::new(&format!("pid:[{}]", self.number)))
    }
}
