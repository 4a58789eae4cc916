//! A decision: the best candidate of all matching resources, with as few searches of plans as bounds and index allow.

use super::{Candidate, Domain, Kind, Objective, Planned, Rank, Resource, Task, bits};
use crate::rate::Rate;
use crate::refusal::Reason;
use crate::time::{Interval, Seconds};
use std::ops::RangeInclusive;

/// The meaning of the seconds of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Work at the reference rate: faster nodes take less.
    Work,
    /// How long the nodes are held, at any rate.
    Contract,
}

/// A decision on its way.
struct Decision<'a> {
    task: &'a Task,
    meaning: Meaning,
    objective: Objective,
    /// Where it may lie: the task's window, not before now.
    window: Interval,
    /// Resources that match and were not asked yet.
    open: Vec<u64>,
    best: Option<Candidate>,
}

impl<P: Planned> Domain<P> {
    /// The best placement of all that are free, by the rate of each resource. The answer is that of a scan of all resources; ties
    /// go to the lower id.
    ///
    /// O((v + s) log n) for v plans searched, plus a pass over the bits of the s stretches of the index that the window meets up
    /// to the answer. v is little more than one where much is free.
    ///
    /// # Errors
    /// Why there is none: `ResourceNotOffered`, `SizeExceedsCapacity`, `WindowInThePast`, `WindowContradictory` if the window is
    /// too short for all that match, else `NoCapacityInWindow`.
    pub fn decide(&self, task: &Task, objective: Objective) -> Result<Candidate, Reason> {
        self.best(task, Meaning::Work, objective)
    }

    /// The best placement of all that are free, for a task with `work` as the time that it holds its nodes on every resource, at
    /// any rate. Otherwise as [`Domain::decide`].
    ///
    /// # Errors
    /// As [`Domain::decide`].
    pub fn decide_contract(&self, task: &Task, objective: Objective) -> Result<Candidate, Reason> {
        self.best(task, Meaning::Contract, objective)
    }

    /// The resources that a task could ever run on: they meet its requirements, are not excepted and have the nodes. By
    /// rate, fastest first. A look at each resource that matches.
    pub fn able(&self, task: &Task) -> Vec<u64> {
        let open = self.open(task);
        bits::all(0..self.resources.len(), |w| open[w])
            .filter(|number| self.plans[*number].plan().capacity() >= task.nodes)
            .map(|number| self.resources[number].id)
            .collect()
    }

    /// The set of the resources that match and are not excepted.
    fn open(&self, task: &Task) -> Vec<u64> {
        let mut open = self.catalogue.matching(&task.requires);
        for id in &task.except {
            if let Some(number) = self.numbers.get(id) {
                bits::put(&mut open, *number, false);
            }
        }
        open
    }

    fn best(&self, task: &Task, meaning: Meaning, objective: Objective) -> Result<Candidate, Reason> {
        let open = self.open(task);
        let mut decision = Decision {
            task,
            meaning,
            objective,
            window: Interval::new(task.window.start.max(self.index.now()), task.window.end),
            open,
            best: None,
        };
        if let Some(reason) = self.impossible(&decision) {
            return Err(reason);
        }
        let first = self.index.stretch(decision.window.start);
        let last = self.index.stretch(decision.window.end - 1);
        match objective {
            Objective::EarliestCompletion => _ = (first..=last).all(|at| self.pass(&mut decision, at)),
            Objective::LatestStart => _ = (first..=last).rev().all(|at| self.pass(&mut decision, at)),
            Objective::Cheapest => self.by_cost(&mut decision, first..=last),
        }
        decision.best.ok_or(Reason::NoCapacityInWindow)
    }

    /// The reason why the task is impossible in every plan. A look at each matching resource until one could take it.
    fn impossible(&self, decision: &Decision<'_>) -> Option<Reason> {
        let task = decision.task;
        if task.nodes < 1 || task.work < 1 || task.window.is_empty() {
            return Some(Reason::WindowContradictory);
        }
        let mut reason = Reason::ResourceNotOffered;
        for kind in &self.kinds {
            let duration = decision.duration(kind);
            for number in bits::all(kind.members.clone(), |w| decision.open[w]) {
                if self.plans[number].plan().capacity() < task.nodes {
                    if reason == Reason::ResourceNotOffered {
                        reason = Reason::SizeExceedsCapacity;
                    }
                } else if decision.window.duration() >= duration {
                    return None;
                } else if task.window.duration() >= duration {
                    reason = Reason::WindowInThePast;
                } else if reason != Reason::WindowInThePast {
                    reason = Reason::WindowContradictory;
                }
            }
        }
        Some(reason)
    }

    /// Asks the resources that may start in a stretch, fastest first, which is the order of the best that they could offer there.
    /// Answers whether a stretch further on may still offer something better.
    fn pass(&self, decision: &mut Decision<'_>, stretch: usize) -> bool {
        let mut hopeful = decision.best.is_none();
        for kind in &self.kinds {
            let Some(bound) = decision.bound(kind, self.index.seconds(stretch)) else {
                continue;
            };
            if decision.hopeless(bound) {
                break;
            }
            hopeful = true;
            self.ask(decision, kind, bound, stretch);
        }
        hopeful
    }

