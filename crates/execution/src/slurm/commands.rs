//! Slurm's programs as this end sees them: an argument vector goes in, a text or one of five kinds of error comes out,
//! within a stated time.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use task::lock::lock;

use crate::Calls;
use crate::job::limits::open_files_limit_of_others;
use crate::job::process::{process_ended_within, signal_process_group};
use crate::slurm::error::{Error, SAID_MAX, error_of_answer_not_understood};

/// Bytes that a program may write: a queue of a hundred thousand jobs has about a tenth.
const OUTPUT_MAX: u64 = 256 << 20;
/// How long the end of the outputs may come after the end of a program.
const OUTPUT_WAIT: Duration = Duration::from_secs(10);
/// The program that passes its own limits on to the jobs that it submits.
const SUBMITS: &str = "sbatch";
/// The exit status of a shell that cannot run a program.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// The words of a program that found no controller; all others are a refusal.
const UNREACHABLE: [&str; 8] = [
    "Unable to contact slurm controller",
    "Unable to establish controller machine",
    "Unable to establish configuration source",
    "Connection refused",
    "Communication connection failure",
    "Zero Bytes were transmitted",
    "Socket timed out",
    "authentication",
];

/// Runs Slurm's programs.
#[derive(Debug, Clone)]
pub(crate) struct SlurmCommands {
    /// The folder of the programs, where they are not among the system's.
    pub(crate) programs: Option<PathBuf>,
    /// The configuration file; the programs' own default without.
    pub(crate) configuration: Option<PathBuf>,
    /// How long each call may take.
    pub(crate) patience: Duration,
    /// The calls so far, by program and result.
    pub(crate) calls: Arc<Mutex<Calls>>,
}

impl SlurmCommands {
    /// Where programs are looked for.
    fn path(&self) -> OsString {
        let mut path = OsString::new();
        if let Some(programs) = &self.programs {
            path.push(programs);
            path.push(":");
        }
        path.push("/usr/local/bin:/usr/bin:/bin");
        path
    }

