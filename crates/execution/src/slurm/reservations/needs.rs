//! From the slots of the plan to the reservations that they need.
//!
//! A slot that is to replace another one gets the nodes that it needs beside that one, which stays unchanged: other nodes for all
//! of its time, and of the nodes that both have, the time before and after. Each is a reservation of its own, and none lies over
//! another one, so that Slurm answers for each. When the other slot gives way, one reservation for all of it is made over these.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::Run;
use domain::resources::NodeState;
use scheduler::{Interval, Seconds, Time};
use task::lock::lock;

use crate::PlannedSlot;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::foreign_use::foreign_use;
use crate::slurm::job_row::JobRow;
use crate::slurm::jobs::ownership::is_job_ours;
use crate::slurm::query::ReservationRow;
use crate::slurm::reservations::calendar::Calendar;
use crate::slurm::reservations::handover::jobs_after_handover;
use crate::slurm::reservations::node_choice::{Pinning, WantedSlot, choose_nodes_for_slots};
use crate::slurm::reservations::target::Target;
use crate::slurm::snapshot::{HeldReservations, Snapshot};

/// How long after the last slot others' use of nodes is looked at, to choose among these.
const NEXT_USES: Seconds = 86_400;

/// The reservations that the due slots need, and the slots that there are no nodes for.
pub(crate) fn targets_by_needs(
    cluster: &SlurmCluster,
    due: &[&PlannedSlot],
    leaving: &BTreeMap<Run, &ReservationRow>,
    present: &Snapshot,
) -> (Vec<Target>, Vec<Run>) {
    let planned: BTreeSet<Run> = due.iter().flat_map(|slot| slot.reservations()).collect();
    // A reservation that leaves is not in the way.
    let is_ours = |id| leaving.contains_key(&id) || planned.contains(&id);
    let until = due.iter().map(|slot| slot.interval.end).max();
    let until = until.unwrap_or(present.now) + NEXT_USES;
    let calendars = calendars_for_needs(cluster, leaving, present, is_ours, until);
    let wanted: Vec<WantedSlot> = due
        .iter()
        .map(|slot| needs_of_slot(cluster, slot, due, present))
        .collect();
    let (mut targets, mut unnamed) = (Vec::new(), Vec::new());
    let handed = jobs_after_handover(cluster);
    let own: Vec<&JobRow> = present
        .jobs
        .iter()
        .filter(|job| job.is_on_nodes() && is_job_ours(cluster, job, &handed, is_ours))
        .collect();
    let named = choose_nodes_for_slots(calendars, &wanted);
    for ((slot, names), one_wanted) in due.iter().zip(&named).zip(&wanted) {
        let id = slot.run;
        let Some(names) = names else {
            unnamed.push(id);
            continue;
        };
        if slot.replaces.is_none() {
            targets.push(target_by_needs(cluster, slot, id, slot.interval, names, &own));
            continue;
        }
        let old = one_wanted.replaces.iter();
        let old: Vec<(Interval, &Vec<usize>)> = old
            .filter_map(|old| Some((due[*old].interval, named[*old].as_ref()?)))
            .collect();
        let beside = needs_beside_replaced_slots(slot.interval, names, &old);
        if beside.len() > slot.reservations().count() {
            unnamed.push(id);
            continue;
        }
        for (id, (interval, names)) in slot.reservations().zip(beside) {
            if interval.end > present.now {
                targets.push(target_by_needs(cluster, slot, id, interval, &names, &own));
            }
        }
    }
    (targets, unnamed)
}

