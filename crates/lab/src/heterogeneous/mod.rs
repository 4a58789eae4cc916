//! Single servers of different speed, and where a job fits among their idle periods.
//!
//! The problem is that of Castillo, Rouskas and Harfoush, "Efficient Resource Management using Advance Reservations for
//! Heterogeneous Grids". A job has a known size, is ready at one time and due at another. It takes one server whole and may not
//! be interrupted. Servers of the same rate form a class; the same job lasts longer in a slower one.
//!
//! Four searches answer the same question, so that an evaluation can compare them. They may choose differently, but each finds an
//! idle period if and only if one exists:
//! * [`FirstFitUnaware`], [`FirstFitAware`] and [`TwoDimensional`] are the paper's FF-HU, FF-HA and FF-HA+;
//! * [`SingleTree`] asks one tree a class in O(log n).
//!
//! [`Servers`] keeps the idle periods in step with the allocations and is the same for all of them. A plan of resources with many
//! identical nodes is another matter: see [`SlotTree`](scheduler::SlotTree).

mod balanced;
mod lists;
mod servers;
mod single_tree;
#[cfg(test)]
mod tests;
mod two_dimensional;

pub use lists::{FirstFitAware, FirstFitUnaware};
pub use servers::Servers;
pub use single_tree::SingleTree;
pub use two_dimensional::TwoDimensional;

use scheduler::{Interval, Rate, Seconds, Time};

/// A request (section II of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Earliest start (r).
    pub ready: Time,
    /// Work, in seconds at the reference rate (l); at least 1.
    pub size: Seconds,
    /// Latest completion (d).
    pub deadline: Time,
}

impl Job {
    /// Its demand on a server of `rate`; `None` if it would miss its deadline there even from its ready time. That test, r + l/μ
    /// ≤ d, goes beyond the paper's expression (3), which bounds only the start of the idle period.
    pub fn demand(&self, rate: Rate) -> Option<Demand> {
        let duration = rate.duration(self.size.max(1));
        let latest = self.deadline - duration;
        (self.ready <= latest).then_some(Demand {
            ready: self.ready,
            latest,
            duration,
        })
    }
}

/// A job as the servers of one rate see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Earliest start (r).
    pub ready: Time,
    /// Latest start (d − p); never before `ready`.
    pub latest: Time,
    /// Seconds that it takes there (p = l/μ, rounded up).
    pub duration: Seconds,
}

impl Demand {
    /// The earliest start inside `period`, if it fits there.
    pub fn start_in(&self, period: IdlePeriod) -> Option<Time> {
        let start = period.start.max(self.ready);
        (start <= self.latest && period.end - start >= self.duration).then_some(start)
    }
}

/// A maximal time `[start, end)` throughout which a server is idle (st and et in the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdlePeriod {
    /// First idle second.
    pub start: Time,
    /// First second after.
    pub end: Time,
    /// The server, counted from 0.
    pub server: u32,
}

impl IdlePeriod {
    /// Its seconds. Within a class this orders as the nominal capacity μ(et − st) does.
    pub fn duration(&self) -> Seconds {
        self.end - self.start
    }

    /// The order of the lists and trees: by start, and by server where starts are the same.
    fn key(&self) -> (Time, u32) {
        (self.start, self.server)
    }
}

/// A server and the time that it is to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The server, counted from 0.
    pub server: u32,
    /// When it works.
    pub interval: Interval,
}

/// The work done, counted in entries and nodes looked at: the same on every machine, unlike times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations {
    /// Looked at to find idle periods.
    pub searched: u64,
    /// Looked at or moved to keep the lists or trees in step.
    pub updated: u64,
}

/// A way to find a feasible idle period. It holds a copy of every idle period, which [`Servers`] keeps in step.
pub trait Search {
    /// Makes room for this many rate classes, before anything else is called.
    fn open(&mut self, classes: usize);
    /// Adds an idle period of a server of `class`; adds its cost to `updated`.
    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64);
    /// Removes an idle period that was inserted; adds its cost to `updated`.
    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64);
    /// A feasible idle period for a job that asks `demands[c]` of class c (slowest first; `None` where it is infeasible),
    /// if there is one; adds its cost to `searched`.
    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod>;
}
