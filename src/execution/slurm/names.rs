//! Which nodes a slot gets by name. The plan counts nodes; Slurm wants them named.
//!
//! Slots are named in order of start. As long as what is not ours occupies its nodes from the present on, any free node
//! will do, and there are enough whenever the counts are right: at a slot's start, a node is either in use then or free
//! of everything named so far. Others' reservations in the future break that, so a slot is given the nodes whose next
//! occupation follows it most closely, and those without one are kept for longer slots.

use std::cmp::Reverse;

use scheduler::{Interval, Time};

/// A slot that is to have nodes by name.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// How many.
    pub(super) nodes: usize,
    /// From when until when.
    pub(super) interval: Interval,
    /// The nodes that it has now; kept where they can be.
    pub(super) current: Vec<usize>,
    /// Whether it may have others.
    pub(super) hold: Hold,
}

/// How firmly a slot has the nodes that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It gets others where these are not free or take no new work.
    Loose,
    /// The same, but where there are too few others it keeps these: it has begun.
    Begun,
    /// It keeps them whatever they are like: its work runs there.
    Pinned,
}

/// A node as a slot may find it.
#[derive(Debug, Clone, Default)]
pub(super) struct Calendar {
    /// Whether it takes new work.
    pub(super) usable: bool,
    /// Whether batch jobs never get it: it is idle for slots anyway.
    pub(super) dedicated: bool,
    /// When it is others', or named for a slot.
    pub(super) busy: Vec<Interval>,
}

impl Calendar {
    fn is_free(&self, interval: Interval) -> bool {
        self.usable
            && !self
                .busy
                .iter()
                .any(|busy| busy.start < interval.end && interval.start < busy.end)
    }

    /// When it is next in use from an instant on.
    fn next_use(&self, from: Time) -> Time {
        let starts = self.busy.iter().map(|busy| busy.start);
        starts.filter(|start| *start >= from).min().unwrap_or(Time::MAX)
    }

    /// Since when it has been free at an instant.
    fn free_since(&self, at: Time) -> Time {
        let ends = self.busy.iter().map(|busy| busy.end);
        ends.filter(|end| *end <= at).max().unwrap_or(Time::MIN)
    }
}

/// Names nodes for slots that come in order of start; `None` for one that there are not enough nodes for. Slots keep the nodes that
/// they have; only where one would get too few are all named anew. O(slots × nodes × occupations of a node).
pub(super) fn assign(nodes: Vec<Calendar>, slots: &[Wanted]) -> Vec<Option<Vec<usize>>> {
    let missing = |named: &[Option<Vec<usize>>]| named.iter().filter(|names| names.is_none()).count();
    let kept = name_all(nodes.clone(), slots, true);
    if missing(&kept) == 0 {
        return kept;
    }
    let anew = name_all(nodes, slots, false);
    if missing(&anew) < missing(&kept) {
        anew
    } else {
        kept
    }
}

