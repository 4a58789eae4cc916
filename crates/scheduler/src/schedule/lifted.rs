//! Algorithm 1 as it is printed: everything behind the newcomer is lifted and placed again, in order.
//!
//! Until an attempt ends, requests only come into its plan. So where a request had no room at its turn, none of its size or a
//! larger one has room at a later turn: that part of a window is not searched again. In a full plan most of a search is spared.

use super::attempt::Attempt;
use super::newcomer::Newcomer;
use super::trial::{Obstacle, Trial, Undo};
use super::waiting::WaitingRequest;
use super::work::{SEARCH, VISIT};
use crate::queue::Key;
use crate::request::Request;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use std::collections::BTreeMap;

/// What is known of full times is looked up and noted.
const LOOK_UP: u64 = SEARCH;
/// One request is lifted, searched, and placed.
pub(super) const LIFTED: u64 = SEARCH + LOOK_UP + VISIT + SEARCH;
/// A copy of the plan counts 1 for so many waiting requests.
const COPIED: u64 = 16;

/// The times at which an attempt has had no room for requests of some sizes.
#[derive(Debug, Default)]
pub(super) struct FullTimes {
    /// By nodes and duration: none can start in this interval.
    known: BTreeMap<(u32, Seconds), Interval>,
}

impl FullTimes {
    /// The first fit of a request in its window, which `search` finds in the part of it that is not known to be full.
    fn first_fit(
        &mut self,
        request: &Request,
        window: Interval,
        search: impl FnOnce(Interval) -> Option<Time>,
    ) -> Option<Time> {
        let known = self.before(request, window.start);
        let found = search(Interval::new(known.end, window.end));
        let until = found.unwrap_or(window.end - (request.duration - 1));
        self.note(request, Interval::new(known.start, until.max(known.end)));
        found
    }

    /// Where a request that is ready at `ready` is known not to start; empty where nothing is known.
    fn before(&self, request: &Request, ready: Time) -> Interval {
        let smaller = (request.nodes, 0)..=(request.nodes, request.duration);
        let known = self.known.range(smaller).next_back().map(|(_, full)| *full);
        let known = known.filter(|full| full.start <= ready && ready <= full.end);
        known.unwrap_or(Interval::new(ready, ready))
    }

    /// Notes that a request cannot start in `full`, which says as much of the same nodes for a longer time.
    fn note(&mut self, request: &Request, full: Interval) {
        let size = (request.nodes, request.duration);
        let larger = size..=(request.nodes, Seconds::MAX);
        while let Some((other, known)) = self.known.range(larger.clone()).next()
            && full.contains(*known)
        {
            let other = *other;
            self.known.remove(&other);
        }
        if !full.is_empty() {
            self.known.insert(size, full);
        }
    }
}

