//! A list of offers with deadlines on three resources of different speed, under the earliest completion and under the least
//! work lost: the planner itself, in virtual time, with all its moves.
//!
//! The list is that of paper 003's experiments, only that offers ask for one to 32 nodes of 64: sizes of up to 36 hours, ready up
//! to two weeks after the submission, deadlines up to twenty hours later than the reference rate needs, or the rate of 0.6.
//! `BESPEAK_TEST_SPEEDS=OFFERS,SEEDS` plays longer lists and prints a table (`docs/concepts/evaluation.md`).

#![expect(
    clippy::cast_precision_loss,
    reason = "seconds and counts of a list of requests"
)]

use advisor::random::Random;
use advisor::statistics::Summary;
use domain::resources::Scaling;
use scheduler::domain::Objective;
use scheduler::{Fraction, Seconds};
use uuid::Uuid;

use super::harness::{Domain, proposal, rated};
use crate::commands::BeginDue;
use crate::settings::{ImprovementSettings, Refusals};
use crate::{Request, Settings};

const HOUR: f64 = 3_600.0;
const DAY: f64 = 24.0 * HOUR;
const HORIZON: Seconds = 40 * 86_400;
const RATES: [u32; 3] = [200_000, 600_000, 1_000_000];
const NODES: u32 = 64;
const SIZES: [u32; 10] = [1, 1, 2, 4, 4, 8, 8, 16, 16, 32];
/// The mean of the seconds of work, and of the nodes.
const WORK_MEAN: f64 = 5.6 * HOUR;
const SIZE_MEAN: f64 = 9.2;

/// A list of offers.
#[derive(Debug, Clone, Copy)]
struct List {
    /// Offered work in percent of what the nodes can do.
    load: u32,
    /// The rate that deadlines leave time for.
    rate: f64,
    offers: usize,
}

/// How a list went: what was accepted of the work and of the offers in percent, the mean hours from ready time to start, and the
/// mean time from there to completion in multiples of the work.
#[derive(Debug, Clone, Copy, Default)]
struct ListOutcome {
    work: f64,
    offers: f64,
    waiting: f64,
    stretch: f64,
}

#[expect(clippy::cast_possible_truncation, reason = "weeks in seconds fit")]
fn whole(seconds: f64) -> Seconds {
    seconds.round() as Seconds
}

/// An offer with its submission and its work on a node.
fn offer(list: &List, random: &mut Random, now: &mut f64) -> (Seconds, Request) {
    let all: f64 = RATES.map(|rate| f64::from(rate) / 1e6).iter().sum::<f64>() * f64::from(NODES);
    *now += random.exponential(WORK_MEAN * SIZE_MEAN / (f64::from(list.load) / 100.0 * all));
    let ready = *now + random.uniform(60.0, 14.0 * DAY);
    let work = if random.chance(0.8) {
        random.uniform(1.0, 4.0 * HOUR)
    } else {
        random.uniform(4.0 * HOUR, 36.0 * HOUR)
    };
    let deadline = ready + work / list.rate + random.uniform(0.0, 20.0 * HOUR);
    let nodes = SIZES[random.below(SIZES.len())];
    let offer = Request {
        scaling: Scaling::ReferenceRate,
        ..proposal(nodes, whole(work).max(1), (whole(ready), whole(deadline) + 1))
    };
    (whole(*now), offer)
}

