//! Facts about decisions, against a scan of all resources.

use super::candidate::ranked_candidate;
use super::least_lost::COMPARED_MAX;
use super::{Attribute, Candidate, Domain, Forecast, Forecasts, ForeseenTimes, HasPlan, Objective};
use super::{Rank, Requirement, Resource, Task};
use crate::rate::Rate;
use crate::refusal::Reason;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const OBJECTIVES: [Objective; 3] = [
    Objective::EarliestCompletion,
    Objective::Cheapest,
    Objective::LatestStart,
];

/// Candidates from best to worst; of equal ones on a resource the shorter slot.
fn order(candidate: &Candidate) -> (Rank, Reverse<Time>) {
    (candidate.rank, Reverse(candidate.slot.start))
}

impl<P: HasPlan> Domain<P> {
    /// The plain scan: each matching resource is searched over the whole window, step by step of its forecast.
    fn scan(
        &self,
        task: &Task,
        objective: Objective,
        now: Time,
        duration: impl Fn(&Resource) -> Seconds,
    ) -> Option<Candidate> {
        let window = Interval::new(task.window.start.max(now), task.window.end);
        let mut best: Option<Candidate> = None;
        for (resource, plan) in self.iter() {
            let matching = task.requires.iter().all(|r| r.holds(&resource.attributes));
            if !matching || task.except.contains(&resource.id) {
                continue;
            }
            let by_rate = || Forecast::constant(ForeseenTimes::exact(duration(resource)));
            let given = task
                .forecasts
                .as_ref()
                .and_then(|forecast| forecast.of(resource.id));
            let forecast = given.cloned().unwrap_or_else(by_rate);
            for (starts, foreseen) in forecast.steps() {
                let start = starts.start.max(window.start);
                let end = window.end.min(starts.end + (foreseen.hold - 1));
                let within = Interval::new(start, end);
                let (nodes, hold) = (task.nodes, foreseen.hold);
                let is_last = objective == Objective::LatestStart
                    || objective == Objective::Cheapest && foreseen.rise < 0;
                let start = if is_last {
                    plan.plan().latest_fit(nodes, hold, within)
                } else {
                    plan.plan().earliest_fit(nodes, hold, within)
                };
                let found =
                    start.map(|start| ranked_candidate(objective, task, resource, start, forecast.at(start)));
                best = best.into_iter().chain(found).min_by_key(order);
            }
        }
        best
    }

    /// The plainest scan: of a task with a forecast for every resource it looks at each second.
    fn scan_seconds(&self, task: &Task, objective: Objective, now: Time) -> Option<Candidate> {
        let window = Interval::new(task.window.start.max(now), task.window.end);
        let mut all = Vec::new();
        for (resource, plan) in self.iter() {
            let matching = task.requires.iter().all(|r| r.holds(&resource.attributes));
            let forecast = task
                .forecasts
                .as_ref()
                .and_then(|forecast| forecast.of(resource.id));
            let Some(forecast) = forecast.filter(|_| matching && !task.except.contains(&resource.id)) else {
                continue;
            };
            for start in (window.start.0..window.end.0).map(Time) {
                let foreseen = forecast.at(start);
                let slot = Interval::of(start, foreseen.hold);
                let free = plan.plan().earliest_fit(task.nodes, foreseen.hold, slot);
                if window.contains(slot) && free == Some(start) {
                    all.push(ranked_candidate(objective, task, resource, start, foreseen));
                }
            }
        }
        all.into_iter().min_by_key(order)
    }

