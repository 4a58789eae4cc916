//! Promises that Slurm never kept.

use std::fs;

use domain::agreement::{Run, RunOutcome};
use domain::clock::Clock;
use execution::slurm::{Account, SlurmExecutor, SlurmSettings, slurm_name_of_run};
use execution::{Executor, JobStatus, PlannedSlot};

use super::service::{serve_keys, until};
use super::{Site, put_program, settings, slot};
use crate::support::offers::{Offer, now};
use crate::support::slurm::{Cluster, NODES};
use crate::support::{in_seconds, poll_until, run};

/// A user of no reservation, so that Slurm refuses to make any for it.
const STRANGER: &str = "nobody-of-this-cluster";

#[test]
fn a_job_that_waited_all_slot_long_for_its_nodes_is_lost() {
    let site = Site::start();
    let job = site.job("sleep 600", 600);
    let held = site
        .cluster
        .reservation(&slurm_name_of_run("cluster", Run::first(job.agreement)));
    let node = format!("nodename={}", held.unwrap()["Nodes"]);
    site.cluster
        .run("scontrol", &["update", &node, "state=drain", "reason=test"]);
    site.executor.start(&job).unwrap();
    let status = site.executor.poll(job.run()).unwrap();
    assert_eq!(status, JobStatus::Running { started: None });
    let until = Clock::system().micros();
    site.executor.keep_until(job.run(), until).unwrap();
    let end = site.end_of(job.agreement);
    assert_eq!((end.outcome, end.started), (RunOutcome::Lost, None), "{end:?}");
    assert_eq!(site.cluster.jobs()[0][2], "CANCELLED");
}

#[test]
fn a_job_that_its_user_holds_all_slot_long_is_ended_by_its_party_and_one_that_an_administrator_holds_is_lost()
{
    let site = Site::start();
    for (hold, outcome) in [("uhold", RunOutcome::Terminated), ("hold", RunOutcome::Lost)] {
        let job = site.job("sleep 600", 600);
        let held = site
            .cluster
            .reservation(&slurm_name_of_run("cluster", Run::first(job.agreement)));
        let node = format!("nodename={}", held.unwrap()["Nodes"]);
        site.cluster
            .run("scontrol", &["update", &node, "state=drain", "reason=test"]);
        site.executor.start(&job).unwrap();
        let listed = site.cluster.jobs();
        let id = listed
            .iter()
            .find(|[_, name, _]| *name == slurm_name_of_run("cluster", Run::first(job.agreement)));
        site.cluster.run("scontrol", &[hold, &id.unwrap()[0]]);
        // It waits for its own user, and for nothing else.
        site.cluster.run("scontrol", &["update", &node, "state=resume"]);
        let until = Clock::system().micros();
        site.executor.keep_until(job.run(), until).unwrap();
        let end = site.end_of(job.agreement);
        assert_eq!((end.outcome, end.started), (outcome, None), "{hold}: {end:?}");
    }
}

#[test]
fn a_job_that_is_cancelled_while_it_waits_is_ended_by_its_party_and_not_lost() {
    let site = Site::start();
    let job = site.job("sleep 600", 600);
    let held = site
        .cluster
        .reservation(&slurm_name_of_run("cluster", Run::first(job.agreement)));
    let node = format!("nodename={}", held.unwrap()["Nodes"]);
    site.cluster
        .run("scontrol", &["update", &node, "state=drain", "reason=test"]);
    site.executor.start(&job).unwrap();
    site.cluster.run(
        "scancel",
        &["--name", &slurm_name_of_run("cluster", Run::first(job.agreement))],
    );
    let end = site.end_of(job.agreement);
    assert_eq!(
        (end.outcome, end.started),
        (RunOutcome::Terminated, None),
        "{end:?}"
    );
}

#[test]
fn a_reservation_that_slurm_refuses_to_make_is_not_one_that_nobody_uses() {
    let site = Site::start();
    let settings = SlurmSettings {
        account: Account {
            user: STRANGER.into(),
            account: None,
        },
        dedicated: Vec::new(),
        lead: None,
        changes_a_minute: 6_000,
        reclaim_after: Some(1),
        ..settings(&site.cluster)
    };
    let executor = SlurmExecutor::new(settings, site.data.path()).unwrap();
    let never = PlannedSlot {
        has_job: false,
        ..slot(1, 0, 600)
    };
    let mut refused = 0;
    poll_until(super::PATIENCE, || {
        let said = executor.prepare(std::slice::from_ref(&never)).unwrap_err();
        // 26.05 does not say that it is for the user.
        assert!(
            said.to_string().contains("Error creating the reservation"),
            "{said}"
        );
        assert_eq!(executor.unused(), []);
        refused += 1;
        refused == 40
    });
    assert_eq!(executor.kept_nodes(), []);
}

#[test]
fn a_reservation_that_slurm_has_lost_and_does_not_make_again_is_lost_and_costs_nothing() {
    run(async {
        let cluster = Cluster::start();
        // Slurm makes no reservation any more once this file is there.
        let (programs, refuses) = (
            cluster.folder().join("programs"),
            cluster.folder().join("refuses"),
        );
        let scontrol = format!(
            "#!/bin/sh\n[ -e '{}' ] && [ \"$1\" = create ] && echo 'Error creating the reservation: no' >&2 && exit 1\n\
             PATH=/usr/local/bin:/usr/bin:/bin exec scontrol \"$@\"\n",
            refuses.display()
        );
        fs::create_dir(&programs).expect("a folder can be made");
        put_program(&programs.join("scontrol"), &scontrol);
        let keys = format!("programs = \"{}\"\n", programs.display());
        let server = serve_keys(&cluster, NODES.len(), &keys, "");
        let client = server.client();
        let id = in_seconds(10, async |seconds| {
            let start = now() + seconds;
            let offer = Offer::reserve(2, 8).within(start, start + 8);
            let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
            let name = slurm_name_of_run("cluster", Run::first(id));
            assert!(cluster.reservation(&name).is_some(), "held before it is promised");
            fs::write(&refuses, "").expect("a file can be written");
            cluster.run("scontrol", &["delete", &format!("ReservationName={name}")]);
            let is_early = now() < start;
            if !is_early {
                fs::remove_file(&refuses).expect("it is there");
            }
            is_early.then_some(id)
        })
        .await;
        let refused = client
            .post("/agreements", Offer::reserve(1, 8).guaranteed_xml())
            .await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(
            refused.body.contains("refused to reserve the nodes"),
            "{}",
            refused.body
        );
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "lost", "{over:?}");
        let accounts = client.get_json("/accounts").await;
        let entries = accounts["entries"].as_array().cloned().unwrap_or_default();
        let paid = entries.iter().any(|entry| entry["kind"] == "price");
        assert!(!paid, "{accounts}");
        server.assert_verified();
    });
}
