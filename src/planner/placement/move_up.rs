//! Moves into free time: waiting agreements move up, a slice at a time, after the answers are
//! given (`docs/design/planning.md`).
//!
//! A move has to be worth its line in the timeline: it gains a least time, and an agreement is moved so often in an hour at most.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use scheduler::admission::LeastGain;
use scheduler::{Fraction, Move, Seconds, Time};
use uuid::Uuid;

use crate::clock::second_of;
use crate::planner::Plan;
use crate::planner::decide::Decider;
use crate::planner::numbers::SlotOf;

/// The work of a slice, counted as that of a decision: a quarter of a decision's budget, because a decision may have to wait
/// for it.
const SLICE_WORK: u64 = scheduler::admission::BUDGET / 4;
/// The moves of a slice: storing them takes a few milliseconds.
const SLICE_MOVES: usize = 64;
/// Looking at a resource costs at least this,
const RESOURCE_WORK: u64 = 16;
/// and at most this for each agreement that waits on it, until something changes there again. Else, in an order that changes
/// with time, the same agreements would be looked at again every second.
const LOOKS_WORK: u64 = 64;
const HOUR: Seconds = 3_600;

/// Which moves into free time are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Improving {
    /// Whether agreements that could have started earlier before are moved too, and not only the ones that can start
    /// earlier since time became free.
    pub idle: bool,
    /// The least gain of a move.
    pub least_gain: LeastGain,
    /// Moves of one agreement in an hour at most.
    pub moves_per_hour: usize,
}

impl Improving {
    /// Every move that gains a second.
    pub const ANY: Self = Self {
        idle: true,
        least_gain: LeastGain::ANY,
        moves_per_hour: usize::MAX,
    };
}

impl Default for Improving {
    /// Moves that gain a minute and a hundredth of the wait, four an hour.
    fn default() -> Self {
        Self {
            idle: true,
            least_gain: LeastGain {
                seconds: 60,
                of_wait: Fraction::percent(1),
            },
            moves_per_hour: 4,
        }
    }
}

/// Where something may be able to start earlier: resources by their places, each with the work that may be done to look for it.
#[derive(Debug, Default)]
pub(in crate::planner) struct ToLookAt {
    work: BTreeMap<usize, u64>,
    /// The place behind the one that was looked at last.
    next: usize,
}

impl ToLookAt {
    /// Notes a resource with its number of waiting agreements.
    pub(in crate::planner) fn note(&mut self, at: usize, waiting: usize) {
        let work = LOOKS_WORK.saturating_mul(waiting as u64 + 1);
        self.work.insert(at, work);
    }

    /// The next resource in turn, and the work that may be done on it.
    fn take(&mut self) -> Option<(usize, u64)> {
        let after = self.work.range(self.next..).next();
        let (at, _) = after.or_else(|| self.work.first_key_value())?;
        let at = *at;
        self.next = at + 1;
        self.work.remove_entry(&at)
    }

    /// Has a resource looked at again, with the rest of the work.
    fn go_on(&mut self, at: usize, work: u64) {
        if work > 0 {
            self.work.insert(at, work);
        }
    }

    fn is_empty(&self) -> bool {
        self.work.is_empty()
    }
}

/// Which agreements were moved of late, and when those are looked at again that were moved too often.
#[derive(Debug, Default)]
pub(in crate::planner) struct MovedUp {
    /// The last moves of each, as many as are counted.
    times: HashMap<Uuid, VecDeque<Time>>,
    /// Resource and number.
    again: BTreeSet<(Time, usize, u64)>,
}

impl MovedUp {
    /// From when on an agreement may be moved that may be moved so often in an hour.
    fn may_move_from(&self, agreement: Uuid, moves_per_hour: usize) -> Option<Time> {
        let times = self.times.get(&agreement)?;
        let oldest = times.len().checked_sub(moves_per_hour)?;
        times.get(oldest).map(|at| *at + HOUR)
    }

    fn note(&mut self, agreement: Uuid, now: Time) {
        let times = self.times.entry(agreement).or_default();
        times.retain(|at| *at + HOUR > now);
        times.push_back(now);
    }

    /// Forgets an agreement that is over.
    pub(in crate::planner) fn forget(&mut self, agreement: Uuid) {
        self.times.remove(&agreement);
    }
}

impl Plan {
    /// Whether a slice at `now` has something to look at. O(1).
    pub(in crate::planner) fn may_move_up(&self, now: Time) -> bool {
        let again = self.moved_up.again.first();
        !self.resources.to_look_at.is_empty() || again.is_some_and(|(at, ..)| *at <= now)
    }

    /// Makes some of the moves that can be made: O(1) of them, found with O(1) work.
    fn move_some_up(&mut self, now: Time, moves_per_hour: usize) -> Vec<Move> {
        while let Some(&(due, at, number)) = self.moved_up.again.first()
            && due <= now
        {
            self.moved_up.again.pop_first();
            self.resources.look_again(at, number);
        }
        let (mut moves, mut work) = (Vec::new(), SLICE_WORK);
        while moves.len() < SLICE_MOVES
            && work > 0
            && let Some((at, left)) = self.resources.to_look_at.take()
        {
            let name = self.resources.get(at).map(|of| of.resource.name.as_str());
            let near_until = name.and_then(|name| self.reserving.near_until(name, now));
            let (numbers, moved_up, live) = (&self.numbers, &mut self.moved_up, &self.live);
            let may_move = |number: u64| {
                // A hold has one place only.
                let Some(SlotOf { agreement, .. }) = numbers.slot(number) else {
                    return true;
                };
                // Its cluster holds its nodes where it is, and may have given the earlier time to others.
                let start = live.get(&agreement).map(|of| of.slot().start);
                if start.zip(near_until).is_some_and(|(start, until)| start <= until) {
                    return false;
                }
                match moved_up.may_move_from(agreement, moves_per_hour) {
                    Some(from) if from > now => {
                        moved_up.again.insert((from, at, number));
                        false
                    }
                    _ => true,
                }
            };
            let moves_max = SLICE_MOVES - moves.len();
            let improved = self
                .resources
                .improve(at, now, work.min(left), moves_max, may_move);
            let done = improved.work.max(RESOURCE_WORK);
            work = work.saturating_sub(done);
            if !improved.done {
                self.resources.to_look_at.go_on(at, left.saturating_sub(done));
            }
            for of in &improved.moved {
                if let Some(slot) = self.numbers.slot(of.id) {
                    self.moved_up.note(slot.agreement, now);
                }
            }
            moves.extend(improved.moved);
        }
        moves
    }
}

impl Decider<'_> {
    /// One slice: some waiting agreements move up into free time.
    pub(in crate::planner) fn improve(&mut self) {
        let now = second_of(self.now);
        let most = self.settings.improving.moves_per_hour;
        let moves = self.plan.move_some_up(now, most);
        self.moved(&moves, "into time that became free");
    }
}

#[cfg(test)]
mod tests;
