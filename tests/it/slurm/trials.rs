//! Trials as an administrator would make them: many short agreements on an idle cluster, and near-term ones on a cluster that is
//! full of batch jobs. None is lost, and the controller is asked seldom. Small here; a release makes them long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::service::{fill, serve_nodes};
use crate::support::client::Client;
use crate::support::offers::{Offer, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, run, size};

/// Nodes of the cluster.
const TRIAL_NODES: usize = 12;
/// Seconds of a slot; the job in it takes one.
const SLOT: i64 = 10;
/// Seconds in which each slot may lie: a machine that is busy may be late with everything.
const WINDOW: i64 = 300;
/// From one offer to the next.
const OFFER_EVERY: Duration = Duration::from_millis(2_500);
/// Calls that an agreement may cost, and that the cluster may get besides in a minute.
const CALLS_EACH: f64 = 12.0;
const CALLS_A_MINUTE: f64 = 60.0;
/// How long an agreement is waited for.
const PATIENCE: Duration = Duration::from_mins(8);

#[test]
fn short_agreements_on_an_idle_cluster_all_run_and_cost_few_calls() {
    run(async {
        let offers = size("BESPEAK_TEST_IDLE_OFFERS", 10);
        let cluster = Cluster::with_missing(TRIAL_NODES, 0);
        trial(&cluster, offers).await;
    });
}

#[test]
fn near_term_agreements_on_a_full_cluster_all_run_and_cost_few_calls() {
    run(async {
        let offers = size("BESPEAK_TEST_NEAR_OFFERS", 6);
        let cluster = Cluster::with_missing(TRIAL_NODES, 0);
        // Always more of them than there are nodes.
        fill(&cluster, TRIAL_NODES, 24 + 2 * offers).await;
        trial(&cluster, offers).await;
    });
}

/// Offers one agreement after the other, faster than they end, waits for all, and counts.
async fn trial(cluster: &Cluster, offers: usize) {
    let server = serve_nodes(cluster, TRIAL_NODES, "");
    let client = server.client();
    let (began, before) = (Instant::now(), calls(&client).await);
    let mut ids = Vec::new();
    // Two thirds of the nodes, two of them for each on the average.
    let mut rate = tokio::time::interval(OFFER_EVERY);
    for number in 0..offers {
        rate.tick().await;
        let nodes = u32::try_from(number % 3 + 1).expect("a small number");
        let ready = now();
        let offer = Offer::sleep(1, SLOT).on(nodes).within(ready, ready + WINDOW);
        ids.push(client.post("/agreements", offer.guaranteed_xml()).await.created());
    }
    for id in &ids {
        let over = ended(&client, *id).await;
        assert_eq!(over, "completed", "{id}");
    }
    let made: f64 = calls(&client).await.values().sum::<f64>() - before.values().sum::<f64>();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let most = CALLS_EACH * offers as f64 + CALLS_A_MINUTE * minutes.ceil();
    let text = client.get("/metrics").await.body;
    let figures: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("bespeak_cluster_"))
        .collect();
    println!(
        "{offers} agreements in {minutes:.1} minutes, {made} calls:\n{}",
        figures.join("\n")
    );
    assert!(
        made <= most,
        "{made} calls for {offers} agreements in {minutes} minutes:\n{}",
        figures.join("\n")
    );
    server.assert_verified();
}

/// How an agreement ended, once it has.
pub(super) async fn ended(client: &Client, id: Uuid) -> String {
    eventually(&format!("the end of {id}"), PATIENCE, async || {
        let shown = client.get(&format!("/agreements/{id}")).await;
        shown
            .texts("State")
            .contains(&"Complete")
            .then(|| shown.text("Outcome").to_owned())
    })
    .await
}

/// The calls that the cluster has got, by their kind.
async fn calls(client: &Client) -> BTreeMap<String, f64> {
    let text = client.get("/metrics").await.body;
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("bespeak_cluster_calls_total"));
    let counted = lines.filter_map(|line| line.rsplit_once(' '));
    counted
        .filter_map(|(labels, count)| Some((labels.to_owned(), count.parse().ok()?)))
        .collect()
}
