//! The possible offers for a request: the request itself where it fits, and else the nearest ones that no other
//! dominates. Nothing here is stored or kept; the plan is read, and stands afterwards as it stood.

use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Interval, Reason, Request, Seconds, Time};
use uuid::Uuid;

use super::change_end::with_fee;
use super::propose::OwnPrice;
use super::ranking::{as_number, micros, ranked};
use super::replace::Lifted;
use crate::agreement::{Money, NegotiationInstance, OfferKind, OfferTerms, Shape, Slots};
use crate::clock::second_of;
use crate::planner::admission::budget::Payer;
use crate::planner::admission::pricing::Priced;
use crate::planner::admission::refuse::bare;
use crate::planner::decide::Decider;
use crate::planner::placement::admit::Wanted;
use crate::planner::{Error, Lost, Proposal, Refusal, Suggestion};

/// A hold shorter than this cannot be used over a network.
pub(in crate::planner) const HOLD_MIN: Seconds = 2;

/// Deviations that differ by less are the same: they are ratios of whole numbers of seconds.
pub(in crate::planner) const PHI_EPSILON: f64 = 1e-9;

/// A request for offers.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Its party.
    pub about: About,
    /// The request.
    pub proposal: Proposal,
    /// Where the duration follows from the number of nodes: other sizes than the requested ones, each with its duration,
    /// in the form of the proposal's sizes. `None` where one size is as it is.
    pub others: Option<Vec<Shape>>,
    /// The weights in the ranking of counter offers.
    pub weights: Weights,
}

/// The party that asks for offers.
#[derive(Debug, Clone)]
pub enum About {
    /// That of a party, in a negotiation that goes on.
    Negotiation(Uuid),
    /// That of a party, in a negotiation that is opened with the answer.
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

/// The possible offers, in no order; or the reason why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// The request itself, or places near it; some may dominate others ([`best_of`](crate::planner::best_of)).
    pub candidates: Vec<Candidate>,
    /// Where there are none.
    pub refusal: Option<Refusal>,
}

/// Something that could be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its terms.
    pub terms: OfferTerms,
    /// Until when it can be offered.
    pub expires: Time,
}

/// The data for the search for candidates.
pub(in crate::planner) struct QuoteContext<'a> {
    pub(in crate::planner) ask: &'a Ask,
    /// Its number in a schedule.
    pub(in crate::planner) number: u64,
    pub(in crate::planner) now: Time,
    /// When an offer made now lapses at the latest.
    pub(in crate::planner) until: Time,
    pub(in crate::planner) phi_max: f64,
    pub(in crate::planner) replaced: Option<&'a Lifted>,
    /// The provider's price for its own proposal.
    pub(in crate::planner) own: Option<OwnPrice>,
}

impl QuoteContext<'_> {
    /// Whether a candidate lies near enough and costs little enough.
    pub(in crate::planner) fn allows(&self, candidate: &Candidate) -> bool {
        candidate.terms.deviation <= self.phi_max + PHI_EPSILON && affordable(self, candidate)
    }
}

/// The price of a candidate, and the difference to the price of the agreement that it would replace.
pub(in crate::planner) struct Charges {
    pub(in crate::planner) price: Option<Money>,
    pub(in crate::planner) difference: Option<Money>,
    pub(in crate::planner) fee: Option<Money>,
}

/// Where and how a candidate would lie.
#[derive(Clone, Copy)]
pub(in crate::planner) struct CandidatePlacement {
    pub(in crate::planner) resource: usize,
    pub(in crate::planner) nodes: u32,
    pub(in crate::planner) duration: Seconds,
    pub(in crate::planner) window: Interval,
    pub(in crate::planner) start: Time,
    pub(in crate::planner) kind: OfferKind,
    pub(in crate::planner) deviation: f64,
}

impl Quote {
    fn of(candidates: Vec<Candidate>) -> Self {
        Self {
            candidates,
            refusal: None,
        }
    }

    pub(in crate::planner) fn refused(refusal: Refusal) -> Self {
        Self {
            candidates: Vec::new(),
            refusal: Some(refusal),
        }
    }
}

