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

mod balanced_tree;
mod searches;
#[cfg(test)]
mod tests;

pub use searches::{FirstFitAware, FirstFitUnaware, SingleTree, TwoDimensional};

use scheduler::{Interval, Rate, Seconds, Time};
use std::collections::BTreeMap;

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
    pub(crate) fn demand(&self, rate: Rate) -> Option<JobDemand> {
        let duration = rate.duration(self.size.max(1));
        let latest = self.deadline - duration;
        (self.ready <= latest).then_some(JobDemand {
            ready: self.ready,
            latest,
            duration,
        })
    }
}

/// A job as the servers of one rate see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDemand {
    /// Earliest start (r).
    pub ready: Time,
    /// Latest start (d − p); never before `ready`.
    pub latest: Time,
    /// Seconds that it takes there (p = l/μ, rounded up).
    pub duration: Seconds,
}

impl JobDemand {
    /// The earliest start inside `period`, if it fits there.
    pub(crate) fn start_in(&self, period: IdlePeriod) -> Option<Time> {
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
    pub(crate) fn duration(&self) -> Seconds {
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
pub(crate) struct Operations {
    /// Looked at to find idle periods.
    pub(crate) searched: u64,
    /// Looked at or moved to keep the lists or trees in step.
    pub(crate) updated: u64,
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
    fn find(&self, demands: &[Option<JobDemand>], searched: &mut u64) -> Option<IdlePeriod>;
}

/// Servers of one node each and when they are idle, searched by `S`.
///
/// ```
/// use lab::heterogeneous::{Job, Servers, SingleTree};
/// use scheduler::{Interval, Rate, Time};
/// let half = Rate::from_millionths(500_000).ok_or("zero")?;
/// let planned = Interval::new(Time(0), Time(1_000));
/// let mut servers = Servers::new(SingleTree::default(), &[Rate::REFERENCE, half], planned);
/// let job = Job { ready: Time(10), size: 100, deadline: Time(300) };
/// // The slower server is in time, so the faster one is left to others.
/// let first = servers.allocate(&job).ok_or("no room")?;
/// assert_eq!((first.server, first.interval), (1, Interval::new(Time(10), Time(210))));
/// let second = servers.allocate(&job).ok_or("no room")?;
/// assert_eq!((second.server, second.interval), (0, Interval::new(Time(10), Time(110))));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct Servers<S> {
    /// The distinct rates, slowest first.
    rates: Vec<Rate>,
    /// The class of each server: an index into `rates`.
    classes: Vec<usize>,
    /// The idle periods of each server: end by start.
    idle: Vec<BTreeMap<Time, Time>>,
    /// The seconds that can be planned.
    planned: Interval,
    search: S,
    operations: Operations,
}

impl<S: Search> Servers<S> {
    /// One server for each of `rates`, numbered in that order, idle throughout `planned`; `search` holds nothing yet.
    ///
    /// # Panics
    /// With 2³² servers or more.
    pub fn new(mut search: S, rates: &[Rate], planned: Interval) -> Self {
        let mut distinct = rates.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        search.open(distinct.len());
        let mut servers = Self {
            classes: rates
                .iter()
                .map(|rate| distinct.partition_point(|r| r < rate))
                .collect(),
            rates: distinct,
            idle: vec![BTreeMap::new(); rates.len()],
            planned,
            search,
            operations: Operations::default(),
        };
        if !planned.is_empty() {
            for server in servers.numbers() {
                servers.add(server, planned);
            }
        }
        servers
    }

    /// The number of idle periods of all servers.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.iter().map(BTreeMap::len).sum()
    }

    /// The work done so far.
    pub(crate) fn operations(&self) -> Operations {
        self.operations
    }

    /// Finds a placement for `job`, as early as the idle period that the search chooses allows and not before the planned time, and
    /// takes it. Costs as much as the search.
    pub fn allocate(&mut self, job: &Job) -> Option<Placement> {
        let job = Job {
            ready: job.ready.max(self.planned.start),
            ..*job
        };
        let demands: Vec<_> = self.rates.iter().map(|rate| job.demand(*rate)).collect();
        let period = self.search.find(&demands, &mut self.operations.searched)?;
        let demand = demands[self.classes[period.server as usize]]?;
        let start = demand.start_in(period)?;
        let placement = Placement {
            server: period.server,
            interval: Interval::of(start, demand.duration),
        };
        let taken = self.reserve(placement);
        debug_assert!(taken, "the period found is idle");
        taken.then_some(placement)
    }

    /// Takes a server for a planned time, which splits one idle period into up to two; whether the server was idle throughout. One
    /// removal and up to two insertions.
    fn reserve(&mut self, placement: Placement) -> bool {
        let Placement { server, interval } = placement;
        let before = self.idle[server as usize].range(..=interval.start).next_back();
        let period = before.map(|(start, end)| Interval::new(*start, *end));
        let Some(period) = period.filter(|period| period.contains(interval)) else {
            return false;
        };
        if interval.is_empty() || !self.planned.contains(interval) {
            return false;
        }
        self.drop(server, period);
        if period.start < interval.start && self.planned.start < interval.start {
            self.add(server, Interval::new(period.start, interval.start));
        }
        if interval.end < period.end {
            self.add(server, Interval::new(interval.end, period.end));
        }
        true
    }

    /// Drops the idle periods that end by `before`, and plans nothing before it any more. O(servers), and a removal for each
    /// that is dropped. One that goes on keeps its start, as in the paper, where it only loses capacity as time goes by.
    pub(crate) fn forget(&mut self, before: Time) {
        if before <= self.planned.start {
            return;
        }
        self.planned.start = before;
        for server in self.numbers() {
            while let Some((start, end)) = self.idle[server as usize].first_key_value() {
                if *end > before {
                    break;
                }
                let period = Interval::new(*start, *end);
                self.drop(server, period);
            }
        }
    }

    fn numbers(&self) -> std::ops::Range<u32> {
        // A larger number of servers would have outgrown memory before, and `new` says so.
        0..u32::try_from(self.idle.len()).expect("servers are numbered in 32 bits")
    }

    fn add(&mut self, server: u32, interval: Interval) {
        self.idle[server as usize].insert(interval.start, interval.end);
        let period = idle_period(server, interval);
        let class = self.classes[server as usize];
        self.search.insert(class, period, &mut self.operations.updated);
    }

    fn drop(&mut self, server: u32, interval: Interval) {
        self.idle[server as usize].remove(&interval.start);
        let period = idle_period(server, interval);
        let class = self.classes[server as usize];
        self.search.remove(class, period, &mut self.operations.updated);
    }

    /// The rate of a server.
    #[cfg(test)]
    fn rate(&self, server: u32) -> Option<Rate> {
        self.classes.get(server as usize).map(|class| self.rates[*class])
    }

    /// The idle periods of a server in order of time; none for an unknown server.
    #[cfg(test)]
    fn idle(&self, server: u32) -> impl Iterator<Item = Interval> + '_ {
        let idle = self.idle.get(server as usize);
        idle.into_iter()
            .flatten()
            .map(|(start, end)| Interval::new(*start, *end))
    }

    /// The search, for the checks of its invariants.
    #[cfg(test)]
    fn search(&self) -> &S {
        &self.search
    }
}

fn idle_period(server: u32, interval: Interval) -> IdlePeriod {
    IdlePeriod {
        start: interval.start,
        end: interval.end,
        server,
    }
}
