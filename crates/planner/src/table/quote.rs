//! The possible offers for a request: the request itself where it fits, and else the nearest ones that no other
//! dominates. Nothing here is stored or kept; the plan is read, and stands afterwards as it stood.

use std::borrow::Cow;

use domain::agreement::{Agreement, Money, OfferKind, OfferTerms, Shape, Slots, Stretch, part_of_amount};
use scheduler::prediction::whole_as_real;
use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Fraction, Interval, Reason, Seconds, Time};

use crate::context::{Search, View};
use crate::error::{Refusal, Result, bare_refusal};
use crate::limits::budget::is_within_budget;
use crate::limits::{pricing, quotas, share, window};
use crate::placement::{admit, refuse, split};
use crate::prices::payer::Payer;
use crate::prices::price_list::Priced;
use crate::request::Request;
use crate::schedules::need::Need;
use crate::table::fees::Rebooking;
use crate::table::messages::QuoteOffers;
use crate::table::messages::{Candidate, Quote, Weights};
use crate::table::ranking::{PHI_EPSILON, candidate_price, rank_candidates};
use crate::table::suggestion::Suggestion;
use crate::table::{fees, propose, sizes};

/// A hold shorter than this cannot be used over a network.
pub(crate) const HOLD_MIN: Seconds = 2;

/// The data for the search for candidates.
pub(crate) struct QuoteContext<'a> {
    pub(crate) ask: &'a QuoteOffers,
    /// Its number in a schedule.
    pub(crate) number: u64,
    pub(crate) now: Time,
    /// When an offer made now lapses at the latest.
    pub(crate) until: Time,
    pub(crate) phi_max: f64,
    pub(crate) replaced: Option<&'a Agreement>,
    /// Where the request of that would cost less now.
    pub(crate) rebooking: Option<Rebooking>,
    /// The provider's price for its own proposal.
    pub(crate) own: Option<OwnPrice>,
}

impl QuoteContext<'_> {
    /// Whether a candidate lies near enough, is over when its agreement expires, costs little enough, and is more than its party has.
    pub(crate) fn allows(&self, candidate: &Candidate) -> bool {
        let expires = self.ask.proposal.expires;
        expires.is_none_or(|at| candidate.terms.deadline <= at)
            && candidate.terms.deviation <= self.phi_max + PHI_EPSILON
            && is_candidate_affordable(self, candidate)
            && self.is_a_gain(&candidate.terms)
    }
}

/// Where and how a candidate would lie.
#[derive(Clone, Copy)]
pub(crate) struct CandidatePlacement {
    pub(crate) resource: usize,
    pub(crate) slot: Interval,
    pub(crate) nodes: u32,
    pub(crate) window: Interval,
    pub(crate) kind: OfferKind,
    pub(crate) deviation: f64,
}

impl CandidatePlacement {
    /// A place in a window, by the way in which it differs from the request and how far.
    pub(crate) fn new(
        resource: usize,
        (slot, nodes): Stretch,
        window: Interval,
        (kind, deviation): (OfferKind, f64),
    ) -> Self {
        Self {
            resource,
            slot,
            nodes,
            window,
            kind,
            deviation,
        }
    }
}

/// The data for the search for a request, for offers that lapse at `until` at the latest, with the agreement that
/// would be replaced out of the plan.
pub(crate) fn quote_context<'a>(
    view: View<'_>,
    ask: &'a QuoteOffers,
    until: Time,
    replaced: Option<&'a Agreement>,
) -> QuoteContext<'a> {
    QuoteContext {
        ask,
        number: view.placement.next_number(),
        now: view.present_second(),
        until,
        phi_max: phi_max(view, &ask.proposal),
        replaced,
        rebooking: None,
        own: None,
    }
}

/// The greatest deviation of the answers to a request.
pub(crate) fn phi_max(view: View<'_>, proposal: &Request) -> f64 {
    let provider = view.settings.refusals.alternatives_phi;
    let most = proposal.deviation_max.map_or(provider, |own| own.min(provider));
    f64::from(most.numerator) / f64::from(most.denominator)
}