/// When which nodes are not to be had before an instant, by their numbers.
fn calendars_for_needs(
    cluster: &SlurmCluster,
    leaving: &BTreeMap<Run, &ReservationRow>,
    present: &Snapshot,
    is_ours: impl Fn(Run) -> bool,
    until: Time,
) -> Vec<Calendar> {
    let names = present.states.iter().zip(&cluster.settings.nodes);
    let mut calendars: Vec<Calendar> = names
        .map(|(state, name)| Calendar {
            usable: *state == NodeState::Up,
            dedicated: cluster.settings.dedicated.contains(name),
            busy: Vec::new(),
            leaving: Vec::new(),
        })
        .collect();
    let left_out = lock(&cluster.seen.left_out).clone();
    for busy in foreign_use(cluster, present, is_ours, until)
        .into_iter()
        .chain(left_out)
    {
        if let Some(calendar) = calendars.get_mut(busy.node as usize) {
            calendar.busy.push(busy.interval);
        }
    }
    // But where something still runs in it, others are rather taken.
    let until_now = Interval::new(present.now - 1, present.now);
    for row in leaving.values() {
        let inside: Vec<&JobRow> = present
            .jobs
            .iter()
            .filter(|job| job.is_inside(&row.name))
            .collect();
        for node in cluster.numbers_of(inside.iter().flat_map(|job| &job.nodes)) {
            calendars[node].busy.push(until_now);
        }
        if inside.is_empty() {
            for node in cluster.reserved_node_numbers(row) {
                calendars[node].leaving.push(row.interval);
            }
        }
    }
    calendars
}

/// The needs of a slot, among the slots that are due.
fn needs_of_slot(
    cluster: &SlurmCluster,
    slot: &PlannedSlot,
    due: &[&PlannedSlot],
    present: &Snapshot,
) -> WantedSlot {
    let held = &present.held;
    let interval = Interval::new(slot.interval.start.max(present.now), slot.interval.end);
    if slot.replaces.is_some() {
        return needs_beside_replaced(cluster, slot, interval, due, held);
    }
    let row = held.get(&slot.run);
    let current = present_nodes_for_needs(cluster, slot, held);
    let is_up = |node: &usize| present.states.get(*node) == Some(&NodeState::Up);
    let all_up = current.iter().all(is_up);
    let pinning = match row {
        Some(row) if slot.begun && current.len() == slot.nodes as usize => {
            // A slot that waits for a node that does not take it can run on another one.
            let is_used = |job: &JobRow| job.is_inside(&row.name) && !job.nodes.is_empty();
            let stays = all_up || present.jobs.iter().any(is_used);
            if stays { Pinning::Pinned } else { Pinning::Begun }
        }
        _ => Pinning::Loose,
    };
    WantedSlot {
        nodes: slot.nodes as usize,
        interval,
        current,
        pinning,
        replaces: Vec::new(),
    }
}

/// The needs of a slot that is to replace another one: where that one has begun, its nodes for longer.
fn needs_beside_replaced(
    cluster: &SlurmCluster,
    slot: &PlannedSlot,
    interval: Interval,
    due: &[&PlannedSlot],
    held: &HeldReservations,
) -> WantedSlot {
    let is_replaced = |at: &usize| Some(due[*at].run.agreement) == slot.replaces;
    let replaces: Vec<usize> = (0..due.len()).filter(is_replaced).collect();
    let mut old = replaces.iter().map(|at| due[*at]);
    let nodes = slot.nodes as usize;
    if let Some(old) = old.find(|old| old.begun && old.interval.meets(interval)) {
        let start = interval.start.max(old.interval.end).min(interval.end);
        return WantedSlot {
            nodes,
            interval: Interval::new(start, interval.end),
            current: present_nodes_for_needs(cluster, old, held),
            pinning: Pinning::These,
            replaces,
        };
    }
    let rows = slot.reservations().filter_map(|id| held.get(&id));
    let own = rows.flat_map(|row| cluster.reserved_node_numbers(row));
    let theirs = replaces
        .iter()
        .flat_map(|at| present_nodes_for_needs(cluster, due[*at], held));
    let current: BTreeSet<usize> = own.chain(theirs).collect();
    WantedSlot {
        nodes,
        interval,
        current: current.into_iter().collect(),
        pinning: Pinning::Loose,
        replaces,
    }
}

