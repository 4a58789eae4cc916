//! Bounds that the system holds, whatever a job does and whether or not its supervisor looks: of processes, processors and shared memory.

use domain::agreement::Limit;
use domain::catalogue::Isolation;

use super::isolation::{isolated, with_words};
use super::*;

/// A control group for a test, with room for so many processes; none where this user may make none.
struct Cage(PathBuf);

impl Cage {
    fn with_room_for(processes: u32) -> Option<Self> {
        let name = format!("bespeak-test-{}", Uuid::now_v7());
        // Of version 1, else of version 2.
        let made = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
            .into_iter()
            .find_map(|all| {
                let cage = Self(Path::new(all).join(&name));
                fs::create_dir(&cage.0).ok()?;
                fs::write(cage.0.join("pids.max"), processes.to_string()).ok()?;
                Some(cage)
            });
        if made.is_none() {
            eprintln!("no control group can be made: what is started is bounded by its own code alone");
        }
        made
    }

    /// A shell's words by which a process enters it.
    fn enter(one_cage: Option<&Self>) -> String {
        one_cage.map_or_else(String::new, |each| {
            format!("echo 0 > {}/cgroup.procs || exit 9", each.0.display())
        })
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        // Its last process may be about to end.
        let asked = Instant::now();
        while fs::remove_dir(&self.0).is_err() && asked.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// An executor of which supervisors, with their jobs, run after these words of a shell, behind another program.
fn executor_after(place: &TestFolder, words: &str, behind: &str) -> LocalExecutor {
    let program = place.path("within");
    let own = env!("CARGO_BIN_EXE_bespeak");
    let text = format!("#!/bin/sh\n{words}\nexec {behind} {own} \"$@\"\n");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    place.executor_with(&program)
}

/// The words behind which a program runs as a user other than root; no words where this user is one. None where no other user reaches the
/// executable.
fn behind_another_user() -> Option<&'static str> {
    const OTHER: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    if !rustix::process::geteuid().is_root() {
        return Some("");
    }
    let reaches = format!("{OTHER} test -x {}", env!("CARGO_BIN_EXE_bespeak"));
    let tried = Command::new("sh").args(["-c", &reaches]).status().unwrap();
    tried.success().then_some(OTHER)
}

/// A shell's words that give the folder to the user of programs behind these words.
fn give_away(place: &TestFolder, behind: &str) -> String {
    if behind.is_empty() {
        return String::new();
    }
    format!("chown -R 65534:65534 {} || exit 9", place.folder.path().display())
}

#[test]
fn a_fork_bomb_is_ended_by_its_limit_and_two_processes_of_the_isolation_do_not_count() {
    let place = TestFolder::new();
    let limits = JobLimits {
        processes: Some(40),
        ..JobLimits::default()
    };
    let words = format!("1000.{}", Uuid::now_v7().as_u128() % 1_000_000_007);
    // It doubles eight times, and its supervisor and all of it are in a control group: a machine on which it went on without end would
    // stand still for minutes.
    let text = format!("exec env -i setsid perl -e 'fork for 1 .. 8; sleep {words}'");
    let bomb = JobSpec {
        limits,
        ..isolated(&text, 600)
    };
    let cage = Cage::with_room_for(600);
    let executor = executor_after(&place, &Cage::enter(cage.as_ref()), "");
    executor.start(&bomb).unwrap();
    let end = end(&executor, &bomb);
    let limit = Limit::Processes;
    assert_eq!(end.outcome, RunOutcome::Exceeded { limit });
    assert_eq!(with_words(&words), [""; 0]);
    // Here the supervisor counts, whatever this machine has: there is no service whose control group could be divided.
    let one = JobLimits {
        processes: Some(1),
        ..JobLimits::default()
    };
    let modest = JobSpec {
        limits: one,
        program: "/bin/sleep".into(),
        arguments: vec!["1".into()],
        ..isolated("", 600)
    };
    assert_eq!(run(&place, &modest).outcome, RunOutcome::Completed);
}

/// Starts up to 200 processes until the system refuses one, and says how many it could.
const START_MANY: &str = "while [ ! -e go ]; do sleep 0.05; done; exec perl -e 'my $n = 0; while ($n < 200) { my $p = fork; last unless defined $p; \
    if (!$p) { sleep 1000; exit } $n++ } open my $o, \">\", \"draft\"; print $o $n; close $o; rename \"draft\", \"started\"; sleep 1000'";

/// Runs a job that starts many processes while its supervisor stands still, as it may on a machine without a free processor. Returns how many
/// it could start, and how it ended once the supervisor went on.
fn start_many_unwatched(place: &TestFolder, executor: &LocalExecutor) -> (u64, RunOutcome) {
    let limits = JobLimits {
        processes: Some(40),
        ..JobLimits::default()
    };
    let job = JobSpec {
        limits,
        ..isolated(START_MANY, 600)
    };
    executor.start(&job).unwrap();
    wait_for("start", || {
        executor.poll(job.run()).unwrap();
        fs::read_to_string(place.record(&job, "isolation"))
            .ok()
            .filter(|text| text.contains("child-pid"))
    });
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    kill_process(supervisor, Signal::STOP).unwrap();
    fs::write(place.record(&job, "work/go"), "").unwrap();
    let started = wait_for("its word", || {
        fs::read_to_string(place.record(&job, "work/started")).ok()
    });
    kill_process(supervisor, Signal::CONT).unwrap();
    (started.parse().unwrap(), end(executor, &job).outcome)
}

#[test]
fn the_system_refuses_processes_beyond_its_limit_also_while_nobody_watches() {
    let cage = Cage::with_room_for(400);
    let words = Cage::enter(cage.as_ref());
    let limit = Limit::Processes;
    let is_root = rustix::process::geteuid().is_root();
    let mut ways = Vec::new();
    // As root a control group holds it.
    if cage.is_some() || !is_root {
        ways.push((TestFolder::new(), String::new()));
    }
    // As a user of its own, which may make no control group, the limit is that of the job's user namespace.
    if let Some(other) = behind_another_user().filter(|_| is_root) {
        ways.push((TestFolder::new(), other.to_owned()));
    }
    for (place, behind) in ways {
        let words = format!("{words}\n{}", give_away(&place, &behind));
        let (started, outcome) = start_many_unwatched(&place, &executor_after(&place, &words, &behind));
        assert!(
            started <= 41,
            "{behind}: {started} processes were started, and it may have 40"
        );
        assert_eq!(outcome, RunOutcome::Exceeded { limit }, "{behind}");
    }
}

#[test]
fn a_job_has_a_lower_priority_than_its_supervisor() {
    let place = TestFolder::new();
    for isolation in [None, Some(Isolation::default())] {
        // The nineteenth field, and the seventeenth after the name.
        let job = JobSpec {
            isolation,
            ..script("sed 's/.*) //' /proc/self/stat | cut -d' ' -f17", 600)
        };
        run(&place, &job);
        let own = rustix::process::getpriority_process(None).unwrap();
        let expected = (own + 10).min(19).to_string();
        assert_eq!(place.output(&job, Stream::Out).trim(), expected);
    }
}

#[test]
fn it_runs_on_the_processors_of_its_nodes_and_cannot_choose_others() {
    let place = TestFolder::new();
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let list = |text: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    let first = list(&own).split([',', '-']).next().unwrap().to_owned();
    let text = format!(
        "cat /proc/self/status; taskset -p -c {} $$ > /dev/null 2>&1 || echo refused",
        list(&own)
    );
    let bound = JobSpec {
        processors: vec![first.parse().unwrap()],
        ..isolated(&text, 600)
    };
    assert_eq!(run(&place, &bound).outcome, RunOutcome::Completed);
    let said = place.output(&bound, Stream::Out);
    assert_eq!(list(&said), first);
    assert!(said.ends_with("refused\n"), "{said}");
    let free = isolated(&text, 600);
    assert_eq!(run(&place, &free).outcome, RunOutcome::Completed);
    let said = place.output(&free, Stream::Out);
    assert!(list(&said) == list(&own) && !said.contains("refused"), "{said}");
}

#[test]
fn shared_memory_that_stays_when_nothing_maps_it_is_refused_where_no_control_group_holds_it() {
    let place = TestFolder::new();
    let number = if cfg!(target_arch = "x86_64") { 29 } else { 194 };
    let text = format!("perl -e 'syscall({number}, 0, 1 << 20, 0600) < 0 or exit; print $! + 0'");
    let job = isolated(&text, 600);
    run(&place, &job);
    // A machine whose jobs have control groups of version 2 counts it there.
    if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        let denied = rustix::io::Errno::PERM.raw_os_error().to_string();
        assert_eq!(place.output(&job, Stream::Out), denied);
    }
}

