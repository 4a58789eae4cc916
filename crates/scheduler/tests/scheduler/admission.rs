//! Facts about admission that a provider or a requester cares about.

use proptest::prelude::*;
use scheduler::alternatives::{AlternativeLimits, Side};
use scheduler::schedule::{DecisionRule, LeastGain, TRIES};
use scheduler::{
    Alternative, Decision, Fraction, Interval, Move, Order, Placement, Reason, Request, Schedule, Time,
};

fn request(id: u64, submitted: i64, window: (i64, i64), duration: i64, nodes: u32) -> Request {
    Request {
        id,
        submitted: Time(submitted),
        ready: Time(window.0),
        deadline: Time(window.1),
        duration,
        nodes,
        revenue: 0,
    }
}

fn submit(schedule: &mut Schedule, request: &Request) -> Decision {
    schedule.submit(request.submitted, request)
}

fn start(schedule: &Schedule, id: u64) -> Option<i64> {
    Some(schedule.placement(id)?.slot.start.0)
}

fn accepted(decision: &Decision) -> bool {
    matches!(decision, Decision::Accepted { .. })
}

/// Three flexible requests fill the nodes from 100 on.
fn three_flexible(order: Order) -> Schedule {
    let mut schedule = Schedule::new(4, order);
    for id in 0..3 {
        assert!(accepted(&submit(
            &mut schedule,
            &request(id, 0, (100, 1_000), 100, 3)
        )));
    }
    assert_eq!(
        [0, 1, 2].map(|id| start(&schedule, id)),
        [Some(100), Some(200), Some(300)]
    );
    schedule
}

#[test]
fn flexible_reservations_move_to_let_a_rigid_one_in() {
    let mut schedule = three_flexible(Order::Edf);
    let rigid = request(3, 10, (150, 250), 100, 4);
    let decision = submit(&mut schedule, &rigid);
    let moves = [(0, 100, 250), (1, 200, 350), (2, 300, 450)];
    assert_eq!(
        decision,
        Decision::Accepted {
            placement: Placement {
                id: 3,
                slot: Interval::new(Time(150), Time(250)),
                nodes: 4
            },
            moved: moves
                .map(|(id, from, to)| Move {
                    id,
                    from: Time(from),
                    to: Time(to)
                })
                .to_vec(),
        }
    );
}

#[test]
fn first_come_first_served_moves_nobody() {
    let mut schedule = three_flexible(Order::Fifo);
    let before: Vec<_> = schedule.placements().collect();
    let decision = submit(&mut schedule, &request(3, 10, (150, 250), 100, 4));
    assert_eq!(
        decision,
        Decision::Refused {
            reason: Reason::NoCapacityInWindow,
            cut_short: false,
        }
    );
    assert_eq!(before, schedule.placements().collect::<Vec<_>>());
}

#[test]
fn a_fixed_reservation_stays_where_it_is() {
    let mut schedule = three_flexible(Order::Edf);
    assert!(schedule.fix(0));
    let decision = submit(&mut schedule, &request(3, 10, (150, 250), 100, 4));
    assert!(!accepted(&decision));
    assert!(!schedule.fix(7), "no such request");
    let mut schedule = three_flexible(Order::Edf).fixing(Some(Fraction::percent(50)));
    let decision = submit(&mut schedule, &request(3, 50, (150, 250), 100, 4));
    assert!(!accepted(&decision), "the first has waited for half its wait");
}

#[test]
fn what_runs_never_moves() {
    let mut schedule = three_flexible(Order::Edf);
    let decision = submit(&mut schedule, &request(3, 101, (150, 250), 100, 4));
    assert!(!accepted(&decision));
    assert_eq!(start(&schedule, 0), Some(100));
    schedule.advance(Time(201));
    assert_eq!(schedule.placement(0), None, "it has completed");
}

#[test]
fn the_queue_moves_up_when_one_ends_early() {
    let mut schedule = three_flexible(Order::Fifo);
    let moved = schedule.end(Time(130), 0).expect("it runs");
    assert_eq!(
        moved.iter().map(|m| (m.id, m.to.0)).collect::<Vec<_>>(),
        [(1, 130), (2, 230)]
    );
    let moved = schedule.end(Time(140), 2).expect("it waits");
    assert_eq!(moved, [], "no request waits behind it");
    assert_eq!(schedule.end(Time(140), 9), None);
}

