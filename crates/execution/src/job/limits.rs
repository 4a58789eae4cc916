//! The limits of a job. The system enforces some of them for each process: how much it may write, open and reserve. The
//! supervisor looks at the job as a whole, its memory, its processes and its files, again and again, and stops a job that
//! has too much (`docs/design/execution.md`).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use domain::agreement::Limit;
use domain::catalogue::JobLimits;
use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ExecutionError;
use crate::JobSpec;
use crate::files::known_file::KnownFile;
use crate::files::walk::Walk;
use crate::job::excess::Excess;
use crate::job::folder::Folder;
use crate::job::hidden_files::{HiddenFiles, MappedFiles, files_hidden_by};
use crate::job::process::{JobProcesses, ProcessUsage, job_process_memory_bytes};

/// Bytes kept of each output of a job by default.
pub const OUTPUT_LIMIT: u64 = 16 << 20;
/// How often a job is looked at where that costs little.
const LOOK: Duration = Duration::from_millis(200);
/// Looking at a job takes at most this fraction (1 / `SHARE`) of a processor's time.
const SHARE: u32 = 50;
/// The longest pause between two looks, however long they take.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long one look at files lasts: the other work of a supervisor does not wait longer.
const STRETCH: Duration = Duration::from_millis(20);
/// Open files of a job for which nothing is said: those beyond it break programs that wait with `select`.
const OPEN_FILES: u64 = 1_024;
/// The memory that one process may reserve beyond the job's memory before the system refuses. This is room for use that a
/// supervisor has not seen yet, so that the supervisor reports the limit.
const RESERVE: u64 = 1 << 30;
/// Processes of the tool that isolates a job: one outside of the job's view and the first one inside.
const ISOLATING: u64 = 2;
/// How readily the system, out of memory, kills processes of jobs rather than others: -1000 to 1000.
const OOM_SCORE: &str = "500";

/// The default limits of a job: three quarters of this machine's memory, so that it stays usable, as many
/// processes as a parallel program with its threads needs, and files that a disk of today does not notice.
pub fn default_limits() -> JobLimits {
    JobLimits {
        memory: memory_limit_of_machine().map(|bytes| bytes / 4 * 3),
        processes: Some(2_048),
        files: Some(4 << 30),
        open_files: Some(OPEN_FILES),
        output: Some(OUTPUT_LIMIT),
    }
}

/// The limits of the jobs of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllowedLimits {
    /// The limits set by the resource.
    pub resource: JobLimits,
    /// Bytes of memory of a node of it, where that is known: a job has this for each of its nodes.
    pub node_memory: Option<u64>,
    /// The defaults.
    pub otherwise: JobLimits,
}

impl AllowedLimits {
    /// The limits of a job on `nodes` nodes with an application that has these.
    pub(crate) fn of(&self, application: JobLimits, nodes: u32) -> JobLimits {
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
fn memory_limit_of_machine() -> Option<u64> {
    job_process_memory_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// The soft limit of open files that this process was started with, once it has been raised.
static OPEN_FILES_BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of this process's open files to its hard limit, as far as the system allows it. Returns the new
/// limit; `None` for any number.
pub fn raise_open_files_limit() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if before.current != before.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = OPEN_FILES_BEFORE.set(before.current.unwrap_or(OPEN_FILES));
    }
    getrlimit(Resource::Nofile).current
}

/// The soft limit of open files that programs are to have which this process starts and which pass it on, where it is not
/// its own.
pub(crate) fn open_files_limit_of_others() -> Option<u64> {
    OPEN_FILES_BEFORE.get().copied()
}

/// Limits this process and the program that it becomes, as far as the system enforces limits.
///
/// # Errors
/// When the system refuses.
pub(crate) fn apply_job_limits(limits: &JobLimits) -> io::Result<()> {
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
        // Without privileges a process can only lower the limits that the service was started with.
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |allowed| allowed.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    if limits.open_files.is_none() {
        // No limit of the job, but also not the limit that the service has raised for itself.
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let current = Some(current.map_or(OPEN_FILES, |allowed| allowed.min(OPEN_FILES)));
        setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    }
    // Where that cannot be said, the job is as likely to be killed as the rest.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    Ok(())
}

/// How many processes of a job are those of the tool that isolates it.
pub(crate) fn process_limit_of_isolation(job: &JobSpec) -> u64 {
    job.isolation.as_ref().map_or(0, |_| ISOLATING)
}

/// Looks at the use of a job, seldom enough not to be a load.
pub(crate) struct LimitWatch {
    limits: JobLimits,
    /// Processes of the job that are not its own: those of the tool that isolates it.
    isolating: u64,
    pub(crate) members: JobProcesses,
    folder: Folder,
    /// The job's own program.
    program: PathBuf,
    next_processes: Instant,
    next_files: Instant,
    /// The look at its files that is going on, and how long that has taken.
    walk: Option<(Walk, Duration)>,
    /// Bytes of deleted files that were open when that look began, and whether the last look found too much with such files.
    deleted: u64,
    is_suspect: bool,
    /// Whether a process kept its open files from the last look at the memory, and from the last look at the files.
    is_memory_refused: bool,
    are_files_refused: bool,
}

impl LimitWatch {
    /// Over the job that has these processes and this folder.
    pub(crate) fn new(members: JobProcesses, job: &JobSpec, folder: &Folder) -> Self {
        let now = Instant::now();
        Self {
            limits: job.limits,
            isolating: process_limit_of_isolation(job),
            members,
            folder: folder.clone(),
            program: job.program.clone(),
            next_processes: now,
            next_files: now,
            walk: None,
            deleted: 0,
            is_suspect: false,
            is_memory_refused: false,
            are_files_refused: false,
        }
    }