/// Names nodes as [`assign`] does. With `keep`, a slot keeps its present nodes before any other slot is named; without, slots are
/// named strictly in order of start.
fn name_all(mut nodes: Vec<Calendar>, slots: &[Wanted], keep: bool) -> Vec<Option<Vec<usize>>> {
    let mut named: Vec<Option<Vec<usize>>> = vec![None; slots.len()];
    let has_all = |slot: &Wanted| slot.current.len() == slot.nodes;
    for pinned in [true, false] {
        for (slot, names) in slots.iter().zip(&mut named) {
            let stays = if pinned {
                slot.hold == Hold::Pinned
            } else {
                let is_free = |node: &usize| nodes[*node].is_free(slot.interval);
                keep && names.is_none() && has_all(slot) && slot.current.iter().all(is_free)
            };
            if stays {
                for node in &slot.current {
                    nodes[*node].busy.push(slot.interval);
                }
                *names = Some(slot.current.clone());
            }
        }
    }
    let mut held: Vec<Vec<Interval>> = vec![Vec::new(); nodes.len()];
    for (slot, _) in slots.iter().zip(&named).filter(|(_, names)| names.is_none()) {
        for node in &slot.current {
            held[*node].push(slot.interval);
        }
    }
    for (slot, names) in slots.iter().zip(&mut named) {
        if names.is_some() {
            continue;
        }
        let mut free: Vec<_> = (0..nodes.len())
            .filter(|node| nodes[*node].is_free(slot.interval))
            .collect();
        free.sort_by_key(|node| {
            let calendar = &nodes[*node];
            (
                !slot.current.contains(node),
                // A slot that has this node would have to move.
                held[*node].iter().any(|of| of.meets(slot.interval)),
                !calendar.dedicated,
                calendar.next_use(slot.interval.end),
                // Where a job ends just before the slot, no other job loses its place.
                Reverse(calendar.free_since(slot.interval.start)),
                *node,
            )
        });
        if free.len() < slot.nodes {
            if slot.hold == Hold::Loose {
                continue;
            }
            free.clone_from(&slot.current);
        }
        free.truncate(slot.nodes);
        free.sort_unstable();
        for node in &free {
            nodes[*node].busy.push(slot.interval);
        }
        *names = Some(free);
    }
    named
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(start: i64, end: i64) -> Interval {
        Interval::new(Time(start), Time(end))
    }

    fn wanted(nodes: usize, start: i64, end: i64) -> Wanted {
        Wanted {
            nodes,
            interval: interval(start, end),
            current: Vec::new(),
            hold: Hold::Loose,
        }
    }

    fn calendars(busy: &[&[(i64, i64)]]) -> Vec<Calendar> {
        busy.iter()
            .map(|busy| Calendar {
                usable: true,
                dedicated: false,
                busy: busy.iter().map(|(start, end)| interval(*start, *end)).collect(),
            })
            .collect()
    }

    #[test]
    fn a_slot_takes_the_nodes_that_are_of_no_use_to_longer_ones() {
        let nodes = calendars(&[&[], &[(100, 200)], &[]]);
        let named = assign(nodes, &[wanted(1, 0, 100), wanted(2, 50, 300)]);
        assert_eq!(named, [Some(vec![1]), Some(vec![0, 2])]);
    }

    #[test]
    fn a_slot_takes_dedicated_nodes_first_and_then_those_that_are_busy_until_just_before_it() {
        let mut nodes = calendars(&[&[], &[(0, 40)], &[(0, 90)], &[(0, 60)], &[]]);
        nodes[4].dedicated = true;
        let named = assign(
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
        pinned.hold = Hold::Pinned;
        let named = assign(nodes, &[pinned, kept, gone, wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![2]), Some(vec![1]), Some(vec![0]), None]);
    }

    #[test]
    fn an_earlier_slot_takes_nodes_of_a_later_one_only_where_there_are_no_others() {
        let mut later = wanted(2, 20, 40);
        later.current = vec![0, 1];
        let slots = |nodes| [wanted(nodes, 10, 30), later.clone()];
        let four = || calendars(&[&[], &[], &[], &[]]);
        assert_eq!(assign(four(), &slots(2)), [Some(vec![2, 3]), Some(vec![0, 1])]);
        // Node 2 is others' from 15 on: the later slot can wait for it, the earlier one cannot have it.
        let nodes = calendars(&[&[], &[], &[(15, 20)], &[]]);
        let named = assign(nodes, &slots(2));
        assert_eq!(named, [Some(vec![0, 3]), Some(vec![1, 2])]);
    }

    #[test]
    fn what_has_begun_on_a_node_that_takes_nothing_gets_another_one_or_keeps_what_it_has() {
        let mut nodes = calendars(&[&[], &[], &[]]);
        nodes[2].usable = false;
        let stranded = |nodes: usize, current: &[usize]| Wanted {
            current: current.to_vec(),
            hold: Hold::Begun,
            ..wanted(nodes, 0, 15)
        };
        let named = assign(nodes.clone(), &[stranded(1, &[2]), wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![0]), Some(vec![1])]);
        let named = assign(nodes, &[stranded(3, &[0, 1, 2]), wanted(1, 12, 14)]);
        assert_eq!(named, [Some(vec![0, 1, 2]), None]);
    }

    proptest! {
        /// Whatever fits by count fits by name, as long as others' occupations are under way.
        #[test]
        fn whatever_fits_by_count_is_named(
            until in prop::collection::vec(0i64..50, 1..6),
            mut slots in prop::collection::vec((1usize..4, 0i64..100, 1i64..30, 0usize..6), 0..20),
        ) {
            slots.sort_by_key(|slot| slot.1);
            let foreign: Vec<_> = until.iter().map(|end| (0, *end)).collect();
            let mut accepted: Vec<Wanted> = Vec::new();
            for (nodes, start, length, current) in slots {
                let mut slot = wanted(nodes, start, start + length);
                slot.current = vec![current.min(until.len() - 1)];
                let used = |at: i64| {
                    foreign.iter().filter(|(_, end)| at < *end).count()
                        + accepted
                            .iter()
                            .filter(|of| of.interval.start.0 <= at && at < of.interval.end.0)
                            .map(|of| of.nodes)
                            .sum::<usize>()
                };
                if (start..start + length).all(|at| used(at) + nodes <= until.len()) {
                    accepted.push(slot);
                }
            }
            let busy: Vec<Vec<(i64, i64)>> = foreign.iter().map(|of| vec![*of]).collect();
            let busy: Vec<&[(i64, i64)]> = busy.iter().map(Vec::as_slice).collect();
            let named = assign(calendars(&busy), &accepted);
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
                    let shares = of_one.iter().flatten().any(|node| of_other.iter().flatten().any(|of| of == node));
                    prop_assert!(!(meet && shares));
                }
            }
        }
    }
}
