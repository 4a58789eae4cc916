//! The metrics of clusters, for their operators: calls of Slurm's programs, reservations held, delays of starts.

use crate::execution::Cost;
use crate::execution::lane::Shared;
use crate::execution::lock::lock;
use crate::metrics::{Exposition, Kind};

/// Writes the metrics of clusters, labelled with the names of their resources.
pub fn expose(clusters: &[(String, Shared)], text: &mut Exposition) {
    if clusters.is_empty() {
        return;
    }
    let mut family = text.family(
        "bespeak_cluster_calls_total",
        Kind::Counter,
        "Calls of the programs of a cluster, by program and outcome.",
    );
    for (resource, cluster) in clusters {
        for ((program, outcome), count) in cluster.executor.calls() {
            let (program, outcome) = (("program", program), ("outcome", outcome));
            family.sample(&[("resource", resource), program, outcome], count);
        }
    }
    let mut family = text.family(
        "bespeak_cluster_reservations",
        Kind::Gauge,
        "Slots with nodes reserved in a cluster, as of when it was last told of the plan.",
    );
    for (resource, cluster) in clusters {
        family.sample(&[("resource", resource)], cluster.executor.kept_nodes().len());
    }
    let costs = clusters.iter();
    let costs = costs.filter_map(|(resource, cluster)| Some((resource, cluster.executor.cost()?)));
    let costs: Vec<(&String, Cost)> = costs.collect();
    let mut family = text.family(
        "bespeak_cluster_reserved_node_seconds_total",
        Kind::Counter,
        "Time of nodes in reservations that had begun.",
    );
    for (resource, cost) in &costs {
        family.sample(&[("resource", resource)], cost.reserved.as_secs());
    }
    let mut family = text.family(
        "bespeak_cluster_idled_node_seconds_total",
        Kind::Counter,
        "Time of nodes that were idle in front of reservations, or dedicated to them, while jobs of others waited.",
    );
    for (resource, cost) in &costs {
        family.sample(&[("resource", resource)], cost.idled.as_secs());
    }
    let mut family = text.family(
        "bespeak_cluster_start_delay_seconds",
        Kind::Histogram,
        "How long after the begin of their slots jobs began on a cluster.",
    );
    for (resource, cluster) in clusters {
        family.histogram(&[("resource", resource)], &lock(&cluster.delays));
    }
}
