//! The part of a decision that asks resources with forecasts: each once, in the order of the best that it could offer.
//!
//! Their slots differ from one resource to the next, so there are no kinds. One pass over the index finds the nearest stretch in
//! which each resource could start its shortest slot; with the least that is ever foreseen there this bounds its rank. The
//! resource with the best bound is next. Its bound is first made as good as its steps allow, and then its plan is searched; the
//! decision ends when no bound beats the best placement found.
//!
//! Where resources are filled, bounds tell little, and each step of each forecast may have to be searched for. So their number is bounded
//! (`LOOKS_MAX`). Beyond it the best placement so far is taken. If there is none, each resource that is left is searched once, for
//! the longest time that is foreseen there: what is free for that long in the rest of the window is found, and it is the first start there.

use super::candidate::{candidate_cost, candidate_rank};
use super::forecast::{Forecast, ForecastStep, Forecasts, ForeseenTimes, OfResource};
use super::index::{DURATIONS, duration_class};
use super::search::DomainSearch;
use super::{Domain, HasPlan, Objective, Rank, bits};
use crate::time::{Interval, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

/// A resource that was not asked yet. The best comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Contender {
    /// The best rank that it could have.
    bound: Reverse<Rank>,
    number: usize,
    /// It may start here, and nowhere nearer.
    stretch: usize,
    /// Whether the bound is by the steps.
    by_steps: bool,
}