#[test]
fn alternatives_are_the_nearest_slots_and_can_be_taken() {
    let mut schedule = Schedule::new(4, Order::Fifo);
    assert!(accepted(&submit(
        &mut schedule,
        &request(0, 0, (100, 200), 100, 3)
    )));
    let rigid = request(1, 0, (150, 190), 40, 2);
    assert!(!accepted(&submit(&mut schedule, &rigid)));
    let limits = AlternativeLimits {
        phi_max: Fraction::percent(300),
        count_max: 10,
    };
    let found = schedule.alternatives(Time(0), &rigid, limits);
    let after = Alternative {
        start: Time(200),
        deviation: 50,
        side: Side::After,
    };
    let before = Alternative {
        start: Time(60),
        deviation: 90,
        side: Side::Before,
    };
    assert_eq!(found, [after, before]);
    assert_eq!(after.deviation, 50);
    let limits = AlternativeLimits {
        phi_max: Fraction::percent(124),
        count_max: 10,
    };
    assert_eq!(schedule.alternatives(Time(0), &rigid, limits), []);
    assert!(accepted(&submit(&mut schedule, &rigid.fixed_to(Time(60)))));
}

#[test]
fn impossible_requests_are_told_why() {
    let mut schedule = Schedule::new(4, Order::Edf);
    let reason = |decision| match decision {
        Decision::Refused { reason, .. } => Some(reason),
        Decision::Accepted { .. } => None,
    };
    let mut ask =
        |window, duration, nodes| reason(submit(&mut schedule, &request(0, 50, window, duration, nodes)));
    assert_eq!(ask((100, 199), 100, 1), Some(Reason::WindowContradictory));
    assert_eq!(ask((100, 200), 0, 1), Some(Reason::WindowContradictory));
    assert_eq!(ask((100, 200), 100, 5), Some(Reason::SizeExceedsCapacity));
    assert_eq!(ask((0, 149), 100, 1), Some(Reason::WindowInThePast));
    assert_eq!(ask((0, 150), 100, 1), None);
}

/// Requests as submitted, in order of time.
fn workload(slack_max: i64) -> impl Strategy<Value = Vec<Request>> {
    let one = (0..15_i64, 0..80_i64, 1..30_i64, 0..=slack_max, 1..9_u32);
    prop::collection::vec(one, 1..40).prop_map(|rows| {
        let mut now = 0;
        let numbered = (0_u64..).zip(rows);
        numbered
            .map(|(id, (passed, wait, duration, slack, nodes))| {
                now += passed;
                request(
                    id,
                    now,
                    (now + wait, now + wait + duration + slack),
                    duration,
                    nodes,
                )
            })
            .collect()
    })
}

/// Every placement ever made, as it was at the end.
fn final_starts(order: Order, fixing: Option<Fraction>, requests: &[Request]) -> Vec<Option<Time>> {
    let mut schedule = Schedule::new(8, order).fixing(fixing);
    let mut starts = vec![None; requests.len()];
    let mut set = |id: u64, to: Time| starts[usize::try_from(id).expect("few requests")] = Some(to);
    for request in requests {
        if let Decision::Accepted { placement, moved } = submit(&mut schedule, request) {
            set(placement.id, placement.slot.start);
            for m in moved {
                set(m.id, m.to);
            }
        }
    }
    starts
}

const ORDERS: [Order; 7] = [
    Order::Fifo,
    Order::Shuffle { seed: 5 },
    Order::Bjf,
    Order::Lff,
    Order::Edf,
    Order::Mdf,
    Order::Brf,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn with_rigid_requests_every_order_gives_the_same_plan(requests in workload(0)) {
        let fifo = final_starts(Order::Fifo, None, &requests);
        for order in ORDERS {
            prop_assert_eq!(&final_starts(order, None, &requests), &fifo, "{:?}", order);
        }
    }

    #[test]
    fn fixed_at_acceptance_every_order_gives_the_plan_of_fifo(requests in workload(100)) {
        let fifo = final_starts(Order::Fifo, None, &requests);
        for order in ORDERS {
            let fixed = final_starts(order, Some(Fraction::percent(0)), &requests);
            prop_assert_eq!(&fixed, &fifo, "{:?}", order);
        }
    }
}

