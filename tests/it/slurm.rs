//! Jobs on a real Slurm: reservations that follow the plan, jobs that run once, and a cluster in all its moods.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod broken_promises;
mod changes_of_running;
mod checks;
mod dedicated;
mod held_nodes;
mod helper;
mod missing_nodes;
mod node_handover;
mod operator_view;
mod other_users;
mod packing;
mod pieces;
mod policy;
mod privilege;
mod recurring;
mod reservation_names;
mod restarts;
mod service;
mod staging;
mod successors;
mod takeover;
mod trials;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use domain::agreement::{JobEnd, Run, RunOutcome};
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::{BusyTime, NodeState, Unused};
use execution::slurm::{Account, Error, SlurmExecutor, SlurmPolicies, SlurmSettings, slurm_name_of_run};
use execution::{ExecutionError, Executor, JobSpec, JobStatus, PlannedSlot};
use jiff::tz::TimeZone;
use scheduler::Interval;
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::offers::{date_time, now};
use crate::support::poll_until;
use crate::support::slurm::{Cluster, NODES};

/// How long a test waits for an event that should come within a second or two, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_mins(3);

/// An executor on a cluster of its own, without a service.
struct Site {
    cluster: Cluster,
    data: TempDir,
    executor: SlurmExecutor,
}

impl Site {
    fn start() -> Self {
        Self::on(Cluster::start())
    }

    fn on(cluster: Cluster) -> Self {
        let data = tempfile::tempdir().unwrap();
        let executor = executor(&cluster, data.path());
        Self {
            cluster,
            data,
            executor,
        }
    }

    /// The first steps of a service that was killed and started again.
    fn restart(&mut self) {
        self.executor = executor(&self.cluster, self.data.path());
    }

    fn reservation(&self, slot: &PlannedSlot) -> Option<BTreeMap<String, String>> {
        self.cluster.reservation(&slurm_name_of_run("cluster", slot.run))
    }

    /// Reserves a node from now on and answers the job to run there: a script that may last `seconds` seconds.
    fn job(&self, script: &str, seconds: i64) -> JobSpec {
        let slot = slot(1, 0, seconds);
        self.executor.prepare(std::slice::from_ref(&slot)).unwrap();
        JobSpec {
            isolation: None,
            agreement: slot.run.agreement,
            party: slot.party,
            application: slot.application,
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into(), "a b".into(), "$HOME; *".into()],
            inputs: Vec::new(),
            staged: Vec::new(),
            nodes: 1,
            processors: Vec::new(),
            slot_end: slot.interval.end.seconds() * MICROS_PER_SECOND,
            output_limit: 20,
            limits: domain::catalogue::JobLimits::default(),
            piece: None,
            restarts: 0,
        }
    }

    /// How a job ended; asked again and again, even while the cluster gives no answer.
    fn end_of(&self, agreement: Uuid) -> JobEnd {
        let mut last = None;
        poll_until(PATIENCE, || {
            last = Some(self.executor.poll(Run::first(agreement)));
            matches!(last, Some(Ok(JobStatus::Ended(_))))
        });
        match last {
            Some(Ok(JobStatus::Ended(end))) => end,
            other => panic!("not over: {other:?}; Slurm has {:?}", self.cluster.jobs()),
        }
    }

    fn until_started(&self, agreement: Uuid) {
        let started = || {
            matches!(
                self.executor.poll(Run::first(agreement)),
                Ok(JobStatus::Running { started: Some(_) })
            )
        };
        assert!(
            poll_until(PATIENCE, started),
            "Slurm has {:?}",
            self.cluster.jobs()
        );
    }

    /// The folder of a job on the disk that the nodes share.
    fn shared_folder(&self, agreement: Uuid) -> std::path::PathBuf {
        self.cluster.folder().join("work").join(agreement.to_string())
    }

    fn output(&self, agreement: Uuid, name: &str) -> String {
        let folder = self.data.path().join("jobs").join(agreement.to_string());
        fs::read_to_string(folder.join(name)).unwrap()
    }
}