/// Plays a list: every offer at its time, with every slot begun and ended when it is due. The offers of the first two weeks, or
/// of half of a shorter list, fill the plan and are not counted.
fn play(list: &List, objective: Objective, seed: u64) -> ListOutcome {
    let resources = RATES.map(|rate| rated(&format!("rate {rate}"), NODES, rate));
    let mut settings = Settings::new(resources.to_vec(), HORIZON);
    settings.objective = objective;
    settings.improving = ImprovementSettings {
        idle: objective == Objective::EarliestCompletion,
        ..ImprovementSettings::default()
    };
    // A refusal need not be explained.
    settings.refusals = Refusals {
        alternatives_phi: Fraction::percent(0),
        relaxations: false,
        availability: false,
        coarsen: 1,
    };
    let mut domain = Domain::with(settings);
    let mut random = Random::new(seed, &[0x3_5BEE, list.load.into()]);
    let mut now = 0.0;
    let all: Vec<_> = (0..list.offers)
        .map(|_| offer(list, &mut random, &mut now))
        .collect();
    let counted_from = whole((14.0 * DAY).min(now / 2.0));
    let mut accepted: Vec<(Uuid, Seconds)> = Vec::new();
    let (mut offered, mut taken, mut count) = (0.0, 0.0, 0.0);
    for (at, offer) in all {
        pass(&mut domain, at);
        let work = offer.shapes[0].duration;
        let area = work as f64 * f64::from(offer.shapes[0].nodes);
        let placed = domain.place(offer).ok();
        if at < counted_from {
            continue;
        }
        (offered, count) = (offered + area, count + 1.0);
        if let Some(placed) = placed {
            taken += area;
            accepted.push((placed.agreement.id, work));
        }
    }
    pass(&mut domain, whole(now) + HORIZON);
    let (mut waiting, mut stretch) = (0.0, 0.0);
    for (id, work) in &accepted {
        let past_agreement = &domain.over[id];
        let slot = past_agreement.placement();
        assert!(past_agreement.window().contains(slot), "{past_agreement:?}");
        waiting += (slot.start - past_agreement.ready) as f64 / HOUR;
        stretch += (slot.end - past_agreement.ready) as f64 / *work as f64;
    }
    let accepted = accepted.len() as f64;
    ListOutcome {
        work: 100.0 * taken / offered,
        offers: 100.0 * accepted / count,
        waiting: waiting / accepted.max(1.0),
        stretch: stretch / accepted.max(1.0),
    }
}

/// Lets time pass, with everything that is due.
fn pass(domain: &mut Domain, until: Seconds) {
    while let Some(due) = domain.state.next_due().filter(|due| due.seconds() <= until) {
        domain.now = domain.now.max(due.seconds());
        domain
            .decide(|decider| decider.decide(BeginDue).map(drop))
            .unwrap();
    }
    domain.now = until;
}

/// The outcomes of some lists that differ by their seeds.
fn outcomes(list: &List, objective: Objective, seeds: u64) -> Vec<ListOutcome> {
    (1..=seeds).map(|seed| play(list, objective, seed)).collect()
}

const BOTH: [Objective; 2] = [Objective::EarliestCompletion, Objective::LeastWorkLost];

#[test]
fn more_work_is_accepted_where_least_work_is_lost() {
    let sizes = std::env::var("BESPEAK_TEST_SPEEDS").unwrap_or_default();
    let sizes: Vec<u64> = sizes.split(',').filter_map(|size| size.parse().ok()).collect();
    let offers = sizes
        .first()
        .map_or(500, |offers| usize::try_from(*offers).unwrap());
    let seeds = sizes.get(1).copied().unwrap_or(2);
    println!("{offers} offers, {seeds} seeds: mean ± half of the 95 % interval");
    println!(
        "| load | deadlines | objective | work accepted (%) | offers accepted (%) | waiting (h) | stretch |"
    );
    let cases = [(70, 1.0), (90, 1.0), (110, 1.0), (70, 0.6), (90, 0.6), (110, 0.6)];
    let cases = if sizes.is_empty() {
        &cases[1..2]
    } else {
        &cases[..]
    };
    for (load, rate) in cases.iter().copied() {
        let list = List { load, rate, offers };
        let both = BOTH.map(|objective| outcomes(&list, objective, seeds));
        for (objective, outcomes) in BOTH.iter().zip(&both) {
            let mean_of = |measure: fn(&ListOutcome) -> f64| {
                let Summary { mean, confidence, .. } =
                    Summary::of(&outcomes.iter().map(measure).collect::<Vec<_>>());
                format!("{mean:.2} ± {confidence:.2}")
            };
            let columns = [
                mean_of(|o| o.work),
                mean_of(|o| o.offers),
                mean_of(|o| o.waiting),
                mean_of(|o| o.stretch),
            ];
            println!(
                "| {load} % | rate {rate} | {objective:?} | {} |",
                columns.join(" | ")
            );
        }
        let [earliest, least] = both.map(|each| each.iter().map(|o| o.work).collect::<Vec<_>>());
        let gain = Summary::of_differences(&least, &earliest);
        println!(
            "| {load} % | rate {rate} | gain | {:.2} ± {:.2} | | | |",
            gain.mean, gain.confidence
        );
        assert!(gain.mean > 0.0, "{gain:?}");
    }
}
