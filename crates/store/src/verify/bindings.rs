//! I5 and I1 of one agreement: the nodes that it has, and when.

use domain::agreement::{Agreement, ServiceState};
use domain::resources::Binding;
use scheduler::{Interval, counted};

use super::findings::{Findings, Invariant};
use super::overbooked_peaks::Capacity;
use super::pieces;

/// I5 of one agreement: its bindings are those of its state and placement.
pub(super) fn check_bindings(
    agreement: &Agreement,
    bindings: &[Binding],
    capacities: Option<&Vec<Capacity>>,
    found: &mut Findings,
) {
    let most = capacities
        .into_iter()
        .flatten()
        .map(|capacity| capacity.nodes)
        .max()
        .unwrap_or(0);
    let start = agreement.placement().start;
    let loads = agreement.loads();
    let occupied = Interval::new(start, loads.last().map_or(start, |(time, _)| time.end));
    for binding in bindings {
        let Binding {
            resource,
            node,
            interval,
            ..
        } = binding;
        let place = format_args!("its node {node} of {resource} for {interval}");
        found.must(*resource == agreement.resource, Invariant::I5, || {
            let own = &agreement.resource;
            format!("{place} is not of the resource {own} that it is placed on")
        });
        found.must(*node < most, Invariant::I1, || {
            format!("{place} has never been there")
        });
        found.must(occupied.contains(*interval), Invariant::I5, || {
            format!("{place} is outside of {occupied}, all that it occupies")
        });
    }
    if agreement.slots.is_split() {
        pieces::check_piece_bindings(agreement, bindings, found);
        return;
    }
    let mut nodes: Vec<_> = bindings.iter().map(|binding| binding.node).collect();
    nodes.dedup();
    let count = nodes.len();
    if agreement.service.is_ready() {
        found.must(count == agreement.nodes() as usize, Invariant::I5, || {
            let nodes = counted(agreement.nodes(), "node");
            format!("it has begun with {nodes} and has {count}")
        });
        let kept = bindings
            .iter()
            .all(|binding| binding.interval.end == occupied.end);
        found.must(kept, Invariant::I5, || {
            format!("some of its nodes are not its own until {}", occupied.end)
        });
    } else if agreement.service == ServiceState::NotReady {
        found.must(count == 0, Invariant::I5, || {
            format!("it has {} and has not begun", counted(count, "node"))
        });
    } else {
        found.must(count <= agreement.nodes() as usize, Invariant::I5, || {
            format!(
                "it had {} instead of {}",
                counted(count, "node"),
                agreement.nodes()
            )
        });
    }
}
