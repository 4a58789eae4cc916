//! How the nodes of a resource stand, and when how many of them are out of use.
//!
//! The report of an executor and the word of an operator are kept apart, and the worse of the two holds. A node that an
//! executor reports back is trusted again only when it has been up for a while, for longer each time that it fails.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::clock::{MICROS_PER_SECOND, second_of};
use domain::resources::{
    BusyTime, NodeCounts, NodeReport, NodeState, ReportedState, Reporter, UnusedNodes, WhyUnused,
};
use scheduler::{Interval, Seconds, Time};

use crate::schedules::failures::Failures;

/// For how long failures of a node count towards how long it has to be up before it is trusted again.
const REMEMBERED: Seconds = 3_600;
/// Failures of one node that are remembered.
const FAILURES_MAX: usize = 10;
/// Later than any plan reaches: the end of intervals without an end.
pub(super) const FAR: Time = Time(1 << 40);

/// How the nodes of one resource stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    /// The nodes that are not up, by the source of the report.
    said: BTreeMap<(u32, Reporter), ReportedState>,
    /// Since when the nodes that an executor reports back are up.
    recovering: BTreeMap<u32, Time>,
    /// When each has failed lately.
    failed: BTreeMap<u32, VecDeque<Time>>,
    pub(super) busy: Vec<BusyTime>,
    /// Planned times without a number of nodes, the ones with the highest numbers.
    maintenance: Vec<(Interval, u32)>,
    /// The nodes out of use in the plan.
    pub(crate) blocks: Vec<(Interval, u32)>,
}

impl Nodes {
    pub(crate) fn new(maintenance: Vec<(Interval, u32)>) -> Self {
        Self {
            maintenance,
            ..Self::default()
        }
    }

    /// Takes over other planned times without nodes.
    pub(crate) fn plan_maintenance(&mut self, maintenance: Vec<(Interval, u32)>) {
        self.maintenance = maintenance;
    }

    /// Takes back the stored states.
    pub(crate) fn restore(&mut self, node: u32, by: Reporter, said: ReportedState) {
        self.said.insert((node, by), said);
    }

    /// How a node stands: the worst that is said.
    pub(crate) fn state(&self, node: u32) -> NodeState {
        let said = |by| self.report_on(node, by).map_or(NodeState::Up, |said| said.state);
        said(Reporter::Executor).max(said(Reporter::Operator))
    }

    /// How many of a number of nodes are up.
    pub(crate) fn up(&self, capacity: u32) -> u32 {
        self.counts(capacity).count(NodeState::Up)
    }

    /// How many of a number of nodes are in each state.
    pub(crate) fn counts(&self, capacity: u32) -> NodeCounts {
        let mut counts = NodeCounts::all_up(capacity);
        for node in self.reported(capacity) {
            counts.take_out(self.state(node));
        }
        counts
    }

    /// The nodes among this number on which there is a report that they are not up, by their numbers.
    pub(crate) fn reported(&self, capacity: u32) -> BTreeSet<u32> {
        let reported = self.said.keys().map(|(node, _)| *node);
        reported.filter(|node| *node < capacity).collect()
    }

    /// The report on a node; none where it says that the node is up.
    pub(crate) fn report_on(&self, node: u32, by: Reporter) -> Option<&ReportedState> {
        self.said.get(&(node, by))
    }

    /// The operator's words about all nodes, with some of them changed.
    pub(crate) fn with(
        &self,
        capacity: u32,
        nodes: &BTreeSet<u32>,
        state: NodeState,
        reason: Option<&str>,
    ) -> NodeReport {
        let mut report = NodeReport::default();
        for node in 0..capacity {
            let before = self.report_on(node, Reporter::Operator);
            let (state, reason) = if nodes.contains(&node) {
                (state, reason.map(str::to_owned))
            } else {
                let state = before.map_or(NodeState::Up, |said| said.state);
                (state, before.and_then(|said| said.reason.clone()))
            };
            report.states.push(state);
            report.reasons.extend(reason.map(|reason| (node, reason)));
        }
        report
    }

