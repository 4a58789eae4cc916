//! What could be offered: a place with its price, its deviation from what was asked for, and until when it can be held; and the
//! messages of a negotiation about it. What is offered for a change of an agreement is more than its party has already: a party pays no
//! fee for what it has.

use std::borrow::Cow;

use domain::agreement::{
    Agreement, Job, Money, NegotiationInstance, NegotiationOffer, OfferKind, OfferTerms, Shape, Slots,
    Stretch, part_of_amount,
};
use scheduler::prediction::whole_as_real;
use scheduler::refusal::Relaxation;
use scheduler::{Fraction, Interval, Seconds, Time};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::error::Result;
use crate::limits::{allowance, share, window};
use crate::placement::choice;
use crate::prices::budgets::is_within_budget;
use crate::prices::payer::Payer;
use crate::prices::placement_prices;
use crate::prices::pricing::Priced;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::schedules::need::Need;
use crate::table::fees;
use crate::table::fees::Rebooking;
use crate::table::suggestion::Suggestion;

/// A hold shorter than this cannot be used over a network.
pub(crate) const HOLD_MIN: Seconds = 2;
/// Deviations that differ by less are the same: they are ratios of whole numbers of seconds.
pub(crate) const PHI_EPSILON: f64 = 1e-9;

/// The data for the search for candidates.
pub(crate) struct CandidateContext<'a> {
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
    pub(crate) own: Option<CandidatePrice>,
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

/// The provider's price for its own proposal: at most the agreed price of the agreement that it would replace, less a
/// discount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidatePrice {
    pub(crate) before: Option<Money>,
    pub(crate) discount: Fraction,
}

/// The data for the search for a request, for offers that lapse at `until` at the latest, with the agreement that
/// would be replaced out of the plan.
pub(crate) fn candidate_context<'a>(
    view: View<'_>,
    ask: &'a QuoteOffers,
    until: Time,
    replaced: Option<&'a Agreement>,
) -> CandidateContext<'a> {
    CandidateContext {
        ask,
        number: view.placement.next_number(),
        now: view.present_second(),
        until,
        phi_max: phi_max_of_candidates(view, &ask.proposal),
        replaced,
        rebooking: None,
        own: None,
    }
}

/// The greatest deviation of the answers to a request.
pub(crate) fn phi_max_of_candidates(view: View<'_>, proposal: &Request) -> f64 {
    let provider = view.settings.refusals.alternatives_phi;
    let most = proposal.deviation_max.map_or(provider, |own| own.min(provider));
    f64::from(most.numerator) / f64::from(most.denominator)
}

/// A proposal with those of its sizes that its party's quotas leave, and its window within the horizon.
pub(crate) fn limit_candidates(
    view: View<'_>,
    context: &CandidateContext,
    mut proposal: Request,
) -> Result<(Request, Interval), Refusal> {
    let relaxed =
        |why, proposal: &Request| allowance::relax_to_allowance(view, why, proposal, context.replaced);
    let limited = allowance::allow_within_quotas(view, &mut proposal, context.replaced);
    limited.map_err(|why| relaxed(why, &proposal))?;
    let mut proposal = Cow::Owned(proposal);
    let limited = allowance::allow_within_share(view, &mut proposal, context.replaced);
    limited.map_err(|why| relaxed(why, &proposal))?;
    let window = window::window_within_limits(view, &proposal)?;
    Ok((proposal.into_owned(), window))
}

/// Where a request that its payer can pay would lie on a resource if others moved for it; nothing moves.
pub(crate) fn place_of_candidate(
    search: &mut Search<'_>,
    at: usize,
    need: &Need<'_>,
    request: &scheduler::Request,
) -> Option<Interval> {
    let paying = choice::payable_placement_choice(search.view(), at, need, request)?;
    let start = search
        .schedules
        .would_start(at, search.present_second(), &paying)?;
    Some(request.slot(start))
}

