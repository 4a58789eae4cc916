//! The whole service on a real cluster: from an offer to the nodes that it gets.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use domain::agreement::Run;
use execution::slurm::slurm_name_of_run;
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, poll_until, run};

/// How long a test waits for an event that should come within seconds, on a machine that may be busy.
pub(super) const SOON: Duration = Duration::from_mins(3);
/// The same with a slot a minute away in between.
const LATER: Duration = Duration::from_mins(3);

pub(super) fn serve(cluster: &Cluster) -> Server {
    serve_with(cluster, "")
}

/// The same with more of a configuration.
pub(super) fn serve_with(cluster: &Cluster, more: &str) -> Server {
    serve_nodes(cluster, NODES.len(), more)
}

/// The same on a cluster of `nodes` nodes.
pub(super) fn serve_nodes(cluster: &Cluster, nodes: usize, more: &str) -> Server {
    serve_keys(cluster, nodes, "", more)
}

/// The same with more keys of the cluster itself.
pub(super) fn serve_keys(cluster: &Cluster, nodes: usize, keys: &str, more: &str) -> Server {
    let server = serve_unchecked(cluster, nodes, keys, more);
    passes_checks(&server);
    server
}

/// Waits until the service's cluster has passed its checks.
pub(super) fn passes_checks(server: &Server) {
    let is_closed =
        || String::from_utf8_lossy(&server.run(&["resources"]).stdout).contains("pass its checks");
    assert!(
        poll_until(SOON, || !is_closed()),
        "the cluster does not pass its checks: {}",
        server.log()
    );
}

/// The same, whether the cluster has passed its checks or not.
pub(super) fn serve_unchecked(cluster: &Cluster, nodes: usize, keys: &str, more: &str) -> Server {
    serve_from(None, cluster, nodes, keys, more)
}

/// The same from a database.
pub(super) fn serve_from(
    url: Option<&str>,
    cluster: &Cluster,
    nodes: usize,
    keys: &str,
    more: &str,
) -> Server {
    let work_dir = cluster.folder().join("work");
    fs::create_dir_all(&work_dir).expect("a folder can be made");
    let user = Cluster::user();
    Server::configured(
        url,
        &format!(
            "[[resource]]\nname = \"cluster\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"batch\"\n\
             node_list = \"n[1-{nodes}]\"\nconfiguration = \"{}\"\nwork_dir = \"{}\"\nuser = \"{user}\"\ncall_seconds = 40\n\
             turnaround_seconds = 1\n{keys}[[resource.slurm.party]]\nname = \"operator\"\nuser = \"{user}\"\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[failures]\nsettle_seconds = 1\n{more}",
            cluster.configuration().display(),
            work_dir.display(),
        ),
    )
}

/// A script for batch jobs that know nothing of the service.
pub(super) fn script(cluster: &Cluster, text: &str) -> String {
    let script = cluster.folder().join("script");
    fs::write(&script, format!("#!/bin/sh\n{text}\n")).expect("a file can be written");
    script.to_str().expect("a plain name").to_owned()
}

/// Submits `jobs` batch jobs of 50 seconds with a limit of a minute, and waits until they fill `nodes` nodes.
pub(super) async fn fill(cluster: &Cluster, nodes: usize, jobs: usize) {
    let batch = script(cluster, "sleep 50");
    let array = format!("--array=1-{jobs}");
    let job = ["-N1", "--exclusive", "-t1", "-o/dev/null", "--chdir=/"];
    cluster.run(
        "sbatch",
        &[&[array.as_str()], &job[..], &[batch.as_str()]].concat(),
    );
    eventually("a full cluster", SOON, async || {
        let jobs = cluster.jobs();
        let runs = jobs.iter().filter(|[_, _, state]| state == "RUNNING");
        (runs.count() >= nodes).then_some(())
    })
    .await;
}

