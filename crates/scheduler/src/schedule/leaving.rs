//! Which requests leave so that a place becomes free (`displacement.rs`): the nodes that a slot lacks, and the lightest requests that
//! free it.

use super::work::Work;
use crate::time::{Interval, Time};
use std::cmp::Reverse;

/// Elements of short lists that are handled in the time of one unit of work.
pub(super) const ELEMENTS: u64 = 8;

/// A request that may leave, where it lies at present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occupant {
    pub(super) handle: u32,
    pub(super) slot: Interval,
    pub(super) nodes: i64,
    pub(super) weight: u64,
    /// Whether it has another place in the plan as it stands.
    pub(super) is_easy: bool,
}

/// Steps with a border at each border of an occupant: where one ends and another begins with as many nodes there is no step.
pub(super) fn steps_cut_at_borders(
    steps: &[(Time, i64)],
    occupants: &[Occupant],
    part: Interval,
) -> Vec<(Time, i64)> {
    let borders = occupants.iter().flat_map(|one| [one.slot.start, one.slot.end]);
    let mut borders: Vec<Time> = borders.filter(|t| part.start < *t && *t < part.end).collect();
    borders.sort_unstable();
    borders.dedup();
    let mut borders = borders.into_iter().peekable();
    let mut cut = Vec::with_capacity(steps.len() + borders.len());
    for (at, (t, free)) in steps.iter().enumerate() {
        let end = steps.get(at + 1).map_or(part.end, |(end, _)| *end);
        cut.push((*t, *free));
        while let Some(border) = borders.next_if(|border| *border < end) {
            cut.extend((border > *t).then_some((border, *free)));
        }
    }
    cut
}

/// How many of `nodes` are not free where in a slot, which begins with the first step.
pub(super) fn lacks_in_slot(steps: &[(Time, i64)], slot: Interval, nodes: i64) -> Vec<(Interval, i64)> {
    let within = steps.iter().take_while(|(t, _)| *t < slot.end);
    let lacks = within.enumerate().map(|(at, (t, free))| {
        let end = steps.get(at + 1).map_or(slot.end, |(end, _)| slot.end.min(*end));
        (Interval::new(*t, end), nodes - free)
    });
    lacks.filter(|(_, lack)| *lack > 0).collect()
}

/// Occupants that free the nodes that are lacking, chosen one after the other by nodes for their weight; `None` where there are
/// none below the limit.
pub(super) fn lightest_leaving(
    lacks: &[(Interval, i64)],
    met: &[usize],
    occupants: &[Occupant],
    limit: u64,
    work: &mut Work,
) -> Option<(u64, Vec<u32>)> {
    // Borders of occupants are borders of steps.
    let covers = |one: &Occupant, interval: &Interval| one.slot.contains(*interval);
    let mut rest = lacks.to_vec();
    let mut chosen: Vec<usize> = Vec::new();
    let mut weight = 0;
    while let Some(first) = rest.iter().position(|(_, lack)| *lack > 0) {
        work.spend(1 + (met.len() + rest.len()) as u64 / ELEMENTS);
        let freed = |one: &Occupant| -> i64 {
            let covered = rest[first..].iter().filter(|(interval, _)| covers(one, interval));
            covered
                .map(|(interval, lack)| interval.duration().saturating_mul(one.nodes.min(*lack).max(0)))
                .fold(0, i64::saturating_add)
        };
        let left = met.iter().filter(|at| !chosen.contains(at));
        let there = left.filter(|at| covers(&occupants[**at], &rest[first].0));
        let value = |at: &&usize| {
            let one = &occupants[**at];
            let for_weight = (i128::from(freed(one)) << 16) / i128::from(one.weight.max(1));
            (for_weight, Reverse(**at))
        };
        let best = *there.max_by_key(value)?;
        let one = &occupants[best];
        weight += one.weight;
        if weight >= limit {
            return None;
        }
        chosen.push(best);
        for (interval, lack) in &mut rest[first..] {
            *lack -= if covers(one, interval) { one.nodes } else { 0 };
        }
    }
    leave_out_unneeded(&mut chosen, lacks, occupants);
    let weight = chosen.iter().map(|at| occupants[*at].weight).sum();
    let leaving = chosen.into_iter().map(|at| occupants[at].handle).collect();
    Some((weight, leaving))
}

/// Takes those out that the others make unneeded.
fn leave_out_unneeded(chosen: &mut Vec<usize>, lacks: &[(Interval, i64)], occupants: &[Occupant]) {
    let mut at = 0;
    while at < chosen.len() {
        let others = || chosen.iter().enumerate().filter(|(other, _)| *other != at);
        let is_needed = lacks.iter().any(|(interval, lack)| {
            let there = others().map(|(_, other)| &occupants[*other]);
            let there = there.filter(|one| one.slot.contains(*interval));
            there.map(|one| one.nodes).sum::<i64>() < *lack
        });
        if is_needed {
            at += 1;
        } else {
            chosen.remove(at);
        }
    }
}
