//! The smallest changes of a refused request that would have been accepted.
//!
//! Smallest is meant on the standing plan, with the others where they are: each relaxation then lets the request in, in any
//! order, because algorithm 1 ends with the plan as it stands. A requester learns only about places that it could have had
//! itself, and a provider can coarsen even that ([`Relaxation::coarsened`]).

use crate::request::Request;
use crate::schedule::Schedule;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};

/// How far a request may be relaxed: by its template, its requester's quota and the provider's horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// No placement starts before or completes after.
    pub times: Interval,
    /// Fewest nodes worth offering, at least 1.
    pub nodes_min: u32,
    /// Shortest duration worth offering, at least 1 s.
    pub duration_min: Seconds,
}

/// A change of one value of a request, or of two where none of one is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relaxation {
    /// The earliest later deadline.
    Deadline(Time),
    /// The latest earlier ready time.
    Ready(Time),
    /// The largest smaller number of nodes.
    Nodes(u32),
    /// The longest shorter duration.
    Duration(Seconds),
    /// The largest number of nodes for which any deadline will do, and the earliest such deadline.
    NodesAndDeadline(u32, Time),
    /// The largest number of nodes for which any ready time will do, and the latest such ready time.
    NodesAndReady(u32, Time),
}

impl Relaxation {
    /// The request with this change and no other.
    #[must_use]
    pub fn applied(self, request: &Request) -> Request {
        let mut relaxed = *request;
        match self {
            Self::Deadline(deadline) => relaxed.deadline = deadline,
            Self::Ready(ready) => relaxed.ready = ready,
            Self::Nodes(nodes) => relaxed.nodes = nodes,
            Self::Duration(duration) => relaxed.duration = duration,
            Self::NodesAndDeadline(nodes, deadline) => {
                (relaxed.nodes, relaxed.deadline) = (nodes, deadline);
            }
            Self::NodesAndReady(nodes, ready) => (relaxed.nodes, relaxed.ready) = (nodes, ready),
        }
        relaxed
    }

    /// The same in steps of `seconds` and of `nodes`, both at least 1: a little more relaxed, so that it still holds and
    /// says less about the plan. `None` where the step leads beyond the bounds.
    pub fn coarsened(self, seconds: Seconds, nodes: u32, bounds: &Bounds) -> Option<Self> {
        let later =
            |t: Time| Some(Time(-(-t.0).div_euclid(seconds) * seconds)).filter(|t| *t <= bounds.times.end);
        let earlier =
            |t: Time| Some(Time(t.0.div_euclid(seconds) * seconds)).filter(|t| *t >= bounds.times.start);
        let fewer = |n: u32| Some(n / nodes * nodes).filter(|n| *n >= bounds.nodes_min.max(1));
        Some(match self {
            Self::Deadline(t) => Self::Deadline(later(t)?),
            Self::Ready(t) => Self::Ready(earlier(t)?),
            Self::Nodes(n) => Self::Nodes(fewer(n)?),
            Self::Duration(d) => {
                let shorter = d.div_euclid(seconds) * seconds;
                Self::Duration(Some(shorter).filter(|d| *d >= bounds.duration_min.max(1))?)
            }
            Self::NodesAndDeadline(n, t) => Self::NodesAndDeadline(fewer(n)?, later(t)?),
            Self::NodesAndReady(n, t) => Self::NodesAndReady(fewer(n)?, earlier(t)?),
        })
    }
}

