//! The cluster from event to event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use scheduler::Seconds;

use super::{BatchJob, Cluster, NodeChoice, PlacedJob, Promise, PromiseOutcome, QueueOutcome};

/// Events, in their order at one time: an end makes room for a reservation, and batch jobs have the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    JobEnds(usize),
    SlotEnds(usize),
    Reserve(usize),
    SlotBegins(usize),
    Submit(usize),
}

#[derive(Debug, Clone, Default)]
struct QueueNode {
    /// When the limit of the running job ends.
    busy: Option<Seconds>,
    /// The begins and ends of its slots, in order; none is over.
    slots: Vec<(Seconds, Seconds)>,
}

impl QueueNode {
    /// Whether it neither runs a job nor is in a slot.
    fn is_idle(&self, now: Seconds) -> bool {
        self.busy.is_none() && self.next() > now
    }

    /// When its next slot begins.
    fn next(&self) -> Seconds {
        self.slots.first().map_or(Seconds::MAX, |(start, _)| *start)
    }

    /// The place of the first slot that begins at a time or later.
    fn slot_from(&self, time: Seconds) -> usize {
        self.slots.partition_point(|(start, _)| *start < time)
    }

    /// From when on it is free before a slot, if it is free in all of the slot.
    fn free_before(&self, now: Seconds, promise: &Promise) -> Option<Seconds> {
        let (before, after) = self.slots.split_at(self.slot_from(promise.start));
        let free = before.last().map_or(now, |(_, end)| now.max(*end));
        let free = free.max(self.busy.unwrap_or(now));
        let is_free = after.first().is_none_or(|(start, _)| promise.end() <= *start);
        (free <= promise.start && is_free).then_some(free)
    }

    /// The first and the last begin of a job of this limit in each time in which nothing is known to be on the node.
    fn begins(&self, now: Seconds, limit: Seconds) -> impl Iterator<Item = (Seconds, Seconds)> {
        let mut free = self.busy.unwrap_or(now);
        let slots = self.slots.iter().copied().chain([(Seconds::MAX, Seconds::MAX)]);
        slots.filter_map(move |(start, end)| {
            let first = free;
            free = free.max(end);
            (start - first >= limit).then_some((first, start - limit))
        })
    }
}

/// Where the first job of the queue will begin by all limits, and the nodes that may not be taken from it.
struct Head {
    /// When it begins at the latest.
    start: Seconds,
    /// The nodes that would then be free for it.
    free: Vec<bool>,
    /// How many of them it does not need.
    spare: usize,
}

struct QueueState<'a> {
    cluster: &'a Cluster,
    jobs: &'a [BatchJob],
    promises: &'a [Promise],
    /// Nodes that batch jobs may use; the others are dedicated.
    shared: usize,
    /// The first node that may be reserved.
    reserved_from: usize,
    now: Seconds,
    nodes: Vec<QueueNode>,
    events: BinaryHeap<Reverse<(Seconds, Event)>>,
    queue: VecDeque<usize>,
    /// Promises that have too few nodes after their lead has begun.
    short: Vec<usize>,
    outcome: QueueOutcome,
}

/// Runs the jobs, which may be in any order, to the end of the last one, beside the promises. An event takes
/// O(nodes + reservations that are known + jobs that wait × idle nodes) at worst, and the first of the queue a sort of the
/// reservations that leave room for it.
pub(crate) fn run_jobs_beside_promises(
    cluster: &Cluster,
    jobs: &[BatchJob],
    promises: &[Promise],
) -> QueueOutcome {
    let nodes = cluster.nodes as usize;
    let [shared, reserved_from] = match cluster.choice {
        NodeChoice::Dedicated(dedicated) => [nodes.saturating_sub(dedicated as usize); 2],
        NodeChoice::Lowest | NodeChoice::BestFit => [nodes, 0],
    };
    let mut state = QueueState {
        cluster,
        jobs,
        promises,
        shared,
        reserved_from,
        now: Seconds::MIN,
        nodes: vec![QueueNode::default(); nodes],
        events: BinaryHeap::new(),
        queue: VecDeque::new(),
        short: Vec::new(),
        outcome: QueueOutcome {
            jobs: vec![None; jobs.len()],
            promises: vec![PromiseOutcome::default(); promises.len()],
            ..QueueOutcome::default()
        },
    };
    for (index, job) in jobs.iter().enumerate() {
        if job.nodes as usize <= shared {
            state.at(job.submit, Event::Submit(index));
        }
    }
    for (index, promise) in promises.iter().enumerate() {
        state.at(promise.start - cluster.lead, Event::Reserve(index));
    }
    while let Some(&Reverse((time, _))) = state.events.peek() {
        state.count_until(time);
        state.now = time;
        let mut freed = false;
        while let Some(&Reverse((at, event))) = state.events.peek()
            && at == time
        {
            state.events.pop();
            freed |= state.happens(event);
        }
        for promise in std::mem::take(&mut state.short) {
            state.reserve(promise);
        }
        if freed {
            state.start_jobs();
        }
    }
    state.outcome
}