/// The nodes that a slot has: by Slurm, or else by the plan, before Slurm knows of it.
fn present_nodes_for_needs(
    cluster: &SlurmCluster,
    slot: &PlannedSlot,
    held: &HeldReservations,
) -> Vec<usize> {
    if let Some(row) = held.get(&slot.run) {
        return cluster.reserved_node_numbers(row);
    }
    // A node that has left the list since has no name any more.
    let given = slot.given.iter().map(|node| *node as usize);
    given
        .filter(|node| *node < cluster.settings.nodes.len())
        .collect()
}

/// One reservation for a slot.
fn target_by_needs(
    cluster: &SlurmCluster,
    slot: &PlannedSlot,
    id: Run,
    interval: Interval,
    nodes: &[usize],
    own: &[&JobRow],
) -> Target {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|node| cluster.settings.nodes[*node].clone())
        .collect();
    let name = cluster.name_of_run(id);
    let reaches_in = |job: &&JobRow| {
        job.reservation.as_ref() != Some(&name)
            && job.end.is_some_and(|end| end > interval.start)
            && job.nodes.iter().any(|node| nodes.contains(node))
    };
    Target {
        id,
        interval,
        behind_own_jobs: own.iter().any(reaches_in),
        nodes,
        user: cluster.settings.account_of(&slot.party).user.clone(),
        party: slot.party.clone(),
        application: slot.application.clone(),
        is_awaited: slot.is_awaited,
        handed: slot.begun && !slot.has_job,
    }
}

/// The needs of a slot on some nodes beside the slots that it is to replace, with their nodes: each node in the times in
/// which none of these has it. Nodes with the same times go together; no two of the results have a node at the same time.
fn needs_beside_replaced_slots(
    interval: Interval,
    names: &[usize],
    old: &[(Interval, &Vec<usize>)],
) -> Vec<(Interval, Vec<usize>)> {
    let mut parts: BTreeMap<Interval, Vec<usize>> = BTreeMap::new();
    for node in names {
        let has = old.iter().filter(|(_, whose)| whose.contains(node));
        let has = has.map(|(when, _)| *when).filter(|when| when.meets(interval));
        let mut times: Vec<Interval> = has.collect();
        times.sort_unstable();
        let mut from = interval.start;
        // The last gap ends with the slot.
        for time in times
            .into_iter()
            .chain([Interval::new(interval.end, interval.end)])
        {
            if from < time.start {
                let gap = Interval::new(from, time.start);
                parts.entry(gap).or_default().push(*node);
            }
            from = from.max(time.end);
        }
    }
    parts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_other_slots_lie_other_nodes_and_the_common_ones_before_between_and_after() {
        let interval = |start, end| Interval::new(Time(start), Time(end));
        let nodes = vec![1, 2, 3];
        let old = [(interval(100, 200), &nodes)];
        assert_eq!(needs_beside_replaced_slots(interval(120, 180), &[1, 2], &old), []);
        assert_eq!(
            needs_beside_replaced_slots(interval(100, 300), &[1, 2, 3], &old),
            [(interval(200, 300), vec![1, 2, 3])]
        );
        assert_eq!(
            needs_beside_replaced_slots(interval(50, 250), &[2, 3, 4], &old),
            [
                (interval(50, 100), vec![2, 3]),
                (interval(50, 250), vec![4]),
                (interval(200, 250), vec![2, 3])
            ]
        );
        let apart = interval(200, 300);
        for old in [&old[..], &[]] {
            assert_eq!(
                needs_beside_replaced_slots(apart, &[1, 4], old),
                [(apart, vec![1, 4])]
            );
        }
        let later = vec![1, 4];
        let old = [(interval(100, 200), &nodes), (interval(250, 280), &later)];
        assert_eq!(
            needs_beside_replaced_slots(interval(150, 300), &[1, 2, 4], &old),
            [
                (interval(150, 250), vec![4]),
                (interval(200, 250), vec![1]),
                (interval(200, 300), vec![2]),
                (interval(280, 300), vec![1, 4])
            ]
        );
    }
}
