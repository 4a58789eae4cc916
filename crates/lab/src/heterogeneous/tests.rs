//! Facts about the searches, against a second-by-second count of a few servers.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the seconds of short horizons fit every integer"
)]

use super::{
    FirstFitAware, FirstFitUnaware, IdlePeriod, Job, JobDemand, Placement, Search, Servers, SingleTree,
    TwoDimensional,
};
use proptest::prelude::*;
use scheduler::{Interval, Rate, Time};

/// The naive plan: whether each server works at each second.
struct PerSecond {
    begin: i64,
    busy: Vec<Vec<bool>>,
}

impl PerSecond {
    fn idle(&self) -> Vec<IdlePeriod> {
        let mut periods = Vec::new();
        for (server, busy) in self.busy.iter().enumerate() {
            let mut start = 0;
            for run in busy.chunk_by(|a, b| a == b) {
                let end = start + run.len() as i64;
                if !run[0] {
                    periods.push(IdlePeriod {
                        start: Time(start),
                        end: Time(end),
                        server: server as u32,
                    });
                }
                start = end;
            }
        }
        // Forgetting drops periods that have ended, and keeps the start of the others.
        periods.retain(|period| period.end.0 > self.begin);
        periods
    }

    fn take(&mut self, placement: Placement) {
        let Interval { start, end } = placement.interval;
        self.busy[placement.server as usize][start.0 as usize..end.0 as usize].fill(true);
    }
}

/// An operation on the servers; numbers are taken modulo the valid ones.
#[derive(Debug, Clone)]
enum Change {
    Allocate(Job),
    Reserve(Placement),
    Forget(i64),
}

#[derive(Debug, Clone)]
struct Case {
    horizon: i64,
    rates: Vec<Rate>,
    /// Reserved at first where they can be.
    taken: Vec<Placement>,
    changes: Vec<Change>,
}

fn job(horizon: i64) -> impl Strategy<Value = Job> {
    (0..horizon, 1..horizon / 3, 0..horizon).prop_map(|(ready, size, slack)| Job {
        ready: Time(ready),
        size,
        deadline: Time(ready + size + slack / 2 - 1),
    })
}

fn placement(servers: u32, horizon: i64) -> impl Strategy<Value = Placement> {
    (0..servers, 0..horizon, 1..9_i64).prop_map(move |(server, start, duration)| Placement {
        server,
        interval: Interval::new(Time(start), Time((start + duration).min(horizon))),
    })
}

fn case(servers: u32, horizon: i64, taken: usize, changes: usize) -> impl Strategy<Value = Case> {
    let rate = prop_oneof![Just(250_000), Just(600_000), Just(1_000_000)];
    let change = prop_oneof![
        6 => job(horizon).prop_map(Change::Allocate),
        1 => placement(servers, horizon).prop_map(Change::Reserve),
        1 => (0..horizon).prop_map(Change::Forget),
    ];
    (
        proptest::collection::vec(rate, servers as usize),
        proptest::collection::vec(placement(servers, horizon), taken),
        proptest::collection::vec(change, 1..changes),
    )
        .prop_map(move |(rates, taken, changes)| Case {
            horizon,
            rates: rates.into_iter().filter_map(Rate::from_millionths).collect(),
            taken,
            changes,
        })
}

/// Which of the feasible idle periods a search may take; `feasible` is in order of start and server, and not empty.
type Expected = fn(feasible: &[(Rate, IdlePeriod, Time)], job: &Job) -> Vec<IdlePeriod>;

/// Plays a case with one search beside the naive plan.
fn play<S: Search>(
    case: &Case,
    search: S,
    expected: Expected,
    checked: fn(&S) -> Option<Vec<Vec<IdlePeriod>>>,
) {
    let planned = Interval::new(Time(0), Time(case.horizon));
    let mut servers = Servers::new(search, &case.rates, planned);
    let mut naive = PerSecond {
        begin: 0,
        busy: vec![vec![false; case.horizon as usize]; case.rates.len()],
    };
    for placement in &case.taken {
        if servers.reserve(*placement) {
            naive.take(*placement);
        }
    }
    for change in &case.changes {
        match change {
            Change::Allocate(job) => {
                if let Some(placement) = allocate(&mut servers, &naive, *job, expected) {
                    naive.take(placement);
                }
            }
            Change::Reserve(placement) => {
                let idle = naive.idle();
                let fits = idle.iter().any(|period| {
                    period.server == placement.server
                        && Interval::new(period.start, period.end).contains(placement.interval)
                });
                let is_planned = placement.interval.start.0 >= naive.begin;
                assert_eq!(servers.reserve(*placement), fits && is_planned);
                if fits && is_planned {
                    naive.take(*placement);
                }
            }
            Change::Forget(before) => {
                servers.forget(Time(*before));
                naive.begin = naive.begin.max(*before);
            }
        }
        same(&servers, &naive, checked);
    }
}

/// The idle periods are the complement of the allocations, for the servers and inside the search.
fn same<S: Search>(servers: &Servers<S>, naive: &PerSecond, checked: fn(&S) -> Option<Vec<Vec<IdlePeriod>>>) {
    let mut expected = naive.idle();
    let mut found = Vec::new();
    for server in 0..naive.busy.len() as u32 {
        found.extend(servers.idle(server).map(|interval| IdlePeriod {
            start: interval.start,
            end: interval.end,
            server,
        }));
    }
    assert_eq!(found, expected, "the idle periods of the servers");
    if let Some(classes) = checked(servers.search()) {
        expected.sort_by_key(|period| (servers.rate(period.server), period.key()));
        assert_eq!(classes.concat(), expected, "the idle periods in the search");
    }
}