    /// Whether any node is down.
    pub(crate) fn any_down(&self) -> bool {
        let mut said = self.said.keys();
        said.any(|(node, _)| self.state(*node) == NodeState::Down)
    }

    /// Whether every node is up and will be.
    pub(crate) fn is_plain(&self) -> bool {
        self.said.is_empty() && self.busy.is_empty() && self.maintenance.is_empty() && self.blocks.is_empty()
    }

    /// The times and nodes that are not to be used, by the word of operators or by plan, while the executor may take them for its
    /// own work: it knows the nodes up to `extent`.
    pub(crate) fn left_out(&self, capacity: u32, extent: u32) -> Vec<BusyTime> {
        let by_operators = self.said.keys().filter(|(_, by)| *by == Reporter::Operator);
        let by_operators = by_operators.map(|(node, _)| *node);
        // Nodes that are not the resource's, or no more.
        let beyond = capacity..extent;
        let always = by_operators.chain(beyond);
        let always = always.map(|node| (node, Interval::new(Time::MIN, Time::MAX)));
        let planned = self.maintenance.iter().flat_map(|(interval, nodes)| {
            let without = capacity.saturating_sub(*nodes)..capacity;
            without.map(|node| (node, *interval))
        });
        let out = always.chain(planned);
        out.map(|(node, interval)| BusyTime { node, interval }).collect()
    }

    /// Whether a node is others' at some time of an interval.
    fn is_busy(&self, node: u32, interval: Interval) -> bool {
        let is = |time: &BusyTime| time.node == node && time.interval.meets(interval);
        self.busy.iter().any(is)
    }

    /// The nodes that are others' at some time of an interval.
    pub(crate) fn busy_in(&self, interval: Interval) -> BTreeSet<u32> {
        let busy = self.busy.iter().filter(|busy| busy.interval.meets(interval));
        busy.map(|busy| busy.node).collect()
    }

    /// Whether a node is one of a number of nodes and up, and at no time of an interval others' or out of use by plan.
    pub(crate) fn may_be_kept(&self, node: u32, capacity: u32, interval: Interval) -> bool {
        let planned =
            |(each, nodes): &(Interval, u32)| each.meets(interval) && node >= capacity.saturating_sub(*nodes);
        node < capacity
            && self.state(node) == NodeState::Up
            && !self.is_busy(node, interval)
            && !self.maintenance.iter().any(planned)
    }

    /// Takes a report. Returns the states that are to be stored.
    pub(crate) fn apply_report(
        &mut self,
        by: Reporter,
        report: &NodeReport,
        capacity: u32,
        now: Time,
        settle: Seconds,
    ) -> Vec<(u32, NodeState)> {
        let since = now.seconds().saturating_mul(MICROS_PER_SECOND);
        if by == Reporter::Executor {
            self.busy.clone_from(&report.busy);
            self.busy
                .retain(|time| time.node < capacity && time.interval.end > now);
        }
        let mut changed = Vec::new();
        for node in 0..capacity {
            let next = report.states.get(node as usize).copied().unwrap_or(NodeState::Up);
            let said = self.report_on(node, by);
            let before = said.map_or(NodeState::Up, |said| said.state);
            let reason = report.reasons.get(&node);
            // A node that is up needs no reason.
            let as_before = next == before && said.is_none_or(|said| said.reason.as_ref() == reason);
            let since = said.map_or(since, |said| if next == before { said.since } else { since });
            let damped = by == Reporter::Executor && before == NodeState::Down && next == NodeState::Up;
            if damped && !self.check_settling(node, now, settle) {
                continue;
            }
            if by == Reporter::Executor {
                self.recovering.remove(&node);
            }
            if as_before {
                continue;
            }
            if next == NodeState::Down && next != before {
                let failed = self.failed.entry(node).or_default();
                failed.push_back(now);
                if failed.len() > FAILURES_MAX {
                    failed.pop_front();
                }
            }
            match next {
                NodeState::Up => self.said.remove(&(node, by)),
                state => {
                    let reason = reason.cloned();
                    self.said
                        .insert((node, by), ReportedState { state, since, reason })
                }
            };
            changed.push((node, next));
        }
        changed
    }

