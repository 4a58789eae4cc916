//! What a job may have at most. Some of it the system watches over, process by process: what each may write, open and
//! reserve. What the job has as a whole, its memory, its processes and its files, is looked at by its supervisor again and
//! again, which stops a job that has too much (`docs/decisions/0402-limits-of-jobs.md`).

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::folder::Folder;
use super::process::Members;
use crate::agreement::Limit;
use crate::catalogue::JobLimits;

/// How often a job is looked at where that costs little.
const LOOK: Duration = Duration::from_millis(200);
/// Looking at a job takes at most one part in so many of a processor's time.
const SHARE: u32 = 50;
/// What a file or folder takes beside its blocks: so a job that makes nothing but names comes to an end too.
const NAME_BYTES: u64 = 1 << 10;
/// What one process may reserve beyond the job's memory before the system refuses: room for what a supervisor has not seen
/// yet, so that it is the one that says which limit it was.
const RESERVE: u64 = 1 << 30;
/// How readily the system, out of memory, kills processes of jobs rather than others: -1000 to 1000.
const OOM_SCORE: &str = "500";

/// What a job has where nobody says anything: three quarters of this machine's memory, so that it stays usable, as many
/// processes as a parallel program with its threads needs, and files that a disk of today does not notice.
pub fn defaults() -> JobLimits {
    JobLimits {
        memory: machine_memory().map(|bytes| bytes / 4 * 3),
        processes: Some(2_048),
        files: Some(4 << 30),
        open_files: Some(1_024),
        output: Some(super::local::OUTPUT_LIMIT),
    }
}

/// What the jobs of a resource may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// What the resource says.
    pub resource: JobLimits,
    /// Bytes of memory of a node of it, where that is known: so many times what a job has nodes are its memory.
    pub node_memory: Option<u64>,
    /// What holds where nobody says anything.
    pub otherwise: JobLimits,
}

impl Allowance {
    /// What a job may have on so many nodes whose application says this.
    pub fn of(&self, application: JobLimits, nodes: u32) -> JobLimits {
        let promised = JobLimits {
            memory: self
                .node_memory
                .map(|bytes| bytes.saturating_mul(u64::from(nodes))),
            ..JobLimits::default()
        };
        application.or(self.resource).or(promised).or(self.otherwise)
    }
}

/// Bytes of memory of this machine, where the system tells.
fn machine_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Limits this process and what it becomes, as far as the system watches over it.
///
/// # Errors
/// When the system refuses.
pub(super) fn apply(limits: &JobLimits) -> io::Result<()> {
    let data = limits
        .memory
        .map(|bytes| bytes.saturating_add(RESERVE.max(bytes / 4)));
    for (resource, most) in [
        (Resource::Core, Some(0)),
        (Resource::Data, data),
        (Resource::Fsize, limits.files),
        (Resource::Nofile, limits.open_files),
    ] {
        let Some(most) = most else { continue };
        // Who is not privileged can only lower what the service was started with.
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |allowed| allowed.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    // Where that cannot be said, the job is as likely to be killed as the rest.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    Ok(())
}

/// More than a job may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Excess {
    /// Of what.
    pub(super) limit: Limit,
    /// How much there was.
    pub(super) found: u64,
    /// How much there may be.
    pub(super) most: u64,
}

impl Excess {
    /// In words for whoever reads the job's outputs.
    pub(super) fn words(&self) -> String {
        let amount = |count: u64| match self.limit {
            Limit::Processes => count.to_string(),
            Limit::Memory | Limit::Files => format!("{} MiB", count.div_ceil(1 << 20)),
        };
        let what = match self.limit {
            Limit::Memory => "its processes had memory of",
            Limit::Processes => "its processes and their threads were",
            Limit::Files => "what it wrote took",
        };
        let (found, most) = (amount(self.found), amount(self.most));
        format!("bespeak: stopped, because {what} {found}; it may have {most}")
    }
}

/// Looks at what a job has, seldom enough not to be a load.
pub(super) struct Watch {
    limits: JobLimits,
    members: Members,
    folder: Folder,
    inputs: Vec<PathBuf>,
    next_processes: Instant,
    next_files: Instant,
}

impl Watch {
    /// Over the job of an agreement, which has this folder and these inputs.
    pub(super) fn new(agreement: Uuid, limits: JobLimits, folder: &Folder, inputs: &[PathBuf]) -> Self {
        let now = Instant::now();
        Self {
            limits,
            members: Members::of(agreement),
            folder: folder.clone(),
            inputs: inputs.to_vec(),
            next_processes: now,
            next_files: now,
        }
    }

    /// What it has too much of, if it is time to look.
    ///
    /// # Errors
    /// When the system does not tell.
    pub(super) fn look(&mut self) -> io::Result<Option<Excess>> {
        let now = Instant::now();
        if now >= self.next_processes {
            let excess = self.processes()?;
            self.next_processes = again(now);
            if excess.is_some() {
                return Ok(excess);
            }
        }
        if now >= self.next_files {
            let excess = self.files()?;
            self.next_files = again(Instant::now().max(now));
            return Ok(excess);
        }
        Ok(None)
    }

    fn processes(&mut self) -> io::Result<Option<Excess>> {
        let (memory, processes) = (self.limits.memory, self.limits.processes);
        if memory.is_none() && processes.is_none() {
            return Ok(None);
        }
        let used = self.members.used()?;
        if let Some(excess) = over(Limit::Processes, used.threads, processes) {
            return Ok(Some(excess));
        }
        if over(Limit::Memory, used.resident, memory).is_none() {
            return Ok(None);
        }
        // Pages that several processes share were counted for each of them: now it matters, and is worth the effort.
        Ok(over(Limit::Memory, used.proportional(), memory))
    }

    /// Whether it has written too much.
    ///
    /// # Errors
    /// When the system does not tell.
    pub(super) fn files(&mut self) -> io::Result<Option<Excess>> {
        let Some(most) = self.limits.files else {
            return Ok(None);
        };
        let bytes = self.folder.written_bytes(&self.inputs)?;
        Ok(over(Limit::Files, bytes, Some(most)))
    }
}

/// When to look again at what was last looked at since `began`.
fn again(began: Instant) -> Instant {
    let now = Instant::now();
    now + LOOK.max((now - began) * SHARE)
}

fn over(limit: Limit, found: u64, most: Option<u64>) -> Option<Excess> {
    let most = most.filter(|most| found > *most)?;
    Some(Excess { limit, found, most })
}

/// Bytes that a folder takes on the disk with all that is in it, but for what has one of these names at its top. Links are
/// not followed; what cannot be read, or goes meanwhile, does not count.
///
/// # Errors
/// When the system refuses for another reason than these.
pub(super) fn disk_use(folder: &Path, except: &[std::ffi::OsString]) -> io::Result<u64> {
    let mut bytes = 0;
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        let Some(entries) = there(fs::read_dir(&at))? else {
            continue;
        };
        for entry in entries {
            let Some(entry) = there(entry)? else { continue };
            if at == folder && except.contains(&entry.file_name()) {
                continue;
            }
            let Some(meta) = there(entry.metadata())? else {
                continue;
            };
            // Blocks are of 512 bytes here, whatever the file system has.
            let names = if meta.is_file() { meta.nlink().max(1) } else { 1 };
            bytes += meta.blocks() * 512 / names + NAME_BYTES;
            if meta.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

/// What is there; a job may take away and close what it likes while it is looked at.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => Ok(None),
            _ => Err(error),
        },
        found => found.map(Some),
    }
}
