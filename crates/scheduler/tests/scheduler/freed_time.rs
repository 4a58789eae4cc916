//! The work after an end goes by what gains, and not by how many wait.

use scheduler::schedule::{DecisionRule, LeastGain};
use scheduler::{Decision, Fraction, Order, Request, Schedule, Time};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(((self.0 >> 32) * end) >> 32).expect("small")
    }
}

/// A backlog: requests of 1 to 8 nodes for 5 to 20 minutes behind each other on 64 nodes, with windows as long as the backlog.
fn backlog(count: u64) -> Schedule {
    let least = LeastGain {
        seconds: 60,
        of_wait: Fraction::percent(1),
    };
    let schedule = Schedule::new(64, Order::Mdf).deciding(DecisionRule::Standing);
    let mut schedule = schedule.gaining(least);
    let mut random = Random(7);
    for id in 0..count {
        let duration = 300 + random.below(901);
        let request = Request {
            id,
            submitted: Time(0),
            ready: Time(1),
            deadline: Time(60 * 86_400 + random.below(1_000)),
            duration,
            nodes: u32::try_from(1 + random.below(8)).expect("small"),
            revenue: 0,
        };
        let decided = schedule.submit(Time(0), &request);
        assert!(matches!(decided, Decision::Accepted { .. }), "{decided:?}");
    }
    let settled = schedule.improve_some(Time(0), Time::MIN, u64::MAX, usize::MAX, |_| true);
    assert!(settled.done);
    schedule
}

/// The mean work after an end in the middle of what waits, and the moves.
fn work_after_ends(schedule: &mut Schedule) -> (u64, usize) {
    const ENDS: usize = 20;
    let (mut work, mut moves) = (0, 0);
    for nth in 0..ENDS {
        let ids: Vec<u64> = schedule.placements().map(|placement| placement.id).collect();
        schedule.vacate(Time(0), ids[ids.len() / 2 + 7 * nth]);
        let improved = schedule.improve_some(Time(0), Time::MIN, u64::MAX, usize::MAX, |_| true);
        assert!(improved.done);
        work += improved.work;
        moves += improved.moved.len();
    }
    (work / ENDS as u64, moves)
}

#[test]
fn the_work_after_an_end_hardly_grows_with_what_waits() {
    let [(few, few_moves), (many, many_moves)] =
        [1_000, 16_000].map(|count| work_after_ends(&mut backlog(count)));
    assert!(few_moves > 0 && many_moves > 0);
    assert!(many < 3 * few, "{few} with 1,000, {many} with 16,000");
}
