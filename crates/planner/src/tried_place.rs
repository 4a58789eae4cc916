//! What a request would get if it were made now: the plan is decided on by the same code as in the service, and nothing is stored.

use domain::agreement::Agreement;
use domain::clock::Micros;
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::context::View;
use crate::decider::Decider;
use crate::life::admission;
use crate::limits::window;
use crate::placement::refuse;
use crate::refusal::Refusal;
use crate::request::{RememberedAnswers, Request};
use crate::schedules::need::Need;
use crate::schedules::resource_plan::domain_id;
use crate::settings::Settings;
use crate::state::State;

/// What a proposal would get.
#[derive(Debug)]
pub struct TrialResult {
    /// Its agreement, or why there would be none.
    pub placed: Result<Agreement, Refusal>,
    /// Its place on each resource alone, as the plans stand, in the order in which ties are broken.
    pub places: Vec<TriedPlace>,
}

/// A place on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedPlace {
    /// The resource.
    pub resource: String,
    /// The best slot that is free; none where there is none.
    pub slot: Option<Interval>,
    /// When the work is expected to complete in it: at the end of the slot where nothing is foreseen.
    pub completes: Option<Time>,
}

/// Decides about a request on a plan as if it were made now. Clusters are taken to let it in.
pub fn try_place_for_request(
    settings: &Settings,
    plan: &mut State,
    now: Micros,
    request: &Request,
) -> TrialResult {
    let mut batch = Vec::new();
    let mut decider = Decider::new(
        settings,
        plan,
        now,
        Uuid::nil,
        &mut batch,
        RememberedAnswers::new(),
    );
    let now = decider.present_second();
    let many = decider.state.schedules.plans().count();
    (0..many).for_each(|at| decider.state.schedules.open(at));
    decider.state.schedules.advance(now);
    let places = match window::window_within_limits(decider.view(), request) {
        Ok(window) => {
            let need = Need::of(request, decider.state.placement.next_number(), window, now);
            (0..many)
                .filter_map(|at| best_tried_place(decider.view(), at, &need))
                .collect()
        }
        Err(_) => Vec::new(),
    };
    let admitted = admission::admit_proposal_or(&mut decider, request, refuse::make_refusal);
    TrialResult {
        placed: admitted.map(|(agreement, _, _)| agreement),
        places,
    }
}

/// The best place of a need on one resource.
fn best_tried_place(view: View<'_>, at: usize, need: &Need<'_>) -> Option<TriedPlace> {
    let one_resource = &view.schedules.get(at)?.resource;
    let resource = one_resource.takes_new().then(|| one_resource.name.clone())?;
    let only = |shape| {
        let best = view
            .schedules
            .best_foreseen_on(at, need, (shape, need.window), view.settings.objective);
        best.map(|candidate| (candidate.rank, shape, candidate.slot))
    };
    let best = need
        .shapes
        .iter()
        .filter_map(|shape| only(*shape))
        .min_by_key(|each| each.0);
    let completes = best.map(|(_, shape, slot)| {
        let forecasts = view.schedules.forecasts(need, shape, Some(at));
        let foreseen = forecasts.and_then(|forecast| Some(forecast.of(domain_id(at))?.at(slot.start)));
        foreseen.map_or(slot.end, |foreseen| slot.start + foreseen.completion)
    });
    Some(TriedPlace {
        resource,
        slot: best.map(|(_, _, slot)| slot),
        completes,
    })
}
