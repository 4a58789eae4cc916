use super::*;

/// A process to wait for, in a group of its own, with its supervisor.
fn supervised<T>(slot_end: Micros, clock: Clock, fact: impl FnOnce(&Supervisor, &OwnedFd, Pid) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let job = JobSpec {
        agreement: uuid::Uuid::now_v7(),
        party: "physics".into(),
        application: "test".into(),
        program: "/bin/sleep".into(),
        arguments: Vec::new(),
        inputs: Vec::new(),
        isolation: None,
        staged: Vec::new(),
        nodes: 1,
        processors: Vec::new(),
        slot_end,
        output_limit: 0,
        limits: domain::catalogue::JobLimits::default(),
        piece: None,
        restarts: 0,
    };
    let mut child = Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .spawn()
        .unwrap();
    let leader = Pid::from_child(&child);
    let process = pidfd_open(leader, PidfdFlags::empty()).unwrap();
    let at = Folder::at(folder.path());
    let supervisor = Supervisor::new(&at, job, clock);
    let result = fact(&supervisor, &process, leader);
    child.kill().unwrap();
    child.wait().unwrap();
    result
}

const HOUR: Micros = 3_600_000_000;

#[test]
fn a_slot_ends_by_the_clock_also_when_that_is_set_forward_meanwhile() {
    let clock = Clock::standing_at(0);
    let stop = supervised(HOUR, clock.clone(), |supervisor, process, leader| {
        assert_eq!(supervisor.reason_to_stop().unwrap(), None);
        assert_eq!(
            supervisor.next_look(),
            TICK,
            "an hour is never waited for at once"
        );
        thread::scope(|scope| {
            let identity = ProcessIdentity::of(leader).unwrap();
            let mut watch = supervisor.watch_over(&identity);
            let waiting = scope.spawn(move || supervisor.wait(process, leader, &mut watch));
            clock.set(2 * HOUR);
            waiting.join().unwrap().unwrap()
        })
    });
    assert_eq!(stop, Some((Stop::SlotOver, StopOutcome::ByItself)));
}

#[test]
fn a_slot_that_was_almost_over_goes_on_when_the_clock_is_set_back() {
    let clock = Clock::standing_at(HOUR - 1);
    supervised(HOUR, clock.clone(), |supervisor, process, _| {
        assert_eq!(supervisor.next_look(), Duration::from_micros(1));
        clock.set(0);
        assert_eq!(
            (supervisor.reason_to_stop().unwrap(), supervisor.next_look()),
            (None, TICK)
        );
        assert!(!process_ended_within(process, Duration::ZERO).unwrap());
    });
}

#[test]
fn a_status_says_how_a_process_ended() {
    assert_eq!(
        outcome_of_supervised_exit(ExitStatus::from_raw(0)),
        RunOutcome::Completed
    );
    assert_eq!(
        outcome_of_supervised_exit(ExitStatus::from_raw(3 << 8)),
        RunOutcome::Failed { exit: 3 }
    );
    assert_eq!(
        outcome_of_supervised_exit(ExitStatus::from_raw(9)),
        RunOutcome::Failed { exit: 137 }
    );
}

#[test]
fn the_outputs_of_a_job_that_an_earlier_launcher_has_become_have_one_reader() {
    supervised(HOUR, Clock::standing_at(0), |supervisor, _, _| {
        let ([out, err], outputs) = capture_output_pipes(supervisor.folder, 4 << 20).unwrap();
        drop(err);
        let mut child = Command::new("seq")
            .arg("200000")
            .stdout(out)
            .process_group(0)
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::of(Pid::from_child(&child)).unwrap();
        let began = StartTime::now(&supervisor.clock);
        supervisor.watch(&identity, began, Some(outputs)).unwrap();
        child.wait().unwrap();
        let file = supervisor.folder.output(crate::job::folder::outputs::Stream::Out);
        let kept = std::fs::read_to_string(file).unwrap();
        let mut lines = kept.lines();
        assert!((1..=200_000).all(|number| lines.next() == Some(number.to_string().as_str())));
        assert_eq!(lines.next(), None);
    });
}