    /// Runs a program and returns its output. Times are written as seconds since 1970 and understood in UTC.
    pub(crate) fn call<A: AsRef<OsStr>>(
        &self,
        program: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String, Error> {
        let settings = [("TZ", "UTC"), ("LC_ALL", "C"), ("SLURM_TIME_FORMAT", "%s")];
        self.call_with(
            program,
            arguments,
            settings.map(|(name, value)| (name, value.to_owned())),
        )
    }

    /// Runs a program in an environment that has these and nothing of the service's, which may hold secrets.
    pub(crate) fn call_with<A: AsRef<OsStr>>(
        &self,
        program: &'static str,
        arguments: impl IntoIterator<Item = A>,
        environment: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<String, Error> {
        let answer = self.run(program, arguments, environment);
        let outcome = answer.as_ref().map_or_else(Error::word, |_| "done");
        self.count(program, outcome);
        answer
    }

    /// Counts a call by its program and its result.
    pub(crate) fn count(&self, program: &'static str, outcome: &'static str) {
        *lock(&self.calls).entry((program, outcome)).or_default() += 1;
    }

    fn run<A: AsRef<OsStr>>(
        &self,
        program: &'static str,
        arguments: impl IntoIterator<Item = A>,
        environment: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<String, Error> {
        let mut command = match open_files_limit_of_others() {
            Some(open_files) if program == SUBMITS => slurm_command_with_file_limit(program, open_files),
            _ => Command::new(program),
        };
        command
            .args(arguments)
            .env_clear()
            .env("PATH", self.path())
            .envs(environment)
            // A group of its own, so that nothing that it starts outlives a time-out.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(configuration) = &self.configuration {
            command.env("SLURM_CONF", configuration);
        }
        let missing = |why: std::io::Error| Error::Missing(program.into(), why.to_string());
        let mut child = command.spawn().map_err(missing)?;
        let output = read_output_of_command(child.stdout.take());
        let (output, said) =
            match output.and_then(|output| Ok((output, read_output_of_command(child.stderr.take())?))) {
                Ok(both) => both,
                Err(why) => {
                    // Its outputs could not be read, so it is ended.
                    wait_for_command(&mut child, Duration::ZERO).map_err(missing)?;
                    return Err(missing(why));
                }
            };
        let status = wait_for_command(&mut child, self.patience).map_err(missing)?;
        let slow = Error::Slow(program.into(), self.patience.as_secs());
        let status = status.ok_or(slow.clone())?;
        let ended = Instant::now();
        let text = |from: mpsc::Receiver<Vec<u8>>| {
            let left = OUTPUT_WAIT.saturating_sub(ended.elapsed());
            from.recv_timeout(left).map_err(|_| slow.clone())
        };
        let (output, said) = (text(output)?, text(said)?);
        if status.success() {
            return String::from_utf8(output)
                .map_err(|_| error_of_answer_not_understood(program, "it is no text"));
        }
        Err(classify_command_failure(
            program,
            status,
            &String::from_utf8_lossy(&said),
        ))
    }
}

/// A program with this soft limit of open files, instead of the limit that this process has raised for itself.
fn slurm_command_with_file_limit(program: &'static str, open_files: u64) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -S -n \"$0\" && exec \"$@\""]);
    command.args([&open_files.to_string(), program]);
    command
}

fn classify_command_failure(program: &'static str, status: ExitStatus, said: &str) -> Error {
    let words: Vec<&str> = said.split_whitespace().collect();
    let said: String = words.join(" ").chars().take(SAID_MAX).collect();
    if program == SUBMITS && status.code().is_some_and(|code| CANNOT_RUN.contains(&code)) {
        return Error::Missing(program.into(), said);
    }
    if let Some(signal) = status.signal() {
        return error_of_answer_not_understood(program, &format!("ended by signal {signal}; {said}"));
    }
    if UNREACHABLE.iter().any(|sign| said.contains(sign)) {
        return Error::Down(said);
    }
    if said.is_empty() {
        return error_of_answer_not_understood(program, &format!("{status}, and it says nothing"));
    }
    Error::Refused(program.into(), said)
}

/// Waits for a program's end; kills it with all that it started when that does not come in time.
fn wait_for_command(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let process = Pid::from_child(child);
    let in_time = pidfd_open(process, PidfdFlags::empty())
        .map_err(std::io::Error::from)
        .and_then(|opened| process_ended_within(&opened, patience));
    if !matches!(in_time, Ok(true)) {
        // The process leads its own group and was not yet waited for, so no other group has this number.
        signal_process_group(process, Signal::KILL)?;
        child.wait()?;
        return in_time.map(|_| None);
    }
    child.wait().map(Some)
}

/// Reads an output to its end on a thread of its own: a pipe that is full would hold the program.
/// Fails where there can be no more threads.
fn read_output_of_command(
    output: Option<impl Read + Send + 'static>,
) -> std::io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            // An unreadable part is missing from the text, which is then not understood.
            let _ = output.take(OUTPUT_MAX).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

/// A path as an argument's value.
pub(crate) fn command_option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push("=");
    option.push(path);
    option
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn slurm(patience: Duration) -> SlurmCommands {
        SlurmCommands {
            programs: None,
            configuration: None,
            patience,
            calls: Arc::default(),
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_started() {
        let started = Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let written = folder.path().join("processes");
        // Its own number and the number of the processes that it starts, which do not end with it by themselves.
        let script = format!("sleep 86400 & echo $$ $! >'{}'; wait", written.display());
        let answer = slurm(Duration::from_secs(2)).call("sh", ["-c", &script]);
        assert!(matches!(answer, Err(Error::Slow { .. })), "{answer:?}");
        assert!(started.elapsed() < Duration::from_secs(30));
        let text = std::fs::read_to_string(&written).expect("it ran");
        let processes: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(processes.len(), 2, "{text:?}");
        let runs = |process: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next().unwrap_or_default();
            // A zombie process runs no more.
            !state.is_empty() && !state.starts_with('Z')
        };
        while processes.iter().any(|process| runs(process)) {
            assert!(started.elapsed() < Duration::from_secs(30), "{text} run on");
            thread::yield_now();
        }
    }

    #[test]
    fn what_passes_its_limits_on_has_those_that_the_service_was_started_with() {
        let mut command = slurm_command_with_file_limit("sh", 99);
        let output = command
            .args(["-c", "ulimit -S -n; echo $1", "sh", "a b"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "99\na b\n");
        let missing = slurm_command_with_file_limit("no-such-program-of-slurm", 99)
            .output()
            .unwrap();
        let missing =
            classify_command_failure(SUBMITS, missing.status, &String::from_utf8_lossy(&missing.stderr));
        assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    }

    #[test]
    fn errors_are_told_apart_by_what_one_would_do() {
        let slurm = slurm(Duration::from_secs(30));
        let fails = |script: &str| slurm.call("sh", ["-c", script]).unwrap_err();
        assert!(matches!(
            fails(
                "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
            ),
            Error::Down(_)
        ));
        assert_eq!(
            fails("echo 'Error creating the reservation: Invalid  user id' >&2; exit 1").to_string(),
            "sh refuses: Error creating the reservation: Invalid user id"
        );
        assert!(matches!(fails("exit 1"), Error::Unknown { .. }));
        assert!(matches!(fails("kill -9 $$"), Error::Unknown { .. }));
        let missing = slurm.call("no-such-program-of-slurm", [""; 0]).unwrap_err();
        assert!(matches!(missing, Error::Missing { .. }), "{missing}");
        assert_eq!(slurm.call("sh", ["-c", "echo $TZ"]), Ok("UTC\n".to_owned()));
    }

    #[test]
    fn more_than_a_pipe_holds_is_read() {
        let text = slurm(Duration::from_secs(30)).call("sh", ["-c", "head -c 300000 /dev/zero | tr '\\0' x"]);
        assert_eq!(text.map(|text| text.len()), Ok(300_000));
    }
}
