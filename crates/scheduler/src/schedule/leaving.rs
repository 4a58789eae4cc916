//! Which requests leave so that a place becomes free (`displacement.rs`): the nodes that a slot lacks, and the lightest requests that
//! free it.

use super::work::Work;
use crate::time::{Interval, Time};

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
pub(super) fn lacks_in_slot(
    steps: &[(Time, i64)],
    slot: Interval,
    nodes: i64,
) -> impl Iterator<Item = (Interval, i64)> {
    let within = steps.iter().take_while(move |(t, _)| *t < slot.end);
    let lacks = within.enumerate().map(move |(at, (t, free))| {
        let end = steps.get(at + 1).map_or(slot.end, |(end, _)| slot.end.min(*end));
        (Interval::new(*t, end), nodes - free)
    });
    lacks.filter(|(_, lack)| *lack > 0)
}

/// Occupants that free the nodes that are lacking, of which a copy is used up, chosen one after the other by nodes for their weight;
/// `None` where there are none below the limit.
pub(super) fn lightest_leaving(
    lacks: &[(Interval, i64)],
    rest: &mut [(Interval, i64)],
    (met, occupants): (&[usize], &[Occupant]),
    limit: u64,
    work: &mut Work,
) -> Option<(u64, Vec<u32>)> {
    // Borders of occupants are borders of steps.
    let covers = |one: &Occupant, interval: &Interval| one.slot.contains(*interval);
    let mut chosen: Vec<usize> = Vec::new();
    let mut weight = 0;
    while let Some(first) = rest.iter().position(|(_, lack)| *lack > 0) {
        work.spend(1 + (met.len() + rest.len()) as u64 / ELEMENTS);
        // It covers the first one, so those that it covers come one after the other.
        let freed = |one: &Occupant| -> i64 {
            let covered = rest[first..]
                .iter()
                .take_while(|(interval, _)| covers(one, interval));
            covered
                .map(|(interval, lack)| interval.duration().saturating_mul(one.nodes.min(*lack).max(0)))
                .fold(0, i64::saturating_add)
        };
        let left = met.iter().filter(|at| !chosen.contains(at));
        let there = left.filter(|at| covers(&occupants[**at], &rest[first].0));
        let begin = rest[first].0.start;
        let end = rest.last().map_or(begin, |(last, _)| last.end);
        let mut best: Option<(i128, usize)> = None;
        for at in there {
            let one = &occupants[*at];
            let most = (one.slot.end.min(end) - begin).saturating_mul(one.nodes);
            if best.is_some_and(|(value, _)| for_weight(most, one.weight) <= value) {
                continue;
            }
            let value = for_weight(freed(one), one.weight);
            if best.is_none_or(|(other, _)| other < value) {
                best = Some((value, *at));
            }
        }
        let (_, best) = best?;
        let one = &occupants[best];
        weight += one.weight;
        if weight >= limit {
            return None;
        }
        chosen.push(best);
        let covered = rest[first..]
            .iter_mut()
            .take_while(|(interval, _)| covers(one, interval));
        covered.for_each(|(_, lack)| *lack -= one.nodes);
    }
    leave_out_unneeded(&mut chosen, lacks, occupants);
    let weight = chosen.iter().map(|at| occupants[*at].weight).sum();
    let leaving = chosen.into_iter().map(|at| occupants[at].handle).collect();
    Some((weight, leaving))
}

/// What is freed for each 2⁻¹⁶ of the weight, rounded down.
fn for_weight(freed: i64, weight: u64) -> i128 {
    let weight = weight.max(1).cast_signed();
    // Wide division is slow, and mostly not needed.
    match freed.checked_mul(1 << 16) {
        Some(freed) => i128::from(freed / weight),
        None => (i128::from(freed) << 16) / i128::from(weight),
    }
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
