//! Jobs as real processes: their environment, their ends, and that neither they nor their ends are lost or doubled when anything
//! around them is killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod isolation;
mod killed_supervisors;
mod limits;
mod retention;
mod saving;
mod shortage;
mod system_bounds;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use domain::agreement::{JobEnd, RunOutcome};
use domain::catalogue::{Catalogue, JobLimits};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use execution::job::folder::outputs::{OutputFile, Stream};
use execution::job::limits::OUTPUT_LIMIT;
use execution::local_executor::LocalExecutor;
use execution::programs::find_program;
use execution::{Executor, JobSpec, JobStatus};
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::support::deadline_here;
use crate::support::processes::JobsFolder;

/// How long a test waits for an event that should come within a second or two, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// A folder for jobs and files that goes away with the test.
struct TestFolder {
    folder: JobsFolder,
}

impl TestFolder {
    fn new() -> Self {
        Self {
            folder: JobsFolder::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An executor as a service has it that has just started.
    fn executor(&self) -> LocalExecutor {
        self.executor_with(Path::new(env!("CARGO_BIN_EXE_bespeak")))
    }

    fn executor_with(&self, executable: &Path) -> LocalExecutor {
        LocalExecutor::new(self.folder.path())
            .unwrap()
            .with_executable(executable)
    }

    fn record(&self, job: &JobSpec, name: &str) -> PathBuf {
        self.path("jobs").join(job.agreement.to_string()).join(name)
    }

    /// The number of the supervisor at work, from its own record.
    fn supervisor(&self, job: &JobSpec) -> Option<Pid> {
        let record: serde_json::Value =
            serde_json::from_slice(&fs::read(self.record(job, "lock")).ok()?).ok()?;
        Pid::from_raw(record["pid"].as_i64()?.try_into().ok()?)
    }

    fn output(&self, job: &JobSpec, stream: Stream) -> String {
        let folder = self.executor().folder(job.run());
        let file = folder.open_output(&OutputFile::Stream(stream)).unwrap();
        file.map_or_else(String::new, |file| std::io::read_to_string(file).unwrap())
    }
}

/// A job of a shell script, in a slot that ends that many seconds from now.
fn script(text: &str, seconds: i64) -> JobSpec {
    job("/bin/sh", &["-c", text], seconds)
}

fn job(program: &str, arguments: &[&str], seconds: i64) -> JobSpec {
    JobSpec {
        isolation: None,
        agreement: Uuid::now_v7(),
        party: "physics".into(),
        application: "test".into(),
        program: program.into(),
        arguments: arguments.iter().map(ToString::to_string).collect(),
        inputs: Vec::new(),
        staged: Vec::new(),
        nodes: 2,
        processors: Vec::new(),
        slot_end: now() + seconds * MICROS_PER_SECOND,
        output_limit: OUTPUT_LIMIT,
        limits: JobLimits::default(),
        piece: None,
        restarts: 0,
    }
}

fn now() -> Micros {
    Clock::system().micros()
}

/// Asks again and again until there is an answer.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let asked = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            asked.elapsed() < deadline_here(PATIENCE),
            "no {what} after {PATIENCE:?}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

fn end(executor: &LocalExecutor, job: &JobSpec) -> JobEnd {
    wait_for("end", || match executor.poll(job.run()).unwrap() {
        JobStatus::Ended(end) => Some(end),
        status => {
            assert_ne!(status, JobStatus::NotStarted);
            None
        }
    })
}

fn run(place: &TestFolder, job: &JobSpec) -> JobEnd {
    let executor = place.executor();
    executor.start(job).unwrap();
    end(&executor, job)
}

/// The processes of a job that there are, by the mark in their environment.
fn processes(job: &JobSpec) -> Vec<i32> {
    let mark = format!("BESPEAK_AGREEMENT={}", job.agreement);
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    })
    .collect()
}

