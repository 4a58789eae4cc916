//! Time that becomes free is used: after all slices no waiting request could start earlier by moving alone.

use super::*;
use crate::request::Request;
use crate::schedule::DecisionRule;
use crate::{Fraction, Order};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
enum Step {
    /// A request with times from now, after this many seconds.
    Submit(i64, Request),
    /// Takes the k-th placement out.
    Vacate(i64, usize),
    /// Takes the k-th waiting request out, and puts it back with a window that begins earlier by so many seconds.
    Widen(usize, i64),
    /// Ends the k-th placement, and has the others placed again.
    End(i64, usize),
    /// Takes nodes out of use for an interval from now, where they are free.
    Block(i64, i64, u32),
    /// Gives back the k-th of what was taken out of use.
    Unblock(usize),
    /// A slice with so much work and at most so many moves, in which all requests or only two of three may move.
    Improve(i64, u64, usize, bool),
    /// The next so many steps are taken back.
    Try(usize),
    /// Another number of nodes.
    Resize(u32),
}

fn step(capacity: u32) -> impl Strategy<Value = Step> {
    let slack = prop_oneof![Just(0_i64), 0..30_i64, 0..300_i64];
    let shape = (0..40_i64, 1..25_i64, slack, 1..=capacity);
    let request = shape.prop_map(|(ready, duration, slack, nodes)| Request {
        id: 0,
        submitted: Time(0),
        ready: Time(ready),
        deadline: Time(ready + duration + slack),
        duration,
        nodes,
        revenue: 0,
    });
    prop_oneof![
        8 => (0..4_i64, request).prop_map(|(passed, request)| Step::Submit(passed, request)),
        4 => (0..4_i64, any::<usize>()).prop_map(|(passed, k)| Step::Vacate(passed, k)),
        1 => (any::<usize>(), 0..60_i64).prop_map(|(k, by)| Step::Widen(k, by)),
        1 => (0..4_i64, any::<usize>()).prop_map(|(passed, k)| Step::End(passed, k)),
        1 => (0..60_i64, 1..30_i64, 1..=capacity).prop_map(|(at, length, nodes)| Step::Block(at, length, nodes)),
        1 => any::<usize>().prop_map(Step::Unblock),
        3 => (0..4_i64, 1..400_u64, 1..6_usize, any::<bool>())
            .prop_map(|(passed, work, most, may_all)| Step::Improve(passed, work, most, may_all)),
        1 => (1..5_usize).prop_map(Step::Try),
        1 => (1..=capacity + capacity / 2).prop_map(Step::Resize),
    ]
}

/// A schedule in a story, and what is out of use.
struct Story {
    schedule: Schedule,
    blocks: Vec<(Interval, u32)>,
    next: u64,
    /// No request moves up to a start that is nearer than so many seconds.
    ahead: i64,
    /// Requests that were looked at and were not to move.
    refused: BTreeSet<u64>,
}

impl Story {
    fn kth_id(&self, k: usize) -> Option<u64> {
        let ids: Vec<u64> = self.schedule.placements().map(|placement| placement.id).collect();
        ids.get(k % ids.len().max(1)).copied()
    }

    fn go_on(&mut self, step: &Step, now: &mut Time, is_tried: bool) {
        let schedule = &mut self.schedule;
        match *step {
            Step::Submit(passed, request) => {
                *now = *now + passed;
                self.next += 1;
                let request = Request {
                    id: self.next,
                    submitted: *now,
                    ready: *now + request.ready.0,
                    deadline: *now + request.deadline.0,
                    ..request
                };
                schedule.submit(*now, &request);
            }
            Step::Vacate(passed, k) => {
                *now = *now + passed;
                if let Some(id) = self.kth_id(k) {
                    self.schedule.vacate(*now, id);
                }
            }
            Step::Widen(k, by) => {
                let ids: Vec<u64> = schedule.waiting().map(|request| request.id).collect();
                let id = ids.get(k % ids.len().max(1));
                if let Some((request, start)) = id.and_then(|id| schedule.withdraw(*id)) {
                    let ready = request.ready - by;
                    schedule
                        .restore(&Request { ready, ..request }, start)
                        .expect("it lay there");
                }
            }
            Step::End(passed, k) => {
                *now = *now + passed;
                if let Some(id) = self.kth_id(k) {
                    self.schedule.end(*now, id);
                }
            }
            // Another number of nodes cannot be taken back.
            Step::Resize(_) if is_tried => {}
            Step::Block(at, length, nodes) => {
                let interval = Interval::of(*now + at, length);
                if schedule.block(interval, nodes).is_ok() {
                    self.blocks.push((interval, nodes));
                }
            }
            Step::Unblock(k) => {
                if !self.blocks.is_empty() {
                    let (interval, nodes) = self.blocks.swap_remove(k % self.blocks.len());
                    schedule
                        .unblock(interval, nodes)
                        .expect("it was taken out of use");
                }
            }
            Step::Improve(passed, work, most, may_all) => {
                *now = *now + passed;
                let (from, refused) = (*now + self.ahead, &mut self.refused);
                let may_move = |id: u64| {
                    let may = may_all || !id.is_multiple_of(3);
                    if !may {
                        refused.insert(id);
                    }
                    may
                };
                let improved = schedule.improve_some(*now, from, work, most, may_move);
                let moved = &improved.moved;
                assert!(moved.iter().all(|one| one.to < one.from && one.to >= from));
                assert!(moved.iter().all(|one| may_all || !one.id.is_multiple_of(3)));
                assert!(improved.moved.len() <= most);
            }
            Step::Resize(nodes) => {
                let _ = schedule.resize(nodes);
            }
            Step::Try(_) => {}
        }
    }

