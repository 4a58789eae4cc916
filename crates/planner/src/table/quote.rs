//! The possible offers for a request: the request itself where it fits, and else the nearest ones that no other
//! dominates. Nothing here is stored or kept; the plan is read, and stands afterwards as it stood.

use std::borrow::Cow;

use domain::agreement::{OfferKind, Shape};
use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Interval, Reason, Time};

use crate::context::{Search, View};
use crate::error::Result;
use crate::placement::{choice, pieces, refuse};
use crate::refusal::{Refusal, bare_refusal};
use crate::schedules::need::Need;
use crate::table::candidates::{Candidate, CandidateContext, CandidatePlacement, HOLD_MIN, Weights, ratio};
use crate::table::ranking::{price_to_rank, rank_candidates};
use crate::table::suggestion::Suggestion;
use crate::table::{candidates, suggest_move};

/// Sizes tried on each side of the requested ones: each is a search among all resources.
const SIDE_MAX: usize = 32;

/// The sizes of a side for which others are asked to move, the nearest: that may take milliseconds.
const MOVING_MAX: usize = 2;

/// A size that was not asked for, in which way it differs, and how far.
type OtherSize = (Shape, (OfferKind, f64));

/// The possible offers for a request, or the reason why there are none; and what the provider could propose to another party for it.
pub(crate) fn quote_request(
    search: &mut Search<'_>,
    context: &CandidateContext,
    suggestion: &mut Option<Suggestion>,
) -> Result<Quote, Refusal> {
    let now = context.now;
    search.schedules.begin_search();
    let asked = candidates::limit_candidates(search.view(), context, context.ask.proposal.clone());
    let (mut found, why) = match &asked {
        Err(refusal) => (Vec::new(), Err(refusal.clone())),
        Ok((proposal, window)) => {
            let need = Need::of(proposal, context.number, *window, now);
            match quote_exact(search, context, &need) {
                Ok(exact) if candidates::is_candidate_affordable(context, &exact) => {
                    return Ok(Quote::of(vec![exact]));
                }
                // A change costs its fee besides.
                Ok(exact) => (Vec::new(), Err(quote_beyond_budget(search.view(), &exact))),
                Err(why) => {
                    // A move is proposed to another party for a request that has no agreement yet.
                    if context.replaced.is_none() && context.own.is_none() {
                        *suggestion = suggest_move::suggest_a_move(search, &need, why);
                    }
                    let mut near = quote_nearby(search, context, &need, why);
                    near.extend(quote_in_pieces(search.view(), context, &need, why));
                    (near, Ok((need, why)))
                }
            }
        }
    };
    found.extend(quote_other_sizes(search, context));
    found.retain(|candidate| context.allows(candidate));
    match why {
        _ if !found.is_empty() => Ok(Quote::of(found)),
        Ok((need, why)) => Err(context.with_gains(refuse::make_refusal(search, &need, why))),
        Err(refusal) => Err(refusal),
    }
}

/// The refusal of a request that would fit and that costs more than its budget, with its fee.
pub(crate) fn quote_beyond_budget(view: View<'_>, exact: &Candidate) -> Refusal {
    let binding = "it would cost more than its budget, with the fee for the change";
    Refusal {
        lowest_budget: candidates::candidate_price_with_fee(&exact.terms)
            .filter(|_| view.settings.refusals.relaxations),
        ..bare_refusal(Reason::BudgetTooLow, binding)
    }
}

/// The sizes that are asked for at other times, and for less time in the window.
fn quote_nearby(
    search: &mut Search<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
    why: Reason,
) -> Vec<Candidate> {
    if why != Reason::NoCapacityInWindow {
        return Vec::new();
    }
    let requests = choice::requests(search.view(), need);
    search.schedules.share_work(requests.len());
    let mut found = quote_elsewhere(search, context, need, &requests);
    // A duration that follows from the size is not shortened, and nor is a promised one: the work would not be
    // finished.
    if context.ask.others.is_none() && context.own.is_none() {
        found.extend(quote_shorter(search, context, need, &requests));
    }
    search.schedules.share_work(1);
    found
}

