//! The alternatives that a refused requester could have (paper 000, algorithm 2).
//!
//! A request that finds no place collides with slots that cannot move: running requests, and those before it in order. So the
//! slots that end where such an obstacle starts, or start where it ends, are tried, the nearest to the asked window first. Each
//! is decided as a request for exactly that slot would be, by algorithm 1: to take an alternative is to submit the request fixed
//! to it ([`Request::fixed_to`]).

use crate::fraction::Fraction;
use crate::request::Request;
use crate::schedule::Schedule;
use crate::time::{Interval, Seconds, Time};

/// On which side of the asked window an alternative lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It starts before the ready time.
    Before,
    /// It completes after the deadline.
    After,
}

/// A slot that the request could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternative {
    /// Its start; it is as long as the request.
    pub start: Time,
    /// How many seconds it reaches beyond the asked window.
    pub deviation: Seconds,
    /// On which side.
    pub side: Side,
}

/// How far and how long to look for alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlternativeLimits {
    /// Largest deviation φ, as a fraction of the duration.
    pub phi_max: Fraction,
    /// Stop at this many alternatives.
    pub count_max: usize,
}

impl Schedule {
    /// The alternatives of a request that [`Schedule::submit`] refuses at `now`, nearest first, then earlier start first.
    /// None for one that is accepted, or that no plan can hold. Nothing is committed.
    pub fn alternatives(
        &mut self,
        now: Time,
        request: &Request,
        limits: AlternativeLimits,
    ) -> Vec<Alternative> {
        self.begin_decision(now);
        let now = self.now();
        if request.impossible(self.tree().capacity(), now).is_some() {
            return Vec::new();
        }
        // A budget of its own: half of it to find the obstacles, a quarter to find options, and the rest to try them.
        let mut work = self.work_to_explain();
        let half = work.left() / 2;
        let Some(behind) = work.within(half, |work| self.refused_behind(request, work)) else {
            return Vec::new();
        };
        let deviation_max = limits.phi_max.rounded_down(request.duration);
        let mut options: Vec<(Seconds, Time, Side)> = Vec::new();
        let last = request.ready + request.duration;
        let starts = Interval::new(last - deviation_max, last);
        let end = request.deadline - request.duration;
        let ends = Interval::new(end + 1, end + 1 + deviation_max);
        let (half, window) = (work.left() / 2, request.window());
        let slots = work.within(half, |work| self.fixed_slots(behind, window, starts, ends, work));
        for slot in slots {
            let before = slot.start - request.duration;
            if before >= now && before < request.ready {
                options.push((request.ready - before, before, Side::Before));
            }
            let completion = slot.end + request.duration;
            if slot.end >= now && completion > request.deadline {
                options.push((completion - request.deadline, slot.end, Side::After));
            }
        }
        options.retain(|(deviation, ..)| *deviation <= deviation_max);
        // Of one duration, so sorting by seconds is sorting by φ.
        options.sort_unstable();
        options.dedup();
        let mut found = Vec::new();
        for (deviation, start, side) in options {
            if found.len() >= limits.count_max || work.is_spent() {
                break;
            }
            if self.would_admit_fixed(&request.fixed_to(start), &mut work) {
                found.push(Alternative {
                    start,
                    deviation,
                    side,
                });
            }
        }
        found
    }
}
