//! The nodes that Slurm keeps for the slots of the plan, by its reservations.

use std::collections::BTreeMap;

use domain::clock::Clock;
use domain::resources::KeptNodes;
use scheduler::Interval;
use task::lock::lock;

use crate::PlannedSlot;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::reservations::calendar::is_covered_by_calendar;
use crate::slurm::snapshot::HeldReservations;

/// Takes note of the reservations that Slurm holds for the slots of the plan.
pub(crate) fn note_kept_nodes(cluster: &SlurmCluster, slots: &[PlannedSlot], held: &HeldReservations) {
    let kept = |slot: &PlannedSlot| {
        let (numbers, since) = if slot.replaces.is_some() {
            (
                kept_nodes_beside_replaced(cluster, slot, slots, held),
                slot.interval.start,
            )
        } else {
            let row = held.get(&slot.run)?;
            (cluster.reserved_node_numbers(row), row.interval.start)
        };
        Some(KeptNodes {
            run: slot.run,
            nodes: numbers
                .into_iter()
                .filter_map(|node| u32::try_from(node).ok())
                .collect(),
            since,
        })
    };
    *lock(&cluster.seen.kept) = Some(slots.iter().filter_map(kept).collect());
    lock(&cluster.seen.made).clear();
}

/// The nodes that are held all through a slot that is to replace another one, by the reservations of both.
fn kept_nodes_beside_replaced(
    cluster: &SlurmCluster,
    slot: &PlannedSlot,
    slots: &[PlannedSlot],
    held: &HeldReservations,
) -> Vec<usize> {
    let old = slots
        .iter()
        .filter(|one_slot| Some(one_slot.run.agreement) == slot.replaces);
    let ids = slot.reservations().chain(old.map(|slot| slot.run));
    let mut times: BTreeMap<usize, Vec<Interval>> = BTreeMap::new();
    for row in ids.filter_map(|id| held.get(&id)) {
        for node in cluster.reserved_node_numbers(row) {
            times.entry(node).or_default().push(row.interval);
        }
    }
    // A reservation that is made now begins with the next second.
    let from = slot.interval.start.max(Clock::system().now() + 1);
    let interval = Interval::new(from, slot.interval.end.max(from));
    let whole = times
        .into_iter()
        .filter(|(_, times)| is_covered_by_calendar(times, interval));
    whole.map(|(node, _)| node).collect()
}
