//! The protocol of paper 002, section 4.1: the requests of the users, and the provider's earnings.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use scheduler::moldable::{Shapes, Sizes};
use scheduler::preemptive::{Piece, Preemption};
use scheduler::pricing::{Price, Tariff};
use scheduler::{Fraction, Interval, Seconds, Time};

use crate::adaptive_plan::{AdaptiveDecision, AdaptivePlan, AdaptiveRequest, Policy};
use crate::random::Random;
use crate::workload::{Job, Window};

/// Requests of up to this many nodes are rigid in size.
const RIGID_UP_TO: u32 = 10;
/// R^min in percent of R^max.
const LEAST_PERCENT: u32 = 80;
/// How often a request pays three times as much.
const THREEFOLD: f64 = 0.2;
/// How often a request may be cut. The paper's table says 20 %, its text 60 %.
const PREEMPTIVE: f64 = 0.6;
/// Run times from submission to deadline.
const DEADLINE_FACTOR: Seconds = 5;
/// The extra time of the deadline of a request of the plain profile: three days.
const PLAIN_EXTRA: Seconds = 3 * 86_400;
/// Shorter requests are not cut.
const CUT_FROM: Seconds = 3_600;
/// Ten pieces, a tenth of the work each, of independent sizes.
const PIECES: u32 = 10;
const PIECE_PPM: u32 = 100_000;

/// The stream of draws of these experiments.
const STREAM: u64 = 0x0ADA;

/// The request of the user of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaptiveAsk {
    /// Number of the submission.
    pub id: u64,
    /// Its time, at the load of the workload.
    pub submit: Seconds,
    /// T^min.
    pub fastest: Seconds,
    /// R^min to R^max.
    pub nodes: RangeInclusive<u32>,
    /// A number from 0 to 1 that was drawn for its profile.
    pub drawn: f64,
    /// D, from the submission.
    pub deadline: Seconds,
    /// Whether it may be cut.
    pub preemptive: bool,
}

/// How requests are planned and which of their freedoms are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Whether the waiting ones are placed again.
    pub policy: Policy,
    /// Whether sizes may shrink.
    pub moldable: bool,
    /// Whether work may be cut.
    pub preemptive: bool,
}

/// The result of a window in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdaptiveOutcome {
    /// Paid by requests that were not allowed to be cut.
    pub profit_plain: f64,
    /// Paid by the preemptive ones, before any incentive.
    pub profit_preemptive: f64,
    /// Mean seconds from submission to completion.
    pub completion: f64,
    /// Requests refused.
    pub refused: usize,
    /// Accepted requests that could have shrunk.
    pub moldable: usize,
    /// Those of them that did.
    pub shrunk: usize,
    /// How far those shrank, in percent of how far they could have, summed up.
    pub modification: f64,
}

impl AdaptiveOutcome {
    /// All that was paid, less an incentive in percent for allowing cuts.
    pub fn profit(&self, incentive_percent: f64) -> f64 {
        self.profit_plain + self.profit_preemptive * (1.0 - incentive_percent / 100.0)
    }
}

/// The requests of the users of a window.
pub fn adaptive_asks(seed: u64, window: &Window) -> Vec<AdaptiveAsk> {
    let ask = |(id, job): (u64, &Job)| {
        let mut random = Random::new(seed, &[STREAM, window.index as u64, id]);
        let drawn = random.unit();
        let extra = if drawn < THREEFOLD { 0 } else { PLAIN_EXTRA };
        let least = if job.nodes > RIGID_UP_TO {
            (job.nodes * LEAST_PERCENT).div_ceil(100)
        } else {
            job.nodes
        };
        AdaptiveAsk {
            id,
            submit: job.submit,
            fastest: job.run,
            nodes: least..=job.nodes,
            drawn,
            deadline: DEADLINE_FACTOR * job.run + extra,
            preemptive: random.chance(PREEMPTIVE),
        }
    };
    (0..).zip(&window.jobs).map(ask).collect()
}

