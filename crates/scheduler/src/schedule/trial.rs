//! The result of an attempt: a trial, or the obstacle that it met.

use super::{Move, Schedule};
use crate::queue::Key;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Time};

/// Why an attempt failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle {
    /// The newcomer found no place.
    Newcomer,
    /// A waiting request found none.
    Waiting {
        /// Its place in the queue.
        key: Key,
        /// Where the newcomer had been placed.
        placed: Time,
    },
    /// The work that it may do is done.
    Spent,
}

/// How an attempt is taken back.
#[derive(Debug)]
pub(super) enum Undo {
    /// Nodes that were given back in slots, or taken if negative, in order.
    Changes(Vec<(Interval, i64)>),
    /// The plan as it was.
    Plan(Box<SlotTree>),
}

/// The result of an attempt. The plan holds it.
#[derive(Debug)]
pub(super) struct Trial {
    /// Start of the newcomer.
    pub(super) start: Time,
    /// Requests that got other places, with their new starts.
    pub(super) moved: Vec<(u32, Time)>,
    pub(super) undo: Undo,
}

impl Trial {
    pub(super) fn new() -> Self {
        Self {
            start: Time::MAX,
            moved: Vec::new(),
            undo: Undo::Changes(Vec::new()),
        }
    }

    /// Later changes are taken back with it.
    pub(super) fn follow(&mut self, later: Self) {
        if let (Undo::Changes(changes), Undo::Changes(more)) = (&mut self.undo, later.undo) {
            changes.extend(more);
        }
    }

    /// Leaves the plan as it was before the attempt.
    pub(super) fn take_back(self, tree: &mut SlotTree) {
        match self.undo {
            Undo::Plan(before) => *tree = *before,
            Undo::Changes(changes) => {
                for (slot, nodes) in changes.into_iter().rev() {
                    tree.lay(slot, -nodes);
                }
            }
        }
    }
}

impl Schedule {
    /// Takes over the moves of a trial, which the slot tree holds. Where everything behind a key was placed again, all of that
    /// lies at its first fit.
    pub(super) fn apply_trial(&mut self, trial: &Trial, behind: Option<Key>) -> Vec<Move> {
        // One after the other costs less while they are few.
        const MANY: usize = 8;
        let mut moved = if trial.moved.len() * MANY > self.waiting.len() && trial.moved.len() > MANY {
            self.shift_many(&trial.moved)
        } else {
            let each = trial.moved.iter();
            each.filter_map(|(h, to)| self.shift(*h, *to)).collect()
        };
        if let Some(behind) = behind {
            self.waiting.tighten_behind(behind);
        } else {
            for (h, _) in &trial.moved {
                self.waiting.loosen(*h);
            }
        }
        let mut freed = Vec::with_capacity(moved.len());
        for one_move in &moved {
            if let Some((request, _)) = self.waiting_at(one_move.id) {
                freed.push((request.slot(one_move.from), request.nodes));
                self.check_place_or_fault(&request, one_move.from, one_move.to);
            }
        }
        if behind.is_none() {
            self.waiting.loosen_around(&freed);
        }
        moved.sort_unstable();
        moved
    }
}