    /// The least work lost, second by second: of the slowest rate, the resources that complete first, and their starts from that
    /// of the earliest completion on for which the same is foreseen.
    fn scan_lost(
        &self,
        task: &Task,
        now: Time,
        duration: impl Fn(&Resource) -> Seconds,
    ) -> Option<(Time, u64, i64)> {
        let window = Interval::new(task.window.start.max(now), task.window.end);
        let rates: BTreeSet<_> = self.iter().map(|(resource, _)| resource.rate).collect();
        let of_rate = |rate| {
            let mut firsts = Vec::new();
            for (resource, plan) in self.iter().filter(|(resource, _)| resource.rate == rate) {
                let only = Task {
                    except: self
                        .numbers
                        .keys()
                        .copied()
                        .filter(|id| *id != resource.id)
                        .collect(),
                    ..task.clone()
                };
                let first = self.scan(&only, Objective::EarliestCompletion, now, &duration);
                let excepted = task.except.contains(&resource.id);
                firsts.extend(first.filter(|_| !excepted).map(|first| (first, plan.plan())));
            }
            firsts.sort_by_key(|(first, _)| order(first));
            firsts.truncate(COMPARED_MAX);
            let each = firsts.into_iter().flat_map(|(first, plan)| {
                let hold = first.foreseen.hold;
                let seconds: Vec<u32> = (0..window.end.0)
                    .map(|t| plan.min_free(Interval::of(Time(t), 1)))
                    .collect();
                let same = move |start: Time| {
                    let forecast = task
                        .forecasts
                        .as_ref()
                        .and_then(|forecast| forecast.of(first.resource));
                    forecast.is_none_or(|forecast| forecast.step(start) == forecast.step(first.slot.start))
                };
                let starts = (first.slot.start.0..=window.end.0 - hold).map(Time);
                let starts = starts.take_while(move |start| same(*start));
                let at = |t: i64| usize::try_from(t).unwrap_or(0);
                let fits = |start: &Time| {
                    let held = &seconds[at(start.0)..at(start.0 + hold)];
                    held.iter().all(|free| *free >= task.nodes)
                };
                let starts: Vec<Time> = starts.filter(fits).collect();
                starts.into_iter().map(move |start| {
                    let here = seconds[at(start.0)];
                    // Of each level of the free nodes, from the uppermost down, the seconds that it was idle before.
                    let lead = |level: u32| {
                        let before = (now.0.max(start.0 - hold)..start.0).rev();
                        before.take_while(|t| seconds[at(*t)] >= level).count()
                    };
                    let leads: usize = (here - task.nodes + 1..=here).map(lead).sum();
                    let wait = i64::from(task.nodes) * (start - window.start);
                    let lost = wait + i64::try_from(leads).unwrap_or(i64::MAX);
                    (lost, start + hold, first.resource, start)
                })
            });
            let (lost, _, resource, start) = each.min()?;
            Some((start, resource, lost))
        };
        rates.into_iter().find_map(of_rate)
    }

    fn check(&self) {
        self.index.check(&self.plans);
    }
}

