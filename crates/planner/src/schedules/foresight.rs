//! What is foreseen of a need on each resource, the lengths of slots that follow, and the weight of energy where costs decide.
//!
//! There is one way from a need to its forecasts: new requests, quotes, repairs and predictions all take it. The edge takes it first,
//! on the thread that reads the offer, so that the planner finds it made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::agreement::{Agreement, Guarantee, Money, Obligated, Shape};
use domain::resources::{Resource, Scaling};
use prediction::{ForeseenWork, Hold, Ids, Predictions, Work};
use scheduler::domain::{Candidate, Forecast, Forecasts, ForeseenTimes, Objective, Task};
use scheduler::{Fraction, Interval, Seconds};

use crate::prices::energy::{Energy, Power, STEPS_MAX};
use crate::prices::pricing::Pricing;
use crate::request::Request;
use crate::schedules::Schedules;
use crate::schedules::need::{ForeseeableNeed, Need};
use crate::schedules::resource_choice;
use crate::schedules::resource_plan::domain_id;
use crate::settings::Settings;

/// Sizes by a law of scaling for which something is foreseen: each takes a look at every resource.
pub(super) const SIZES_MAX: usize = 64;

/// By how much longer work may be foreseen to take elsewhere in a window for its slot to be as good there.
const SUITS: Fraction = Fraction {
    numerator: 5,
    denominator: 100,
};
/// Steps of the tariff that are weighed for all forecasts and sizes of a need. From 263 different forecasts on each
/// looks at fewer than [`STEPS_MAX`].
const WEIGHED_MAX: usize = 1 << 16;
/// Steps that each forecast looks at, at least.
const STEPS_MIN: usize = 16;
/// Steps of all forecasts that are kept, 128 bytes each; they are forgotten together when there are more.
const KEPT_MAX: usize = 1 << 18;

/// What foresees: the predictions, and what a violation costs.
#[derive(Debug, Clone, Default)]
pub struct Foresight {
    predictions: Option<Predictions>,
    /// Where costs decide.
    pricing: Option<Pricing>,
}

impl Foresight {
    pub(crate) fn of(settings: &Settings) -> Self {
        let by_cost = settings.objective == Objective::Cheapest;
        Self {
            predictions: settings.predictions.clone(),
            pricing: settings.pricing.clone().filter(|_| by_cost),
        }
    }

    /// A size of a request as it would be at most on one of the resources, by its name; `None` where there is no such resource, or
    /// it has too few nodes.
    pub fn size_on(
        &self,
        resources: &[Resource],
        name: &str,
        request: &Request,
        shape: Shape,
    ) -> Option<Shape> {
        let found = resources.iter().find(|resource| resource.name == name)?;
        if shape.nodes > found.capacity {
            return None;
        }
        let by_rate = request.scaling.shape(shape, found.rate);
        let foreseen = self.foreseen(ForeseeableNeed::of(request), shape);
        let longest = foreseen.and_then(|foreseen| foreseen.longest_hold(name));
        Some(Shape {
            duration: longest.unwrap_or(by_rate.duration),
            ..shape
        })
    }

    /// A size of a request as it would be at most on each resource that has enough nodes for it, by the resource's name.
    pub fn sizes_on_each(
        &self,
        resources: &[Resource],
        request: &Request,
        shape: Shape,
    ) -> Vec<(String, Shape)> {
        let foreseen = self.foreseen(ForeseeableNeed::of(request), shape);
        let able = resources
            .iter()
            .filter(|resource| shape.nodes <= resource.capacity);
        able.map(|resource| {
            let longest = foreseen
                .as_ref()
                .and_then(|foreseen| foreseen.longest_hold(&resource.name));
            let by_rate = request.scaling.shape(shape, resource.rate);
            let duration = longest.unwrap_or(by_rate.duration);
            (resource.name.clone(), Shape { duration, ..shape })
        })
        .collect()
    }

    /// Foresees the work of a request on each resource, so that it is found foreseen later.
    pub fn foresee(&self, request: &Request) {
        for shape in &request.shapes {
            self.foreseen(ForeseeableNeed::of(request), *shape);
        }
    }

