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
use super::{Agreement, AgreementState, JobEnd, Money, RunOutcome, ServiceState, Stretch, part_of_amount};
use crate::clock::{MICROS_PER_SECOND, Micros, second_after};

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
}

/// One slot or more, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<Slot>);

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
        node_seconds(&self.stretches(), self.seconds())
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

    /// The pieces as its party sees them and as they are stored: none where there is only one slot.
    pub fn pieces(&self) -> &[Slot] {
        if self.is_split() { &self.0 } else { &[] }
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

    /// Whether a slot of it has begun and is not over.
    pub fn has_nodes(&self) -> bool {
        match self.service {
            ServiceState::Processing => true,
            ServiceState::Idle => !self.is_between_slots(),
            ServiceState::NotReady | ServiceState::Completed => false,
        }
    }

    /// Whether its work is saved and waits for its next slot. An agreement that runs nothing is Idle in its slot.
    pub fn is_between_slots(&self) -> bool {
        self.service == ServiceState::Idle && self.job.is_some()
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

    /// The slot that it has now, or has next; the last one when all are over.
    pub fn present(&self) -> Slot {
        let present = self.slots.get(self.slots_over()).or(self.slots.last());
        present.copied().unwrap_or(Slot::planned((self.placement(), 0)))
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
        self.present().placement
    }

    /// The nodes that it has in that slot.
    pub fn slot_nodes(&self) -> u32 {
        self.present().nodes
    }

    /// The agreed work in node-seconds.
    pub fn node_seconds(&self) -> u128 {
        node_seconds(&self.slots.stretches(), self.duration)
    }

    /// The nodes that it has on the average of its time, to the nearest: all of them where none of its slots has others.
    pub fn mean_nodes(&self) -> u32 {
        let seconds = u128::from(self.planned_seconds().max(1).unsigned_abs());
        let mean = (self.slots.node_seconds() + seconds / 2) / seconds;
        u32::try_from(mean).unwrap_or(self.nodes())
    }

    /// When the process really started that runs in its slot.
    pub fn slot_started(&self) -> Option<Micros> {
        self.present().started
    }

    /// The end of the job of its slot where there is nothing of it but, perhaps, its start.
    pub fn end_without_output(&self, outcome: RunOutcome, ended: Micros) -> JobEnd {
        JobEnd::new(outcome, self.slot_started(), ended)
    }

    /// Notes when the process really started that runs in its slot.
    pub fn note_started(&mut self, at: Option<Micros>) {
        let over = self.slots_over();
        if let Some(slot) = self.slots.get_mut(over) {
            slot.started = at;
        }
        self.started = self.slots.iter().find_map(|slot| slot.started);
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

    /// Notes that the work that runs, or goes on next, is lost for good. Answers the outcome of the whole: where that slot was
    /// beyond the contract, the agreement has had its contract and was stopped after it.
    pub fn lose(&mut self) -> RunOutcome {
        let over = self.slots_over();
        if !self.adds_to_contract(over) {
            return RunOutcome::Lost;
        }
        self.slots[over].lost = true;
        RunOutcome::Killed
    }

    /// Whether its work goes on in another slot once the one that runs is over.
    pub fn has_more_slots(&self) -> bool {
        self.slots_over() + 1 < self.slots.len()
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

    /// Moves the end of its last slot.
    pub fn end_last_slot(&mut self, end: Time) {
        if let Some(slot) = self.slots.last_mut() {
            slot.placement.end = end;
        }
        self.deadline = self.deadline.max(end);
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

    /// Gives up the slot that is to follow the one that runs and was added to its contract, if there is one; the deadline is
    /// again as it was before.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let mut without = self.clone();
        let next = self.slots_over() + 1;
        if self.adds_to_contract(next) {
            without.deadline = self.slots[next].deadline_before.unwrap_or(self.deadline);
            without.slots.0.truncate(next);
            without.deadline = without.deadline.max(without.placement().end);
        }
        without
    }

    /// Whether it has a slot of this index that lies beyond its contract: those before take as long as was agreed.
    pub fn adds_to_contract(&self, index: usize) -> bool {
        index < self.slots.len() && seconds_of_slots(&self.slots[..index]) >= self.duration
    }

    /// The times in which it has had nodes once it is over, in order, with how many; without those of work that was lost.
    fn used(&self) -> Vec<Stretch> {
        let over = self.slots[..self.slots_over()].iter();
        over.filter(|slot| !slot.lost)
            .map(|slot| (slot.occupied(), slot.nodes))
            .collect()
    }

    /// Seconds of its slots together.
    pub fn planned_seconds(&self) -> Seconds {
        self.slots.seconds()
    }

    /// Seconds that its slots together are longer than its contract, because its work was not over.
    pub fn overrun(&self) -> Seconds {
        (self.planned_seconds() - self.duration).max(0)
    }

    /// Seconds beyond its contract that it has used once it is over.
    pub fn used_overrun(&self) -> Seconds {
        let used: Seconds = self.used().iter().map(|(time, _)| time.duration()).sum();
        (used - self.withheld() - self.duration).clamp(0, self.overrun())
    }

    /// The price of the overruns, at the agreed rate; none where nothing is priced.
    pub fn overrun_price(&self) -> Option<Money> {
        // Even where earlier slots have time left, the time beyond the contract is the last that it has had.
        let used: Vec<_> = self.used().into_iter().rev().collect();
        self.price_of_seconds(node_seconds(&used, self.used_overrun()))
    }

    /// The price of this many more seconds of the running slot, at the agreed rate; none where nothing is priced.
    pub fn price_of_more(&self, seconds: Seconds) -> Option<Money> {
        self.price_of_seconds(u128::from(self.slot_nodes()) * u128::from(seconds.max(0).unsigned_abs()))
    }

    /// The price of this many node-seconds, at the agreed rate.
    fn price_of_seconds(&self, more: u128) -> Option<Money> {
        let number = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
        Some(part_of_amount(
            self.price?,
            number(more),
            number(self.node_seconds()),
        ))
    }

    /// The times in which it keeps nodes from others, and how many: those of each of its slots that is not given up, and was not
    /// over before it took over the work of another agreement.
    pub fn loads(&self) -> Vec<Stretch> {
        let slots = self.slots.iter().enumerate();
        let kept = slots.filter(|(index, slot)| !self.is_given_up(*index) && !slot.taken_over);
        kept.map(|(_, slot)| (slot.occupied(), slot.nodes)).collect()
    }

    /// Whether one of its slots will never be had: it has not begun, and the agreement is over or is being ended.
    pub fn is_given_up(&self, index: usize) -> bool {
        let is_ending = self.ended.is_some() || self.state == AgreementState::ObservedAndTerminating;
        is_ending && index >= self.slots_begun()
    }

    /// When the nodes are free again that it had last: from its start on where no slot of it is over.
    pub fn released(&self) -> Time {
        let last = self.slots[..self.slots_over()].last();
        last.map_or(self.placement().start, |slot| slot.occupied().end)
    }

    /// For how long its processes have run by an instant, in microseconds.
    pub fn run_time_by(&self, now: Micros) -> Micros {
        let ran = |slot: &Slot| Some((slot.ended.unwrap_or(now) - slot.started?).max(0));
        self.slots.iter().filter_map(ran).sum()
    }

    /// For how long its processes will have run when its slots are over, in microseconds.
    pub fn run_time_to_end(&self) -> Micros {
        let runs = |slot: &Slot| {
            let [start, end] = [slot.placement.start, slot.placement.end]
                .map(|time| time.seconds().saturating_mul(MICROS_PER_SECOND));
            slot.ended.unwrap_or(end) - slot.started.unwrap_or(start)
        };
        self.slots.iter().map(runs).sum()
    }

    /// For how long its processes have run that have ended, in microseconds; none where none has.
    pub fn run_time(&self) -> Option<Micros> {
        let ran = |slot: &Slot| Some((slot.ended? - slot.started?).max(0));
        self.slots.iter().filter_map(ran).reduce(|one, next| one + next)
    }
}

/// Node-seconds of the first `seconds` of stretches.
fn node_seconds(stretches: &[Stretch], seconds: Seconds) -> u128 {
    let mut left = seconds;
    let mut found = 0;
    for (time, nodes) in stretches {
        let taken = time.duration().clamp(0, left.max(0));
        left -= taken;
        found += u128::from(taken.unsigned_abs()) * u128::from(*nodes);
    }
    found
}

/// For how long slots last, together.
fn seconds_of_slots(slots: &[Slot]) -> Seconds {
    slots.iter().map(|slot| slot.placement.duration()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

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
