//! What has changed in a schedule since a mark, so that all of it can be taken back: the placements, the marks on requests, and the
//! time that has passed. A decision of which nothing is kept is made on the schedule itself, and costs what it changes and a copy of the places
//! that are noted for looks to come, of which there are at most about a thousand.
//!
//! Handles are given out again in the order in which they came back, the last one first. So a request that is taken back gets the
//! handle that it had, and marks by handle are right again.

use super::marks::MarkPosition;
use super::waiting::{NotedPlaces, WaitingRequest};
use super::{RequestPlace, Schedule};
use crate::request::Placement;
use crate::slot_tree::SlotError;
use crate::time::{Interval, Time};

/// A moment of a schedule, to which it can be taken back.
#[derive(Debug, Clone)]
pub struct Mark {
    changes: usize,
    marks: (MarkPosition, MarkPosition),
    places: NotedPlaces,
}

/// One change of a schedule.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// A waiting request came in, and its nodes were taken.
    Came(u32),
    /// A waiting request left, and its nodes were given back.
    Left(WaitingRequest),
    /// A waiting request got another start, with its nodes; so far it started here.
    Shifted(u32, Time),
    /// A waiting request was fixed to its slot; so far it was like this.
    Fixed(u32, WaitingRequest),
    /// A waiting request began to run.
    Began(WaitingRequest),
    /// A running request came in, and its nodes were taken in an interval.
    Ran(Placement, Interval),
    /// A running request left, and its nodes were given back in an interval.
    Stopped(Placement, Interval),
    /// A running request completed.
    Completed(Placement),
    /// Nodes were given back in an interval, or taken if negative, for no request.
    Laid(Interval, i64),
    /// Time passed; so far it was this.
    Passed(Time),
}

/// The changes of a schedule, the last one last, while they are noted.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    changes: Vec<Change>,
    pub(super) is_open: bool,
    /// Whether requests got other places in the queue since it was opened, because time passed: marks on them are not right any more.
    pub(super) is_requeued: bool,
}

impl Journal {
    /// Notes a change, where it may have to be taken back.
    pub(super) fn note(&mut self, change: impl FnOnce() -> Change) {
        if self.is_open {
            self.changes.push(change());
        }
    }

    /// Notes that a waiting request came in.
    pub(super) fn note_came(&mut self, handle: u32) {
        self.note(|| Change::Came(handle));
    }

    /// Notes that a waiting request, which started at `from`, got another start.
    pub(super) fn note_shifted(&mut self, handle: u32, from: Time) {
        self.note(|| Change::Shifted(handle, from));
    }
}

impl Schedule {
    /// Has changes noted from now on, so that they can be taken back to the mark that is the answer. Time passes until `now` before.
    /// A schedule that notes them already goes on, and keeps its earlier marks.
    ///
    /// The changes of [`Schedule::resize`] are not noted.
    pub fn note_changes(&mut self, now: Time) -> Mark {
        if !self.journal.is_open {
            self.advance(now);
            self.journal = Journal::default();
            self.journal.is_open = true;
            self.waiting.note_marks(true);
        }
        Mark {
            changes: self.journal.changes.len(),
            marks: self.waiting.mark_positions(),
            places: self.waiting.noted_places(),
        }
    }

    /// Notes changes no more. Those that were noted stay.
    pub fn forget_changes(&mut self) {
        self.journal = Journal::default();
        self.waiting.note_marks(false);
        self.tree.forget(self.now);
    }

    /// Takes back all changes since a mark, and answers with the intervals in which the number of free nodes may have changed. What was found
    /// out about requests by then is known again. O(k log n) for k changes and n waiting requests.
    pub fn take_back(&mut self, mark: Mark) -> Vec<Interval> {
        let mut touched = Vec::new();
        while self.journal.changes.len() > mark.changes
            && let Some(change) = self.journal.changes.pop()
        {
            self.take_change_back(change, &mut touched);
        }
        self.waiting.take_marks_back(mark.marks, mark.places);
        if self.journal.is_requeued {
            self.waiting.loosen_all();
        }
        for slot in &touched {
            self.memory.note_change(*slot);
            if !self.tree.is_sound()
                && let Some(nodes) = self.tree.shortage(*slot)
            {
                let (slot, error) = (*slot, SlotError::NotFree { free: 0 });
                self.report(super::Fault::NotTaken { slot, nodes, error });
            }
        }
        touched
    }

