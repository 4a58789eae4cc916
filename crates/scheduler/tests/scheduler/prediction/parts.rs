//! The parts of an estimate, their weights, and the ladders that combine them.

use proptest::prelude::*;
use scheduler::Interval;
use scheduler::Time;
use scheduler::prediction::estimate::{
    EstimateOutcome, cpu_free, exec_t_estimation, execution_time, jt, load_factor, rt, trans_t_estimation,
};
use scheduler::prediction::losses::{expected_completion, prediction_loss};
use scheduler::prediction::smoothing::{Method, Parameters};
use scheduler::prediction::{
    BlendedHistory, Distribution, Ladder, LearnedWeight, Learner, Part, Parts, RealDuration, RunLosses, Runs,
    Series, Shares, Smoothing,
};

/// Runs of one application, each with the factor of its load where that is known.
fn base(runs: &[(i64, Option<f64>)]) -> BlendedHistory {
    let mut known = Runs::default();
    for (run, factor) in runs {
        known.learn_loaded(&[0_u8], *run as f64, *factor);
    }
    known.base(&[0]).unwrap()
}

fn parts(base: &BlendedHistory) -> Parts<'_> {
    Parts {
        base,
        speed: 1.0,
        load: None,
        queue: None,
        transfers: 0.0,
        spread: None,
        trust: 0.0,
    }
}

fn whole(seconds: f64) -> RealDuration {
    RealDuration {
        seconds,
        needed: seconds,
        stopped: false,
    }
}

#[test]
fn the_equations_of_the_paper_by_hand() {
    // Algorithm 1, line 8: (100 + 140 + 120) ÷ 3 s.
    let mean = execution_time(vec![100.0, 140.0, 120.0], Vec::new()).unwrap();
    assert!((mean - 120.0).abs() < 1e-12);
    assert_eq!(execution_time(Vec::new(), Vec::new()), None);
    // Line 9, with a smoothing that halves the weight of a sample with each hour: (1 × 0.9 + ½ × 0.6 + ¼ × 0.2) ÷ 1.75 = 1.25 ÷ 1.75 is free.
    let halved = Parameters {
        method: Method::Simple,
        level: 0.5,
        trend: 0.0,
        season: 0.0,
        damping: 0.0,
    };
    let samples = [0.2, 0.6, 0.9].into_iter().zip(0..);
    let series = Series::of(samples.map(|(free, hour)| (Time(hour * 3_600), free)), 3_600);
    let es_cpu = Smoothing::with_parameters(&series, halved);
    let gap = Interval::new(Time(3 * 3_600), Time(5 * 3_600));
    assert!((cpu_free(&es_cpu, gap).unwrap() - 1.25 / 1.75).abs() < 1e-12);
    // Lines 9 and 10 where a quarter of the processors is foreseen to be busy: 120 × (2 − 0.75) s.
    let hours = (0..10).map(|hour| (Time(hour * 3_600), 0.75));
    let es_cpu = Smoothing::fit_with(&Series::of(hours, 3_600), Method::Simple);
    let gap = Interval::new(Time(36_000), Time(43_200));
    let free = cpu_free(&es_cpu, gap).unwrap();
    assert!((free - 0.75).abs() < 1e-12);
    assert!((load_factor(free) - 1.25).abs() < 1e-12);
    assert!((exec_t_estimation(120.0, free) - 150.0).abs() < 1e-9);
    // Equation 1: of eleven executions the last ten count. Nine were short by 20 s, and one was long by 30: (−9 × 20 + 30) ÷ 10 s.
    let outcome = |estimated, real| EstimateOutcome { estimated, real };
    let mut outcomes = vec![outcome(100, 5_000), outcome(130, 100)];
    outcomes.extend([outcome(100, 120); 9]);
    assert_eq!(rt(&outcomes), Some(-15.0));
    assert_eq!(rt(&[]), None);
    // Algorithm 2: 30,000 bytes at 1,000 bytes/s before, 1,250 bytes at 500 bytes/s after, and estimates that were short by 15 s.
    let (prolog, epilog) = (
        trans_t_estimation(30_000, 1_000.0),
        trans_t_estimation(1_250, 500.0),
    );
    assert!((prolog - 30.0).abs() < 1e-9 && (epilog - 2.5).abs() < 1e-9);
    assert!((jt(prolog, 150.0, -15.0, epilog) - 197.5).abs() < 1e-9);
    assert!(
        (jt(prolog, 150.0, 15.0, epilog) - 182.5).abs() < 1e-9,
        "long estimates are kept"
    );
}

