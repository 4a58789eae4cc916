//! Faults that must never happen to a schedule, and how they are reported.
//!
//! The placements and the slot tree hold the same facts twice. When one of them does not allow a change that the other one asks
//! for, the schedule cannot tell which of the two is right. It notes the first such fault and goes on. Its owner looks at
//! [`Schedule::fault`] before a decision is used, and rebuilds the schedule from the store.

use super::{RequestPlace, Schedule};
use crate::counts_in_words::counted;
use crate::request::Request;
use crate::slot_tree::SlotError;
use crate::time::{Interval, Time};
use std::fmt;

/// Why a schedule must not be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nodes that were found free, by a search or in an earlier attempt, could not be taken.
    NotTaken {
        /// When.
        slot: Interval,
        /// How many.
        nodes: u32,
        /// The error of the slot tree.
        error: SlotError,
    },
    /// Nodes of a request that has a place could not be given back.
    NotGivenBack {
        /// When.
        slot: Interval,
        /// How many.
        nodes: u32,
        /// The error of the slot tree.
        error: SlotError,
    },
    /// A request moved out of its window.
    OutsideWindow {
        /// The request's id.
        id: u64,
        /// Its new start.
        start: Time,
    },
    /// A request was given a place under an id that another request has.
    SameId {
        /// The id.
        id: u64,
    },
    /// A request that waits or runs has no placement.
    NoPlacement,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTaken { slot, nodes, error } => {
                write!(
                    f,
                    "found free, and cannot be taken: {} in {slot}: {error}",
                    counted(nodes, "node")
                )
            }
            Self::NotGivenBack { slot, nodes, error } => {
                write!(
                    f,
                    "taken, and cannot be given back: {} in {slot}: {error}",
                    counted(nodes, "node")
                )
            }
            Self::OutsideWindow { id, start } => {
                write!(f, "request {id} was moved to {start}, outside its window")
            }
            Self::SameId { id } => write!(f, "two requests have the id {id}"),
            Self::NoPlacement => f.write_str("a request that waits or runs has no placement"),
        }
    }
}

impl std::error::Error for Fault {}