    /// The exceeded limit, if it is time to look. Takes little time for any amount.
    ///
    /// # Errors
    /// When the system does not tell; a later look begins anew.
    pub(crate) fn look(&mut self) -> Result<Option<Excess>, ExecutionError> {
        let began = Instant::now();
        if began >= self.next_processes {
            let excess = self.processes();
            self.next_processes = next_limit_check(began.elapsed());
            if let Some(excess) = excess? {
                return Ok(Some(excess));
            }
        }
        self.look_at_files()
    }

    fn processes(&mut self) -> Result<Option<Excess>, ExecutionError> {
        let (memory, processes) = (self.limits.memory, self.limits.processes);
        let failed = ExecutionError::system("look at the processes of", self.folder.path());
        let used = self.members.used().map_err(failed)?;
        let threads = used.threads.saturating_sub(self.isolating);
        if let Some(excess) = exceeded_limit(Limit::Processes, threads, processes) {
            return Ok(Some(excess));
        }
        if memory.is_none() {
            return Ok(None);
        }
        let hidden = self.hidden(&used)?;
        if is_limit_refused_again(&mut self.is_memory_refused, hidden.is_refused) {
            return Ok(exceeded_limit(Limit::Memory, u64::MAX, memory));
        }
        let shared = self.members.shared_memory();
        let held = hidden.not_mapped(shared, &MappedFiles::default());
        let at_most = used.resident.saturating_add(held);
        if exceeded_limit(Limit::Memory, at_most, memory).is_none() {
            return Ok(None);
        }
        // Pages that several processes share were counted for each of them, and mapped ones of what is hidden twice: now it matters, and is
        // worth the effort.
        let (own, sharing) = used.proportional();
        let mapped = if held == 0 {
            MappedFiles::default()
        } else {
            let failed = ExecutionError::system("look at the memory of", self.folder.path());
            MappedFiles::by(&sharing).map_err(failed)?
        };
        let not_mapped = hidden.not_mapped(shared, &mapped);
        let mut found = own.saturating_add(not_mapped);
        if not_mapped > 0 && exceeded_limit(Limit::Memory, found, memory).is_some() {
            // What was unmapped between the two readings is in both. It is not in a third one.
            found = own.min(used.proportional().0).saturating_add(not_mapped);
        }
        Ok(exceeded_limit(Limit::Memory, found, memory))
    }

    /// What these processes hold open without a name.
    fn hidden(&self, used: &ProcessUsage) -> Result<HiddenFiles, ExecutionError> {
        let look = || files_hidden_by(used.processes(), fs::metadata(self.folder.common())?.dev());
        let mut hidden = look().map_err(ExecutionError::system(
            "look at the open files of",
            self.folder.path(),
        ))?;
        // A trusted job may run programs of others, and a provider may keep the application's own program from being read.
        hidden.is_refused = hidden.is_refused
            && self.members.have_namespace()
            && access(&self.program, Access::READ_OK).is_ok();
        Ok(hidden)
    }