    /// Makes slices until there is nothing to look at.
    fn finish(&mut self, now: Time, work: u64) {
        for id in std::mem::take(&mut self.refused) {
            self.schedule.improve_again(id);
        }
        let from = now + self.ahead;
        for _ in 0..100_000 {
            if self.schedule.improve_some(now, from, work, 3, |_| true).done {
                return;
            }
        }
        panic!("slices come to an end");
    }
}

/// The first waiting request that could start earlier, from an instant on, by at least the least gain if it alone moved, and where.
fn gains_alone(schedule: &Schedule, from: Time, least: LeastGain) -> Option<(Request, Time, Time)> {
    let mut tree = schedule.tree().clone();
    let mut gaining = schedule.waiting().filter_map(|request| {
        let start = schedule.placement(request.id).expect("it waits").slot.start;
        let gain = least.of(request, start);
        tree.release(request.slot(start), request.nodes)
            .expect("it lies there");
        let ready = request.window_at(schedule.now().max(from)).start;
        let until = start + (request.duration - gain);
        let fits = until - ready >= request.duration;
        let search = || tree.earliest_fit(request.nodes, request.duration, Interval::new(ready, until));
        let to = fits.then(search).flatten();
        tree.reserve(request.slot(start), request.nodes)
            .expect("it lay there");
        Some((*request, start, to?))
    });
    gaining.next()
}

fn check((order, least): (Order, LeastGain), (capacity, ahead): (u32, i64), slice: u64, steps: &[Step]) {
    let schedule = Schedule::new(capacity, order).deciding(DecisionRule::Standing);
    let mut story = Story {
        schedule: schedule.gaining(least),
        blocks: Vec::new(),
        next: 0,
        ahead,
        refused: BTreeSet::new(),
    };
    let mut now = Time(0);
    let mut left = steps;
    while let Some((step, rest)) = left.split_first() {
        left = rest;
        if let Step::Try(count) = step {
            let (mark, blocks) = (story.schedule.note_changes(now), story.blocks.clone());
            for tried in rest.iter().take(*count) {
                story.go_on(tried, &mut now.clone(), true);
            }
            story.schedule.take_back(mark);
            story.schedule.forget_changes();
            story.blocks = blocks;
        } else {
            story.go_on(step, &mut now, false);
        }
    }
    story.finish(now, slice);
    let from = now + ahead;
    assert_eq!(gains_alone(&story.schedule, from, least), None);
    assert_eq!(story.schedule.fault(), None);
    // Nothing is looked at again.
    let again = story
        .schedule
        .improve_some(now, from, u64::MAX, usize::MAX, |_| true);
    assert_eq!((again.moved.len(), again.work), (0, 0));
    assert!(story.schedule.waiting.starts_are_kept());
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Mdf),
        Just(Order::Edf),
        Just(Order::Fifo),
        Just(Order::Lff),
        any::<u64>().prop_map(|seed| Order::Shuffle { seed })
    ]
}

fn least() -> impl Strategy<Value = LeastGain> {
    (1..12_i64, prop::sample::select(vec![0, 5, 25])).prop_map(|(seconds, percent)| LeastGain {
        seconds,
        of_wait: Fraction::percent(percent),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn after_all_slices_none_gains_by_moving_up(
        order in order(),
        least in least(),
        ahead in prop::sample::select(vec![0_i64, 0, 20]),
        slice in prop::sample::select(vec![1_u64, 30, 200, 20_000]),
        steps in prop::collection::vec(step(8), 1..60),
    ) {
        check((order, least), (8, ahead), slice, &steps);
    }

    /// From 32 nodes on, levels share runs.
    #[test]
    fn after_all_slices_none_gains_by_moving_up_on_many_nodes(
        order in order(),
        least in least(),
        ahead in prop::sample::select(vec![0_i64, 0, 20]),
        slice in prop::sample::select(vec![1_u64, 30, 200, 20_000]),
        steps in prop::collection::vec(step(200), 1..60),
    ) {
        check((order, least), (200, ahead), slice, &steps);
    }
}
