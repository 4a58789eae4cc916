//! A decision: the best candidate of all matching resources, with as few searches of plans as bounds and index allow.

use super::candidate::{candidate_cost, candidate_cost_with_loss, candidate_rank, ranked_candidate};
use super::forecast::OfResource;
use super::{Candidate, Domain, ForeseenTimes, HasPlan, Kind, Objective, Rank, Resource, Task, bits};
use crate::rate::Rate;
use crate::refusal::Reason;
use crate::time::{Interval, Seconds, Time, nearest_instant};
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

/// Steps of forecasts that a decision searches plans for, each twice at most. The most hopeful resources come first, and with 250 prices
/// in a window a resource has some 500 steps.
const LOOKS_MAX: usize = 4_096;

/// The meaning of the seconds of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskMeaning {
    /// Work at the reference rate: faster nodes take less.
    Work,
    /// How long the nodes are held, at any rate.
    Contract,
}

/// The search for the best placement of a task.
pub(super) struct DomainSearch<'a> {
    pub(super) task: &'a Task,
    meaning: TaskMeaning,
    pub(super) objective: Objective,
    /// Where it may lie: the task's window, not before now.
    pub(super) window: Interval,
    /// By the number of a resource, its forecast; empty where the task has none.
    pub(super) forecasts: Vec<Option<&'a OfResource>>,
    /// Resources that match and were not asked yet.
    pub(super) open: Vec<u64>,
    /// The kinds that the open ones are of.
    pub(super) kinds: Range<usize>,
    /// How many placements on different resources are wanted, the best ones.
    pub(super) kept_max: usize,
    /// The best ones by rank, where more than one is wanted.
    pub(super) kept: Vec<Candidate>,
    /// A placement has to beat this one: the best so far, or the last one wanted.
    pub(super) best: Option<Candidate>,
    /// How many steps of forecasts may still be looked for in plans.
    pub(super) looks: usize,
}

impl<P: HasPlan> Domain<P> {
    /// The best placement of all that are free, by the rate of each resource, or by its forecast where the task has one for it. The
    /// answer is that of a scan of all resources and all starts; ties go to the earlier end of the slot, then to the lower id, then to the later start.
    ///
    /// O((v + s) log n) for v plans searched, plus a pass over the bits of the s stretches of the index that the window meets up
    /// to the answer. v is little more than one where much is free. Forecasts cost a look at each matching resource that has one.
    /// The steps of all forecasts that are searched for are bounded: beyond, the best placement so far is the answer, and if there is none, a free one
    /// that each of the other resources may have for the longest time that is foreseen there.
    ///
    /// # Errors
    /// Why there is none: `ResourceNotOffered`, `SizeExceedsCapacity`, `WindowInThePast`, `WindowContradictory` if the window is
    /// too short for all that match, else `NoCapacityInWindow`.
    pub fn decide(&self, task: &Task, objective: Objective) -> Result<Candidate, Reason> {
        self.best(task, TaskMeaning::Work, objective)
    }

    /// The best placement of all that are free, for a task with `work` as the time that it holds its nodes on every resource, at
    /// any rate; a forecast says this itself. Otherwise as [`Domain::decide`].
    ///
    /// # Errors
    /// As [`Domain::decide`].
    pub fn decide_contract(&self, task: &Task, objective: Objective) -> Result<Candidate, Reason> {
        self.best(task, TaskMeaning::Contract, objective)
    }

    /// The resources that a task could ever run on: they meet its requirements, are not excepted and have the nodes. By
    /// rate, fastest first. A look at each resource that matches.
    pub fn able(&self, task: &Task) -> Vec<u64> {
        let open = self.open(task);
        bits::all_bits(0..self.resources.len(), |w| open[w])
            .filter(|number| self.plans[*number].plan().capacity() >= task.nodes)
            .map(|number| self.resources[number].id)
            .collect()
    }

    /// The set of the resources that match and are not excepted.
    fn open(&self, task: &Task) -> Vec<u64> {
        let mut open = self.catalogue.matching(&task.requires);
        for id in &task.except {
            if let Some(number) = self.numbers.get(id) {
                bits::put_bit(&mut open, *number, false);
            }
        }
        open
    }

    fn best(&self, task: &Task, meaning: TaskMeaning, objective: Objective) -> Result<Candidate, Reason> {
        self.best_within(task, (meaning, objective), LOOKS_MAX)
    }

    /// The same with so many looks at steps of forecasts.
    pub(super) fn best_within(
        &self,
        task: &Task,
        (meaning, objective): (TaskMeaning, Objective),
        looks: usize,
    ) -> Result<Candidate, Reason> {
        let open = self.open(task);
        let mut decision = DomainSearch {
            task,
            meaning,
            objective,
            window: Interval::new(task.window.start.max(self.index.now()), task.window.end),
            forecasts: task
                .forecasts
                .as_ref()
                .map_or_else(Vec::new, |forecast| self.by_number(forecast)),
            open,
            kinds: 0..self.kinds.len(),
            kept_max: 1,
            kept: Vec::new(),
            best: None,
            looks,
        };
        if let Some(reason) = self.impossible(&decision) {
            return Err(reason);
        }
        if objective == Objective::LeastWorkLost {
            return self
                .by_least_lost(&mut decision)
                .ok_or(Reason::NoCapacityInWindow);
        }
        self.ask_all(&mut decision);
        decision.best.ok_or(Reason::NoCapacityInWindow)
    }