#[test]
fn a_newcomer_that_fits_moves_others_only_by_the_published_rule() {
    let newcomer = request(3, 10, (100, 500), 100, 3);
    for (rule, at, moved) in [
        (DecisionRule::Standing, 400, vec![]),
        (
            DecisionRule::Published,
            100,
            vec![(0, 100, 200), (1, 200, 300), (2, 300, 400)],
        ),
    ] {
        let mut schedule = three_flexible(Order::Edf).deciding(rule);
        let Decision::Accepted {
            placement,
            moved: seen,
        } = submit(&mut schedule, &newcomer)
        else {
            panic!("it fits")
        };
        assert_eq!(placement.slot.start, Time(at), "{rule}");
        let seen: Vec<_> = seen
            .iter()
            .map(|seen| (seen.id, seen.from.0, seen.to.0))
            .collect();
        assert_eq!(seen, moved, "{rule}");
    }
    // One that does not fit is let in where others move, by both.
    for rule in DecisionRule::ALL {
        let mut schedule = three_flexible(Order::Edf).deciding(rule);
        let rigid = submit(&mut schedule, &request(3, 10, (150, 250), 100, 4));
        let moved = |decision| match decision {
            Decision::Accepted { moved, .. } => moved.len(),
            Decision::Refused { .. } => 0,
        };
        let fewest = if rule == DecisionRule::Standing { 2 } else { 3 };
        assert_eq!(moved(rigid), fewest, "{rule}");
    }
}

/// `fixqueue` of algorithm 1, by hand. On one node 100 to 500 is A's, 600 to 900 is B's; 500 to 600 and 900 to 1200 stay.
///
/// The newcomer is due before A and B. Placed first, it takes 100 to 400, and A has no 400 seconds left before 1200. So it goes
/// behind A, who has his slot back, and takes 600 to 900; B, who is behind both, moves to 1200.
#[test]
fn a_newcomer_that_would_crowd_another_out_is_accepted_behind_it() {
    for rule in DecisionRule::ALL {
        let mut schedule = Schedule::new(1, Order::Edf).deciding(rule);
        for (id, (window, duration)) in (0..).zip([
            ((500, 600), 100),
            ((900, 1_200), 300),
            ((100, 1_200), 400),
            ((100, 2_000), 300),
        ]) {
            assert!(accepted(&submit(
                &mut schedule,
                &request(id, 0, window, duration, 1)
            )));
        }
        let places = |schedule: &Schedule| [0, 1, 2, 3, 4].map(|id| start(schedule, id));
        assert_eq!(
            places(&schedule),
            [Some(500), Some(900), Some(100), Some(600), None]
        );
        assert!(accepted(&submit(
            &mut schedule,
            &request(4, 0, (100, 1_000), 300, 1)
        )));
        assert_eq!(
            places(&schedule),
            [Some(500), Some(900), Some(100), Some(1_200), Some(600)],
            "{rule}"
        );
    }
}

/// Whether a decision spends its budget, and whether a refusal is tried in other orders.
const BUDGETS: [(Option<u64>, usize); 3] = [(None, 0), (Some(1), 0), (Some(100_000), TRIES)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_offer_that_fits_the_plan_as_it_stands_moves_nobody_in_any_order(requests in workload(200)) {
        for order in ORDERS {
            for (budget, tries) in BUDGETS {
                let schedule = Schedule::new(8, order).deciding(DecisionRule::Standing);
                let mut schedule = schedule.budgeted(budget).trying(tries);
                for request in &requests {
                    schedule.advance(request.submitted);
                    let window = request.window_at(request.submitted);
                    let stands = schedule.tree().earliest_fit(request.nodes, request.duration, window);
                    let asked = schedule.would_start(request.submitted, request);
                    match (stands, submit(&mut schedule, request)) {
                        (Some(start), Decision::Accepted { placement, moved }) => {
                            prop_assert_eq!(moved, vec![], "{:?}", order);
                            prop_assert_eq!(placement.slot.start, start, "{:?}", order);
                            prop_assert_eq!(asked, Some(start), "{:?}", order);
                        }
                        (Some(_), refused) => prop_assert!(false, "{:?} though it fits: {:?}", order, refused),
                        (None, _) => {}
                    }
                }
            }
        }
    }
}

