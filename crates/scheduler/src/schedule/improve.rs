//! Moving up: waiting requests are placed where they can start earlier, while no caller waits.

use super::least_gain::LeastGain;
use super::waiting::Looking;
use super::work::{LOOK, SEARCH, Work};
use super::{Move, Schedule, WaitingRequest};
use crate::queue::Key;
use crate::time::{Interval, Time};
use std::collections::BTreeMap;

/// The result of a slice of improvement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Improvement {
    /// The requests that moved to an earlier start, by id: each once, also where it moved several times.
    pub moved: Vec<Move>,
    /// Whether nothing is left to look at.
    pub done: bool,
    /// The work that was done.
    pub work: u64,
}

impl Schedule {
    /// Leaves requests where they are that would gain less than this by moving up.
    #[must_use]
    pub fn gaining(mut self, least: LeastGain) -> Self {
        self.least_gain = least;
        self
    }

    /// Moves some waiting requests up that may be able to start earlier, each by itself as the plan stands: by [`DecisionRule::Published`]
    /// in order, else those that can use time at which nodes became free since the last look, the earliest such time first and for it
    /// the request that starts last. It does at most `work`, counted as for [`Schedule::budgeted`], and makes at most `moves_max` moves. `may_move`
    /// says whether a request may move now. None moves to a start before `not_before`, and time before it is not looked at again: a later
    /// call has it no earlier. A request that was looked at is not looked at again until nodes become free near it. The work
    /// goes by how much became free and by how many gain, and hardly by how many wait.
    pub fn improve_some(
        &mut self,
        now: Time,
        not_before: Time,
        work: u64,
        moves_max: usize,
        mut may_move: impl FnMut(u64) -> bool,
    ) -> Improvement {
        self.advance(now);
        let mut done = false;
        let mut moved: BTreeMap<u64, Move> = BTreeMap::new();
        self.freshen_waiting();
        self.waiting.mark_around_given_up();
        let (given, mut work) = (work, Work::of(work));
        let from = self.now.max(not_before);
        let mut looking = Looking::new(from, self.least_gain);
        let mut left = Vec::new();
        while !work.is_spent() && moved.len() < moves_max {
            let Some(h) = self.waiting.next_to_improve(&mut looking, &self.tree, &mut work) else {
                done = !work.is_spent();
                break;
            };
            work.spend(LOOK);
            let looked_at = self.waiting.get(h).copied();
            if let Some(waiting) = looked_at.filter(|looked_at| may_move(looked_at.request.id)) {
                // Taken out, searched, and placed back.
                work.spend(3 * SEARCH);
                let moved_up = self.move_up_alone(h, from);
                looking.note_outcome(moved_up.is_some());
                if let Some(one_move) = moved_up {
                    left.push((waiting.slot(), waiting.request.nodes));
                    self.waiting.leave_by_move_up(h, &waiting, one_move.to);
                    // It may have moved before, and the place that it left is free for it again.
                    let known = moved.entry(one_move.id);
                    known
                        .and_modify(|known| known.to = one_move.to)
                        .or_insert(one_move);
                }
            }
        }
        // At once: the work for all of them is bounded.
        self.waiting.loosen_in_order_around(&left);
        Improvement {
            moved: moved.into_values().collect(),
            done,
            work: given - work.left(),
        }
    }

    /// Has a waiting request looked at again by [`Schedule::improve_some`].
    pub fn improve_again(&mut self, id: u64) {
        if let Some(super::RequestPlace::Waiting(h)) = self.by_id.get(&id) {
            self.waiting.loosen(*h);
        }
    }

    /// Finds the requests that lie at their first fit given those before them, after all have been restored: all others may be
    /// placed again by the next decision. O(n log n).
    pub fn find_improvable(&mut self) {
        self.waiting.mark_around_given_up();
        self.waiting.freshen(self.now);
        let queue: Vec<(u32, WaitingRequest)> = self
            .waiting
            .behind(Key::FIRST)
            .map(|(_, h, waiting)| (h, *waiting))
            .collect();
        let mut tree = self.tree.clone();
        for (_, waiting) in &queue {
            tree.lay(waiting.slot(), waiting.request.nodes.into());
        }
        self.tree.tighten_summaries();
        self.waiting.tighten_behind(Key::FIRST);
        for (h, WaitingRequest { request, start, .. }) in queue {
            let window = request.window_at(self.now);
            let first = tree.earliest_fit(request.nodes, request.duration, window);
            if first != Some(start) {
                self.waiting.loosen(h);
            }
            tree.lay(request.slot(start), -i64::from(request.nodes));
        }
    }

    /// Lets the waiting requests use the freed interval.
    pub(super) fn move_up(&mut self, freed: Interval) -> Vec<Move> {
        if freed.is_empty() {
            return Vec::new();
        }
        // In order, from nothing.
        match self.place_again(None, Some(freed), &mut Work::unbounded()) {
            Ok(trial) => self.apply_trial(&trial, Some(Key::FIRST)),
            Err(_) => self.move_up_one_by_one(),
        }
    }

    /// Each moved up by itself, in order.
    fn move_up_one_by_one(&mut self) -> Vec<Move> {
        let queue: Vec<u32> = self.waiting.behind(Key::FIRST).map(|(_, h, _)| h).collect();
        let mut moved = Vec::new();
        for h in queue {
            moved.extend(self.move_up_alone(h, self.now));
            self.waiting.loosen(h);
        }
        moved.sort_unstable();
        moved
    }

    /// Moves one request up as the plan stands to a start from an instant on, where it gains enough.
    fn move_up_alone(&mut self, h: u32, from: Time) -> Option<Move> {
        let WaitingRequest { request, start, .. } = *self.waiting.get(h)?;
        let ready = request.window_at(from).start;
        let gain = self.least_gain.of(&request, start);
        if start - ready < gain {
            return None;
        }
        let nodes = i64::from(request.nodes);
        self.tree.lay(request.slot(start), nodes);
        let window = Interval::new(ready, start + (request.duration - gain));
        let to = self.tree.earliest_fit(request.nodes, request.duration, window);
        let to = to.unwrap_or(start);
        self.tree.lay(request.slot(to), -nodes);
        (to != start).then(|| self.shift(h, to))?
    }
}

#[cfg(test)]
mod tests;