#[test]
fn a_job_runs_in_its_folder_with_its_inputs_and_nothing_of_the_services_environment() {
    let place = TestFolder::new();
    fs::write(place.path("words.txt"), "a word\n").unwrap();
    // A variable that the library adds by which the tests run at another time.
    let names = "env | cut -d= -f1 | grep -v FAKETIME | sort | tr '\\n' ' '";
    let text = format!("cat words.txt; pwd; {names}; echo problem >&2; cat; exit 3");
    let mut job = script(&text, 600);
    job.inputs.push(place.path("words.txt"));
    let before = now();
    let end = run(&place, &job);
    assert_eq!(end.outcome, RunOutcome::Failed { exit: 3 });
    let work = fs::canonicalize(place.record(&job, "work")).unwrap();
    let variables = "BESPEAK_AGREEMENT BESPEAK_NODES BESPEAK_SLOT_END HOME LANG PATH PWD TMPDIR ";
    assert_eq!(
        place.output(&job, Stream::Out),
        format!("a word\n{}\n{variables}", work.display())
    );
    assert_eq!(place.output(&job, Stream::Err), "problem\n");
    let started = end.started.unwrap();
    assert!(
        before <= started && started <= end.ended && end.ended <= now(),
        "{before} {end:?}"
    );
    assert_eq!(end.input_bytes, 7);
    let written = place.output(&job, Stream::Out).len() + "problem\n".len();
    assert_eq!((end.output_bytes, end.truncated), (written as u64, false));
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(place.record(&job, "")).unwrap());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_job_that_ends_well_is_completed_and_one_that_cannot_run_says_why() {
    let place = TestFolder::new();
    assert_eq!(run(&place, &script("true", 600)).outcome, RunOutcome::Completed);
    assert_eq!(
        run(&place, &script("kill -9 $$", 600)).outcome,
        RunOutcome::Failed { exit: 137 }
    );
    let absent = job("/nonexistent/program", &[], 600);
    assert_eq!(run(&place, &absent).outcome, RunOutcome::Failed { exit: 127 });
    assert!(
        place
            .output(&absent, Stream::Err)
            .contains("/nonexistent/program cannot be run")
    );
    fs::write(place.path("text"), "no program").unwrap();
    let unfit = job(place.path("text").to_str().unwrap(), &[], 600);
    assert_eq!(run(&place, &unfit).outcome, RunOutcome::Failed { exit: 126 });
}

#[test]
fn arguments_reach_the_program_as_they_are_and_no_shell_reads_them() {
    let place = TestFolder::new();
    let arguments = [
        "$(touch injected)",
        "; touch injected",
        "`touch injected`",
        "*",
        "a b",
        "\"'\\",
    ];
    let job = job("/usr/bin/printf", &[&["%s|"] as &[_], &arguments].concat(), 600);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    assert_eq!(
        place.output(&job, Stream::Out),
        arguments.map(|argument| format!("{argument}|")).concat()
    );
    assert_eq!(fs::read_dir(place.record(&job, "work")).unwrap().count(), 0);

    let catalogue = Catalogue::built_in(find_program);
    for (application, argument) in [
        ("sha256sum", "--help"),
        ("sha256sum", "-"),
        ("sha256sum", "../x"),
        ("sleep", "--version"),
        ("sleep", "1d"),
    ] {
        let application = catalogue.find(application, None).unwrap();
        assert!(
            application.check(&[argument.into()], |_| true).is_err(),
            "{argument}"
        );
    }
}

#[test]
fn a_built_in_application_runs_with_a_file_of_the_provider() {
    let place = TestFolder::new();
    fs::write(place.path("abc"), "abc").unwrap();
    let catalogue = Catalogue::built_in(find_program);
    let application = catalogue.find("sha256sum", None).unwrap();
    application
        .check(&["abc".into()], |name| place.path(name).is_file())
        .unwrap();
    let mut job = job(application.program.to_str().unwrap(), &["abc"], 600);
    job.inputs.push(place.path("abc"));
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  abc\n";
    assert_eq!(place.output(&job, Stream::Out), sum);
}

#[test]
fn a_job_is_killed_at_the_end_of_its_slot_with_all_that_it_started() {
    let place = TestFolder::new();
    let job = script(
        "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo started; while :; do sleep 1; done",
        600,
    );
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("three processes and its word", || {
        let said = place.output(&job, Stream::Out) == "started\n";
        (said && processes(&job).len() >= 3).then_some(())
    });
    let until = now();
    executor.keep_until(job.run(), until).unwrap();
    let end = end(&executor, &job);
    assert_eq!(end.outcome, RunOutcome::Killed);
    assert!(end.ended >= until, "not before its slot was over");
    assert_eq!(processes(&job), [] as [i32; 0]);
    assert_eq!(place.output(&job, Stream::Out), "started\n");
}

#[test]
fn what_a_job_leaves_running_ends_with_it() {
    let place = TestFolder::new();
    let job = script("sleep 1000 & setsid sleep 1000 & exit 0", 600);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    assert_eq!(processes(&job), [] as [i32; 0]);
}

#[test]
fn a_job_that_is_asked_to_stop_is_terminated() {
    let place = TestFolder::new();
    let job = script("exec sleep 1000", 600);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("process", || (processes(&job).len() == 1).then_some(()));
    executor.stop(job.run()).unwrap();
    executor.stop(job.run()).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Terminated);
    executor.stop(job.run()).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Terminated);
    assert_eq!(processes(&job), [] as [i32; 0]);
}