    /// Whether a node that is reported back has been up for long enough, which is longer for each of its last failures.
    fn check_settling(&mut self, node: u32, now: Time, settle: Seconds) -> bool {
        let failed = self.failed.entry(node).or_default();
        while failed.front().is_some_and(|at| *at < now - REMEMBERED) {
            failed.pop_front();
        }
        let times = i64::try_from(failed.len()).unwrap_or(1).max(1);
        let since = *self.recovering.entry(node).or_insert(now);
        now - since >= settle * times
    }

    /// How many nodes are out of use at each time, from `now` on. Running work keeps a drained node until the instant
    /// that `kept` gives, and nodes that leave the resource until the instants `leaving`.
    pub(crate) fn out_of_use(
        &self,
        capacity: u32,
        now: Time,
        failures: &Failures,
        (kept, leaving): (impl Fn(u32) -> Option<Time>, &[Time]),
    ) -> Vec<(Interval, u32)> {
        let mut each: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
        let mut add = |node: u32, interval: Interval| {
            let rest = Interval::new(interval.start.max(now), interval.end.min(FAR));
            if node < capacity && !rest.is_empty() {
                each.entry(node).or_default().push(rest);
            }
        };
        for (node, since) in self.last_reports() {
            let until = failures.next_step(since, now) + failures.repair;
            let from = match self.state(node) {
                NodeState::Up => continue,
                NodeState::Drained => kept(node).unwrap_or(now),
                NodeState::Down => now,
            };
            add(node, Interval::new(from, until.max(from)));
        }
        for time in &self.busy {
            add(time.node, time.interval);
        }
        // Maintenance takes the nodes with the highest numbers: so many at each time, and of the others those that are out by themselves.
        let planned = self.planned_steps(capacity, now);
        let mut changes: BTreeMap<Time, i64> = BTreeMap::new();
        let mut count = |Interval { start, end }: Interval, nodes: i64| {
            *changes.entry(start).or_default() += nodes;
            *changes.entry(end).or_default() -= nodes;
        };
        for left in leaving {
            count(Interval::new(*left, FAR), 1);
        }
        for (interval, nodes) in &planned {
            count(*interval, i64::from(*nodes));
        }
        for (node, mut intervals) in each {
            let of_plan = planned.iter().filter(|(_, nodes)| node >= capacity - nodes);
            let of_plan: Vec<Interval> = of_plan.map(|(interval, _)| *interval).collect();
            intervals.sort_unstable_by_key(|interval| interval.start);
            let mut reached = Time::MIN;
            for Interval { start, end } in intervals {
                for rest in node_time_beside(Interval::new(start.max(reached), end), &of_plan) {
                    count(rest, 1);
                }
                reached = reached.max(end);
            }
        }
        steps_of_node_counts(&changes)
    }

    /// The nodes of a number of nodes that are not used from `now` on, and why: the ones that are not up for as long as a repair is
    /// thought to take, the ones that others have, and the ones of maintenance. Neighbours for the same time are told together.
    pub(crate) fn unused(&self, capacity: u32, now: Time, failures: &Failures) -> Vec<UnusedNodes> {
        let by_state = self.last_reports().into_iter().map(|(node, since)| {
            let until = failures.next_step(since, now) + failures.repair;
            (
                node,
                Interval::new(now, until),
                WhyUnused::State(self.state(node)),
            )
        });
        let by_others = self
            .busy
            .iter()
            .map(|time| (time.node, time.interval, WhyUnused::Others));
        let mut unused: Vec<UnusedNodes> = Vec::new();
        for (node, interval, why) in by_state.chain(by_others).filter(|(node, ..)| *node < capacity) {
            match unused.last_mut() {
                Some(last) if last.nodes.end == node && last.interval == interval && last.why == why => {
                    last.nodes.end += 1;
                }
                _ => unused.push(UnusedNodes {
                    nodes: node..node + 1,
                    interval,
                    why,
                }),
            }
        }
        unused.retain(|unused| unused.why != WhyUnused::State(NodeState::Up));
        let planned = self.maintenance.iter().filter(|(interval, _)| interval.end > now);
        unused.extend(planned.map(|(interval, nodes)| UnusedNodes {
            nodes: capacity.saturating_sub(*nodes)..capacity,
            interval: *interval,
            why: WhyUnused::Maintenance,
        }));
        unused
    }

