//! The servers, their idle periods, and the bookkeeping that all searches share.

use super::{IdlePeriod, Job, Operations, Placement, Search};
use crate::rate::Rate;
use crate::time::{Interval, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Why an allocation could not be made or given back. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerError {
    /// There is no such server.
    Unknown,
    /// The interval holds no second, or reaches beyond the planned time.
    Interval,
    /// The server is to work at some second of the interval.
    NotIdle,
    /// The server is idle at some second of the interval.
    NotAllocated,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such server",
            Self::Interval => "the interval holds no second of the plan",
            Self::NotIdle => "the server is to work at some second of the interval",
            Self::NotAllocated => "the server is idle at some second of the interval",
        })
    }
}

impl std::error::Error for ServerError {}

/// Servers of one node each and when they are idle, searched by `S`.
///
/// ```
/// use scheduler::heterogeneous::{Choice, Job, Servers, SingleTree};
/// use scheduler::{Interval, Rate, Time};
/// let half = Rate::from_millionths(500_000).ok_or("zero")?;
/// let planned = Interval::new(Time(0), Time(1_000));
/// let mut servers = Servers::new(SingleTree::new(Choice::EarliestStart), &[Rate::REFERENCE, half], planned);
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

    /// The rate of a server.
    pub fn rate(&self, server: u32) -> Option<Rate> {
        self.classes.get(server as usize).map(|class| self.rates[*class])
    }

    /// The idle periods of a server in order of time; none for an unknown server.
    pub fn idle(&self, server: u32) -> impl Iterator<Item = Interval> + '_ {
        let idle = self.idle.get(server as usize);
        idle.into_iter()
            .flatten()
            .map(|(start, end)| Interval::new(*start, *end))
    }

    /// The number of idle periods of all servers.
    pub fn idle_count(&self) -> usize {
        self.idle.iter().map(BTreeMap::len).sum()
    }

    /// The work done so far.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// Where the search would place `job`: as early as the idle period that it chooses allows, and not before the planned jobs.
    /// Costs as much as the search.
    pub fn find(&mut self, job: &Job) -> Option<Placement> {
        let job = Job {
            ready: job.ready.max(self.planned.start),
            ..*job
        };
        let demands: Vec<_> = self.rates.iter().map(|rate| job.demand(*rate)).collect();
        let period = self.search.find(&demands, &mut self.operations.searched)?;
        let demand = demands[self.classes[period.server as usize]]?;
        let start = demand.start_in(period)?;
        Some(Placement {
            server: period.server,
            interval: Interval::of(start, demand.duration),
        })
    }

    /// Finds a placement for `job` and takes it.
    pub fn allocate(&mut self, job: &Job) -> Option<Placement> {
        let placement = self.find(job)?;
        let taken = self.reserve(placement);
        debug_assert_eq!(taken, Ok(()), "the period found is idle");
        taken.is_ok().then_some(placement)
    }

    /// Takes a server for a time, which splits one idle period into up to two. One removal and up to two insertions.
    ///
    /// # Errors
    /// If the server is unknown, the interval not planned, or the server not idle throughout.
    pub fn reserve(&mut self, placement: Placement) -> Result<(), ServerError> {
        let Placement { server, interval } = placement;
        let idle = self.idle.get(server as usize).ok_or(ServerError::Unknown)?;
        if interval.is_empty() || !self.planned.contains(interval) {
            return Err(ServerError::Interval);
        }
        let (start, end) = idle
            .range(..=interval.start)
            .next_back()
            .filter(|(_, end)| **end >= interval.end)
            .map(|(start, end)| (*start, *end))
            .ok_or(ServerError::NotIdle)?;
        self.drop(server, Interval::new(start, end));
        if start < interval.start && self.planned.start < interval.start {
            self.add(server, Interval::new(start, interval.start));
        }
        if interval.end < end {
            self.add(server, Interval::new(interval.end, end));
        }
        Ok(())
    }

    /// Gives a server back for a time that was taken, and joins it with the idle time beside it. The time before the last
    /// [`Servers::forget`] is ignored. Up to two removals and one insertion.
    ///
    /// # Errors
    /// If the server is unknown, the interval not planned, or the server idle at some second of it.
    pub fn release(&mut self, placement: Placement) -> Result<(), ServerError> {
        let Placement { server, interval } = placement;
        let idle = self.idle.get(server as usize).ok_or(ServerError::Unknown)?;
        if interval.is_empty() || interval.end > self.planned.end {
            return Err(ServerError::Interval);
        }
        let mut joined = Interval::new(interval.start.max(self.planned.start), interval.end);
        if joined.is_empty() {
            return Ok(());
        }
        let before = idle
            .range(..joined.end)
            .next_back()
            .map(|(s, e)| Interval::new(*s, *e));
        if before.is_some_and(|before| before.end > joined.start) {
            return Err(ServerError::NotAllocated);
        }
        let after = idle.get(&joined.end).map(|end| Interval::new(joined.end, *end));
        if let Some(before) = before.filter(|before| before.end == joined.start) {
            self.drop(server, before);
            joined.start = before.start;
        }
        if let Some(after) = after {
            self.drop(server, after);
            joined.end = after.end;
        }
        self.add(server, joined);
        Ok(())
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