/// A program in place of one of Slurm's.
fn put_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn executor(cluster: &Cluster, data: &Path) -> SlurmExecutor {
    SlurmExecutor::new(settings(cluster), data).unwrap()
}

fn settings(cluster: &Cluster) -> SlurmSettings {
    let work_dir = cluster.folder().join("work");
    fs::create_dir_all(&work_dir).unwrap();
    SlurmSettings {
        resource: "cluster".into(),
        partition: "batch".into(),
        nodes: NODES.map(Into::into).into(),
        attributes: BTreeMap::new(),
        programs: None,
        configuration: Some(cluster.configuration()),
        work_dir,
        helper: None,
        account: Account {
            user: Cluster::user(),
            account: None,
        },
        parties: BTreeMap::new(),
        policies: SlurmPolicies::default(),
        patience: Duration::from_secs(40),
        turnaround: 5,
        dedicated: Vec::new(),
        lead: None,
        changes_a_minute: 6_000,
        reclaim_after: Some(4),
        reserve_at_once: false,
        time_zone: TimeZone::UTC,
    }
}

/// A slot that begins `delay` seconds from now.
fn slot(nodes: u32, delay: i64, seconds: i64) -> PlannedSlot {
    PlannedSlot {
        run: Run::first(Uuid::now_v7()),
        party: "physics".into(),
        nodes,
        interval: Interval::of(Clock::system().now() + delay, seconds),
        given: Vec::new(),
        begun: delay <= 0,
        is_awaited: false,
        replaces: None,
        has_job: true,
        application: "test".into(),
    }
}

#[test]
fn reservations_follow_the_plan_and_leave_others_alone() {
    let site = Site::start();
    let other = [
        "create",
        "reservation",
        "ReservationName=maintenance",
        "StartTime=now+3600",
        "Duration=60",
    ];
    let flags = ["Nodes=n2", "Users=root"];
    site.cluster.run("scontrol", &[&other[..], &flags].concat());
    // Over the time of the maintenance, and before it.
    let (mut long, mut short) = (slot(2, 1_800, 5_400), slot(2, 1_900, 600));
    site.executor.prepare(&[long.clone(), short.clone()]).unwrap();
    let held = site.reservation(&long).unwrap();
    assert_eq!(
        (held["Nodes"].as_str(), held["Users"].as_str()),
        ("n[1,3]", Cluster::user().as_str())
    );
    assert_eq!(site.reservation(&short).unwrap()["Nodes"], "n[2,4]");
    // Each takes the time and nodes of the other.
    std::mem::swap(&mut long.interval, &mut short.interval);
    site.executor.prepare(&[short.clone(), long.clone()]).unwrap();
    let held = site.reservation(&short).unwrap();
    assert_eq!(
        (held["Nodes"].as_str(), held["Duration"].as_str()),
        ("n[1,4]", "01:30:00"),
        "n4 is kept, n2 is not free for so long"
    );
    assert_eq!(site.reservation(&long).unwrap()["Duration"], "00:10:00");
    // Resized and moved; the other is over; a third one appears.
    long.nodes = 1;
    long.interval = Interval::of(long.interval.start + 7, 77);
    let third = slot(3, 7_300, 60);
    site.executor.prepare(&[long.clone(), third.clone()]).unwrap();
    let held = site.reservation(&long).unwrap();
    assert_eq!(
        (held["NodeCnt"].as_str(), held["Duration"].as_str()),
        ("1", "00:01:17")
    );
    assert_eq!(site.reservation(&short), None);
    assert_eq!(site.reservation(&third).unwrap()["NodeCnt"], "3");
    // A reservation in step is not touched; one that Slurm has lost comes back.
    site.cluster.run(
        "scontrol",
        &[
            "delete",
            &format!("ReservationName={}", slurm_name_of_run("cluster", third.run)),
        ],
    );
    site.executor.prepare(&[long.clone(), third.clone()]).unwrap();
    assert!(site.reservation(&third).is_some());
    // A reservation of that kind that this service has not made is another one's.
    let name = slurm_name_of_run("cluster", Run::first(Uuid::now_v7()));
    let named = format!("ReservationName={name}");
    site.cluster.run(
        "scontrol",
        &[
            "create",
            "reservation",
            &named,
            "StartTime=now+9000",
            "Duration=9",
            "Nodes=n1",
            "Users=root",
        ],
    );
    site.executor.prepare(&[]).unwrap();
    assert_eq!(site.reservation(&long), None);
    assert!(site.cluster.reservation(&name).is_some() && site.cluster.reservation("maintenance").is_some());
    // More than there are: the error says so, and the rest is held all the same.
    let (fits, too_many) = (slot(4, 7_300, 60), slot(1, 7_310, 60));
    let refused = site
        .executor
        .prepare(&[fits.clone(), too_many.clone()])
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains(&slurm_name_of_run("cluster", too_many.run)),
        "{refused}"
    );
    assert_eq!(site.reservation(&fits).unwrap()["NodeCnt"], "4");
}