impl<P: HasPlan> Domain<P> {
    /// The forecasts by the number of the resource.
    pub(super) fn by_number<'a>(&self, forecasts: &'a Forecasts) -> Vec<Option<&'a OfResource>> {
        let mut by_number = vec![None; self.resources.len()];
        // Both are in the order of ids.
        let mut known = self.numbers.iter().peekable();
        for (id, forecast) in forecasts.each() {
            while known.next_if(|(known, _)| **known < id).is_some() {}
            if let Some((_, number)) = known.next_if(|(known, _)| **known == id) {
                by_number[*number] = Some(forecast);
            }
        }
        by_number
    }

    /// Asks the resources that have a forecast.
    pub(super) fn by_forecast(&self, decision: &mut DomainSearch<'_>, mut hopes: BinaryHeap<Contender>) {
        while let Some(hope) = hopes.pop() {
            let (number, stretch) = (hope.number, hope.stretch);
            if decision.best.is_some_and(|best| hope.bound.0 >= best.rank) {
                return;
            }
            if !hope.by_steps {
                if let Some(bound) = self.bound_by_forecast(decision, number, stretch) {
                    hopes.push(Contender {
                        bound: Reverse(bound),
                        by_steps: true,
                        ..hope
                    });
                }
            } else if decision.looks == 0 {
                if decision.best.is_some() || !decision.kept.is_empty() {
                    return;
                }
                self.search_longest_forecast(decision, number, stretch);
            } else if let Some(forecast) = decision.forecasts[number] {
                let starts = self.beyond(decision, stretch);
                match decision.objective {
                    Objective::LatestStart => {
                        self.search_forecast_backwards(decision, number, &forecast.forecast, starts);
                    }
                    _ => self.search_forecast_forwards(decision, number, &forecast.forecast, starts),
                }
            }
        }
    }

    /// Takes the resources with a forecast out of the open ones, and finds the nearest stretch for each, 64 at a time, with the
    /// bound that follows.
    pub(super) fn hopes_by_forecast(
        &self,
        decision: &mut DomainSearch<'_>,
        stretches: RangeInclusive<usize>,
    ) -> BinaryHeap<Contender> {
        if decision.forecasts.is_empty() {
            return BinaryHeap::new();
        }
        // By the class of the shortest slot.
        let mut open = DURATIONS.map(|_| vec![0; decision.open.len()]);
        let mut left = 0;
        let matching = std::mem::take(&mut decision.open);
        let mut rest = matching.clone();
        for number in bits::all_bits(0..self.resources.len(), |word| matching[word]) {
            if let Some(forecast) = decision.forecasts[number] {
                let class = duration_class(forecast.least.hold);
                bits::put_bit(&mut open[class], number, true);
                bits::put_bit(&mut rest, number, false);
                left += 1;
            }
        }
        decision.open = rest;
        let mut hopes = Vec::with_capacity(left);
        let mut meet = |stretch: usize| {
            for (open, duration) in open.iter_mut().zip(DURATIONS) {
                let set = self.index.set(stretch, decision.task.nodes, duration);
                for (word, open) in open.iter_mut().enumerate() {
                    let met = *open & set.map_or(u64::MAX, |set| set[word]);
                    if met == 0 {
                        continue;
                    }
                    *open &= !met;
                    for bit in bits::all_bits(0..64, |_| met) {
                        left -= 1;
                        let number = word * 64 + bit;
                        hopes.extend(self.hope_by_forecast(decision, number, stretch));
                    }
                }
            }
            left > 0
        };
        match decision.objective {
            Objective::LatestStart => _ = stretches.rev().all(&mut meet),
            _ => _ = { stretches }.all(&mut meet),
        }
        hopes.into()
    }

    /// The best that a resource could offer by the least of its forecast if nothing starts on the near side of a stretch; `None`
    /// if it cannot offer anything.
    fn hope_by_forecast(
        &self,
        decision: &DomainSearch<'_>,
        number: usize,
        stretch: usize,
    ) -> Option<Contender> {
        let foreseen = decision.forecasts[number]?.least;
        let starts = self.beyond(decision, stretch);
        let latest = decision.window.end - foreseen.hold;
        let start = match decision.objective {
            Objective::LatestStart => latest.min(starts.end - 1),
            _ => starts.start,
        };
        (starts.start <= start && start <= latest).then(|| Contender {
            bound: Reverse(self.rank_by_forecast(decision, number, start, foreseen)),
            number,
            stretch,
            by_steps: false,
        })
    }

    /// The same bound by the steps of the forecast.
    fn bound_by_forecast(&self, decision: &DomainSearch<'_>, number: usize, stretch: usize) -> Option<Rank> {
        let forecast = &decision.forecasts[number]?.forecast;
        let starts = self.beyond(decision, stretch);
        let end = decision.window.end;
        let (start, foreseen) = if decision.objective == Objective::LatestStart {
            forecast.latest_start(starts, end)?
        } else {
            let step = forecast.step(starts.start);
            let completion = step.earliest_completion(starts.start) - starts.start;
            let foreseen = ForeseenTimes {
                completion,
                ..step.least
            };
            (starts.start, foreseen)
        };
        let is_short = start + foreseen.hold <= end;
        is_short.then(|| self.rank_by_forecast(decision, number, start, foreseen))
    }

    fn rank_by_forecast(
        &self,
        decision: &DomainSearch<'_>,
        number: usize,
        start: Time,
        foreseen: ForeseenTimes,
    ) -> Rank {
        let resource = &self.resources[number];
        let cost = candidate_cost(resource.price, decision.task.nodes, foreseen.hold);
        candidate_rank(decision.objective, start, foreseen, cost, resource.id)
    }

    /// Searches the steps of a forecast in order for something better than the best so far.
    fn search_forecast_forwards(
        &self,
        decision: &mut DomainSearch<'_>,
        number: usize,
        forecast: &Forecast,
        starts: Interval,
    ) {
        let mut from = starts.start;
        while from < starts.end && decision.looks > 0 {
            let resource = &self.resources[number];
            let here = forecast.step(from);
            let (rest, within) = (
                Interval::new(from, starts.end),
                Interval::new(from, here.starts.end.min(starts.end)),
            );
            // Up to where the least of all that follows fits, nothing does.
            let least = here.least;
            if decision.better_starts(resource, least, rest).is_empty() {
                return;
            }
            if decision.better_starts(resource, here.foreseen, within).is_empty() {
                from = here.starts.end;
                continue;
            }
            decision.looks -= 1;
            let Some(start) = self.fit(decision, number, least, rest) else {
                return;
            };
            let step = forecast.step(start);
            let fit = if step.foreseen == least {
                Some(start)
            } else {
                let within = Interval::new(start, step.starts.end.min(starts.end));
                self.fit(decision, number, step.foreseen, within)
            };
            if let Some(start) = fit.filter(|start| self.forecast_beats(decision, number, step, *start)) {
                self.take(decision, number, step.at(start), start);
            }
            from = step.starts.end;
        }
    }

    /// Searches the steps of a forecast from the last to the first for the latest start that is better than the best so far.
    fn search_forecast_backwards(
        &self,
        decision: &mut DomainSearch<'_>,
        number: usize,
        forecast: &Forecast,
        starts: Interval,
    ) {
        let least = forecast.step(starts.start).least;
        let mut until = starts.end;
        while starts.start < until && decision.looks > 0 {
            decision.looks -= 1;
            let Some(start) = self.fit(decision, number, least, Interval::new(starts.start, until)) else {
                return;
            };
            let step = forecast.step(start);
            let within = Interval::new(step.starts.start.max(starts.start), start + 1);
            if let Some(start) = self.fit(decision, number, step.foreseen, within) {
                return self.take(decision, number, step.at(start), start);
            }
            until = step.starts.start;
        }
    }

    /// Searches a plan once, for the longest time that is foreseen in the rest of the window: at each start that is free for so long, its
    /// own time is free, too.
    fn search_longest_forecast(&self, decision: &mut DomainSearch<'_>, number: usize, stretch: usize) {
        let Some(forecast_of_resource) = decision.forecasts[number] else {
            return;
        };
        let starts = self.beyond(decision, stretch);
        let longest = ForeseenTimes::exact(forecast_of_resource.forecast.longest_hold(starts));
        if let Some(start) = self.fit(decision, number, longest, starts) {
            self.take(decision, number, forecast_of_resource.forecast.at(start), start);
        }
    }

    /// Whether a start in a step beats the best so far, where its loss decides: it was only known that one in the step may.
    fn forecast_beats(
        &self,
        decision: &DomainSearch<'_>,
        number: usize,
        step: &ForecastStep,
        start: Time,
    ) -> bool {
        let decides = decision.objective == Objective::Cheapest && step.foreseen.rise != 0;
        let best = decision.best.filter(|_| decides);
        best.is_none_or(|best| self.rank_by_forecast(decision, number, start, step.at(start)) < best.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::search::TaskMeaning;
    use crate::domain::{Resource, Task};
    use crate::rate::Rate;
    use crate::refusal::Reason;
    use crate::slot_tree::SlotTree;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const HOUR: i64 = 3_600;
    const HOURS: i64 = 240;
    const RESOURCES: u64 = 30;

    /// Filled resources, each with one free hour a day, and what is foreseen of an hour on them: another loss in each hour.
    fn filled() -> (Domain<SlotTree>, Forecasts) {
        let planned = Interval::new(Time(0), Time(HOURS * HOUR));
        let (mut resources, mut forecasts) = (Vec::new(), Vec::new());
        for (id, free) in (0..RESOURCES).zip((0..24).cycle()) {
            let mut plan = SlotTree::new(4);
            for hour in (0..HOURS).filter(|hour| hour % 24 != free) {
                let taken = Interval::of(Time(hour * HOUR), HOUR);
                plan.reserve(taken, 4).expect("it was free");
            }
            let unlike_resource = Resource {
                id,
                rate: Rate::REFERENCE,
                price: 1,
                attributes: BTreeMap::new(),
            };
            resources.push((unlike_resource, plan));
            let step = |hour: i64| {
                let loss = i128::from((37 * hour + 11 * free) % 101 * 1_000);
                (
                    Time(hour * HOUR),
                    ForeseenTimes {
                        loss,
                        ..ForeseenTimes::exact(HOUR)
                    },
                )
            };
            let forecast = Forecast::new((0..HOURS).map(step).collect());
            forecasts.push((id, Arc::new(forecast.expect("it has steps"))));
        }
        (Domain::new(planned, resources), Forecasts::new(forecasts))
    }

    #[test]
    fn with_few_looks_a_free_place_is_found_wherever_there_is_one() {
        let (domain, forecasts) = filled();
        for objective in [
            Objective::Cheapest,
            Objective::EarliestCompletion,
            Objective::LatestStart,
        ] {
            for (from, until) in [(0, HOURS), (30, 90), (50, 52), (50, 51)] {
                let mut task = Task {
                    nodes: 4,
                    work: HOUR,
                    window: Interval::new(Time(from * HOUR), Time(until * HOUR)),
                    requires: vec![],
                    except: vec![],
                    forecasts: Some(forecasts.clone()),
                };
                let within =
                    |task: &Task, looks| domain.best_within(task, (TaskMeaning::Work, objective), looks);
                let best = within(&task, usize::MAX).expect("each hour is free somewhere");
                for looks in [0, 1, 5, 100] {
                    let found = within(&task, looks).expect("so is one with fewer looks");
                    assert!(found.rank >= best.rank, "{objective:?} {looks}");
                    assert!(task.window.contains(found.slot));
                    let (_, plan) = domain.get(found.resource).expect("it is there");
                    assert_eq!(plan.min_free(found.slot), 4, "{objective:?} {looks}");
                }
                task.window.start = task.window.start + 1;
                task.window.end = task.window.start + HOUR;
                for looks in [0, 5, usize::MAX] {
                    assert_eq!(within(&task, looks), Err(Reason::NoCapacityInWindow));
                }
            }
        }
    }
}