/// The possible offers for a request, or the reason why there are none; and what the provider could propose to another party for it.
pub(crate) fn find_offers(
    search: &mut Search<'_>,
    context: &QuoteContext,
    suggestion: &mut Option<Suggestion>,
) -> Result<Quote, Refusal> {
    let now = context.now;
    search.schedules.begin_search();
    let asked = limit_quote(search.view(), context, context.ask.proposal.clone());
    let (mut found, why) = match &asked {
        Err(refusal) => (Vec::new(), Err(refusal.clone())),
        Ok((proposal, window)) => {
            let need = Need::of(proposal, context.number, *window, now);
            match quote_exact(search, context, &need) {
                Ok(exact) if is_candidate_affordable(context, &exact) => {
                    return Ok(Quote::of(vec![exact]));
                }
                // A change costs its fee besides.
                Ok(exact) => (Vec::new(), Err(quote_beyond_budget(search.view(), &exact))),
                Err(why) => {
                    // A move is proposed to another party for a request that has no agreement yet.
                    if context.replaced.is_none() && context.own.is_none() {
                        *suggestion = propose::suggest_a_move(search, &need, why);
                    }
                    let mut near = quote_nearby(search, context, &need, why);
                    near.extend(quote_in_pieces(search.view(), context, &need, why));
                    (near, Ok((need, why)))
                }
            }
        }
    };
    found.extend(sizes::quote_other_sizes(search, context));
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
        lowest_budget: price_with_fee(&exact.terms).filter(|_| view.settings.refusals.relaxations),
        ..bare_refusal(Reason::BudgetTooLow, binding)
    }
}

/// A proposal with those of its sizes that its party's quotas leave, and its window within the horizon.
pub(crate) fn limit_quote(
    view: View<'_>,
    context: &QuoteContext,
    mut proposal: Request,
) -> Result<(Request, Interval), Refusal> {
    quotas::limit_to_quotas(view, &mut proposal, context.replaced)?;
    let mut proposal = Cow::Owned(proposal);
    share::limit_to_share(view, &mut proposal, context.replaced)?;
    let window = window::window(view, &proposal)?;
    Ok((proposal.into_owned(), window))
}

/// The sizes that are asked for at other times, and for less time in the window.
fn quote_nearby(
    search: &mut Search<'_>,
    context: &QuoteContext,
    need: &Need<'_>,
    why: Reason,
) -> Vec<Candidate> {
    if why != Reason::NoCapacityInWindow {
        return Vec::new();
    }
    let requests = admit::requests(search.view(), need);
    search.schedules.share_work(requests.len());
    let mut found = quote_elsewhere(search, context, need, &requests);
    // A duration that follows from the size is not shortened, and nor is a promised one: the work would not be
    // finished.
    if context.ask.others.is_none() && context.own.is_none() {
        found.extend(quote_shorter(search, context, &requests));
    }
    search.schedules.share_work(1);
    found
}

