//! Others on a cluster: its users, with records of jobs that they own and names of jobs that they choose, and another resource of
//! the same cluster.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use domain::agreement::{Run, RunOutcome};
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::Unused;
use execution::files::job_folders::JobFolders;
use execution::slurm::{SlurmExecutor, SlurmSettings, slurm_name_of_run};
use execution::{Executor, JobStatus, PlannedSlot};
use rustix::process::geteuid;
use uuid::Uuid;

use super::{PATIENCE, Site, settings, slot};
use crate::support::poll_until;
use crate::support::slurm::Cluster;

/// How long nothing wrong happens before it is believed that nothing does: many rounds.
const MANY_ROUNDS: Duration = Duration::from_secs(3);
/// Seconds after which an unused reservation is reclaimed: more than a slow machine takes for some calls.
const RECLAIM_AFTER: i64 = 8;

/// Submits a batch job as one of the cluster's users, and not as root where the cluster has another user.
fn submit(cluster: &Cluster, arguments: &[&str], script: &str) -> String {
    let file = cluster.folder().join(format!("script-{}", Uuid::now_v7()));
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    let user = format!("--uid={}", Cluster::user());
    let mut all = vec!["--parsable", "-o/dev/null", "--chdir=/"];
    if geteuid().is_root() {
        all.push(&user);
    }
    all.extend(arguments);
    all.push(file.to_str().unwrap());
    cluster.run("sbatch", &all)
}

#[test]
fn a_job_that_waits_behind_another_of_its_user_in_its_own_reservation_is_not_lost() {
    let site = Site::start();
    let job = site.job("sleep 600", 600);
    let reservation = format!(
        "--reservation={}",
        slurm_name_of_run("cluster", Run::first(job.agreement))
    );
    let nodes = format!("-N{}", job.nodes);
    let own = ["-Jown", "--exclusive", "-t1", &nodes, &reservation];
    submit(&site.cluster, &own, "sleep 600");
    assert!(
        poll_until(PATIENCE, || site
            .cluster
            .jobs()
            .iter()
            .any(|[_, name, state]| name == "own" && state == "RUNNING")),
        "the other has the nodes"
    );
    site.executor.start(&job).unwrap();
    let until = Clock::system().micros();
    site.executor.keep_until(job.run(), until).unwrap();
    let end = site.end_of(job.agreement);
    assert_eq!(
        (end.outcome, end.started),
        (RunOutcome::Terminated, None),
        "{end:?}"
    );
}

#[test]
fn a_job_whose_user_takes_away_its_claim_and_its_end_has_run_all_the_same() {
    let site = Site::start();
    let job = site.job("sleep 4; rmdir ../claim; mkdir ../.ended; chmod 500 ..", 600);
    site.executor.start(&job).unwrap();
    let end = site.end_of(job.agreement);
    assert_eq!(end.outcome, RunOutcome::Completed, "{end:?}");
}

#[test]
fn a_job_whose_user_forges_its_end_runs_on_until_slurm_says_that_it_has_ended() {
    let site = Site::start();
    let stop = site.cluster.folder().join("stop");
    // It takes away the record of its start, and says that it has long ended, with success.
    let job = site.job(
        &format!(
            "rm ../started; echo '0 1' >../ended; while [ ! -e {} ]; do sleep 0.2; done; exit 3",
            stop.display()
        ),
        600,
    );
    let id = job.agreement;
    let submitted = Clock::system().micros();
    site.executor.start(&job).unwrap();
    let forged = site.shared_folder(id).join("ended");
    assert!(
        poll_until(PATIENCE, || forged.exists()),
        "{:?}",
        site.cluster.jobs()
    );
    let mut started = None;
    let since = Instant::now();
    poll_until(PATIENCE, || {
        match site.executor.poll(Run::first(id)).unwrap() {
            JobStatus::Running { started: Some(at) } => started = Some(at),
            JobStatus::Running { started: None } => {}
            other => panic!("a forged end is believed: {other:?}"),
        }
        started.is_some() && since.elapsed() > MANY_ROUNDS
    });
    let started = started.expect("Slurm knows that it has started");
    assert!(
        started >= submitted - MICROS_PER_SECOND && started <= Clock::system().micros(),
        "{started}"
    );
    fs::write(&stop, "").unwrap();
    let end = site.end_of(id);
    // Its script says at last how it really ended.
    assert_eq!(end.outcome, RunOutcome::Failed { exit: 3 });
    assert!(end.ended > started && end.started == Some(started), "{end:?}");
}

