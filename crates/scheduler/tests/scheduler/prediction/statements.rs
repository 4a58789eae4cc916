//! Distributions, their calibration, and the books kept on them.

use proptest::prelude::*;
use scheduler::prediction::calibration::{OUTCOMES_MAX, OUTCOMES_MIN};
use scheduler::prediction::losses::pinball_loss;
use scheduler::prediction::reliability::{LEVELS, Reliability};
use scheduler::prediction::{Calibration, Distribution};

fn weighted() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0..30_i32, 0.01..5.0_f64), 1..60)
        .prop_map(|points| points.into_iter().map(|(v, w)| (f64::from(v), w)).collect())
}

proptest! {
    #[test]
    fn half_of_an_observation_lies_below_it(points in weighted()) {
        let distribution = Distribution::of(points.clone()).unwrap();
        let total: f64 = points.iter().map(|(_, w)| w).sum();
        for (value, _) in &points {
            let less: f64 = points.iter().filter(|(v, _)| v < value).map(|(_, w)| w).sum();
            let same: f64 = points.iter().filter(|(v, _)| v.total_cmp(value).is_eq()).map(|(_, w)| w).sum();
            let expected = (less + same / 2.0) / total;
            let seen = distribution.probability(*value);
            prop_assert!((seen - expected).abs() < 1e-9, "{} is not {}", seen, expected);
        }
        prop_assert!(distribution.probability(-0.5) <= 0.0 && distribution.probability(30.0) >= 1.0);
    }

    #[test]
    fn a_quantile_is_the_inverse_of_a_probability(points in weighted(), p in 0.0..1.0_f64, q in 0.0..1.0_f64) {
        let distribution = Distribution::of(points.clone()).unwrap();
        let value = distribution.quantile(p);
        let (least, most) = points.iter().fold((f64::MAX, f64::MIN), |(l, m), (v, _)| (l.min(*v), m.max(*v)));
        prop_assert!((least..=most).contains(&value));
        if points.iter().all(|(known, _)| (known - value).abs() > 1e-9) {
            prop_assert!((distribution.probability(value) - p).abs() < 1e-9);
        }
        prop_assert!(p > q || value <= distribution.quantile(q));
    }

    #[test]
    fn a_level_is_the_order_statistic_of_the_last_outcomes(
        levels in prop::collection::vec(0.0..1.0_f64, OUTCOMES_MIN..2 * OUTCOMES_MAX), p in 0.5..1.0_f64,
    ) {
        let mut calibration = Calibration::default();
        for level in &levels {
            calibration.observe(*level);
        }
        let mut last = levels[levels.len().saturating_sub(OUTCOMES_MAX)..].to_vec();
        last.sort_by(f64::total_cmp);
        prop_assert_eq!(calibration.outcomes(), last.len());
        let level = calibration.level(p);
        let held = last.iter().filter(|known| **known <= level).count();
        prop_assert!(held as f64 >= p * (last.len() as f64 + 1.0) - 1e-9 || level >= 1.0);
        prop_assert!(last.contains(&level) || level >= 1.0);
        prop_assert!(level >= 1.0 || calibration.probability(level) >= p - 1e-9);
    }
}

#[test]
fn nothing_is_no_distribution() {
    assert_eq!(Distribution::of(Vec::new()), None);
    assert_eq!(
        Distribution::of(vec![
            (f64::NAN, 1.0),
            (1.0, 0.0),
            (2.0, -1.0),
            (3.0, f64::INFINITY)
        ]),
        None
    );
}

#[test]
fn too_few_outcomes_correct_nothing_and_nonsense_is_no_outcome() {
    let mut calibration = Calibration::default();
    for _ in 1..OUTCOMES_MIN {
        calibration.observe(1.0);
    }
    for nonsense in [f64::NAN, -0.1, 1.1] {
        calibration.observe(nonsense);
    }
    assert!((calibration.level(0.9) - 0.9).abs() < 1e-12);
    assert!((calibration.probability(0.9) - 0.9).abs() < 1e-12);
    calibration.observe(1.0);
    assert!(
        calibration.level(0.5) >= 1.0,
        "all outcomes were longer than anything known"
    );
}

/// Outcomes spread evenly are stated as half as spread as they are; after a while the correction has widened them.
#[test]
fn statements_that_are_too_sure_of_themselves_become_true() {
    let mut calibration = Calibration::default();
    let narrow = Distribution::of((25..=75).map(|v| (f64::from(v), 1.0)).collect()).unwrap();
    let mut inside = 0;
    for round in 0_u32..4_000 {
        // A low-discrepancy sequence over 100 values.
        let outcome = f64::from(round.wrapping_mul(2_654_435_769) >> 16) / 655.36;
        if round >= 1_000 {
            let (low, high) = (
                narrow.quantile(calibration.level(0.25)),
                narrow.quantile(calibration.level(0.75)),
            );
            inside += u32::from(low <= outcome && outcome <= high);
        }
        calibration.observe(narrow.probability(outcome));
    }
    let share = f64::from(inside) / 3_000.0;
    assert!((share - 0.5).abs() < 0.03, "{share} of a stated 0.5");
}

#[test]
fn the_pinball_loss_is_least_at_the_true_quantile() {
    let loss = |stated: f64| -> f64 { (0..100).map(|v| pinball_loss(0.9, stated, f64::from(v))).sum() };
    let least = (0..100).min_by(|a, b| loss(f64::from(*a)).total_cmp(&loss(f64::from(*b))));
    assert!((88..=91).contains(&least.unwrap()), "{least:?}");
    assert!((pinball_loss(0.9, 10.0, 20.0) - 9.0).abs() < 1e-12);
    assert!((pinball_loss(0.9, 20.0, 10.0) - 1.0).abs() < 1e-12);
}

#[test]
fn the_table_counts_what_held_and_what_it_cost() {
    let mut table = Reliability::default();
    assert!(table.levels().iter().all(|(_, held, _)| *held < 1e-12));
    for outcome in 1..=1_000 {
        table.add(|p| p * 1_000.0, f64::from(outcome));
    }
    for (stated, held, _) in table.levels() {
        assert!((held - stated).abs() < 0.002, "{stated}: {held}");
    }
    let (stated, held, width) = table.intervals()[0];
    assert!((stated - 0.9).abs() < 1e-9 && (held - 0.9).abs() < 0.002 && (width - 900.0).abs() < 1e-6);
    let mut point = Reliability::default();
    for outcome in 1..=1_000 {
        point.add(|_| 500.0, f64::from(outcome));
    }
    assert_eq!(point.outcomes(), 1_000);
    assert!(
        (point.mean_loss() - 125.0).abs() < 1.0,
        "half the mean absolute error"
    );
    assert!(table.mean_loss() < point.mean_loss());
    assert_eq!(LEVELS.len(), 19);
}