/// Four nodes with one request that waits on all of them, at its only start, and one that may move a little.
fn crowded() -> Schedule {
    let mut schedule = Schedule::new(4, Order::Edf);
    for (id, ready, deadline) in [(0, 100, 200), (1, 0, 190)] {
        let request = request(id, 0, (ready, deadline), 90, 4);
        assert!(matches!(
            schedule.submit(Time(0), &request),
            Decision::Accepted { .. }
        ));
    }
    schedule
}

#[test]
fn those_whom_a_newcomer_would_displace_are_named_and_once_they_are_gone_it_fits() {
    let mut schedule = crowded();
    let newcomer = request(2, 0, (90, 185), 90, 4);
    let before: Vec<_> = schedule.placements().collect();
    assert_eq!(
        schedule.displaced(Time(0), &newcomer),
        [0],
        "the one with the later deadline"
    );
    assert_eq!(schedule.placements().collect::<Vec<_>>(), before);
    let (request, start) = schedule.withdraw(0).unwrap();
    assert_eq!((request.id, start), (0, Time(100)));
    assert_eq!(schedule.withdraw(0), None);
    assert!(matches!(
        schedule.submit(Time(0), &newcomer),
        Decision::Accepted { .. }
    ));
    assert_eq!(schedule.withdraw(7), None);
}

#[test]
fn one_that_was_withdrawn_is_put_back_where_it_was() {
    let mut schedule = crowded();
    let before: Vec<_> = schedule.placements().collect();
    let (request, start) = schedule.withdraw(0).unwrap();
    assert_eq!(schedule.tree().min_free(Interval::new(Time(100), Time(190))), 4);
    schedule.restore(&request, start).unwrap();
    assert_eq!(schedule.placements().collect::<Vec<_>>(), before);
    assert_eq!(schedule.withdraw(0), Some((request, start)));
}

/// The number of a refused request is free for the next one, which may be longer.
#[test]
fn what_was_found_out_for_a_request_does_not_hold_for_another_of_its_number() {
    let request = |id, nodes, duration, ready, slack| Request {
        id,
        submitted: Time(0),
        ready: Time(ready),
        deadline: Time(ready + duration + slack),
        duration,
        nodes,
        revenue: 0,
    };
    let mut schedule = Schedule::new(5, Order::Edf);
    for standing in [
        request(0, 4, 1, 87, 56),
        request(3, 4, 18, 53, 0),
        request(4, 4, 1, 10, 0),
    ] {
        let placed = schedule.submit(Time(0), &standing);
        assert!(matches!(placed, Decision::Accepted { .. }), "{placed:?}");
    }
    // A request left and came back, so that others are not known to lie at their first fit.
    let (left, start) = schedule.withdraw(3).unwrap();
    schedule.restore(&left, start).unwrap();
    let limits = scheduler::alternatives::AlternativeLimits {
        phi_max: scheduler::Fraction::percent(100),
        count_max: 6,
    };
    let short = request(7, 3, 29, 25, 17);
    assert!(!schedule.alternatives(Time(0), &short, limits).is_empty());
    let placed = schedule.submit(Time(0), &request(7, 3, 31, 23, 48));
    let Decision::Accepted { placement, moved } = placed else {
        panic!("{placed:?}");
    };
    assert_eq!(placement.slot, Interval::new(Time(71), Time(102)));
    assert_eq!(
        moved.iter().map(|moved| (moved.id, moved.to)).collect::<Vec<_>>(),
        [(0, Time(102))]
    );
}

