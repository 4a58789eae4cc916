//! The metrics of clusters, for their operators: calls of Slurm's programs, reservations held, delays of starts.

use std::time::Duration;

use metrics::{Exposition, metrics};
use task::lock::lock;

use crate::Cost;
use crate::shared_executor::SharedExecutor;

metrics! {
    CALLS = Counter "bespeak_cluster_calls_total": "Calls of the programs of a cluster, by program and outcome.";
    RESERVATIONS = Gauge "bespeak_cluster_reservations":
        "Slots with nodes reserved in a cluster, as of when it was last told of the plan.";
    RESERVED = Counter "bespeak_cluster_reserved_node_seconds_total": "Time of nodes in reservations that had begun.";
    IDLED = Counter "bespeak_cluster_idled_node_seconds_total":
        "Time of nodes that were idle in front of reservations, or dedicated to them, while jobs of others waited.";
    DELAYS = Histogram "bespeak_cluster_start_delay_seconds":
        "How long after the begin of their slots jobs began on a cluster.";
}

/// Writes the metrics of clusters, labelled with the names of their resources.
pub fn expose_cluster_metrics(clusters: &[(String, SharedExecutor)], text: &mut Exposition) {
    if clusters.is_empty() {
        return;
    }
    let mut family = text.family(CALLS);
    for (resource, cluster) in clusters {
        for ((program, outcome), count) in cluster.executor.calls() {
            let (program, outcome) = (("program", program), ("outcome", outcome));
            family.sample(&[("resource", resource), program, outcome], count);
        }
    }
    let reserved = clusters.iter();
    let reserved = reserved.map(|(resource, cluster)| (resource, cluster.executor.kept_nodes().len()));
    text.numbers(RESERVATIONS, "resource", reserved);
    let costs = clusters.iter();
    let costs = costs.filter_map(|(resource, cluster)| Some((resource, cluster.executor.cost()?)));
    let costs: Vec<(&String, Cost)> = costs.collect();
    let seconds = |function: fn(&Cost) -> Duration| {
        let costs = costs.iter();
        costs.map(move |(resource, cost)| (resource, function(cost).as_secs()))
    };
    text.numbers(RESERVED, "resource", seconds(|cost| cost.reserved));
    text.numbers(IDLED, "resource", seconds(|cost| cost.idled));
    let mut family = text.family(DELAYS);
    for (resource, cluster) in clusters {
        family.histogram(&[("resource", resource)], &lock(&cluster.delays));
    }
}
