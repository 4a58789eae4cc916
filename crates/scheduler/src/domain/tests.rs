//! Facts about decisions, against a scan of all resources.

use super::search::candidate;
use super::{Attribute, Candidate, Domain, Objective, Planned, Requirement, Resource, Task};
use crate::rate::Rate;
use crate::refusal::Reason;
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

const OBJECTIVES: [Objective; 3] = [
    Objective::EarliestCompletion,
    Objective::Cheapest,
    Objective::LatestStart,
];

impl<P: Planned> Domain<P> {
    /// The plain scan: each matching resource is searched over the whole window.
    fn scan(
        &self,
        task: &Task,
        objective: Objective,
        now: Time,
        duration: impl Fn(&Resource) -> Option<Seconds>,
    ) -> Option<Candidate> {
        let window = Interval::new(task.window.start.max(now), task.window.end);
        let of = |(resource, plan): (&Resource, &P)| {
            let matching = task.requires.iter().all(|r| r.holds(&resource.attributes));
            if !matching || task.except.contains(&resource.id) {
                return None;
            }
            let duration = duration(resource)?;
            let start = match objective {
                Objective::LatestStart => plan.plan().latest_fit(task.nodes, duration, window)?,
                _ => plan.plan().earliest_fit(task.nodes, duration, window)?,
            };
            Some(candidate(
                objective,
                task,
                resource,
                Interval::of(start, duration),
            ))
        };
        self.iter().filter_map(of).min_by_key(|c| c.rank)
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

fn task(horizon: i64) -> impl Strategy<Value = Task> {
    let requires = prop_oneof![
        2 => Just(vec![]),
        1 => Just(vec![Requirement::Is("gpu".into(), Attribute::Word("big".into()))]),
        1 => Just(vec![Requirement::Within("memory".into(), vec![(1, i64::MAX)])]),
        1 => Just(vec![Requirement::Within("memory".into(), vec![(0, 0), (2, 1), (2, 9)])]),
    ];
    let work = prop_oneof![3 => 1..horizon / 20, 1 => 1..horizon / 4];
    let except = proptest::collection::vec(1_000..1_100_u64, 0..3);
    (1..20_u32, work, interval(horizon, horizon / 2), requires, except).prop_map(
        |(nodes, work, window, requires, except)| Task {
            nodes,
            work,
            window,
            requires,
            except,
        },
    )
}

fn steps(resources: u64, horizon: i64, most: usize) -> impl Strategy<Value = Vec<Step>> {
    // More than are worth a new index, where there are many.
    let many = usize::try_from(resources).expect("few");
    let step = prop_oneof![
        4 => (task(horizon), 0..3_usize).prop_map(|(task, objective)| Step::Place(task, objective)),
        2 => any::<usize>().prop_map(Step::Release),
        3 => (1_000..1_000 + resources, interval(horizon, horizon / 5), 1..20_u32)
            .prop_map(|(id, slot, nodes)| Step::Reserve(id, slot, nodes)),
        1 => (0..horizon / 10).prop_map(Step::Advance),
        1 => proptest::collection::vec((0..2_000_u64).prop_flat_map(resource), 1..many).prop_map(Step::Join),
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
                for objective in OBJECTIVES {
                    let found = domain.decide(&task, objective);
                    let by_rate = |of: &Resource| Some(of.rate.duration(task.work));
                    let expected = domain.scan(&task, objective, now, by_rate);
                    assert_eq!(found.ok(), expected, "{task:?} for {objective:?} at {now}");
                    let found = domain.decide_contract(&task, objective);
                    let expected = domain.scan(&task, objective, now, |_| Some(task.work));
                    assert_eq!(
                        found.ok(),
                        expected,
                        "{task:?} for {objective:?} at {now} by contract"
                    );
                }
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
                let more: BTreeMap<u64, _> = more.into_iter().map(|of| (of.0.id, of)).collect();
                let new = more.into_values().filter(|(of, _)| domain.get(of.id).is_none());
                let plans = new.map(|(resource, capacity)| (resource, SlotTree::new(capacity)));
                domain.insert(plans.collect());
            }
            Step::Leave(which) => {
                let ids: Vec<u64> = domain.iter().map(|(of, _)| of.id).collect();
                let id = ids.get(which % ids.len().max(1)).copied().unwrap_or(0);
                assert_eq!(
                    domain.remove(id).map(|(of, _)| of.id),
                    ids.contains(&id).then_some(id)
                );
                assert!(domain.remove(id).is_none());
                live.retain(|(of, ..)| *of != id);
            }
            Step::Resize(which, capacity) => {
                let all: Vec<Resource> = domain.iter().map(|(of, _)| of.clone()).collect();
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
                let all = domain.iter().take(most).map(|(of, _)| Resource {
                    id: of.id,
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
    };
    let decide = |domain: &Domain<SlotTree>, task: &Task| {
        domain.decide(task, Objective::default()).map(|c| c.resource)
    };
    assert_eq!(decide(&domain, &task), Ok(2));
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
    };
    for objective in OBJECTIVES {
        assert_eq!(
            domain.decide(&task, objective).map(|c| c.resource),
            Ok(2),
            "{objective:?}"
        );
    }
}