/// The possible offer at a place for its payer: its expiry, its hold and its price.
pub(crate) fn candidate(
    view: View<'_>,
    context: &CandidateContext,
    payer: Payer<'_>,
    place: CandidatePlacement,
) -> Option<Candidate> {
    let (start, expires) = candidate_start_and_expiry(view, context, &place)?;
    let duration = place.slot.duration();
    let stretch = (Interval::of(start, duration), place.nodes);
    let may_be_offered = place.kind == OfferKind::Exact
        || may_tell_candidate_times(view, context, &place, (start, expires))
            && share::may_have_share(
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
    candidate_of_slots(view, context, (payer, &place), slots, (kept_until, expires))
}

/// A candidate in a place where it may be told, from the first start on that may.
pub(crate) fn tellable_candidate(
    view: View<'_>,
    context: &CandidateContext,
    payer: Payer<'_>,
    place: CandidatePlacement,
) -> Option<Candidate> {
    let slot = Interval::of(
        first_tellable_candidate_start(view, &place)?,
        place.slot.duration(),
    );
    candidate(view, context, payer, CandidatePlacement { slot, ..place })
}

/// The offer of slots at a place, which are kept until an instant where it is accepted before it expires: with its price. None where
/// they cannot be priced: nothing would be billed for them.
pub(crate) fn candidate_of_slots(
    view: View<'_>,
    context: &CandidateContext,
    (payer, place): (Payer<'_>, &CandidatePlacement),
    slots: Slots,
    (kept_until, expires): (Time, Time),
) -> Option<Candidate> {
    let on = &view.schedules.get(place.resource)?.resource;
    let priced = Priced::of_slots(payer, on, &slots, place.window);
    let price = placement_prices::placement_price(view, place.resource, priced);
    if view.settings.pricing.is_some() {
        price?;
    }
    let (price, before, fee) = match (&context.own, context.replaced) {
        // A change that its party has not asked for costs no fee.
        (Some(own), _) => (price.map(|price| own.of(price)), own.before, None),
        (None, Some(old)) => {
            let fee = fees::change_fee(view, old, price, context.rebooking.as_ref());
            (price, old.price, fee)
        }
        (None, None) => (price, None, None),
    };
    let resource = on.name.clone();
    let terms = OfferTerms {
        peer: None,
        energy: placement_prices::placement_energy(view, &resource, &slots),
        resource,
        slots,
        ready: place.window.start,
        deadline: place.window.end,
        kept_until,
        deviation: place.deviation,
        kind: place.kind,
        confidence: None,
        price,
        difference: candidate_price_difference(price, before),
        fee: fee.as_ref().map(|fee| fee.amount),
        fee_why: fee.and_then(|fee| fee.why),
        discounts: context
            .own
            .is_none()
            .then(|| placement_prices::placement_discounts(view, place.resource, priced))
            .flatten(),
        promise: None,
    };
    Some(Candidate::own(terms, expires))
}

/// Whether times that were not asked for may be shown: in the provider's steps only. An offer that stands shorter
/// than others would show where free time ends.
fn may_tell_candidate_times(
    view: View<'_>,
    context: &CandidateContext,
    place: &CandidatePlacement,
    (start, expires): (Time, Time),
) -> bool {
    let step = view.settings.refusals.coarsen;
    let full = context.until.min(place.window.end - place.slot.duration());
    step == 1 || (start.seconds() % step == 0 && expires == full)
}

/// The first start from a free one on that may be told, where there is room.
pub(crate) fn first_tellable_candidate_start(view: View<'_>, place: &CandidatePlacement) -> Option<Time> {
    let step = view.settings.refusals.coarsen;
    let start = coarse_candidate_instant(place.slot.start + (step - 1), step);
    let slot = Interval::of(start, place.slot.duration());
    let resource = view.schedules.get(place.resource)?;
    let is_free = start == place.slot.start
        || (place.window.contains(slot) && resource.schedule.tree().min_free(slot) >= place.nodes);
    is_free.then_some(start)
}

/// Where an offer would start and until when it can stand: a slot that begins before the offer lapses is kept for as
/// long as it takes to begin it at the last moment. Where there is no room for that, it begins later, or stands
/// shorter.
fn candidate_start_and_expiry(
    view: View<'_>,
    context: &CandidateContext,
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
    let until = free(soonest).then(|| last_candidate_instant_that(soonest, latest, free))?;
    (until - context.now >= HOLD_MIN).then_some((start, until))
}

pub(crate) fn is_candidate_affordable(context: &CandidateContext, candidate: &Candidate) -> bool {
    let budget = context
        .ask
        .proposal
        .budget
        .zip(candidate_price_with_fee(&candidate.terms));
    budget.is_none_or(|(budget, costs)| is_within_budget(costs, budget))
}

/// By how much one price is more than another.
pub(crate) fn candidate_price_difference(price: Option<Money>, before: Option<Money>) -> Option<Money> {
    let (price, before) = price.zip(before)?;
    let more = price.micros.checked_sub(before.micros)?;
    (price.currency == before.currency).then(|| Money::new(more, price.currency))
}

pub(crate) fn ratio(part: Seconds, whole: Seconds) -> f64 {
    whole_as_real(part) / whole_as_real(whole)
}

/// The price of an offer with its fee.
pub(crate) fn candidate_price_with_fee(terms: &OfferTerms) -> Option<Money> {
    let fee = terms.fee.map_or(0, |fee| fee.micros);
    let with_fee = |price: Money| Money::new(price.micros.saturating_add(fee), price.currency);
    terms.price.map(with_fee)
}

/// The last instant from `least` on, and before `most`, up to which something holds that holds at `least`.
pub(crate) fn last_candidate_instant_that(least: Time, most: Time, holds: impl Fn(Time) -> bool) -> Time {
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
pub(crate) fn coarse_candidate_instant(at: Time, step: Seconds) -> Time {
    let step = step.max(1);
    Time(at.seconds().div_euclid(step) * step)
}

impl CandidateContext<'_> {
    /// Whether a candidate lies near enough, is over when its agreement expires, costs little enough, and is more than its party has.
    pub(crate) fn allows(&self, candidate: &Candidate) -> bool {
        let expires = self.ask.proposal.expires;
        expires.is_none_or(|at| candidate.terms.deadline <= at)
            && candidate.terms.deviation <= self.phi_max + PHI_EPSILON
            && is_candidate_affordable(self, candidate)
            && self.is_a_gain(&candidate.terms)
    }

    /// Whether an offer that is not what was asked for is more than the agreement that it would replace: it is not the place that this
    /// has, and not a part of a longer time that this has already.
    pub(crate) fn is_a_gain(&self, terms: &OfferTerms) -> bool {
        let Some(old) = self.replaced.filter(|_| self.own.is_none()) else {
            return true;
        };
        let job = |job: Option<&Job>| job.map(Job::first_time);
        let is_same = terms.resource == old.resource
            && terms.slots.stretches() == old.slots.stretches()
            && job(self.ask.proposal.job.as_ref()) == job(old.job.as_ref());
        let is_no_longer = terms.kind == OfferKind::Shorter && self.is_no_extension(terms.duration());
        !is_same && !is_no_longer
    }

    /// Whether a longer time was asked for than the agreement has that would be replaced, and this is none.
    fn is_no_extension(&self, duration: Seconds) -> bool {
        let mut shapes = self.ask.proposal.shapes.iter();
        self.replaced
            .is_some_and(|old| duration <= old.duration && shapes.all(|shape| shape.duration > old.duration))
    }

    /// A refusal without the changes that would give no more than the agreement that would be replaced.
    pub(crate) fn with_gains(&self, mut refusal: Refusal) -> Refusal {
        let is_no_gain = |relaxation: &Relaxation| matches!(relaxation, Relaxation::Duration(duration) if self.is_no_extension(*duration));
        refusal.relaxations.retain(|relaxation| !is_no_gain(relaxation));
        refusal
    }
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

impl CandidatePrice {
    pub(crate) fn of(&self, price: Money) -> Money {
        let before = self.before.filter(|before| before.currency == price.currency);
        let least = before.map_or(price.micros, |before| before.micros.min(price.micros));
        let (off, whole) = (self.discount.numerator, self.discount.denominator);
        let least = Money::new(least, price.currency);
        part_of_amount(least, whole.saturating_sub(off).into(), whole.into())
    }
}

/// How far a slot lies outside the window of an agreement, in seconds.
pub(crate) fn candidate_seconds_outside(agreement: &Agreement, slot: Interval) -> i64 {
    let (before, after) = (agreement.ready - slot.start, slot.end - agreement.deadline);
    before.max(after).max(0)
}

/// An agreement as it is, in another slot.
pub(crate) fn candidate_in_other_slot(
    at: usize,
    agreement: &Agreement,
    slot: Interval,
) -> CandidatePlacement {
    let kind = match candidate_seconds_outside(agreement, slot) {
        0 => OfferKind::Exact,
        _ if slot.start < agreement.ready => OfferKind::Earlier,
        _ => OfferKind::Later,
    };
    let how = (
        kind,
        ratio(candidate_seconds_outside(agreement, slot), slot.duration()),
    );
    CandidatePlacement::new(at, (slot, agreement.nodes()), slot, how)
}

/// The party that asks for offers.
#[derive(Debug, Clone)]
pub enum OfferOrigin {
    /// A party, in a negotiation that goes on.
    Negotiation(Uuid),
    /// A party, in a negotiation that is opened with the answer.
    Opening(Box<NegotiationInstance>),
    /// The provider itself, which looks for a proposal.
    Proposal(Box<Suggestion>),
}

/// Weights of a requester's preferences, each from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weights {
    /// Of an early start.
    pub start: f64,
    /// Of many nodes.
    pub size: f64,
    /// Of a short duration.
    pub duration: f64,
    /// Of a low price.
    pub price: f64,
}

/// Something that could be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its terms.
    pub terms: OfferTerms,
    /// Until when it can be offered.
    pub expires: Time,
    /// How much less it is worth than it says, as a deviation: the part of its promises that its domain has not kept; 0 for ours.
    pub doubt: f64,
}

impl Candidate {
    /// One of our own.
    pub(crate) fn own(terms: OfferTerms, expires: Time) -> Self {
        Self {
            terms,
            expires,
            doubt: 0.0,
        }
    }
}

/// An offer with its words.
#[derive(Debug, Clone)]
pub struct OfferWords {
    /// The offer.
    pub offer: NegotiationOffer,
    /// The document that says it.
    pub document: String,
}

/// The possible offers for a request are to be told at present. Nothing is stored or kept.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where no such negotiation goes on, [`Error::Lost`](crate::Error::Lost) where the agreement
/// that it is to replace has begun or is over, [`Error::Unavailable`](crate::Error::Unavailable).
#[derive(Debug, Clone)]
pub struct QuoteOffers {
    /// Its party.
    pub about: OfferOrigin,
    /// The request.
    pub proposal: Request,
    /// Where the duration follows from the number of nodes: other sizes than the requested ones, each with its duration,
    /// in the form of the proposal's sizes. `None` where one size is as it is.
    pub others: Option<Vec<Shape>>,
    /// The weights in the ranking of counter offers.
    pub weights: Weights,
}