#[test]
fn a_job_that_is_stopped_or_whose_slot_is_over_before_it_starts_never_runs() {
    let place = TestFolder::new();
    // The service is killed between the intent and the spawning of a supervisor.
    let service_dies = place.executor_with(Path::new("/bin/true"));
    let stopped = script("touch ran", 600);
    service_dies.start(&stopped).unwrap();
    service_dies.stop(stopped.run()).unwrap();
    let ended = end(&place.executor(), &stopped);
    assert_eq!((ended.outcome, ended.started), (RunOutcome::Terminated, None));
    assert!(!place.record(&stopped, "work/ran").exists());

    let late = script("touch ran", 0);
    service_dies.start(&late).unwrap();
    let ended = end(&place.executor(), &late);
    assert_eq!((ended.outcome, ended.started), (RunOutcome::Lost, None));
    assert!(!place.record(&late, "work/ran").exists());
}

#[test]
fn a_job_whose_service_was_killed_after_the_intent_starts_once_it_is_back() {
    let place = TestFolder::new();
    let job = script("echo x >> runs", 600);
    place.executor_with(Path::new("/bin/true")).start(&job).unwrap();
    assert_eq!(end(&place.executor(), &job).outcome, RunOutcome::Completed);
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/runs")).unwrap(),
        "x\n"
    );
}

#[test]
fn a_job_that_is_started_many_times_runs_once() {
    let place = TestFolder::new();
    let job = script("echo x >> runs; sleep 0.3", 600);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let executor = place.executor();
                executor.start(&job).unwrap();
                assert_eq!(end(&executor, &job).outcome, RunOutcome::Completed);
                executor.start(&job).unwrap();
                assert_eq!(end(&executor, &job).outcome, RunOutcome::Completed);
            });
        }
    });
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/runs")).unwrap(),
        "x\n"
    );
}

#[test]
fn a_supervisor_that_cannot_work_is_reported_and_tried_again() {
    let place = TestFolder::new();
    let job = script("echo x", 600);
    place.executor_with(Path::new("/bin/true")).start(&job).unwrap();
    // A disk that refuses, as far as a test can have one.
    fs::create_dir(place.record(&job, "stdout")).unwrap();
    let executor = place.executor();
    let error = wait_for("failure", || executor.poll(job.run()).err()).to_string();
    assert!(
        error.contains("supervisor.log in this folder says why"),
        "{error}"
    );
    let log = fs::read_to_string(place.record(&job, "supervisor.log")).unwrap();
    assert!(
        log.contains("bespeak: create ") && log.contains("/stdout: Is a directory"),
        "{log}"
    );
    fs::remove_dir(place.record(&job, "stdout")).unwrap();
    let end = wait_for("end", || match executor.poll(job.run()) {
        Ok(JobStatus::Ended(end)) => Some(end),
        _ => None,
    });
    assert_eq!(end.outcome, RunOutcome::Completed);
}

#[test]
fn of_many_launchers_one_becomes_the_job_and_none_after_it_was_abandoned() {
    let place = TestFolder::new();
    let launch = |job: &JobSpec| {
        let mut launcher = Command::new(env!("CARGO_BIN_EXE_bespeak"));
        launcher
            .arg("launch")
            .arg(place.record(job, ""))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let wanted = script("echo x >> runs; sleep 0.2", 600);
    place
        .executor_with(Path::new("/bin/true"))
        .start(&wanted)
        .unwrap();
    let launchers: Vec<_> = (0..8).map(|_| launch(&wanted)).collect();
    for mut launcher in launchers {
        assert!(launcher.wait().unwrap().success());
    }
    assert_eq!(
        end(&place.executor(), &wanted).outcome,
        RunOutcome::Lost,
        "its end was not seen"
    );
    assert_eq!(
        fs::read_to_string(place.record(&wanted, "work/runs")).unwrap(),
        "x\n"
    );

    let abandoned = script("touch ran", 0);
    place.executor().start(&abandoned).unwrap();
    assert_eq!(end(&place.executor(), &abandoned).outcome, RunOutcome::Lost);
    assert!(launch(&abandoned).wait().unwrap().success());
    assert!(!place.record(&abandoned, "work/ran").exists());
}

#[test]
fn a_job_outlives_the_service_and_its_successor_learns_how_it_ended() {
    let place = TestFolder::new();
    let job = script("while [ ! -s go ]; do sleep 0.05; done; cat go; exit 4", 600);
    place.executor().start(&job).unwrap();
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    let session = rustix::process::getsid(Some(supervisor)).unwrap();
    assert_eq!(session, supervisor, "it leads a session of its own");
    wait_for("process", || (!processes(&job).is_empty()).then_some(()));
    fs::write(place.record(&job, "work/go"), "on\n").unwrap();
    assert_eq!(
        end(&place.executor(), &job).outcome,
        RunOutcome::Failed { exit: 4 }
    );
    assert_eq!(place.output(&job, Stream::Out), "on\n");
}

#[test]
fn a_job_whose_supervisor_is_killed_is_watched_on_and_killed_at_the_end_of_its_slot() {
    let place = TestFolder::new();
    let job = script("trap '' TERM; echo x >> runs; sleep 1000 & wait; sleep 1000", 600);
    place.executor().start(&job).unwrap();
    wait_for("process", || (processes(&job).len() >= 2).then_some(()));
    let first = wait_for("supervisor", || place.supervisor(&job));
    kill_process(first, Signal::KILL).unwrap();
    let executor = place.executor();
    let second = wait_for("another supervisor", || {
        executor.poll(job.run()).unwrap();
        place.supervisor(&job).filter(|second| *second != first)
    });
    assert!(matches!(
        executor.poll(job.run()).unwrap(),
        JobStatus::Running { started: Some(_) }
    ));
    assert!(!processes(&job).is_empty(), "still running under {second:?}");
    let until = now();
    executor.keep_until(job.run(), until).unwrap();
    let end = end(&executor, &job);
    assert_eq!(end.outcome, RunOutcome::Killed);
    assert!(end.ended >= until);
    assert_eq!(processes(&job), [] as [i32; 0]);
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/runs")).unwrap(),
        "x\n"
    );
}

