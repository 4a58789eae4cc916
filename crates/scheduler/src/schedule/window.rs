//! The part of a plan in a time: what a page shows.

use super::Schedule;
use super::waiting::WaitingRequest;
use crate::request::Placement;
use crate::time::Interval;

impl Schedule {
    /// The slots that meet an interval and are not over, the first `most` by start and id, and how many there are in all. With r that
    /// run and c classes of lengths: O(r + c·(`most` + log n)), and a step for each slot that is counted.
    pub fn slots_in(&self, interval: Interval, most: usize) -> (Vec<Placement>, usize) {
        let first = Interval::new(interval.start, (interval.start + 1).min(interval.end));
        let running = self.running.values().copied();
        let lying = self.waiting.lying_in(first).map(WaitingRequest::placement);
        let begun = running.chain(lying.filter(|placed| placed.slot.start < interval.start));
        let mut found: Vec<Placement> = begun.filter(|placed| placed.slot.meets(interval)).collect();
        let (starting, many) = self.waiting.first_starting_in(interval, most);
        let count = found.len() + many;
        found.extend(starting.map(WaitingRequest::placement));
        found.sort_unstable_by_key(|placed| (placed.slot.start, placed.id));
        found.truncate(most);
        (found, count)
    }

    /// Whether nothing waits and nothing runs. O(1).
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Order;
    use crate::request::Request;
    use crate::time::Time;

    #[test]
    fn the_slots_of_a_time_are_that_part_of_all_by_start() {
        let mut seed = 3_u64;
        let mut draw = move |below: i64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(seed >> 33).unwrap() % below
        };
        let mut schedule = Schedule::new(8, Order::Edf);
        for id in 0..300 {
            let (ready, duration) = (Time(draw(5_000)), 1 + draw(if id % 10 == 0 { 900 } else { 60 }));
            let request = Request {
                id,
                submitted: Time(0),
                ready,
                deadline: ready + duration + draw(3_000),
                duration,
                nodes: 1 + u32::try_from(draw(3)).unwrap(),
                revenue: 0,
            };
            schedule.submit(Time(0), &request);
        }
        schedule.advance(Time(700));
        let mut all: Vec<Placement> = schedule.placements().collect();
        all.sort_unstable_by_key(|placed| (placed.slot.start, placed.id));
        for _ in 0..200 {
            let start = Time(600 + draw(6_000));
            let window = Interval::of(start, draw(800));
            let meets = |placed: &&Placement| placed.slot.meets(window);
            let expected: Vec<Placement> = all.iter().filter(meets).copied().collect();
            assert_eq!(
                schedule.slots_in(window, usize::MAX),
                (expected.clone(), expected.len())
            );
            let first = expected.iter().take(5).copied().collect();
            assert_eq!(schedule.slots_in(window, 5), (first, expected.len()));
        }
        assert!(!schedule.is_empty());
        assert!(Schedule::new(8, Order::Edf).is_empty());
    }
}
