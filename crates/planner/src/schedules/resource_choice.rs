//! The resources that would take a request best, and the weight of energy in what is foreseen of it where costs decide.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::agreement::{Filter, Shape};
use domain::resources::Scaling;
use prediction::ForeseenWork;
use scheduler::domain::{Candidate, Forecast, Forecasts, ForeseenTimes, Objective, Task};
use scheduler::{Interval, Rate, Reason, Request, Seconds, Time};

use crate::prices::energy::{Energy, Power, STEPS_MAX};
use crate::schedules::foresight::SIZES_MAX;
use crate::schedules::need::Need;
use crate::schedules::{Schedules, domain_id, index_of_domain_id};

/// The most waiting requests of one resource that are tried elsewhere for a new request: each trial costs a decision.
pub(crate) const IN_THE_WAY_MAX: usize = 16;

/// The number of agreements in its window that are looked at, to find these.
const LYING_MAX: usize = 1_024;

/// Steps of the tariff that are weighed for all forecasts and sizes of a need. From 263 different forecasts on each
/// looks at fewer than [`STEPS_MAX`].
const WEIGHED_MAX: usize = 1 << 16;
/// Steps that each forecast looks at, at least.
const STEPS_MIN: usize = 16;
/// Steps of all forecasts that are kept, 128 bytes each; they are forgotten together when there are more.
const KEPT_MAX: usize = 1 << 18;

/// What weighed forecasts follow from, beside the resources and the price list.
#[derive(Debug, Clone)]
struct WeighingInput {
    /// What is foreseen. As long as it is kept, no other has its address.
    work: Option<Arc<ForeseenWork>>,
    shape: Shape,
    /// How many sizes the need has.
    sizes: usize,
    scaling: Scaling,
    window: Interval,
    /// The resource on which it has its length already.
    own: Option<(u64, Seconds)>,
}

impl WeighingInput {
    fn is_same(&self, other: &Self) -> bool {
        let address = |input: &Self| input.work.as_ref().map(Arc::as_ptr);
        let rest = |input: &Self| (input.shape, input.sizes, input.scaling, input.window, input.own);
        address(self) == address(other) && rest(self) == rest(other)
    }
}

/// The weighed forecasts that were made last: a decision, and those that follow it, ask for the same ones again and again.
#[derive(Debug, Default)]
pub(super) struct WeighedForecasts(Mutex<WeighedCache>);

#[derive(Debug, Default)]
struct WeighedCache {
    forecasts: Vec<(WeighingInput, Forecasts)>,
    steps: usize,
}

impl WeighedForecasts {
    /// Forgets them all: the resources or the price list are others.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn get(&self, asked: &WeighingInput) -> Option<Forecasts> {
        let kept = self.kept();
        let found = kept.forecasts.iter().find(|(input, _)| input.is_same(asked));
        found.map(|(_, forecasts)| forecasts.clone())
    }

    fn keep(&self, asked: WeighingInput, forecasts: Forecasts, steps: usize) {
        let mut kept = self.kept();
        if kept.steps + steps > KEPT_MAX || kept.forecasts.len() >= SIZES_MAX {
            *kept = WeighedCache::default();
        }
        kept.steps += steps;
        kept.forecasts.push((asked, forecasts));
    }

    fn kept(&self) -> MutexGuard<'_, WeighedCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Weighed forecasts follow from the rest, so that a copy makes its own.
impl Clone for WeighedForecasts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Schedules {
    /// One size of a need as a request to the domain.
    fn make_task(&self, need: &Need<'_>, shape: Shape, window: Interval) -> Task {
        Task {
            forecasts: self.forecasts(need, shape, None),
            ..self.task_by_rate(need, shape, window)
        }
    }

    /// One size of a need as a request to the domain, without anything foreseen.
    pub(super) fn task_by_rate(&self, need: &Need<'_>, shape: Shape, window: Interval) -> Task {
        let requires = need.filters.iter().map(|filter| filter.requirement(shape.nodes));
        let mut task = Task {
            nodes: shape.nodes,
            work: shape.duration,
            window,
            requires: requires.collect(),
            except: need.except.into_iter().map(domain_id).collect(),
            forecasts: None,
        };
        let refusing = need
            .barred
            .iter()
            .filter(|resource| resource.keeps(shape, &resource.resource));
        task.except.extend(
            refusing
                .filter_map(|refusing| self.place_of(&refusing.resource))
                .map(domain_id),
        );
        if need.is_new {
            task.except.extend(self.closed.iter().copied().map(domain_id));
        }
        task.except.extend(self.retired.iter().copied().map(domain_id));
        // What is agreed there may stay there; at a peer only where the peer has it.
        let own = need.of.filter(|_| !need.is_new);
        let own = own.and_then(|each| self.place_of(&each.resource));
        let own = own.filter(|at| self.get(*at).is_some_and(|each| !each.resource.is_peer()));
        let frozen = self.frozen.iter().filter(|at| Some(**at) != own);
        task.except.extend(frozen.copied().map(domain_id));
        task
    }

