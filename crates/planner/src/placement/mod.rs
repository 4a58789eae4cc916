//! Finds a place: which resource takes a request, in pieces or whole, in which size; and knows the slots by their numbers.

pub(super) mod admit;
pub(super) mod at_peer;
pub(super) mod choice;
pub(super) mod closed_resources;
pub(super) mod eligible;
pub(super) mod find;
pub(super) mod pieces;
pub(super) mod recent_moves;
pub(super) mod refuse;
pub(super) mod reserved_starts;
mod slot_numbers;
pub(super) mod trial;

use domain::agreement::Agreement;
use scheduler::{Move, Time};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::placement::recent_moves::MovedUp;
use crate::placement::slot_numbers::{Numbers, SlotOf};
use crate::request::request_of_slot;
use crate::schedules::Schedules;

/// The work of a slice, counted as that of a decision: a quarter of a decision's budget, because a decision may have to wait
/// for it.
const SLICE_WORK: u64 = scheduler::admission::BUDGET / 4;
/// The moves of a slice: storing them takes a few milliseconds.
pub(crate) const SLICE_MOVES: usize = 64;
/// Looking at a resource costs at least this.
const RESOURCE_WORK: u64 = 16;

/// The slots by their numbers, and which have moved of late.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The numbers by which the schedules know the slots.
    numbers: Numbers,
    /// The agreements that moved up in the last hour.
    moved_up: MovedUp,
}

impl Places {
    /// Takes one of the slots of an agreement out of the plan; all others stay where they are.
    pub(crate) fn take_slot_out(
        &self,
        schedules: &mut Schedules,
        agreement: &Agreement,
        index: usize,
        now: Time,
    ) {
        if let Some((at, number)) = self.planned_slot(schedules, agreement, index) {
            schedules.vacate(at, now, number);
        }
    }

    /// Fixes a waiting agreement's slots where they lie.
    pub(crate) fn fix(&self, schedules: &mut Schedules, agreement: &Agreement) {
        for index in 0..agreement.slots.len() {
            if let Some((at, number)) = self.planned_slot(schedules, agreement, index) {
                schedules.fix(at, number);
            }
        }
    }

    /// Has the slots of an agreement that have not begun move in the windows that they have now. None moves where something is held on the strength of its place.
    pub(crate) fn open_windows(&self, schedules: &mut Schedules, agreement: &Agreement, is_counted_on: bool) {
        // The window of one alone follows from nothing that moves.
        if !agreement.slots.is_split() {
            return;
        }
        for index in agreement.slots_begun()..agreement.slots.len() {
            let Some((at, number)) = self.planned_slot(schedules, agreement, index) else {
                return;
            };
            // It may have lost its place, or be about to begin.
            let Some((old, start)) = schedules.waiting_request(at, number) else {
                continue;
            };
            let mut request = request_of_slot(agreement, number, index);
            if agreement.fixed || is_counted_on {
                request = request.fixed_to(start);
            }
            // Most of them are as they were, and to take one out has the schedule look at all others again.
            if request.window() != old.window() && schedules.withdraw(at, number).is_some() {
                schedules.put_back(at, Time::MIN, &request, start);
            }
        }
    }

    /// Whether a slice at `now` has something to look at. Where energy decides, nothing moves by itself: an earlier time may be a dearer
    /// one. O(1).
    pub(crate) fn may_move_up(&self, schedules: &Schedules, now: Time) -> bool {
        let again = self.moved_up.again.first();
        let has_some = schedules.has_some_to_look_at() || again.is_some_and(|(at, ..)| *at <= now);
        has_some && !schedules.weighs_energy()
    }

    /// Makes some of the moves that can be made: O(1) of them, found with O(1) work.
    pub(crate) fn move_some_up(
        &mut self,
        schedules: &mut Schedules,
        agreements: &Agreements,
        near_until: impl Fn(&str) -> Option<Time>,
        now: Time,
        moves_per_hour: usize,
    ) -> Vec<Move> {
        if !self.may_move_up(schedules, now) {
            return Vec::new();
        }
        while let Some(&(due, at, number)) = self.moved_up.again.first()
            && due <= now
        {
            self.moved_up.again.pop_first();
            schedules.look_again(at, number);
        }
        let (mut moves, mut work) = (Vec::new(), SLICE_WORK);
        while moves.len() < SLICE_MOVES
            && work > 0
            && let Some((at, left)) = schedules.take_to_look_at()
        {
            let name = schedules.get(at).map(|resource| resource.resource.name.as_str());
            let near_until = name.and_then(&near_until);
            let (numbers, moved_up) = (&self.numbers, &mut self.moved_up);
            let may_move = |number: u64| {
                // A hold has one place only.
                let Some(SlotOf { agreement, .. }) = numbers.slot(number) else {
                    return true;
                };
                // Its cluster holds its nodes where it is, and may have given the earlier time to others.
                let start = agreements.get(agreement).map(|live| live.slot().start);
                if start.zip(near_until).is_some_and(|(start, until)| start <= until) {
                    return false;
                }
                match moved_up.next_move_time(agreement, moves_per_hour) {
                    Some(from) if from > now => {
                        moved_up.again.insert((from, at, number));
                        false
                    }
                    _ => true,
                }
            };
            let moves_max = SLICE_MOVES - moves.len();
            let improved = schedules.improve(at, now, work.min(left), moves_max, may_move);
            let done = improved.work.max(RESOURCE_WORK);
            work = work.saturating_sub(done);
            if !improved.done {
                schedules.go_on_looking(at, left.saturating_sub(done));
            }
            for one_move in &improved.moved {
                if let Some(slot) = self.numbers.slot(one_move.id) {
                    self.moved_up.note(slot.agreement, now);
                }
            }
            moves.extend(improved.moved);
        }
        moves
    }

    /// Takes in the slots of an agreement that its resource's schedule knows by numbers from this one on.
    pub(crate) fn add(&mut self, agreement: &Agreement, number: u64) {
        for (number, _) in (number..).zip(agreement.slots.iter()) {
            self.numbers.add(agreement.id, number);
        }
    }

    /// Has one more slot of an agreement be known by a number.
    pub(crate) fn add_slot(&mut self, id: Uuid, number: u64) {
        self.numbers.add(id, number);
    }

    /// Forgets all slots of an agreement after the first `count`. Returns their numbers.
    pub(crate) fn keep_first(&mut self, id: Uuid, count: usize) -> Vec<u64> {
        self.numbers.keep_first(id, count)
    }

    /// Forgets when an agreement has moved up.
    pub(crate) fn forget_moves(&mut self, id: Uuid) {
        self.moved_up.forget(id);
    }

    /// The numbers of the slots of an agreement, in their order; none where it has no place.
    pub(crate) fn numbers_of(&self, id: Uuid) -> &[u64] {
        self.numbers.of(id)
    }

    /// How many agreements have a place.
    pub(crate) fn len(&self) -> usize {
        self.numbers.agreements()
    }
}
