//! The last step before a job runs: a process that records itself as the job and then becomes the job's program. So the
//! record of the process is durable before the program's first instruction. Only the one process in the record ever gets
//! there: the job runs once, with any number of launchers after crashes.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use domain::catalogue::Isolation;
use domain::clock::Clock;
use rustix::fs::{Access, access};
use rustix::process::{Pid, nice};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::job::control_group::ControlGroup;
use crate::job::folder::{Claim, Folder};
use crate::job::isolation::{isolated_command, isolating_tool, why_not_isolated};
use crate::job::limits;
use crate::job::process::ProcessIdentity;
use crate::job::refused_calls::RefusedCalls;
use crate::job::shortage::{PAUSE, is_shortage, retry_during_shortage};
use crate::job::spec::environment_of_job_spec;
use crate::job::standard_error::say_on_standard_error;
use crate::job::start_time::StartTime;
use crate::{ExecutionError, JobSpec};

/// The name of this process until it becomes another program, with which it gets that one's name.
const NAME: &str = "bespeak-launch";
/// By how much the priority of a job is lower than that of its supervisor.
const NICE: i32 = 10;
/// Exit status when the program is there and cannot be run, as shells have it.
const CANNOT_RUN: u8 = 126;
/// How long to wait before the next try of the isolation.
const ISOLATION_PAUSE: Duration = Duration::from_secs(2);
/// Exit status when there is no such program, as shells have it.
const NOT_FOUND: u8 = 127;

