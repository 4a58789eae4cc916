//! Nodes are held before they are promised.

use domain::agreement::Run;
use execution::slurm::slurm_name_of_run;
use serde_json::Value;

use super::service::{SOON, fill, serve};
use crate::support::offers::{Offer, now};
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, run};

/// The second of an instant.
fn instant(value: &Value) -> i64 {
    let at: jiff::Timestamp = value.as_str().expect("an instant").parse().expect("an instant");
    at.as_second()
}

#[test]
fn a_slot_that_batch_jobs_have_taken_since_the_last_look_is_not_promised_but_the_next_one_is() {
    run(async {
        let cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        // The service has just looked at the nodes, and looks again in ten seconds.
        fill(&cluster, NODES.len(), NODES.len()).await;
        let began = now();
        let offer = Offer::reserve(2, 10).within(began, began + 600);
        let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
        let held = cluster.reservation(&slurm_name_of_run("cluster", Run::first(id)));
        assert!(held.is_some(), "it is promised, and Slurm holds nothing");
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        let start = instant(&shown["plannedStart"]);
        assert!(start >= began + 30, "after the batch jobs: {shown}");
        let listed = client.get_json("/agreements").await;
        assert_eq!(listed["agreements"].as_array().map(Vec::len), Some(1), "{listed}");
        server.assert_verified();
    });
}

#[test]
fn a_slot_that_begins_at_once_begins_with_its_nodes() {
    run(async {
        let cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        let asked = now();
        let offer = Offer::reserve(1, 20).within(asked, asked + 300);
        let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
        let shown = eventually("its begin", SOON, async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            shown["started"].is_string().then_some(shown)
        })
        .await;
        assert_eq!(
            instant(&shown["started"]),
            instant(&shown["plannedStart"]),
            "{shown}"
        );
        server.assert_verified();
    });
}
