//! The slot tree places a few thousand reservations where a plain walk over an ordered map does, through load, queries,
//! bulk changes and churn, in a sparse, a wide and a packed plan.

#[path = "../../benches/planner/peers.rs"]
mod peers;

use self::peers::{OrderedMap, SortedVec};
use scheduler::measure::{Clocks, MeasuredExtent, MeasuredPlan, Row, measure_replay};
use scheduler::{Interval, Seconds, SlotTree, Time};
use std::cell::RefCell;

/// Notes every answer of the plan inside.
struct RecordingPlan<P> {
    plan: P,
    answers: RefCell<Vec<Option<Time>>>,
}

impl<P: MeasuredPlan> MeasuredPlan for RecordingPlan<P> {
    fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        let start = self.plan.earliest_fit(nodes, duration, window);
        self.answers.borrow_mut().push(start);
        start
    }

    fn reserve(&mut self, interval: Interval, nodes: u32) {
        self.plan.reserve(interval, nodes);
    }

    fn release(&mut self, interval: Interval, nodes: u32) {
        self.plan.release(interval, nodes);
    }

    fn memory_bytes(&self) -> usize {
        self.plan.memory_bytes()
    }
}

fn answers(
    plan: impl MeasuredPlan,
    requests: &[Row],
    queries: &[Row],
    extent: MeasuredExtent,
) -> Vec<Option<Time>> {
    let mut noted = RecordingPlan {
        plan,
        answers: RefCell::default(),
    };
    let clocks = Clocks {
        cpu: &|| 0,
        wall: &|| 0,
        budget: None,
    };
    let outcome = measure_replay(&mut noted, requests, queries, extent, &clocks);
    let placed = outcome.starts.iter().flatten().count();
    assert_eq!(placed, outcome.live);
    noted.answers.into_inner()
}

fn rows(count: u64, mut state: u64) -> Vec<Row> {
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 32) * below) >> 32
    };
    let mut bits = || u32::try_from(next(1 << 32)).expect("32 bits");
    (0..count)
        .map(|id| Row {
            id,
            ready: bits(),
            nodes: bits() % 64 + 1,
            duration: i64::from(bits() % 64_741) + 60,
            victim: bits(),
        })
        .collect()
}

fn check(capacity: u32, horizon: Seconds, ready_window: Seconds) {
    let requests = rows(3_000, 1);
    let queries = rows(23_000, 2);
    let extent = MeasuredExtent {
        horizon,
        ready_window,
    };
    let tree = answers(SlotTree::new(capacity), &requests, &queries, extent);
    let map = answers(OrderedMap::new(capacity), &requests, &queries, extent);
    let vec = answers(SortedVec::new(capacity), &requests, &queries, extent);
    assert_eq!(tree.len(), map.len());
    assert!(
        tree == map,
        "first difference at {:?}",
        tree.iter().zip(&map).position(|(a, b)| a != b)
    );
    assert!(tree == vec);
    assert!(tree.iter().flatten().count() > 3_000);
}

#[test]
fn a_sparse_plan() {
    check(128, 3_000 * 12_960, 3_000 * 12_960 - 604_800);
}

#[test]
fn a_wide_plan() {
    check(640, 7_776_000, 7_776_000 - 604_800);
}

#[test]
fn a_packed_backlog() {
    check(128, 3_000 * 12_960, 0);
}
