//! Supervisors and launchers that are killed: what did not end by itself is not its party's.

use super::isolation::isolated;
use super::*;

/// Kills the supervisor of a job, and waits until it is gone.
fn kill_supervisor(place: &TestFolder, job: &JobSpec) -> Pid {
    let supervisor = wait_for("supervisor", || place.supervisor(job));
    kill_process(supervisor, Signal::KILL).unwrap();
    wait_for("end of the supervisor", || {
        let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z")).then_some(supervisor)
    })
}

#[test]
fn its_output_is_read_on_after_its_supervisor_was_killed() {
    let place = TestFolder::new();
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.05; done");
    let text = format!(
        "touch ready; {}; echo one; echo two >&2; touch said; {}; echo three; exit 0",
        wait("go"),
        wait("on")
    );
    let job = isolated(&text, 600);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("start", || {
        place.record(&job, "work/ready").exists().then_some(())
    });
    let first = kill_supervisor(&place, &job);
    fs::write(place.record(&job, "work/go"), "").unwrap();
    let is_over =
        || fs::read_to_string(place.record(&job, "isolation")).is_ok_and(|text| text.contains("exit-code"));
    wait_for("its word", || {
        (place.record(&job, "work/said").exists() || is_over()).then_some(())
    });
    let next = place.executor();
    wait_for("another supervisor", || {
        next.poll(job.run()).unwrap();
        place.supervisor(&job).filter(|second| *second != first)
    });
    fs::write(place.record(&job, "work/on"), "").unwrap();
    assert_eq!(end(&next, &job).outcome, RunOutcome::Completed);
    let said = Stream::ALL.map(|stream| place.output(&job, stream));
    assert_eq!(said, ["one\nthree\n", "two\n"]);
}

#[test]
fn one_that_waited_for_a_reader_of_its_output_until_its_slot_was_over_is_lost() {
    let place = TestFolder::new();
    let text = "touch ready; while [ ! -e go ]; do sleep 0.05; done; head -c 10000000 /dev/zero; exit 0";
    let job = isolated(text, 600);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("start", || {
        place.record(&job, "work/ready").exists().then_some(())
    });
    kill_supervisor(&place, &job);
    fs::write(place.record(&job, "work/go"), "").unwrap();
    let pipe = fs::File::options()
        .read(true)
        .write(true)
        .open(place.record(&job, ".stdout.pipe"))
        .unwrap();
    wait_for("a full pipe", || {
        let waiting = rustix::io::ioctl_fionread(&pipe).unwrap();
        (waiting >= 64 << 10).then_some(())
    });
    drop(pipe);
    executor.keep_until(job.run(), now()).unwrap();
    assert_eq!(end(&place.executor(), &job).outcome, RunOutcome::Lost);
}

#[test]
fn a_launcher_that_is_killed_before_its_program_runs_is_followed_by_another() {
    let place = TestFolder::new();
    // With so few open files it waits as in a shortage, after its claim.
    let limits = JobLimits {
        open_files: Some(3),
        ..JobLimits::default()
    };
    let job = JobSpec {
        limits,
        ..isolated("touch ran", 600)
    };
    let executor = place.executor();
    executor.start(&job).unwrap();
    let claimed_by = |but: Option<Pid>| {
        executor.poll(job.run()).unwrap();
        let claim = fs::read(place.record(&job, "claim.json")).ok()?;
        let claim: serde_json::Value = serde_json::from_slice(&claim).ok()?;
        let pid = Pid::from_raw(claim["process"]["pid"].as_i64()?.try_into().ok()?)?;
        Some(pid).filter(|pid| Some(*pid) != but)
    };
    let first = wait_for("claim", || claimed_by(None));
    kill_process(first, Signal::KILL).unwrap();
    let ended = || match executor.poll(job.run()).unwrap() {
        JobStatus::Ended(end) => Some(end.outcome),
        _ => None,
    };
    wait_for("another claim", || {
        assert_eq!(ended(), None, "not a line of it ran");
        claimed_by(Some(first))
    });
    executor.stop(job.run()).unwrap();
    let end = end(&executor, &job);
    assert_eq!((end.outcome, end.started), (RunOutcome::Terminated, None));
    assert!(!place.record(&job, "work/ran").exists());
}