    fn look_at_files(&mut self) -> Result<Option<Excess>, ExecutionError> {
        let began = Instant::now();
        let (mut walk, spent) = match self.walk.take() {
            Some(walk) => walk,
            None if self.limits.files.is_none() || began < self.next_files => return Ok(None),
            None => {
                self.next_files = next_limit_check(PAUSE_MAX);
                // Before the others: what is deleted from now on has no name when the walk comes there.
                let failed = ExecutionError::system("look at the processes of", self.folder.path());
                let used = self.members.used().map_err(failed)?;
                let hidden = self.hidden(&used)?;
                if is_limit_refused_again(&mut self.are_files_refused, hidden.is_refused) {
                    return Ok(exceeded_limit(Limit::Files, u64::MAX, self.limits.files));
                }
                let deleted = hidden.deleted;
                self.deleted = deleted.iter().map(KnownFile::bytes).sum();
                (self.folder.walk(deleted)?, Duration::ZERO)
            }
        };
        let done = walk.go_on(Some(began + STRETCH));
        let spent = spent + began.elapsed();
        // A folder that cannot be looked at now is looked at again.
        self.next_files = next_limit_check(spent);
        let done = done.map_err(ExecutionError::system("look into", self.folder.path()))?;
        let found = walk.bytes().saturating_add(self.deleted);
        let excess = exceeded_limit(Limit::Files, found, self.limits.files);
        if !done && excess.is_none() {
            self.walk = Some((walk, spent));
            return Ok(None);
        }
        // A file that is deleted and closed makes room for another, which this look may have seen, too: the next one decides.
        let is_sure = self.deleted == 0 || self.is_suspect;
        self.is_suspect = excess.is_some() && !is_sure;
        Ok(excess.filter(|_| is_sure))
    }
}

/// Whether a job that has ended has written too much, as far as one can see: a file that is as large as one may be may have
/// been to be larger, if the program says that the system refused that.
///
/// # Errors
/// When the system does not tell.
pub(crate) fn exceeded_file_limits(
    limits: &JobLimits,
    folder: &Folder,
    says_refused: bool,
) -> Result<Option<Excess>, ExecutionError> {
    let Some(most) = limits.files else {
        return Ok(None);
    };
    let walked = folder.walked()?;
    let (limit, found) = (Limit::Files, walked.bytes());
    let refused = says_refused && walked.longest() >= most;
    Ok((found > most || refused).then_some(Excess { limit, found, most }))
}

/// When to look again after a look that took so long.
fn next_limit_check(took: Duration) -> Instant {
    Instant::now() + (took * SHARE).clamp(LOOK, PAUSE_MAX)
}

/// Whether a look was refused, and so was the one before it, which this one takes the place of: a process may be refused for a moment while
/// it becomes another program.
fn is_limit_refused_again(before: &mut bool, now: bool) -> bool {
    std::mem::replace(before, now) && now
}

fn exceeded_limit(limit: Limit, found: u64, most: Option<u64>) -> Option<Excess> {
    let most = most.filter(|most| found > *most)?;
    Some(Excess { limit, found, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_two_looks_in_a_row_were_refused_is_an_excess() {
        let mut before = false;
        let looks = [true, false, true, true, true, false];
        let again = looks.map(|now| is_limit_refused_again(&mut before, now));
        assert_eq!(again, [false, false, false, true, true, false]);
    }

    #[test]
    fn a_job_is_told_why_there_is_no_knowing_what_it_has() {
        for (limit, words) in [
            (
                Limit::Memory,
                "how much memory it has: it runs a program that may not be read",
            ),
            (
                Limit::Files,
                "it closes its folders, or runs a program that may not be read",
            ),
        ] {
            let excess = exceeded_limit(limit, u64::MAX, Some(1)).unwrap();
            assert!(excess.words().contains(words), "{}", excess.words());
            assert_eq!(exceeded_limit(limit, u64::MAX, None), None, "it has no limit");
        }
    }
}
