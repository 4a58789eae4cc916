//! The estimate of paper 004, step by step.

use proptest::prelude::*;
use scheduler::prediction::estimate::{EstimateOutcome, TRUST_RUNS, rt};
use scheduler::prediction::smoothing::Method;
use scheduler::prediction::{Estimate, EstimateStep, Evidence, Series, Smoothing};
use scheduler::{Interval, Rate, Time};

const GAP: Interval = Interval::new(Time(36_000), Time(43_200));

fn steady(value: f64) -> Smoothing {
    let series = Series::of((0..10).map(|hour| (Time(hour * 3_600), value)), 3_600);
    Smoothing::fit_with(&series, Method::Simple)
}

fn outcome(estimated: i64, real: i64) -> EstimateOutcome {
    EstimateOutcome { estimated, real }
}

fn rate(millionths: u32) -> Rate {
    Rate::from_millionths(millionths).unwrap()
}

#[test]
fn an_estimate_is_explained_step_by_step() {
    let (cpu, towards, back) = (steady(0.75), steady(1_000.0), steady(500.0));
    let evidence = Evidence {
        here: &[100, 140, 120],
        default: 60,
        free_cpu: Some(&cpu),
        input_bytes: 30_000,
        output_bytes: 1_250,
        bandwidth_in: Some(&towards),
        bandwidth_out: Some(&back),
        outcomes: &[outcome(100, 110), outcome(100, 120)],
        ..Evidence::default()
    };
    let estimate = Estimate::over(GAP, &evidence);
    // 120 × (2 − 0.75) = 150, + 15 for trust, + 30 and 2.5 for transfers.
    assert_eq!(estimate.completion, 198);
    let told: Vec<String> = estimate.steps.iter().map(EstimateStep::to_string).collect();
    assert_eq!(
        told,
        [
            "mean of 3 executions on this resource: 120.0 s",
            "× (2 − 0.750), the free share of the processors foreseen by simple exponential smoothing: 150.0 s",
            "+ 15.0 s, by which the last 2 estimates on this resource were short: 165.0 s",
            "+ 30.0 s for 30000 bytes at 1000 bytes/s to bring the input",
            "+ 2.5 s for 1250 bytes at 500 bytes/s to take the output away",
            "completion 198 s after the start",
        ]
    );
}

#[test]
fn the_best_source_is_used_first() {
    let completion = |evidence: &Evidence| Estimate::over(GAP, evidence).completion;
    let mut evidence = Evidence {
        here: &[10],
        anywhere: &[(20, rate(2_000_000)), (60, rate(1_000_000))],
        rate: rate(500_000),
        requested: Some(300),
        default: 400,
        ..Evidence::default()
    };
    assert_eq!(completion(&evidence), 10);
    evidence.here = &[];
    assert_eq!(
        completion(&evidence),
        100,
        "40 units of work and 60, at half the reference rate"
    );
    evidence.anywhere = &[];
    assert_eq!(completion(&evidence), 300);
    evidence.requested = None;
    assert_eq!(completion(&evidence), 400);
    let steps = Estimate::over(GAP, &evidence).steps;
    assert!(matches!(
        steps[..],
        [
            EstimateStep::Default { .. },
            EstimateStep::FreeCpu { method: None, .. },
            EstimateStep::Completion { .. }
        ]
    ));
}

#[test]
fn what_was_stopped_counts_as_what_took_longer() {
    let told = |evidence: &Evidence| Estimate::over(GAP, evidence).steps[0].to_string();
    let evidence = Evidence {
        here: &[100, 200, 300],
        stopped_here: &[150],
        ..Evidence::default()
    };
    assert_eq!(
        told(&evidence),
        "mean of 4 executions on this resource (1 stopped, counted as what took longer): 212.5 s",
        "100 and the mean of those longer than 150, for the one and for the others"
    );
    let evidence = Evidence {
        here: &[100],
        stopped_here: &[150, 400],
        ..Evidence::default()
    };
    assert!(
        told(&evidence).ends_with(": 300.0 s"),
        "the longest counts as long as it was, and for the one before it: {}",
        told(&evidence)
    );
    let evidence = Evidence {
        stopped_anywhere: &[(40, rate(1_000_000))],
        rate: rate(2_000_000),
        ..Evidence::default()
    };
    assert_eq!(Estimate::over(GAP, &evidence).completion, 20);
}

#[test]
fn trust_corrects_only_what_was_too_short() {
    let with = |outcomes: &[EstimateOutcome]| {
        let evidence = Evidence {
            here: &[100],
            outcomes,
            ..Evidence::default()
        };
        Estimate::over(GAP, &evidence).completion
    };
    assert_eq!(with(&[outcome(100, 60)]), 100, "long estimates are kept");
    assert_eq!(with(&[outcome(100, 160)]), 160);
    assert_eq!(with(&[outcome(100, 160), outcome(100, 40)]), 100);
}

#[test]
fn an_unknown_bandwidth_and_an_idle_line_take_no_time_for_ever() {
    let idle = steady(0.0);
    for bandwidth in [None, Some(&idle)] {
        let evidence = Evidence {
            here: &[100],
            input_bytes: 1 << 40,
            bandwidth_in: bandwidth,
            ..Evidence::default()
        };
        let estimate = Estimate::over(GAP, &evidence);
        assert_eq!(estimate.completion, 100);
        assert!(
            estimate.steps[2].to_string().contains("unknown bandwidth"),
            "{}",
            estimate.steps[2]
        );
    }
}

proptest! {
    #[test]
    fn trust_is_the_mean_error_of_the_last(outcomes in prop::collection::vec((0..10_000_i64, 0..10_000_i64), 0..40)) {
        let outcomes: Vec<EstimateOutcome> = outcomes.into_iter().map(|(e, r)| outcome(e, r)).collect();
        let last: Vec<i64> = outcomes.iter().rev().take(TRUST_RUNS).map(|o| o.estimated - o.real).collect();
        let expected = (!last.is_empty()).then(|| last.iter().sum::<i64>() as f64 / last.len() as f64);
        match (rt(&outcomes), expected) {
            (Some(seen), Some(expected)) => prop_assert!((seen - expected).abs() < 1e-9),
            (seen, expected) => prop_assert_eq!(seen, expected),
        }
    }

    #[test]
    fn the_completion_is_the_formula_rounded_up(
        here in prop::collection::vec(1..100_000_i64, 1..20),
        free in 0.0..1.0_f64,
        errors in prop::collection::vec((0..1_000_i64, 0..1_000_i64), 0..10),
        bytes in 0..1_000_000_u32,
        bandwidth in 1.0..10_000.0_f64,
    ) {
        let outcomes: Vec<EstimateOutcome> = errors.iter().map(|(e, r)| outcome(*e, *r)).collect();
        let (cpu, line) = (steady(free), steady(bandwidth));
        let evidence = Evidence {
            here: &here,
            free_cpu: Some(&cpu),
            input_bytes: bytes.into(),
            bandwidth_in: Some(&line),
            outcomes: &outcomes,
            ..Evidence::default()
        };
        let mean = here.iter().sum::<i64>() as f64 / here.len() as f64;
        let short = rt(&outcomes).map_or(0.0, |trust| (-trust).max(0.0));
        let exact = f64::from(bytes) / bandwidth + mean * (2.0 - free) + short;
        let seen = Estimate::over(GAP, &evidence).completion as f64;
        prop_assert!(seen >= exact - 1e-3 && seen < exact + 1.001, "{} for {}", seen, exact);
    }
}