#[test]
fn a_job_that_ends_without_a_supervisor_is_lost_and_nothing_of_it_stays() {
    let place = TestFolder::new();
    let job = script("setsid sleep 1000 & while [ ! -e go ]; do sleep 0.05; done", 600);
    place.executor().start(&job).unwrap();
    wait_for("processes", || (processes(&job).len() >= 2).then_some(()));
    kill_process(wait_for("supervisor", || place.supervisor(&job)), Signal::KILL).unwrap();
    fs::write(place.record(&job, "work/go"), "").unwrap();
    wait_for("end of the leader", || (processes(&job).len() <= 1).then_some(()));
    let end = end(&place.executor(), &job);
    assert_eq!(end.outcome, RunOutcome::Lost);
    assert!(end.started.is_some());
    assert_eq!(processes(&job), [] as [i32; 0]);
}

#[test]
fn however_often_and_whenever_supervisors_are_killed_a_job_never_runs_twice() {
    let place = TestFolder::new();
    thread::scope(|scope| {
        for round in 0_u64..12 {
            let place = &place;
            scope.spawn(move || {
                let job = script("echo x >> runs; sleep 0.2; echo y >> runs", 600);
                place.executor().start(&job).unwrap();
                for kill in 0..6 {
                    // From before the supervisor's first instruction to well after the job's.
                    let patience = Duration::from_micros((round * 977 + kill * 3_571) % 40_000);
                    let from = Instant::now();
                    while from.elapsed() < patience {
                        thread::yield_now();
                    }
                    if let Some(supervisor) = place.supervisor(&job) {
                        let _ = kill_process(supervisor, Signal::KILL);
                    }
                    let _ = place.executor().poll(job.run()).unwrap();
                }
                let end = end(&place.executor(), &job);
                let runs = fs::read_to_string(place.record(&job, "work/runs")).unwrap_or_default();
                match end.outcome {
                    RunOutcome::Completed => assert_eq!(runs, "x\ny\n"),
                    RunOutcome::Lost => assert!(["", "x\n", "x\ny\n"].contains(&runs.as_str()), "{runs}"),
                    other => panic!("{other:?}"),
                }
                assert_eq!(processes(&job), [] as [i32; 0]);
            });
        }
    });
}

#[test]
fn a_process_number_that_another_process_has_by_now_is_left_alone() {
    let place = TestFolder::new();
    for (ticks, boot) in [
        (1, fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap()),
        (1, "earlier".into()),
    ] {
        let job = script("touch ran", 600);
        place.executor_with(Path::new("/bin/true")).start(&job).unwrap();
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = serde_json::json!({ "pid": stranger.id(), "start_ticks": ticks, "boot": boot.trim() });
        let claim = serde_json::json!({ "kind": "started", "process": process, "at": 17 });
        fs::write(place.record(&job, "claim.json"), claim.to_string()).unwrap();
        place.executor().stop(job.run()).unwrap();
        let end = end(&place.executor(), &job);
        assert_eq!((end.outcome, end.started), (RunOutcome::Lost, Some(17)));
        assert!(stranger.try_wait().unwrap().is_none(), "the stranger still runs");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(!place.record(&job, "work/ran").exists());
    }
}

#[test]
fn output_beyond_the_limit_is_dropped_and_the_job_runs_on() {
    let place = TestFolder::new();
    let mut job = script("head -c 1000000 /dev/zero; echo done > done; echo x >&2", 600);
    job.output_limit = 1_000;
    let end = run(&place, &job);
    assert_eq!(end.outcome, RunOutcome::Completed);
    assert_eq!((end.output_bytes, end.truncated), (1_002, true));
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/done")).unwrap(),
        "done\n"
    );
}
