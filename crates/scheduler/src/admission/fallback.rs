//! The fallback where the work of a decision is spent before algorithm 1 ends. A newcomer that fits the plan as it stands is
//! accepted there. One that does not fit is accepted where the requests in its way fit elsewhere as the plan stands. This costs a
//! few searches, for any number of waiting requests.

use super::trial::{Attempt, Newcomer, Trial};
use super::work::{LOOK, SEARCH, VISIT};
use crate::queue::Key;
use crate::request::Request;
use crate::time::{Seconds, Time};

/// Places that are tried for a newcomer that does not fit as the plan stands.
const PLACES_MAX: u32 = 8;
/// Requests that make way for one newcomer at most.
const MAKING_WAY_MAX: usize = 64;
/// Blocks of slots that are looked at for the other place of one request, from either end of its window.
const VISITS_MAX: u64 = 24;
/// Requests in the way of one place that are looked at.
const LOOKED_AT_MAX: u64 = 4_096;

impl Attempt<'_> {
    /// Places a newcomer without placing everything behind it again. `None` where no such place is found; the plan is as it was
    /// then.
    pub(super) fn run_makeshift(&mut self, newcomer: &Newcomer) -> Option<Trial> {
        let Newcomer {
            request, standing, ..
        } = newcomer;
        let window = request.window_at(self.now);
        if let Some(start) = *standing {
            return Some(self.run_standing(request, start));
        }
        let last = window.end - request.duration;
        // The nearest places first, then ever further ones, and the last one.
        let mut step = request.duration.max((last - window.start) >> PLACES_MAX);
        let mut start = window.start;
        for _ in 0..PLACES_MAX {
            if self.work.is_spent() {
                return None;
            }
            if let Some(trial) = self.make_way(request, start) {
                return Some(trial);
            }
            if start >= last {
                return None;
            }
            start = last.min(start + step);
            step = step.saturating_mul(2);
        }
        self.make_way(request, last)
    }

    /// Places a newcomer at `start`, where it fits as the plan stands.
    pub(super) fn run_standing(&mut self, request: &Request, start: Time) -> Trial {
        let mut trial = Trial::new();
        trial.start = start;
        self.take(&mut trial, request, start);
        trial
    }

    /// Places a newcomer where those in its way, the most flexible first, have other places.
    fn make_way(&mut self, request: &Request, start: Time) -> Option<Trial> {
        let slot = request.slot(start);
        let list = self.list;
        let mut others: Vec<(Seconds, u32)> = self.work.within(LOOK * LOOKED_AT_MAX, |work| {
            let meeting = list.meeting(Key::FIRST, slot, work);
            let flexible = meeting.filter(|(_, other)| !other.request.is_rigid());
            flexible
                .map(|(handle, other)| (other.request.deadline - other.slot().end, handle))
                .collect()
        });
        others.sort_unstable_by(|a, b| b.cmp(a));
        let mut trial = Trial::new();
        let mut lifted = Vec::new();
        for (_, handle) in others {
            if self.tree.min_free(slot) >= request.nodes || lifted.len() == MAKING_WAY_MAX {
                break;
            }
            let Some(other) = list.get(handle) else { continue };
            self.give_back(&mut trial, &other.request, other.start);
            lifted.push((handle, other));
        }
        self.work.spend(SEARCH * (1 + lifted.len() as u64));
        if self.tree.min_free(slot) < request.nodes {
            trial.take_back(self.tree);
            return None;
        }
        trial.start = start;
        self.take(&mut trial, request, start);
        // Those lifted last are the least flexible.
        for (handle, other) in lifted.into_iter().rev() {
            let to = self.other_place(&other.request, other.start);
            let Some(to) = to.filter(|_| !self.work.is_spent()) else {
                trial.take_back(self.tree);
                return None;
            };
            self.take(&mut trial, &other.request, to);
            if to != other.start {
                trial.moved.push((handle, to));
            }
        }
        Some(trial)
    }

    /// Where a lifted request goes: where it was if that is still free, else to the earliest place, or where that is far from
    /// its window's begin to the latest.
    fn other_place(&mut self, request: &Request, old: Time) -> Option<Time> {
        self.work.spend(SEARCH);
        if self.tree.min_free(request.slot(old)) >= request.nodes {
            return Some(old);
        }
        let window = request.window_at(self.now);
        let earliest = self.search(request, window, VISITS_MAX);
        earliest.or_else(|| {
            let mut visits = VISITS_MAX;
            let latest = self
                .tree
                .latest_fit_within(request.nodes, request.duration, window, &mut visits);
            self.work.spend(VISIT * (VISITS_MAX - visits));
            latest
        })
    }

    pub(super) fn take(&mut self, trial: &mut Trial, request: &Request, start: Time) {
        self.lay(trial, request.slot(start), -i64::from(request.nodes));
    }

    pub(super) fn give_back(&mut self, trial: &mut Trial, request: &Request, start: Time) {
        self.lay(trial, request.slot(start), request.nodes.into());
    }
}