    /// Asks the open resources, or as many of them as it takes.
    pub(super) fn ask_all(&self, decision: &mut DomainSearch<'_>) {
        let first = self.index.stretch(decision.window.start);
        let last = self.index.stretch(decision.window.end - 1);
        let hopes = self.hopes_by_forecast(decision, first..=last);
        match decision.objective {
            _ if decision.all_asked() => {}
            Objective::Cheapest => self.by_cost(decision, first..=last),
            Objective::LatestStart => _ = (first..=last).rev().all(|at| self.search_stretch(decision, at)),
            _ => _ = (first..=last).all(|at| self.search_stretch(decision, at)),
        }
        self.by_forecast(decision, hopes);
    }

    /// The reason why the task is impossible in every plan. A look at each matching resource until one could take it.
    fn impossible(&self, decision: &DomainSearch<'_>) -> Option<Reason> {
        let task = decision.task;
        if task.nodes < 1 || task.work < 1 || task.window.is_empty() {
            return Some(Reason::WindowContradictory);
        }
        let mut reason = Reason::ResourceNotOffered;
        for kind in &self.kinds {
            let duration = decision.duration(kind);
            for number in bits::all_bits(kind.members.clone(), |w| decision.open[w]) {
                if self.plans[number].plan().capacity() < task.nodes {
                    if reason == Reason::ResourceNotOffered {
                        reason = Reason::SizeExceedsCapacity;
                    }
                } else if decision.fits(number, duration, decision.window) {
                    return None;
                } else if decision.fits(number, duration, task.window) {
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
    fn search_stretch(&self, decision: &mut DomainSearch<'_>, stretch: usize) -> bool {
        if decision.kept_max > 1 && decision.all_asked() {
            return false;
        }
        let mut hopeful = decision.best.is_none();
        for kind in &self.kinds[decision.kinds.clone()] {
            let Some(bound) = decision.bound(kind, self.index.seconds(stretch)) else {
                continue;
            };
            if decision.hopeless(bound) {
                break;
            }
            hopeful = true;
            self.search_kind(decision, kind, bound, stretch);
        }
        hopeful
    }

    /// Asks the kinds in the order of their cost of work, each from the first stretch on.
    fn by_cost(&self, decision: &mut DomainSearch<'_>, stretches: RangeInclusive<usize>) {
        for kind in self.cheapest.iter().map(|kind| &self.kinds[*kind]) {
            let least = decision.least_cost(kind);
            if decision.best.is_some_and(|best| best.rank.objective < least) {
                // By cost of work they are in order, by cost of time they may not be.
                match decision.meaning {
                    TaskMeaning::Work => return,
                    TaskMeaning::Contract => continue,
                }
            }
            for stretch in stretches.clone() {
                let Some(bound) = decision.bound(kind, self.index.seconds(stretch)) else {
                    continue;
                };
                if decision.hopeless(bound) {
                    break;
                }
                self.search_kind(decision, kind, bound, stretch);
            }
        }
    }

    /// Asks the members of one kind that may start in a stretch, in order of their ids.
    fn search_kind(&self, decision: &mut DomainSearch<'_>, kind: &Kind, bound: Rank, stretch: usize) {
        let duration = decision.duration(kind);
        let set = self.index.set(stretch, decision.task.nodes, duration);
        let mut next = kind.members.start;
        while let Some(number) = bits::first_bit(next..kind.members.end, |word| {
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
            bits::put_bit(&mut decision.open, number, false);
            self.search(decision, number, duration, stretch);
        }
    }

    /// Searches one plan for something better than the best so far. By the index nothing starts there on the near side of the
    /// stretch where it is asked.
    fn search(&self, decision: &mut DomainSearch<'_>, number: usize, duration: Seconds, stretch: usize) {
        let starts = self.beyond(decision, stretch);
        let foreseen = ForeseenTimes::exact(duration);
        if let Some(start) = self.fit(decision, number, foreseen, starts) {
            self.take(decision, number, foreseen, start);
        }
    }

    /// The starts from the near side of a stretch on, in the direction of the objective.
    pub(super) fn beyond(&self, decision: &DomainSearch<'_>, stretch: usize) -> Interval {
        let Interval { start, end } = decision.window;
        let seconds = self.index.seconds(stretch);
        match decision.objective {
            Objective::LatestStart => Interval::new(start, end.min(seconds.end)),
            _ => Interval::new(start.max(seconds.start), end),
        }
    }

    /// The best of these starts on a plan that beats the best so far.
    pub(super) fn fit(
        &self,
        decision: &DomainSearch<'_>,
        number: usize,
        foreseen: ForeseenTimes,
        starts: Interval,
    ) -> Option<Time> {
        let (resource, plan) = (&self.resources[number], self.plans[number].plan());
        let Interval { start, end } = decision.better_starts(resource, foreseen, starts);
        if start >= end {
            return None;
        }
        let within = Interval::new(start, end + (foreseen.hold - 1));
        match decision.objective {
            Objective::LatestStart => plan.latest_fit(decision.task.nodes, foreseen.hold, within),
            // The later it starts, the less it costs.
            Objective::Cheapest if foreseen.rise < 0 => {
                plan.latest_fit(decision.task.nodes, foreseen.hold, within)
            }
            _ => plan.earliest_fit(decision.task.nodes, foreseen.hold, within),
        }
    }

    /// Takes note of a start that beats the best so far.
    pub(super) fn take(
        &self,
        decision: &mut DomainSearch<'_>,
        number: usize,
        foreseen: ForeseenTimes,
        start: Time,
    ) {
        let resource = &self.resources[number];
        let found = ranked_candidate(decision.objective, decision.task, resource, start, foreseen);
        match decision.kept_max {
            1 => decision.best = Some(found),
            _ => decision.keep(found),
        }
    }
}

impl DomainSearch<'_> {
    /// Whether no open resource is left.
    fn all_asked(&self) -> bool {
        self.open.iter().all(|word| *word == 0)
    }

    /// Keeps a placement if it is one of the best.
    fn keep(&mut self, found: Candidate) {
        let of_resource = |candidate: &Candidate| candidate.resource == found.resource;
        if let Some(before) = self.kept.iter().position(of_resource) {
            if self.kept[before].rank < found.rank {
                return;
            }
            self.kept.remove(before);
        }
        let place = self.kept.partition_point(|each| each.rank < found.rank);
        self.kept.insert(place, found);
        self.kept.truncate(self.kept_max);
        self.best = self.kept.get(self.kept_max - 1).copied();
    }

    /// How long the task takes on a kind at least.
    fn duration(&self, kind: &Kind) -> Seconds {
        match self.meaning {
            TaskMeaning::Work => kind.rate.duration(self.task.work),
            TaskMeaning::Contract => self.task.work,
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
        let cost = candidate_cost(kind.price, self.task.nodes, duration);
        Some(candidate_rank(
            self.objective,
            start,
            ForeseenTimes::exact(duration),
            cost,
            0,
        ))
    }

    /// Whether nothing within `bound` can beat the best so far, even with the lowest id.
    fn hopeless(&self, bound: Rank) -> bool {
        self.best.is_some_and(|best| {
            (bound.objective, bound.completion) > (best.rank.objective, best.rank.completion)
        })
    }

    /// The cost of the work on `kind` before its duration is rounded up to whole seconds, which could change the order.
    fn least_cost(&self, kind: &Kind) -> i128 {
        let work = candidate_cost(kind.price, self.task.nodes, self.task.work);
        if self.meaning == TaskMeaning::Contract {
            return work;
        }
        let rate = i128::from(kind.rate.millionths());
        let reference = i128::from(Rate::REFERENCE.millionths());
        let whole = (work / rate).saturating_mul(reference);
        whole.saturating_add(work % rate * reference / rate)
    }

    /// Whether a slot on a resource lies in a window where everything is free; `duration` is that by the rate.
    fn fits(&self, number: usize, duration: Seconds, window: Interval) -> bool {
        match self.forecasts.get(number) {
            Some(Some(resource)) => {
                window.duration() >= resource.least.hold && resource.forecast.fits(window)
            }
            _ => window.duration() >= duration,
        }
    }

    /// Those of `starts` on `resource` that beat the best so far if they are free; where the loss rises or falls, those that may.
    pub(super) fn better_starts(
        &self,
        resource: &Resource,
        foreseen: ForeseenTimes,
        starts: Interval,
    ) -> Interval {
        let ForeseenTimes { hold, completion, .. } = foreseen;
        let start = starts.start.max(self.window.start);
        let end = starts.end.min(self.window.end - (hold - 1));
        let Some(best) = self.best else {
            return Interval::new(start, end);
        };
        // Starts of the same objective go by the end of the slot, then by id.
        let ends_by = best.rank.completion - i64::from(resource.id > best.resource);
        match self.objective {
            Objective::EarliestCompletion | Objective::LeastWorkLost => {
                let equal = nearest_instant(best.rank.objective - i128::from(completion));
                let wins = equal + hold <= ends_by;
                Interval::new(start, end.min(equal + i64::from(wins)))
            }
            Objective::LatestStart => {
                let equal = best.slot.start;
                let wins = equal + hold <= ends_by;
                Interval::new(start.max(equal + i64::from(!wins)), end)
            }
            Objective::Cheapest => {
                let cost = candidate_cost_with_loss(
                    candidate_cost(resource.price, self.task.nodes, hold),
                    foreseen.at_least(),
                );
                match cost.cmp(&best.rank.objective) {
                    Ordering::Less => Interval::new(start, end),
                    Ordering::Equal => Interval::new(start, end.min(ends_by - (hold - 1))),
                    Ordering::Greater => Interval::new(start, start),
                }
            }
        }
    }
}
