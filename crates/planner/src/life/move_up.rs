//! Slices that are made after the answers are given: waiting agreements move up into free time, and recorded moves are settled
//! (`docs/design/planning.md`).
//!
//! A move has to be worth its line in the timeline: it gains a least time, and an agreement is moved so often in an hour at most.

use crate::decider::Decider;
use crate::life::{deadlines, settle_moves, update};
use crate::placement::grow;
use crate::state::State;

/// Why a waiting agreement begins or ends earlier, in words for its party.
const FREE_TIME: &str = "into time that became free";

impl Decider<'_> {
    /// Makes one slice of moves into free time: some waiting agreements move up.
    pub fn move_some_up(&mut self) {
        let most = self.settings.improving.moves_per_hour;
        let now = self.present_second();
        let looked_at = self.state.schedules.next_to_look_at();
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
        update::update_after_each_move(self, &moves, FREE_TIME);
        for at in looked_at {
            self.grow_on(at);
        }
        deadlines::fix_at_deadlines(self);
    }

    /// Has waiting agreements on a resource take larger sizes, once all there have moved up that can.
    fn grow_on(&mut self, at: usize) {
        if self.state.schedules.is_to_be_looked_at(at) {
            return;
        }
        let now = self.present_second();
        for shape in grow::grow_in_free_time(&mut self.search(), at) {
            // It ends earlier, as after a move.
            self.state.placement.note_move_up(shape.placed.id, now);
            update::update_to_new_shape(self, &shape, FREE_TIME);
        }
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