async fn accepted(client: &Client, offer: &Offer) -> Uuid {
    client.post("/agreements", offer.xml()).await.created()
}

pub(super) async fn terminate(client: &Client, id: Uuid) {
    let input = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                 <r:Reason xmlns:r=\"urn:example:reason\">no longer needed</r:Reason></wsag:TerminateInput>";
    let ended = client.post(&format!("/agreements/{id}/terminate"), input).await;
    assert!(ended.status.is_success(), "{ended:?}");
}

/// The agreement once one of its states is `state`.
pub(super) async fn until(client: &Client, cluster: &Cluster, id: Uuid, state: &str) -> Answer {
    eventually(
        &format!("{state} of {id}; Slurm has {:?}", cluster.jobs()),
        LATER,
        async || {
            let shown = client.get(&format!("/agreements/{id}")).await;
            shown.texts("State").contains(&state).then_some(shown)
        },
    )
    .await
}

/// The nodes that Slurm holds for an agreement, once it does.
pub(super) async fn reserved(cluster: &Cluster, id: Uuid, nodes: usize) -> BTreeSet<String> {
    eventually(&format!("a reservation for {id}"), SOON, async || {
        let held = cluster.reservation(&slurm_name_of_run("cluster", Run::first(id)))?;
        let nodes_of = cluster.run("scontrol", &["show", "hostnames", &held["Nodes"]]);
        let names: BTreeSet<_> = nodes_of.lines().map(str::to_owned).collect();
        (names.len() == nodes).then_some(names)
    })
    .await
}

/// The states of the agreement, its guarantee and its first service term.
fn states(shown: &Answer) -> Vec<&str> {
    shown.texts("State").into_iter().take(3).collect()
}

/// A job in Slurm's records: its name, its nodes, and its time in seconds.
struct Ran {
    name: String,
    nodes: BTreeSet<String>,
    start: i64,
    end: i64,
}

fn ran(cluster: &Cluster) -> Vec<Ran> {
    let listed = cluster.run("squeue", &["-a", "-h", "-t", "all", "-o", "%j|%N|%S|%e"]);
    let read = |line: &str| {
        let [name, nodes, start, end] = line.split('|').collect::<Vec<_>>().try_into().ok()?;
        let seconds = |text: &str| {
            Some(
                text.parse::<jiff::civil::DateTime>()
                    .ok()?
                    .to_zoned(jiff::tz::TimeZone::UTC)
                    .ok()?
                    .timestamp()
                    .as_second(),
            )
        };
        let (start, end) = (seconds(start)?, seconds(end)?);
        let nodes = cluster.run("scontrol", &["show", "hostnames", nodes]);
        Some(Ran {
            name: name.to_owned(),
            nodes: nodes.lines().map(str::to_owned).collect(),
            start,
            end,
        })
    };
    listed.lines().filter_map(read).collect()
}

