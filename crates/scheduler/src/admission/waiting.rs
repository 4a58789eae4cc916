//! The requests that wait, and what is kept in step with them: by start, by place in the queue, and what is remembered.

use super::{Move, Place, Schedule};
use crate::queue::{Key, Order};
use crate::request::Request;
use crate::time::{Interval, Time};

/// A waiting request, its start, and its place in the queue at present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) request: Request,
    pub(super) start: Time,
    pub(super) key: Key,
}

impl Waiting {
    pub(super) fn slot(&self) -> Interval {
        self.request.slot(self.start)
    }
}

impl Schedule {
    /// Gives those that may have risen their new places in the queue. They were placed after some that they now precede.
    pub(super) fn queue_anew(&mut self) {
        let (order, now) = (self.order, self.now);
        let mut reach = now;
        // Who is ready by now starts before its slack is over.
        let until = if matches!(order, Order::Lff) {
            now + self.slack_max
        } else {
            Time::MAX
        };
        for (_, h) in self.by_start.range(..=(until, u32::MAX)) {
            let Some(waiting) = &mut self.waiting[*h as usize] else {
                continue;
            };
            if order.may_have_risen(&waiting.request, now) {
                self.loose.remove(&(waiting.key, *h));
                waiting.key = order.key(&waiting.request, now);
                if !waiting.request.is_rigid() {
                    self.loose.insert((waiting.key, *h));
                }
                reach = reach.max(waiting.slot().end);
            }
        }
        if reach > now {
            let risen = Interval::new(now, reach);
            self.forget_around(risen, risen);
        }
    }

    /// Fixes a request to its slot: with one possible start it lies at its first fit.
    pub(super) fn fix_to_slot(&mut self, h: u32) {
        let Some(waiting) = &mut self.waiting[h as usize] else {
            return;
        };
        let old = *waiting;
        waiting.request = old.request.fixed_to(old.start);
        waiting.key = self.order.key(&waiting.request, self.now);
        self.loose.remove(&(old.key, h));
        self.memory.forget(h, |_| true);
        self.forget_around(old.slot(), old.request.window());
    }

    /// Forgets what followed from the plan in `slot`, and what followed for those that a request which could lie in
    /// `window` may have to make way for or move up after.
    pub(super) fn forget_around(&mut self, slot: Interval, window: Interval) {
        if self.memory.is_empty() {
            return;
        }
        let reach = self.duration_max + self.slack_max;
        let starts = (slot.start.min(window.start) - reach, 0)..(slot.end + reach, 0);
        for (start, h) in self.by_start.range(starts) {
            let Some(waiting) = &self.waiting[*h as usize] else {
                continue;
            };
            let near = *start < slot.end && window.start < *start + waiting.request.duration;
            self.memory
                .forget(*h, |outcome| near || outcome.region().meets(slot));
        }
    }

    /// Marks a request as not known to lie at its first fit.
    pub(super) fn loosen(&mut self, h: u32) {
        if let Some(waiting) = &self.waiting[h as usize] {
            self.loose.insert((waiting.key, h));
        }
    }

    /// Notes that a waiting request starts at `to`; the tree is left as it is.
    pub(super) fn shift(&mut self, h: u32, to: Time) -> Option<Move> {
        let waiting = self.waiting[h as usize].as_mut()?;
        let from = std::mem::replace(&mut waiting.start, to);
        let request = waiting.request;
        self.by_start.remove(&(from, h));
        self.by_start.insert((to, h));
        self.forget_around(request.slot(from), request.window());
        self.forget_around(request.slot(to), request.window());
        Some(Move {
            id: request.id,
            from,
            to,
        })
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = (u32, Waiting)> + '_ {
        self.by_start
            .iter()
            .filter_map(|(_, h)| Some((*h, self.waiting[*h as usize]?)))
    }

    pub(super) fn keep(&mut self, request: &Request, start: Time) -> u32 {
        self.duration_max = self.duration_max.max(request.duration);
        self.slack_max = self.slack_max.max(request.window().duration() - request.duration);
        self.memory.set_duration_max(self.duration_max);
        self.forget_around(request.slot(start), request.window());
        let h = self.vacant.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            // A resource does not hold 2³² requests at a time: the slot tree's indices end first.
            u32::try_from(self.waiting.len() - 1).expect("fewer than 2³² requests wait")
        });
        self.waiting[h as usize] = Some(Waiting {
            request: *request,
            start,
            key: self.order.key(request, self.now),
        });
        self.known_as(request.id, Place::Waiting(h));
        self.by_start.insert((start, h));
        h
    }

    pub(super) fn take(&mut self, h: u32) -> Option<Waiting> {
        let waiting = self.waiting[h as usize].take();
        let waiting = self.must_be(waiting)?;
        self.by_start.remove(&(waiting.start, h));
        self.loose.remove(&(waiting.key, h));
        self.memory.forget(h, |_| true);
        self.forget_around(waiting.slot(), waiting.request.window());
        self.vacant.push(h);
        Some(waiting)
    }
}
