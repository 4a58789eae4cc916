//! The slots of the plan by their numbers, the moves of slots, and the places that were found.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use domain::agreement::{Agreement, AgreementState, Money, Slots};
use scheduler::{Move, Seconds, Time};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::journal::{JournaledMap, TakeBack};
use crate::schedules::Schedules;
use crate::schedules::need::request_of_slot;

/// The work of a slice, counted as that of a decision: a quarter of a decision's budget, because a decision may have to wait
/// for it.
const SLICE_WORK: u64 = scheduler::schedule::BUDGET / 4;

/// The moves of a slice: storing them takes a few milliseconds.
pub(crate) const SLICE_MOVES: usize = 64;

/// Looking at a resource costs at least this.
const RESOURCE_WORK: u64 = 16;
const HOUR: Seconds = 3_600;

/// The slots by their numbers, and which have moved of late.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The numbers by which the schedules know the slots.
    numbers: PlaceNumbers,
    /// The agreements that moved up in the last hour.
    moved_up: PlacesMovedUp,
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
            schedules.queue_look_again(at, number);
        }
        let (mut moves, mut work) = (Vec::new(), SLICE_WORK);
        while moves.len() < SLICE_MOVES
            && work > 0
            && let Some((at, left)) = schedules.take_to_look_at()
        {
            let name = schedules.get(at).map(|resource| resource.resource.name.as_str());
            let near_until = name.and_then(&near_until);
            let mut again = Vec::new();
            let may_move = |number: u64| {
                let from = self.movable_from(agreements, near_until, moves_per_hour, number);
                if let Some(from) = from.filter(|from| *from > now) {
                    again.push((from, at, number));
                }
                from.is_some_and(|from| from <= now)
            };
            let moves_max = SLICE_MOVES - moves.len();
            // Its cluster was not asked for nearer time.
            let not_before = near_until.map_or(Time::MIN, |until| until + 1);
            let work_here = work.min(left);
            let improved =
                schedules.improve_as_looked_at(at, now, not_before, work_here, moves_max, may_move);
            self.moved_up.again.extend(again);
            let done = improved.work.max(RESOURCE_WORK);
            work = work.saturating_sub(done);
            if !improved.done {
                schedules.go_on_looking(at, left.saturating_sub(done));
            }
            self.note_moves_up(&improved.moved, now);
            moves.extend(improved.moved);
        }
        moves
    }

    /// From when on the agreement with a slot number may move up without need, where it may move so often in an hour. None where its slot
    /// is near: its cluster holds its nodes where it is, and may have given the earlier time to others. Of work in pieces no more than one
    /// moves up in a decision: the windows of the others begin where they lie.
    pub(crate) fn movable_from(
        &self,
        agreements: &Agreements,
        near_until: Option<Time>,
        moves_per_hour: usize,
        number: u64,
    ) -> Option<Time> {
        // A hold has one place only.
        let Some(NumberedSlot { agreement, .. }) = self.numbers.slot(number) else {
            return Some(Time::MIN);
        };
        // Where nothing is near, the agreement is not looked up.
        let start = || agreements.get(agreement).map(|live| live.slot().start);
        let is_near = near_until.is_some_and(|until| start().is_some_and(|start| start <= until));
        let from = self.moved_up.next_move_time(agreement, moves_per_hour);
        (!is_near).then_some(from.unwrap_or(Time::MIN))
    }

    /// Counts the moves to earlier starts.
    pub(crate) fn note_moves_up(&mut self, moves: &[Move], now: Time) {
        for one_move in moves.iter().filter(|one_move| one_move.to < one_move.from) {
            if let Some(slot) = self.numbers.slot(one_move.id) {
                self.note_move_up(slot.agreement, now);
            }
        }
    }

    /// Counts a move of an agreement.
    pub(crate) fn note_move_up(&mut self, id: Uuid, now: Time) {
        self.moved_up.note(id, now);
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

    /// The number that the next agreement will be known by.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.next()
    }

    /// The resource of an agreement that must have a place, and the number by which its schedule knows one of its slots.
    pub(crate) fn planned_slot(
        &self,
        schedules: &mut Schedules,
        agreement: &Agreement,
        index: usize,
    ) -> Option<(usize, u64)> {
        let at = schedules.required_place_of(&agreement.resource)?;
        let number = self.numbers.of(agreement.id).get(index).copied();
        schedules.note_unless(number.is_some(), || {
            format!("slot {index} of agreement {} has no number", agreement.id)
        });
        Some((at, number?))
    }

    /// The agreement with this slot number, and the index of the slot in it.
    pub(crate) fn slot_by_number<'a>(
        &self,
        agreements: &'a Agreements,
        number: u64,
    ) -> Option<(&'a Agreement, usize)> {
        let NumberedSlot { agreement, index } = self.numbers.slot(number)?;
        let agreement = agreements.get(agreement)?;
        (index < agreement.slots.len()).then_some((agreement, index))
    }

    /// The agreement with this slot number, and the index of the slot in it, where that slot has not begun.
    pub(crate) fn waiting_slot_by_number<'a>(
        &self,
        agreements: &'a Agreements,
        number: u64,
    ) -> Option<(&'a Agreement, usize)> {
        let (agreement, index) = self.slot_by_number(agreements, number)?;
        let waits = agreement.state == AgreementState::Observed && agreement.slots_begun() <= index;
        waits.then_some((agreement, index))
    }

    /// The numbers of the agreements on a resource that have not begun, with their slack.
    pub(crate) fn waiting_on(
        &self,
        schedules: &Schedules,
        agreements: &Agreements,
        at: usize,
        now: Time,
    ) -> BTreeMap<u64, Seconds> {
        let Some(resource_plan) = schedules.get(at) else {
            return BTreeMap::new();
        };
        let waits = |number: u64| {
            let (agreement, index) = self.waiting_slot_by_number(agreements, number)?;
            // An addition to a contract has to leave first.
            if agreement.adds_to_contract(index) {
                return Some((number, Seconds::MAX));
            }
            Some((number, request_of_slot(agreement, number, index).slack(now)))
        };
        let placements = resource_plan.schedule.placements();
        placements.filter_map(|placement| waits(placement.id)).collect()
    }
}