#[test]
fn an_agreement_becomes_a_reservation_that_keeps_others_off_a_full_cluster_and_its_job_runs_at_its_slot() {
    run(async {
        let cluster = Cluster::with_longest_job("1");
        // Ten times as many jobs as there are nodes, each on a node of its own and allowed the longest limit.
        let batch = script(&cluster, "sleep 14");
        cluster.run(
            "sbatch",
            &[
                "--array=1-40",
                "-N1",
                "--exclusive",
                "-t1",
                "-Jbatch",
                "-o/dev/null",
                "--chdir=/",
                &batch,
            ],
        );
        let server = serve(&cluster);
        let client = server.client();
        // As things are, all nodes are others' for a minute.
        eventually("a start when the others' jobs are over", SOON, async || {
            let asked = now();
            let id = accepted(&client, &Offer::reserve(4, 600)).await;
            let planned = client.get_json(&format!("/agreements/{id}")).await;
            let planned: jiff::Timestamp = planned["plannedStart"].as_str()?.parse().ok()?;
            terminate(&client, id).await;
            (planned.as_second() > asked + 30).then_some(())
        })
        .await;
        let start = now() + 75;
        let id = accepted(&client, &Offer::sleep(20, 120).on(2).within(start, start + 240)).await;
        reserved(&cluster, id, 2).await;
        // Until its slot they may be others: those of a batch job that could end a moment too late are passed over.
        until(&client, &cluster, id, "Ready").await;
        let names = reserved(&cluster, id, 2).await;
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"], "{over:?}");
        let jobs = ran(&cluster);
        let own = jobs
            .iter()
            .find(|job| job.name == slurm_name_of_run("cluster", Run::first(id)))
            .expect("its job ran");
        assert!(
            own.start >= start && own.nodes == names,
            "on {:?}, not {names:?}",
            own.nodes
        );
        let mut before = jobs
            .iter()
            .filter(|job| job.name == "batch" && job.end > start && job.start < own.start);
        assert!(
            before.all(|job| job.nodes.is_disjoint(&names)),
            "it was held up by a batch job: {} seconds after its start",
            own.start - start
        );
        let meanwhile = || {
            jobs.iter()
                .filter(|job| job.name == "batch" && job.start < own.end && own.start < job.end)
        };
        assert!(
            meanwhile().all(|job| job.nodes.is_disjoint(&names)),
            "a batch job got its nodes"
        );
        assert!(meanwhile().count() >= 2, "the cluster was not full any more");
        server.assert_verified();
    });
}

#[test]
fn a_reservation_without_a_job_is_handed_to_the_user_of_its_party() {
    run(async {
        let cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        let id = accepted(&client, &Offer::reserve(1, 30)).await;
        reserved(&cluster, id, 1).await;
        let own = script(&cluster, "sleep 600");
        let user = format!("--uid={}", Cluster::user());
        let reservation = format!("--reservation={}", slurm_name_of_run("cluster", Run::first(id)));
        let mut arguments = vec!["-Jown", "-o/dev/null", "--chdir=/", &reservation, &own];
        // Only root may submit for others; any other test process is the user itself.
        if rustix::process::geteuid().is_root() {
            arguments.insert(0, &user);
        }
        cluster.run("sbatch", &arguments);
        let state = || {
            cluster
                .jobs()
                .iter()
                .find(|[_, name, _]| name == "own")
                .map(|[_, _, state]| state.clone())
        };
        eventually("the user's job", LATER, async || {
            (state()? == "RUNNING").then_some(())
        })
        .await;
        // Slurm and the service begin the slot each by itself.
        eventually("the name of its reservation", LATER, async || {
            let shown = client.get(&format!("/agreements/{id}")).await;
            shown
                .body
                .contains(&slurm_name_of_run("cluster", Run::first(id)))
                .then_some(())
        })
        .await;
        let shown = server.run(&["show", &id.to_string()]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains(&format!("sbatch {reservation} ")), "{shown}");
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"]);
        eventually("its end", LATER, async || {
            cluster
                .reservation(&slurm_name_of_run("cluster", Run::first(id)))
                .is_none()
                .then_some(())
        })
        .await;
        eventually("the job's end", LATER, async || {
            (state()? != "RUNNING").then_some(())
        })
        .await;
        server.assert_verified();
    });
}

