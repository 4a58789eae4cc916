//! The obvious plans, to measure the slot tree against and to check it at sizes that brute force cannot reach.

use scheduler::measure::MeasuredPlan;
use scheduler::{Interval, Seconds, Time};
use std::collections::BTreeMap;
use std::mem::size_of;

/// Steps in a sorted vector, walked from the ready time.
pub(crate) struct SortedVec {
    capacity: u32,
    steps: Vec<(i64, u32)>,
}

impl SortedVec {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            steps: vec![(Time::MIN.0, capacity)],
        }
    }

    /// The index of the step that starts at `t`, which is made if there is none.
    fn border(&mut self, t: i64) -> usize {
        match self.steps.binary_search_by_key(&t, |s| s.0) {
            Ok(i) => i,
            Err(i) => {
                self.steps.insert(i, (t, self.steps[i - 1].1));
                i
            }
        }
    }

    fn change(&mut self, interval: Interval, change: impl Fn(u32) -> u32) {
        let i = self.border(interval.start.0);
        let j = self.border(interval.end.0);
        for step in &mut self.steps[i..j] {
            step.1 = change(step.1);
        }
        if self.steps[j].1 == self.steps[j - 1].1 {
            self.steps.remove(j);
        }
        if i > 0 && self.steps[i].1 == self.steps[i - 1].1 {
            self.steps.remove(i);
        }
    }
}

/// The earliest fit along steps in order. The first step holds the start of the window.
fn walk(
    steps: impl Iterator<Item = (i64, u32)>,
    nodes: u32,
    duration: Seconds,
    window: Interval,
) -> Option<Time> {
    let mut run = None;
    for (start, free) in steps {
        if let Some(run) = run
            && start - run >= duration
        {
            return Some(Time(run));
        }
        if free < nodes {
            run = None;
        } else if run.is_none() {
            run = Some(start.max(window.start.0));
        }
        if run.unwrap_or(start) > window.end.0 - duration {
            return None;
        }
    }
    run.map(Time)
}

impl MeasuredPlan for SortedVec {
    fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        if nodes > self.capacity || window.duration() < duration {
            return None;
        }
        let first = self.steps.partition_point(|s| s.0 <= window.start.0) - 1;
        walk(self.steps[first..].iter().copied(), nodes, duration, window)
    }

    fn reserve(&mut self, interval: Interval, nodes: u32) {
        self.change(interval, |free| free - nodes);
    }

    fn release(&mut self, interval: Interval, nodes: u32) {
        self.change(interval, |free| free + nodes);
    }

    fn memory_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<(i64, u32)>()
    }
}

/// Steps in an ordered map, walked from the ready time.
pub(crate) struct OrderedMap {
    capacity: u32,
    steps: BTreeMap<i64, u32>,
}

impl OrderedMap {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            steps: BTreeMap::from([(Time::MIN.0, capacity)]),
        }
    }

    fn before(&self, t: i64) -> u32 {
        self.steps
            .range(..t)
            .next_back()
            .map_or(self.capacity, |(_, free)| *free)
    }

    fn change(&mut self, interval: Interval, change: impl Fn(u32) -> u32) {
        let (start, end) = (interval.start.0, interval.end.0);
        for t in [start, end] {
            let before = self.before(t);
            self.steps.entry(t).or_insert(before);
        }
        for (_, free) in self.steps.range_mut(start..end) {
            *free = change(*free);
        }
        for t in [end, start] {
            if self.steps.get(&t) == Some(&self.before(t)) {
                self.steps.remove(&t);
            }
        }
    }
}

impl MeasuredPlan for OrderedMap {
    fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        if nodes > self.capacity || window.duration() < duration {
            return None;
        }
        let first = self
            .steps
            .range(..=window.start.0)
            .next_back()
            .map_or(Time::MIN.0, |(t, _)| *t);
        walk(
            self.steps.range(first..).map(|(t, free)| (*t, *free)),
            nodes,
            duration,
            window,
        )
    }

    fn reserve(&mut self, interval: Interval, nodes: u32) {
        self.change(interval, |free| free - nodes);
    }

    fn release(&mut self, interval: Interval, nodes: u32) {
        self.change(interval, |free| free + nodes);
    }

    fn memory_bytes(&self) -> usize {
        self.steps.len() * size_of::<(i64, u32)>()
    }
}
