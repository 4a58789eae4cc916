//! Slots: nodes of one resource for one interval. An agreement has one, or several one after another, each on a number of nodes
//! of its own: its work is saved at the end of each and resumed at the start of the next. For parties these are pieces.
//!
//! An agreement is placed from the start of its first slot to the end of its last; the time between two is for others. Its
//! service is Idle between two.
//!
//! Work that is not over at the end of its last slot may get one more. The time that it takes beyond the contract is an overrun.

use std::ops::{Deref, DerefMut};

use scheduler::{Interval, Seconds, Time};
use serde::{Deserialize, Serialize};

use super::stored_time::{StartEnd, seconds_if_any};
use super::stretch::node_seconds_of_stretches;
use super::{Agreement, AgreementState, JobEnd, RunOutcome, ServiceState, Stretch};
use crate::clock::{Micros, second_after};

/// Nodes of one resource for one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Planned start and end.
    #[serde(flatten, with = "StartEnd")]
    pub placement: Interval,
    /// How many nodes it has.
    pub nodes: u32,
    /// When its process really started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Micros>,
    /// When it really ended; every slot before it has ended, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Micros>,
    /// Of one that was added to its agreement's contract: the deadline that was agreed until then.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds_if_any")]
    pub deadline_before: Option<Time>,
    /// Whether its work was lost for good. The part that it has had is not paid then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Whether it was over before its agreement took over the work of another agreement: it had the nodes of that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// Whether its agreement was over before it began: no party had its nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_had: bool,
}

/// One slot or more, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(pub(super) Vec<Slot>);

impl Slot {
    /// A slot that is planned for this time, with this number of nodes.
    pub fn planned((placement, nodes): Stretch) -> Self {
        Self {
            placement,
            nodes,
            started: None,
            ended: None,
            deadline_before: None,
            lost: false,
            taken_over: false,
            never_had: false,
        }
    }

    /// When it is planned, and with how many nodes.
    pub fn stretch(&self) -> Stretch {
        (self.placement, self.nodes)
    }

    /// The time that its nodes are kept from others: its placement, cut at the second after it ended.
    pub fn occupied(&self) -> Interval {
        let Interval { start, end } = self.placement;
        let ended = self.ended.map_or(end, second_after);
        Interval::new(start, end.min(ended).max(start))
    }
}

impl Slots {
    /// One that is planned.
    pub fn one(stretch: Stretch) -> Self {
        Self(vec![Slot::planned(stretch)])
    }

    /// The given slots; none where the list is empty.
    pub fn of(slots: Vec<Slot>) -> Option<Self> {
        (!slots.is_empty()).then_some(Self(slots))
    }

    /// From the start of the first to the end of the last.
    pub fn placement(&self) -> Interval {
        let whole = self.0.first().zip(self.0.last());
        let whole = whole.map(|(first, last)| Interval::new(first.placement.start, last.placement.end));
        whole.unwrap_or(Interval::of(Time::MAX, 0))
    }

    /// The most nodes that one of them has.
    pub fn nodes(&self) -> u32 {
        self.0.iter().map(|slot| slot.nodes).max().unwrap_or(0)
    }

    /// Whether they have different numbers of nodes.
    pub fn differ(&self) -> bool {
        self.0.iter().any(|slot| slot.nodes != self.nodes())
    }

    /// For how long they last, together.
    pub fn seconds(&self) -> Seconds {
        seconds_of_slots(&self.0)
    }

    /// When each of them is planned, and with how many nodes.
    pub fn stretches(&self) -> Vec<Stretch> {
        self.0.iter().map(Slot::stretch).collect()
    }

    /// Node-seconds of all of them.
    pub fn node_seconds(&self) -> u128 {
        node_seconds_of_stretches(&self.stretches(), self.seconds())
    }

    /// The slots of an agreement that takes over the work, with another end of the last one, all as they were agreed.
    #[must_use]
    pub fn ending(&self, end: Time) -> Self {
        let mut slots = self.clone();
        for slot in slots.iter_mut() {
            slot.deadline_before = None;
            slot.taken_over = slot.ended.is_some();
        }
        if let Some(last) = slots.last_mut() {
            last.placement.end = end;
        }
        slots
    }

    /// Whether there are several.
    pub fn is_split(&self) -> bool {
        self.0.len() > 1
    }

    /// The pieces as its party sees them: none where there is only one slot.
    pub fn pieces(&self) -> &[Slot] {
        if self.is_split() { &self.0 } else { &[] }
    }

    /// The slots that are stored beside the columns of an agreement's row: none where these say all of a single slot.
    pub fn beside_row(&self) -> &[Slot] {
        if self.iter().any(|slot| slot.never_had) {
            &self.0
        } else {
            self.pieces()
        }
    }
}

impl Deref for Slots {
    type Target = [Slot];

