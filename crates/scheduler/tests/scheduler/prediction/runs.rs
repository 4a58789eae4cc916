//! The distribution of run times: the levels that it blends, and that its statements are true.

use proptest::prelude::*;
use scheduler::prediction::runs::{Event, events_of_runs};
use scheduler::prediction::{Reliability, Runs, Subject};
use scheduler::{Interval, Time};

type Key = (u8, u32);

fn subject(user: u32, limit: Option<i64>) -> Subject<Key> {
    Subject {
        levels: vec![(0, 0), (1, user)],
        group: (1, user),
        limit,
    }
}

fn learned(runs: &[(u32, i64)]) -> Runs<Key> {
    let mut known = Runs::default();
    for (user, run) in runs {
        known.learn(&subject(*user, None), *run, None);
    }
    known
}

#[test]
fn nothing_is_predicted_from_nothing() {
    assert_eq!(Runs::<Key>::default().predict(&subject(1, None)), None);
}

#[test]
fn a_stranger_is_taken_for_anybody_and_an_acquaintance_for_himself() {
    let mut runs: Vec<(u32, i64)> = (0..40).map(|_| (1, 100)).collect();
    runs.extend((0..40).map(|_| (2, 10_000)));
    let known = learned(&runs);
    let prediction_for = |user| known.predict(&subject(user, None)).unwrap();
    assert_eq!(prediction_for(1).slot(0.5), 100);
    assert_eq!(prediction_for(2).slot(0.5), 10_000);
    let stranger = prediction_for(3);
    assert!((stranger.probability_within(1_000.0) - 0.5).abs() < 0.01);
    assert_eq!(stranger.runs(), 80);
    assert_eq!((stranger.slot(0.1), stranger.slot(0.9)), (100, 10_000));
}

#[test]
fn one_run_of_his_own_says_little_yet() {
    let mut runs: Vec<(u32, i64)> = (0..50).map(|_| (1, 100)).collect();
    runs.push((2, 10_000));
    let known = learned(&runs);
    let second = known.predict(&subject(2, None)).unwrap();
    let within = second.probability_within(1_000.0);
    assert!((0.7..0.95).contains(&within), "{within}");
    assert_eq!(second.runs(), 1);
}

#[test]
fn what_he_ran_lately_counts_most() {
    let mut runs: Vec<(u32, i64)> = (0..60).map(|_| (1, 100)).collect();
    runs.extend((0..20).map(|_| (1, 5_000)));
    let known = learned(&runs);
    let lately = known.predict(&subject(1, None)).unwrap();
    assert_eq!(lately.slot(0.5), 5_000);
}

#[test]
fn a_run_that_was_stopped_at_its_limit_tells_of_the_limit() {
    let mut known = Runs::default();
    for _ in 0..30 {
        known.learn(&subject(1, Some(3_600)), 3_600, None);
    }
    let longer = known.predict(&subject(1, Some(7_200))).unwrap();
    assert_eq!(longer.slot(0.5), 7_200);
    for _ in 0..200 {
        known.learn(&subject(2, Some(3_600)), 600, None);
    }
    let own = known.predict(&subject(2, Some(7_200))).unwrap();
    assert_eq!(own.slot(0.5), 600, "it ended by itself");
    let shorter = known.predict(&subject(2, Some(300))).unwrap();
    assert_eq!(shorter.slot(0.9), 300, "it will be stopped");
}

#[test]
fn events_are_in_the_order_in_which_they_become_known() {
    let span = |from, to| Interval::new(Time(from), Time(to));
    assert_eq!(
        events_of_runs([span(0, 10), span(5, 7), span(10, 12), span(3, 3)]),
        [
            Event::Asked(0),
            Event::Asked(3),
            Event::Ended(3),
            Event::Asked(1),
            Event::Ended(1),
            Event::Ended(0),
            Event::Asked(2),
            Event::Ended(2),
        ]
    );
}

