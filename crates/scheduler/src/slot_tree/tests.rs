//! Facts about the slot tree, against a vector of per-second counts.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the seconds of short horizons fit every integer"
)]

use super::steps::Steps;
use super::summary::Summary;
use super::{LEFT, NIL, OWN, RIGHT, SUBTREE, SlotError, SlotTree};
use crate::time::{Interval, Seconds, Time};
use proptest::prelude::*;

/// The naive plan: free nodes of each second of a short horizon.
struct PerSecond {
    capacity: u32,
    begin: i64,
    free: Vec<u32>,
}

impl PerSecond {
    fn seconds(&self, interval: Interval) -> std::ops::Range<usize> {
        let start = interval.start.0.max(self.begin).clamp(0, self.free.len() as i64);
        let end = interval.end.0.clamp(start, self.free.len() as i64);
        start as usize..end as usize
    }

    fn reserve(&mut self, interval: Interval, nodes: u32) -> bool {
        let seconds = self.seconds(interval);
        let fits = self.free[seconds.clone()].iter().all(|f| *f >= nodes);
        if fits {
            self.free[seconds].iter_mut().for_each(|f| *f -= nodes);
        }
        fits
    }

    fn release(&mut self, interval: Interval, nodes: u32) -> bool {
        let seconds = self.seconds(interval);
        let fits = self.free[seconds.clone()]
            .iter()
            .all(|f| f + nodes <= self.capacity);
        if fits {
            self.free[seconds].iter_mut().for_each(|f| *f += nodes);
        }
        fits
    }

    fn resize(&mut self, capacity: u32) -> bool {
        let fits = |free: &u32| free + capacity >= self.capacity;
        let all_fit = self.free[self.begin as usize..].iter().all(fits) && fits(&self.capacity);
        if all_fit {
            let before = std::mem::replace(&mut self.capacity, capacity);
            self.free.iter_mut().for_each(|f| *f = *f + capacity - before);
        }
        all_fit
    }

    fn forget(&mut self, before: i64) {
        self.begin = self.begin.max(before);
        let capacity = self.capacity;
        self.free[..self.begin as usize]
            .iter_mut()
            .for_each(|f| *f = capacity);
    }

    fn fits(&self, start: i64, nodes: u32, duration: Seconds) -> bool {
        start >= self.begin && (start..start + duration).all(|t| self.free[t as usize] >= nodes)
    }

    fn gaps(&self, interval: Interval, nodes: u32) -> Vec<Interval> {
        let mut gaps: Vec<Interval> = Vec::new();
        for t in self.seconds(interval) {
            if self.free[t] >= nodes {
                let second = Interval::of(Time(t as i64), 1);
                match gaps.last_mut() {
                    Some(gap) if gap.end == second.start => gap.end = second.end,
                    _ => gaps.push(second),
                }
            }
        }
        gaps
    }
}

impl SlotTree {
    /// The invariants of the red-black tree and of every sum, computed from scratch.
    fn check(&self) {
        assert!(!self.nodes[self.root as usize].red, "the root is red");
        assert_eq!(self.nodes[self.root as usize].parent, NIL);
        let neutral = &self.nodes[NIL as usize];
        assert!(!neutral.red && neutral.pending == 0 && neutral.child == [NIL; 2] && neutral.len == 0);
        for kept in &self.sums[NIL as usize] {
            assert_eq!(kept.get(), Summary::NEUTRAL);
        }
        assert_eq!(self.steps[NIL as usize], [Steps::default(); 2]);
        let mut order = Vec::new();
        self.check_subtree(self.root, &mut order);
        let mut before = NIL;
        for &x in &order {
            assert_eq!(self.nodes[x as usize].beside[LEFT], before);
            if before != NIL {
                assert_eq!(self.nodes[before as usize].beside[RIGHT], x);
            }
            before = x;
        }
        assert_eq!(self.nodes[before as usize].beside[RIGHT], NIL);
        let steps: Vec<_> = self.steps().collect();
        assert_eq!(steps[0], (Time::MIN, self.capacity()));
        assert_eq!(
            steps[steps.len() - 1].1,
            self.capacity(),
            "the far future is free"
        );
        for pair in steps.windows(2) {
            assert!(pair[0].0 < pair[1].0, "slots are in order");
            assert_ne!(pair[0].1, pair[1].1, "equal neighbours are merged");
        }
    }

