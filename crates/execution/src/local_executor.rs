//! Jobs as processes of this machine. Each has a folder and a supervisor process; this end of it writes the intent, keeps
//! a supervisor at work, and reads the record of the end. It holds nothing that a restart would need.

use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Micros;
use task::lock::lock;

use super::{ExecutionError, Executor, JobSpec, JobStatus, ProspectiveJob, SaveWork};
use crate::files::if_file_is_there;
use crate::files::job_folders::JobFolders;
use crate::job::control_group::ControlGroup;
use crate::job::folder::{Claim, Folder};

/// The running executable, also after the file that it came from has been replaced by a newer one.
pub(super) const EXECUTABLE: &str = "/proc/self/exe";
/// How soon a supervisor that failed is followed by another: soon enough for a job to start within its slot's first
/// seconds, seldom enough not to be a load when a disk is full.
const RESPAWN_AFTER: Duration = Duration::from_secs(2);

/// Runs jobs as processes of this machine.
#[derive(Debug)]
pub struct LocalExecutor {
    folders: JobFolders,
    executable: PathBuf,
    /// The supervisors that this process has spawned, to be reaped, and when it did.
    supervisors: Mutex<HashMap<Run, (Child, Instant)>>,
    /// The supervisors that have recorded the end, and clear up.
    leaving: Mutex<Vec<Child>>,
    /// Why this machine takes jobs of trusted applications only, where it does.
    trusted_only: Option<String>,
}

impl LocalExecutor {
    /// An executor that keeps its jobs in `jobs` below the service's data folder, and supervises them by the running
    /// executable.
    ///
    /// # Errors
    /// When the current folder is needed to make a path absolute and is gone.
    pub fn new(data_dir: &Path) -> std::io::Result<Self> {
        Ok(Self {
            folders: JobFolders::new(data_dir, None)?,
            executable: EXECUTABLE.into(),
            supervisors: Mutex::default(),
            leaving: Mutex::default(),
            trusted_only: None,
        })
    }

    /// An executor where this machine takes jobs of trusted applications only, for a reason: that it cannot isolate jobs, or hold their
    /// limits.
    #[must_use]
    pub fn for_trusted_only(self, why: Option<String>) -> Self {
        Self {
            trusted_only: why,
            ..self
        }
    }

    /// An executor with another executable that has the `supervise` and `launch` commands, for a program that has not.
    #[must_use]
    pub fn with_executable(self, executable: &Path) -> Self {
        Self {
            executable: executable.to_owned(),
            ..self
        }
    }

    /// An executor with its job folders among these folders, where quotas are enforced.
    #[must_use]
    pub fn among(self, folders: JobFolders) -> Self {
        Self { folders, ..self }
    }

    /// The folder of a job.
    pub fn folder(&self, run: Run) -> Folder {
        Folder::of(self.folders.path(), run)
    }

    /// Sees to it that a supervisor is at work. One too many does no harm: it finds the lock taken and ends. Where the
    /// last one gave up, this says so, and still spawns the next one in its time.
    fn supervise(&self, run: Run, folder: &Folder) -> Result<(), ExecutionError> {
        let failed = ExecutionError::system("supervise", folder.path());
        let mut supervisors = lock(&self.supervisors);
        let mut result = Ok(());
        if let Some((process, spawned)) = supervisors.get_mut(&run) {
            match process.try_wait() {
                Ok(None) => return Ok(()),
                // One that was killed, or found another at work, is no failure.
                Ok(Some(status)) if status.code().unwrap_or(0) == 0 => {}
                Ok(Some(status)) => result = Err(failed(failure_of_local_supervisor(status))),
                Err(error) => return Err(failed(error)),
            }
            if spawned.elapsed() < RESPAWN_AFTER {
                return result;
            }
        }
        if folder.is_supervised() {
            return Ok(());
        }
        let process = self.spawn(folder)?;
        supervisors.insert(run, (process, Instant::now()));
        result
    }

    fn spawn(&self, folder: &Folder) -> Result<Child, ExecutionError> {
        Command::new(&self.executable)
            .arg0("bespeak")
            .arg("supervise")
            .arg(folder.path())
            .current_dir(folder.path())
            // The service's environment may hold secrets, and a supervisor needs none of it.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(folder.open_log()?)
            .spawn()
            .map_err(ExecutionError::system("run", &self.executable))
    }

