//! A request that is to be accepted, and the key behind which it is tried.

use super::Schedule;
use super::work::Work;
use crate::queue::Key;
use crate::request::Request;
use crate::time::Time;

/// A request that is to be accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newcomer {
    pub(super) request: Request,
    /// Where it fits as the plan stands.
    pub(super) standing: Option<Time>,
    /// The key that it is tried behind: at first its own place in the queue.
    pub(super) behind: Key,
    /// It has no place before this: each attempt of fixqueue has more requests before it where they stand than the last one.
    pub(super) not_before: Time,
    /// Where its first attempt placed it, where that is not the last one.
    pub(super) first_fit: Option<Time>,
}

impl Newcomer {
    /// Fixqueue: it goes directly behind the request that found no place where it was `placed`.
    pub(super) fn go_behind(&mut self, key: Key, placed: Time) {
        self.behind = key;
        self.not_before = placed;
        self.first_fit.get_or_insert(placed);
    }
}

impl Schedule {
    /// A request that is to be accepted, with the place where it fits as the plan stands.
    pub(super) fn newcomer_to_admit(&mut self, request: &Request, work: &mut Work) -> Newcomer {
        let standing = self.attempt(work).standing_fit(request);
        self.newcomer_to_admit_standing(request, standing)
    }

    pub(super) fn newcomer_to_admit_standing(&self, request: &Request, standing: Option<Time>) -> Newcomer {
        Newcomer {
            request: *request,
            standing,
            behind: self.waiting.order().key(request, self.now),
            not_before: request.window_at(self.now).start,
            first_fit: None,
        }
    }
}
