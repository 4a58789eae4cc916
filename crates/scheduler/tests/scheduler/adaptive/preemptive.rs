//! Work in pieces.

use super::occupied;
use super::plain::Plain;
use proptest::prelude::*;
use scheduler::moldable::{Law, Shapes, Sizes};
use scheduler::preemptive::{PARTS_MAX, Piece, Preemption, Rounding};
use scheduler::{Interval, SlotTree, Time};

fn window(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

fn busy(capacity: u32, busy: &[(i64, i64, u32)]) -> SlotTree {
    occupied(capacity, busy).0
}

/// Start, completion, nodes and millionths of each piece.
fn listed(pieces: &[Piece]) -> Vec<(i64, i64, u32, u32)> {
    let numbers_of = |p: &Piece| (p.interval.start.0, p.interval.end.0, p.nodes, p.work_ppm);
    pieces.iter().map(numbers_of).collect()
}

#[test]
fn the_flexibility_factor_counts_shapes() {
    let cut = |pieces, ppm, independent| Preemption::new(pieces, ppm, independent).unwrap();
    assert_eq!(Preemption::NONE.flexibility(1), 1);
    assert_eq!(Preemption::NONE.flexibility(4), 4);
    // Figure 2: five parts; all sixteen ways to cut, or at most once.
    assert_eq!(cut(5, 200_000, false).flexibility(1), 16);
    assert_eq!(cut(2, 200_000, true).flexibility(1), 5);
    assert_eq!(cut(2, 200_000, false).flexibility(3), 15);
    // Three sizes for one piece, nine for each of the four ways to make two.
    assert_eq!(cut(2, 200_000, true).flexibility(3), 39);
    assert_eq!(cut(10, 100_000, true).flexibility(4), 7_812_500);
    assert_eq!(cut(100, 10_000, true).flexibility(10_000), u64::MAX);
}

#[test]
fn a_job_that_can_stop_fills_gaps_that_are_too_short_for_it() {
    let plan = busy(4, &[(4, 2, 4), (10, 4, 4)]);
    let shapes = Shapes::rigid(4, 10).unwrap();
    let whole = Preemption::NONE.place(&plan, &shapes, &[], window(0, 40));
    assert_eq!(listed(&whole.unwrap()), [(14, 24, 4, 1_000_000)]);
    let fifths = Preemption::new(5, 200_000, true).unwrap();
    let pieces = fifths.place(&plan, &shapes, &[], window(0, 40)).unwrap();
    let starts: Vec<_> = pieces.iter().map(|p| p.interval.start.0).collect();
    assert_eq!(starts, [0, 2, 6, 8, 14]);
    assert!(pieces.iter().all(|p| p.work_ppm == 200_000 && p.nodes == 4));
}

#[test]
fn with_fewer_pieces_than_cuts_the_cuts_are_chosen() {
    // The third example of figure 2: cuts at every fifth, but two pieces.
    let plan = busy(4, &[(4, 2, 4), (10, 4, 4)]);
    let shapes = Shapes::rigid(4, 10).unwrap();
    let halves = Preemption::new(2, 200_000, true).unwrap();
    assert_eq!(halves.pieces_max(), 2);
    let pieces = halves.place(&plan, &shapes, &[], window(0, 40)).unwrap();
    // However much the first piece does before 10, the second holds at least three fifths, for which there is room from 14.
    assert_eq!(listed(&pieces), [(0, 4, 4, 400_000), (14, 20, 4, 600_000)]);
}

#[test]
fn pieces_share_one_size_unless_each_may_have_its_own() {
    // Two nodes until 10, four from then on.
    let plan = busy(4, &[(0, 10, 2)]);
    let work = Law::ConstantWork { node_seconds: 80 };
    let shapes = Shapes::new(&work, 2..=4, &Sizes::PowersOfTwo).unwrap();
    let each = Preemption::new(2, 500_000, true).unwrap();
    let pieces = each.place(&plan, &shapes, &[], window(0, 60)).unwrap();
    assert_eq!(listed(&pieces), [(10, 20, 4, 500_000), (20, 30, 4, 500_000)]);
    let quarters = Preemption::new(4, 250_000, true).unwrap();
    let pieces = quarters.place(&plan, &shapes, &[], window(0, 60)).unwrap();
    let sizes: Vec<_> = pieces.iter().map(|p| p.nodes).collect();
    assert_eq!((sizes, pieces[3].interval.end), (vec![2, 4, 4, 4], Time(25)));
    let shared = Preemption::new(4, 250_000, false).unwrap();
    let pieces = shared.place(&plan, &shapes, &[], window(0, 60)).unwrap();
    assert!(pieces.iter().all(|p| p.nodes == 4));
    assert_eq!(pieces[3].interval.end, Time(30));
}

#[test]
fn the_pieces_to_come_start_after_those_that_have_started() {
    let plan = SlotTree::new(4);
    let work = Law::ConstantWork { node_seconds: 80 };
    let shapes = Shapes::new(&work, 2..=4, &Sizes::PowersOfTwo).unwrap();
    let running = Piece {
        interval: window(0, 10),
        nodes: 2,
        work_ppm: 250_000,
    };
    let place = |independent, pieces_max, started: &[Piece]| {
        let preemption = Preemption::new(pieces_max, 250_000, independent).unwrap();
        preemption.place(&plan, &shapes, started, window(5, 60))
    };
    let rest = place(true, 4, &[running]).unwrap();
    assert_eq!(
        (rest.len(), rest[0].interval.start, rest[0].nodes),
        (3, Time(10), 4)
    );
    let rest = place(false, 4, &[running]).unwrap();
    assert!(
        rest.iter().all(|p| p.nodes == 2),
        "the first piece has settled the size"
    );
    let rest = place(true, 2, &[running]).unwrap();
    assert_eq!(listed(&rest), [(10, 25, 4, 750_000)]);
    assert_eq!(place(true, 1, &[running]), None, "no piece is left for the rest");
    let all = [running; 4];
    assert_eq!(place(true, 4, &all), Some(vec![]));
}

#[test]
fn an_interval_that_cuts_nothing_or_too_finely_is_refused() {
    assert_eq!(Preemption::new(0, 100_000, true), None);
    for interval in [0, 1_000_000 / PARTS_MAX - 1, 1_000_001, u32::MAX] {
        assert_eq!(Preemption::new(2, interval, true), None, "{interval}");
    }
    let thirds = Preemption::new(u32::MAX, 333_334, true).unwrap();
    assert_eq!((thirds.parts(), thirds.pieces_max()), (3, 3));
    let pieces = thirds.place(
        &SlotTree::new(1),
        &Shapes::rigid(1, 300).unwrap(),
        &[],
        window(0, 300),
    );
    let work: Vec<_> = pieces.unwrap().iter().map(|p| p.work_ppm).collect();
    assert_eq!(work, [333_334, 333_334, 333_332]);
}

/// The earliest completion over all cuts, sizes and starts, by trying them all.
struct Brute<'a> {
    plan: &'a Plain,
    shapes: &'a Shapes,
    interval_ppm: u32,
    parts: u32,
    /// Every cut is made.
    every_cut: bool,
    rounding: Rounding,
    deadline: i64,
}