#[test]
fn reservations_are_made_only_when_batch_jobs_could_reach_into_them() {
    let site = Site::on(Cluster::with_longest_job("30"));
    let (near, far) = (slot(1, 1_860, 600), slot(1, 3_600, 600));
    site.executor.prepare(&[near.clone(), far.clone()]).unwrap();
    assert!(site.reservation(&near).is_some());
    assert_eq!(site.reservation(&far), None, "no job reaches so far");
}

#[test]
fn others_use_and_the_state_of_nodes_are_read() {
    let site = Site::start();
    let ours = slot(1, 60, 600);
    site.executor.prepare(std::slice::from_ref(&ours)).unwrap();
    let report = site.executor.node_states().unwrap();
    assert_eq!(report.states, [NodeState::Up; 4]);
    assert_eq!(report.busy, [], "our own reservation is no other's");
    let from = now();
    let at = |seconds: i64| date_time(from + seconds).trim_end_matches('Z').to_owned();
    let other = [
        "ReservationName=other",
        &format!("StartTime={}", at(600)),
        &format!("EndTime={}", at(700)),
        "Nodes=n[2-3]",
        "Users=root",
    ];
    site.cluster
        .run("scontrol", &[&["create", "reservation"], &other[..]].concat());
    site.cluster.run(
        "scontrol",
        &["update", "nodename=n3", "state=drain", "reason=test"],
    );
    site.cluster.run(
        "scontrol",
        &["update", "nodename=n4", "state=down", "reason=test"],
    );
    let script = site.cluster.folder().join("script");
    fs::write(&script, "#!/bin/sh\nsleep 600\n").unwrap();
    site.cluster.run(
        "sbatch",
        &["-w", "n2", "-t", "5", "-o", "/dev/null", script.to_str().unwrap()],
    );
    let running = || site.cluster.jobs().iter().any(|[_, _, state]| state == "RUNNING");
    assert!(poll_until(PATIENCE, running), "{:?}", site.cluster.jobs());
    let report = site.executor.node_states().unwrap();
    let [up, drained, down] = [NodeState::Up, NodeState::Drained, NodeState::Down];
    assert_eq!(report.states, [up, up, drained, down]);
    let seconds = |busy: &BusyTime| (busy.node, busy.interval.end - busy.interval.start);
    let busy: Vec<_> = report.busy.iter().map(seconds).collect();
    assert_eq!(busy[..2], [(1, 165), (2, 165)]);
    assert!(
        busy[2].0 == 1 && (205..=305).contains(&busy[2].1),
        "the job until its limit: {busy:?}"
    );
}

