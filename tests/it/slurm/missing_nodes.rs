//! A cluster with nodes that are configured and were never there: Slurm lists them as `unknown`, and as `unknown*` once they have
//! not answered.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::resources::NodeState;
use execution::Executor;
use execution::slurm::expand_nodes;
use serde_json::Value;
use uuid::Uuid;

use super::service::{SOON, serve_nodes};
use super::{PATIENCE, Site, slot};
use crate::support::client::Client;
use crate::support::offers::{Offer, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, poll_until, run, size};

/// Seconds of each slot; the job in it takes one of them.
const SLOT: i64 = 30;
/// The same for a slot that begins before Slurm has tried to reach the nodes that are not there, which takes it some ten seconds.
const EARLY_SLOT: i64 = 60;
/// Seconds in which each may lie: a machine that is busy may be late with everything.
const WINDOW: i64 = 600;
/// How long past its earliest start an agreement is waited for.
const LATER: Duration = Duration::from_mins(12);

#[test]
fn a_node_that_was_never_there_gets_nothing_and_one_that_a_new_controller_has_not_heard_of_is_up() {
    let mut site = Site::on(Cluster::with_missing(4, 1));
    let known = || site.executor.node_states().unwrap().states[3] != NodeState::Up;
    let listed = || site.cluster.run("sinfo", &["-h", "-N", "-o", "%N %T"]);
    assert!(poll_until(PATIENCE, known), "n4 counts as up: {}", listed());
    let report = site.executor.node_states().unwrap();
    assert_eq!(report.states[..3], [NodeState::Up; 3]);
    assert_eq!(report.reasons[&3], "it does not respond");
    let (fits, one_more) = (slot(3, 60, 600), slot(1, 60, 600));
    let refused = site
        .executor
        .prepare(&[fits.clone(), one_more.clone()])
        .unwrap_err();
    assert!(refused.to_string().contains("too few nodes are up"), "{refused}");
    assert_eq!(site.reservation(&fits).unwrap()["Nodes"], "n[1-3]");
    assert_eq!(site.reservation(&one_more), None);

    site.cluster.kill_controller();
    site.cluster.start_controller();
    let heard_of = poll_until(PATIENCE, || {
        let Ok(report) = site.executor.node_states() else {
            return false;
        };
        assert_eq!(report.states[..3], [NodeState::Up; 3]);
        let listed = site.cluster.run("sinfo", &["-h", "-N", "-o", "%N %T"]);
        listed.lines().filter(|line| !line.contains("unknown")).count() == 3
    });
    assert!(heard_of);
}

#[test]
fn offers_to_a_cluster_a_quarter_of_which_is_not_there_are_kept_on_the_rest() {
    run(async {
        let offers = size("BESPEAK_TEST_OFFERS_WITHOUT_NODES", 8);
        let nodes = if offers > 100 { 32 } else { 4 };
        let there = nodes - nodes / 4;
        let missing: BTreeSet<String> = (there + 1..=nodes).map(|number| format!("n{number}")).collect();
        let cluster = Cluster::with_missing(nodes, nodes / 4);
        let server = serve_nodes(&cluster, nodes, "");
        let client = server.client();
        let place = async |seconds: i64, ready: i64| {
            let offer = Offer::sleep(1, seconds).within(ready, ready + WINDOW);
            let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
            (id, ready)
        };
        // Slurm does not know yet: some of these begin on nodes that never answer, and wait there.
        let mut ids = Vec::new();
        for _ in 0..nodes {
            ids.push(place(EARLY_SLOT, now()).await);
        }
        eventually("what Slurm says of the missing nodes", SOON, async || {
            let shown = client.get_json("/resources/cluster/nodes").await;
            let out = shown["nodes"]
                .as_array()?
                .iter()
                .filter(|node| node["state"] != "up");
            let out: BTreeSet<_> = out.filter_map(|node| node["name"].as_str()).collect();
            (out.len() == missing.len()).then(|| assert!(missing.iter().all(|name| out.contains(&**name))))
        })
        .await;
        let (known, begin) = (ids.len(), now());
        // Many come in a row, for four fifths of the nodes that are there: as fast as a slow machine can start jobs.
        let spacing = if nodes > 4 { SLOT * 5 / 4 } else { 0 };
        let count = |number: usize| i64::try_from(number).expect("a small number");
        for number in 0..offers {
            ids.push(place(SLOT, begin + count(number) * spacing / count(there)).await);
        }
        for (number, (id, ready)) in ids.iter().enumerate() {
            let until_ready = Duration::from_secs(u64::try_from(ready - now()).unwrap_or(0));
            let over = eventually(&format!("the end of {id}"), until_ready + LATER, async || {
                let shown = client.get(&format!("/agreements/{id}")).await;
                shown.texts("State").contains(&"Complete").then_some(shown)
            })
            .await;
            assert_eq!(over.text("Outcome"), "completed", "{over:?}");
            let states = over.texts("State");
            // That of the start is held to the second that was promised, which depends on the machine: COMPLETION is the one behind it.
            assert_eq!(states.get(2), Some(&"Fulfilled"), "{states:?}");
            let had = begun_on(&client, *id).await;
            if number >= known {
                assert!(had.is_disjoint(&missing), "{id} was given {had:?}");
                let held = reserved_now(&cluster);
                assert!(held.is_disjoint(&missing), "{held:?} are reserved");
            }
        }
        server.assert_verified();
    });
}

/// The nodes that an agreement was given at any time, by its timeline, which says that it runs only after Slurm did.
async fn begun_on(client: &Client, id: Uuid) -> BTreeSet<String> {
    let timeline = client.get_json(&format!("/agreements/{id}/events")).await;
    let events = timeline["events"].as_array().expect("a list of events");
    let word = |event: &Value| event["kind"].as_str().unwrap_or_default().to_owned();
    let kinds: Vec<String> = events.iter().map(word).collect();
    assert!(kinds.contains(&"begun".to_owned()), "{timeline}");
    assert!(!kinds.contains(&"started".to_owned()), "{timeline}");
    let details = events.iter().filter_map(|event| event["detail"].as_str());
    let named = details.filter_map(|detail| detail.strip_prefix("on nodes ")?.split(' ').next());
    named
        .flat_map(|names| expand_nodes(names).expect("names of nodes"))
        .collect()
}

/// The nodes that are in any reservation.
fn reserved_now(cluster: &Cluster) -> BTreeSet<String> {
    let shown = cluster.run("scontrol", &["-o", "show", "reservation"]);
    let nodes = shown
        .split_whitespace()
        .filter_map(|pair| pair.strip_prefix("Nodes="));
    nodes
        .flat_map(|names| expand_nodes(names).unwrap_or_default())
        .collect()
}