/// The request itself, with the size and on the resource that are best as the plans stand, of several sizes the one
/// that its requester prefers; where others have to move, only if it fits nowhere as the plans stand.
fn quote_exact(
    search: &mut Search<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
) -> Result<Candidate, Reason> {
    let exact = (OfferKind::Exact, 0.0);
    let place = |at, nodes, slot| CandidatePlacement::new(at, (slot, nodes), need.window, exact);
    let preferred = context.ask.weights != Weights::default();
    let sizes = if preferred {
        let one = |shape| Cow::Owned(vec![shape]);
        need.some_shapes().into_iter().map(one).collect()
    } else {
        vec![need.shapes.clone()]
    };
    let (mut found, mut why) = (Vec::new(), None);
    for shapes in sizes {
        let one_need = Need {
            shapes,
            ..need.clone()
        };
        match choice::choose_best_placement(search.view(), &one_need) {
            Ok((resource, shape, slot)) => {
                let best = candidates::candidate(
                    search.view(),
                    context,
                    need.payer,
                    place(resource, shape.nodes, slot),
                );
                let here = quote_where_it_is(search.view(), context, &one_need, (resource, shape));
                let is_as_good = |(here, best): (&Candidate, &Candidate)| {
                    let end = |candidate: &Candidate| candidate.terms.placement().end;
                    end(here) <= end(best) && price_to_rank(here) <= price_to_rank(best)
                };
                let stays = here.as_ref().zip(best.as_ref()).is_some_and(is_as_good);
                found.extend(if stays { here } else { best });
            }
            Err(reason) => why = Some(reason),
        }
    }
    if let Some(best) = rank_candidates(found, context.ask.weights).into_iter().next() {
        return Ok(best);
    }
    if let Some(reason) = why.filter(|reason| *reason != Reason::NoCapacityInWindow) {
        return Err(reason);
    }
    let requests = choice::requests(search.view(), need);
    search.schedules.share_work(requests.len());
    let found = requests.into_iter().find_map(|(resource, request)| {
        let slot = candidates::place_of_candidate(search, resource, need, &request)?;
        candidates::candidate(
            search.view(),
            context,
            need.payer,
            place(resource, request.nodes, slot),
        )
    });
    search.schedules.share_work(1);
    found.ok_or(Reason::NoCapacityInWindow)
}

/// The best place of a size on the resource of the agreement that would be replaced, where a better one is elsewhere: work does not
/// change its machine for nothing.
fn quote_where_it_is(
    view: View<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
    (elsewhere, shape): (usize, Shape),
) -> Option<Candidate> {
    let replaced = context.replaced?;
    let here = view.schedules.place_of(&replaced.resource)?;
    if here == elsewhere || view.schedules.is_at_peer(replaced) {
        return None;
    }
    let part = (shape, need.window);
    let found = view
        .schedules
        .best_foreseen_on(here, need, part, view.settings.objective)?;
    let (how, stretch) = ((OfferKind::Exact, 0.0), (found.slot, shape.nodes));
    candidates::candidate(
        view,
        context,
        need.payer,
        CandidatePlacement::new(here, stretch, need.window, how),
    )
}

/// The possible offer in pieces for a request that has no place in one piece: where its last piece completes first, as the
/// plans stand. Its first piece begins when the offer has lapsed or later. So it stays as it was offered, at any time of its
/// acceptance.
fn quote_in_pieces(
    view: View<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
    why: Reason,
) -> Option<Candidate> {
    let preemption = context.ask.proposal.preemption.as_ref()?;
    if why != Reason::NoCapacityInWindow || context.until - context.now < HOLD_MIN {
        return None;
    }
    let window = Interval::new(need.window.start.max(context.until), need.window.end);
    let (at, pieces) = pieces::best_in_pieces(view, need, preemption, window)?;
    let first = pieces.first()?.stretch();
    let place = CandidatePlacement::new(at, first, need.window, (OfferKind::InPieces, 0.0));
    let end = pieces.placement().end;
    candidates::candidate_of_slots(view, context, (need.payer, &place), pieces, (end, context.until))
}

