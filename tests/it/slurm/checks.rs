//! The checks of a cluster: each wrong set-up is named, and promises nothing.

use std::fs;
use std::time::Duration;

use execution::slurm::{SlurmExecutor, SlurmSettings};
use execution::{CheckResult, Executor, SetupCheck};
use scheduler::domain::Attribute;

use super::service::{SOON, serve, serve_unchecked};
use super::{Site, put_program, settings};
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, run};

/// The faults, each with the checked thing that has it.
fn wrong(checks: Vec<SetupCheck>) -> Vec<(&'static str, String)> {
    let wrong = checks.into_iter().filter_map(|check| match check.found {
        CheckResult::Wrong(words) => Some((check.what, words)),
        CheckResult::Good(_) | CheckResult::Unknown(_) => None,
    });
    wrong.collect()
}

#[test]
fn each_thing_that_is_wrong_with_a_cluster_is_named_and_nothing_with_one_that_is_whole() {
    let site = Site::start();
    let checks = site.executor.check_with_job(super::PATIENCE);
    let words = format!("{checks:?}");
    let is_good = |check: &SetupCheck| matches!(check.found, CheckResult::Good(_));
    assert!(checks.len() == 9 && checks.iter().all(is_good), "{words}");
    assert!(
        site.cluster
            .run("scontrol", &["show", "reservation"])
            .contains("No reservations")
    );
    assert!(
        fs::read_dir(site.cluster.folder().join("work"))
            .unwrap()
            .next()
            .is_none()
    );

    let found = |change: &dyn Fn(&mut SlurmSettings)| {
        let mut settings = settings(&site.cluster);
        change(&mut settings);
        let executor = SlurmExecutor::new(settings, site.data.path()).unwrap();
        wrong(executor.check())
    };
    let one = |change: &dyn Fn(&mut SlurmSettings), what: &str, part: &str| {
        let found = found(change);
        let is_it = found.len() == 1 && found[0].0 == what && found[0].1.contains(part);
        assert!(is_it, "{what}, {part}: {found:?}");
    };
    one(&|each| each.partition = "nosuch".into(), "partition", "nosuch");
    one(&|each| each.nodes.push("n99".into()), "nodes", "n99");
    // Slurm may be the one that is wrong: that is told, and stops nothing.
    let mut promised = settings(&site.cluster);
    promised.attributes = [("cpus".to_owned(), Attribute::Number(5))].into();
    let checks = SlurmExecutor::new(promised, site.data.path()).unwrap().check();
    let told = checks.iter().find(|check| check.what == "nodes");
    let words = "n1 has 4 cpus by Slurm's word, and 5 by the configuration's";
    assert!(
        told.is_some_and(|check| matches!(&check.found, CheckResult::Unknown(said) if said == words)),
        "{checks:?}"
    );
    one(
        &|each| each.account.user = "no-such-user".into(),
        "users",
        "no-such-user",
    );
    one(
        &|each| each.work_dir = site.data.path().join("not-there"),
        "folder",
        "not-there",
    );
    one(
        &|each| each.configuration = Some("/no/slurm.conf".into()),
        "programs",
        "slurm.conf",
    );
    // One program of another version in front of the others.
    let programs = site.data.path().join("programs");
    fs::create_dir(&programs).unwrap();
    put_program(&programs.join("sinfo"), "#!/bin/sh\necho slurm 1.2.3\n");
    one(
        &|each| each.programs = Some(programs.clone()),
        "programs",
        "1.2.3",
    );

    // A partition that starts nothing, and nodes that are all out of use.
    site.cluster
        .run("scontrol", &["update", "partitionname=batch", "state=down"]);
    one(&|_| {}, "partition", "is down");
    site.cluster
        .run("scontrol", &["update", "partitionname=batch", "state=up"]);
    site.cluster.run(
        "scontrol",
        &["update", "nodename=n[1-4]", "state=drain", "reason=test"],
    );
    assert_eq!(found(&|_| {}), []);
    let kept = site.executor.check_with_job(Duration::from_secs(1));
    let job = kept.last().expect("there are checks");
    assert!(
        job.what == "job" && matches!(job.found, CheckResult::Unknown(_)),
        "{kept:?}"
    );
}

#[test]
fn a_service_promises_nothing_on_a_cluster_until_it_has_passed_its_checks_and_says_so() {
    run(async {
        let cluster = Cluster::start();
        cluster.run("scontrol", &["update", "partitionname=batch", "state=down"]);
        let mut server = serve_unchecked(&cluster, NODES.len(), "", "");
        let client = server.client();
        let ready = client.get("/readyz").await;
        assert!(
            ready
                .body
                .contains("ready\nrole: leader\nnothing new is promised on cluster"),
            "{ready:?}"
        );
        let refused = client.post("/agreements", Offer::sleep(1, 60).xml()).await;
        assert_eq!(refused.status.as_u16(), 409, "{refused:?}");
        assert!(
            refused
                .body
                .contains("nothing is promised on cluster before it has been checked"),
            "{refused:?}"
        );
        let shown = server.run(&["resources"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("batch is down"), "{shown}");

        cluster.run("scontrol", &["update", "partitionname=batch", "state=up"]);
        eventually("promises", SOON, async || {
            let ready = client.get("/readyz").await;
            (!ready.body.contains("nothing new is promised")).then_some(())
        })
        .await;
        let accepted = client
            .post(
                "/agreements",
                Offer::sleep(1, 60).within(now() + 3_600, now() + 7_200).xml(),
            )
            .await
            .created();

        // Promises are kept by a service that finds the cluster wrong when it comes back.
        cluster.run("scontrol", &["update", "partitionname=batch", "state=drain"]);
        server.kill9();
        server.restart();
        let shown = server.client().get(&format!("/agreements/{accepted}")).await;
        assert!(!shown.texts("State").contains(&"Rejected"), "{shown:?}");
        server.assert_verified();
    });
}

#[test]
fn the_verb_checks_a_cluster_beside_the_service_and_ends_with_one_where_something_is_wrong() {
    let cluster = Cluster::start();
    let server: Server = serve(&cluster);
    let check = |arguments: &[&str]| {
        let output = server.run(&[&["cluster", "check"], arguments].concat());
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (status, said) = check(&[]);
    assert!(
        status == Some(0) && said.contains("job ") && !said.contains("WRONG"),
        "{said}"
    );
    cluster.run("scontrol", &["update", "partitionname=batch", "state=drain"]);
    let (status, said) = check(&["--json", "cluster"]);
    assert!(status == Some(1) && said.contains("\"wrong\""), "{said}");
    assert_eq!(check(&["no-such"]).0, Some(2));
}
