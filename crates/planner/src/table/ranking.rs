//! The candidates that are worth offering: the ones that no other beats, the best first.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use domain::agreement::{Money, OfferKind};
use scheduler::prediction::whole_as_real;

use crate::table::candidates::{Candidate, PHI_EPSILON, Weights};

/// The most counter offers in one answer: a list that a person can choose from.
const CANDIDATES_MAX: usize = 6;

/// At most six of the candidates that no other one dominates. A candidate dominates another if it does as much of the work, is no
/// further away and no dearer, and nearer or cheaper: a shorter slot is cheaper because it is less. The best by the requester's weights comes first, or the nearest where it has no
/// weights. Where nothing is priced, deviation alone would leave a single candidate, so it then decides only among
/// candidates of one kind. O(n²).
pub fn rank_best_candidates(candidates: &[Candidate], weights: Weights) -> Vec<Candidate> {
    let mut best = rank_candidates(undominated_to_rank(candidates), weights);
    best.truncate(CANDIDATES_MAX);
    best
}

/// The price of a candidate with its fee, in millionths.
pub(crate) fn price_to_rank(candidate: &Candidate) -> i64 {
    let micros = |money: Option<Money>| money.map_or(0, |money| money.micros);
    micros(candidate.terms.price).saturating_add(micros(candidate.terms.fee))
}

/// How far a candidate lies from the request, and how far its domain is to be doubted.
fn distance(candidate: &Candidate) -> f64 {
    candidate.terms.deviation + candidate.doubt
}

/// The part of the asked work that a candidate does: another size takes as long as the work needs, and only a shorter slot does less.
fn work_to_rank(candidate: &Candidate) -> f64 {
    match candidate.terms.kind {
        OfferKind::Shorter => 1.0 - candidate.terms.deviation,
        _ => 1.0,
    }
}

/// The price of a candidate for all of the work at the same rate.
fn price_for_equal_work(candidate: &Candidate) -> f64 {
    whole_as_real(price_to_rank(candidate)) / work_to_rank(candidate).max(f64::MIN_POSITIVE)
}

fn undominated_to_rank(all: &[Candidate]) -> Vec<Candidate> {
    let mut candidates = all.to_vec();
    let priced = candidates.iter().any(|candidate| candidate.terms.price.is_some());
    let dominates = |one: &Candidate, other: &Candidate| {
        let nearer = distance(one).total_cmp(&distance(other));
        let cheaper = price_to_rank(one).cmp(&price_to_rank(other));
        let comparable = priced || one.terms.kind == other.terms.kind;
        let does_as_much = work_to_rank(one) + PHI_EPSILON >= work_to_rank(other);
        comparable && does_as_much && nearer.is_le() && cheaper.is_le() && (nearer.is_lt() || cheaper.is_lt())
    };
    candidates.retain(|one| !all.iter().any(|other| dominates(other, one)));
    // The same on another resource is nothing else to the requester.
    let mut seen = BTreeSet::new();
    candidates.retain(|candidate| {
        seen.insert((
            candidate.terms.placement().start,
            candidate.terms.duration(),
            candidate.terms.nodes(),
        ))
    });
    candidates
}

/// The best of the candidates by the requester's weights, the nearest first where it has none.
pub(crate) fn rank_candidates(candidates: Vec<Candidate>, weights: Weights) -> Vec<Candidate> {
    let scales = [
        (
            weights.start,
            RankingScale::of(&candidates, |each| {
                whole_as_real(each.terms.placement().start.seconds())
            }),
        ),
        (
            weights.size,
            RankingScale::of(&candidates, |each| -f64::from(each.terms.nodes())),
        ),
        (
            weights.duration,
            RankingScale::of(&candidates, |each| whole_as_real(each.terms.duration())),
        ),
        (weights.price, RankingScale::of(&candidates, price_for_equal_work)),
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
        let by_distance = distance(one).total_cmp(&distance(other));
        let by_price = price_for_equal_work(one).total_cmp(&price_for_equal_work(other));
        let by_start = one.terms.placement().start.cmp(&other.terms.placement().start);
        let orders = [by_score, by_distance, by_price, by_start];
        orders.into_iter().fold(Ordering::Equal, Ordering::then)
    });
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A criterion over some candidates, from 0 for the best of them to 1 for the worst.
struct RankingScale {
    value: fn(&Candidate) -> f64,
    best: f64,
    worst: f64,
}

impl RankingScale {
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
