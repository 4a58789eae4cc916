//! What could be offered for a request: the request itself where it fits, and else the nearest that nobody dominates.
//! Nothing here is stored or kept; the plan is read, and stands afterwards as it stood.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use scheduler::refusal::{Bounds, Relaxation};
use scheduler::{Interval, Reason, Request, Seconds, Time};
use uuid::Uuid;

use super::admit::Wanted;
use super::decide::Decider;
use super::pricing::Priced;
use super::replace::Lifted;
use super::{Error, Lost, Proposal, Refusal};
use crate::agreement::{Money, OfferKind, OfferTerms, Shape};
use crate::clock::second_of;

/// The most counter offers in one answer: a list that a person can choose from.
const CANDIDATES_MAX: usize = 6;

/// A hold shorter than this cannot be used over a network.
const HOLD_MIN: Seconds = 2;

/// Deviations that differ by less are the same: they are ratios of whole numbers of seconds.
const PHI_EPSILON: f64 = 1e-9;

/// A request for offers.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The negotiation that it is made in.
    pub negotiation: Uuid,
    /// What is asked for.
    pub proposal: Proposal,
    /// What counts in ranking counter offers.
    pub weights: Weights,
}

/// Weights of what a requester prefers, each from 0 on.
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

/// What could be offered, the best first; or why nothing can.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// At most six.
    pub candidates: Vec<Candidate>,
    /// Where there are none.
    pub refusal: Option<Refusal>,
}

/// Something that could be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What it amounts to.
    pub terms: OfferTerms,
    /// Until when it can be offered.
    pub expires: Time,
}

/// What candidates are searched with.
struct Search<'a> {
    ask: &'a Ask,
    wanted: Wanted<'a>,
    now: Time,
    /// When an offer made now lapses at the latest.
    until: Time,
    phi_max: f64,
    replaced: Option<&'a Lifted>,
}

/// Where and how a candidate would lie.
#[derive(Clone, Copy)]
struct Place {
    resource: usize,
    nodes: u32,
    duration: Seconds,
    window: Interval,
    start: Time,
    kind: OfferKind,
    deviation: f64,
}

impl Quote {
    fn refused(refusal: Refusal) -> Self {
        Self {
            candidates: Vec::new(),
            refusal: Some(refusal),
        }
    }
}