    /// What is foreseen of one size of some work; none of nodes without a job, or where nothing is known.
    pub(crate) fn foreseen(
        &self,
        foreseeable: ForeseeableNeed<'_>,
        shape: Shape,
    ) -> Option<Arc<ForeseenWork>> {
        let known = self.predictions.as_ref()?.now();
        let work = Work::of_job(foreseeable.party, foreseeable.job?, shape.nodes);
        let hold = match foreseeable.scaling {
            Scaling::Contract => Hold::Stated(shape.duration),
            Scaling::ReferenceRate if foreseeable.sizes > SIZES_MAX => return None,
            Scaling::ReferenceRate => Hold::ByLaw(shape.duration),
            Scaling::Predicted(ppm) => Hold::Sized(ppm),
        };
        known.foreseen(&work, hold, self.penalty(foreseeable.guarantees, shape))
    }

    /// The energy of resources, where costs decide and it has a weight.
    pub(super) fn energy(&self) -> Option<&Energy> {
        let energy = self.pricing.as_ref()?.energy.as_ref();
        energy.filter(|energy| energy.has_weight())
    }

    /// The cost of a violation of guarantees that the provider owes, in the unit in which places are compared: millionths of the
    /// currency for a node and an hour, times nodes and seconds. A part of the price is taken of the listed price.
    fn penalty(&self, guarantees: &[Guarantee], shape: Shape) -> u128 {
        const SECONDS_OF_HOUR: u128 = 3_600;
        let Some(pricing) = &self.pricing else { return 0 };
        let listed = u128::from(pricing.node_hour_micros)
            * u128::from(shape.nodes)
            * u128::from(shape.duration.max(0).unsigned_abs())
            / SECONDS_OF_HOUR;
        let price = Money::new(i64::try_from(listed).unwrap_or(i64::MAX), pricing.currency);
        let owed = guarantees
            .iter()
            .filter(|guarantee| guarantee.values.obligated == Obligated::Provider);
        let penalties = owed.flat_map(|owed| &owed.values.penalties);
        let once = penalties.filter_map(|penalty| penalty.amount(1, Some(price)));
        let micros = once.map(|once| u128::from(once.micros.max(0).unsigned_abs()));
        micros.sum::<u128>().saturating_mul(SECONDS_OF_HOUR)
    }
}

impl Schedules {
    /// Notes paper 004's estimate of an agreement's work on its resource, from the start of its slot to its deadline, as it is made now.
    pub(crate) fn note_estimate(&self, agreement: &mut Agreement) {
        let job = agreement.job.as_ref();
        let known = self.foresight().predictions.as_ref().map(Predictions::now);
        agreement.constraints.estimate = job.zip(known).and_then(|(job, known)| {
            let work = Work {
                resource: Some(&agreement.resource),
                ..Work::of_job(&agreement.party, job, agreement.nodes())
            };
            let gap = Interval::new(agreement.placement().start, agreement.deadline);
            known.published_estimate(&work, gap)
        });
    }

    /// The best placement of one size of a need on one resource in a part of its window as its plan stands; none where there is none.
    pub(crate) fn best_foreseen_on(
        &self,
        at: usize,
        need: &Need<'_>,
        (shape, window): (Shape, Interval),
        objective: Objective,
    ) -> Option<Candidate> {
        let mut task = self.task_without_foresight(need, shape, window);
        task.forecasts = self.forecasts(need, shape, Some(at));
        let others = self.places.values().filter(|other| **other != at);
        task.except.extend(others.map(|other| domain_id(*other)));
        resource_choice::decide_resource_choice(self, need, &task, objective).ok()
    }

    /// The forecasts by the times alone; on its own resource an agreement keeps its length.
    pub(super) fn foreseen_lengths(&self, foreseen: &ForeseenWork, own: Option<(u64, Seconds)>) -> Forecasts {
        let forecasts = foreseen.forecasts(&self.ids);
        let kept = own.and_then(|(own, hold)| {
            let steps = forecasts.of(own)?.steps().map(|(starts, foreseen)| {
                let completion = (foreseen.completion + hold - foreseen.hold).max(1);
                let foreseen = ForeseenTimes {
                    hold,
                    completion,
                    ..foreseen
                };
                (starts.start, foreseen)
            });
            Some((own, Arc::new(Forecast::new(steps.collect())?)))
        });
        match kept {
            Some((own, kept)) => forecasts.with(own, &kept),
            None => forecasts,
        }
    }

    /// Whether the cost of energy decides where work goes.
    pub(crate) fn weighs_energy(&self) -> bool {
        self.foresight.energy().is_some()
    }