#[test]
fn a_slice_of_improvement_tells_of_each_request_once() {
    let mut schedule = Schedule::new(1, Order::Edf);
    for (request, at) in [
        (request(0, 0, (10, 20), 10, 1), 10),
        (request(1, 0, (0, 200), 15, 1), 20),
        (request(2, 0, (35, 40), 5, 1), 35),
        (request(3, 0, (0, 100), 30, 1), 40),
    ] {
        schedule.restore(&request, Time(at)).unwrap();
    }
    schedule.advance(Time(0));
    schedule.vacate(Time(0), 0);
    schedule.vacate(Time(0), 2);
    // Request 3 moves to 35, request 1 from 20 to 0, and then request 3 to 15.
    let improved = schedule.improve_some(Time(0), Time::MIN, 10_000, 10, |_| true);
    let told = improved
        .moved
        .iter()
        .map(|moved| (moved.id, moved.from.0, moved.to.0));
    assert_eq!(told.collect::<Vec<_>>(), [(1, 20, 0), (3, 40, 15)]);
    assert_eq!([1, 3].map(|id| start(&schedule, id)), [Some(0), Some(15)]);
}

#[test]
fn what_one_order_refuses_another_lets_in_and_small_gains_move_nothing() {
    let newcomer = request(4, 0, (120, 130), 10, 1);
    for (tries, moves) in [(0, None), (TRIES, Some(vec![(0, 100, 130), (1, 112, 100)]))] {
        let least = LeastGain {
            seconds: 5,
            of_wait: Fraction::percent(0),
        };
        let mut schedule = Schedule::new(2, Order::Edf).trying(tries).gaining(least);
        for (request, at) in [
            (request(0, 0, (100, 142), 12, 1), 100),
            (request(1, 0, (100, 143), 20, 1), 112),
            (request(2, 0, (100, 131), 31, 1), 100),
            // A second earlier is free.
            (request(3, 0, (131, 160), 10, 1), 132),
        ] {
            schedule.restore(&request, Time(at)).unwrap();
        }
        let moved = match submit(&mut schedule, &newcomer) {
            Decision::Accepted { moved, .. } => Some(moved),
            Decision::Refused { .. } => None,
        };
        let moved = moved.map(|moved| {
            moved
                .iter()
                .map(|moved| (moved.id, moved.from.0, moved.to.0))
                .collect()
        });
        assert_eq!(moved, moves);
    }
}

#[test]
fn of_those_that_could_use_a_place_that_was_left_only_those_move_that_may() {
    for may_move in [true, false] {
        let mut schedule = Schedule::new(1, Order::Mdf).deciding(DecisionRule::Standing);
        schedule.submit(Time(0), &request(1, 0, (5_000, 40_000), 4_000, 1));
        schedule.submit(Time(0), &request(2, 0, (5_000, 40_000), 2_000, 1));
        let rigid = request(3, 0, (7_000, 9_000), 2_000, 1);
        let decided = schedule.submit_gaining(Time(0), &rigid, Time::MIN, |id| id == 2 && may_move);
        let Decision::Accepted { moved, .. } = decided else {
            panic!("{decided:?}");
        };
        let moved: Vec<_> = moved.iter().map(|one| (one.id, one.to)).collect();
        let gains = may_move.then_some((2, Time(5_000)));
        let all: Vec<_> = [(1, Time(11_000))].into_iter().chain(gains).collect();
        assert_eq!(moved, all);
    }
}

#[test]
fn no_place_that_was_left_is_used_before_the_instant_from_which_others_may_start() {
    for (not_before, gains) in [(5_000, Some(5_000)), (5_500, Some(5_500)), (8_000, None)] {
        let mut schedule = Schedule::new(1, Order::Mdf).deciding(DecisionRule::Standing);
        schedule.submit(Time(0), &request(1, 0, (5_000, 40_000), 6_000, 1));
        schedule.submit(Time(0), &request(2, 0, (5_000, 40_000), 1_000, 1));
        let rigid = request(3, 0, (9_000, 11_000), 2_000, 1);
        let decided = schedule.submit_gaining(Time(0), &rigid, Time(not_before), |_| true);
        let Decision::Accepted { moved, .. } = decided else {
            panic!("{decided:?}");
        };
        let of_second = moved.iter().find(|one| one.id == 2);
        assert_eq!(
            of_second.map(|one| one.to),
            gains.map(Time),
            "not before {not_before}"
        );
    }
}