impl QueueState<'_> {
    fn at(&mut self, time: Seconds, event: Event) {
        self.events.push(Reverse((time, event)));
    }

    /// Adds up the use of the nodes from now to `time`.
    fn count_until(&mut self, time: Seconds) {
        let (from, to) = self.cluster.measured;
        let seconds = time.min(to) - self.now.max(from);
        if seconds <= 0 {
            return;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let outcome = &mut self.outcome;
            if node.busy.is_some() {
                outcome.batch += seconds;
            } else if !node.is_idle(self.now) {
                outcome.held += seconds;
            } else if index >= self.shared {
                outcome.idle_dedicated += seconds;
            } else if !self.queue.is_empty() {
                outcome.idle_waiting += seconds;
                if !node.slots.is_empty() {
                    outcome.idle_reserved += seconds;
                }
            }
        }
    }

    /// Whether jobs may be able to begin because of it.
    fn happens(&mut self, event: Event) -> bool {
        match event {
            Event::Submit(job) => self.queue.push_back(job),
            Event::JobEnds(job) => {
                let nodes = self.outcome.jobs[job].iter().flat_map(|placed| &placed.nodes);
                for node in nodes {
                    self.nodes[*node as usize].busy = None;
                }
            }
            Event::SlotEnds(promise) => self.release(promise),
            Event::Reserve(promise) => {
                self.reserve(promise);
                self.outcome.promises[promise].late = self.short.contains(&promise);
                self.at(self.promises[promise].start, Event::SlotBegins(promise));
                return false;
            }
            Event::SlotBegins(promise) => {
                self.short.retain(|short| *short != promise);
                self.reserve(promise);
                if self.short.last() != Some(&promise) {
                    self.at(self.promises[promise].end(), Event::SlotEnds(promise));
                    return false;
                }
                self.short.pop();
                self.release(promise);
                self.outcome.promises[promise].nodes.clear();
            }
        }
        true
    }

    /// Takes the reservations of a promise away.
    fn release(&mut self, promise: usize) {
        let begin = self.promises[promise].start;
        for node in &self.outcome.promises[promise].nodes {
            let slots = &mut self.nodes[*node as usize].slots;
            // The slots of a node do not meet, so that their begins differ.
            slots.retain(|(start, _)| *start != begin);
        }
    }

    /// Reserves the nodes that a promise still lacks, as far as there are any; it is short where there are too few.
    fn reserve(&mut self, index: usize) {
        let promise = &self.promises[index];
        let kept = &mut self.outcome.promises[index];
        let lacking = (promise.nodes as usize).saturating_sub(kept.nodes.len());
        if lacking == 0 {
            return;
        }
        let free = |(number, node): (u32, &QueueNode)| {
            let idle = promise.start - node.free_before(self.now, promise)?;
            let is_best_fit = self.cluster.choice == NodeChoice::BestFit;
            Some((if is_best_fit { idle } else { 0 }, number))
        };
        let nodes = (0..).zip(&self.nodes).skip(self.reserved_from);
        let mut found: Vec<(Seconds, u32)> = nodes.filter_map(free).collect();
        found.sort_unstable();
        found.truncate(lacking);
        if found.len() < lacking {
            self.short.push(index);
        }
        for (_, number) in found {
            let node = &mut self.nodes[number as usize];
            node.slots
                .insert(node.slot_from(promise.start), (promise.start, promise.end()));
            kept.nodes.push(number);
        }
    }

    /// Begins jobs by EASY backfilling.
    fn start_jobs(&mut self) {
        while let Some(&job) = self.queue.front()
            && self.start(job, None)
        {
            self.queue.pop_front();
        }
        let Some(&first) = self.queue.front() else { return };
        let mut idle = self.idle_before();
        let mut head = None;
        let waiting = std::mem::take(&mut self.queue);
        self.queue = waiting
            .into_iter()
            .filter(|&job| {
                let BatchJob { limit, nodes, .. } = self.jobs[job];
                // Most jobs of a long queue are passed over here, without a look at each node.
                let fits = |idle: &[Seconds]| {
                    let end = self.now + limit;
                    idle.len() - idle.partition_point(|next| *next < end) >= nodes as usize
                };
                if job == first || idle.len() < nodes as usize || !fits(&idle) {
                    return true;
                }
                // Found out only where a job might go first.
                let mut of_first = head.take().unwrap_or_else(|| self.head(first));
                let started = self.start(job, Some(&mut of_first));
                head = Some(of_first);
                if started {
                    idle = self.idle_before();
                }
                !started
            })
            .collect();
    }

    /// When the next slots of the idle nodes begin, in order.
    fn idle_before(&self) -> Vec<Seconds> {
        let mut before: Vec<Seconds> = self.idle().map(|(_, next)| next).collect();
        before.sort_unstable();
        before
    }

    /// The nodes that batch jobs could have now, and when their next slots begin.
    fn idle(&self) -> impl Iterator<Item = (usize, Seconds)> {
        let nodes = self.nodes[..self.shared].iter().enumerate();
        let idle = nodes.filter(|(_, node)| node.is_idle(self.now));
        idle.map(|(index, node)| (index, node.next()))
    }

    /// The nodes that a job could have now without reaching into a slot.
    fn fitting(&self, job: usize) -> Vec<usize> {
        let end = self.now + self.jobs[job].limit;
        let fitting = self.idle().filter(|(_, next)| *next >= end);
        fitting.map(|(index, _)| index).collect()
    }

    /// Where the first job, which cannot begin now, will begin by the known limits.
    fn head(&self, job: usize) -> Head {
        let BatchJob { limit, nodes, .. } = self.jobs[job];
        let shared = &self.nodes[..self.shared];
        let mut changes: Vec<(Seconds, i32)> = shared
            .iter()
            .flat_map(|node| node.begins(self.now, limit))
            .flat_map(|(first, last)| [(first, 1), (last.saturating_add(1), -1)])
            .collect();
        changes.sort_unstable();
        let wanted = i32::try_from(nodes).unwrap_or(i32::MAX);
        let mut free = 0;
        // Ends at a time sort before begins at it, so the sum is never too high.
        let start = changes.iter().find_map(|(time, change)| {
            free += change;
            (free >= wanted).then_some(*time)
        });
        // The node count fits, and every node is free in the end.
        let start = start.unwrap_or(Seconds::MAX);
        let free: Vec<bool> = shared
            .iter()
            .map(|node| {
                node.begins(self.now, limit)
                    .any(|(first, last)| first <= start && start <= last)
            })
            .collect();
        let spare = free.iter().filter(|free| **free).count() - nodes as usize;
        Head { start, free, spare }
    }

    /// Begins a job now if it fits, and does not delay the first of the queue.
    fn start(&mut self, job: usize, head: Option<&mut Head>) -> bool {
        let BatchJob {
            limit, nodes, run, ..
        } = self.jobs[job];
        let end = self.now + limit;
        let mut fitting = self.fitting(job);
        if let Some(head) = head
            && end > head.start
        {
            let (theirs, others): (Vec<usize>, Vec<usize>) =
                fitting.into_iter().partition(|node| head.free[*node]);
            let from_theirs = (nodes as usize).saturating_sub(others.len());
            if from_theirs > head.spare.min(theirs.len()) {
                return false;
            }
            head.spare -= from_theirs;
            for node in &theirs[..from_theirs] {
                head.free[*node] = false;
            }
            fitting = others;
            fitting.extend(&theirs[..from_theirs]);
        }
        if fitting.len() < nodes as usize {
            return false;
        }
        fitting.truncate(nodes as usize);
        for node in &fitting {
            self.nodes[*node].busy = Some(end);
        }
        self.at(self.now + run, Event::JobEnds(job));
        self.outcome.jobs[job] = Some(PlacedJob {
            start: self.now,
            nodes: fitting
                .into_iter()
                .filter_map(|node| u32::try_from(node).ok())
                .collect(),
        });
        true
    }
}