    fn take_change_back(&mut self, change: Change, touched: &mut Vec<Interval>) {
        match change {
            Change::Came(h) => {
                let came = self.waiting.take_out(h);
                if let Some(came) = self.kept_or_fault(came) {
                    self.by_id.remove(&came.request.id);
                    self.tree.lay(came.slot(), came.request.nodes.into());
                    touched.push(came.slot());
                }
                self.memory.forget(h);
            }
            Change::Left(left) => {
                self.tree.lay(left.slot(), -i64::from(left.request.nodes));
                touched.push(left.slot());
                self.put_back_waiting(left);
            }
            Change::Shifted(h, from) => {
                let before = self.waiting.get(h).copied();
                if let Some(before) = self.kept_or_fault(before) {
                    let nodes = i64::from(before.request.nodes);
                    let lay = before.request.slot(from);
                    self.tree.lay(before.slot(), nodes);
                    self.tree.lay(lay, -nodes);
                    touched.extend([before.slot(), lay]);
                    self.waiting.shift(h, from);
                }
                self.memory.forget(h);
            }
            Change::Fixed(h, before) => {
                let before = self.keyed_again(before);
                self.waiting.put_as(h, before);
                self.memory.forget(h);
                self.memory.note_change(before.slot());
            }
            Change::Began(began) => {
                let placement = began.placement();
                self.running.remove(&(placement.slot.end, placement.id));
                // Those before it in order see its nodes as free again.
                self.memory.note_change(began.slot());
                self.put_back_waiting(began);
            }
            Change::Ran(placement, held) => {
                self.running.remove(&(placement.slot.end, placement.id));
                self.by_id.remove(&placement.id);
                self.tree.lay(held, placement.nodes.into());
                touched.push(held);
            }
            Change::Stopped(placement, freed) => {
                self.tree.lay(freed, -i64::from(placement.nodes));
                touched.push(freed);
                self.put_back_running(placement);
            }
            Change::Completed(placement) => self.put_back_running(placement),
            Change::Laid(interval, nodes) => {
                self.tree.lay(interval, -nodes);
                touched.push(interval);
            }
            Change::Passed(before) => self.now = before,
        }
    }

    fn put_back_waiting(&mut self, waiting: WaitingRequest) {
        let id = waiting.request.id;
        let waiting = self.keyed_again(waiting);
        let h = self.waiting.put_in(waiting);
        self.by_id.insert(id, RequestPlace::Waiting(h));
        self.memory.forget(h);
    }

    /// A request with its place in the queue as of now. Where it had another one, marks on it are not right any more.
    fn keyed_again(&mut self, waiting: WaitingRequest) -> WaitingRequest {
        let keyed = self.waiting.keyed(waiting, self.now);
        self.journal.is_requeued |= keyed.key != waiting.key;
        keyed
    }

