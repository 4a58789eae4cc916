//! The changes that a trial leaves: all of them where it finds a place, and none where it does not.

use domain::resources::Resource;
use proptest::prelude::*;
use scheduler::{Interval, Request, Time};
use uuid::Uuid;

use super::*;
use crate::decider::Decider;
use crate::request::RememberedAnswers;
use crate::schedules::Schedules;
use crate::tests::harness::{Domain, proposal};

/// The requests in the schedules of both resources, with their starts, and the free nodes at each second.
type Whole = (Vec<(usize, Request, Time)>, Vec<u32>);

fn whole(resources: &Schedules) -> Whole {
    let (mut requests, mut free) = (Vec::new(), Vec::new());
    for (at, plan) in resources.plans().enumerate() {
        // A slot that is over by now has no place to come back to.
        let now = plan.schedule.now();
        let open = plan.schedule.placements().filter(|lies| lies.slot.end > now);
        requests.extend(open.map(|lies| {
            // A slot that begins at this second may run already.
            let waiting = plan
                .schedule
                .waiting_at(lies.id)
                .filter(|(_, start)| *start > now);
            let waiting = waiting.map(|(request, _)| request);
            let rest = |start: Time| Request {
                duration: lies.slot.end - start,
                ..request(lies.id, (lies.nodes, 0), (0, 0))
            };
            // A running slot is known by its rest.
            let start = lies.slot.start.max(now);
            (at, waiting.unwrap_or_else(|| rest(start)), start)
        }));
        let second = |at| plan.schedule.tree().min_free(Interval::of(Time(at), 1));
        free.extend((0..200).map(second));
    }
    requests.sort_unstable_by_key(|(at, request, _)| (*at, request.id));
    (requests, free)
}

fn request(id: u64, (nodes, duration): (u32, i64), (ready, deadline): (i64, i64)) -> Request {
    Request {
        id,
        submitted: Time(0),
        ready: Time(ready),
        deadline: Time(deadline),
        duration,
        nodes,
        revenue: 0,
    }
}