/// The request itself, with the size and on the resource that are best as the plans stand, of several sizes the one
/// that its requester prefers; where others have to move, only if it fits nowhere as the plans stand.
fn quote_exact(
    search: &mut Search<'_>,
    context: &QuoteContext,
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
        match admit::best_admission_to_pay(search.view(), &one_need) {
            Ok((resource, shape, slot)) => {
                let best = candidate(search.view(), context, place(resource, shape.nodes, slot));
                let here = candidate_where_it_is(search.view(), context, &one_need, (resource, shape));
                let is_as_good = |(here, best): (&Candidate, &Candidate)| {
                    let end = |candidate: &Candidate| candidate.terms.placement().end;
                    end(here) <= end(best) && candidate_price(here) <= candidate_price(best)
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
    let requests = admit::requests(search.view(), need);
    search.schedules.share_work(requests.len());
    let found = requests.into_iter().find_map(|(resource, request)| {
        let slot = place_of_quote(search, resource, need, &request)?;
        candidate(search.view(), context, place(resource, request.nodes, slot))
    });
    search.schedules.share_work(1);
    found.ok_or(Reason::NoCapacityInWindow)
}

/// The best place of a size on the resource of the agreement that would be replaced, where a better one is elsewhere: work does not
/// change its machine for nothing.
fn candidate_where_it_is(
    view: View<'_>,
    context: &QuoteContext,
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
        .best_on(here, need, part, view.settings.objective)?;
    let (how, stretch) = ((OfferKind::Exact, 0.0), (found.slot, shape.nodes));
    candidate(
        view,
        context,
        CandidatePlacement::new(here, stretch, need.window, how),
    )
}

/// Where a request that its payer can pay would lie on a resource if others moved for it; nothing moves.
pub(crate) fn place_of_quote(
    search: &mut Search<'_>,
    at: usize,
    need: &Need<'_>,
    request: &scheduler::Request,
) -> Option<Interval> {
    let paying = admit::payable_request(search.view(), at, need, request)?;
    let start = search
        .schedules
        .would_start(at, search.present_second(), &paying)?;
    Some(request.slot(start))
}

/// The possible offer in pieces for a request that has no place in one piece: where its last piece completes first, as the
/// plans stand. Its first piece begins when the offer has lapsed or later. So it stays as it was offered, at any time of its
/// acceptance.
fn quote_in_pieces(
    view: View<'_>,
    context: &QuoteContext,
    need: &Need<'_>,
    why: Reason,
) -> Option<Candidate> {
    let preemption = context.ask.proposal.preemption.as_ref()?;
    if why != Reason::NoCapacityInWindow || context.until - context.now < HOLD_MIN {
        return None;
    }
    let window = Interval::new(need.window.start.max(context.until), need.window.end);
    let (at, pieces) = split::best_in_pieces(view, need, preemption, window)?;
    let first = pieces.first()?.stretch();
    let place = CandidatePlacement::new(at, first, need.window, (OfferKind::InPieces, 0.0));
    let end = pieces.placement().end;
    candidate_of_slots(view, context, &place, pieces, (end, context.until))
}

/// The same nodes for as long before or after the window: the slots that a refusal would name.
fn quote_elsewhere(
    search: &mut Search<'_>,
    context: &QuoteContext,
    need: &Need<'_>,
    requests: &[(usize, scheduler::Request)],
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (resource, request) in requests {
        let only = [(*resource, *request)];
        for alternative in refuse::alternatives(search, need, &only) {
            let slot = alternative.slot;
            let (before, after) = (request.ready - slot.start, slot.end - request.deadline);
            let kind = if before >= after {
                OfferKind::Earlier
            } else {
                OfferKind::Later
            };
            let how = (kind, ratio(before.max(after), request.duration));
            let place = CandidatePlacement::new(*resource, (slot, request.nodes), slot, how);
            found.extend(candidate(search.view(), context, place));
        }
    }
    found
}

/// The same nodes in the same window for the longest that there is, where the provider tells that.
fn quote_shorter(
    search: &mut Search<'_>,
    context: &QuoteContext,
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
            ratio(request.duration - duration, request.duration),
        );
        let place = CandidatePlacement::new(*resource, stretch, request.window(), how);
        found.extend(tellable_candidate(search.view(), context, place));
    }
    found
}

/// The possible offer at a place: its expiry, its hold and its price.
pub(crate) fn candidate(
    view: View<'_>,
    context: &QuoteContext,
    place: CandidatePlacement,
) -> Option<Candidate> {
    let (start, expires) = start_and_expiry(view, context, &place)?;
    let duration = place.slot.duration();
    let stretch = (Interval::of(start, duration), place.nodes);
    let may_be_offered = place.kind == OfferKind::Exact
        || may_tell_quote_times(view, context, &place, (start, expires))
            && share::may_have(
                view,
                &context.ask.proposal.party,
                place.resource,
                stretch,
                context.replaced,
            );
    if !may_be_offered {
        return None;
    }
    let slots = Slots::one(stretch);
    let kept_until = start.max(expires) + duration;
    candidate_of_slots(view, context, &place, slots, (kept_until, expires))
}

/// The same where it may be told, from the first start on that may.
pub(crate) fn tellable_candidate(
    view: View<'_>,
    context: &QuoteContext,
    place: CandidatePlacement,
) -> Option<Candidate> {
    let slot = Interval::of(first_tellable_start(view, &place)?, place.slot.duration());
    candidate(view, context, CandidatePlacement { slot, ..place })
}

/// The offer of slots at a place, which are kept until an instant where it is accepted before it expires: with its price.
fn candidate_of_slots(
    view: View<'_>,
    context: &QuoteContext,
    place: &CandidatePlacement,
    slots: Slots,
    (kept_until, expires): (Time, Time),
) -> Option<Candidate> {
    let priced = Priced::of_slots(Payer::of(&context.ask.proposal), &slots, place.window);
    let price = pricing::price(view, place.resource, priced);
    let (price, before, fee) = match (&context.own, context.replaced) {
        // A change that its party has not asked for costs no fee.
        (Some(own), _) => (price.map(|price| own.of(price)), own.before, None),
        (None, Some(old)) => {
            let fee = fees::change_fee(view, old, price, context.rebooking.as_ref());
            (price, old.price, fee)
        }
        (None, None) => (price, None, None),
    };
    let resource = view.schedules.get(place.resource)?.resource.name.clone();
    let terms = OfferTerms {
        peer: None,
        energy: pricing::energy(view, &resource, &slots),
        resource,
        slots,
        ready: place.window.start,
        deadline: place.window.end,
        kept_until,
        deviation: place.deviation,
        kind: place.kind,
        confidence: None,
        price,
        difference: price_difference(price, before),
        fee: fee.as_ref().map(|fee| fee.amount),
        fee_why: fee.and_then(|fee| fee.why),
        promise: None,
    };
    Some(Candidate::own(terms, expires))
}

/// Whether times that were not asked for may be shown: in the provider's steps only. An offer that stands shorter
/// than others would show where free time ends.
fn may_tell_quote_times(
    view: View<'_>,
    context: &QuoteContext,
    place: &CandidatePlacement,
    (start, expires): (Time, Time),
) -> bool {
    let step = view.settings.refusals.coarsen;
    let full = context.until.min(place.window.end - place.slot.duration());
    step == 1 || (start.seconds() % step == 0 && expires == full)
}

/// The first start from a free one on that may be told, where there is room.
pub(crate) fn first_tellable_start(view: View<'_>, place: &CandidatePlacement) -> Option<Time> {
    let step = view.settings.refusals.coarsen;
    let start = coarse_quote_instant(place.slot.start + (step - 1), step);
    let slot = Interval::of(start, place.slot.duration());
    let resource = view.schedules.get(place.resource)?;
    let is_free = start == place.slot.start
        || (place.window.contains(slot) && resource.schedule.tree().min_free(slot) >= place.nodes);
    is_free.then_some(start)
}

/// Where an offer would start and until when it can stand: a slot that begins before the offer lapses is kept for as
/// long as it takes to begin it at the last moment. Where there is no room for that, it begins later, or stands
/// shorter.
fn start_and_expiry(
    view: View<'_>,
    context: &QuoteContext,
    place: &CandidatePlacement,
) -> Option<(Time, Time)> {
    let (start, duration) = (place.slot.start, place.slot.duration());
    let latest = context.until.min(place.window.end - duration);
    if latest - context.now < 1 {
        return None;
    }
    if start >= latest {
        return Some((start, latest));
    }
    let tree = view.schedules.get(place.resource)?.schedule.tree();
    let free = |until: Time| tree.min_free(Interval::new(start, until + duration)) >= place.nodes;
    if free(latest) {
        return Some((start, latest));
    }
    let later = Interval::new(latest, place.window.end);
    if let Some(start) = tree.earliest_fit(place.nodes, duration, later) {
        return Some((start, latest));
    }
    let soonest = start.max(context.now);
    let until = free(soonest).then(|| last_instant_that(soonest, latest, free))?;
    (until - context.now >= HOLD_MIN).then_some((start, until))
}

fn is_candidate_affordable(context: &QuoteContext, candidate: &Candidate) -> bool {
    let budget = context.ask.proposal.budget.zip(price_with_fee(&candidate.terms));
    budget.is_none_or(|(budget, costs)| is_within_budget(costs, budget))
}

/// By how much one price is more than another.
pub(crate) fn price_difference(price: Option<Money>, before: Option<Money>) -> Option<Money> {
    let (price, before) = price.zip(before)?;
    let more = price.micros.checked_sub(before.micros)?;
    (price.currency == before.currency).then(|| Money::new(more, price.currency))
}

pub(crate) fn ratio(part: Seconds, whole: Seconds) -> f64 {
    whole_as_real(part) / whole_as_real(whole)
}

/// The provider's price for its own proposal: at most the agreed price of the agreement that it would replace, less a
/// discount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPrice {
    pub(crate) before: Option<Money>,
    pub(crate) discount: Fraction,
}

