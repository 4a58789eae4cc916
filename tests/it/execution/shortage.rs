//! Shortages of this machine while jobs are launched, run and end: they delay the steps, and no job is lost.

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use super::*;

/// The system's message about a process without a descriptor.
const NO_DESCRIPTOR: &str = "Too many open files";

/// Lets a process have at most this many open files; open ones stay open.
fn limit_open_files(process: Pid, most: u64) {
    let limit = Rlimit {
        current: Some(most),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    prlimit(Some(process), Resource::Nofile, limit).unwrap();
}

fn supervisors_log(place: &TestFolder, job: &JobSpec) -> String {
    fs::read_to_string(place.record(job, "supervisor.log")).unwrap_or_default()
}

#[test]
fn a_supervisor_without_descriptors_launches_its_job_once_it_has_some() {
    let place = TestFolder::new();
    // Enough for the lock and the records, not for the pipes of a job.
    let limited = place.path("limited");
    let text = format!(
        "#!/bin/sh\nulimit -S -n 6\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_bespeak")
    );
    fs::write(&limited, text).unwrap();
    fs::set_permissions(&limited, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let executor = place.executor_with(&limited);
    let job = script("echo done", 600);
    executor.start(&job).unwrap();
    wait_for("shortage", || {
        supervisors_log(&place, &job)
            .contains(NO_DESCRIPTOR)
            .then_some(())
    });
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    limit_open_files(supervisor, 100);
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Completed);
    assert_eq!(place.output(&job, Stream::Out), "done\n");
    assert_eq!(place.supervisor(&job), Some(supervisor), "one did it all");
}

#[test]
fn a_job_whose_supervisor_has_no_descriptor_when_it_ends_is_not_lost() {
    let place = TestFolder::new();
    let executor = place.executor();
    let job = script("while [ ! -e go ]; do sleep 0.05; done; exit 3", 600);
    executor.start(&job).unwrap();
    wait_for("process", || (!processes(&job).is_empty()).then_some(()));
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    limit_open_files(supervisor, 3);
    fs::write(place.record(&job, "work/go"), "").unwrap();
    wait_for("shortage after the end", || {
        let ended = processes(&job).is_empty();
        (ended && supervisors_log(&place, &job).contains(NO_DESCRIPTOR)).then_some(())
    });
    for _ in 0..20 {
        let status = executor.poll(job.run()).unwrap();
        assert!(matches!(status, JobStatus::Running { .. }), "{status:?}");
        thread::sleep(Duration::from_millis(10));
    }
    limit_open_files(supervisor, 100);
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Failed { exit: 3 });
}

#[test]
fn a_job_that_ends_on_a_full_disk_is_not_lost() {
    let place = TestFolder::new();
    fs::create_dir(place.path("jobs")).unwrap();
    let Some(_disk) = Disk::mounted(&place.path("jobs")) else {
        eprintln!("not tried: this user may not mount a file system that could be filled");
        return;
    };
    let executor = place.executor();
    let job = script("head -c 4000000 /dev/zero > fill; exit 5", 600);
    executor.start(&job).unwrap();
    wait_for("claim", || {
        place.record(&job, "claim.json").exists().then_some(())
    });
    wait_for("end", || processes(&job).is_empty().then_some(()));
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    // It has nothing more to wait for than room.
    wait_for("last record", || {
        let drafts = fs::read_dir(place.record(&job, "")).unwrap().flatten();
        let tried = drafts.filter(|entry| entry.file_name() == "tmp").count() == 0;
        tried.then_some(())
    });
    let status = executor.poll(job.run()).unwrap();
    assert!(matches!(status, JobStatus::Running { .. }), "{status:?}");
    fs::remove_file(place.record(&job, "work/fill")).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Failed { exit: 5 });
    assert_eq!(place.supervisor(&job), Some(supervisor), "one did it all");
}

/// A file system of a mebibyte, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    /// At a folder; none where this user may not.
    fn mounted(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(at);
        let status = mounted.stderr(Stdio::null()).status();
        status
            .is_ok_and(|status| status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that still has files open there ends by itself.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_job_for_which_no_limit_of_files_is_said_has_one_that_breaks_no_program() {
    let place = TestFolder::new();
    let job = script("ulimit -S -n", 600);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    let files: u64 = place.output(&job, Stream::Out).trim().parse().unwrap();
    assert!(files <= 1_024, "{files}");
}