#[test]
fn the_parts_add_up_by_hand() {
    // Two runs that took 200 s where half of the processors were free: 133.3 s on free ones.
    let base = base(&[(200, Some(1.5)), (200, Some(1.5))]);
    let (queue, spread) = (
        Distribution::of(vec![(6.0, 1.0)]).unwrap(),
        Distribution::of(vec![(2.0_f64.ln(), 1.0)]).unwrap(),
    );
    let all = Parts {
        speed: 2.0,
        load: Some(1.2),
        queue: Some(&queue),
        transfers: 10.0,
        spread: Some(&spread),
        trust: 30.0,
        ..parts(&base)
    };
    let quantile_of = |shares: [f64; 4]| {
        let [load, trust, transfers, queue] = shares;
        let shares = Shares::new(|part| match part {
            Part::Load => load,
            Part::Trust => trust,
            Part::Transfers => transfers,
            Part::Queue => queue,
        });
        all.quantile(0.5, &shares)
    };
    let near =
        |seconds: f64, expected: f64| assert!((seconds - expected).abs() < 1e-6, "{seconds} {expected}");
    near(quantile_of([0.0, 0.0, 0.0, 0.0]), 100.0);
    near(quantile_of([1.0, 0.0, 0.0, 0.0]), 200.0 / 1.5 * 1.2 / 2.0);
    near(quantile_of([0.0, 1.0, 0.0, 0.0]), 130.0);
    near(quantile_of([0.0, 0.0, 1.0, 0.0]), 120.0);
    near(quantile_of([0.0, 0.0, 0.0, 1.0]), 106.0);
    near(quantile_of([1.0, 0.5, 0.5, 0.5]), 80.0 + 15.0 + 10.0 + 3.0);
    // Half of a factor is its root.
    near(quantile_of([0.5, 0.0, 0.0, 0.0]), 100.0 * (1.2_f64 / 1.5).sqrt());
}

#[test]
fn where_no_load_is_known_of_runs_or_of_the_future_none_is_corrected() {
    let known = base(&[(100, Some(1.5))]);
    let unknown = base(&[(100, None)]);
    let shares = Shares::new(|_| 1.0);
    let median_of = |base: &BlendedHistory, load| Parts { load, ..parts(base) }.quantile(0.5, &shares);
    assert!((median_of(&known, None) - 100.0).abs() < 1e-6);
    assert!((median_of(&unknown, Some(1.5)) - 100.0).abs() < 1e-6);
    assert!(
        (median_of(&known, Some(1.5)) - 100.0).abs() < 1e-6,
        "as loaded as it was"
    );
    assert!((median_of(&known, Some(1.0)) - 100.0 / 1.5).abs() < 1e-6);
}

#[test]
fn lost_runs_lengthen_the_completion_and_few_say_little() {
    let (none, all) = (RunLosses::default(), RunLosses { runs: 90, lost: 18 });
    assert!((none.kept(none) - 1.0).abs() < 1e-12, "nothing was ever lost");
    // 18 of 90 and the ten that count beside them: as usual, 18 % are lost.
    assert!((none.kept(all) - 0.82).abs() < 1e-12);
    let own = RunLosses { runs: 30, lost: 15 };
    assert!((own.kept(all) - (1.0 - 16.8 / 40.0)).abs() < 1e-12);
    assert!((expected_completion(100.0, 120, 1.0) - 100.0).abs() < 1e-12);
    assert!(
        (expected_completion(100.0, 120, 0.75) - 140.0).abs() < 1e-9,
        "one slot for nothing in three"
    );
    let hopeless = RunLosses { runs: 200, lost: 200 };
    assert!(expected_completion(1.0, 1, hopeless.kept(hopeless)).is_finite());
}

#[test]
fn a_weight_follows_what_helps_and_forgets_what_was() {
    let mut weight = LearnedWeight::default();
    assert!((weight.value() - 0.5).abs() < 1e-12);
    weight.learn(0.3, 0.3);
    assert_eq!((weight.value(), weight.outcomes()), (0.5, 0), "no evidence");
    for _ in 0..10 {
        weight.learn(0.1, 0.3);
    }
    assert!(weight.value() > 0.95, "{}", weight.value());
    for _ in 0..60 {
        weight.learn(0.3, 0.1);
    }
    assert!(weight.value() < 0.05, "it does harm by now: {}", weight.value());
    let mut wild = LearnedWeight::default();
    wild.learn(1e9, 0.0);
    assert!(wild.value() > 0.1, "one outcome does not decide");
    wild.learn(f64::NAN, 0.0);
    assert_eq!(wild.outcomes(), 1);
}

