//! Smoothing: equal to its definition, right about the series that it should recognize, and unmoved by gaps.

use proptest::prelude::*;
use scheduler::prediction::series::STEPS_MAX;
use scheduler::prediction::smoothing::{Method, Parameters};
use scheduler::prediction::{Series, Smoothing};
use scheduler::{Interval, Time};

const HOUR: i64 = 3_600;

/// A series by the hour from values; some of them are missing.
fn hourly(values: &[Option<f64>]) -> Series {
    let samples = values.iter().zip(0_i64..);
    Series::of(
        samples.filter_map(|(value, at)| Some((Time(at * HOUR), (*value)?))),
        HOUR,
    )
}

/// Numbers from 0 to 1 that look random and are the same each time.
fn noise(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1 << 24)
    })
}

fn simple(level: f64) -> Parameters {
    Parameters {
        method: Method::Simple,
        level,
        trend: 0.0,
        season: 0.0,
        damping: 0.0,
    }
}

fn values() -> impl Strategy<Value = Vec<Option<f64>>> {
    prop::collection::vec(prop::option::weighted(0.7, -1e6..1e6_f64), 1..80)
}

/// The mean of all values, each weighing (1 − α) to the power of its age.
fn weighted_mean(values: &[Option<f64>], level: f64) -> Option<f64> {
    let last = values.iter().rposition(Option::is_some)?;
    let weighted = |f: fn(f64) -> f64| -> f64 {
        let weight = |at: usize| (1.0 - level).powi(i32::try_from(last - at).unwrap());
        let known = values.iter().enumerate().filter_map(|(at, v)| Some((at, (*v)?)));
        known.map(|(at, value)| weight(at) * f(value)).sum()
    };
    Some(weighted(|value| value) / weighted(|_| 1.0))
}

proptest! {
    #[test]
    fn simple_smoothing_is_the_mean_weighted_by_age(values in values(), level in 0.01..1.0_f64) {
        let seen = Smoothing::with_parameters(&hourly(&values), simple(level)).ahead(1);
        match (seen, weighted_mean(&values, level)) {
            (Some(seen), Some(expected)) => prop_assert!((seen - expected).abs() < 1e-6 * expected.abs().max(1.0)),
            (seen, expected) => prop_assert_eq!(seen, expected),
        }
    }

    #[test]
    fn steps_are_the_means_of_their_samples_in_any_order(
        mut samples in prop::collection::vec((-100_000..100_000_i64, -10.0..10.0_f64), 1..200),
        step in 1_000..20_000_i64,
    ) {
        let series = Series::of(samples.iter().map(|(at, value)| (Time(*at), *value)), step);
        samples.reverse();
        prop_assert_eq!(&series, &Series::of(samples.iter().map(|(at, value)| (Time(*at), *value)), step));
        for (value, at) in series.values().iter().zip(0_i64..) {
            let start = series.start().seconds() + at * step;
            let inside: Vec<f64> =
                samples.iter().filter(|(at, _)| (start..start + step).contains(at)).map(|(_, v)| *v).collect();
            match value {
                None => prop_assert!(inside.is_empty()),
                Some(mean) => prop_assert!((mean - inside.iter().sum::<f64>() / inside.len() as f64).abs() < 1e-9),
            }
        }
        let observed: usize = series.values().iter().flatten().count();
        prop_assert!(observed >= 1 && series.values().len() <= STEPS_MAX);
        prop_assert!(series.values().first().is_some_and(Option::is_some));
    }

    #[test]
    fn what_never_changes_is_foreseen_to_stay_whatever_is_missing(
        present in prop::collection::vec(any::<bool>(), 1..400), value in -1e9..1e9_f64, ahead in 1..5_000_usize,
    ) {
        let values: Vec<_> = present.iter().map(|present| present.then_some(value)).collect();
        let series = hourly(&values);
        for method in [Method::Simple, Method::Holt, Method::HoltWinters { season: 24 }] {
            let seen = Smoothing::fit_with(&series, method).ahead(ahead);
            prop_assert_eq!(seen.is_some(), present.contains(&true));
            prop_assert!(seen.is_none_or(|seen| (seen - value).abs() <= 1e-9 * value.abs()), "{:?}", seen);
        }
        let fitted = Smoothing::fit(&series).ahead(ahead);
        prop_assert!(fitted.is_none_or(|seen| (seen - value).abs() <= 1e-9 * value.abs()));
    }

    #[test]
    fn no_point_of_a_grid_is_better_than_the_fit(values in values()) {
        let series = hourly(&values);
        let error = |parameters| Smoothing::with_parameters(&series, parameters).error();
        let fitted = Smoothing::fit_with(&series, Method::Simple).error();
        // Along one parameter the error may have several valleys; the fit starts in three places.
        for level in [0.05, 0.3, 0.8] {
            prop_assert!(fitted <= error(simple(level)));
        }
    }

    #[test]
    fn anything_can_be_smoothed(
        samples in prop::collection::vec(
            (any::<i32>(), prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), -1e9..1e9_f64]), 0..60),
        step in -5..100_000_i64,
        from in any::<i32>(), to in any::<i32>(),
    ) {
        let series = Series::of(samples.iter().map(|(at, v)| (Time(i64::from(*at)), *v)), step);
        prop_assert!(series.values().len() <= STEPS_MAX);
        let interval = Interval::new(Time(from.into()), Time(to.into()));
        let seen = Smoothing::fit(&series).mean_over(interval);
        prop_assert_eq!(seen.is_some(), samples.iter().any(|(_, value)| value.is_finite()));
        prop_assert!(seen.is_none_or(f64::is_finite), "{:?}", seen);
    }
}

