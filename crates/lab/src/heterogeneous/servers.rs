//! The servers, their idle periods, and the bookkeeping that all searches share.

use super::{IdlePeriod, Job, Operations, Placement, Search};
use scheduler::{Interval, Rate, Time};
use std::collections::BTreeMap;

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
    pub fn idle_count(&self) -> usize {
        self.idle.iter().map(BTreeMap::len).sum()
    }

    /// The work done so far.
    pub fn operations(&self) -> Operations {
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
    pub(super) fn reserve(&mut self, placement: Placement) -> bool {
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
    pub fn forget(&mut self, before: Time) {
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
    pub(super) fn rate(&self, server: u32) -> Option<Rate> {
        self.classes.get(server as usize).map(|class| self.rates[*class])
    }

    /// The idle periods of a server in order of time; none for an unknown server.
    #[cfg(test)]
    pub(super) fn idle(&self, server: u32) -> impl Iterator<Item = Interval> + '_ {
        let idle = self.idle.get(server as usize);
        idle.into_iter()
            .flatten()
            .map(|(start, end)| Interval::new(*start, *end))
    }

    /// The search, for the checks of its invariants.
    #[cfg(test)]
    pub(super) fn search(&self) -> &S {
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