    /// Whether something is foreseen of one size of a need.
    pub(crate) fn foresees(&self, need: &Need<'_>, shape: Shape) -> bool {
        self.foresight.foreseen(need.work, shape).is_some()
    }

    /// The resource where the need of an agreement that was sized by prediction has its length already, and that length.
    pub(super) fn foreseen_own_length(&self, need: &Need<'_>, shape: Shape) -> Option<(u64, Seconds)> {
        let agreement = need.of?;
        let own = need.is_sized() && shape.nodes == agreement.nodes();
        let id = *self.ids.get(&agreement.resource).filter(|_| own)?;
        Some((id, agreement.duration.max(1)))
    }

    /// The longest that one size of a need takes on a resource wherever it starts in its window.
    pub(crate) fn foreseen_longest(&self, at: usize, need: &Need<'_>, shape: Shape) -> Option<Shape> {
        let longest = |forecast: &Forecast| forecast.longest_hold(need.window);
        self.foreseen_shape_on(at, need, shape, longest)
    }

    /// The least that one size of a need takes on a resource in its window.
    pub(crate) fn foreseen_shortest(&self, at: usize, need: &Need<'_>, shape: Shape) -> Option<Shape> {
        let least = |forecast: &Forecast| {
            let met = forecast.steps().filter(|(starts, _)| starts.meets(need.window));
            met.map(|(_, foreseen)| foreseen.hold).min().unwrap_or(1)
        };
        self.foreseen_shape_on(at, need, shape, least)
    }

    fn foreseen_shape_on(
        &self,
        at: usize,
        need: &Need<'_>,
        shape: Shape,
        hold: impl Fn(&Forecast) -> Seconds,
    ) -> Option<Shape> {
        let resource_plan = self.get(at)?;
        let by_rate = need.work.scaling.shape(shape, resource_plan.resource.rate);
        if !need.is_sized() {
            return Some(by_rate);
        }
        let id = *self.ids.get(&resource_plan.resource.name)?;
        if let Some((_, duration)) = self
            .foreseen_own_length(need, shape)
            .filter(|(own, _)| *own == id)
        {
            return Some(Shape { duration, ..shape });
        }
        let foreseen = self.foresight.foreseen(need.work, shape);
        let forecasts = foreseen.map(|foreseen| foreseen.forecasts(&self.ids));
        let hold = forecasts
            .as_ref()
            .and_then(|forecast| Some(hold(forecast.of(id)?)));
        Some(Shape {
            duration: hold.unwrap_or(by_rate.duration),
            ..shape
        })
    }

    /// The shortest slot that holds one size of a proposal on any resource, where prediction sizes it.
    pub(crate) fn foreseen_least_hold(&self, request: &Request, shape: Shape) -> Option<Seconds> {
        let is_sized = matches!(request.scaling, Scaling::Predicted(_));
        let foreseen = self.foresight.foreseen(ForeseeableNeed::of(request), shape);
        foreseen.filter(|_| is_sized)?.least_hold()
    }

    /// The part of a need's window around a slot in which this is foreseen to be as long as its work takes, or only a little longer:
    /// where its agreement may move. None where that is all of the window.
    pub(crate) fn foreseen_room(
        &self,
        at: usize,
        need: &Need<'_>,
        (slot, nodes): (Interval, u32),
    ) -> Option<Interval> {
        let shape = *need.shapes.iter().find(|shape| shape.nodes == nodes)?;
        if !need.is_sized() {
            return None;
        }
        let id = *self.ids.get(&self.get(at)?.resource.name)?;
        let foreseen = self.foresight.foreseen(need.work, shape)?;
        let forecasts = foreseen.forecasts(&self.ids);
        let forecast = forecasts.of(id)?;
        let length = slot.duration();
        let most = forecast
            .at(slot.start)
            .hold
            .max(length + SUITS.rounded_down(length));
        let mut starts = Interval::new(slot.start, slot.start + 1);
        let steps: Vec<(Interval, ForeseenTimes)> = forecast.steps().collect();
        let own = steps
            .iter()
            .position(|(step, _)| step.start <= slot.start && slot.start < step.end)?;
        let suits = |step: &&(Interval, ForeseenTimes)| step.1.hold <= most;
        for (step, _) in steps[own..].iter().take_while(suits) {
            starts.end = step.end;
        }
        for (step, _) in steps[..=own].iter().rev().take_while(suits) {
            starts.start = step.start;
        }
        let window = need.window;
        let last = window.end.min((starts.end - 1).min(window.end) + length);
        let room = Interval::new(starts.start.max(window.start).min(slot.start), last.max(slot.end));
        (room != window).then_some(room)
    }