impl Domain<SlotTree> {
    /// Takes nodes of a resource, if it is known and they are free.
    fn reserve(&mut self, resource: u64, slot: Interval, nodes: u32) -> Option<bool> {
        self.change(resource, |plan| (plan.reserve(slot, nodes).is_ok(), vec![slot]))
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Take the best for an objective, as it is decided.
    Place(Task, usize),
    Release(usize),
    /// Take something somewhere, if it is free.
    Reserve(u64, Interval, u32),
    Advance(i64),
    /// Resources come, with these capacities at most.
    Join(Vec<(Resource, u32)>),
    Leave(usize),
    /// A resource gets this capacity, if it can.
    Resize(usize, u32),
    /// This number of resources become others.
    Revise(usize, Resource),
}

fn resource(id: u64) -> impl Strategy<Value = (Resource, u32)> {
    let rate = prop_oneof![Just(500_000), Just(1_000_000), Just(1_000_001), Just(2_000_000)];
    (rate, 1..4_u32, 1..20_u32, 0..3_i64, any::<bool>()).prop_map(
        move |(rate, price, capacity, memory, gpu)| {
            let mut attributes = BTreeMap::from([("memory".into(), Attribute::Number(memory))]);
            if gpu {
                attributes.insert("gpu".into(), Attribute::Word("big".into()));
            }
            let rate = Rate::from_millionths(rate).expect("not zero");
            let resource = Resource {
                id,
                rate,
                price,
                attributes,
            };
            (resource, capacity)
        },
    )
}

fn interval(horizon: i64, longest: i64) -> impl Strategy<Value = Interval> {
    (0..horizon, 1..longest).prop_map(|(start, duration)| Interval::of(Time(start), duration))
}

/// What is foreseen of a start; seldom more than fits.
fn foreseen(horizon: i64) -> impl Strategy<Value = ForeseenTimes> {
    let seconds = || prop_oneof![4 => 1..horizon / 20, 1 => 1..horizon / 4];
    let loss = prop_oneof![3 => Just(0), 3 => -200..200_i128, 1 => Just(i128::MAX)];
    // By more than one in a second, if at all: where it falls by less, the first start of the least loss is not looked for.
    let rise = prop_oneof![2 => Just(0), 1 => 1..5_i128, 1 => -5..-1_i128];
    let late = prop_oneof![3 => Just(0), 1 => -horizon / 20..horizon / 10, 1 => Just(i64::MAX)];
    (seconds(), late, loss, rise).prop_map(move |(hold, late, loss, rise)| ForeseenTimes {
        hold,
        completion: hold.saturating_add(late).max(1),
        loss: if rise == 0 { loss } else { loss.min(200) },
        rise: rise * i128::from(horizon),
    })
}

/// Forecasts for resources that there are, and for others.
fn forecasts(horizon: i64, resources: u64) -> impl Strategy<Value = Forecasts> {
    let steps = proptest::collection::vec((-5..horizon, foreseen(horizon)), 1..7);
    let forecast = steps.prop_map(|steps| {
        let steps = steps.into_iter().map(|(from, foreseen)| (Time(from), foreseen));
        Arc::new(Forecast::new(steps.collect()).expect("steps from 1 s up"))
    });
    let all = proptest::collection::vec(forecast, usize::try_from(resources + 2).unwrap_or(0));
    // Each of them, or some.
    let some = prop_oneof![1 => Just(u64::MAX), 1 => any::<u64>()];
    (all, some).prop_map(|(all, some)| {
        let numbered = (999..).zip(all);
        Forecasts::new(numbered.filter(|(id, _)| some >> (id % 64) & 1 == 1))
    })
}

fn task(horizon: i64, resources: u64) -> impl Strategy<Value = Task> {
    let requires = prop_oneof![
        2 => Just(vec![]),
        1 => Just(vec![Requirement::Is("gpu".into(), Attribute::Word("big".into()))]),
        1 => Just(vec![Requirement::Within("memory".into(), vec![(1, i64::MAX)])]),
        1 => Just(vec![Requirement::Within("memory".into(), vec![(0, 0), (2, 1), (2, 9)])]),
    ];
    let work = prop_oneof![3 => 1..horizon / 20, 1 => 1..horizon / 4];
    let except = proptest::collection::vec(1_000..1_100_u64, 0..3);
    let forecasts = proptest::option::of(forecasts(horizon, resources));
    let window = interval(horizon, horizon / 2);
    (1..20_u32, work, window, requires, except, forecasts).prop_map(
        |(nodes, work, window, requires, except, forecasts)| Task {
            nodes,
            work,
            window,
            requires,
            except,
            forecasts,
        },
    )
}

fn steps(resources: u64, horizon: i64, most: usize) -> impl Strategy<Value = Vec<Step>> {
    // More than are worth a new index, where there are many.
    let many = usize::try_from(resources).expect("few");
    // Among them some for which there are forecasts.
    let new = prop_oneof![0..2_000_u64, 999..1_001 + resources];
    let step = prop_oneof![
        4 => (task(horizon, resources), 0..3_usize).prop_map(|(task, objective)| Step::Place(task, objective)),
        2 => any::<usize>().prop_map(Step::Release),
        3 => (1_000..1_000 + resources, interval(horizon, horizon / 5), 1..20_u32)
            .prop_map(|(id, slot, nodes)| Step::Reserve(id, slot, nodes)),
        1 => (0..horizon / 10).prop_map(Step::Advance),
        1 => proptest::collection::vec(new.prop_flat_map(resource), 1..many).prop_map(Step::Join),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => (any::<usize>(), 1..40_u32).prop_map(|(which, capacity)| Step::Resize(which, capacity)),
        1 => (1..many, resource(0)).prop_map(|(most, (as_is, _))| Step::Revise(most, as_is)),
    ];
    proptest::collection::vec(step, 1..most)
}

fn case(
    resources: u64,
    horizon: i64,
    most: usize,
) -> impl Strategy<Value = (Vec<(Resource, u32)>, Vec<Step>)> {
    let all: Vec<_> = (0..resources)
        .map(|k| resource(1_000 + (k * 7) % resources))
        .collect();
    (all, steps(resources, horizon, most))
}

/// Each decision about a task is that of the scans.
fn check_decisions(domain: &Domain<SlotTree>, task: &Task, now: Time, horizon: i64) {
    let work_lost = |found: Result<Candidate, Reason>| {
        let found = found.ok()?;
        let lost = found.rank.objective & ((1 << 95) - 1);
        Some((
            found.slot.start,
            found.resource,
            i64::try_from(lost).unwrap_or(-1),
        ))
    };
    if horizon < 1_000 {
        let found = work_lost(domain.decide(task, Objective::LeastWorkLost));
        let expected = domain.scan_lost(task, now, |each| each.rate.duration(task.work));
        assert_eq!(found, expected, "{task:?} for the least work lost at {now}");
        let found = work_lost(domain.decide_contract(task, Objective::LeastWorkLost));
        let expected = domain.scan_lost(task, now, |_| task.work);
        assert_eq!(
            found, expected,
            "{task:?} for the least work lost at {now} by contract"
        );
    }
    let given = |forecasts: &Forecasts| domain.numbers.keys().all(|id| forecasts.of(*id).is_some());
    // Over days it would take days.
    let foreseen = horizon < 1_000 && task.forecasts.as_ref().is_some_and(given);
    for objective in OBJECTIVES {
        let found = domain.decide(task, objective);
        let by_rate = |resource: &Resource| resource.rate.duration(task.work);
        let expected = domain.scan(task, objective, now, by_rate);
        assert_eq!(found.ok(), expected, "{task:?} for {objective:?} at {now}");
        let found = domain.decide_contract(task, objective);
        let expected = domain.scan(task, objective, now, |_| task.work);
        assert_eq!(
            found.ok(),
            expected,
            "{task:?} for {objective:?} at {now} by contract"
        );
        if foreseen {
            let plainest = domain.scan_seconds(task, objective, now);
            assert_eq!(
                plainest, expected,
                "{task:?} for {objective:?} at {now} by the second"
            );
        }
    }
}

fn play(resources: Vec<(Resource, u32)>, steps: Vec<Step>, horizon: i64) {
    let planned = Interval::new(Time(0), Time(horizon));
    let plans = resources
        .into_iter()
        .map(|(resource, capacity)| (resource, SlotTree::new(capacity)));
    let mut domain = Domain::new(planned, plans.collect());
    let mut live = Vec::new();
    let mut now = Time(0);
    for step in steps {
        match step {
            Step::Place(task, chosen) => {
                check_decisions(&domain, &task, now, horizon);
                if let Ok(best) = domain.decide(&task, OBJECTIVES[chosen]) {
                    assert_eq!(domain.reserve(best.resource, best.slot, task.nodes), Some(true));
                    live.push((best.resource, best.slot, task.nodes));
                }
            }
            Step::Release(number) if !live.is_empty() => {
                let (id, slot, nodes) = live.swap_remove(number % live.len());
                let released = domain.change(id, |plan| (plan.release(slot, nodes), vec![slot]));
                assert_eq!(released, Some(Ok(())));
            }
            Step::Release(_) => {}
            Step::Reserve(id, slot, nodes) => {
                if domain.reserve(id, slot, nodes) == Some(true) {
                    live.push((id, slot, nodes));
                }
            }
            Step::Advance(seconds) => {
                now = now + seconds;
                domain.advance(now);
            }
            Step::Join(more) => {
                let more: BTreeMap<u64, _> = more.into_iter().map(|more| (more.0.id, more)).collect();
                let new = more
                    .into_values()
                    .filter(|(more, _)| domain.get(more.id).is_none());
                let plans = new.map(|(resource, capacity)| (resource, SlotTree::new(capacity)));
                domain.insert(plans.collect());
            }
            Step::Leave(which) => {
                let ids: Vec<u64> = domain.iter().map(|(domain, _)| domain.id).collect();
                let id = ids.get(which % ids.len().max(1)).copied().unwrap_or(0);
                assert_eq!(
                    domain.remove(id).map(|(domain, _)| domain.id),
                    ids.contains(&id).then_some(id)
                );
                assert!(domain.remove(id).is_none());
                live.retain(|(live, ..)| *live != id);
            }
            Step::Resize(which, capacity) => {
                let all: Vec<Resource> = domain.iter().map(|(domain, _)| domain.clone()).collect();
                let Some(resource) = all.get(which % all.len().max(1)) else {
                    continue;
                };
                let resize = |plan: &mut SlotTree| {
                    let busy = plan.steps().map(|(_, free)| plan.capacity() - free).max();
                    let resized = plan.resize(capacity).is_ok();
                    ((busy, resized), vec![Interval::new(now, Time(horizon * 2))])
                };
                let (busy, resized) = domain.change(resource.id, resize).expect("it is there");
                assert_eq!(resized, busy <= Some(capacity));
                domain.revise(vec![resource.clone()]);
            }
            Step::Revise(most, as_is) => {
                let all = domain.iter().take(most).map(|(domain, _)| Resource {
                    id: domain.id,
                    ..as_is.clone()
                });
                domain.revise(all.collect());
            }
        }
    }
    domain.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_decision_is_that_of_a_plain_scan((resources, steps) in case(5, 400, 40)) {
        play(resources, steps, 400);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn and_where_two_resources_are_crowded((resources, steps) in case(2, 100, 80)) {
        play(resources, steps, 100);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn and_over_days_among_more_resources((resources, steps) in case(80, 400_000, 250)) {
        play(resources, steps, 400_000);
    }
}

fn plain(id: u64, capacity: u32) -> (Resource, SlotTree) {
    let resource = Resource {
        id,
        rate: Rate::REFERENCE,
        price: 1,
        attributes: BTreeMap::from([("arch".into(), Attribute::Word("x86".into()))]),
    };
    (resource, SlotTree::new(capacity))
}

#[test]
fn a_refusal_says_why() {
    let planned = Interval::new(Time(0), Time(1_000));
    let mut domain = Domain::new(planned, vec![plain(3, 4), plain(2, 8)]);
    domain.advance(Time(100));
    let task = Task {
        nodes: 8,
        work: 50,
        window: Interval::new(Time(200), Time(260)),
        requires: vec![],
        except: vec![],
        forecasts: None,
    };
    let decide = |domain: &Domain<SlotTree>, task: &Task| {
        domain.decide(task, Objective::default()).map(|c| c.resource)
    };
    assert_eq!(decide(&domain, &task), Ok(2));
    let on_both = |steps: Vec<(Time, ForeseenTimes)>| {
        let forecast = Arc::new(Forecast::new(steps).unwrap());
        Some(Forecasts::new([(2, forecast.clone()), (3, forecast)]))
    };
    let other = Requirement::Is("arch".into(), Attribute::Word("arm".into()));
    let cases = [
        (
            Task {
                requires: vec![other],
                ..task.clone()
            },
            Reason::ResourceNotOffered,
        ),
        (
            Task {
                except: vec![2, 3],
                ..task.clone()
            },
            Reason::ResourceNotOffered,
        ),
        (
            Task {
                nodes: 9,
                ..task.clone()
            },
            Reason::SizeExceedsCapacity,
        ),
        (
            Task {
                work: 61,
                ..task.clone()
            },
            Reason::WindowContradictory,
        ),
        (
            Task {
                window: Interval::new(Time(60), Time(149)),
                ..task.clone()
            },
            Reason::WindowInThePast,
        ),
        (
            Task {
                forecasts: on_both(vec![(Time(0), ForeseenTimes::exact(61))]),
                ..task.clone()
            },
            Reason::WindowContradictory,
        ),
        (
            // Before now it was short enough.
            Task {
                window: Interval::new(Time(60), Time(149)),
                forecasts: on_both(vec![
                    (Time(60), ForeseenTimes::exact(50)),
                    (Time(90), ForeseenTimes::exact(60)),
                ]),
                ..task.clone()
            },
            Reason::WindowInThePast,
        ),
    ];
    for (task, reason) in cases {
        assert_eq!(decide(&domain, &task), Err(reason), "{task:?}");
    }
    assert_eq!(
        domain.reserve(2, Interval::new(Time(205), Time(255)), 1),
        Some(true)
    );
    assert_eq!(decide(&domain, &task), Err(Reason::NoCapacityInWindow));
    assert_eq!(domain.reserve(7, planned, 1), None);
}

#[test]
fn a_tie_goes_to_the_lower_id() {
    let planned = Interval::new(Time(0), Time(1_000));
    let domain = Domain::new(planned, vec![plain(9, 4), plain(2, 4), plain(5, 4)]);
    let task = Task {
        nodes: 1,
        work: 10,
        window: planned,
        requires: vec![],
        except: vec![],
        forecasts: None,
    };
    for objective in OBJECTIVES {
        assert_eq!(
            domain.decide(&task, objective).map(|c| c.resource),
            Ok(2),
            "{objective:?}"
        );
    }
}