/// Which agreements were moved of late, and when those are looked at again that were moved too often.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlacesMovedUp {
    /// The last moves of each, as many as are counted.
    pub(super) times: JournaledMap<HashMap<Uuid, VecDeque<Time>>>,
    /// Resource and number.
    pub(super) again: BTreeSet<(Time, usize, u64)>,
}

impl PlacesMovedUp {
    /// From when on an agreement may be moved that may be moved so often in an hour.
    pub(crate) fn next_move_time(&self, agreement: Uuid, moves_per_hour: usize) -> Option<Time> {
        let times = self.times.get(&agreement)?;
        let oldest = times.len().checked_sub(moves_per_hour)?;
        times.get(oldest).map(|at| *at + HOUR)
    }

    pub(crate) fn note(&mut self, agreement: Uuid, now: Time) {
        let mut times = self.times.remove(&agreement).unwrap_or_default();
        times.retain(|at| *at + HOUR > now);
        times.push_back(now);
        self.times.insert(agreement, times);
    }

    /// Forgets an agreement that is over.
    pub(crate) fn forget(&mut self, agreement: Uuid) {
        self.times.remove(&agreement);
    }
}

impl TakeBack for Places {
    /// The number of the next slot.
    type Before = u64;

    fn begin_try(&mut self) -> u64 {
        self.numbers.slots.begin_try();
        self.numbers.of_agreements.begin_try();
        self.moved_up.times.begin_try();
        self.numbers.next
    }

    fn take_back(&mut self, next: u64) {
        self.numbers.slots.take_back(());
        self.numbers.of_agreements.take_back(());
        self.moved_up.times.take_back(());
        self.numbers.next = next;
    }
}

