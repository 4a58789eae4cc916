//! Slices that are made after the answers are given: waiting agreements move up into free time, and recorded moves are settled
//! (`docs/design/planning.md`).
//!
//! A move has to be worth its line in the timeline: it gains a least time, and an agreement is moved so often in an hour at most.

use crate::decider::Decider;
use crate::life::{deadlines, settle_moves, update};
use crate::state::State;

impl Decider<'_> {
    /// Makes one slice of moves into free time: some waiting agreements move up.
    pub fn move_some_up(&mut self) {
        let most = self.settings.improving.moves_per_hour;
        let now = self.present_second();
        let State {
            placement,
            schedules,
            agreements,
            elsewhere,
            ..
        } = &mut *self.state;
        let moves = placement.move_some_up(
            schedules,
            agreements,
            |name| elsewhere.near_until(name, now),
            now,
            most,
        );
        // There are few in a slice, and nothing waits for them.
        update::update_after_each_move(self, &moves, "into time that became free");
        deadlines::fix_at_deadlines(self);
    }

    /// Settles one slice of recorded moves.
    pub fn settle_some_moves(&mut self) {
        for id in self.state.life.unsettled_moves_mut().next_slice() {
            settle_moves::settle_moves(self, id);
        }
    }
}

#[cfg(test)]
mod tests;