impl Decider<'_> {
    /// The possible offers for a request.
    pub(in crate::planner) fn quote(&mut self, ask: &Ask) -> Result<Quote, Error> {
        let instance = match &ask.about {
            About::Negotiation(negotiation) => {
                let talks = self.plan.table.get(*negotiation).ok_or(Error::NotFound)?;
                talks.instance.clone()
            }
            About::Opening(instance) => {
                self.may_open(instance)?;
                (**instance).clone()
            }
            About::Proposal(suggestion) => return self.quote_proposal(ask, suggestion),
        };
        Self::may_ask_in(&instance)?;
        if let Err(refusal) = self.probe(&instance.party) {
            return Ok(Quote::refused(refusal));
        }
        let quote = self.suppose(|this| {
            let Ok(lifted) = this.lift_replaced(&instance) else {
                return Err(Error::Lost(Lost::Replaced));
            };
            if let Some(lifted) = lifted.as_ref().filter(|of| of.has_begun()) {
                return this.quote_begun(ask, instance.expires, lifted);
            }
            let until = (second_of(this.now) + this.settings.negotiation.hold).min(instance.expires);
            let search = this.search(ask, until, lifted.as_ref());
            Ok(this.found(&search))
        });
        Ok(quote?.unwrap_or_else(Quote::refused))
    }

    /// The data for the search for a request, for offers that lapse at `until` at the latest, with the agreement that
    /// would be replaced out of the plan.
    pub(in crate::planner) fn search<'a>(
        &self,
        ask: &'a Ask,
        until: Time,
        replaced: Option<&'a Lifted>,
    ) -> QuoteContext<'a> {
        let provider = self.settings.refusals.alternatives_phi;
        let most = ask
            .proposal
            .deviation_max
            .map_or(provider, |own| own.min(provider));
        QuoteContext {
            ask,
            number: self.plan.next_number(),
            now: second_of(self.now),
            until,
            phi_max: f64::from(most.numerator) / f64::from(most.denominator),
            replaced,
            own: None,
        }
    }

    /// The possible offers for a request, or the reason why there are none.
    pub(in crate::planner) fn found(&mut self, search: &QuoteContext) -> Result<Quote, Refusal> {
        let now = search.now;
        self.plan.resources.cut_short = false;
        let asked = self.limited(search, search.ask.proposal.clone());
        let (mut found, why) = match &asked {
            Err(refusal) => (Vec::new(), Err(refusal.clone())),
            Ok((proposal, window)) => {
                let wanted = Wanted::of(proposal, search.number, *window, now);
                match self.exact(search, &wanted) {
                    Ok(exact) if affordable(search, &exact) => return Ok(Quote::of(vec![exact])),
                    // A change costs its fee besides.
                    Ok(exact) => (Vec::new(), Err(self.beyond_budget(&exact))),
                    Err(why) => {
                        // A move is proposed to another party for a request that has no agreement yet.
                        if search.replaced.is_none() && search.own.is_none() {
                            self.suggest_a_move(&wanted, why, now);
                        }
                        let mut near = self.nearby(search, &wanted, why);
                        near.extend(self.quote_in_pieces(search, &wanted, why));
                        (near, Ok((wanted, why)))
                    }
                }
            }
        };
        found.extend(self.of_other_sizes(search));
        found.retain(|candidate| search.allows(candidate));
        match why {
            _ if !found.is_empty() => Ok(Quote::of(found)),
            Ok((wanted, why)) => Err(self.refused(&wanted, why, now)),
            Err(refusal) => Err(refusal),
        }
    }

    /// The refusal of a request that would fit and that costs more than its budget, with its fee.
    fn beyond_budget(&self, exact: &Candidate) -> Refusal {
        let binding = "it would cost more than its budget, with the fee for the change".to_owned();
        let costs = exact.terms.price.map(|price| with_fee(price, exact.terms.fee));
        Refusal {
            lowest_budget: costs.filter(|_| self.settings.refusals.relaxations),
            ..bare(Reason::BudgetTooLow, binding)
        }
    }

    /// A proposal with those of its sizes that its party's quotas leave, and its window within the horizon.
    pub(in crate::planner) fn limited(
        &self,
        search: &QuoteContext,
        mut proposal: Proposal,
    ) -> Result<(Proposal, Interval), Refusal> {
        self.within_quota(&mut proposal, search.now, search.replaced)?;
        let window = self.window(&proposal, search.now)?;
        Ok((proposal, window))
    }

    /// The sizes that are asked for at other times, and for less time in the window.
    fn nearby(&mut self, search: &QuoteContext, wanted: &Wanted<'_>, why: Reason) -> Vec<Candidate> {
        if why != Reason::NoCapacityInWindow {
            return Vec::new();
        }
        let requests = self.requests(wanted);
        self.plan.resources.share_work(requests.len());
        let mut found = self.elsewhere(search, wanted, &requests);
        // A duration that follows from the size is not shortened, and nor is a promised one: the work would not be
        // finished.
        if search.ask.others.is_none() && search.own.is_none() {
            found.extend(self.shorter(search, &requests));
        }
        self.plan.resources.share_work(1);
        found
    }

    /// The request itself, with the size and on the resource that are best as the plans stand, of several sizes the one
    /// that its requester prefers; where others have to move, only if it fits nowhere as the plans stand.
    fn exact(&mut self, search: &QuoteContext, wanted: &Wanted<'_>) -> Result<Candidate, Reason> {
        let place = |resource, nodes, slot: Interval| CandidatePlacement {
            resource,
            nodes,
            duration: slot.duration(),
            window: wanted.window,
            start: slot.start,
            kind: OfferKind::Exact,
            deviation: 0.0,
        };
        let preferred = search.ask.weights != Weights::default();
        let sizes: Vec<Vec<Shape>> = if preferred {
            wanted
                .some_shapes()
                .into_iter()
                .map(|shape| vec![shape])
                .collect()
        } else {
            vec![wanted.shapes.to_vec()]
        };
        let (mut found, mut why) = (Vec::new(), None);
        for shapes in &sizes {
            let of = Wanted { shapes, ..*wanted };
            match self.best_to_pay(&of) {
                Ok((resource, shape, slot)) => {
                    found.extend(self.candidate(search, place(resource, shape.nodes, slot)));
                }
                Err(reason) => why = Some(reason),
            }
        }
        if let Some(best) = ranked(found, search.ask.weights).into_iter().next() {
            return Ok(best);
        }
        if let Some(reason) = why.filter(|reason| *reason != Reason::NoCapacityInWindow) {
            return Err(reason);
        }
        let requests = self.requests(wanted);
        self.plan.resources.share_work(requests.len());
        let found = requests.into_iter().find_map(|(resource, request)| {
            let paying = self.paying(resource, wanted, &request)?;
            let start = self.plan.resources.would_start(resource, search.now, &paying)?;
            self.candidate(search, place(resource, request.nodes, request.slot(start)))
        });
        self.plan.resources.share_work(1);
        found.ok_or(Reason::NoCapacityInWindow)
    }

    /// The same nodes for as long before or after the window: the slots that a refusal would name.
    fn elsewhere(
        &mut self,
        search: &QuoteContext,
        wanted: &Wanted<'_>,
        requests: &[(usize, Request)],
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (resource, request) in requests {
            let only = [(*resource, *request)];
            for alternative in self.alternatives(wanted, &only, search.now) {
                let slot = alternative.slot;
                let (before, after) = (request.ready - slot.start, slot.end - request.deadline);
                let kind = if before >= after {
                    OfferKind::Earlier
                } else {
                    OfferKind::Later
                };
                let place = CandidatePlacement {
                    resource: *resource,
                    nodes: request.nodes,
                    duration: request.duration,
                    window: slot,
                    start: slot.start,
                    kind,
                    deviation: ratio(before.max(after), request.duration),
                };
                found.extend(self.candidate(search, place));
            }
        }
        found
    }

    /// The same nodes in the same window for the longest that there is, where the provider tells that.
    fn shorter(&mut self, search: &QuoteContext, requests: &[(usize, Request)]) -> Vec<Candidate> {
        let told = self.settings.refusals;
        if !told.relaxations {
            return Vec::new();
        }
        let bounds = Bounds {
            times: Interval::new(search.now, search.now + self.settings.horizon),
            nodes_min: 1,
            duration_min: 1,
        };
        let mut found = Vec::new();
        for (resource, request) in requests {
            let Some(of) = self.plan.resources.get(*resource) else {
                continue;
            };
            let relaxations = of.schedule.relaxations(request, &bounds);
            let duration = relaxations.into_iter().find_map(|relaxation| {
                match relaxation.coarsened(told.coarsen, 1, &bounds)? {
                    Relaxation::Duration(duration) => Some(duration),
                    _ => None,
                }
            });
            let Some(duration) = duration else { continue };
            let window = request.window_at(search.now);
            let Some(start) = of.schedule.tree().earliest_fit(request.nodes, duration, window) else {
                continue;
            };
            let place = CandidatePlacement {
                resource: *resource,
                nodes: request.nodes,
                duration,
                window: request.window(),
                start,
                kind: OfferKind::Shorter,
                deviation: ratio(request.duration - duration, request.duration),
            };
            let told = self.told_start(&place);
            found
                .extend(told.and_then(|start| self.candidate(search, CandidatePlacement { start, ..place })));
        }
        found
    }

    /// The possible offer at a place: its expiry, its hold and its price.
    pub(in crate::planner) fn candidate(
        &self,
        search: &QuoteContext,
        place: CandidatePlacement,
    ) -> Option<Candidate> {
        let (start, expires) = self.standing(search, &place)?;
        if place.kind != OfferKind::Exact && !self.is_told(search, &place, (start, expires)) {
            return None;
        }
        let request = Request {
            id: search.number,
            submitted: search.now,
            duration: place.duration,
            nodes: place.nodes,
            ready: place.window.start,
            deadline: place.window.end,
            revenue: 0,
        };
        let of = self.plan.resources.get(place.resource)?;
        let slot = Interval::of(start, place.duration);
        let payer = Payer::of(&search.ask.proposal);
        let priced = Priced::of(payer, &request, slot, place.window);
        let charges = self.charges(search, self.price(place.resource, priced));
        let terms = OfferTerms {
            resource: of.resource.name.clone(),
            slots: Slots::one((slot, place.nodes)),
            ready: place.window.start,
            deadline: place.window.end,
            kept_until: start.max(expires) + place.duration,
            deviation: place.deviation,
            kind: place.kind,
            confidence: None,
            price: charges.price,
            difference: charges.difference,
            fee: charges.fee,
            promise: None,
        };
        Some(Candidate { terms, expires })
    }

    /// The price for its party of a candidate with this price by the list.
    pub(in crate::planner) fn charges(&self, search: &QuoteContext, price: Option<Money>) -> Charges {
        let replaced = search.replaced.map(|lifted| &lifted.agreement);
        let (price, before, fee) = match (&search.own, replaced) {
            // A change that its party has not asked for costs no fee.
            (Some(own), _) => (price.map(|price| own.of(price)), own.before, None),
            (None, Some(old)) => {
                let fee = price.and_then(|price| self.change_fee(old, price));
                (price, old.price, fee)
            }
            (None, None) => (price, None, None),
        };
        let difference = price.zip(before);
        Charges {
            price,
            difference: difference.and_then(|(price, before)| difference_of(price, before)),
            fee,
        }
    }

    /// Whether times that were not asked for may be shown: in the provider's steps only. An offer that stands shorter
    /// than others would show where free time ends.
    fn is_told(
        &self,
        search: &QuoteContext,
        place: &CandidatePlacement,
        (start, expires): (Time, Time),
    ) -> bool {
        let step = self.settings.refusals.coarsen;
        let full = search.until.min(place.window.end - place.duration);
        step == 1 || (start.seconds() % step == 0 && expires == full)
    }

    /// The first start from a free one on that may be told, where there is room.
    pub(in crate::planner) fn told_start(&self, place: &CandidatePlacement) -> Option<Time> {
        let step = self.settings.refusals.coarsen;
        let start = Time(
            place.start.seconds().div_euclid(step) * step
                + if place.start.seconds().rem_euclid(step) > 0 {
                    step
                } else {
                    0
                },
        );
        let slot = Interval::of(start, place.duration);
        let of = self.plan.resources.get(place.resource)?;
        let is_free = start == place.start
            || (place.window.contains(slot) && of.schedule.tree().min_free(slot) >= place.nodes);
        is_free.then_some(start)
    }

    /// Where an offer would start and until when it can stand: a slot that begins before the offer lapses is kept for as
    /// long as it takes to begin it at the last moment. Where there is no room for that, it begins later, or stands
    /// shorter.
    fn standing(&self, search: &QuoteContext, place: &CandidatePlacement) -> Option<(Time, Time)> {
        let latest = search.until.min(place.window.end - place.duration);
        if latest - search.now < 1 {
            return None;
        }
        if place.start >= latest {
            return Some((place.start, latest));
        }
        let tree = self.plan.resources.get(place.resource)?.schedule.tree();
        let free =
            |until: Time| tree.min_free(Interval::new(place.start, until + place.duration)) >= place.nodes;
        if free(latest) {
            return Some((place.start, latest));
        }
        let later = Interval::new(latest, place.window.end);
        if let Some(start) = tree.earliest_fit(place.nodes, place.duration, later) {
            return Some((start, latest));
        }
        let (mut short, mut long) = (place.start.max(search.now), latest);
        if !free(short) {
            return None;
        }
        while long - short > 1 {
            let middle = Time(i64::midpoint(short.seconds(), long.seconds()));
            if free(middle) {
                short = middle;
            } else {
                long = middle;
            }
        }
        (short - search.now >= HOLD_MIN).then_some((place.start, short))
    }
}

fn affordable(search: &QuoteContext, candidate: &Candidate) -> bool {
    match (search.ask.proposal.budget, candidate.terms.price) {
        (Some(budget), Some(price)) => {
            budget.currency == price.currency && micros(candidate) <= budget.micros
        }
        _ => true,
    }
}

/// By how much one price is more than another.
pub(in crate::planner) fn difference_of(price: Money, before: Money) -> Option<Money> {
    let more = price.micros.checked_sub(before.micros)?;
    (price.currency == before.currency).then(|| Money::new(more, price.currency))
}

pub(in crate::planner) fn ratio(part: Seconds, whole: Seconds) -> f64 {
    as_number(part) / as_number(whole)
}

#[cfg(test)]
mod tests;