#[test]
fn nodes_that_go_before_a_slot_are_replaced_and_one_that_goes_with_its_job_violates_the_guarantee() {
    run(async {
        let mut cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        let start = now() + 40;
        let offer = Offer::sleep(600, 1_200).on(2).within(start, start + 1_260);
        let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
        let before = reserved(&cluster, id, 2).await;
        let goes = NODES
            .into_iter()
            .find(|name| before.contains(*name))
            .expect("a node of it");
        cluster.cut_power(goes);
        cluster.run(
            "scontrol",
            &["update", &format!("nodename={goes}"), "state=down", "reason=test"],
        );
        eventually("other nodes", SOON, async || {
            let held = reserved(&cluster, id, 2).await;
            (!held.contains(goes)).then_some(())
        })
        .await;
        eventually("its start", LATER, async || {
            let shown = client.get(&format!("/agreements/{id}")).await;
            (!shown.texts("Started").is_empty()).then_some(())
        })
        .await;
        let goes = reserved(&cluster, id, 2).await;
        let goes = NODES
            .into_iter()
            .find(|name| goes.contains(*name))
            .expect("a node of it");
        cluster.cut_power(goes);
        cluster.run(
            "scontrol",
            &["update", &format!("nodename={goes}"), "state=down", "reason=test"],
        );
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.texts("State")[..3], ["Complete", "Fulfilled", "Violated"]);
        assert_eq!(over.text("Outcome"), "lost");
        let accounts = client.get_json("/accounts").await;
        let entries = accounts["entries"].as_array().expect("a list of entries");
        let penalty = entries.iter().find(|entry| entry["kind"] == "penalty");
        let penalty = penalty.expect("a penalty");
        assert_eq!(penalty["agreement"], serde_json::json!(id));
        server.assert_verified();
    });
}

#[test]
fn an_agreement_that_has_too_few_nodes_left_moves_inside_its_window() {
    run(async {
        let mut cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        let start = now() + 40;
        // Both at once on four nodes, in turn on three: the first has room for a late start, and not for that.
        let rigid = accepted(&client, &Offer::sleep(1, 20).on(2).within(start, start + 35)).await;
        let flexible = accepted(&client, &Offer::sleep(1, 20).on(2).within(start, start + 300)).await;
        let planned =
            async || client.get_json(&format!("/agreements/{flexible}")).await["plannedStart"].clone();
        let before = planned().await;
        reserved(&cluster, flexible, 2).await;
        cluster.cut_power("n2");
        cluster.run(
            "scontrol",
            &["update", "nodename=n2", "state=down", "reason=test"],
        );
        eventually("a later start", LATER, async || {
            (planned().await != before).then_some(())
        })
        .await;
        for id in [rigid, flexible] {
            let over = until(&client, &cluster, id, "Complete").await;
            assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"], "{over:?}");
        }
        let ran = ran(&cluster);
        assert!(
            ran.iter().all(|job| !job.nodes.contains("n2")),
            "a job on a lost node"
        );
        server.assert_verified();
    });
}

#[test]
fn a_job_runs_once_though_the_service_and_the_controller_are_killed() {
    run(async {
        let mut cluster = Cluster::start();
        let mut server = serve(&cluster);
        let id = accepted(&server.client(), &Offer::sleep(20, 60)).await;
        let name = slurm_name_of_run("cluster", Run::first(id));
        // A controller that forgets a job, or that it has begun, kills it when it finds it on its node, and then it is lost. What it
        // has written down with a later job it does not forget.
        eventually("its job runs", SOON, async || {
            let runs = |[_, each, state]: &[String; 3]| *each == name && state == "RUNNING";
            cluster.jobs().iter().any(runs).then_some(())
        })
        .await;
        let later = script(&cluster, "true");
        cluster.run(
            "sbatch",
            &["--hold", "-Jlater", "-o/dev/null", "--chdir=/", &later],
        );
        let state = cluster.folder().join("state/job_state");
        eventually("the record of a later job", SOON, async || {
            let saved = fs::read(&state).unwrap_or_default();
            saved.windows(5).any(|part| part == b"later").then_some(())
        })
        .await;
        server.kill9();
        cluster.kill_controller();
        cluster.start_controller();
        server.restart();
        let over = until(&server.client(), &cluster, id, "Complete").await;
        let claims = ran(&cluster)
            .into_iter()
            .filter(|job| job.name == name && job.end - job.start >= 5);
        assert!(claims.count() <= 1, "{:?}", cluster.jobs());
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        server.assert_verified();
    });
}