#[test]
fn stopped_work_is_known_to_need_more_and_no_more() {
    assert!((prediction_loss(100.0, 200.0, true) - 2.0_f64.ln()).abs() < 1e-12);
    assert!(prediction_loss(300.0, 200.0, true).abs() < 1e-12);
    assert!((prediction_loss(300.0, 200.0, false) - 1.5_f64.ln()).abs() < 1e-12);
}

/// A learner of a ladder after runs on one resource, every second one under a load that makes it longer by `slowed`; the forecast
/// says 1.6.
fn after_runs(ladder: Ladder, slowed: f64) -> (Learner<u8>, Runs<u8>) {
    let (mut learner, mut runs) = (Learner::new(ladder), Runs::default());
    for number in 0..60_i64 {
        let (factor, took) = if number % 2 == 0 {
            (1.0, 100.0)
        } else {
            (1.6, 100.0 * slowed)
        };
        let took = took + (number * 7 % 10) as f64;
        if let Some(base) = runs.base(&[0]) {
            let parts = Parts {
                load: Some(factor),
                ..parts(&base)
            };
            let judged = learner.judge("r", &0, &parts, whole(took));
            learner.learn("r", &0, judged);
        }
        runs.learn_loaded(&[0], took, Some(factor));
    }
    (learner, runs)
}

#[test]
fn the_load_counts_where_it_slows_runs_and_not_where_it_does_not() {
    let (slowed, runs) = after_runs(Ladder::Load, 1.6);
    let shares = slowed.shares("r");
    assert!(shares.of(Part::Load) > 0.95, "{shares:?}");
    let base = runs.base(&[0]).unwrap();
    let quantile_at = |load| {
        Parts {
            load: Some(load),
            ..parts(&base)
        }
        .quantile(0.5, &shares)
    };
    assert!(
        (95.0..115.0).contains(&quantile_at(1.0)),
        "at night: {}",
        quantile_at(1.0)
    );
    assert!(
        (155.0..180.0).contains(&quantile_at(1.6)),
        "by day: {}",
        quantile_at(1.6)
    );
    let (alone, _) = after_runs(Ladder::History, 1.6);
    assert!(
        slowed.reliability().mean_loss() < 0.7 * alone.reliability().mean_loss(),
        "{} {}",
        slowed.reliability().mean_loss(),
        alone.reliability().mean_loss()
    );
    let (not_slowed, _) = after_runs(Ladder::Load, 1.0);
    assert!(not_slowed.shares("r").of(Part::Load) < 0.05);
    assert!(
        (not_slowed.shares("elsewhere").of(Part::Load) - 0.5).abs() < 1e-12,
        "by resource"
    );
}

#[test]
fn trust_adds_what_estimates_were_short_by_and_stays_while_it_is_right() {
    let mut learner = Learner::new(Ladder::Trust);
    let base = BlendedHistory::exactly(100);
    for _ in 0..40 {
        let judged = learner.judge("slow", &0_u8, &parts(&base), whole(130.0));
        learner.learn("slow", &0, judged);
        let judged = learner.judge("fast", &0, &parts(&base), whole(80.0));
        learner.learn("fast", &0, judged);
    }
    assert_eq!(learner.rt("slow"), Some(-30.0));
    assert_eq!((learner.trust("slow"), learner.trust("fast")), (30.0, 0.0));
    assert!(learner.shares("slow").of(Part::Trust) > 0.95);
    assert_eq!(learner.rt("new"), None);
}

#[test]
fn a_ladder_counts_its_parts_and_no_others() {
    let counted = Ladder::ALL.map(|ladder| Part::ALL.map(|part| ladder.counts(part)));
    assert_eq!(
        counted,
        [
            [false, false, false, true],
            [true, false, false, true],
            [false, true, false, true],
            [false, false, true, true],
            [true, true, true, true],
            [true, true, true, false],
        ]
    );
    let shares = Learner::<u8>::new(Ladder::Load).shares("r");
    let percent = Part::ALL.map(|part| (100.0 * shares.of(part)).round() as i64);
    assert_eq!(percent, [50, 0, 0, 100]);
}