    /// Lets a supervisor go that has recorded the end, and takes the statuses of the supervisors that have finished by
    /// now.
    fn reap(&self, run: Run) {
        // One that was killed after that has left the group, which has no processes any more.
        ControlGroup::of(run).iter().for_each(ControlGroup::remove);
        let spawned = lock(&self.supervisors).remove(&run);
        let mut leaving = lock(&self.leaving);
        leaving.extend(spawned.map(|(process, _)| process));
        leaving.retain_mut(|process| matches!(process.try_wait(), Ok(None)));
    }
}

impl Executor for LocalExecutor {
    fn judges_jobs(&self) -> bool {
        self.trusted_only.is_some()
    }

    fn refusal_of(&self, job: &ProspectiveJob) -> Option<String> {
        let why = self.trusted_only.as_ref().filter(|_| job.is_isolated)?;
        Some(format!("{} is not trusted, and {why}", job.application))
    }

    fn can_resume(&self, job: &JobSpec) -> Result<bool, ExecutionError> {
        let run = job.run();
        let Some(before) = run.slot.checked_sub(1).filter(|slot| *slot > 0) else {
            return Ok(true);
        };
        let before = self.folder(Run { slot: before, ..run });
        if before.end()?.is_none() {
            return Ok(false);
        }
        let work = before.work();
        let found =
            if_file_is_there(std::fs::metadata(&work)).map_err(ExecutionError::system("look for", work))?;
        Ok(found.is_some_and(|meta| meta.is_dir()))
    }

    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError> {
        Folder::create(self.folders.path(), job)?;
        self.poll(job.run()).map(|_| ())
    }

    fn poll(&self, run: Run) -> Result<JobStatus, ExecutionError> {
        let folder = self.folder(run);
        if let Some(end) = folder.end()? {
            self.reap(run);
            return Ok(JobStatus::Ended(end));
        }
        if folder.spec()?.is_none() {
            return Ok(JobStatus::NotStarted);
        }
        self.supervise(run, &folder)?;
        let started = match folder.claim()? {
            Some(Claim::Started { began, .. }) => Some(began.at),
            Some(Claim::Abandoned) | None => None,
        };
        Ok(JobStatus::Running { started })
    }

    fn keep_until(&self, run: Run, end: Micros) -> Result<(), ExecutionError> {
        let folder = self.folder(run);
        match folder.spec()? {
            Some(job) if job.slot_end != end => folder.put_until(end),
            _ => Ok(()),
        }
    }

    fn save_before_end(&self, run: Run, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        let folder = self.folder(run);
        match folder.spec()? {
            // It goes on as it was started: its program may be another by now.
            Some(job) if folder.save(&job)?.is_some() != save.is_some() => folder.put_save(save),
            _ => Ok(()),
        }
    }

    fn end_earlier_attempts(&self, run: Run) -> Result<bool, ExecutionError> {
        let folder = self.folder(run);
        let before = folder.spec()?.map(|spec| spec.run());
        let Some(before) = before.filter(|before| before.attempt < run.attempt) else {
            return Ok(true);
        };
        if folder.end()?.is_none() {
            self.stop(before)?;
            self.poll(before)?;
            return Ok(false);
        }
        self.reap(before);
        self.folders.put_aside(before)?;
        Ok(true)
    }

    fn stop(&self, run: Run) -> Result<(), ExecutionError> {
        let folder = self.folder(run);
        if folder.spec()?.is_some() && folder.end()?.is_none() && !folder.stop_asked() {
            folder.ask_to_stop(None)?;
        }
        Ok(())
    }
}

fn failure_of_local_supervisor(status: ExitStatus) -> std::io::Error {
    std::io::Error::other(format!(
        "the supervisor ended with {status}; supervisor.log in this folder says why"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use domain::agreement::{JobEnd, RunOutcome};

    use super::*;

    #[test]
    fn the_control_group_of_a_job_whose_supervisor_was_killed_at_its_end_goes() {
        let place = tempfile::tempdir().unwrap();
        let executor = LocalExecutor::new(place.path()).unwrap();
        let run = Run::first(uuid::Uuid::now_v7());
        let group = ControlGroup::of(run).filter(|group| fs::create_dir(group.path()).is_ok());
        let Some(group) = group else {
            eprintln!("NOT TESTED: no control group can be made");
            return;
        };
        let folder = executor.folder(run);
        fs::create_dir_all(folder.path()).unwrap();
        folder
            .write_end(&JobEnd::new(RunOutcome::Completed, None, 0))
            .unwrap();
        let polled = executor.poll(run);
        assert!(matches!(polled, Ok(JobStatus::Ended(_))), "{polled:?}");
        assert!(!group.path().exists());
    }
}