    /// One size of a need as a request to the domain.
    pub(super) fn make_foreseen_task(&self, need: &Need<'_>, shape: Shape, window: Interval) -> Task {
        Task {
            forecasts: self.forecasts(need, shape, None),
            ..self.task_without_foresight(need, shape, window)
        }
    }

    /// One size of a need as a request to the domain, without anything foreseen.
    pub(super) fn task_without_foresight(&self, need: &Need<'_>, shape: Shape, window: Interval) -> Task {
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

    /// The forecasts of one size of a need on all resources, or on one, by the ids of the domain. An agreement keeps its length on its own resource. Where costs
    /// decide, the energy of a slot is a part of its loss, so that cheaper hours are found; and where nothing else is foreseen of a
    /// resource, this is.
    pub(crate) fn forecasts(&self, need: &Need<'_>, shape: Shape, only: Option<usize>) -> Option<Forecasts> {
        let work = self.foresight.foreseen(need.work, shape);
        let own = self.foreseen_own_length(need, shape);
        let energy = self.foresight.energy().filter(|_| need.shapes.len() <= SIZES_MAX);
        let Some(energy) = energy else {
            return Some(self.foreseen_lengths(&*work?, own));
        };
        let asked = ForesightInput {
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
        let (forecasts, steps) = self.weigh_forecasts(energy, &asked, only);
        if only.is_none() {
            self.weighed.keep(asked, forecasts.clone(), steps);
        }
        Some(forecasts)
    }

    /// The forecasts with the weight of energy, and how many steps they have. Resources of the same power on which the same is foreseen,
    /// or nothing but the same length, share one.
    fn weigh_forecasts(
        &self,
        energy: &Energy,
        asked: &ForesightInput,
        only: Option<usize>,
    ) -> (Forecasts, usize) {
        type Alike = (Power, Option<*const Forecast>, Seconds);
        let foreseen = asked
            .work
            .as_ref()
            .map(|work| self.foreseen_lengths(work, asked.own));
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

/// The names of resources with their places.
pub(crate) fn ids_of_resources<'a>(names: impl Iterator<Item = &'a str>) -> Arc<Ids> {
    Arc::new(names.zip(0..).map(|(name, id)| (name.to_owned(), id)).collect())
}

/// What weighed forecasts follow from, beside the resources and the price list.
#[derive(Debug, Clone)]
struct ForesightInput {
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

impl ForesightInput {
    fn is_same(&self, other: &Self) -> bool {
        let address = |input: &Self| input.work.as_ref().map(Arc::as_ptr);
        let rest = |input: &Self| (input.shape, input.sizes, input.scaling, input.window, input.own);
        address(self) == address(other) && rest(self) == rest(other)
    }
}

/// The weighed forecasts that were made last: a decision, and those that follow it, ask for the same ones again and again.
#[derive(Debug, Default)]
pub(super) struct ForesightCache(Mutex<KeptForesight>);

impl ForesightCache {
    /// Forgets them all: the resources or the price list are others.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn get(&self, asked: &ForesightInput) -> Option<Forecasts> {
        let kept = self.kept();
        let found = kept.forecasts.iter().find(|(input, _)| input.is_same(asked));
        found.map(|(_, forecasts)| forecasts.clone())
    }

    fn keep(&self, asked: ForesightInput, forecasts: Forecasts, steps: usize) {
        let mut kept = self.kept();
        if kept.steps + steps > KEPT_MAX || kept.forecasts.len() >= SIZES_MAX {
            *kept = KeptForesight::default();
        }
        kept.steps += steps;
        kept.forecasts.push((asked, forecasts));
    }

    fn kept(&self) -> MutexGuard<'_, KeptForesight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Weighed forecasts follow from the rest, so that a copy makes its own.
impl Clone for ForesightCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[derive(Debug, Default)]
struct KeptForesight {
    forecasts: Vec<(ForesightInput, Forecasts)>,
    steps: usize,
}
