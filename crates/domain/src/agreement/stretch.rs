//! Nodes for a time, and those that are kept for offers that are alternatives to each other: the pointwise maximum, since at most one
//! of them is accepted.

use std::collections::BTreeSet;

use scheduler::{Interval, Seconds, Time};

/// Nodes of one resource for a time.
pub type Stretch = (Interval, u32);

/// The stretches that have to be kept so that any one of `offers` can be accepted. At each instant they are the most nodes that
/// any offer needs, less the nodes that its party has there already in `base`. The stretches of `base` do not meet. In order of
/// time, neighbours of the same size in one. O(n²) for n offers; an answer has a handful of them.
pub fn held_stretches(offers: &[Stretch], base: &[Stretch]) -> Vec<Stretch> {
    combine_stretches(offers, base, |piece| {
        let at = |(interval, nodes): &Stretch| if interval.contains(piece) { *nodes } else { 0 };
        let most = offers.iter().map(at).max().unwrap_or(0);
        most.saturating_sub(base.iter().map(at).sum())
    })
}

/// The nodes that `more` keeps beyond `less`, in order of time. Both as [`held_stretches`] makes them.
pub fn stretches_held_beyond(more: &[Stretch], less: &[Stretch]) -> Vec<Stretch> {
    combine_stretches(more, less, |piece| {
        let at = |all: &[Stretch]| {
            let found = all.iter().find(|(interval, _)| interval.contains(piece));
            found.map_or(0, |(_, nodes)| *nodes)
        };
        at(more).saturating_sub(at(less))
    })
}

/// The stretches in which there are nodes, where `nodes` counts them between any two neighbouring borders of `one` and `other`.
fn combine_stretches(one: &[Stretch], other: &[Stretch], nodes: impl Fn(Interval) -> u32) -> Vec<Stretch> {
    let all = one.iter().chain(other);
    let borders: BTreeSet<Time> = all.flat_map(|(each, _)| [each.start, each.end]).collect();
    let borders: Vec<Time> = borders.into_iter().collect();
    let mut found: Vec<Stretch> = Vec::new();
    for pair in borders.windows(2) {
        let piece = Interval::new(pair[0], pair[1]);
        let nodes = nodes(piece);
        match found.last_mut() {
            _ if nodes == 0 => {}
            Some((last, same)) if last.end == piece.start && *same == nodes => last.end = piece.end,
            _ => found.push((piece, nodes)),
        }
    }
    found
}

/// Node-seconds of the first `seconds` of stretches.
pub(super) fn node_seconds_of_stretches(stretches: &[Stretch], seconds: Seconds) -> u128 {
    let mut left = seconds;
    let mut found = 0;
    for (time, nodes) in stretches {
        let taken = time.duration().clamp(0, left.max(0));
        left -= taken;
        found += u128::from(taken.unsigned_abs()) * u128::from(*nodes);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stretch(start: i64, end: i64, nodes: u32) -> Stretch {
        (Interval::new(Time(start), Time(end)), nodes)
    }

    fn at(all: &[Stretch], second: i64) -> u32 {
        let now = Interval::of(Time(second), 1);
        all.iter()
            .filter(|(each, _)| each.contains(now))
            .map(|(_, nodes)| *nodes)
            .sum()
    }

    #[test]
    fn alternatives_keep_what_the_greatest_of_them_needs() {
        let offers = [stretch(0, 10, 2), stretch(5, 20, 3), stretch(30, 40, 1)];
        assert_eq!(
            held_stretches(&offers, &[]),
            [stretch(0, 5, 2), stretch(5, 20, 3), stretch(30, 40, 1)]
        );
        let base = [stretch(8, 35, 2)];
        let less = [
            stretch(0, 5, 2),
            stretch(5, 8, 3),
            stretch(8, 20, 1),
            stretch(35, 40, 1),
        ];
        assert_eq!(held_stretches(&offers, &base), less);
        assert_eq!(held_stretches(&[], &base), []);
        // Between two slots, nodes are kept as if there were no slots.
        let base = [stretch(0, 4, 2), stretch(8, 35, 2)];
        assert_eq!(held_stretches(&offers, &base)[0], stretch(4, 5, 2));
    }

    proptest! {
        #[test]
        fn every_second_keeps_the_most_that_an_offer_needs_there(
            offers in prop::collection::vec((0i64..30, 1i64..15, 1u32..5), 0..7),
            fewer in 0usize..7,
            base in prop::collection::vec((1i64..8, 1i64..15, 1u32..5), 0..3),
        ) {
            let make = |(from, length, nodes): (i64, i64, u32)| stretch(from, from + length, nodes);
            let offers: Vec<_> = offers.into_iter().map(make).collect();
            let mut last = 0;
            let mut after = |(gap, length, nodes): (i64, i64, u32)| {
                last += gap + length;
                stretch(last - length, last, nodes)
            };
            let base: Vec<_> = base.into_iter().map(&mut after).collect();
            let all = held_stretches(&offers, &base);
            let less = held_stretches(&offers[..fewer.min(offers.len())], &base);
            let rest = stretches_held_beyond(&all, &less);
            for second in 0..50 {
                let most = offers.iter().map(|offer| at(&[*offer], second)).max().unwrap_or(0);
                let own = at(&base, second);
                prop_assert_eq!(at(&all, second), most.saturating_sub(own));
                prop_assert_eq!(at(&rest, second), at(&all, second) - at(&less, second));
            }
        }
    }
}
