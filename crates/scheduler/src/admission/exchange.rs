//! A part of the plan is exchanged for another: a hold for the agreement that takes it over, an agreement for the one that
//! replaces it.

use super::Schedule;
use crate::request::Request;
use crate::time::{Interval, Time};

impl Schedule {
    /// Where `request` would start if it were submitted at `now`, others moving inside their windows where that lets it
    /// in; `None` where it would be refused. Changes nothing but the present. The cost is that of [`Schedule::submit`].
    pub fn would_start(&mut self, now: Time, request: &Request) -> Option<Time> {
        self.begin_decision(now);
        if request.impossible(self.tree.capacity(), self.now).is_some() {
            return None;
        }
        let admitted = self.admit_in_any_order(request, &mut self.work()).ok()?;
        Some(self.take_back(admitted))
    }

    /// Takes a request out of the plan, whether it waits or runs, and leaves every other where it lies, so that another one can
    /// have its room; answers the rest of its slot from `now` on. [`Schedule::restore`] puts another one in its place. `None` if
    /// no such request waits or runs. O(k log n) for k waiting requests that could use the room that is free then.
    pub fn vacate(&mut self, now: Time, id: u64) -> Option<Interval> {
        self.advance(now);
        self.leave(id)
    }

    /// The same without letting time pass.
    pub(super) fn leave(&mut self, id: u64) -> Option<Interval> {
        let rest = self.take_out(id)?;
        if !rest.is_empty() {
            // These could start earlier now, and have not been tried yet.
            self.waiting.loosen_around(rest);
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Decision, Interval, Order, Request, Schedule, Time};

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
            .improve_some(Time(0), u64::MAX, usize::MAX, |_| true)
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
}