impl OwnPrice {
    pub(crate) fn of(&self, price: Money) -> Money {
        let before = self.before.filter(|before| before.currency == price.currency);
        let least = before.map_or(price.micros, |before| before.micros.min(price.micros));
        let (off, whole) = (self.discount.numerator, self.discount.denominator);
        let least = Money::new(least, price.currency);
        part_of_amount(least, whole.saturating_sub(off).into(), whole.into())
    }
}

/// The price of an offer with its fee.
pub(crate) fn price_with_fee(terms: &OfferTerms) -> Option<Money> {
    let fee = terms.fee.map_or(0, |fee| fee.micros);
    let with_fee = |price: Money| Money::new(price.micros.saturating_add(fee), price.currency);
    terms.price.map(with_fee)
}

/// The last instant from `least` on, and before `most`, up to which something holds that holds at `least`.
pub(crate) fn last_instant_that(least: Time, most: Time, holds: impl Fn(Time) -> bool) -> Time {
    let (mut least, mut most) = (least, most);
    while most - least > 1 {
        let middle = Time(i64::midpoint(least.seconds(), most.seconds()));
        if holds(middle) {
            least = middle;
        } else {
            most = middle;
        }
    }
    least
}

/// The last step at or before an instant, with steps of a given number of seconds.
pub(crate) fn coarse_quote_instant(at: Time, step: Seconds) -> Time {
    let step = step.max(1);
    Time(at.seconds().div_euclid(step) * step)
}

#[cfg(test)]
mod tests;
