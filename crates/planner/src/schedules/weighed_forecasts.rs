//! The weight of energy in what is foreseen, where costs decide.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::agreement::Shape;
use domain::resources::Scaling;
use prediction::ForeseenWork;
use scheduler::domain::{Forecast, Forecasts, ForeseenTimes};
use scheduler::{Interval, Seconds};

use crate::prices::energy::{Energy, Power, STEPS_MAX};
use crate::schedules::foresight::SIZES_MAX;
use crate::schedules::need::Need;
use crate::schedules::{Schedules, domain_id};

/// Steps of the tariff that are weighed for all forecasts and sizes of a need. From 263 different forecasts on each
/// looks at fewer than [`STEPS_MAX`].
const WEIGHED_MAX: usize = 1 << 16;
/// It looks at so many at least.
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

/// They follow from the rest, so that a copy makes its own.
impl Clone for WeighedForecasts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Schedules {
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