    /// The black height of subtree `x`; appends its nodes in order.
    fn check_subtree(&self, x: u32, order: &mut Vec<u32>) -> usize {
        if x == NIL {
            return 1;
        }
        let node = &self.nodes[x as usize];
        let [l, r] = node.child;
        let left = self.check_subtree(l, order);
        order.push(x);
        let right = self.check_subtree(r, order);
        assert_eq!(left, right, "black heights differ");
        for child in [l, r] {
            assert!(!(node.red && self.nodes[child as usize].red), "two reds in a row");
            assert!(child == NIL || self.nodes[child as usize].parent == x);
        }
        assert!(node.len > 0);
        let block = &self.blocks[x as usize];
        assert_eq!(node.start, block.starts[0]);
        let mut own = Summary::of(block, node.len, self.block_end(x));
        own.shift(node.offset);
        let kept = self.sums[x as usize][OWN].get();
        assert_eq!((own.min, own.reach[0]), (kept.min, kept.reach[0]));
        if self.sums[x as usize][OWN].loose() {
            assert!(
                own.reach
                    .iter()
                    .zip(&kept.reach)
                    .all(|(exact, bound)| exact <= bound)
            );
        } else {
            assert_eq!(own, kept);
        }
        let mut sum = kept;
        for child in [l, r] {
            sum = sum.join(&self.sums[child as usize][SUBTREE].get());
        }
        sum.shift(node.pending);
        assert_eq!(sum, self.sums[x as usize][SUBTREE].get());
        let below = self.steps[l as usize][SUBTREE].plus(self.steps[r as usize][SUBTREE]);
        assert_eq!(
            self.steps[x as usize][SUBTREE],
            self.steps[x as usize][OWN].plus(below)
        );
        left + usize::from(!node.red)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(i64, Seconds, u32),
    Release(i64, Seconds, u32),
    Place(i64, Seconds, u32),
    PlaceLate(i64, Seconds, u32),
    Undo(usize),
    Forget(i64),
    Resize(u32),
}

const HORIZON: i64 = 160;

fn step() -> impl Strategy<Value = Step> {
    let span = || (0..HORIZON, 1..30_i64, 1..7_u32);
    prop_oneof![
        4 => span().prop_map(|(s, d, n)| Step::Reserve(s, d, n)),
        1 => span().prop_map(|(s, d, n)| Step::Release(s, d, n)),
        4 => span().prop_map(|(s, d, n)| Step::Place(s, d, n)),
        4 => span().prop_map(|(s, d, n)| Step::PlaceLate(s, d, n)),
        5 => any::<usize>().prop_map(Step::Undo),
        1 => (0..HORIZON / 4).prop_map(Step::Forget),
        1 => (0..12_u32).prop_map(Step::Resize),
    ]
}

/// Plays one sequence on both plans, and compares them after every step.
fn play(capacity: u32, steps: &[Step], stretch: i64) {
    let horizon = HORIZON * stretch + 1;
    let mut tree = SlotTree::new(capacity);
    let mut naive = PerSecond {
        capacity,
        begin: 0,
        free: vec![capacity; horizon as usize],
    };
    tree.forget(Time(0));
    let mut live: Vec<(Interval, u32)> = Vec::new();
    for step in steps {
        match *step {
            Step::Reserve(s, d, n) => {
                let interval = Interval::new(Time(s * stretch), Time(((s + d) * stretch).min(horizon)));
                let done = tree.reserve(interval, n).is_ok();
                assert_eq!(done, naive.reserve(interval, n), "{step:?}");
                if done {
                    live.push((interval, n));
                }
            }
            Step::Release(s, d, n) => {
                let interval = Interval::new(Time(s * stretch), Time(((s + d) * stretch).min(horizon)));
                let done = tree.release(interval, n).is_ok();
                assert_eq!(done, naive.release(interval, n), "{step:?}");
                // The nodes released here may have been another's: then that one can no longer be undone.
                if done {
                    live.clear();
                }
            }
            Step::Place(s, d, n) | Step::PlaceLate(s, d, n) => {
                let d = d * stretch;
                let window = Interval::new(Time(s * stretch), Time(horizon));
                let starts = window.start.0..=window.end.0 - d;
                let (found, expected) = if matches!(step, Step::Place(..)) {
                    (
                        tree.earliest_fit(n, d, window),
                        starts.clone().find(|t| naive.fits(*t, n, d)),
                    )
                } else {
                    (
                        tree.latest_fit(n, d, window),
                        starts.clone().rev().find(|t| naive.fits(*t, n, d)),
                    )
                };
                assert_eq!(
                    found.map(|t| t.0),
                    expected.filter(|_| n <= naive.capacity),
                    "{step:?}"
                );
                if let Some(start) = found {
                    let interval = Interval::of(start, d);
                    tree.reserve(interval, n)
                        .expect("a slot that fits can be reserved");
                    assert!(naive.reserve(interval, n));
                    live.push((interval, n));
                }
            }
            Step::Undo(k) => {
                if !live.is_empty() {
                    let (interval, n) = live.swap_remove(k % live.len());
                    tree.release(interval, n)
                        .expect("a reserved slot can be released");
                    assert!(naive.release(interval, n));
                }
            }
            Step::Forget(t) => {
                tree.forget(Time(t * stretch));
                naive.forget(t * stretch);
            }
            Step::Resize(to) => assert_eq!(tree.resize(to).is_ok(), naive.resize(to), "{step:?}"),
        }
        tree.check();
        compare(&tree, &naive);
    }
}

/// The step function and every query of one interval, second by second.
fn compare(tree: &SlotTree, naive: &PerSecond) {
    let horizon = naive.free.len() as i64;
    let mut per_second = Vec::with_capacity(naive.free.len());
    let steps: Vec<_> = tree.steps().collect();
    for (i, (start, free)) in steps.iter().enumerate() {
        let end = steps.get(i + 1).map_or(horizon, |next| next.0.0);
        per_second.extend((start.0.max(0)..end).map(|_| *free));
    }
    assert_eq!(per_second, naive.free);
    let interval = Interval::new(Time(horizon / 5), Time(horizon * 3 / 4));
    let seconds = 0..naive.free.len();
    let inside = (horizon / 5) as usize..(horizon * 3 / 4) as usize;
    assert_eq!(
        tree.min_free(interval),
        *naive.free[inside.clone()].iter().min().unwrap()
    );
    assert_eq!(
        tree.min_free(Interval::of(interval.start, 1)),
        naive.free[inside.start]
    );
    let busy = |range: std::ops::Range<usize>| -> u64 {
        naive.free[range]
            .iter()
            .map(|f| u64::from(naive.capacity - f))
            .sum()
    };
    assert_eq!(tree.busy_area(interval), busy(inside.clone()));
    assert_eq!(tree.busy_area(Interval::new(Time::MIN, Time::MAX)), busy(seconds));
    let free = naive.free[inside.start];
    assert_eq!(tree.free_at(interval.start), free);
    for nodes in [1, naive.capacity.div_ceil(2), naive.capacity] {
        assert_eq!(
            tree.search_gaps(interval, nodes).collect::<Vec<_>>(),
            naive.gaps(interval, nodes)
        );
        if nodes <= free {
            let blocked = |second: &u32| *second < nodes;
            let start = naive.free[..inside.start].iter().rposition(blocked);
            let end = naive.free[inside.start..].iter().position(blocked);
            let start = start.map_or(Time(0), |before| Time(before as i64 + 1));
            let end = end.map_or(Time::MAX, |more| interval.start + more as i64);
            assert_eq!(
                tree.free_run_around(nodes, interval.start, Time(0)),
                Interval::new(start, end)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// With a stretch the runs reach the durations of the summary's classes, so that gaps are really skipped.
    #[test]
    fn equals_a_vector_of_seconds(
        capacity in 1_u32..9,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        play(capacity, &steps, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn equals_a_vector_of_seconds_over_days(
        capacity in 1_u32..9,
        steps in prop::collection::vec(step(), 60..90),
    ) {
        play(capacity, &steps, 600);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn reserve_then_release_restores_the_plan(
        capacity in 1_u32..9,
        spans in prop::collection::vec((0..HORIZON, 1..60_i64, 1..5_u32), 1..60),
        more in prop::collection::vec((0..HORIZON, 1..60_i64, 1..5_u32), 1..60),
    ) {
        let mut tree = SlotTree::new(capacity);
        for (s, d, n) in spans {
            // Whether it fits does not matter here.
            let _ = tree.reserve(Interval::of(Time(s), d), n);
        }
        let before: Vec<_> = tree.steps().collect();
        let mut taken = Vec::new();
        for (s, d, n) in more {
            let interval = Interval::of(Time(s), d);
            if tree.reserve(interval, n).is_ok() {
                taken.push((interval, n));
            }
        }
        for (interval, n) in taken {
            tree.release(interval, n).unwrap();
        }
        tree.check();
        prop_assert_eq!(before, tree.steps().collect::<Vec<_>>());
    }
}

#[test]
fn a_failed_change_leaves_the_plan_as_it_was() {
    let mut tree = SlotTree::new(4);
    tree.reserve(Interval::new(Time(10), Time(20)), 3).unwrap();
    let before: Vec<_> = tree.steps().collect();
    let wide = Interval::new(Time(0), Time(30));
    assert_eq!(tree.reserve(wide, 2), Err(SlotError::NotFree { free: 1 }));
    assert_eq!(tree.release(wide, 1), Err(SlotError::NotReserved { used: 0 }));
    assert_eq!(
        tree.reserve(Interval::new(Time(5), Time(5)), 1),
        Err(SlotError::Interval)
    );
    assert_eq!(
        tree.reserve(Interval::new(Time(5), Time::MAX), 1),
        Err(SlotError::Interval)
    );
    assert_eq!(before, tree.steps().collect::<Vec<_>>());
}

#[test]
fn more_nodes_than_there_are_never_fit() {
    let tree = SlotTree::new(4);
    let window = Interval::new(Time(0), Time(100));
    assert_eq!(tree.earliest_fit(5, 1, window), None);
    assert_eq!(tree.latest_fit(u32::MAX, 1, window), None);
    assert_eq!(tree.earliest_fit(4, 101, window), None);
    assert_eq!(tree.earliest_fit(4, 0, window), None);
    assert_eq!(tree.earliest_fit(4, 100, window), Some(Time(0)));
}

#[test]
fn the_largest_capacity_does_not_overflow() {
    let mut tree = SlotTree::new(super::MAX_CAPACITY);
    for k in 0..100 {
        tree.reserve(Interval::of(Time(k * 10), 10 + k % 7), super::MAX_CAPACITY / 2)
            .unwrap();
    }
    tree.check();
    let year = Interval::of(Time(1_700_000_000), 31_536_000);
    tree.reserve(year, super::MAX_CAPACITY).unwrap();
    assert_eq!(tree.busy_area(year), u64::from(super::MAX_CAPACITY) * 31_536_000);
}

#[test]
fn a_tree_can_be_shared_and_sent() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<SlotTree>();
}