#[test]
fn what_it_has_in_its_shared_memory_counts_as_memory() {
    let place = TestFolder::new();
    let limits = JobLimits {
        memory: Some(64 << 20),
        ..JobLimits::default()
    };
    // As much as fits there, and as much again in its processes.
    let text =
        "head -c 50000000 /dev/zero > /dev/shm/one; head -c 30000000 /dev/zero | tail | sleep 30; exit 7";
    let job = JobSpec {
        limits,
        ..isolated(text, 600)
    };
    let limit = Limit::Memory;
    assert_eq!(run(&place, &job).outcome, RunOutcome::Exceeded { limit });
}

#[test]
fn a_program_that_may_not_be_read_hides_no_files_from_a_service_that_is_not_root() {
    let Some(behind) = behind_another_user() else {
        eprintln!("NOT TESTED: no user other than root reaches the executable");
        return;
    };
    let place = TestFolder::new();
    let executor = executor_after(&place, &give_away(&place, behind), behind);
    let ends_as = |job: &JobSpec| {
        executor.start(job).unwrap();
        end(&executor, job).outcome
    };
    let hide =
        "exec 3> gone; rm gone; head -c 4000000 /dev/zero >&3; cp /bin/sleep own; chmod 111 own; exec ./own";
    let files = JobLimits {
        files: Some(1 << 30),
        ..JobLimits::default()
    };
    let memory = JobLimits {
        memory: Some(1 << 30),
        ..JobLimits::default()
    };
    for (limits, limit) in [(files, Limit::Files), (memory, Limit::Memory)] {
        let job = JobSpec {
            limits,
            ..isolated(&format!("{hide} 1000"), 600)
        };
        assert_eq!(ends_as(&job), RunOutcome::Exceeded { limit });
        let told = place.output(&job, Stream::Err);
        assert!(told.contains("a program that may not be read"), "{told}");
    }
    // Nothing is counted where nothing is limited, and a provider may keep a program of an application from being read.
    let free = isolated(&format!("{hide} 1"), 600);
    assert_eq!(ends_as(&free), RunOutcome::Completed);
    let program = place.path("closed");
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o111)).unwrap();
    let closed = JobSpec {
        limits: files.or(memory),
        program,
        arguments: vec!["1".into()],
        ..isolated("", 600)
    };
    assert_eq!(ends_as(&closed), RunOutcome::Completed);
}