/// One step of a trial.
#[derive(Debug, Clone)]
enum Step {
    Submit(usize, u32, i64, i64),
    Put(usize, u32, i64, i64),
    PutBoth(usize, u32, i64),
    Vacate(usize, u64),
    Withdraw(usize, u64),
    Fix(usize, u64),
    /// The next steps up to as many are a trial of their own, which succeeds or not.
    Within(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..2_usize;
    let (nodes, length, start) = (1..5_u32, 1..40_i64, 0..120_i64);
    prop_oneof![
        3 => (at.clone(), nodes.clone(), length.clone(), start.clone()).prop_map(|(at, n, l, s)| Step::Submit(at, n, l, s)),
        2 => (at.clone(), nodes.clone(), length, start.clone()).prop_map(|(at, n, l, s)| Step::Put(at, n, l, s)),
        1 => (at.clone(), nodes, start).prop_map(|(at, n, s)| Step::PutBoth(at, n, s)),
        3 => (at.clone(), 0..24_u64).prop_map(|(at, number)| Step::Vacate(at, number)),
        1 => (at.clone(), 0..24_u64).prop_map(|(at, number)| Step::Withdraw(at, number)),
        1 => (at, 0..24_u64).prop_map(|(at, number)| Step::Fix(at, number)),
        1 => (1..4_usize, any::<bool>()).prop_map(|(steps, stays)| Step::Within(steps, stays)),
    ]
}

/// Takes steps on a plan at the time `now`; new requests are numbered from `next` on.
fn take(search: &mut Search<'_>, steps: &[Step], now: Time, next: &mut u64) {
    let mut rest = steps;
    while let Some((step, after)) = rest.split_first() {
        rest = after;
        *next += 2;
        let resources = &mut *search.schedules;
        match *step {
            Step::Submit(at, nodes, length, start) => {
                let request = request(*next, (nodes, length), (start, start + 2 * length));
                resources.submit(at, now, &request);
            }
            Step::Put(at, nodes, length, start) => {
                let request = request(*next, (nodes, length), (start, start + length));
                let _ = resources.put(at, now, &request, Time(start.max(now.seconds())));
            }
            Step::PutBoth(at, nodes, start) => {
                let start = start.max(now.seconds());
                let both = [*next, *next + 1].map(|id| {
                    let request = request(id, (nodes, 10), (start, start + 10));
                    (request, Time(start))
                });
                let before = whole(resources);
                if !resources.put_all(at, now, &both) {
                    assert_eq!(whole(resources), before, "all or none");
                }
            }
            Step::Vacate(at, number) => resources.vacate(at, now, number),
            Step::Withdraw(at, number) => {
                let _ = resources.withdraw(at, number);
            }
            Step::Fix(at, number) => resources.fix(at, number),
            Step::Within(steps, stays) => {
                let (inner, after) = rest.split_at(steps.min(rest.len()));
                rest = after;
                let before = whole(resources);
                run_trial(search, |search| {
                    take(search, inner, now, next);
                    stays.then_some(())
                });
                if !stays {
                    assert_eq!(whole(search.schedules), before);
                }
            }
        }
    }
}

/// A crowded domain of two resources, some seconds after the first slots have begun.
fn domain(taken: &[(u32, i64, i64, i64)]) -> Domain {
    let mut domain = Domain::new(vec![
        Resource::new("local", "local", 4),
        Resource::new("other", "local", 4),
    ]);
    for (nodes, length, start, slack) in taken {
        let _ = domain.place(proposal(*nodes, *length, (*start, start + length + slack)));
    }
    domain.begin(20);
    for at in 0..2 {
        let advance = |schedule: &mut scheduler::Schedule| (schedule.advance(Time(20)), Vec::new());
        domain.state.schedules.change_schedule(at, advance);
    }
    domain
}

fn taken() -> impl Strategy<Value = Vec<(u32, i64, i64, i64)>> {
    let one = (1..5_u32, 5..40_i64, 0..100_i64, 0..60_i64);
    prop::collection::vec(one, 4..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_fails_or_was_only_supposed_leaves_everything_as_it_was(
        taken in taken(),
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut domain = domain(&taken);
        domain.moves_up = false;
        let before = whole(&domain.state.schedules);
        let mut next = 1_000;
        domain.decide(|decider| {
            let failed = run_trial(&mut decider.search(), |search| {
                take(search, &steps, Time(20), &mut next);
                None::<()>
            });
            assert_eq!(failed, None);
        });
        prop_assert_eq!(&whole(&domain.state.schedules), &before);
        domain.decide(|decider| suppose_in_trial(&mut decider.search(), |search| take(search, &steps, Time(20), &mut next)));
        prop_assert_eq!(&whole(&domain.state.schedules), &before);
        domain.check();
    }

    #[test]
    fn what_succeeds_is_as_if_it_had_not_been_a_trial(
        taken in taken(),
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let [tried, plain] = [true, false].map(|is_trial| {
            let mut domain = domain(&taken);
            domain.moves_up = false;
            let mut next = 1_000;
            domain.decide(|decider| {
                if is_trial {
                    run_trial(&mut decider.search(), |search| {
                        take(search, &steps, Time(20), &mut next);
                        Some(())
                    });
                } else {
                    take(&mut decider.search(), &steps, Time(20), &mut next);
                }
            });
            whole(&domain.state.schedules)
        });
        prop_assert_eq!(tried, plain);
    }
}

#[test]
fn a_step_back_that_fails_makes_the_plan_impossible() {
    let mut domain = domain(&[(4, 30, 50, 0)]);
    let number = domain
        .state
        .placement
        .numbers_of(domain.known.values().next().unwrap().id)[0];
    let mut batch = Vec::new();
    let mut decider = Decider::new(
        &domain.settings,
        &mut domain.state,
        20_000_000,
        Uuid::now_v7,
        &mut batch,
        RememberedAnswers::new(),
    );
    suppose_in_trial(&mut decider.search(), |search| {
        search.schedules.vacate(0, Time(20), number);
        // It is not noted.
        search.schedules.change_schedule(0, |schedule| {
            schedule.resize(3).unwrap();
            ((), Vec::new())
        });
    });
    let why = domain
        .state
        .why_impossible()
        .expect("there is no room to come back to");
    assert!(why.contains("cannot be taken: 1 node"), "{why}");
}