/// A place of a request in the plan, and what others have done to make room for it.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) resource: usize,
    pub(crate) slots: Slots,
    pub(crate) price: Option<Money>,
    pub(crate) moved: Vec<Move>,
    pub(crate) transferred: Vec<Transfer>,
    pub(crate) new_shapes: Vec<NewShape>,
}

impl Placement {
    /// One for which others do nothing.
    pub(crate) fn at(resource: usize, slots: Slots, price: Option<Money>) -> Self {
        let (moved, transferred, new_shapes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            resource,
            slots,
            price,
            moved,
            transferred,
            new_shapes,
        }
    }
}

/// A waiting agreement that went from one resource to another.
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    /// As it is now.
    pub(crate) placed: Agreement,
    /// Its old resource, and its requests there with their starts.
    pub(crate) from: usize,
    pub(crate) was: Vec<(scheduler::Request, Time)>,
}

/// A waiting agreement that has got another size or other pieces on its resource.
#[derive(Debug, Clone)]
pub(crate) struct NewShape {
    /// As it is now.
    pub(crate) placed: Agreement,
    /// The numbers by which its schedule knows its slots, in their order.
    pub(crate) numbers: Vec<u64>,
}

/// How others have made room on a resource.
#[derive(Debug, Default)]
pub(crate) struct ChangesOfOthers {
    /// Their moves in their old shapes.
    pub(crate) moved: Vec<Move>,
    /// Their new shapes.
    pub(crate) new_shapes: Vec<NewShape>,
}

/// One slot of an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberedSlot {
    pub(super) agreement: Uuid,
    /// Which of its slots, from 0.
    pub(super) index: usize,
}

/// The numbers of all slots: in order of acceptance, since ties go by them.
#[derive(Debug, Clone, Default)]
pub(super) struct PlaceNumbers {
    slots: JournaledMap<BTreeMap<u64, NumberedSlot>>,
    /// More than every number so far: no number is used again, since a command that waits may remember it.
    next: u64,
    of_agreements: JournaledMap<HashMap<Uuid, Vec<u64>>>,
}

impl PlaceNumbers {
    /// The number of the next slot that comes.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Has the next slot of an agreement, which may be its first, be known by a number.
    pub(super) fn add(&mut self, agreement: Uuid, number: u64) {
        let mut numbers = self.of_agreements.remove(&agreement).unwrap_or_default();
        let index = numbers.len();
        numbers.push(number);
        self.of_agreements.insert(agreement, numbers);
        self.slots.insert(number, NumberedSlot { agreement, index });
        self.next = self.next.max(number + 1);
    }

    /// Forgets all slots of an agreement after the first `count`. Returns the numbers of the forgotten slots.
    pub(super) fn keep_first(&mut self, agreement: Uuid, count: usize) -> Vec<u64> {
        let Some(numbers) = self.of_agreements.get_mut(&agreement) else {
            return Vec::new();
        };
        let forgotten = numbers.split_off(count.min(numbers.len()));
        if numbers.is_empty() {
            self.of_agreements.remove(&agreement);
        }
        for number in &forgotten {
            self.slots.remove(number);
        }
        forgotten
    }

    /// The numbers of the slots of an agreement, in their order; none where it has no place.
    pub(super) fn of(&self, agreement: Uuid) -> &[u64] {
        self.of_agreements.get(&agreement).map_or(&[], Vec::as_slice)
    }

    /// The slot that a number is of.
    pub(super) fn slot(&self, number: u64) -> Option<NumberedSlot> {
        self.slots.get(&number).copied()
    }

    /// How many agreements have numbers.
    pub(super) fn agreements(&self) -> usize {
        self.of_agreements.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_used_again() {
        let mut numbers = PlaceNumbers::default();
        let [first, second] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        numbers.add(first, numbers.next());
        numbers.add(second, numbers.next());
        assert_eq!(numbers.keep_first(second, 0), [1]);
        assert_eq!((numbers.next(), numbers.slot(1)), (2, None));
    }
}
