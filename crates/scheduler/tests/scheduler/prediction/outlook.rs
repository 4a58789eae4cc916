//! Means over intervals: of the future in constant time, and as they were foreseen in the past.

use proptest::prelude::*;
use scheduler::prediction::smoothing::{Method, SmoothingReplay};
use scheduler::prediction::{Series, Smoothing};
use scheduler::{Interval, Time};

const HOUR: i64 = 3_600;

/// Hours from the first on; a negative value is a gap.
fn series(values: &[f64]) -> Series {
    let samples = (0..).zip(values).filter(|(_, value)| **value >= 0.0);
    Series::of(samples.map(|(hour, value)| (Time(hour * HOUR), *value)), HOUR)
}

/// Two weeks in which the processors are busy from 8 to 18 o'clock.
fn office_hours() -> Vec<f64> {
    let free = |hour: usize| if (8..18).contains(&(hour % 24)) { 0.2 } else { 1.0 };
    (0..14 * 24).map(free).collect()
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(prop_oneof![1 => Just(-1.0), 5 => 0.0..1.0_f64], 3..200)
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::Simple),
        Just(Method::Holt),
        Just(Method::HoltWinters { season: 24 })
    ]
}

#[test]
fn an_outlook_tells_the_day_from_the_night() {
    let smoothing = Smoothing::fit(&series(&office_hours()));
    let outlook = smoothing.outlook(Time(0), 14 * 24, (0.0, 1.0)).unwrap();
    let day = |from: i64, to: i64| {
        let start = 20 * 24 * HOUR;
        outlook.mean_over(Interval::new(Time(start + from * HOUR), Time(start + to * HOUR)))
    };
    assert!((day(9, 17) - 0.2).abs() < 0.05, "{}", day(9, 17));
    assert!((day(20, 24) - 1.0).abs() < 0.05, "{}", day(20, 24));
    assert!((day(16, 20) - 0.6).abs() < 0.05, "{}", day(16, 20));
    // Beyond the outlook it is the mean of a week.
    let far = outlook.mean_over(Interval::of(Time(1_000 * 24 * HOUR), HOUR));
    assert!((far - (10.0 * 0.2 + 14.0) / 24.0).abs() < 0.05, "{far}");
}

proptest! {
    #[test]
    fn a_mean_of_an_outlook_is_that_of_its_steps(
        values in values(), method in method(), late in 0..60_i64, from in 0..300_i64, length in 1..200_i64,
    ) {
        let smoothing = Smoothing::fit_with(&series(&values), method);
        let series = series(&values);
        let next = series.start() + HOUR * i64::try_from(series.values().len()).unwrap();
        let Some(outlook) = smoothing.outlook(next + late * HOUR, 600, (0.0, 1.0)) else {
            prop_assert!(series.values().iter().all(Option::is_none));
            return Ok(());
        };
        let from = late + from;
        let ahead = |step: i64| smoothing.ahead(step as usize + 1).unwrap().clamp(0.0, 1.0);
        let expected = (from..from + length).map(ahead).sum::<f64>() / length as f64;
        let interval = Interval::of(next + from * HOUR, length * HOUR);
        let mean = outlook.mean_over(interval);
        prop_assert!((mean - expected).abs() < 1e-9, "{mean} {expected}");
        // The mean of a whole is that of its parts.
        let cut = interval.start + (interval.duration() / 3 + 1);
        let parts = [Interval::new(interval.start, cut), Interval::new(cut, interval.end)];
        let sum: f64 = parts.iter().map(|part| outlook.mean_over(*part) * part.duration() as f64).sum();
        prop_assert!((sum / interval.duration() as f64 - mean).abs() < 1e-9);
    }

    #[test]
    fn what_was_foreseen_is_what_the_series_until_then_foresees(
        values in values(), method in method(), looks in proptest::collection::btree_set(0..220_i64, 1..20),
    ) {
        let all = series(&values);
        let parameters = Smoothing::fit_with(&all, method).parameters();
        let mut replay = SmoothingReplay::new(&all, parameters);
        let first = all.start().seconds() / HOUR;
        for known in looks {
            let interval = Interval::of(Time((known + 3) * HOUR + 7), 5 * HOUR);
            let found = replay.mean_over(Time(known * HOUR), interval);
            let until = known.min(first + i64::try_from(all.values().len()).unwrap());
            let before: Vec<f64> = values.iter().copied().take(until.max(0) as usize).collect();
            let season = match method { Method::HoltWinters { season } => 2 * season, _ => 40 };
            if before.iter().all(|value| *value < 0.0) || known < first {
                prop_assert_eq!(found, None);
            } else if until - first <= i64::try_from(season).unwrap() {
                // The series up to there is the same, as far as it ends with a sample.
                let until = series(&before);
                let gaps = before.iter().rev().take_while(|value| **value < 0.0).count();
                if gaps == 0 {
                    let expected = Smoothing::with_parameters(&until, parameters).mean_over(interval);
                    prop_assert!((found.unwrap() - expected.unwrap()).abs() < 1e-9, "{:?} {:?}", found, expected);
                }
            } else {
                prop_assert!(found.is_some_and(f64::is_finite));
            }
        }
    }
}

#[test]
fn what_was_foreseen_never_knows_what_came_later() {
    let mut values = office_hours();
    let parameters = Smoothing::fit(&series(&values)).parameters();
    let looks: Vec<i64> = (1..300).step_by(13).collect();
    let told = |values: &[f64], until: i64| -> Vec<Option<f64>> {
        let series = series(values);
        let mut replay = SmoothingReplay::new(&series, parameters);
        let known = looks.iter().filter(|known| **known <= until);
        known
            .map(|known| {
                replay.mean_over(
                    Time(known * HOUR),
                    Interval::of(Time((known + 2) * HOUR), 9 * HOUR),
                )
            })
            .collect()
    };
    let before = told(&values, 200);
    for value in &mut values[200..] {
        *value = 1.0 - *value;
    }
    assert_eq!(told(&values, 200), before);
}

#[test]
fn the_mean_of_what_was_seen_skips_gaps() {
    let one_series = series(&[0.5, -1.0, 0.7, 0.9]);
    let mean = |from: i64, to: i64| one_series.mean_over(Interval::new(Time(from), Time(to)));
    assert_eq!(mean(0, 2 * HOUR), Some(0.5));
    assert_eq!(mean(HOUR, 2 * HOUR), None);
    assert_eq!(mean(2 * HOUR + 5, 9 * HOUR), Some(0.8));
    assert_eq!(mean(9 * HOUR, 12 * HOUR), None);
    assert_eq!(mean(-9 * HOUR, -5 * HOUR), None);
    assert!((one_series.mean().unwrap() - 0.7).abs() < 1e-9);
}
