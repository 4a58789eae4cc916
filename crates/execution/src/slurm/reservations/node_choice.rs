//! Which nodes a slot gets by name. The plan counts nodes; Slurm wants them named.
//!
//! Slots are named in order of start. As long as other work occupies its nodes from the present on, any free node will
//! do, and there are enough whenever the counts are right: at a slot's start, a node is either in use then or free of
//! everything named so far. Others' reservations in the future break that. So a slot gets the nodes with a next
//! occupation that follows it most closely, and nodes without one are kept for longer slots.

use std::cmp::Reverse;

use scheduler::Interval;

use crate::slurm::reservations::calendar::{Calendar, is_covered_by_calendar};

/// A slot that is to have nodes by name.
#[derive(Debug, Clone)]
pub(crate) struct WantedSlot {
    /// How many.
    pub(crate) nodes: usize,
    /// From when until when.
    pub(crate) interval: Interval,
    /// The nodes that it has now; kept where they can be.
    pub(crate) current: Vec<usize>,
    /// Whether it may have others.
    pub(crate) pinning: Pinning,
    /// The slot, by its place among all, that gives way to this one later: they may have the same nodes at the same time.
    pub(crate) replaces: Vec<usize>,
}

/// How firmly a slot has the nodes that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinning {
    /// The slot gets other nodes where these are not free or take no new work.
    Loose,
    /// The slot has begun: it gets other nodes as a loose one does, and keeps these where there are too few others.
    Begun,
    /// The slot keeps its nodes in any state: its work runs there.
    Pinned,
    /// The slot gets these nodes where they are free, and else none.
    These,
}

/// Names nodes for slots that come in order of start; `None` for one that there are not enough nodes for. Slots keep the nodes that
/// they have; only where one would get too few are all named anew. O(slots × nodes × occupations of a node).
pub(crate) fn choose_nodes_for_slots(nodes: Vec<Calendar>, slots: &[WantedSlot]) -> Vec<Option<Vec<usize>>> {
    let missing = |named: &[Option<Vec<usize>>]| named.iter().filter(|names| names.is_none()).count();
    let kept = choose_nodes_in_order(nodes.clone(), slots, true);
    if missing(&kept) == 0 {
        return kept;
    }
    let anew = choose_nodes_in_order(nodes, slots, false);
    if missing(&anew) < missing(&kept) {
        anew
    } else {
        kept
    }
}

/// Names nodes as [`choose_nodes_for_slots`] does. With `keep`, a slot keeps its present nodes before any other slot is named; without, slots are
/// named strictly in order of start.
fn choose_nodes_in_order(
    mut nodes: Vec<Calendar>,
    slots: &[WantedSlot],
    keep: bool,
) -> Vec<Option<Vec<usize>>> {
    let mut named: Vec<Option<Vec<usize>>> = vec![None; slots.len()];
    let replacing = slots.iter().enumerate();
    let replacing: Vec<(usize, usize)> = replacing
        .flat_map(|(at, replacing)| replacing.replaces.iter().map(move |old| (at, *old)))
        .collect();
    for first in [true, false] {
        for (at, slot) in slots.iter().enumerate() {
            let free = || {
                let is_free =
                    |node: &usize| is_free_choice_for_slot(&nodes, slots, &named, &replacing, at, *node);
                slot.current.len() == slot.nodes && slot.current.iter().all(is_free)
            };
            let stays = match slot.pinning {
                Pinning::Pinned => first,
                Pinning::These => first && !keep && free(),
                Pinning::Loose | Pinning::Begun => {
                    !first && keep && named[at].is_none() && slot.replaces.is_empty() && free()
                }
            };
            if stays {
                for node in &slot.current {
                    nodes[*node].busy.push(slot.interval);
                }
                named[at] = Some(slot.current.clone());
            }
        }
    }
    let mut held: Vec<Vec<Interval>> = vec![Vec::new(); nodes.len()];
    for (slot, _) in slots.iter().zip(&named).filter(|(_, names)| names.is_none()) {
        for node in &slot.current {
            held[*node].push(slot.interval);
        }
    }
    for (at, slot) in slots.iter().enumerate() {
        if named[at].is_some() {
            continue;
        }
        let mut free: Vec<_> = (0..nodes.len())
            .filter(|node| slot.pinning != Pinning::These || slot.current.contains(node))
            .filter(|node| is_free_choice_for_slot(&nodes, slots, &named, &replacing, at, *node))
            .collect();
        free.sort_by_key(|node| {
            let calendar = &nodes[*node];
            (
                !slot.current.contains(node),
                // A slot that has this node would have to move.
                held[*node].iter().any(|held| held.meets(slot.interval)),
                // Where reservations that go keep it all the time, no batch job can take it in the meantime.
                !is_covered_by_calendar(&calendar.leaving, slot.interval),
                !calendar.dedicated,
                calendar.next_use(slot.interval.end),
                // Where a job ends just before the slot, no other job loses its place.
                Reverse(calendar.free_since(slot.interval.start)),
                *node,
            )
        });
        if free.len() < slot.nodes {
            if slot.pinning != Pinning::Begun {
                continue;
            }
            free.clone_from(&slot.current);
        }
        free.truncate(slot.nodes);
        free.sort_unstable();
        for node in &free {
            nodes[*node].busy.push(slot.interval);
        }
        named[at] = Some(free);
    }
    named
}

