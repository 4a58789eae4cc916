//! Nodes that batch jobs never get, and the cost of promising.

use std::path::Path;

use execution::Executor;
use execution::slurm::{SlurmExecutor, slurm_name_of_run};

use super::service::{SOON, serve_keys};
use super::trials::ended;
use super::{Site, settings, slot};
use crate::support::offers::{Offer, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, poll_until, run};

const DEDICATED: &str = "bespeak-cluster-dedicated";

fn with_dedicated(cluster: &Cluster, data: &Path, nodes: &[&str]) -> SlurmExecutor {
    let mut settings = settings(cluster);
    settings.dedicated = nodes.iter().map(|name| (*name).to_owned()).collect();
    SlurmExecutor::new(settings, data).unwrap()
}

#[test]
fn slots_are_reserved_over_dedicated_nodes_and_batch_jobs_never_get_those() {
    let site = Site::start();
    let nodes_of = |name: &str| {
        site.cluster
            .reservation(name)
            .map(|reservation| reservation["Nodes"].clone())
    };
    let executor = with_dedicated(&site.cluster, site.data.path(), &["n1", "n2"]);
    executor.prepare(&[]).unwrap();
    assert_eq!(nodes_of(DEDICATED).as_deref(), Some("n[1-2]"));
    let job = ["-w", "n1", "-t1", "-o/dev/null", "--wrap=true"];
    site.cluster.run("sbatch", &job);
    let report = executor.node_states().unwrap();
    assert!(report.busy.is_empty(), "they are ours: {report:?}");
    let soon = slot(1, 30, 60);
    executor.prepare(std::slice::from_ref(&soon)).unwrap();
    let name = slurm_name_of_run("cluster", soon.run);
    assert_eq!(nodes_of(&name).as_deref(), Some("n1"));
    // Lost and configured otherwise.
    site.cluster
        .run("scontrol", &["delete", &format!("ReservationName={DEDICATED}")]);
    executor.prepare(std::slice::from_ref(&soon)).unwrap();
    assert_eq!(nodes_of(DEDICATED).as_deref(), Some("n[1-2]"));
    with_dedicated(&site.cluster, site.data.path(), &["n2"])
        .prepare(std::slice::from_ref(&soon))
        .unwrap();
    assert_eq!(nodes_of(DEDICATED).as_deref(), Some("n2"));
    assert_eq!(nodes_of(&name).as_deref(), Some("n1"), "it keeps its node");
    with_dedicated(&site.cluster, site.data.path(), &[])
        .prepare(&[])
        .unwrap();
    assert_eq!((nodes_of(DEDICATED), nodes_of(&name)), (None, None));
    let runs = || site.cluster.jobs().iter().all(|[_, _, state]| state != "PENDING");
    assert!(poll_until(SOON, runs), "the job gets its node then");
}

#[test]
fn a_reservation_of_that_name_that_others_have_made_is_left_alone() {
    let site = Site::start();
    let named = format!("ReservationName={DEDICATED}");
    let made = ["create", "reservation", &named, "StartTime=now", "Duration=60"];
    let flags = ["Nodes=n3", "Users=root"];
    site.cluster.run("scontrol", &[&made[..], &flags].concat());
    let executor = with_dedicated(&site.cluster, site.data.path(), &["n1"]);
    let failure = executor.prepare(&[]).unwrap_err().to_string();
    assert!(failure.contains("this service has not made"), "{failure}");
    assert_eq!(site.cluster.reservation(DEDICATED).unwrap()["Nodes"], "n3");
    assert_eq!(executor.node_states().unwrap().busy.len(), 1, "it is another's");
}

#[test]
fn a_job_runs_on_dedicated_nodes_of_a_full_cluster_and_what_that_costs_is_counted() {
    run(async {
        let cluster = Cluster::with_longest_job("10");
        let server = serve_keys(&cluster, 4, "dedicated = \"n1\"\n", "");
        let client = server.client();
        eventually("the dedicated node", SOON, async || {
            cluster.reservation(DEDICATED).map(drop)
        })
        .await;
        cluster.run(
            "sbatch",
            &[
                "--array=1-9",
                "-N1",
                "--exclusive",
                "-t9",
                "-o/dev/null",
                "--wrap=sleep 500",
            ],
        );
        let ready = now();
        let offer = Offer::sleep(1, 60).within(ready, ready + 300);
        let id = client.post("/agreements", offer.xml()).await.created();
        assert_eq!(ended(&client, id).await, "completed");
        eventually("the cost", SOON, async || {
            let text = client.get("/metrics").await.body;
            let has = |name: &str| {
                let name = format!("bespeak_cluster_{name}_node_seconds_total{{resource=\"cluster\"}} ");
                let lines = text.lines();
                let figures = lines.filter_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok());
                figures.sum::<u64>() > 0
            };
            has("idled").then_some(())
        })
        .await;
        server.assert_verified();
    });
}