/// The relaxations of `request` on the plan `tree`: every single one; where there is no single one, the joint one that keeps most
/// nodes. Empty for a request that fits as it is. With few `visits` of blocks of the tree a relaxation may be missing, or be more
/// than is needed.
///
/// A handful of first fits for the times, and one for each halving of the nodes and of the duration.
fn find_relaxations(tree: &SlotTree, request: &Request, bounds: &Bounds, visits: u64) -> Vec<Relaxation> {
    let mut search = RelaxationSearch {
        tree,
        request,
        bounds,
        visits,
    };
    let window = search.within(request.window());
    if search.fits(request.nodes, request.duration, window) {
        return Vec::new();
    }
    let nodes_min = bounds.nodes_min.max(1);
    let longer = search.within(Interval::new(request.ready, bounds.times.end));
    let sooner = search.within(Interval::new(bounds.times.start, request.deadline));
    let singles = [
        search
            .earliest_deadline(request.nodes, longer)
            .map(Relaxation::Deadline),
        search.latest_ready(request.nodes, sooner).map(Relaxation::Ready),
        search.most_nodes(nodes_min, window).map(Relaxation::Nodes),
        search.longest_duration(window).map(Relaxation::Duration),
    ];
    let singles: Vec<Relaxation> = singles.into_iter().flatten().collect();
    if !singles.is_empty() {
        return singles;
    }
    let with_deadline = search.most_nodes(nodes_min, longer);
    let with_ready = search.most_nodes(nodes_min, sooner);
    let joint = if with_deadline >= with_ready {
        with_deadline.and_then(|n| {
            Some(Relaxation::NodesAndDeadline(
                n,
                search.earliest_deadline(n, longer)?,
            ))
        })
    } else {
        with_ready.and_then(|n| Some(Relaxation::NodesAndReady(n, search.latest_ready(n, sooner)?)))
    };
    joint.into_iter().collect()
}

impl Schedule {
    /// The relaxations of a request that was refused: every single one; where there is no single one, the joint one that keeps most
    /// nodes, as far as the schedule's budget allows. None of them starts before the
    /// schedule's present.
    pub fn relaxations(&self, request: &Request, bounds: &Bounds) -> Vec<Relaxation> {
        let times = Interval::new(bounds.times.start.max(self.now()), bounds.times.end);
        let visits = self.work_to_explain().visits();
        find_relaxations(self.tree(), request, &Bounds { times, ..*bounds }, visits)
    }
}

struct RelaxationSearch<'a> {
    tree: &'a SlotTree,
    request: &'a Request,
    bounds: &'a Bounds,
    /// Blocks of the tree that may still be looked at.
    visits: u64,
}

impl RelaxationSearch<'_> {
    fn within(&self, window: Interval) -> Interval {
        let times = self.bounds.times;
        Interval::new(window.start.max(times.start), window.end.min(times.end))
    }

    fn fits(&mut self, nodes: u32, duration: Seconds, window: Interval) -> bool {
        let visits = &mut self.visits;
        (self.tree.earliest_fit_within(nodes, duration, window, visits)).is_some()
    }

    fn earliest_deadline(&mut self, nodes: u32, window: Interval) -> Option<Time> {
        let (tree, duration) = (self.tree, self.request.duration);
        let start = tree.earliest_fit_within(nodes, duration, window, &mut self.visits)?;
        Some(start + duration)
    }

    fn latest_ready(&mut self, nodes: u32, window: Interval) -> Option<Time> {
        let (tree, duration) = (self.tree, self.request.duration);
        tree.latest_fit_within(nodes, duration, window, &mut self.visits)
    }

    /// The most nodes, fewer than asked for, that fit for the asked duration.
    fn most_nodes(&mut self, least: u32, window: Interval) -> Option<u32> {
        let most = self.request.nodes.checked_sub(1)?.min(self.tree.capacity());
        let fits = |n: i64| u32::try_from(n).is_ok_and(|n| self.fits(n, self.request.duration, window));
        u32::try_from(largest_relaxation(least.into(), most.into(), fits)?).ok()
    }

    /// The longest duration, shorter than asked for, for which the asked nodes fit.
    fn longest_duration(&mut self, window: Interval) -> Option<Seconds> {
        let most = (self.request.duration - 1).min(window.duration());
        let least = self.bounds.duration_min.max(1);
        largest_relaxation(least, most, |d| self.fits(self.request.nodes, d, window))
    }
}

/// The largest number of `least..=most` that holds, where all below one that holds hold as well.
fn largest_relaxation(least: i64, most: i64, mut holds: impl FnMut(i64) -> bool) -> Option<i64> {
    if least > most || !holds(least) {
        return None;
    }
    let (mut low, mut high) = (least, most + 1);
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}