impl Decider<'_> {
    /// What could be offered for a request.
    pub(super) fn quote(&mut self, ask: &Ask) -> Result<Quote, Error> {
        let talks = self.plan.table.get(ask.negotiation).ok_or(Error::NotFound)?;
        let instance = talks.instance.clone();
        if let Err(refusal) = self.probe(&instance.party) {
            return Ok(Quote::refused(refusal));
        }
        let Ok(lifted) = instance.agreement.map(|id| self.lift(id)).transpose() else {
            return Err(Error::Lost(Lost::Replaced));
        };
        let quote = self
            .quote_without(ask, instance.expires, lifted.as_ref())
            .unwrap_or_else(Quote::refused);
        if let Some(lifted) = lifted {
            self.put_back(&lifted);
        }
        Ok(quote)
    }

    /// The same with the agreement that would be replaced out of the plan.
    fn quote_without(
        &mut self,
        ask: &Ask,
        expires: Time,
        replaced: Option<&Lifted>,
    ) -> Result<Quote, Refusal> {
        let now = second_of(self.now);
        let mut proposal = ask.proposal.clone();
        self.within_quota(&mut proposal, now, replaced)?;
        let window = self.window(&proposal, now)?;
        let provider = self.settings.refusals.alternatives_phi;
        let most = proposal.deviation_max.map_or(provider, |own| own.min(provider));
        let search = Search {
            ask,
            wanted: Wanted::of(&proposal, self.plan.next_number(), window, now),
            now,
            until: (now + self.settings.negotiation.hold).min(expires),
            phi_max: f64::from(most.numerator) / f64::from(most.denominator),
            replaced,
        };
        self.search(&search)
    }

    fn search(&mut self, search: &Search) -> Result<Quote, Refusal> {
        let why = match self.exact(search) {
            Ok(exact) => {
                return Ok(Quote {
                    candidates: vec![exact],
                    refusal: None,
                });
            }
            Err(why) => why,
        };
        let mut candidates = Vec::new();
        if why == Reason::NoCapacityInWindow {
            let requests = self.requests(&search.wanted);
            let mut found = self.elsewhere(search, &requests);
            found.extend(self.shorter(search, &requests));
            found.retain(|candidate| {
                candidate.terms.deviation <= search.phi_max + PHI_EPSILON && affordable(search, candidate)
            });
            candidates = ranked(undominated(found), search.ask.weights);
            candidates.truncate(CANDIDATES_MAX);
        }
        if candidates.is_empty() {
            return Err(self.refused(&search.wanted, why, search.now));
        }
        Ok(Quote {
            candidates,
            refusal: None,
        })
    }

    /// The request itself, with the size and on the resource that are best as the plans stand, of several sizes the one
    /// that its requester prefers; where others have to move, only if it fits nowhere as the plans stand.
    fn exact(&mut self, search: &Search) -> Result<Candidate, Reason> {
        let wanted = &search.wanted;
        let payable = wanted.payer.budget.is_some() && self.settings.pricing.is_some();
        let place = |resource, nodes, slot: Interval| Place {
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
            let best = match self.best(&of) {
                Ok(_) if payable => self.best_payable(&of),
                best => best,
            };
            match best {
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
        for (resource, request) in self.requests(wanted) {
            let load = self.load(resource, wanted.window);
            let Some(ready) = self.affordable_from(resource, load, wanted.payer, &request, wanted.window)
            else {
                continue;
            };
            let paying = Request { ready, ..request };
            let Some(start) = self.plan.resources.would_start(resource, search.now, &paying) else {
                continue;
            };
            if let Some(candidate) =
                self.candidate(search, place(resource, request.nodes, request.slot(start)))
            {
                return Ok(candidate);
            }
        }
        Err(Reason::NoCapacityInWindow)
    }

    /// The same nodes for as long before or after the window: the slots that a refusal would name.
    fn elsewhere(&mut self, search: &Search, requests: &[(usize, Request)]) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (resource, request) in requests {
            let only = [(*resource, *request)];
            for alternative in self.alternatives(&search.wanted, &only, search.now) {
                let slot = alternative.slot;
                let (before, after) = (request.ready - slot.start, slot.end - request.deadline);
                let kind = if before >= after {
                    OfferKind::Earlier
                } else {
                    OfferKind::Later
                };
                let place = Place {
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
    fn shorter(&mut self, search: &Search, requests: &[(usize, Request)]) -> Vec<Candidate> {
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
            let place = Place {
                resource: *resource,
                nodes: request.nodes,
                duration,
                window: request.window(),
                start,
                kind: OfferKind::Shorter,
                deviation: ratio(request.duration - duration, request.duration),
            };
            found.extend(self.candidate(search, place));
        }
        found
    }

    /// What can be offered at a place: until when, what is kept meanwhile, and for how much.
    fn candidate(&self, search: &Search, place: Place) -> Option<Candidate> {
        let (start, expires) = self.standing(search, &place)?;
        let request = Request {
            id: search.wanted.number,
            submitted: search.now,
            duration: place.duration,
            nodes: place.nodes,
            ready: place.window.start,
            deadline: place.window.end,
            revenue: 0,
        };
        let of = self.plan.resources.get(place.resource)?;
        let priced = Priced {
            party: &search.ask.proposal.party,
            request: &request,
            slot: Interval::of(start, place.duration),
            window: place.window,
        };
        let replaced = search.replaced.map(|lifted| &lifted.agreement);
        let price = self.price(place.resource, priced);
        let terms = OfferTerms {
            resource: of.resource.name.clone(),
            nodes: place.nodes,
            duration: place.duration,
            ready: place.window.start,
            deadline: place.window.end,
            start,
            kept_until: start.max(expires) + place.duration,
            deviation: place.deviation,
            kind: place.kind,
            confidence: None,
            price,
            difference: replaced.and_then(|agreement| difference(price?, agreement.price?)),
            fee: replaced.and_then(|agreement| self.change_fee(agreement, price?)),
        };
        Some(Candidate { terms, expires })
    }

    /// Where an offer would start and until when it can stand: a slot that begins before the offer lapses is kept for as
    /// long as it takes to begin it at the last moment. Where there is no room for that, it begins later, or stands
    /// shorter.
    fn standing(&self, search: &Search, place: &Place) -> Option<(Time, Time)> {
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

fn affordable(search: &Search, candidate: &Candidate) -> bool {
    match (search.ask.proposal.budget, candidate.terms.price) {
        (Some(budget), Some(price)) => {
            budget.currency == price.currency && micros(candidate) <= budget.micros
        }
        _ => true,
    }
}

/// By how much one price is more than another.
fn difference(price: Money, before: Money) -> Option<Money> {
    let more = price.micros.checked_sub(before.micros)?;
    (price.currency == before.currency).then(|| Money::new(more, price.currency))
}

/// What a candidate costs with its fee, in millionths.
fn micros(candidate: &Candidate) -> i64 {
    let of = |money: Option<Money>| money.map_or(0, |money| money.micros);
    of(candidate.terms.price).saturating_add(of(candidate.terms.fee))
}

/// The candidates that no other one dominates, being no further away and no dearer and one of the two less. Where
/// nothing is priced deviation alone would leave a single one, so it then decides among those of a kind only.
fn undominated(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let priced = candidates.iter().any(|of| of.terms.price.is_some());
    let dominates = |one: &Candidate, other: &Candidate| {
        let nearer = one.terms.deviation.total_cmp(&other.terms.deviation);
        let cheaper = micros(one).cmp(&micros(other));
        let comparable = priced || one.terms.kind == other.terms.kind;
        comparable && nearer.is_le() && cheaper.is_le() && (nearer.is_lt() || cheaper.is_lt())
    };
    let all = candidates.clone();
    candidates.retain(|one| !all.iter().any(|other| dominates(other, one)));
    // The same on another resource is nothing else to the requester.
    let mut seen = BTreeSet::new();
    candidates.retain(|of| seen.insert((of.terms.start, of.terms.duration, of.terms.nodes)));
    candidates
}

/// The best of the candidates by the requester's weights, the nearest first where it has none.
fn ranked(candidates: Vec<Candidate>, weights: Weights) -> Vec<Candidate> {
    let scales = [
        (
            weights.start,
            Scale::of(&candidates, |of| as_number(of.terms.start.seconds())),
        ),
        (
            weights.size,
            Scale::of(&candidates, |of| -f64::from(of.terms.nodes)),
        ),
        (
            weights.duration,
            Scale::of(&candidates, |of| as_number(of.terms.duration)),
        ),
        (weights.price, Scale::of(&candidates, |of| as_number(micros(of)))),
    ];
    let mut scored: Vec<(f64, Candidate)> = candidates
        .into_iter()
        .map(|candidate| {
            let score = scales
                .iter()
                .map(|(weight, scale)| weight * scale.place(&candidate))
                .sum();
            (score, candidate)
        })
        .collect();
    scored.sort_by(|(score, one), (other_score, other)| {
        let by_score = score.total_cmp(other_score);
        let by_distance = one.terms.deviation.total_cmp(&other.terms.deviation);
        let by_price = micros(one).cmp(&micros(other));
        let by_start = one.terms.start.cmp(&other.terms.start);
        let orders = [by_score, by_distance, by_price, by_start];
        orders.into_iter().fold(Ordering::Equal, Ordering::then)
    });
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A criterion over some candidates, from 0 for the best of them to 1 for the worst.
struct Scale {
    value: fn(&Candidate) -> f64,
    best: f64,
    worst: f64,
}

impl Scale {
    fn of(candidates: &[Candidate], value: fn(&Candidate) -> f64) -> Self {
        let values = candidates.iter().map(value);
        Self {
            value,
            best: values.clone().fold(f64::INFINITY, f64::min),
            worst: values.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    fn place(&self, candidate: &Candidate) -> f64 {
        let width = self.worst - self.best;
        if width > 0.0 {
            ((self.value)(candidate) - self.best) / width
        } else {
            0.0
        }
    }
}

fn ratio(part: Seconds, whole: Seconds) -> f64 {
    as_number(part) / as_number(whole)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds of a plan and sums of money are far below 2^53, and only ranks are made of them"
)]
fn as_number(value: i64) -> f64 {
    value as f64
}