    /// The best placement of one size of a need in a window as the plans stand; ties go to the first.
    pub(crate) fn best_candidate(
        &self,
        need: &Need<'_>,
        shape: Shape,
        window: Interval,
        objective: Objective,
    ) -> Result<(usize, Candidate), Reason> {
        let task = self.make_task(need, shape, window);
        let found = self.decided(need, &task, objective);
        found.map(|candidate| (index_of_domain_id(candidate.resource), candidate))
    }

    pub(super) fn decided(
        &self,
        need: &Need<'_>,
        task: &Task,
        objective: Objective,
    ) -> Result<Candidate, Reason> {
        match need.work.scaling {
            Scaling::Contract => self.domain.decide_contract(task, objective),
            Scaling::ReferenceRate | Scaling::Predicted(_) => self.domain.decide(task, objective),
        }
    }

    /// The largest and the fastest resource of the ones in service that meet all filters; `None` where none does.
    pub(crate) fn largest_and_fastest(&self, filters: &[Filter]) -> Option<(u32, Rate)> {
        if filters.is_empty() {
            return Some((self.capacity_max, self.rate_max));
        }
        // A total is shared by as many nodes as are granted: whether they suffice shows when a size is tried.
        let each: Vec<Filter> = filters
            .iter()
            .filter(|filter| !filter.is_total())
            .cloned()
            .collect();
        let task = Task {
            nodes: 1,
            work: 1,
            window: Interval::new(Time::MIN, Time::MAX),
            requires: each.iter().map(|filter| filter.requirement(1)).collect(),
            except: self.retired.iter().copied().map(domain_id).collect(),
            forecasts: None,
        };
        let able = self.domain.able(&task).into_iter();
        let able = able.filter_map(|id| self.domain.get(id));
        able.fold(None, |extent: Option<(u32, Rate)>, (_, each)| {
            let (capacity, rate) = extent.unwrap_or((0, each.resource.rate));
            Some((capacity.max(each.resource.capacity), rate.max(each.resource.rate)))
        })
    }

    /// At most `most` of the resources that could ever take a size of a need, the ones with most free time in its window first.
    pub(crate) fn hopeful(&self, need: &Need<'_>, shape: Shape, most: usize) -> Vec<usize> {
        let mut able = self.domain.able(&self.task_by_rate(need, shape, need.window));
        if able.len() > 1 {
            able.sort_by_cached_key(|id| (Reverse(self.free_area(*id, need.window)), *id));
        }
        able.into_iter().take(most).map(index_of_domain_id).collect()
    }

    /// At most `most` of the resources that could ever take a size of a need, first those where it costs least by the price list, and of
    /// equal ones those with most free time.
    pub(crate) fn cheapest(&self, need: &Need<'_>, shape: Shape, most: usize) -> Vec<usize> {
        let cost = |id: u64| {
            let longest = self.longest(index_of_domain_id(id), need, shape)?;
            let (domain, _) = self.domain.get(id)?;
            Some(i128::from(domain.price) * i128::from(longest.duration))
        };
        let mut able = self.domain.able(&self.task_by_rate(need, shape, need.window));
        if able.len() > 1 {
            able.sort_by_cached_key(|id| (cost(*id), Reverse(self.free_area(*id, need.window)), *id));
        }
        able.into_iter().take(most).map(index_of_domain_id).collect()
    }

    /// The node-seconds of a window that are free on a resource. O(log n).
    fn free_area(&self, id: u64, window: Interval) -> Option<u128> {
        let (_, domain) = self.domain.get(id)?;
        let tree = domain.schedule.tree();
        let whole = u128::from(tree.capacity()) * u128::from(window.duration().max(0).unsigned_abs());
        Some(whole.saturating_sub(tree.busy_area(window).into()))
    }