impl AdaptiveAsk {
    /// The request at a load, with the freedoms that the mode uses. `None` where its run time has no shape, which a filter of a
    /// minute or more rules out.
    fn request(&self, mode: Mode, load: u32) -> Option<AdaptiveRequest> {
        let (least, most) = (*self.nodes.start(), *self.nodes.end());
        let least = if mode.moldable { least } else { most };
        let shapes = Shapes::scaled(self.fastest, least..=most, &Sizes::Every).ok()?;
        let cuts = if mode.preemptive && self.preemptive && self.fastest >= CUT_FROM {
            Preemption::new(PIECES, PIECE_PPM, true)?
        } else {
            Preemption::NONE
        };
        let submitted = Time(self.submit * 100 / Seconds::from(load));
        AdaptiveRequest::new(self.id, Interval::of(submitted, self.deadline), shapes, cuts)
    }
}

/// An accepted request.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedAsk<'a> {
    /// The user's.
    pub ask: &'a AdaptiveAsk,
    /// With the freedoms that were used.
    pub request: AdaptiveRequest,
    /// Where it ran.
    pub pieces: Vec<Piece>,
    /// Node-seconds of its window that were taken before it.
    pub busy_area: u64,
}

/// The accepted requests of a window on `capacity` nodes.
pub fn place_adaptive_asks(capacity: u32, asks: &[AdaptiveAsk], mode: Mode, load: u32) -> Vec<PlacedAsk<'_>> {
    let mut plan = AdaptivePlan::new(capacity, mode.policy);
    let mut accepted: BTreeMap<u64, PlacedAsk<'_>> = BTreeMap::new();
    for ask in asks {
        let Some(request) = ask.request(mode, load) else {
            continue;
        };
        let busy_area = plan.slots().busy_area(request.window());
        if let AdaptiveDecision::Accepted { pieces, moved } =
            plan.submit(request.window().start, request.clone())
        {
            let placed = PlacedAsk {
                ask,
                request,
                pieces,
                busy_area,
            };
            accepted.insert(ask.id, placed);
            for id in moved {
                if let Some(placed) = accepted.get_mut(&id) {
                    placed.pieces = plan.pieces(id).to_vec();
                }
            }
        }
    }
    accepted.into_values().collect()
}

/// Plays the requests of a window on `capacity` nodes.
pub fn play_adaptive_asks(capacity: u32, asks: &[AdaptiveAsk], mode: Mode, load: u32) -> AdaptiveOutcome {
    let accepted = place_adaptive_asks(capacity, asks, mode, load);
    let mut outcome = AdaptiveOutcome {
        refused: asks.len() - accepted.len(),
        ..AdaptiveOutcome::default()
    };
    for placed in &accepted {
        outcome.add(placed);
    }
    outcome.completion /= accepted.len().max(1) as f64;
    outcome
}

impl AdaptiveOutcome {
    fn add(&mut self, placed: &PlacedAsk<'_>) {
        let PlacedAsk {
            ask, request, pieces, ..
        } = placed;
        let usage = request.usage(request.window().start, pieces);
        let tariff = Tariff {
            profile: Fraction::percent(if ask.drawn < THREEFOLD { 300 } else { 100 }),
            ..Tariff::PUBLISHED
        };
        // Amounts of a window are far from the largest.
        let price = tariff.price(&usage).unwrap_or_default();
        let paid = price.units() as f64 / Price::WHOLE as f64;
        if usage.preemptive {
            self.profit_preemptive += paid;
        } else {
            self.profit_plain += paid;
        }
        self.completion += usage.completion as f64;
        if request.shapes().len() <= 1 {
            return;
        }
        self.moldable += 1;
        let (least, most) = (*ask.nodes.start(), *ask.nodes.end());
        if pieces.iter().any(|piece| piece.nodes < most) {
            self.shrunk += 1;
            let work: f64 = pieces.iter().map(|piece| f64::from(piece.work_ppm)).sum();
            let fewer = |piece: &Piece| f64::from(most - piece.nodes) * f64::from(piece.work_ppm);
            let fewer = pieces.iter().map(fewer).sum::<f64>() / work.max(1.0);
            self.modification += 100.0 * fewer / f64::from(most - least);
        }
    }
}