#[test]
fn a_job_runs_once_in_its_reservation_with_its_arguments_and_leaves_its_outputs() {
    let mut site = Site::start();
    let input = site.data.path().join("input");
    fs::write(&input, "given").unwrap();
    let mut job = site.job(
        "grep -q given input || exit 4; echo \"$0|$1\"; echo left >result; ln -s /etc/passwd link; echo $BESPEAK_NODES $SLURM_JOB_RESERVATION >&2; exit 3",
        600,
    );
    job.inputs = vec![input];
    let id = job.agreement;
    assert_eq!(site.executor.poll(Run::first(id)).unwrap(), JobStatus::NotStarted);
    site.executor.start(&job).unwrap();
    site.executor.start(&job).unwrap();
    let end = site.end_of(id);
    assert_eq!(end.outcome, RunOutcome::Failed { exit: 3 });
    assert!(
        end.started.unwrap() <= end.ended && end.ended < job.slot_end,
        "{end:?}"
    );
    assert_eq!(site.output(id, "stdout"), "a b|$HOME; *\n");
    assert_eq!(
        site.output(id, "stderr"),
        format!("1 {}", slurm_name_of_run("cluster", Run::first(id)))[..20]
    );
    assert!(end.truncated && end.output_bytes == 33, "{end:?}");
    assert!(
        end.transfer_in > 0 && end.transfer_out > 0,
        "both were copied: {end:?}"
    );
    assert_eq!(site.output(id, "work/result"), "left\n");
    assert!(!site.data.path().join(format!("jobs/{id}/work/link")).exists());
    site.restart();
    site.executor.start(&job).unwrap();
    assert_eq!(site.executor.poll(Run::first(id)).unwrap(), JobStatus::Ended(end));
    assert_eq!(site.cluster.jobs().len(), 1, "{:?}", site.cluster.jobs());
    // Over, though a user goes on in it: it is given back with the processes there.
    site.executor.prepare(&[]).unwrap();
    assert_eq!(
        site.cluster
            .reservation(&slurm_name_of_run("cluster", Run::first(id))),
        None
    );
}

#[test]
fn a_job_ends_with_its_slot_when_it_is_stopped_and_with_its_node() {
    let mut site = Site::start();
    let overrun = site.job("touch ready; sleep 6000", 600);
    site.executor.start(&overrun).unwrap();
    let shared = site.shared_folder(overrun.agreement);
    assert!(poll_until(PATIENCE, || shared.join("work/ready").exists()));
    let until = Clock::system().micros();
    site.executor.keep_until(overrun.run(), until).unwrap();
    let end = site.end_of(overrun.agreement);
    assert_eq!(end.outcome, RunOutcome::Killed);
    assert!(end.ended >= until, "{end:?}");
    let ended = fs::read_to_string(shared.join("ended")).unwrap();
    assert!(ended.starts_with("124 "), "its script has stopped it: {ended}");

    let stopped = site.job("sleep 6000", 600);
    site.executor.start(&stopped).unwrap();
    site.until_started(stopped.agreement);
    site.executor.stop(stopped.run()).unwrap();
    assert_eq!(site.end_of(stopped.agreement).outcome, RunOutcome::Terminated);

    let lost = site.job("sleep 6000", 600);
    site.executor.start(&lost).unwrap();
    site.until_started(lost.agreement);
    let node = site
        .cluster
        .reservation(&slurm_name_of_run("cluster", Run::first(lost.agreement)))
        .unwrap()["Nodes"]
        .clone();
    site.cluster
        .cut_power(NODES.into_iter().find(|name| *name == node).unwrap());
    let nodename = format!("nodename={node}");
    site.cluster
        .run("scontrol", &["update", &nodename, "state=down", "reason=test"]);
    assert_eq!(site.end_of(lost.agreement).outcome, RunOutcome::Lost);
}