/// The seconds from cut to cut, or of the share between them.
fn seconds(shapes: &Shapes, nodes: u32, (from, to): (u32, u32), rounding: Rounding) -> i64 {
    let at = |ppm| match ppm {
        0 => 0,
        1_000_000 => shapes.duration(nodes, ppm).expect("an allowed size"),
        ppm => {
            let whole = shapes.duration(nodes, 1_000_000).expect("an allowed size");
            // Halves to even, in whole numbers.
            let (seconds, rest) = (
                whole * i64::from(ppm) / 1_000_000,
                whole * i64::from(ppm) % 1_000_000,
            );
            seconds + i64::from(rest > 500_000 || rest == 500_000 && seconds % 2 == 1)
        }
    };
    match rounding {
        Rounding::Pieces => shapes.duration(nodes, to - from).expect("an allowed size"),
        Rounding::Cuts => at(to) - at(from),
        Rounding::Up => {
            let whole = shapes.duration(nodes, 1_000_000).expect("an allowed size");
            ((whole * i64::from(to - from) + 999_999) / 1_000_000).max(1)
        }
    }
}

impl Brute<'_> {
    fn completion(&self, sizes: &[u32], part: u32, pieces: u32, ready: i64) -> Option<i64> {
        if part == self.parts {
            return Some(ready);
        }
        if pieces == 0 {
            return None;
        }
        let last = if self.every_cut { part + 1 } else { self.parts };
        let mut best = None;
        for to in part + 1..=last {
            for nodes in sizes {
                let cuts = (part * self.interval_ppm, 1_000_000.min(to * self.interval_ppm));
                let duration = seconds(self.shapes, *nodes, cuts, self.rounding);
                if duration == 0 {
                    continue;
                }
                for start in ready..=self.deadline - duration {
                    if self.plan.fits(start, duration, *nodes) {
                        let rest = self.completion(sizes, to, pieces - 1, start + duration);
                        best = [best, rest].into_iter().flatten().min();
                    }
                }
            }
        }
        best
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_last_piece_completes_as_early_as_any_choice_of_cuts_sizes_and_starts_lets_it(
        occupants in prop::collection::vec((0..18_i64, 1..5_i64, 1..=4_u32), 0..7),
        table in prop::collection::btree_map(1..=4_u32, 2..12_i64, 1..3),
        pieces_max in 1..=4_u32,
        interval_ppm in prop::sample::select(vec![250_000, 300_000, 333_334, 500_000, 1_000_000]),
        independent: bool,
        rounding in prop::sample::select(vec![Rounding::Pieces, Rounding::Cuts, Rounding::Up]),
        ready in 0..4_i64,
        deadline in 4..18_i64,
    ) {
        let (tree, plain) = occupied(4, &occupants);
        let shapes = Shapes::new(&Law::Table(table.clone()), 1..=4, &Sizes::Every).unwrap();
        let preemption = Preemption::new(pieces_max, interval_ppm, independent).unwrap().rounded(rounding);
        let brute = Brute {
            plan: &plain,
            shapes: &shapes,
            interval_ppm,
            parts: preemption.parts(),
            every_cut: pieces_max >= preemption.parts(),
            rounding,
            deadline,
        };
        let sizes: Vec<u32> = table.keys().copied().collect();
        let best = if independent {
            brute.completion(&sizes, 0, pieces_max, ready)
        } else {
            let one = |nodes: &u32| brute.completion(&[*nodes], 0, pieces_max, ready);
            sizes.iter().filter_map(one).min()
        };
        let found = preemption.place(&tree, &shapes, &[], window(ready, deadline));
        prop_assert_eq!(found.as_ref().map(|p| p.last().unwrap().interval.end.0), best);
        let Some(pieces) = found else { return Ok(()) };
        prop_assert!(pieces.len() <= pieces_max as usize);
        prop_assert_eq!(pieces.iter().map(|p| p.work_ppm).sum::<u32>(), 1_000_000);
        let mut done = (ready, 0);
        for piece in &pieces {
            let (start, duration) = (piece.interval.start.0, piece.interval.duration());
            prop_assert!(start >= done.0, "{:?}", pieces);
            prop_assert_eq!(done.1 % interval_ppm, 0, "cut where it may be");
            prop_assert!(plain.fits(start, duration, piece.nodes));
            let cuts = (done.1, done.1 + piece.work_ppm);
            prop_assert_eq!(seconds(&shapes, piece.nodes, cuts, rounding), duration);
            prop_assert!(independent || piece.nodes == pieces[0].nodes);
            done = (piece.interval.end.0, done.1 + piece.work_ppm);
        }
        if rounding == Rounding::Up {
            // Shares of the work in millionths, by the part that fits in the seconds of each piece.
            let done = |p: &Piece| {
                let whole = shapes.duration(p.nodes, 1_000_000).expect("an allowed size");
                p.interval.duration() * 1_000_000 >= whole * i64::from(p.work_ppm)
            };
            prop_assert!(pieces.iter().all(done), "{:?}", pieces);
        }
        if rounding == Rounding::Cuts && pieces.iter().all(|p| p.nodes == pieces[0].nodes) {
            let together: i64 = pieces.iter().map(|p| p.interval.duration()).sum();
            prop_assert_eq!(Some(together), shapes.duration(pieces[0].nodes, 1_000_000));
        }
    }
}