proptest! {
    #[test]
    fn a_higher_probability_never_has_a_shorter_slot(
        runs in prop::collection::vec((0..4_u32, 1..100_000_i64), 1..120),
        user in 0..5_u32,
        limit in prop::option::of(1..50_000_i64),
        p in 0.0..1.0_f64, q in 0.0..1.0_f64,
    ) {
        let known = learned(&runs);
        let prediction = known.predict(&subject(user, limit)).unwrap();
        let (low, high) = (p.min(q), p.max(q));
        prop_assert!(prediction.slot(low) <= prediction.slot(high));
        prop_assert!(prediction.probability_within(prediction.quantile(high) * 1.000_001) >= high - 1e-6
            || high > 0.5);
        let longest = limit.unwrap_or(i64::MAX).max(1);
        prop_assert!(prediction.slot(1.0) <= longest.saturating_add(longest / 8 + 1));
        prop_assert!(prediction.slot(0.0) >= 1);
        prop_assert!((0.0..=1.0).contains(&prediction.level(5)));
    }

    #[test]
    fn runs_of_others_with_no_level_in_common_change_nothing(
        own in prop::collection::vec(1..100_000_i64, 1..60),
        others in prop::collection::vec(1..100_000_i64, 0..60),
    ) {
        let alone = |user: u32| Subject { levels: vec![(1, user)], group: (1, user), limit: None };
        let mut known: Runs<Key> = Runs::default();
        let mut both = Runs::default();
        for run in &own {
            known.learn(&alone(1), *run, None);
            both.learn(&alone(1), *run, None);
        }
        for run in &others {
            both.learn(&alone(2), *run, None);
        }
        for p in [0.05, 0.5, 0.95] {
            prop_assert_eq!(known.predict(&alone(1)).unwrap().slot(p), both.predict(&alone(1)).unwrap().slot(p));
        }
    }
}

/// Numbers from 0 to 1 that look random and are the same each time.
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }

    /// Nearly normal, of mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Sixty people, each with a length and a spread of their own. Now and then they change their work.
#[test]
fn stated_intervals_hold_and_are_sharper_than_the_last_two_runs() {
    let mut noise = Noise(7);
    let habit = |noise: &mut Noise| (6.0 + 1.5 * noise.normal(), 0.1 + 0.8 * noise.unit());
    let mut habits: Vec<(f64, f64)> = (0..60).map(|_| habit(&mut noise)).collect();
    let mut last_two: Vec<Vec<f64>> = vec![Vec::new(); 60];
    let mut known = Runs::default();
    let (mut ours, mut theirs) = (Reliability::default(), Reliability::default());
    for round in 0..12_000 {
        let user = (noise.unit() * noise.unit() * 60.0) as usize;
        if noise.unit() < 0.01 {
            habits[user] = habit(&mut noise);
        }
        let (centre, spread) = habits[user];
        let run = (centre + spread * noise.normal()).exp().round().max(1.0);
        let subject = subject(u32::try_from(user).unwrap(), None);
        let prediction = known.predict(&subject);
        if let (Some(prediction), [a, b]) = (&prediction, last_two[user].as_slice())
            && round >= 2_000
        {
            ours.add(|p| prediction.quantile(p), run);
            theirs.add(|_| f64::midpoint(*a, *b), run);
        }
        let level = prediction.map(|prediction| prediction.level(run as i64));
        known.learn(&subject, run as i64, level);
        last_two[user].push(run);
        if last_two[user].len() > 2 {
            last_two[user].remove(0);
        }
    }
    let (_, covered, _) = ours.intervals()[0];
    assert!((0.88..0.92).contains(&covered), "{covered} of a stated 0.9");
    for (p, held, _) in ours.levels() {
        assert!((held - p).abs() < 0.03, "{held} of a stated {p}");
    }
    let (ours, theirs) = (ours.mean_loss(), theirs.mean_loss());
    assert!(ours < 0.8 * theirs, "{ours} against {theirs}");
}