    /// Asks the kinds in the order of their cost of work, each from the first stretch on.
    fn by_cost(&self, decision: &mut Decision<'_>, stretches: RangeInclusive<usize>) {
        for kind in self.cheapest.iter().map(|kind| &self.kinds[*kind]) {
            let least = decision.least_cost(kind);
            if decision.best.is_some_and(|best| best.rank.objective < least) {
                // By cost of work they are in order, by cost of time they may not be.
                match decision.meaning {
                    Meaning::Work => return,
                    Meaning::Contract => continue,
                }
            }
            for stretch in stretches.clone() {
                let Some(bound) = decision.bound(kind, self.index.seconds(stretch)) else {
                    continue;
                };
                if decision.hopeless(bound) {
                    break;
                }
                self.ask(decision, kind, bound, stretch);
            }
        }
    }

    /// Asks the members of one kind that may start in a stretch, in order of their ids.
    fn ask(&self, decision: &mut Decision<'_>, kind: &Kind, bound: Rank, stretch: usize) {
        let duration = decision.duration(kind);
        let set = self.index.set(stretch, decision.task.nodes, duration);
        let mut next = kind.members.start;
        while let Some(number) = bits::first(next..kind.members.end, |word| {
            decision.open[word] & set.map_or(u64::MAX, |set| set[word])
        }) {
            next = number + 1;
            let bound = Rank {
                resource: self.resources[number].id,
                ..bound
            };
            if decision.best.is_some_and(|best| bound >= best.rank) {
                return;
            }
            bits::put(&mut decision.open, number, false);
            self.search(decision, number, duration, stretch);
        }
    }

    /// Searches one plan for something better than the best so far. By the index nothing starts there on the near side of the
    /// stretch where it is asked.
    fn search(&self, decision: &mut Decision<'_>, number: usize, duration: Seconds, stretch: usize) {
        let (resource, plan) = (&self.resources[number], self.plans[number].plan());
        let starts = self.index.seconds(stretch);
        let Interval { start, end } = decision.better(resource, duration);
        let nodes = decision.task.nodes;
        let fit = || match decision.objective {
            Objective::LatestStart => {
                let last = starts.end + (duration - 1);
                plan.latest_fit(nodes, duration, Interval::new(start, end.min(last)))
            }
            _ => plan.earliest_fit(nodes, duration, Interval::new(start.max(starts.start), end)),
        };
        let Some(start) = fit() else { return };
        let slot = Interval::of(start, duration);
        let candidate = candidate(decision.objective, decision.task, resource, slot);
        if decision.best.is_none_or(|best| candidate.rank < best.rank) {
            decision.best = Some(candidate);
        }
    }
}

/// A placement with its rank.
pub(super) fn candidate(objective: Objective, task: &Task, resource: &Resource, slot: Interval) -> Candidate {
    let cost = cost(resource.price, task.nodes, slot.duration());
    Candidate {
        resource: resource.id,
        slot,
        cost: cost.unsigned_abs(),
        rank: rank(objective, slot, cost, resource.id),
    }
}

fn rank(objective: Objective, slot: Interval, cost: i128, resource: u64) -> Rank {
    let objective = match objective {
        Objective::EarliestCompletion => i128::from(slot.end.seconds()),
        Objective::Cheapest => cost,
        Objective::LatestStart => -i128::from(slot.start.seconds()),
    };
    Rank {
        objective,
        completion: slot.end,
        resource,
    }
}

/// 32 + 32 + 63 bits at most.
fn cost(price: u32, nodes: u32, duration: Seconds) -> i128 {
    i128::from(price) * i128::from(nodes) * i128::from(duration)
}

impl Decision<'_> {
    /// How long the task takes on a kind at least.
    fn duration(&self, kind: &Kind) -> Seconds {
        match self.meaning {
            Meaning::Work => kind.rate.duration(self.task.work),
            Meaning::Contract => self.task.work,
        }
    }

    /// The best rank that a member of `kind` could have if it starts in `starts`, whichever its id; `None` if it cannot.
    fn bound(&self, kind: &Kind, starts: Interval) -> Option<Rank> {
        let duration = self.duration(kind);
        let earliest = starts.start.max(self.window.start);
        let latest = (starts.end - 1).min(self.window.end - duration);
        if earliest > latest {
            return None;
        }
        let start = match self.objective {
            Objective::LatestStart => latest,
            _ => earliest,
        };
        let cost = cost(kind.price, self.task.nodes, duration);
        Some(rank(self.objective, Interval::of(start, duration), cost, 0))
    }

    /// Whether nothing within `bound` can beat the best so far, even with the lowest id.
    fn hopeless(&self, bound: Rank) -> bool {
        self.best.is_some_and(|best| {
            (bound.objective, bound.completion) > (best.rank.objective, best.rank.completion)
        })
    }

    /// The cost of the work on `kind` before its duration is rounded up to whole seconds, which could change the order.
    fn least_cost(&self, kind: &Kind) -> i128 {
        let work = cost(kind.price, self.task.nodes, self.task.work);
        if self.meaning == Meaning::Contract {
            return work;
        }
        let rate = i128::from(kind.rate.millionths());
        let reference = i128::from(Rate::REFERENCE.millionths());
        let whole = (work / rate).saturating_mul(reference);
        whole.saturating_add(work % rate * reference / rate)
    }

    /// The part of the window in which a placement on `resource` could beat the best so far.
    fn better(&self, resource: &Resource, duration: Seconds) -> Interval {
        let Interval { start, end } = self.window;
        let Some(best) = self.best else {
            return self.window;
        };
        let sooner = end.min(best.slot.end - i64::from(resource.id > best.resource));
        let cheaper = cost(resource.price, self.task.nodes, duration) < best.rank.objective;
        match self.objective {
            Objective::LatestStart => Interval::new(start.max(best.slot.start), end),
            Objective::Cheapest if cheaper => self.window,
            Objective::Cheapest | Objective::EarliestCompletion => Interval::new(start, sooner),
        }
    }
}
