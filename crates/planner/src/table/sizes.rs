//! Counter offers with fewer or more nodes than were asked for, for as long as the requester's law of scaling says.

use domain::agreement::{OfferKind, Shape};
use scheduler::Interval;

use crate::context::Search;
use crate::placement::choice;
use crate::schedules::need::Need;
use crate::table::candidates;
use crate::table::candidates::{Candidate, CandidateContext, CandidatePlacement, ratio};

/// Sizes tried on each side of the requested ones: each is a search among all resources.
const SIDE_MAX: usize = 32;

/// The sizes of a side for which others are asked to move, the nearest: that may take milliseconds.
const MOVING_MAX: usize = 2;

/// A size that was not asked for, in which way it differs, and how far.
type OtherSize = (Shape, (OfferKind, f64));

/// Sizes other than the requested ones, in the requested window: where they fit as the plans stand, and the nearest
/// ones also where others would move. Nothing where the provider does not show relaxations.
pub(crate) fn quote_other_sizes(search: &mut Search<'_>, context: &CandidateContext) -> Vec<Candidate> {
    let told = search.settings.refusals.relaxations;
    let Some(others) = context.ask.others.as_ref().filter(|_| told) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for side in sizes_below_and_above(&context.ask.proposal.shapes, others, context.phi_max) {
        for (place, (shape, how)) in side.into_iter().enumerate() {
            let mut proposal = context.ask.proposal.clone();
            proposal.shapes = vec![shape];
            let Ok((proposal, window)) = candidates::limit_candidates(search.view(), context, proposal)
            else {
                continue;
            };
            let need = Need::of(&proposal, context.number, window, context.now);
            let place = match choice::best_admission_to_pay(search.view(), &need) {
                Ok((at, _, slot)) => Some((at, slot)),
                Err(_) if place < MOVING_MAX => quote_size_making_room(search, &need),
                Err(_) => None,
            };
            let candidate = place.and_then(|(at, slot)| {
                let stretch = (slot, shape.nodes);
                candidates::tellable_candidate(
                    search.view(),
                    context,
                    CandidatePlacement::new(at, stretch, window, how),
                )
            });
            found.extend(candidate);
        }
    }
    found
}

/// Where others would make room for it, on the first of the most hopeful resources that has a place.
fn quote_size_making_room(search: &mut Search<'_>, need: &Need<'_>) -> Option<(usize, Interval)> {
    let mut requests = choice::requests(search.view(), need).into_iter();
    requests.find_map(|(at, request)| Some((at, candidates::place_of_candidate(search, at, need, &request)?)))
}

/// The sizes below and above the requested ones, from the nearest outward; where there are many within `phi_max`, some of
/// them at even distances.
fn sizes_below_and_above(asked: &[Shape], others: &[Shape], phi_max: f64) -> [Vec<OtherSize>; 2] {
    let nodes = || asked.iter().map(|shape| shape.nodes);
    let durations = || asked.iter().map(|shape| shape.duration);
    let least = nodes().min().zip(durations().min());
    let most = nodes().max().zip(durations().max());
    let Some(((fewest, shortest), (largest, longest))) = least.zip(most) else {
        return [Vec::new(), Vec::new()];
    };
    let differing = |shape: &Shape| {
        let (kind, size) = if shape.nodes < fewest {
            (
                OfferKind::Fewer,
                f64::from(fewest - shape.nodes) / f64::from(fewest),
            )
        } else {
            let more = shape.nodes.checked_sub(largest).filter(|more| *more > 0)?;
            (OfferKind::More, f64::from(more) / f64::from(largest))
        };
        let length = ratio((shape.duration - longest).max(0), longest)
            .max(ratio((shortest - shape.duration).max(0), shortest));
        Some((*shape, (kind, size.max(length))))
    };
    [OfferKind::Fewer, OfferKind::More].map(|kind| {
        let differing_sizes = others.iter().filter_map(differing);
        let mut side: Vec<OtherSize> = differing_sizes
            .filter(|(_, (each, deviation))| *each == kind && *deviation <= phi_max)
            .collect();
        side.sort_by(|(shape, (_, deviation)), (other, (_, further))| {
            let nearer = deviation.total_cmp(further);
            nearer.then(shape.nodes.cmp(&other.nodes))
        });
        let step = side.len().div_ceil(SIDE_MAX).max(1);
        side.into_iter().step_by(step).collect()
    })
}