impl Schedule {
    /// The first fault of this schedule; `None` in every schedule that may still be used. It stays until the schedule is rebuilt.
    /// O(1).
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub(super) fn report(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Looks whether a request may lie where an attempt has put it: inside its window, where nodes were free.
    pub(super) fn check_place_or_fault(&mut self, request: &Request, from: Time, to: Time) {
        // A request that lies beyond its deadline already may move up beyond it.
        let late = to > from && request.slot(to).end > request.deadline;
        if late || to < request.window_at(self.now).start {
            self.report(Fault::OutsideWindow {
                id: request.id,
                start: to,
            });
        }
        let (slot, nodes) = (request.slot(to), request.nodes);
        if !self.tree.is_sound()
            && let Some(short) = self.tree.shortage(slot)
        {
            let error = SlotError::NotFree {
                free: nodes.saturating_sub(short),
            };
            self.report(Fault::NotTaken { slot, nodes, error });
        }
    }

    /// Gives back nodes that were taken.
    pub(super) fn free_or_fault(&mut self, slot: Interval, nodes: u32) {
        self.memory.note_change(slot);
        if let Err(error) = self.tree.release(slot, nodes) {
            self.report(Fault::NotGivenBack { slot, nodes, error });
        }
    }

    /// Notes where a request is kept that had no place so far.
    pub(super) fn note_id_or_fault(&mut self, id: u64, place: RequestPlace) {
        if self.by_id.insert(id, place).is_some() {
            self.report(Fault::SameId { id });
        }
    }

    /// The record of a request that waits or runs. A missing one is a fault.
    pub(super) fn kept_or_fault<T>(&mut self, kept: Option<T>) -> Option<T> {
        if kept.is_none() {
            self.report(Fault::NoPlacement);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Order, Request};

    fn request(id: u64, (ready, deadline): (i64, i64), nodes: u32) -> Request {
        Request {
            id,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(deadline),
            duration: 100,
            nodes,
            revenue: 0,
        }
    }

    fn slot(start: i64) -> Interval {
        Interval::of(Time(start), 100)
    }

    #[test]
    fn nodes_that_were_given_back_behind_its_back_are_a_fault() {
        let mut schedule = Schedule::new(4, Order::Edf);
        schedule.submit(Time(0), &request(0, (100, 200), 3));
        schedule.tree.release(slot(100), 3).unwrap();
        assert_eq!(schedule.fault(), None, "the fault was not noticed yet");
        schedule.end(Time(0), 0);
        let error = SlotError::NotReserved { used: 0 };
        let fault = Fault::NotGivenBack {
            slot: slot(100),
            nodes: 3,
            error,
        };
        assert_eq!(schedule.fault(), Some(fault));
        schedule.submit(Time(0), &request(1, (100, 200), 3));
        assert_eq!(schedule.fault(), Some(fault), "it stays");
    }

    #[test]
    fn an_earlier_outcome_that_is_no_longer_true_is_a_fault_when_it_is_used() {
        let mut schedule = Schedule::new(4, Order::Edf);
        schedule.restore(&request(0, (100, 1_000), 4), Time(200)).unwrap();
        // Each attempt finds that it can move to 100, and remembers that.
        let newcomer = request(1, (500, 600), 4);
        assert_eq!(schedule.would_start(Time(0), &newcomer), Some(Time(500)));
        // Other requests take that place, and the memory of attempts does not hear of it.
        schedule.tree.reserve(slot(100), 1).unwrap();
        let Decision::Accepted { moved, .. } = schedule.submit(Time(0), &newcomer) else {
            panic!("there is room for it")
        };
        assert_eq!((moved[0].id, moved[0].to), (0, Time(100)));
        let fault = Fault::NotTaken {
            slot: slot(100),
            nodes: 4,
            error: SlotError::NotFree { free: 3 },
        };
        assert_eq!(schedule.fault(), Some(fault));
    }

    #[test]
    fn an_earlier_outcome_outside_its_window_is_a_fault_when_it_is_used() {
        let mut schedule = Schedule::new(4, Order::Edf);
        schedule.restore(&request(0, (450, 1_000), 4), Time(500)).unwrap();
        schedule.restore(&request(2, (400, 500), 4), Time(400)).unwrap();
        // Each attempt finds that it has to move to 600, and remembers that.
        let newcomer = request(1, (500, 600), 4);
        schedule.would_start(Time(0), &newcomer);
        if let Some(waiting) = schedule.waiting.entry_mut(0) {
            waiting.request.deadline = Time(650);
        }
        schedule.submit(Time(0), &newcomer);
        let fault = Fault::OutsideWindow {
            id: 0,
            start: Time(600),
        };
        assert_eq!(schedule.fault(), Some(fault));
    }

    #[test]
    fn two_requests_with_one_id_are_a_fault() {
        for start in [0, 100] {
            let mut schedule = Schedule::new(4, Order::Edf);
            schedule.advance(Time(0));
            schedule.submit(Time(0), &request(0, (100, 200), 1));
            schedule.restore(&request(0, (0, 200), 1), Time(start)).unwrap();
            assert_eq!(schedule.fault(), Some(Fault::SameId { id: 0 }), "{start}");
        }
    }

    #[test]
    fn a_request_without_a_placement_is_a_fault() {
        for leave in [
            |schedule: &mut Schedule| {
                schedule.end(Time(0), 0);
            },
            |schedule: &mut Schedule| {
                schedule.vacate(Time(0), 0);
            },
            |schedule: &mut Schedule| {
                schedule.withdraw(0);
            },
            |schedule: &mut Schedule| schedule.advance(Time(150)),
        ] {
            let mut schedule = Schedule::new(4, Order::Edf);
            schedule.submit(Time(0), &request(0, (100, 200), 1));
            *schedule.waiting.entry_mut(0) = None;
            leave(&mut schedule);
            assert_eq!(schedule.fault(), Some(Fault::NoPlacement));
        }
        for leave in [
            |schedule: &mut Schedule| {
                schedule.end(Time(150), 0);
            },
            |schedule: &mut Schedule| {
                schedule.vacate(Time(150), 0);
            },
        ] {
            let mut schedule = Schedule::new(4, Order::Edf);
            schedule.submit(Time(0), &request(0, (100, 200), 1));
            schedule.advance(Time(150));
            schedule.running.clear();
            leave(&mut schedule);
            assert_eq!(schedule.fault(), Some(Fault::NoPlacement));
        }
    }
}