impl Attempt<'_> {
    /// Lifts everything behind the newcomer, without one everything, and places it and all of that again, in order; where one of
    /// them finds no place, the newcomer goes directly behind that one (fixqueue). All attempts share the requests before the
    /// newcomer, so that together they place each request twice at the most. O(n log n) for n requests behind the key.
    ///
    /// # Errors
    /// The newcomer finds no place, or without a newcomer some other request; or the work is spent. The plan is as it was
    /// then.
    pub(super) fn run_lifted(&mut self, newcomer: Option<&mut Newcomer>) -> Result<Trial, Obstacle> {
        let most = usize::try_from(self.work.left() / LIFTED).unwrap_or(usize::MAX);
        let behind = newcomer.as_ref().map_or(Key::FIRST, |newcomer| newcomer.behind);
        let count = self.list.count_behind(behind, most);
        if count > most {
            return Err(Obstacle::Spent);
        }
        let queue: Vec<(Key, u32, WaitingRequest)> = self
            .list
            .behind(behind)
            .map(|(key, handle, waiting)| (key, handle, *waiting))
            .collect();
        let mut trial = Trial::new();
        let copy = self.list.len() as u64 / COPIED;
        if queue.len() as u64 > copy {
            self.work.spend(copy);
            trial.undo = Undo::Plan(Box::new(self.tree.clone()));
        }
        for (_, _, waiting) in &queue {
            self.give_back(&mut trial, &waiting.request, waiting.start);
        }
        match self.place_lifted(&mut trial, newcomer, &queue) {
            Ok(starts) => {
                let each = queue[queue.len() - starts.len()..].iter().zip(starts);
                trial.moved = each
                    .filter(|((_, _, waiting), to)| waiting.start != *to)
                    .map(|((_, handle, _), to)| (*handle, to))
                    .collect();
                Ok(trial)
            }
            Err(obstacle) => {
                trial.take_back(self.tree);
                Err(obstacle)
            }
        }
    }

    /// Places a newcomer and those of a lifted queue that come behind it; answers with the starts of these.
    fn place_lifted(
        &mut self,
        trial: &mut Trial,
        mut newcomer: Option<&mut Newcomer>,
        mut rest: &[(Key, u32, WaitingRequest)],
    ) -> Result<Vec<Time>, Obstacle> {
        loop {
            if let Some(Newcomer {
                request, not_before, ..
            }) = newcomer.as_deref()
            {
                let window = Interval::new(*not_before, request.deadline);
                let start = self.search(request, window, u64::MAX);
                trial.start = start.ok_or(Obstacle::Newcomer)?;
                self.take(trial, request, trial.start);
            }
            let mut full = FullTimes::default();
            let mut starts = Vec::with_capacity(rest.len());
            for (_, _, waiting) in rest {
                let start = self.start_lifted(waiting, &mut full);
                if self.work.is_spent() {
                    return Err(Obstacle::Spent);
                }
                let Some(start) = start else { break };
                starts.push(start);
                self.take(trial, &waiting.request, start);
            }
            let Some((key, _, _)) = rest.get(starts.len()) else {
                return Ok(starts);
            };
            let (key, placed) = (*key, trial.start);
            let Some(newcomer) = newcomer.as_deref_mut() else {
                return Err(Obstacle::Waiting { key, placed });
            };
            // Those up to the one without a place stay where they were, and the newcomer comes behind them.
            newcomer.go_behind(key, placed);
            let (stay, behind) = rest.split_at(starts.len() + 1);
            match &trial.undo {
                Undo::Plan(before) if behind.len() < 2 * stay.len() => {
                    self.work.spend(self.list.len() as u64 / COPIED);
                    *self.tree = SlotTree::clone(before);
                    for (_, _, waiting) in behind {
                        self.give_back(trial, &waiting.request, waiting.start);
                    }
                }
                _ => {
                    self.give_back(trial, &newcomer.request, placed);
                    for ((_, _, waiting), start) in rest.iter().zip(&starts) {
                        self.give_back(trial, &waiting.request, *start);
                    }
                    for (_, _, waiting) in stay {
                        self.take(trial, &waiting.request, waiting.start);
                    }
                }
            }
            rest = behind;
        }
    }

    /// The first fit of a lifted request; its old start where an earlier one gains too little. Between calls with the same full
    /// times nothing leaves the plan.
    pub(super) fn start_lifted(&mut self, waiting: &WaitingRequest, full: &mut FullTimes) -> Option<Time> {
        let WaitingRequest { request, start, .. } = waiting;
        let window = request.window_at(self.now);
        self.work.spend(LOOK_UP);
        let found = full.first_fit(request, window, |rest| self.search(request, rest, u64::MAX))?;
        let stays = found < *start
            && *start - found < self.least_gain.of(request, *start)
            && self.tree.min_free(waiting.slot()) >= request.nodes;
        Some(if stays { *start } else { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_be_full_has_no_first_fit() {
        let mut seed = 5_u64;
        let mut draw = move |below: i64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(seed >> 33).unwrap() % below
        };
        let (mut spared, mut refused) = (0, 0);
        for list in 0..3_000 {
            let mut tree = SlotTree::new(8);
            let mut full = FullTimes::default();
            for id in 0..40 {
                let ready = Time(if list % 2 == 0 { 0 } else { draw(60) });
                let duration = 1 + draw(20);
                let request = Request {
                    id,
                    submitted: Time(0),
                    ready,
                    deadline: ready + duration + draw(150),
                    duration,
                    nodes: 1 + u32::try_from(draw(8)).unwrap(),
                    revenue: 0,
                };
                let window = request.window();
                let expected = tree.earliest_fit(request.nodes, duration, window);
                let found = full.first_fit(&request, window, |rest| {
                    spared += usize::from(rest != window);
                    tree.earliest_fit(request.nodes, duration, rest)
                });
                assert_eq!(found, expected, "list {list}, request {id}");
                match found {
                    Some(start) => tree.reserve(request.slot(start), request.nodes).unwrap(),
                    None => refused += 1,
                }
            }
        }
        assert!(spared > 10_000 && refused > 10_000, "{spared} {refused}");
    }
}