#[test]
fn after_many_samples_the_recursion_is_the_textbooks() {
    let values: Vec<Option<f64>> = noise(3).take(400).map(Some).collect();
    let parameters = Parameters {
        method: Method::Holt,
        level: 0.2,
        trend: 0.1,
        season: 0.0,
        damping: 0.9,
    };
    let (mut level, mut trend) = (0.0, 0.0);
    for value in values.iter().flatten() {
        let before = level;
        level = 0.2 * value + 0.8 * (level + 0.9 * trend);
        trend = 0.1 * (level - before) + 0.9 * 0.9 * trend;
    }
    let smoothing = Smoothing::with_parameters(&hourly(&values), parameters);
    let expected = level + (0.9 + 0.81 + 0.729) * trend;
    let seen = smoothing.ahead(3).unwrap();
    assert!((seen - expected).abs() < 1e-9, "{seen} is not {expected}");
}

/// Load of a machine that people use by day: hours 8 to 18 of each day.
fn by_day(hour: i64) -> f64 {
    if (8..18).contains(&hour.rem_euclid(24)) {
        0.2
    } else {
        0.9
    }
}

#[test]
fn a_day_is_seen_through_noise_and_missing_nights() {
    let mut noise = noise(11);
    let values: Vec<Option<f64>> = (0..21 * 24)
        .map(|hour| {
            let value = by_day(hour) + 0.1 * (noise.next().unwrap() - 0.5);
            // Half of the nights, a whole weekend, and one hour in four by chance.
            let night = hour % 48 < 7;
            let weekend = (9 * 24..11 * 24).contains(&hour);
            (!night && !weekend && noise.next().unwrap() < 0.75).then_some(value)
        })
        .collect();
    let smoothing = Smoothing::fit(&hourly(&values));
    assert_eq!(smoothing.method(), Method::HoltWinters { season: 24 });
    let next_midnight = 21 * 24;
    for hour in [0, 4, 9, 13, 17, 20] {
        let start = Time((next_midnight + hour) * HOUR);
        let seen = smoothing.mean_over(Interval::of(start, HOUR)).unwrap();
        assert!(
            (seen - by_day(hour)).abs() < 0.1,
            "hour {hour}: {seen} is not {}",
            by_day(hour)
        );
    }
}

#[test]
fn a_week_is_told_from_a_day() {
    let values: Vec<Option<f64>> = (0..6 * 7 * 24)
        .map(|hour| {
            let weekend = hour / 24 % 7 >= 5;
            Some(if weekend { 0.95 } else { by_day(hour) })
        })
        .collect();
    let smoothing = Smoothing::fit(&hourly(&values));
    assert_eq!(smoothing.method(), Method::HoltWinters { season: 168 });
    let saturday_noon = smoothing.ahead(5 * 24 + 13).unwrap();
    let monday_noon = smoothing.ahead(13).unwrap();
    assert!(
        saturday_noon > 0.9 && monday_noon < 0.3,
        "{saturday_noon} and {monday_noon}"
    );
}

#[test]
fn noise_is_smoothed_simply_to_its_mean() {
    let values: Vec<Option<f64>> = noise(5).take(500).map(Some).collect();
    let smoothing = Smoothing::fit(&hourly(&values));
    assert_eq!(smoothing.method(), Method::Simple);
    let seen = smoothing.ahead(10).unwrap();
    assert!((seen - 0.5).abs() < 0.1, "{seen}");
}

#[test]
fn a_trend_is_followed_and_ends() {
    let values: Vec<Option<f64>> = (0..200).map(|hour| Some(10.0 + f64::from(hour))).collect();
    let smoothing = Smoothing::fit(&hourly(&values));
    assert_eq!(smoothing.method(), Method::Holt);
    let next = smoothing.ahead(1).unwrap();
    assert!((next - 210.0).abs() < 1.0, "{next}");
    let far = smoothing.ahead(1_000_000).unwrap();
    assert!(far < 450.0, "{far}");
}

#[test]
fn the_first_sample_after_a_long_gap_counts_for_much() {
    let mut values = vec![Some(1.0); 100];
    values.extend(vec![None; 500]);
    values.push(Some(0.0));
    let seen = Smoothing::with_parameters(&hourly(&values), simple(0.05))
        .ahead(1)
        .unwrap();
    assert!(seen < 1e-6, "{seen}: the last sample is 500 hours ago");
}

#[test]
fn an_interval_is_the_mean_of_its_steps() {
    let values: Vec<Option<f64>> = (0..14 * 24).map(|hour| Some(by_day(hour))).collect();
    let smoothing = Smoothing::fit_with(&hourly(&values), Method::HoltWinters { season: 24 });
    let mean = |from: i64, to: i64| {
        let start = 14 * 24 + from;
        let interval = Interval::new(Time(start * HOUR), Time((14 * 24 + to) * HOUR));
        smoothing.mean_over(interval).unwrap()
    };
    let steps: f64 = (5..29).map(|step| smoothing.ahead(step + 1).unwrap()).sum();
    assert!((mean(5, 29) - steps / 24.0).abs() < 1e-9);
    assert!((mean(0, 24 * 4_000) - mean(0, 24)).abs() < 0.01, "a far deadline");
    assert!(
        (mean(-1_000, 0) - smoothing.ahead(1).unwrap()).abs() < 1e-9,
        "the past is over"
    );
}