    /// The waiting agreements on a resource in the way of a new request: first the ones that would lose their place to it in
    /// the order, then the others in its window, by start.
    pub(crate) fn waiting_in_the_way(&mut self, at: usize, now: Time, request: &Request) -> Vec<u64> {
        let found = self.change_schedule(at, |schedule| {
            let mut numbers = schedule.displaced(now, request);
            let window = request.window_at(now);
            let lying = schedule.waiting_in(window).take(LYING_MAX);
            let lying = lying.filter_map(|lying| Some((schedule.placement(lying.id)?.slot.start, lying.id)));
            let mut lying: Vec<(Time, u64)> = lying.collect();
            lying.sort_unstable();
            let others = lying.into_iter().map(|(_, number)| number);
            let mut others: Vec<u64> = others.filter(|number| !numbers.contains(number)).collect();
            numbers.append(&mut others);
            numbers.truncate(IN_THE_WAY_MAX);
            (numbers, Vec::new())
        });
        found.unwrap_or_default()
    }

    /// The forecasts of one size of a need on all resources, or on one, by the ids of the domain. An agreement keeps its length on its own resource. Where costs
    /// decide, the energy of a slot is a part of its loss, so that cheaper hours are found; and where nothing else is foreseen of a
    /// resource, this is.
    pub(crate) fn forecasts(&self, need: &Need<'_>, shape: Shape, only: Option<usize>) -> Option<Forecasts> {
        let work = self.foresight.foreseen(need.work, shape);
        let own = self.own_length(need, shape);
        let energy = self.foresight.energy().filter(|_| need.shapes.len() <= SIZES_MAX);
        let Some(energy) = energy else {
            return Some(self.lengths(&*work?, own));
        };
        let asked = WeighingInput {
            work,
            shape,
            sizes: need.shapes.len(),
            scaling: need.work.scaling,
            window: need.window,
            own,
        };
        if let Some(known) = self.weighed.get(&asked) {
            return Some(known);
        }
        let (forecasts, steps) = self.weigh(energy, &asked, only);
        if only.is_none() {
            self.weighed.keep(asked, forecasts.clone(), steps);
        }
        Some(forecasts)
    }

    /// The forecasts with the weight of energy, and how many steps they have. Resources of the same power on which the same is foreseen,
    /// or nothing but the same length, share one.
    fn weigh(&self, energy: &Energy, asked: &WeighingInput, only: Option<usize>) -> (Forecasts, usize) {
        type Alike = (Power, Option<*const Forecast>, Seconds);
        let foreseen = asked.work.as_ref().map(|work| self.lengths(work, asked.own));
        let (mut each, mut alike) = (Vec::new(), BTreeMap::<Alike, Option<&Forecast>>::new());
        let plans = self.plans().enumerate();
        for (at, plan) in plans.filter(|(at, _)| only.is_none_or(|only| only == *at)) {
            let known = foreseen.as_ref().and_then(|foreseen| foreseen.of(domain_id(at)));
            let Some(power) = energy.weighed_power(&plan.resource.name) else {
                continue;
            };
            let hold = match known {
                Some(_) => 0,
                None => asked
                    .scaling
                    .shape(asked.shape, plan.resource.rate)
                    .duration
                    .max(1),
            };
            let same = (power, known.map(std::ptr::from_ref), hold);
            alike.insert(same, known);
            each.push((domain_id(at), same));
        }
        let most = WEIGHED_MAX / (alike.len() * asked.sizes).max(1);
        let most = most.clamp(STEPS_MIN, STEPS_MAX);
        let weigh = |power, forecast: &Forecast| {
            energy.weighed(power, (asked.shape.nodes, asked.window), forecast, most)
        };
        let weighed = alike.into_iter().filter_map(|(same, known)| {
            let weighed_forecasts = match known {
                Some(known) => weigh(same.0, known),
                None => weigh(same.0, &Forecast::constant(ForeseenTimes::exact(same.2))),
            };
            Some((same, Arc::new(weighed_forecasts?)))
        });
        let weighed: BTreeMap<Alike, Arc<Forecast>> = weighed.collect();
        let steps = weighed.values().map(|weighed| weighed.steps().count()).sum();
        let each = each
            .iter()
            .filter_map(|(id, same)| Some((*id, Arc::clone(weighed.get(same)?))));
        (Forecasts::new(each), steps)
    }
}