    fn deref(&self) -> &[Slot] {
        &self.0
    }
}

impl DerefMut for Slots {
    fn deref_mut(&mut self) -> &mut [Slot] {
        &mut self.0
    }
}

impl Agreement {
    /// Planned start and completion: from the start of its first slot to the end of its last.
    pub fn placement(&self) -> Interval {
        self.slots.placement()
    }

    /// Nodes granted: the most that one of its slots has.
    pub fn nodes(&self) -> u32 {
        self.slots.nodes()
    }

    /// How many of its slots are over.
    pub fn slots_over(&self) -> usize {
        self.slots.iter().take_while(|slot| slot.ended.is_some()).count()
    }

    /// How many of its slots have begun.
    pub fn slots_begun(&self) -> usize {
        self.slots_over() + usize::from(self.has_nodes())
    }

    /// Whether its work is saved and waits for its next slot. An agreement that runs nothing is Idle in its slot.
    pub fn is_between_slots(&self) -> bool {
        self.service == ServiceState::Idle && self.job.is_some()
    }

    /// The number of the slot that it has, or had last, from 1.
    pub fn slot_number(&self) -> u32 {
        let over = self.slots_over();
        let number = if self.service == ServiceState::Completed {
            over.max(1)
        } else {
            (over + 1).min(self.slots.len())
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// When it has its present slot.
    pub fn slot(&self) -> Interval {
        self.present_slot().placement
    }

    /// The nodes that it has in that slot.
    pub fn slot_nodes(&self) -> u32 {
        self.present_slot().nodes
    }

    /// The agreed work in node-seconds.
    pub fn node_seconds(&self) -> u128 {
        node_seconds_of_stretches(&self.slots.stretches(), self.duration)
    }

    /// When the process really started that runs in its slot.
    pub fn slot_started(&self) -> Option<Micros> {
        self.present_slot().started
    }

    /// The end of the job of its slot where there is nothing of it but, perhaps, its start.
    pub fn end_without_output(&self, outcome: RunOutcome, ended: Micros) -> JobEnd {
        JobEnd::new(outcome, self.slot_started(), ended)
    }

    /// Whether its work goes on in another slot once the one that runs is over.
    pub fn has_more_slots(&self) -> bool {
        self.slots_over() + 1 < self.slots.len()
    }

    /// Adds a slot after the last, with as many nodes as the one that runs.
    pub fn add_slot(&mut self, placement: Interval) {
        self.slots.0.push(Slot {
            deadline_before: Some(self.deadline),
            ..Slot::planned((placement, self.slot_nodes()))
        });
        self.deadline = self.deadline.max(placement.end);
        self.fixed = true;
    }

    /// Whether it has a slot of this index that lies beyond its contract: those before take as long as was agreed.
    pub fn adds_to_contract(&self, index: usize) -> bool {
        index < self.slots.len() && seconds_of_slots(&self.slots[..index]) >= self.duration
    }

    /// Seconds of its slots together.
    pub fn planned_seconds(&self) -> Seconds {
        self.slots.seconds()
    }

    /// Seconds that its slots together are longer than its contract, because its work was not over.
    pub fn overrun(&self) -> Seconds {
        (self.planned_seconds() - self.duration).max(0)
    }

    /// The times in which it keeps nodes from others, and how many: those of each of its slots that is not given up, and was not
    /// over before it took over the work of another agreement.
    pub fn loads(&self) -> Vec<Stretch> {
        let slots = self.slots.iter().enumerate();
        let kept = slots.filter(|(index, slot)| !self.is_slot_given_up(*index) && !slot.taken_over);
        kept.map(|(_, slot)| (slot.occupied(), slot.nodes)).collect()
    }

    /// Whether one of its slots will never be had: it has not begun, and the agreement is over or is being ended.
    pub fn is_slot_given_up(&self, index: usize) -> bool {
        let is_ending = self.ended.is_some() || self.state == AgreementState::ObservedAndTerminating;
        is_ending && index >= self.slots_begun()
    }

    /// Moves the end of its last slot.
    pub fn end_last_slot(&mut self, end: Time) {
        if let Some(slot) = self.slots.last_mut() {
            slot.placement.end = end;
        }
        self.deadline = self.deadline.max(end);
    }

    /// Notes that the slot is over that it has, if it has one.
    pub fn end_slot(&mut self, at: Micros) {
        let over = self.slots_over();
        if self.has_nodes()
            && let Some(slot) = self.slots.get_mut(over)
        {
            slot.ended = Some(at);
            if let Some(job) = &mut self.job {
                job.late += std::mem::take(&mut job.late_in_slot);
            }
        }
    }

    /// Notes that it never has its slot, where it has a single one that has not begun.
    pub fn give_up_slot(&mut self) {
        let has_begun = self.slots_begun() > 0;
        if let [slot] = &mut self.slots[..] {
            slot.never_had = !has_begun;
        }
    }

    /// Gives one of its slots another place, and maybe another number of nodes. The deadline follows where a slot that was added
    /// goes beyond it: time that the provider adds is not late.
    pub fn place_slot(&mut self, index: usize, (placement, nodes): Stretch) {
        let is_agreed = !self.adds_to_contract(index);
        if let Some(slot) = self.slots.get_mut(index) {
            if is_agreed {
                self.duration += placement.duration() - slot.placement.duration();
            }
            (slot.placement, slot.nodes) = (placement, nodes);
        }
        self.deadline = self.deadline.max(self.placement().end);
    }

    /// The slot that it has now, or has next; the last one when all are over.
    pub fn present_slot(&self) -> Slot {
        let present = self.slots.get(self.slots_over()).or(self.slots.last());
        present.copied().unwrap_or(Slot::planned((self.placement(), 0)))
    }

    /// The window in which one of its slots may lie while it has not begun. It ends at the start of the next slot. It begins
    /// where the slot lies; for the first slot that has not begun, at the end of the one before. So the windows of two slots
    /// never overlap, and wherever they move they follow each other. A slot that is run again moves to no earlier place: its job
    /// before may not be over there.
    pub fn slot_window(&self, index: usize) -> Interval {
        let first = index <= self.slots_begun();
        let before = index.checked_sub(1).and_then(|before| self.slots.get(before));
        let start = match (before, self.slots.get(index)) {
            (None, _) => self.ready,
            (Some(before), _) if first => before.occupied().end.max(self.ready),
            (Some(before), slot) => slot.map_or(before.placement.end, |slot| slot.placement.start),
        };
        let lies = self.slots.get(index).filter(|_| self.waits_to_run_again());
        let start = lies.map_or(start, |slot| slot.placement.start.max(start));
        let next = self.slots.get(index + 1);
        Interval::new(start, next.map_or(self.deadline, |next| next.placement.start))
    }

    /// The times in which it has had nodes once it is over, in order, with how many; without those of work that was lost.
    pub(super) fn used_slots(&self) -> Vec<Stretch> {
        let over = self.slots[..self.slots_over()].iter();
        over.filter(|slot| !slot.lost)
            .map(|slot| (slot.occupied(), slot.nodes))
            .collect()
    }

    /// Which of its slots has this index, in words for its party; none where there is one only.
    pub fn piece_of_slots_in_words(&self, index: usize) -> String {
        match self.slots.pieces().len() {
            0 => String::new(),
            pieces => format!("piece {} of {pieces} ", index + 1),
        }
    }
}

/// For how long slots last, together.
fn seconds_of_slots(slots: &[Slot]) -> Seconds {
    slots.iter().map(|slot| slot.placement.duration()).sum()
}

/// Slots as offers have been stored from the beginning: the first start, the most nodes, the seconds of all together, and where
/// there are several each of them.
pub(super) mod stored_slots {
    use scheduler::{Interval, Seconds, Time};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Slot, Slots};

    #[derive(Serialize, Deserialize)]
    struct StoredSlots {
        nodes: u32,
        duration: Seconds,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pieces: Vec<Slot>,
        start: i64,
    }

    pub(in crate::agreement) fn serialize<S: Serializer>(
        slots: &Slots,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = StoredSlots {
            nodes: slots.nodes(),
            duration: slots.seconds(),
            pieces: slots.pieces().to_vec(),
            start: slots.placement().start.seconds(),
        };
        stored.serialize(serializer)
    }

    pub(in crate::agreement) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Slots, D::Error> {
        let stored = StoredSlots::deserialize(deserializer)?;
        let whole = (Interval::of(Time(stored.start), stored.duration), stored.nodes);
        Ok(Slots::of(stored.pieces).unwrap_or_else(|| Slots::one(whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MICROS_PER_SECOND;

    fn slot(start: i64, end: i64, ended_s: Option<i64>) -> Slot {
        Slot {
            ended: ended_s.map(|at| at * MICROS_PER_SECOND),
            ..Slot::planned((Interval::new(Time(start), Time(end)), 2))
        }
    }

    #[test]
    fn a_slot_keeps_its_nodes_until_the_second_after_its_end_and_never_beyond_its_place() {
        let at = |ended| slot(100, 110, ended).occupied().end;
        assert_eq!(
            [
                at(None),
                at(Some(104)),
                at(Some(110)),
                at(Some(300)),
                at(Some(90))
            ],
            [Time(110), Time(104), Time(110), Time(110), Time(100)]
        );
    }

    #[test]
    fn what_is_stored_reads_back() {
        let slots = vec![slot(100, 110, Some(109)), slot(120, 130, None)];
        let text = serde_json::to_string(&slots).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Slot>>(&text).unwrap(), slots);
        assert_eq!(Slots(slots).placement(), Interval::new(Time(100), Time(130)));
    }
}