#[test]
fn the_statements_of_the_sum_are_calibrated_as_a_whole() {
    // Runs and waits are independent, so that the sum of their quantiles is too wide.
    let (mut learner, mut runs) = (Learner::new(Ladder::All), Runs::default());
    let mut random = 7_u64;
    let mut next = |most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut waits: Vec<(f64, f64)> = Vec::new();
    let mut held = (0_usize, 0_usize);
    for number in 0..1_500 {
        let (run, wait) = (100 + next(100), next(100));
        let queue = Distribution::of(waits.clone());
        if let Some(base) = runs.base(&[0_u8]) {
            let parts = Parts {
                queue: queue.as_ref(),
                ..parts(&base)
            };
            let came = whole((run + wait) as f64);
            let shares = learner.shares("r");
            let stated = parts.quantile(learner.calibration(&0).level(0.9), &shares);
            if number >= 300 {
                held = (held.0 + usize::from(came.seconds <= stated), held.1 + 1);
            }
            let judged = learner.judge("r", &0, &parts, came);
            learner.learn("r", &0, judged);
        }
        runs.learn_loaded(&[0], run as f64, None);
        waits.push((wait as f64, 1.0));
        if waits.len() > 200 {
            waits.remove(0);
        }
    }
    let share = held.0 as f64 / held.1 as f64;
    assert!((0.87..0.93).contains(&share), "a stated 90 % held {share}");
    assert!(learner.shares("r").of(Part::Queue) > 0.9);
}

proptest! {
    #[test]
    fn weights_stay_between_nothing_and_all(losses in proptest::collection::vec((0.0..3.0_f64, 0.0..3.0_f64), 0..300)) {
        let mut weight = LearnedWeight::default();
        for (with, without) in losses {
            weight.learn(with, without);
            prop_assert!((0.0..=1.0).contains(&weight.value()));
        }
    }

    #[test]
    fn what_always_does_harm_gets_no_weight_and_what_always_helps_all(
        gains in proptest::collection::vec(0.05..1.0_f64, 40..200), base in 0.0..0.5_f64,
    ) {
        let (mut harmful, mut helpful) = (LearnedWeight::default(), LearnedWeight::default());
        let mut last = (0.5, 0.5);
        for gain in gains {
            harmful.learn(base + gain, base);
            helpful.learn(base, base + gain);
            // What was learned before fades, but only by a hundredth.
            prop_assert!(harmful.value() <= last.0 + 0.02 && helpful.value() >= last.1 - 0.02);
            last = (harmful.value(), helpful.value());
        }
        prop_assert!(last.0 < 0.05 && last.1 > 0.95, "{last:?}");
    }

    #[test]
    fn quantiles_never_fall_and_levels_invert_them(
        runs in proptest::collection::vec((1..10_000_i64, prop_oneof![Just(None), (1.0..2.0_f64).prop_map(Some)]), 1..60),
        waits in proptest::collection::vec(0.0..300.0_f64, 0..20),
        spread in proptest::collection::vec(-1.0..1.0_f64, 0..20),
        shares in proptest::array::uniform4(0.0..=1.0_f64),
        (speed, load, transfers, trust) in (0.1..10.0_f64, 1.0..2.0_f64, 0.0..500.0_f64, 0.0..100.0_f64),
        outcome in 1.0..30_000.0_f64,
    ) {
        let base = base(&runs);
        let distribution_of = |values: Vec<f64>| Distribution::of(values.into_iter().map(|value| (value, 1.0)).collect());
        let (queue, spread) = (distribution_of(waits), distribution_of(spread));
        let parts = Parts { base: &base, speed, load: Some(load), queue: queue.as_ref(), transfers, spread: spread.as_ref(), trust };
        let shares = Shares::new(|part| shares[part as usize]);
        let points: Vec<f64> = (0..=100).map(|p| parts.quantile(f64::from(p) / 100.0, &shares)).collect();
        prop_assert!(points.iter().all(|seconds| seconds.is_finite() && *seconds > 0.0));
        prop_assert!(points.is_sorted_by(|a, b| *b >= a * (1.0 - 1e-12)), "{points:?}");
        let level = parts.level(outcome, &shares);
        prop_assert!((0.0..=1.0).contains(&level));
        prop_assert!(parts.quantile((level - 1e-6).max(0.0), &shares) <= outcome * (1.0 + 1e-6) || level <= 0.0);
        prop_assert!(parts.quantile((level + 1e-6).min(1.0), &shares) >= outcome * (1.0 - 1e-6) || level >= 1.0);
        // The mean of the amounts is that of the sums.
        let none = scheduler::prediction::Calibration::default();
        let mean = parts.mean(&shares, &none).seconds(parts.load_factor(&shares), transfers);
        let sums: f64 = (0..10).map(|at| parts.quantile((f64::from(at) + 0.5) / 10.0, &shares)).sum();
        prop_assert!((mean - sums / 10.0).abs() < 1e-6 * mean);
    }
}