#[test]
fn a_controller_that_crashes_around_a_submission_has_nothing_run_twice() {
    // Forgotten before it has begun, and after: the job runs on as an orphan. A controller that finds an orphan kills it: then its
    // end is known only some time after its slot. It kills by the number, and so may hit a later job: each case has its own cluster.
    for wait_until_it_runs in [false, true] {
        let mut site = Site::start();
        let runs = site.cluster.folder().join("runs");
        fs::create_dir(&runs).unwrap();
        fs::set_permissions(&runs, Permissions::from_mode(0o777)).unwrap();
        let mark = format!("mktemp {}/XXXXXX; sleep 5", runs.display());
        let job = site.job(&mark, 60);
        // So that the reservation is written down, which Slurm does a few seconds later.
        let saved = || fs::metadata(site.cluster.folder().join("state/resv_state")).is_ok();
        assert!(poll_until(PATIENCE, saved));
        site.executor.start(&job).unwrap();
        if wait_until_it_runs {
            site.until_started(job.agreement);
        }
        site.cluster.kill_controller();
        let down = poll_until(PATIENCE, || match site.executor.poll(job.run()) {
            Err(ExecutionError::Slurm(Error::Down(_) | Error::Slow { .. })) | Ok(JobStatus::Ended(_)) => true,
            Ok(_) => false,
            Err(other) => panic!("{other}"),
        });
        assert!(down);
        site.cluster.start_controller();
        // Another one's job gets the number of the forgotten one.
        let script = site.cluster.folder().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let other = ["-w", "n4", "-t", "1", "-o", "/dev/null", script.to_str().unwrap()];
        assert!(poll_until(PATIENCE, || site
            .cluster
            .try_run("sbatch", &other)
            .status
            .success()));
        site.restart();
        let slot = PlannedSlot {
            run: Run::first(job.agreement),
            party: job.party.clone(),
            nodes: 1,
            interval: Interval::of(Clock::system().now(), 60),
            given: Vec::new(),
            begun: true,
            replaces: None,
            is_awaited: false,
            has_job: true,
            application: "test".into(),
        };
        poll_until(PATIENCE, || {
            site.executor.prepare(std::slice::from_ref(&slot)).is_ok()
        });
        let end = site.end_of(job.agreement);
        let ran = fs::read_dir(&runs).unwrap().count();
        assert!(
            ran == 1 && end.outcome == RunOutcome::Completed || ran <= 1 && end.outcome == RunOutcome::Lost,
            "{ran} runs, {end:?}"
        );
    }
}

#[test]
fn a_reservation_that_nobody_uses_is_reclaimed_after_a_warning_and_one_with_a_job_is_kept() {
    let site = Site::start();
    let slot_of = |seconds| PlannedSlot {
        is_awaited: false,
        has_job: false,
        ..slot(1, 0, seconds)
    };
    let (idle, mut used) = (slot_of(600), slot_of(700));
    used.given = vec![2];
    let slots = [idle.clone(), used.clone()];
    site.executor.prepare(&slots).unwrap();
    assert_eq!(
        site.reservation(&used).unwrap()["Nodes"],
        "n3",
        "the nodes that the plan has given it"
    );
    assert_eq!(site.executor.unused(), []);
    let script = site.cluster.folder().join("script");
    fs::write(&script, "#!/bin/sh\nsleep 600\n").unwrap();
    let reservation = format!("--reservation={}", slurm_name_of_run("cluster", used.run));
    let user = format!("--uid={}", Cluster::user());
    let mut arguments = vec![
        &*reservation,
        "-o/dev/null",
        "--chdir=/",
        script.to_str().unwrap(),
    ];
    if rustix::process::geteuid().is_root() {
        arguments.insert(0, &user);
    }
    site.cluster.run("sbatch", &arguments);
    for expected in [Unused::Warn, Unused::Reclaim] {
        let mut told = Vec::new();
        poll_until(PATIENCE, || {
            site.executor.prepare(&slots).unwrap();
            told = site.executor.unused();
            !told.is_empty()
        });
        assert_eq!(told, [(idle.run.agreement, expected)]);
    }
}
