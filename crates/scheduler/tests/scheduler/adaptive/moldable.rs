//! The sizes that a law allows, and the choice among them.

use super::occupied;
use super::plain::HORIZON;
use proptest::prelude::*;
use scheduler::moldable::{DURATION_MAX, Law, SIZES_MAX, ShapeError, Shapes, Sizes};
use scheduler::{Interval, SlotTree, Time};
use std::collections::BTreeMap;

fn listed(shapes: &Shapes) -> Vec<(u32, i64)> {
    shapes.iter().collect()
}

#[test]
fn a_line_gives_the_durations_of_the_evaluation() {
    // Table 1 of the paper: T^max = T^min·R^max/R^min, so 18,070 s on 16 nodes are 22,240 s on 13.
    let shapes = Shapes::scaled(18_070, 13..=16, &Sizes::Every).unwrap();
    assert_eq!(
        listed(&shapes),
        [(16, 18_070), (15, 19_460), (14, 20_850), (13, 22_240)]
    );
    let line = Law::Linear { k: 100.0, c: 2.25 };
    let shapes = Shapes::new(&line, 2..=4, &Sizes::Every).unwrap();
    // 95.5, 93.25 and 91 seconds; half a second goes to the even one.
    assert_eq!(listed(&shapes), [(4, 91), (3, 93), (2, 96)]);
}

#[test]
fn constant_work_is_covered_and_a_table_is_taken_as_it_is() {
    let work = Law::ConstantWork { node_seconds: 1_000 };
    let shapes = Shapes::new(&work, 3..=8, &Sizes::PowersOfTwo).unwrap();
    assert_eq!(listed(&shapes), [(8, 125), (4, 250)]);
    let shapes = Shapes::new(&work, 3..=8, &Sizes::List(vec![7, 3, 40, 7])).unwrap();
    assert_eq!(listed(&shapes), [(7, 143), (3, 334)]);
    let table = Law::Table(BTreeMap::from([(2, 50), (5, 30), (9, 10)]));
    let shapes = Shapes::new(&table, 1..=8, &Sizes::Every).unwrap();
    assert_eq!(listed(&shapes), [(5, 30), (2, 50)]);
    assert_eq!(shapes.largest(), (5, 30));
    assert_eq!(shapes.smallest(), (2, 50));
    assert_eq!(shapes.duration(5, 100_000), Some(3));
    assert_eq!(shapes.duration(4, 100_000), None);
}

#[test]
fn what_has_no_shape_is_said_and_not_guessed() {
    let work = Law::ConstantWork { node_seconds: 1_000 };
    let none = |bounds, sizes: &Sizes| Shapes::new(&work, bounds, sizes).unwrap_err();
    assert_eq!(none(0..=4, &Sizes::Every), ShapeError::NoSize);
    assert_eq!(none(5..=7, &Sizes::PowersOfTwo), ShapeError::NoSize);
    assert_eq!(none(1..=u32::MAX, &Sizes::PowersOfTwo), ShapeError::NoSize);
    assert_eq!(none(1..=20_000, &Sizes::Every), ShapeError::TooManySizes);
    assert_eq!(
        none(1..=4, &Sizes::List(vec![1; SIZES_MAX + 1])),
        ShapeError::TooManySizes
    );
    let fades = Law::Linear { k: 10.0, c: 2.0 };
    assert_eq!(
        Shapes::new(&fades, 1..=5, &Sizes::Every),
        Err(ShapeError::NoDuration { nodes: 5 })
    );
    for (k, c) in [(f64::NAN, 0.0), (f64::INFINITY, 0.0), (0.0, f64::NEG_INFINITY)] {
        let law = Law::Linear { k, c };
        assert_eq!(
            Shapes::new(&law, 1..=1, &Sizes::Every),
            Err(ShapeError::NoDuration { nodes: 1 })
        );
    }
    for duration in [i64::MIN, -1, 0, DURATION_MAX + 1, i64::MAX] {
        assert_eq!(
            Shapes::rigid(1, duration),
            Err(ShapeError::NoDuration { nodes: 1 })
        );
        assert_eq!(
            Shapes::scaled(duration, 1..=2, &Sizes::Every),
            Err(ShapeError::NoDuration { nodes: 2 })
        );
    }
    let nothing = Law::ConstantWork { node_seconds: 0 };
    assert_eq!(
        Shapes::new(&nothing, 3..=3, &Sizes::Every),
        Err(ShapeError::NoDuration { nodes: 3 })
    );
}

#[test]
fn of_equal_completions_the_one_on_most_nodes_is_taken() {
    let mut plan = SlotTree::new(4);
    plan.reserve(Interval::new(Time(0), Time(10)), 2).unwrap();
    // Four nodes from 10 to 20, or two nodes from 0 to 20.
    let shapes = Shapes::scaled(10, 2..=4, &Sizes::PowersOfTwo).unwrap();
    let best = shapes.earliest(&plan, Interval::new(Time(0), Time(50))).unwrap();
    assert_eq!(
        (best.nodes, best.interval),
        (4, Interval::new(Time(10), Time(20)))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_earliest_completion_of_all_sizes_and_starts_is_found(
        busy in prop::collection::vec((0..40_i64, 1..12_i64, 1..=6_u32), 0..8),
        table in prop::collection::btree_map(1..=8_u32, 1..20_i64, 1..6),
        ready in 0..20_i64,
        width in 0..30_i64,
    ) {
        let (tree, plain) = occupied(6, &busy);
        let deadline = (ready + width).min(HORIZON);
        let mut best: Option<(i64, u32)> = None;
        for (nodes, duration) in &table {
            for start in ready..=deadline - duration {
                let completion = start + duration;
                let better = best.is_none_or(|(c, n)| (completion, n) < (c, n) || (completion == c && *nodes > n));
                if plain.fits(start, *duration, *nodes) && better {
                    best = Some((completion, *nodes));
                }
            }
        }
        let shapes = Shapes::new(&Law::Table(table), 1..=8, &Sizes::Every).unwrap();
        let found = shapes.earliest(&tree, Interval::new(Time(ready), Time(deadline)));
        prop_assert_eq!(found.map(|p| (p.interval.end.0, p.nodes)), best);
        if let Some(found) = found {
            prop_assert_eq!(shapes.duration(found.nodes, 1_000_000), Some(found.interval.duration()));
            prop_assert!(found.interval.start.0 >= ready);
        }
    }

    #[test]
    fn every_shape_covers_constant_work_with_no_second_to_spare(
        node_seconds in 1..1_000_000_u64,
        least in 1..50_u32,
        more in 0..50_u32,
    ) {
        let bounds = least..=least + more;
        let shapes = Shapes::new(&Law::ConstantWork { node_seconds }, bounds.clone(), &Sizes::Every).unwrap();
        prop_assert_eq!(shapes.len(), bounds.count());
        for (nodes, duration) in shapes.iter() {
            let (nodes, duration) = (u64::from(nodes), duration.cast_unsigned());
            prop_assert!(nodes * duration >= node_seconds);
            prop_assert!(nodes * (duration - 1) < node_seconds);
        }
    }
}
