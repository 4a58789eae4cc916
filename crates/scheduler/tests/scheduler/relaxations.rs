//! Each relaxation, applied alone to the same plan, is accepted; and a smaller one would not be.

use proptest::prelude::*;
use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Decision, Interval, Order, Request, Schedule, Seconds, Time};

const CAPACITY: u32 = 6;
const END: i64 = 300;

fn request(id: u64, ready: i64, deadline: i64, duration: Seconds, nodes: u32) -> Request {
    Request {
        id,
        submitted: Time(0),
        ready: Time(ready),
        deadline: Time(deadline),
        duration,
        nodes,
        revenue: 0,
    }
}

fn accepts(schedule: &Schedule, request: &Request) -> bool {
    let decision = schedule.clone().submit(schedule.now(), request);
    matches!(decision, Decision::Accepted { .. })
}

/// Whether a request fits the plan as it stands, tried second by second.
fn fits(schedule: &Schedule, r: &Request, bounds: &Bounds) -> bool {
    let first = r.ready.max(bounds.times.start).max(schedule.now());
    let last = r.deadline.min(bounds.times.end) - r.duration;
    r.duration > 0
        && (first.0..=last.0).any(|s| schedule.tree().min_free(Interval::of(Time(s), r.duration)) >= r.nodes)
}

/// The request with a relaxation one step smaller.
fn smaller(relaxation: Relaxation) -> Vec<Relaxation> {
    match relaxation {
        Relaxation::Deadline(t) => vec![Relaxation::Deadline(t - 1)],
        Relaxation::Ready(t) => vec![Relaxation::Ready(t + 1)],
        Relaxation::Nodes(n) => vec![Relaxation::Nodes(n + 1)],
        Relaxation::Duration(d) => vec![Relaxation::Duration(d + 1)],
        Relaxation::NodesAndDeadline(n, t) => {
            vec![
                Relaxation::NodesAndDeadline(n + 1, Time(END)),
                Relaxation::NodesAndDeadline(n, t - 1),
            ]
        }
        Relaxation::NodesAndReady(n, t) => {
            vec![
                Relaxation::NodesAndReady(n + 1, Time(0)),
                Relaxation::NodesAndReady(n, t + 1),
            ]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn each_is_accepted_and_smallest(
        booked in prop::collection::vec((0..240_i64, 1..60_i64, 1..=CAPACITY), 0..40),
        asked in (0..250_i64, 1..80_i64, -20..40_i64, 1..=CAPACITY + 2),
        nodes_min in 0..4_u32,
        duration_min in 0..20_i64,
        now in 0..40_i64,
        steps in (1..30_i64, 1..3_u32),
    ) {
        let mut schedule = Schedule::new(CAPACITY, Order::Edf);
        for (id, (start, duration, nodes)) in (1_u64..).zip(booked) {
            schedule.submit(Time(0), &request(id, start, start + duration, duration, nodes));
        }
        schedule.advance(Time(now));
        let (ready, duration, slack, nodes) = asked;
        let refused = request(0, ready, ready + duration + slack, duration, nodes);
        let times = Interval::new(Time(0), Time(END));
        let bounds = Bounds { times, nodes_min, duration_min };
        let found = schedule.relaxations(&refused, &bounds);
        if fits(&schedule, &refused, &bounds) {
            prop_assert!(found.is_empty());
            return Ok(());
        }
        for relaxation in &found {
            let relaxed = relaxation.applied(&refused);
            prop_assert!(accepts(&schedule, &relaxed), "{relaxation:?} of {refused:?}");
            for less in smaller(*relaxation) {
                let less = less.applied(&refused);
                prop_assert!(!fits(&schedule, &less, &bounds), "{relaxation:?} of {refused:?} is not the smallest");
            }
            if let Some(coarse) = relaxation.coarsened(steps.0, steps.1, &bounds) {
                prop_assert!(accepts(&schedule, &coarse.applied(&refused)), "{coarse:?} of {refused:?}");
            }
        }
        // None is left out: any change of one value that fits is answered by one of its kind.
        let kind = |wanted: fn(&Relaxation) -> bool| found.iter().any(wanted);
        let single = [
            (Relaxation::Deadline(Time(END)), kind(|r| matches!(r, Relaxation::Deadline(_)))),
            (Relaxation::Ready(Time(0)), kind(|r| matches!(r, Relaxation::Ready(_)))),
            (Relaxation::Nodes(nodes_min.max(1)), kind(|r| matches!(r, Relaxation::Nodes(_)))),
            (Relaxation::Duration(duration_min.max(1)), kind(|r| matches!(r, Relaxation::Duration(_)))),
        ];
        for (widest, answered) in single {
            let relaxed = widest.applied(&refused);
            if widest != Relaxation::Nodes(nodes) && relaxed.duration <= duration && relaxed.nodes <= nodes {
                let possible = fits(&schedule, &relaxed, &bounds);
                prop_assert_eq!(possible, answered, "{:?} of {:?}", widest, refused);
            }
        }
    }
}

#[test]
fn a_full_window_is_answered_with_every_single_relaxation() {
    let mut schedule = Schedule::new(4, Order::Fifo);
    schedule.submit(Time(0), &request(0, 100, 200, 100, 3));
    let refused = request(1, 110, 190, 60, 2);
    let bounds = Bounds {
        times: Interval::new(Time(0), Time(1_000)),
        nodes_min: 1,
        duration_min: 1,
    };
    let expected = [
        Relaxation::Deadline(Time(260)),
        Relaxation::Ready(Time(40)),
        Relaxation::Nodes(1),
    ];
    assert_eq!(schedule.relaxations(&refused, &bounds), expected);
    let hours = Relaxation::Deadline(Time(260)).coarsened(3_600, 1, &bounds);
    assert_eq!(hours, None, "the next full hour lies beyond the bounds");
}

#[test]
fn where_no_single_relaxation_is_enough_one_of_two_is_offered() {
    let mut schedule = Schedule::new(4, Order::Fifo);
    // The rest of time has two nodes free, and the window none.
    schedule.submit(Time(0), &request(0, 0, 1_000, 1_000, 2));
    schedule.submit(Time(0), &request(1, 100, 200, 100, 2));
    let refused = request(2, 100, 200, 100, 3);
    let bounds = Bounds {
        times: Interval::new(Time(0), Time(1_000)),
        nodes_min: 1,
        duration_min: 1,
    };
    let expected = [Relaxation::NodesAndDeadline(2, Time(300))];
    assert_eq!(schedule.relaxations(&refused, &bounds), expected);
}