/// The nodes that were asked for, for as long, before or after the window: the slots that a refusal would name.
fn quote_elsewhere(
    search: &mut Search<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (resource, request) in requests {
        let only = [(*resource, *request)];
        for alternative in refuse::alternatives_to_refused(search, need, &only) {
            let slot = alternative.slot;
            let (before, after) = (request.ready - slot.start, slot.end - request.deadline);
            let kind = if before >= after {
                OfferKind::Earlier
            } else {
                OfferKind::Later
            };
            let how = (kind, candidates::ratio(before.max(after), request.duration));
            let place = CandidatePlacement::new(*resource, (slot, request.nodes), slot, how);
            found.extend(candidates::candidate(search.view(), context, need.payer, place));
        }
    }
    found
}

/// The nodes that were asked for in their window, for the longest that there is, where the provider tells that.
fn quote_shorter(
    search: &mut Search<'_>,
    context: &CandidateContext,
    need: &Need<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Vec<Candidate> {
    let told = search.settings.refusals;
    if !told.relaxations {
        return Vec::new();
    }
    let bounds = Bounds {
        times: Interval::new(context.now, context.now + search.settings.horizon),
        nodes_min: 1,
        duration_min: 1,
    };
    let mut found = Vec::new();
    for (resource, request) in requests {
        let Some(resource_plan) = search.schedules.get(*resource) else {
            continue;
        };
        let relaxations = resource_plan.schedule.relaxations(request, &bounds);
        let duration = relaxations.into_iter().find_map(|relaxation| {
            match relaxation.coarsened(told.coarsen, 1, &bounds)? {
                Relaxation::Duration(duration) => Some(duration),
                _ => None,
            }
        });
        let Some(duration) = duration else { continue };
        let window = request.window_at(context.now);
        let Some(start) = resource_plan
            .schedule
            .tree()
            .earliest_fit(request.nodes, duration, window)
        else {
            continue;
        };
        let stretch = (Interval::of(start, duration), request.nodes);
        let how = (
            OfferKind::Shorter,
            candidates::ratio(request.duration - duration, request.duration),
        );
        let place = CandidatePlacement::new(*resource, stretch, request.window(), how);
        found.extend(candidates::tellable_candidate(
            search.view(),
            context,
            need.payer,
            place,
        ));
    }
    found
}

/// The possible offers, in no order; or the reason why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// The request itself, or places near it; some may dominate others ([`rank_best_candidates`](crate::rank_best_candidates)).
    pub candidates: Vec<Candidate>,
    /// Where there are none.
    pub refusal: Option<Refusal>,
    /// How far its party may plan ahead.
    pub latest: Time,
}

impl Quote {
    /// Some possible offers.
    pub(crate) fn of(candidates: Vec<Candidate>) -> Self {
        Self {
            candidates,
            refusal: None,
            latest: Time::MAX,
        }
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self {
            candidates: Vec::new(),
            refusal: Some(refusal),
            latest: Time::MAX,
        }
    }
}

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
            let place = match choice::choose_best_placement(search.view(), &need) {
                Ok((at, _, slot)) => Some((at, slot)),
                Err(_) if place < MOVING_MAX => quote_size_making_room(search, &need),
                Err(_) => None,
            };
            let candidate = place.and_then(|(at, slot)| {
                let stretch = (slot, shape.nodes);
                candidates::tellable_candidate(
                    search.view(),
                    context,
                    need.payer,
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

#[cfg(test)]
mod tests;
