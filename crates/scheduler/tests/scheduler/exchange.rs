//! A part of the plan is exchanged for another.

use scheduler::{Decision, Interval, Order, Request, Schedule, Time};

fn request(id: u64, ready: i64, deadline: i64, duration: i64, nodes: u32) -> Request {
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

#[test]
fn what_would_start_starts_there_when_it_is_submitted() {
    let mut schedule = Schedule::new(4, Order::Edf);
    for id in 0..3 {
        schedule.submit(Time(0), &request(id, 100, 1_000, 100, 3));
    }
    let newcomer = request(3, 150, 350, 100, 4);
    let before: Vec<_> = schedule.placements().collect();
    let start = schedule.would_start(Time(10), &newcomer).unwrap();
    assert_eq!(
        schedule.placements().collect::<Vec<_>>(),
        before,
        "nothing has moved"
    );
    let Decision::Accepted { placement, .. } = schedule.submit(Time(10), &newcomer) else {
        panic!("it would start at {start:?}")
    };
    assert_eq!(placement.slot.start, start);
    let too_many = request(4, 150, 350, 100, 5);
    assert_eq!(schedule.would_start(Time(10), &too_many), None);
}

#[test]
fn a_place_changes_hands_while_nobody_else_moves() {
    let mut schedule = Schedule::new(4, Order::Edf);
    schedule.submit(Time(0), &request(0, 100, 200, 100, 4));
    schedule.submit(Time(0), &request(1, 100, 1_000, 100, 4));
    let other = schedule.placement(1).unwrap();
    assert_eq!(
        schedule.vacate(Time(0), 0),
        Some(Interval::new(Time(100), Time(200)))
    );
    assert_eq!(schedule.vacate(Time(0), 0), None, "it is out");
    assert_eq!(schedule.placement(1), Some(other));
    schedule
        .restore(&request(2, 100, 200, 100, 4), Time(100))
        .expect("there is the room that was given up");
    // And the requests that were behind it go on to be planned as always: up, when there is room.
    schedule.vacate(Time(0), 2);
    let moves = schedule
        .improve_some(Time(0), Time::MIN, u64::MAX, usize::MAX, |_| true)
        .moved;
    assert_eq!((moves.len(), moves[0].to), (1, Time(100)));
}

#[test]
fn of_what_runs_only_the_rest_is_given_up() {
    let mut schedule = Schedule::new(4, Order::Edf);
    schedule.submit(Time(0), &request(0, 0, 100, 100, 4));
    assert_eq!(
        schedule.vacate(Time(40), 0),
        Some(Interval::new(Time(40), Time(100)))
    );
    assert_eq!(schedule.tree().min_free(Interval::new(Time(40), Time(100))), 4);
}
