//! Moves into free time: waiting agreements move up, a slice at a time, after the answers are
//! given (`docs/design/planning.md`).
//!
//! A move has to be worth its line in the timeline: it gains a least time, and an agreement is moved so often in an hour at most.

use crate::decider::Decider;
use crate::life::update;
use crate::state::State;

/// One slice: some waiting agreements move up into free time.
pub(crate) fn move_some_up(decider: &mut Decider<'_>) {
    let most = decider.settings.improving.moves_per_hour;
    let now = decider.present_second();
    let State {
        placement,
        schedules,
        agreements,
        waiting,
        ..
    } = &mut *decider.state;
    let moves = placement.move_some_up(
        schedules,
        agreements,
        |name| waiting.near_until(name, now),
        now,
        most,
    );
    update::apply_moves(decider, &moves, "into time that became free");
}

#[cfg(test)]
mod tests;