#[test]
fn a_program_that_slurm_ends_is_cancelled_though_its_end_was_recorded_as_its_own() {
    let mut site = Site::start();
    // As a script writes it that sees its program's end before it is told of the cancellation itself.
    let job = site.job(
        "trap '' TERM; echo \"143 $(date +%s%6N)\" >../ended; while :; do sleep 1; done",
        600,
    );
    let id = job.agreement;
    site.executor.start(&job).unwrap();
    site.until_started(id);
    let recorded = site.shared_folder(id).join("ended");
    assert!(poll_until(PATIENCE, || recorded.exists()));
    site.cluster.run(
        "scancel",
        &["--name", &slurm_name_of_run("cluster", Run::first(id))],
    );
    // Slurm calls it completing until it has killed it, and each executor asks Slurm anew.
    let mut end = None;
    poll_until(PATIENCE, || {
        site.restart();
        match site.executor.poll(Run::first(id)).unwrap() {
            JobStatus::Ended(ended) => end = Some(ended),
            JobStatus::Running { .. } => {}
            JobStatus::NotStarted => panic!("it had begun"),
        }
        end.is_some()
    });
    let end = end.expect("Slurm ends it");
    assert_eq!(end.outcome, RunOutcome::Terminated);
}

#[test]
fn a_record_tells_the_end_where_slurm_cannot_be_asked_and_nothing_where_its_disk_is_away() {
    let mut site = Site::start();
    let stop = site.cluster.folder().join("stop");
    let script = format!("while [ ! -e {} ]; do sleep 0.2; done; exit 3", stop.display());
    let job = site.job(&script, 600);
    let id = job.agreement;
    site.executor.start(&job).unwrap();
    site.until_started(id);
    assert_eq!(
        site.executor.recorded_job_end(Run::first(id)).unwrap(),
        None,
        "it runs"
    );
    site.cluster.kill_controller();
    let (shared, away) = (site.shared_folder(id), site.cluster.folder().join("away"));
    fs::rename(&shared, &away).unwrap();
    let unread = site.executor.recorded_job_end(Run::first(id));
    assert!(unread.is_err(), "{unread:?}");
    fs::rename(&away, &shared).unwrap();
    fs::write(&stop, "").unwrap();
    let mut end = None;
    poll_until(PATIENCE, || {
        end = site.executor.recorded_job_end(Run::first(id)).unwrap();
        end.is_some()
    });
    assert_eq!(end.expect("it has ended").outcome, RunOutcome::Failed { exit: 3 });
}

#[test]
fn a_late_start_that_a_user_forges_is_cut_to_what_slurm_leaves_room_for() {
    let site = Site::start();
    let job = site.job("rm ../started; sleep 6; date +%s%6N >../started; sleep 1", 600);
    site.executor.start(&job).unwrap();
    let end = site.end_of(job.agreement);
    assert_eq!(end.outcome, RunOutcome::Completed);
    let started = end.started.expect("it ran");
    assert!(
        end.ended - started > 3 * MICROS_PER_SECOND,
        "it has run for seven seconds: {end:?}"
    );
}

#[test]
fn names_of_jobs_with_line_breaks_and_separators_are_not_taken_for_other_jobs() {
    let site = Site::start();
    let job = site.job("sleep 6000", 600);
    site.executor.start(&job).unwrap();
    site.until_started(job.agreement);
    let own = slurm_name_of_run("cluster", Run::first(job.agreement));
    // Each would read as a line of its own: our job, ended; a node that is others' for ever.
    let names = [
        format!("a\n1|COMPLETED|(null)|n1|1|2|0|{own}"),
        "b|c\n9|RUNNING|(null)|n[1-4]|1|N/A|0|x".to_owned(),
        "\n\n|".to_owned(),
        // The name of a job of ours that is none.
        slurm_name_of_run("cluster", Run::first(Uuid::now_v7())),
    ];
    for name in &names {
        submit(
            &site.cluster,
            &["-t5", "-n1", "-wn4", &format!("--job-name={name}")],
            "sleep 6000",
        );
    }
    let running = || site.cluster.run("squeue", &["-h", "-t", "running", "-o", "%i"]);
    assert!(
        poll_until(PATIENCE, || running().lines().count() == 1 + names.len()),
        "{}",
        running()
    );
    let since = Instant::now();
    while since.elapsed() < MANY_ROUNDS {
        let status = site.executor.poll(job.run()).unwrap();
        assert!(matches!(status, JobStatus::Running { .. }), "{status:?}");
    }
    let busy = || -> Vec<u32> {
        let report = site.executor.node_states().unwrap();
        report.busy.iter().map(|busy| busy.node).collect()
    };
    assert!(
        // The last of them may not have run yet when the cluster was looked at.
        poll_until(PATIENCE, || busy() == [3; 4]),
        "the node that others' jobs have, and no other: {:?}",
        busy()
    );
    // Nor does an administrator's text about a node.
    let reason = "reason=two\nlines | n9|idle|0/0/0/0|x";
    site.cluster
        .run("scontrol", &["update", "nodename=n2", "state=drain", reason]);
    let report = site.executor.node_states().unwrap();
    assert_eq!(report.reasons.get(&1).map(String::as_str), Some("two"));
}