/// Becomes the program of the job of this folder, unless that job has been started already or is not to be started.
/// Called in a process of its own, the leader of its group, with the outputs where they belong. Returns only where the
/// program does not run.
pub fn launch_job(job_folder: &Path) -> ExitCode {
    // The service may have been started with open files, which no job is to have.
    if let Err(error) = close_inherited_before_launch() {
        say_on_standard_error(&format_args!("open files cannot be closed: {error}"));
        return ExitCode::FAILURE;
    }
    // Where that is refused, a launcher that is killed looks like a program that was.
    let _ = fs::write("/proc/self/comm", NAME);
    let folder = Folder::at(job_folder);
    match claim_job_to_launch(&folder) {
        Ok(Some(job)) => match launch_program(&folder, &job) {
            LaunchFailure::Program(error) => {
                say_on_standard_error(&format_args!("{} cannot be run: {error}", job.program.display()));
                ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound {
                    NOT_FOUND
                } else {
                    CANNOT_RUN
                })
            }
            LaunchFailure::Launcher(error) => {
                say_on_standard_error(&format_args!("the job cannot be launched: {error}"));
                ExitCode::FAILURE
            }
        },
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            say_on_standard_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Whether a process that has ended, and whose status was not taken, was a launcher until its end, and has run nothing of its job. One that
/// ended because the program cannot be run has told so by its status.
pub(super) fn wait_for_launcher(
    process: Pid,
    status: impl FnOnce() -> io::Result<ExitStatus>,
) -> io::Result<(bool, ExitStatus)> {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let status = status()?;
    let is_programs = [NOT_FOUND, CANNOT_RUN].map(|code| Some(i32::from(code)));
    Ok((
        name.trim_end() == NAME && !is_programs.contains(&status.code()),
        status,
    ))
}

/// Why a launcher has not become the program of its job.
enum LaunchFailure {
    /// That program cannot be run.
    Program(io::Error),
    /// It could not prepare itself: no fault of the job.
    Launcher(io::Error),
}

/// The job to become, if it is for this process to become it. While the machine is short of something it waits: the
/// supervisor stops it when the slot is over, and then knows that the job never started.
fn claim_job_to_launch(folder: &Folder) -> Result<Option<JobSpec>, ExecutionError> {
    let Some(job) = retry_during_shortage(|| folder.spec())? else {
        return Ok(None);
    };
    if job.isolation.is_some() {
        wait_for_isolation_to_launch();
    }
    let identify = || {
        ProcessIdentity::current().map_err(ExecutionError::system("identify the process of", folder.path()))
    };
    let process = retry_during_shortage(identify)?;
    let claim = || {
        // It begins when the claim is written, however long that has to wait.
        let began = StartTime::now(&Clock::system());
        let claim = Claim::Started {
            process: process.clone(),
            began,
        };
        // A try that failed may have left the claim.
        let is_ours = |started: &Claim| matches!(started, Claim::Started { process: started, .. } if *started == process);
        Ok(folder.decide_claim(&claim)? || folder.claim()?.as_ref().is_some_and(is_ours))
    };
    let won = retry_during_shortage(claim)?;
    Ok(won.then_some(job))
}

/// Closes all files that this process has open but its standard ones.
fn close_inherited_before_launch() -> io::Result<()> {
    let open = fs::read_dir("/proc/self/fd")?;
    let numbers = open.map(|entry| {
        Ok(entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok()))
    });
    // One of them is that of the list itself, which is closed by now.
    for number in numbers.collect::<io::Result<Vec<_>>>()?.into_iter().flatten() {
        if number > 2 {
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}

/// Waits until this machine can isolate jobs: that it cannot is no fault of the job. The supervisor stops this process when the slot
/// is over.
fn wait_for_isolation_to_launch() {
    let mut told = false;
    while let Some(why) = why_not_isolated() {
        if !std::mem::replace(&mut told, true) {
            say_on_standard_error(&format_args!("the job waits until it can be isolated: {why}"));
        }
        std::thread::sleep(ISOLATION_PAUSE);
    }
}

/// Only an error of the program itself comes back from here: a shortage is waited out until the supervisor stops this process.
fn launch_program(folder: &Folder, job: &JobSpec) -> LaunchFailure {
    // Bubblewrap would start first, and say less.
    if let Err(error) = access(&job.program, Access::EXEC_OK) {
        return LaunchFailure::Program(error.into());
    }
    if let Err(error) = limits::apply_job_limits(&job.limits) {
        return LaunchFailure::Launcher(error);
    }
    // The supervisor comes before its job, also where the job keeps all processors busy.
    let _ = nice(NICE);
    let group = ControlGroup::of(job.run());
    let is_root = rustix::process::geteuid().is_root();
    let holds_memory = loop {
        match enter_group_to_launch(job, group.as_ref(), is_root) {
            Ok(holds_memory) => break holds_memory,
            Err(error) if is_shortage(&error) => std::thread::sleep(PAUSE),
            Err(error) => return LaunchFailure::Launcher(error),
        }
    };
    let refused = RefusedCalls {
        processors: keep_to_processors_at_launch(&job.processors),
        shared_memory: !holds_memory,
    };
    loop {
        let unrun = match &job.isolation {
            None => LaunchFailure::Program(
                with_launch_environment(&mut plain_launch_command(folder, job), job).exec(),
            ),
            Some(isolation) => match launch_isolated(folder, job, isolation, refused) {
                Ok(never) => match never {},
                Err(error) => LaunchFailure::Launcher(error),
            },
        };
        // A shortage of the machine is no fault of the program.
        let (LaunchFailure::Program(error) | LaunchFailure::Launcher(error)) = &unrun;
        if !is_shortage(error) {
            return unrun;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Has this process enter the control group of its job, where there is one. Returns whether a group bounds the memory of the job.
///
/// # Errors
/// When the system refuses, and nothing else would hold the processes of a job that has to be held: root has no limit of them.
fn enter_group_to_launch(job: &JobSpec, group: Option<&ControlGroup>, is_root: bool) -> io::Result<bool> {
    let Some(group) = group else { return Ok(false) };
    let has_to_be_held = job.isolation.is_some() && job.limits.processes.is_some();
    match group.enter(&job.limits, limits::process_limit_of_isolation(job)) {
        Ok(()) => Ok(group.holds_memory()),
        Err(error) if is_root && has_to_be_held => Err(error),
        // The supervisor's looks bound it, and the limit in its user namespace.
        Err(_) => Ok(false),
    }
}

/// Has this process, and those that come from it, run on these processors only. Returns whether it does.
fn keep_to_processors_at_launch(processors: &[usize]) -> bool {
    let mut set = CpuSet::new();
    for processor in processors
        .iter()
        .filter(|processor| **processor < CpuSet::MAX_CPU)
    {
        set.set(*processor);
    }
    // One that has been taken out of service is not missed while there are others.
    !processors.is_empty() && sched_setaffinity(None, &set).is_ok()
}

fn plain_launch_command(folder: &Folder, job: &JobSpec) -> Command {
    let mut command = Command::new(&job.program);
    command
        .args(&job.arguments)
        .current_dir(folder.work())
        .env_clear()
        .env("HOME", folder.work())
        .env("TMPDIR", folder.temporary());
    command
}

fn launch_isolated(
    folder: &Folder,
    job: &JobSpec,
    isolation: &Isolation,
    refused: RefusedCalls,
) -> io::Result<Infallible> {
    // It was there just now.
    let tool: PathBuf = isolating_tool().ok_or_else(|| io::Error::from(rustix::io::Errno::AGAIN))?;
    let status = File::create(folder.isolation_status())?;
    let (work, temporary) = (folder.work(), folder.temporary());
    let folders = [work.as_path(), &temporary];
    let (mut command, _filter) = isolated_command(&tool, job, isolation, folders, (&status, refused))?;
    Err(with_launch_environment(&mut command, job).exec())
}

fn with_launch_environment<'c>(command: &'c mut Command, job: &JobSpec) -> &'c mut Command {
    let pieces = job.piece.map(|piece| piece.of);
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(environment_of_job_spec(
            job.run(),
            job.nodes,
            job.slot_end,
            pieces,
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isolated_job_of_root_is_not_launched_where_its_control_group_refuses_it() {
        let record = serde_json::json!({
            "agreement": uuid::Uuid::now_v7(), "party": "physics", "application": "true", "program": "/bin/true", "arguments": [], "inputs": [],
            "nodes": 1, "slot_end": 0, "output_limit": 0, "limits": { "processes": 40 }, "isolation": Isolation::default(),
        });
        let isolated: JobSpec = serde_json::from_value(record).unwrap();
        let trusted = JobSpec {
            isolation: None,
            ..isolated.clone()
        };
        let free = JobSpec {
            limits: domain::catalogue::JobLimits::default(),
            ..isolated.clone()
        };
        let place = tempfile::tempdir().unwrap();
        let taking = ControlGroup::at(place.path().to_owned());
        assert!(enter_group_to_launch(&isolated, Some(&taking), true).unwrap());
        // Below a file there can be no group.
        let refusing = ControlGroup::at(place.path().join("pids.max/group"));
        assert!(enter_group_to_launch(&isolated, Some(&refusing), true).is_err());
        for (job, is_root) in [(&isolated, false), (&trusted, true), (&free, true)] {
            assert!(!enter_group_to_launch(job, Some(&refusing), is_root).unwrap());
        }
        assert!(!enter_group_to_launch(&isolated, None, true).unwrap());
    }
}