/// Whether a node is free for a slot. A slot that gives way to it may have the node, and so may a slot that it gives
/// way to. `replacing` has the slots with the ones that give way to them.
fn is_free_choice_for_slot(
    nodes: &[Calendar],
    slots: &[WantedSlot],
    named: &[Option<Vec<usize>>],
    replacing: &[(usize, usize)],
    at: usize,
    node: usize,
) -> bool {
    let shares = |number: usize| {
        let names = named[number].as_ref();
        names.is_some_and(|names| names.contains(&node)) && slots[number].interval.meets(slots[at].interval)
    };
    let others = replacing.iter().filter_map(|(new, old)| match at {
        _ if at == *new => Some(*old),
        _ if at == *old => Some(*new),
        _ => None,
    });
    nodes[node].is_free(slots[at].interval, others.filter(|other| shares(*other)).count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::Time;

    use super::*;

    fn interval(start: i64, end: i64) -> Interval {
        Interval::new(Time(start), Time(end))
    }

    fn wanted(nodes: usize, start: i64, end: i64) -> WantedSlot {
        WantedSlot {
            nodes,
            interval: interval(start, end),
            current: Vec::new(),
            pinning: Pinning::Loose,
            replaces: Vec::new(),
        }
    }

    fn calendars(busy: &[&[(i64, i64)]]) -> Vec<Calendar> {
        busy.iter()
            .map(|busy| Calendar {
                usable: true,
                dedicated: false,
                busy: busy.iter().map(|(start, end)| interval(*start, *end)).collect(),
                leaving: Vec::new(),
            })
            .collect()
    }

    #[test]
    fn a_slot_takes_the_nodes_that_are_of_no_use_to_longer_ones() {
        let nodes = calendars(&[&[], &[(100, 200)], &[]]);
        let named = choose_nodes_for_slots(nodes, &[wanted(1, 0, 100), wanted(2, 50, 300)]);
        assert_eq!(named, [Some(vec![1]), Some(vec![0, 2])]);
    }

    #[test]
    fn a_slot_takes_dedicated_nodes_first_and_then_those_that_are_busy_until_just_before_it() {
        let mut nodes = calendars(&[&[], &[(0, 40)], &[(0, 90)], &[(0, 60)], &[]]);
        nodes[4].dedicated = true;
        let named = choose_nodes_for_slots(
            nodes,
            &[wanted(2, 100, 200), wanted(1, 110, 200), wanted(1, 120, 200)],
        );
        assert_eq!(named, [Some(vec![2, 4]), Some(vec![3]), Some(vec![1])]);
    }

    #[test]
    fn names_are_kept_where_they_can_be_and_pinned_where_work_runs() {
        let mut nodes = calendars(&[&[], &[], &[]]);
        nodes[2].usable = false;
        let mut kept = wanted(1, 10, 20);
        kept.current = vec![1];
        let mut gone = wanted(1, 10, 20);
        gone.current = vec![2];
        let mut pinned = wanted(1, 0, 15);
        pinned.current = vec![2];
        pinned.pinning = Pinning::Pinned;
        let named = choose_nodes_for_slots(nodes, &[pinned, kept, gone, wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![2]), Some(vec![1]), Some(vec![0]), None]);
    }

    #[test]
    fn an_earlier_slot_takes_nodes_of_a_later_one_only_where_there_are_no_others() {
        let mut later = wanted(2, 20, 40);
        later.current = vec![0, 1];
        let slots = |nodes| [wanted(nodes, 10, 30), later.clone()];
        let four = || calendars(&[&[], &[], &[], &[]]);
        assert_eq!(
            choose_nodes_for_slots(four(), &slots(2)),
            [Some(vec![2, 3]), Some(vec![0, 1])]
        );
        // Node 2 is others' from 15 on: the later slot can wait for it, the earlier one cannot have it.
        let nodes = calendars(&[&[], &[], &[(15, 20)], &[]]);
        let named = choose_nodes_for_slots(nodes, &slots(2));
        assert_eq!(named, [Some(vec![0, 3]), Some(vec![1, 2])]);
    }

    #[test]
    fn a_slot_shares_nodes_with_the_one_that_it_replaces_and_others_make_way_for_it_where_they_can() {
        let with = |slot: WantedSlot, current: &[usize]| WantedSlot {
            current: current.to_vec(),
            ..slot
        };
        let old = with(wanted(1, 100, 200), &[0]);
        let behind = with(wanted(1, 200, 300), &[0]);
        let longer = |start, pinning| WantedSlot {
            pinning,
            replaces: vec![0],
            ..with(wanted(1, start, 300), &[0])
        };
        for (start, pinning) in [(100, Pinning::Loose), (200, Pinning::These)] {
            let slots = |other| {
                [
                    old.clone(),
                    longer(start, pinning),
                    with(wanted(1, 100, 190), &[1]),
                    behind.clone(),
                    other,
                ]
            };
            let later = with(wanted(1, 400, 500), &[1]);
            let two = || calendars(&[&[], &[]]);
            let named = choose_nodes_for_slots(two(), &slots(later));
            let expected = [0, 0, 1, 1, 1].map(|node| Some(vec![node]));
            assert_eq!(named, expected, "what lies behind goes to the other node");
            let in_the_way = with(wanted(1, 250, 350), &[1]);
            let named = choose_nodes_for_slots(two(), &slots(in_the_way));
            let expected =
                [Some(0), None, Some(1), Some(0), Some(1)].map(|choice| choice.map(|node| vec![node]));
            assert_eq!(named, expected, "no other slot loses a node");
        }
        let mut earlier = longer(50, Pinning::Loose);
        earlier.replaces = vec![1];
        assert_eq!(
            choose_nodes_for_slots(calendars(&[&[]]), &[earlier, old.clone()]),
            [Some(vec![0]), Some(vec![0])]
        );
        let taken = choose_nodes_for_slots(
            calendars(&[&[(250, 260)], &[]]),
            &[old, longer(200, Pinning::These)],
        );
        assert_eq!(taken, [Some(vec![0]), None], "those or none");
    }

    #[test]
    fn a_slot_takes_nodes_that_reservations_keep_for_it_before_others() {
        let mut nodes = calendars(&[&[], &[], &[], &[]]);
        nodes[1].leaving = vec![interval(0, 60)];
        nodes[2].leaving = vec![interval(50, 100), interval(0, 50)];
        let named = choose_nodes_for_slots(nodes, &[wanted(1, 10, 90)]);
        assert_eq!(named, [Some(vec![2])]);
    }

    #[test]
    fn what_has_begun_on_a_node_that_takes_nothing_gets_another_one_or_keeps_what_it_has() {
        let mut nodes = calendars(&[&[], &[], &[]]);
        nodes[2].usable = false;
        let stranded = |nodes: usize, current: &[usize]| WantedSlot {
            current: current.to_vec(),
            pinning: Pinning::Begun,
            ..wanted(nodes, 0, 15)
        };
        let named = choose_nodes_for_slots(nodes.clone(), &[stranded(1, &[2]), wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![0]), Some(vec![1])]);
        let named = choose_nodes_for_slots(nodes, &[stranded(3, &[0, 1, 2]), wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![0, 1, 2]), None]);
    }

    proptest! {
        /// Slots that fit by count fit by name, as long as others' occupations are under way.
        #[test]
        fn whatever_fits_by_count_is_named(
            until in prop::collection::vec(0i64..50, 1..6),
            mut slots in prop::collection::vec((1usize..4, 0i64..100, 1i64..30, 0usize..6), 0..20),
        ) {
            slots.sort_by_key(|slot| slot.1);
            let foreign: Vec<_> = until.iter().map(|end| (0, *end)).collect();
            let mut accepted: Vec<WantedSlot> = Vec::new();
            for (nodes, start, length, current) in slots {
                let mut slot = wanted(nodes, start, start + length);
                slot.current = vec![current.min(until.len() - 1)];
                let used = |at: i64| {
                    foreign.iter().filter(|(_, end)| at < *end).count()
                        + accepted
                            .iter()
                            .filter(|accepted| accepted.interval.start.0 <= at && at < accepted.interval.end.0)
                            .map(|accepted| accepted.nodes)
                            .sum::<usize>()
                };
                if (start..start + length).all(|at| used(at) + nodes <= until.len()) {
                    accepted.push(slot);
                }
            }
            let busy: Vec<Vec<(i64, i64)>> = foreign.iter().map(|foreign| vec![*foreign]).collect();
            let busy: Vec<&[(i64, i64)]> = busy.iter().map(Vec::as_slice).collect();
            let named = choose_nodes_for_slots(calendars(&busy), &accepted);
            for (slot, names) in accepted.iter().zip(&named) {
                let names = names.as_ref().expect("it fits by count");
                prop_assert_eq!(names.len(), slot.nodes);
                for node in names {
                    prop_assert!(slot.interval.start.0 >= until[*node]);
                }
            }
            for (index, (one, of_one)) in accepted.iter().zip(&named).enumerate() {
                for (other, of_other) in accepted[index + 1..].iter().zip(&named[index + 1..]) {
                    let meet = one.interval.start < other.interval.end && other.interval.start < one.interval.end;
                    let shares = of_one.iter().flatten().any(|node| of_other.iter().flatten().any(|other_node| other_node == node));
                    prop_assert!(!(meet && shares));
                }
            }
        }
    }
}
