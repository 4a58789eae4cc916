//! Work that is lost on a cluster and is run again there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use domain::agreement::{Run, RunOutcome};
use domain::catalogue::CheckpointSignal;
use domain::clock::MICROS_PER_SECOND;
use execution::slurm::slurm_name_of_run;
use execution::{Executor, JobSpec, JobStatus};

use super::pieces::{LONG, end_of, piece, prepare};
use super::service::{SOON, reserved, serve_with, until};
use super::{PATIENCE, Site};
use crate::support::offers::{Offer, now};
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, poll_until, run};

#[test]
fn a_job_that_runs_on_makes_way_for_the_next_one_before_that_starts() {
    let site = Site::start();
    let job = site.job("echo begun; sleep 600", 600);
    site.executor.start(&job).unwrap();
    site.until_started(job.agreement);
    // Its script has started then, and its program a little later.
    let written = site.shared_folder(job.agreement).join("stdout");
    let begun = || fs::read_to_string(&written).is_ok_and(|text| text == "begun\n");
    assert!(poll_until(PATIENCE, begun), "it says so");
    assert!(
        site.executor.end_earlier_attempts(job.run()).unwrap(),
        "it is itself"
    );
    let alive = || site.cluster.jobs().iter().any(|[_, _, state]| state == "RUNNING");
    // Its nodes were lost, as far as the plan knows, and it runs on.
    let cleared = || {
        let cleared = site
            .executor
            .end_earlier_attempts(Run {
                attempt: 1,
                ..job.run()
            })
            .unwrap_or(false);
        assert!(!cleared || !alive(), "nothing runs of it");
        cleared
    };
    assert!(
        poll_until(PATIENCE, cleared),
        "Slurm has {:?}",
        site.cluster.jobs()
    );
    assert_eq!(site.executor.poll(job.run()).unwrap(), JobStatus::NotStarted);
    let again = JobSpec {
        arguments: vec!["-c".into(), "ls; echo again".into()],
        restarts: 1,
        output_limit: 1_000,
        slot_end: job.slot_end + MICROS_PER_SECOND,
        ..job.clone()
    };
    let slot = execution::PlannedSlot {
        run: again.run(),
        ..super::slot(1, 0, 600)
    };
    assert!(poll_until(PATIENCE, || site
        .executor
        .prepare(std::slice::from_ref(&slot))
        .is_ok()));
    site.executor.start(&again).unwrap();
    assert_eq!(site.end_of(again.agreement).outcome, RunOutcome::Completed);
    assert_eq!(
        site.output(again.agreement, "stdout"),
        "again\n",
        "in a folder of its own"
    );
    let before = site.data.path().join(format!("jobs/{}.0/stdout", job.agreement));
    assert_eq!(fs::read_to_string(before).unwrap(), "begun\n");
    let own = slurm_name_of_run("cluster", Run::first(job.agreement));
    let names: Vec<String> = site.cluster.jobs().into_iter().map(|[_, name, _]| name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.contains(&own) && names.contains(&format!("{own}.1.1")),
        "{names:?}"
    );
}

#[test]
fn a_later_piece_that_is_lost_is_run_again_in_the_folder_of_all_pieces() {
    let site = Site::start();
    let first = piece(
        &site,
        None,
        "echo one >log",
        CheckpointSignal::Usr1,
        (LONG - 3, LONG),
    );
    site.executor.start(&first).unwrap();
    assert_eq!(end_of(&site, &first).0, RunOutcome::Completed);
    let script = "echo two >>log; cat log; [ $(wc -l <log) -gt 2 ] || sleep 600";
    let second = piece(
        &site,
        Some(&first),
        script,
        CheckpointSignal::Usr1,
        (LONG - 3, LONG),
    );
    site.executor.start(&second).unwrap();
    let log = site.shared_folder(first.agreement).join("work/log");
    let lines = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let stdout = site.shared_folder(first.agreement).join("stdout");
    let written = || fs::read_to_string(&stdout).is_ok_and(|text| text == "one\ntwo\n");
    assert!(poll_until(PATIENCE, written), "it has written the earlier lines");
    assert_eq!(lines(), 2);
    let held = format!("{}.2", slurm_name_of_run("cluster", Run::first(first.agreement)));
    let nodename = format!("nodename={}", site.cluster.reservation(&held).unwrap()["Nodes"]);
    // Slurm says so also of a node that it does not reach, where all goes on.
    site.cluster
        .run("scontrol", &["update", &nodename, "state=down", "reason=test"]);
    assert_eq!(end_of(&site, &second).0, RunOutcome::Lost);
    let lost = Instant::now();
    let cleared = || {
        site.executor
            .end_earlier_attempts(Run {
                attempt: 1,
                ..second.run()
            })
            .unwrap_or(false)
    };
    assert!(poll_until(PATIENCE, cleared));
    let ended = format!("{}.2/ended", site.shared_folder(first.agreement).display());
    assert!(
        lost.elapsed() >= Duration::from_secs(10) || fs::exists(ended).unwrap(),
        "its script has had time to see it, or has recorded its end"
    );
    let again = JobSpec {
        restarts: 1,
        ..second
    };
    prepare(&site, &again);
    site.executor.start(&again).unwrap();
    assert_eq!(end_of(&site, &again).0, RunOutcome::Completed);
    assert_eq!(lines(), 3, "it ran twice, and never at once");
    assert_eq!(
        site.output(first.agreement, "stdout"),
        "one\ntwo\none\ntwo\ntwo\n",
        "of both times"
    );
}

#[test]
fn work_whose_node_is_lost_is_run_again_on_another_where_its_template_has_it_so() {
    run(async {
        let mut cluster = Cluster::start();
        let runs = cluster.folder().join("runs");
        fs::create_dir(&runs).unwrap();
        fs::set_permissions(&runs, fs::Permissions::from_mode(0o777)).unwrap();
        let script = super::service::script(
            &cluster,
            &format!(
                "echo ran >>'{0}/runs'; [ $(wc -l <'{0}/runs') -gt 1 ] || sleep 600",
                runs.display()
            ),
        );
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let template = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/templates/agreements/advance-reservation.xml"
        );
        let server = serve_with(
            &cluster,
            &format!(
                "[[application]]\nname = \"again\"\nprogram = \"{script}\"\n\
                 [[template]]\nfile = \"{template}\"\non_loss = \"restart\"\n"
            ),
        );
        let client = server.client();
        let offer = Offer {
            run: Some(("again", Vec::new())),
            ..Offer::reserve(1, 40)
        };
        let offer = offer.within(now(), now() + 200).xml();
        let id = client.post("/agreements", offer).await.created();
        let ran = || {
            fs::read_to_string(runs.join("runs"))
                .unwrap_or_default()
                .lines()
                .count()
        };
        eventually("it to run", SOON, async || (ran() == 1).then_some(())).await;
        let node = reserved(&cluster, id, 1).await;
        let node = NODES
            .into_iter()
            .find(|each| node.contains(*each))
            .expect("a node");
        cluster.cut_power(node);
        let nodename = format!("nodename={node}");
        cluster.run("scontrol", &["update", &nodename, "state=down", "reason=test"]);
        eventually("it to be run again", SOON, async || {
            let events = client.get(&format!("/agreements/{id}/events")).await.body;
            events.contains("it is run again from its start").then_some(())
        })
        .await;
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(ran(), 2);
        server.assert_verified();
    });
}