    fn put_back_running(&mut self, placement: Placement) {
        let Placement { id, slot, .. } = placement;
        self.by_id.insert(id, RequestPlace::Running(slot.end));
        self.running.insert((slot.end, id), placement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{DecisionRule, TRIES};
    use crate::{Order, Request};

    /// All that decisions depend on: the plan, the requests by handle with their places in the queue, the marks, and the present.
    fn digest(schedule: &Schedule) -> String {
        let Schedule { waiting, .. } = schedule;
        let steps: Vec<_> = schedule.tree.steps_from(schedule.now).skip(1).collect();
        let entries: Vec<_> = waiting.iter().collect();
        let (first, [loose, unseen]) = (waiting.first(), waiting.marked());
        assert!(waiting.starts_are_kept());
        format!(
            "{:?} {steps:?} {entries:?} {first:?} {loose:?} {unseen:?} {:?} {:?} {:?}",
            schedule.now,
            waiting.noted_places(),
            schedule.running,
            schedule.by_id
        )
    }

    fn random(seed: &mut u64, below: u64) -> i64 {
        *seed = crate::queue::mix_bits(seed.wrapping_add(0x9E37_79B9_7F4A_7C15));
        i64::try_from(*seed % below).unwrap()
    }

    /// Takes nodes out of use, or gives some back that were.
    fn change_use(schedule: &mut Schedule, seed: &mut u64, now: i64) {
        let interval = Interval::of(Time(now + random(seed, 40)), 1 + random(seed, 30));
        if schedule
            .block(interval, 1 + u32::try_from(random(seed, 3)).unwrap())
            .is_ok()
            && random(seed, 2) == 0
        {
            schedule
                .unblock(Interval::new(interval.start, interval.start + 1), 1)
                .unwrap();
        }
    }

    /// One random change.
    fn change(schedule: &mut Schedule, seed: &mut u64, (id, now): (u64, i64)) {
        let ready = now + random(seed, 40);
        let duration = 1 + random(seed, 30);
        let request = Request {
            id,
            submitted: Time(now),
            ready: Time(ready),
            deadline: Time(ready + duration + random(seed, 80)),
            duration,
            nodes: 1 + u32::try_from(random(seed, 4)).unwrap(),
            revenue: 0,
        };
        let other = random(seed, id + 1).unsigned_abs();
        let now = Time(now);
        match random(seed, 9) {
            0 => {
                schedule.vacate(now, other);
            }
            1 => {
                schedule.withdraw(other);
            }
            2 => {
                schedule.fix(other);
            }
            3 => {
                if let Some((request, start)) = schedule.withdraw(other) {
                    schedule.restore(&request, start).unwrap();
                }
            }
            4 => {
                schedule.improve_some(now, Time::MIN, 10_000, 1, |_| true);
            }
            5 => {
                schedule.end(now, other);
            }
            6 => {
                let now = schedule.now().max(now);
                change_use(schedule, seed, now.0);
            }
            _ => {
                schedule.submit(now, &request);
            }
        }
    }

    #[test]
    fn what_is_taken_back_leaves_all_as_it_was() {
        for story in 0..400 {
            let (order, mut seed) = (
                [Order::Mdf, Order::Edf, Order::Fifo, Order::Bjf][story % 4],
                story as u64,
            );
            let rule = [DecisionRule::Standing, DecisionRule::Published][story / 4 % 2];
            let mut schedule = Schedule::new(6, order).deciding(rule).trying(TRIES);
            let (mut id, mut now) = (0, 0);
            for _ in 0..60 {
                id += 1;
                now += random(&mut seed, 3);
                change(&mut schedule, &mut seed, (id, now));
                let first = schedule.note_changes(Time(now));
                let before = digest(&schedule);
                for more in 1..=random(&mut seed, 4).unsigned_abs() {
                    // A second is the most by which decisions are ahead.
                    let ahead = now + random(&mut seed, 2);
                    change(&mut schedule, &mut seed, (id + more, ahead));
                }
                let (second, between) = (schedule.note_changes(Time(now)), digest(&schedule));
                change(&mut schedule, &mut seed, (id + 10, now + 1));
                schedule.take_back(second);
                assert_eq!(digest(&schedule), between, "story {story}, the inner mark");
                schedule.take_back(first);
                assert_eq!(digest(&schedule), before, "story {story}");
                schedule.forget_changes();
                assert_eq!(schedule.fault(), None);
            }
        }
    }

    #[test]
    fn marks_are_on_places_in_the_queue_also_where_these_change_with_time() {
        for story in 0..400 {
            let (order, mut seed) = ([Order::Lff, Order::Shuffle { seed: 3 }][story % 2], story as u64);
            let mut schedule = Schedule::new(6, order).deciding(DecisionRule::Standing);
            let (mut id, mut now) = (0, 0);
            for _ in 0..60 {
                id += 1;
                now += random(&mut seed, 3);
                change(&mut schedule, &mut seed, (id, now));
                let mark = schedule.note_changes(Time(now));
                for more in 1..=random(&mut seed, 4).unsigned_abs() {
                    let ahead = now + random(&mut seed, 2);
                    change(&mut schedule, &mut seed, (id + more, ahead));
                }
                schedule.take_back(mark);
                schedule.forget_changes();
                for (key, handle) in schedule.waiting.marked().into_iter().flatten() {
                    let waiting = schedule.waiting.get(handle);
                    assert_eq!(waiting.map(|waiting| waiting.key), Some(key), "story {story}");
                }
                assert_eq!(schedule.fault(), None);
            }
        }
    }
}
