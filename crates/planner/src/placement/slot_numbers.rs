//! The slots of the plan, each of which the schedule of its resource knows by a number.

use std::collections::{BTreeMap, HashMap};

use domain::agreement::{Agreement, AgreementState};
use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::placement::Places;
use crate::request::request_of_slot;
use crate::schedules::Schedules;

/// One slot of an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotOf {
    pub(super) agreement: Uuid,
    /// Which of its slots, from 0.
    pub(super) index: usize,
}

/// The numbers of all slots: in order of acceptance, since ties go by them.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    slots: BTreeMap<u64, SlotOf>,
    /// More than every number so far: no number is used again, since a command that waits may remember it.
    next: u64,
    of_agreements: HashMap<Uuid, Vec<u64>>,
}

impl Numbers {
    /// The number of the next slot that comes.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Has the next slot of an agreement, which may be its first, be known by a number.
    pub(super) fn add(&mut self, agreement: Uuid, number: u64) {
        let numbers = self.of_agreements.entry(agreement).or_default();
        let index = numbers.len();
        numbers.push(number);
        self.slots.insert(number, SlotOf { agreement, index });
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
    pub(super) fn slot(&self, number: u64) -> Option<SlotOf> {
        self.slots.get(&number).copied()
    }

    /// How many agreements have numbers.
    pub(super) fn agreements(&self) -> usize {
        self.of_agreements.len()
    }
}

impl Places {
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
        let SlotOf { agreement, index } = self.numbers.slot(number)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_used_again() {
        let mut numbers = Numbers::default();
        let [first, second] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        numbers.add(first, numbers.next());
        numbers.add(second, numbers.next());
        assert_eq!(numbers.keep_first(second, 0), [1]);
        assert_eq!((numbers.next(), numbers.slot(1)), (2, None));
    }
}
