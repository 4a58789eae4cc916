use super::*;
use crate::queue::Order;
use crate::schedule::Schedule;
use crate::schedule::work::Work;

const LONG: Seconds = 10;

fn request(id: u64, start: i64) -> Request {
    Request {
        id,
        submitted: Time(0),
        ready: Time(0),
        deadline: Time(1_000_000),
        duration: LONG,
        nodes: 1,
        revenue: start.unsigned_abs(),
    }
}

/// Requests one after the other on one node, of which each has moved to where its neighbour was, and one of the ends far away.
fn put_chain_back(count: u64, is_up: bool, work: &mut Work) -> Vec<(u32, Time)> {
    let mut schedule = Schedule::new(1, Order::Fifo);
    let at = |place: u64| Time(1_000 + LONG * i64::try_from(place).unwrap());
    for id in 0..count {
        schedule.restore(&request(id, 0), at(id)).unwrap();
    }
    let handles: BTreeMap<Time, u32> = schedule.waiting.iter().map(|(h, one)| (one.start, h)).collect();
    let last = count - 1;
    let moved = (0..count).map(|id| {
        let to = match id {
            0 if is_up => count + 5,
            id if is_up => id - 1,
            id if id == last => count + 5,
            id => id + 1,
        };
        (handles[&at(id)], at(to))
    });
    let moved = moved.collect();
    let newcomer = request(count, 0);
    let mut attempt = schedule.attempt(work);
    let mut trial = attempt.lay_moves(&newcomer, Time(0), moved);
    attempt.put_back(&mut trial);
    trial.moved
}

#[test]
fn a_chain_of_moves_goes_back_in_a_few_rounds() {
    for is_up in [false, true] {
        let mut work = Work::of(200_000);
        let left = put_chain_back(1_000, is_up, &mut work).len();
        assert_eq!((left, work.is_spent()), (0, false), "up: {is_up}");
    }
}

#[test]
fn no_move_goes_back_where_no_work_is_left() {
    let mut work = Work::of(10 * SEARCH);
    let moved = put_chain_back(1_000, false, &mut work);
    assert!(work.is_spent() && moved.len() > 900, "{}", moved.len());
}
