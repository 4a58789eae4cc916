//! Moves into free time: waiting agreements move up, a slice at a time, after the answers are
//! given (`docs/design/planning.md`).
//!
//! A move has to be worth its line in the timeline: it gains a least time, and an agreement is moved so often in an hour at most.

use scheduler::{Move, Time};

use crate::decider::Decider;
use crate::plan::Plan;
use crate::slot_numbers::SlotOf;

/// The work of a slice, counted as that of a decision: a quarter of a decision's budget, because a decision may have to wait
/// for it.
const SLICE_WORK: u64 = scheduler::admission::BUDGET / 4;
/// The moves of a slice: storing them takes a few milliseconds.
const SLICE_MOVES: usize = 64;
/// Looking at a resource costs at least this.
const RESOURCE_WORK: u64 = 16;
impl Plan {
    /// Whether a slice at `now` has something to look at. Where energy decides, nothing moves by itself: an earlier time may be a dearer
    /// one. O(1).
    pub fn may_move_up(&self, now: Time) -> bool {
        let again = self.placement.moved_up.again.first();
        let has_some = !self.schedules.to_look_at.is_empty() || again.is_some_and(|(at, ..)| *at <= now);
        has_some && !self.schedules.weighs_energy()
    }

    /// Makes some of the moves that can be made: O(1) of them, found with O(1) work.
    fn move_some_up(&mut self, now: Time, moves_per_hour: usize) -> Vec<Move> {
        if !self.may_move_up(now) {
            return Vec::new();
        }
        while let Some(&(due, at, number)) = self.placement.moved_up.again.first()
            && due <= now
        {
            self.placement.moved_up.again.pop_first();
            self.schedules.look_again(at, number);
        }
        let (mut moves, mut work) = (Vec::new(), SLICE_WORK);
        while moves.len() < SLICE_MOVES
            && work > 0
            && let Some((at, left)) = self.schedules.to_look_at.take()
        {
            let name = self
                .schedules
                .get(at)
                .map(|resource| resource.resource.name.as_str());
            let near_until = name.and_then(|name| self.waiting.near_until(name, now));
            let (numbers, moved_up, live) = (
                &self.placement.numbers,
                &mut self.placement.moved_up,
                &self.agreements,
            );
            let may_move = |number: u64| {
                // A hold has one place only.
                let Some(SlotOf { agreement, .. }) = numbers.slot(number) else {
                    return true;
                };
                // Its cluster holds its nodes where it is, and may have given the earlier time to others.
                let start = live.get(&agreement).map(|live| live.slot().start);
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
            let improved = self
                .schedules
                .improve(at, now, work.min(left), moves_max, may_move);
            let done = improved.work.max(RESOURCE_WORK);
            work = work.saturating_sub(done);
            if !improved.done {
                self.schedules.to_look_at.go_on(at, left.saturating_sub(done));
            }
            for one_move in &improved.moved {
                if let Some(slot) = self.placement.numbers.slot(one_move.id) {
                    self.placement.moved_up.note(slot.agreement, now);
                }
            }
            moves.extend(improved.moved);
        }
        moves
    }
}

impl Decider<'_> {
    /// One slice: some waiting agreements move up into free time.
    pub fn move_some_up(&mut self) {
        let most = self.settings.improving.moves_per_hour;
        let moves = self.plan.move_some_up(self.present_second(), most);
        self.apply_moves(&moves, "into time that became free");
    }
}

#[cfg(test)]
mod tests;