    /// How many nodes, those with the highest numbers, maintenance takes at each time from `now` on, where it takes some; in order.
    fn planned_steps(&self, capacity: u32, now: Time) -> Vec<(Interval, u32)> {
        let mut changes: BTreeMap<Time, Vec<(u32, i64)>> = BTreeMap::new();
        for (interval, nodes) in &self.maintenance {
            let (start, end) = (interval.start.max(now), interval.end.min(FAR));
            let nodes = (*nodes).min(capacity);
            if start < end && nodes > 0 {
                changes.entry(start).or_default().push((nodes, 1));
                changes.entry(end).or_default().push((nodes, -1));
            }
        }
        let mut going_on: BTreeMap<u32, i64> = BTreeMap::new();
        let mut steps: Vec<(Interval, u32)> = Vec::new();
        let (mut most, mut since) = (0, now);
        for (at, changed) in changes {
            for (nodes, by) in changed {
                let count = going_on.entry(nodes).or_default();
                *count += by;
                if *count == 0 {
                    going_on.remove(&nodes);
                }
            }
            let next = going_on.last_key_value().map_or(0, |(nodes, _)| *nodes);
            if next != most {
                if most > 0 {
                    steps.push((Interval::new(since, at), most));
                }
                (most, since) = (next, at);
            }
        }
        steps
    }

    /// When to look again by itself: something that is out of use is to be thought out of use for longer, or has settled.
    pub(crate) fn next_look(&self, now: Time, failures: &Failures) -> Option<Time> {
        let last = self.last_reports().into_values();
        last.map(|since| failures.next_step(since, now)).min()
    }

    /// When the last report on each node that is not up was made.
    fn last_reports(&self) -> BTreeMap<u32, Time> {
        let mut last = BTreeMap::new();
        for ((node, _), said) in &self.said {
            let since = last.entry(*node).or_insert(Time::MIN);
            *since = second_of(said.since).max(*since);
        }
        last
    }
}

/// The parts of an interval that lie in none of some others, which are in order and do not meet.
fn node_time_beside(interval: Interval, without: &[Interval]) -> Vec<Interval> {
    let (mut parts, mut from) = (Vec::new(), interval.start);
    for taken in without {
        let part = Interval::new(from, taken.start.min(interval.end));
        if !part.is_empty() {
            parts.push(part);
        }
        from = from.max(taken.end);
    }
    let last = Interval::new(from, interval.end);
    parts.extend((!last.is_empty()).then_some(last));
    parts
}

/// A function of time from its changes, as intervals on which it is the same and not 0.
fn steps_of_node_counts(changes: &BTreeMap<Time, i64>) -> Vec<(Interval, u32)> {
    let mut steps: Vec<(Interval, u32)> = Vec::new();
    let mut count = 0_i64;
    let mut ends = changes.keys().skip(1);
    for (start, change) in changes {
        count += change;
        let Some(end) = ends.next() else { break };
        let Ok(nodes) = u32::try_from(count) else { continue };
        if nodes == 0 {
            continue;
        }
        match steps.last_mut() {
            Some((last, before)) if *before == nodes && last.end == *start => last.end = *end,
            _ => steps.push((Interval::new(*start, *end), nodes)),
        }
    }
    steps
}

#[cfg(test)]
mod tests;