#[test]
fn an_agreement_that_moves_between_two_resources_of_one_cluster_keeps_its_reservation() {
    let site = Site::start();
    for (partition, nodes) in [("left", "n[1-2]"), ("right", "n[3-4]")] {
        let named = format!("PartitionName={partition}");
        let nodes = format!("Nodes={nodes}");
        site.cluster
            .run("scontrol", &["create", &named, &nodes, "MaxTime=INFINITE"]);
    }
    let settings_of = |partition: &str, nodes: [&str; 2]| {
        let settings = SlurmSettings {
            resource: partition.into(),
            partition: partition.into(),
            nodes: nodes.map(Into::into).into(),
            ..settings(&site.cluster)
        };
        SlurmExecutor::new(settings, site.data.path()).unwrap()
    };
    let (left, right) = (
        settings_of("left", ["n1", "n2"]),
        settings_of("right", ["n3", "n4"]),
    );
    let slot = slot(2, 600, 600);
    let plan = std::slice::from_ref(&slot);
    let held = |partition: &str| {
        let row = site
            .cluster
            .reservation(&slurm_name_of_run(partition, slot.run))?;
        Some(row["Nodes"].clone())
    };
    left.prepare(plan).unwrap();
    right.prepare(&[]).unwrap();
    assert_eq!((held("left").as_deref(), held("right")), (Some("n[1-2]"), None));
    // It moves: whichever looks first, there is never a time without one.
    right.prepare(plan).unwrap();
    assert_eq!(held("right").as_deref(), Some("n[3-4]"));
    left.prepare(&[]).unwrap();
    assert_eq!((held("left"), held("right").as_deref()), (None, Some("n[3-4]")));
    // And back, the other one first.
    left.prepare(plan).unwrap();
    right.prepare(&[]).unwrap();
    assert_eq!((held("left").as_deref(), held("right")), (Some("n[1-2]"), None));
}

#[test]
fn time_in_which_slurm_is_down_is_not_held_against_who_could_not_submit() {
    let mut site = Site::start();
    let settings = SlurmSettings {
        dedicated: Vec::new(),
        lead: None,
        changes_a_minute: 6_000,
        reclaim_after: Some(RECLAIM_AFTER),
        ..settings(&site.cluster)
    };
    site.executor = SlurmExecutor::new(settings, site.data.path()).unwrap();
    let idle = PlannedSlot {
        has_job: false,
        ..slot(1, 0, 600)
    };
    let plan = std::slice::from_ref(&idle);
    assert!(poll_until(PATIENCE, || site.executor.prepare(plan).is_ok()));
    let saved = || fs::metadata(site.cluster.folder().join("state/resv_state")).is_ok();
    assert!(poll_until(PATIENCE, saved));
    site.executor.prepare(plan).unwrap();
    let before = site.executor.unused();
    assert!(
        !before.contains(&(idle.run.agreement, Unused::Reclaim)),
        "too slow a machine: {before:?}"
    );
    site.cluster.kill_controller();
    let down = Instant::now();
    poll_until(PATIENCE, || {
        let failed = site.executor.prepare(plan).is_err();
        failed && down.elapsed() > Duration::from_secs(RECLAIM_AFTER.cast_unsigned())
    });
    site.cluster.start_controller();
    assert!(poll_until(PATIENCE, || site.executor.prepare(plan).is_ok()));
    // Longer than after which it is reclaimed, and none of it counts.
    let after = site.executor.unused();
    assert!(
        !after.contains(&(idle.run.agreement, Unused::Reclaim)),
        "{after:?}"
    );
    // From now on it does.
    let reclaimed = || {
        site.executor.prepare(plan).unwrap();
        site.executor
            .unused()
            .contains(&(idle.run.agreement, Unused::Reclaim))
    };
    assert!(poll_until(PATIENCE, reclaimed));
}

#[test]
fn the_folder_that_a_job_has_on_the_clusters_disk_goes_with_its_own_and_nothing_else_does() {
    let site = Site::start();
    let kept = site.cluster.folder().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "others'").unwrap();
    symlink(&kept, site.cluster.folder().join("way")).unwrap();
    let way = site.cluster.folder().join("way");
    let job = site.job(
        &format!(
            "mkdir -p deep/er; ln -s {} deep/er/link; chmod 0 deep",
            way.display()
        ),
        600,
    );
    site.executor.start(&job).unwrap();
    assert_eq!(site.end_of(job.agreement).outcome, RunOutcome::Completed);
    let shared = site.shared_folder(job.agreement);
    assert!(shared.join("work").exists());
    let folders = JobFolders::new(site.data.path(), None).unwrap();
    assert!(folders.remove(job.agreement).unwrap());
    assert!(!shared.exists() && kept.join("file").exists());
    assert!(!folders.remove(job.agreement).unwrap(), "it is gone");
}