fn allocate<S: Search>(
    servers: &mut Servers<S>,
    naive: &PerSecond,
    asked: Job,
    expected: Expected,
) -> Option<Placement> {
    let job = Job {
        ready: asked.ready.max(Time(naive.begin)),
        ..asked
    };
    let mut feasible = Vec::new();
    for period in naive.idle() {
        let rate = servers.rate(period.server).unwrap();
        let p = rate.duration(job.size);
        // Every second is tried, so that no formula is shared with the code under test.
        let fits = |s: &i64| s + p <= job.deadline.0 && period.start.0 <= *s && s + p <= period.end.0;
        if let Some(start) = (job.ready.0..=job.deadline.0).find(fits) {
            feasible.push((rate, period, Time(start)));
        }
    }
    feasible.sort_by_key(|(_, period, _)| period.key());
    let placement = servers.allocate(&asked);
    assert_eq!(
        placement.is_some(),
        !feasible.is_empty(),
        "finds one if and only if one exists"
    );
    let placement = placement?;
    let (rate, period, start) = *feasible
        .iter()
        .find(|(_, p, _)| {
            p.server == placement.server
                && p.start <= placement.interval.start
                && placement.interval.start < p.end
        })
        .expect("it chose a feasible idle period");
    assert_eq!(placement.interval, Interval::of(start, rate.duration(job.size)));
    assert!(
        expected(&feasible, &job).contains(&period),
        "chose {period:?} of {feasible:?} for {job:?}"
    );
    Some(placement)
}

/// The feasible periods of the slowest class that has any.
fn slowest(feasible: &[(Rate, IdlePeriod, Time)]) -> Vec<(IdlePeriod, Time)> {
    let rate = feasible.iter().map(|(rate, _, _)| *rate).min();
    let of_rate = feasible.iter().filter(|(r, _, _)| Some(*r) == rate);
    of_rate.map(|(_, period, start)| (*period, *start)).collect()
}

/// The first of the slowest class by `rank`.
fn first_by<R: Ord>(
    feasible: &[(Rate, IdlePeriod, Time)],
    rank: impl Fn(&IdlePeriod, Time) -> R,
) -> Vec<IdlePeriod> {
    let first = slowest(feasible)
        .into_iter()
        .min_by_key(|(period, start)| rank(period, *start));
    first.into_iter().map(|(period, _)| period).collect()
}

/// Sorts the periods that cover the ready time by least lead.
fn lead(period: &IdlePeriod) -> (i64, i64) {
    (-period.start.0, -i64::from(period.server))
}

fn play_all(case: &Case) {
    let first: Expected = |feasible, _| vec![feasible[0].1];
    play(case, FirstFitUnaware::default(), first, |_| None);
    let slowest_first: Expected = |feasible, _| first_by(feasible, |period, _| period.key());
    play(case, FirstFitAware::default(), slowest_first, |_| None);

    // Its choice depends on the shape of its tree: any of the slowest class is right here.
    let any_of_class: Expected =
        |feasible, _| slowest(feasible).into_iter().map(|(period, _)| period).collect();
    play(case, TwoDimensional::default(), any_of_class, |search| {
        Some(search.checked())
    });

    let single_tree = |search: &SingleTree| Some(search.checked());
    let no_lead: Expected = |feasible, job| {
        first_by(feasible, |period, _| {
            let covers = period.start <= job.ready;
            (covers, (!covers).then(|| period.key()), lead(period))
        })
    };
    play(case, SingleTree::default(), no_lead, single_tree);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn each_search_finds_a_period_if_and_only_if_one_exists(case in case(3, 36, 8, 7)) {
        play_all(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn deep_trees_stay_in_order(case in case(6, 600, 150, 80)) {
        play_all(&case);
    }
}

#[test]
fn a_job_that_would_miss_its_deadline_from_its_ready_time_is_infeasible() {
    let planned = Interval::new(Time(0), Time(100));
    let mut servers = Servers::new(TwoDimensional::default(), &[Rate::REFERENCE], planned);
    // st = 0 ≤ d − l/μ = 5, so the paper's expression (3) holds; but from 10 on it lasts beyond 15.
    let job = Job {
        ready: Time(10),
        size: 10,
        deadline: Time(15),
    };
    assert_eq!(servers.allocate(&job), None);
}

/// Section V of the paper: of the idle periods to the right in the dual tree of the first marked subtree, which end late enough, the largest.
#[test]
fn the_two_dimensional_search_takes_the_largest_capacity_to_the_right() {
    let period = |(start, end, server)| IdlePeriod {
        start: Time(start),
        end: Time(end),
        server,
    };
    let first_half = [(0, 200, 0), (60, 240, 1), (100, 220, 2), (120, 260, 3)].map(period);
    let mut search = TwoDimensional::default();
    search.open(1);
    // The ninth has the primal tree built anew: the first four by start are the left of its root. By end they are 0, 2, 1 and 3, and 2 is
    // the root of their dual tree.
    let second_half = (4..9).map(|server| period((120 + i64::from(server), 500, server)));
    for each in first_half.into_iter().chain(second_half) {
        search.insert(0, each, &mut 0);
    }
    let servers = [(150, 50), (0, 185), (0, 201)].map(|(ready, duration)| {
        let demand = JobDemand {
            ready: Time(ready),
            latest: Time(400),
            duration,
        };
        search.find(&[Some(demand)], &mut 0).map(|found| found.server)
    });
    // All of them are feasible: not the one that starts first, nor the longest of all, which is to the left, nor the one that ends last.
    assert_eq!(servers[0], Some(1));
    // To the right of the root none is long enough.
    assert_eq!(servers[1], Some(0));
    // Nor is one in the whole subtree.
    assert!(matches!(servers[2], Some(4..)));
}
