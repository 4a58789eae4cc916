//! The metrics of clusters, for their operators: calls of Slurm's programs, reservations held, delays of starts.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::execution::dispatcher::Shared;
use crate::metrics::{Exposition, Histogram, Kind};

/// Upper bounds for the delay of a start, in seconds: from the delay of a scheduler to a delay that uses up a short
/// slot.
const DELAYS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// The number of calls of one program with one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// The program.
    pub program: &'static str,
    /// The outcome: `done`, `refused`, `down`, `slow` or `failed`.
    pub outcome: &'static str,
    /// How many.
    pub count: u64,
}

/// The time of nodes that slots have cost a cluster, one hour of two nodes being two hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// In reservations that had begun.
    pub reserved: Duration,
    /// Idle in front of reservations, or dedicated to them, while jobs of others waited.
    pub idled: Duration,
}

/// How long after the begin of their slots jobs began.
#[derive(Debug)]
pub(super) struct Delays(Mutex<Histogram>);

impl Default for Delays {
    fn default() -> Self {
        Self(Mutex::new(Histogram::new(DELAYS)))
    }
}

impl Delays {
    /// Counts a job that began at an instant, in a slot that begins at this second.
    pub(super) fn note(&self, slot: scheduler::Time, began: Micros) {
        let late = began - slot.seconds().saturating_mul(MICROS_PER_SECOND);
        #[expect(
            clippy::cast_precision_loss,
            reason = "delays have far fewer digits than a double"
        )]
        let seconds = late.max(0) as f64 / MICROS_PER_SECOND as f64;
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .observe(seconds);
    }

    fn so_far(&self) -> Histogram {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

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
        for Calls {
            program,
            outcome,
            count,
        } in cluster.calls()
        {
            let labels = [
                ("resource", resource.as_str()),
                ("program", program),
                ("outcome", outcome),
            ];
            family.sample(&labels, count);
        }
    }
    let mut family = text.family(
        "bespeak_cluster_reservations",
        Kind::Gauge,
        "Slots with nodes reserved in a cluster, as of when it was last told of the plan.",
    );
    for (resource, cluster) in clusters {
        family.sample(&[("resource", resource)], cluster.reservations());
    }
    let costs = clusters.iter();
    let costs = costs.filter_map(|(resource, cluster)| Some((resource, cluster.cost()?)));
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
        family.histogram(&[("resource", resource)], &cluster.delays.so_far());
    }
}
