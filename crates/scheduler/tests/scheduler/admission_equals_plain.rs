//! The fast admission decides as the plain algorithm does, and its plan is always valid: over random workloads with every order,
//! both decision rules, fixing, alternatives, early completion and cancellation, with and without a budget and other orders.

use crate::plain::{PlacedRequest, Plain};
use proptest::prelude::*;
use scheduler::alternatives::AlternativeLimits;
use scheduler::schedule::DecisionRule;
use scheduler::{Decision, Fraction, Interval, Move, Order, Request, Schedule, SlotTree, Time};
use std::collections::BTreeMap;

const CAPACITY: u32 = 8;

#[derive(Debug, Clone)]
enum Step {
    /// A request with times from now, submitted after this many seconds.
    Submit(i64, Request),
    /// The same, and the first alternative is taken after a refusal.
    Insist(i64, Request),
    /// Rebuilds the plan from its placements, as after a restart, and finds the requests at their first fit, or does not.
    Restore(bool),
    /// After this many seconds moves some up, with this much work, this many of them at most.
    Improve(i64, u64, usize),
    /// Takes the k-th accepted request out after this many seconds, and leaves all others where they are.
    Vacate(i64, usize),
    /// Takes the k-th accepted request out after this many seconds, and puts another at its start: longer by the second number, in
    /// seconds, with the given nodes. The first one is put back where there is no room for that.
    Replace(i64, usize, i64, u32),
    /// After this many seconds asks for the decision about a request, without submitting it.
    Ask(i64, Request),
    /// Ends the k-th accepted request after this many seconds, running or not.
    End(i64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let request = || {
        let slack = prop_oneof![Just(0_i64), 0..30_i64, 0..200_i64];
        let shape = (0..60_i64, 1..25_i64, slack, 1..=CAPACITY, 0..50_u64);
        let request = shape.prop_map(|(ready, duration, slack, nodes, revenue)| Request {
            id: 0,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(ready + duration + slack),
            duration,
            nodes,
            revenue,
        });
        (0..12_i64, request)
    };
    prop_oneof![
        7 => request().prop_map(|(passed, request)| Step::Submit(passed, request)),
        2 => request().prop_map(|(passed, request)| Step::Insist(passed, request)),
        1 => any::<bool>().prop_map(Step::Restore),
        2 => (0..12_i64, 0..1_000_u64, 0..8_usize).prop_map(|(passed, work, most)| Step::Improve(passed, work, most)),
        3 => (0..6_i64, any::<usize>()).prop_map(|(passed, k)| Step::Vacate(passed, k)),
        1 => (0..12_i64, any::<usize>(), -10..20_i64, 1..=CAPACITY)
            .prop_map(|(passed, k, longer, nodes)| Step::Replace(passed, k, longer, nodes)),
        1 => request().prop_map(|(passed, request)| Step::Ask(passed, request)),
        2 => (0..12_i64, any::<usize>()).prop_map(|(passed, k)| Step::End(passed, k)),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Fifo),
        any::<u64>().prop_map(|seed| Order::Shuffle { seed }),
        Just(Order::Bjf),
        Just(Order::Lff),
        Just(Order::Edf),
        Just(Order::Mdf),
        Just(Order::Brf),
    ]
}

fn rule() -> impl Strategy<Value = DecisionRule> {
    prop::sample::select(DecisionRule::ALL.to_vec())
}

fn fixing() -> impl Strategy<Value = Option<Fraction>> {
    prop_oneof![
        4 => Just(None),
        3 => prop::sample::select(vec![0, 25, 50, 75]).prop_map(|p| Some(Fraction::percent(p))),
    ]
}

/// Every accepted request that has not ended is still there, in the window it asked for, at the place of the last answer, and the
/// tree holds exactly the placements. `told` are the slots by the answers.
fn check_plan(schedule: &Schedule, asked: &BTreeMap<u64, Request>, told: &mut BTreeMap<u64, Interval>) {
    assert_eq!(schedule.fault(), None);
    let mut tree = SlotTree::new(CAPACITY);
    tree.forget(schedule.now());
    for placement in schedule.placements() {
        let request = &asked[&placement.id];
        assert_eq!(placement.nodes, request.nodes);
        assert_eq!(placement.slot.duration(), request.duration);
        assert!(
            request.window().contains(placement.slot),
            "{placement:?} outside of {request:?}"
        );
        assert_eq!(schedule.placement(placement.id), Some(placement));
        assert_eq!(told.get(&placement.id), Some(&placement.slot), "{placement:?}");
        tree.reserve(placement.slot, placement.nodes)
            .expect("no second is over capacity");
    }
    assert!(
        tree.steps().eq(schedule.tree().steps()),
        "the tree holds something else than the placements"
    );
    told.retain(|id, slot| {
        let there = schedule.placement(*id).is_some();
        assert!(there || slot.end < schedule.now(), "request {id} is lost");
        there
    });
}

/// Takes over the moves of an answer.
fn tell(told: &mut BTreeMap<u64, Interval>, moved: &[Move]) {
    for one_move in moved {
        let slot = told.get_mut(&one_move.id).expect("it was accepted");
        assert_eq!(slot.start, one_move.from, "{one_move:?}");
        *slot = Interval::of(one_move.to, slot.duration());
    }
}

/// Takes a request out, and puts another at its start: longer by `longer` seconds, with `nodes` nodes. The first one is put back
/// where there is no room for that. Answers with the request that is in the plan afterwards.
fn replace(fast: &mut Schedule, now: Time, old: &Request, longer: i64, nodes: u32) -> Option<Request> {
    fast.advance(now);
    let start = fast.placement(old.id)?.slot.start;
    let old = fast.waiting_at(old.id).map_or(*old, |(request, _)| request);
    let duration = (old.duration + longer).max(1).max(now - start);
    let new = Request {
        duration,
        nodes,
        deadline: old.deadline.max(start + duration),
        ..old
    };
    fast.vacate(now, old.id);
    if fast.restore(&new, start).is_ok() {
        return Some(new);
    }
    fast.restore(&old, start)
        .expect("there is the room that was given up");
    Some(old)
}

/// How decisions are made.
#[derive(Debug, Clone, Copy)]
struct Planner {
    order: Order,
    rule: DecisionRule,
    fixing: Option<Fraction>,
    budget: Option<u64>,
    tries: usize,
}

impl Planner {
    fn schedule(self) -> Schedule {
        let schedule = Schedule::new(CAPACITY, self.order).fixing(self.fixing);
        let schedule = schedule.deciding(self.rule);
        schedule.budgeted(self.budget).trying(self.tries)
    }

    fn plain(self) -> Plain {
        let mut plain = Plain::new(CAPACITY, self.order, self.fixing);
        plain.stands = self.rule == DecisionRule::Standing;
        plain
    }
}

fn restored(planner: Planner, before: &Schedule, asked: &BTreeMap<u64, Request>) -> Schedule {
    let mut schedule = planner.schedule();
    schedule.advance(before.now());
    let waiting: BTreeMap<u64, Request> = before.waiting().map(|r| (r.id, *r)).collect();
    for placement in before.placements() {
        let request = waiting.get(&placement.id).unwrap_or(&asked[&placement.id]);
        schedule
            .restore(request, placement.slot.start)
            .expect("a plan that stood stands again");
    }
    schedule
}

/// Gives the plain algorithm the plan of the fast one, to go on from there.
fn adopt(plain: &mut Plain, fast: &Schedule, asked: &BTreeMap<u64, Request>) {
    plain.advance(fast.now());
    plain.tree = fast.tree().clone();
    let waiting: BTreeMap<u64, Request> = fast.waiting().map(|r| (r.id, *r)).collect();
    let placed = |id: u64, request: Request| {
        let start = fast.placement(id).expect("it is in the plan").slot.start;
        PlacedRequest { request, start }
    };
    plain.waiting = waiting
        .iter()
        .map(|(id, request)| placed(*id, *request))
        .collect();
    let running = fast.placements().filter(|p| !waiting.contains_key(&p.id));
    plain.running = running.map(|p| placed(p.id, asked[&p.id])).collect();
}

/// Decides by both. Where the budget is not spent the decision is the plain one. Where it is, every request that fits the plan as
/// it stands is accepted. And a refusal may become an acceptance in another order. By the standing rule, one that does not fit
/// is accepted wherever the plain algorithm accepts it, with moves of its own.
fn submit(fast: &mut Schedule, plain: &mut Plain, planner: Planner, request: &Request) -> (Decision, bool) {
    let Planner { tries, rule, .. } = planner;
    let now = request.submitted;
    let (cut_short, impossible) = (fast.cut_short(), request.impossible(CAPACITY, now).is_some());
    let stands = fast
        .tree()
        .earliest_fit(request.nodes, request.duration, request.window_at(now));
    let decision = fast.submit(now, request);
    let cut_short = fast.cut_short() > cut_short;
    let by_order = plain.submit(now, request);
    let accepted = |decision: &Decision| matches!(decision, Decision::Accepted { .. });
    if cut_short {
        assert!(
            accepted(&decision) || stands.is_none() || impossible,
            "it fits: {request:?}"
        );
        if let Decision::Refused { cut_short, .. } = decision {
            assert!(cut_short, "not everything was tried: {request:?}");
        }
    } else if rule == DecisionRule::Standing && stands.is_none() && !impossible {
        assert!(accepted(&decision) || !accepted(&by_order), "{request:?}");
    } else if tries == 0 || accepted(&by_order) {
        assert_eq!(decision, by_order, "{request:?}");
    }
    let same = decision == by_order;
    (decision, same)
}

/// Both have the same plan.
fn check_same(fast: &Schedule, plain: &Plain) {
    let mut placements: Vec<_> = fast.placements().collect();
    placements.sort_unstable_by_key(|p| p.id);
    assert_eq!(placements, plain.placements());
    // A request that starts now is called waiting until the next decision, but not after a restart.
    let windows = |requests: &mut dyn Iterator<Item = &Request>| {
        let waiting = requests.filter(|r| fast.placement(r.id).is_some_and(|p| p.slot.start > fast.now()));
        waiting
            .map(|r| (r.id, r.window()))
            .collect::<BTreeMap<u64, Interval>>()
    };
    assert_eq!(windows(&mut fast.waiting()), windows(&mut plain.waiting()));
}

/// A request with its times relative to the present.
fn asked_at(now: Time, id: u64, request: &Request) -> Request {
    Request {
        id,
        submitted: now,
        ready: now + request.ready.0,
        deadline: now + request.deadline.0,
        ..*request
    }
}

/// Asks the questions that change nothing.
fn ask(fast: &mut Schedule, request: &Request, limits: AlternativeLimits) {
    let now = request.submitted;
    let displaced = fast.displaced(now, request);
    assert!(displaced.iter().all(|id| fast.waiting_at(*id).is_some()));
    fast.would_start(now, request);
    fast.alternatives(now, request, limits);
}

fn play(planner: Planner, steps: &[Step]) {
    let mut fast = planner.schedule();
    let mut plain = planner.plain();
    let exact = planner.budget.is_none() && planner.tries == 0 && planner.rule == DecisionRule::Published;
    let limits = AlternativeLimits {
        phi_max: Fraction::percent(200),
        count_max: 3,
    };
    let mut now = Time(0);
    let mut asked = BTreeMap::new();
    let mut told = BTreeMap::new();
    // The number of a refused request is the next one's, as where only accepted requests are numbered.
    let mut id = 0;
    for step in steps {
        match *step {
            Step::Submit(passed, request) | Step::Insist(passed, request) => {
                now = now + passed;
                let mut request = asked_at(now, id, &request);
                let (mut decision, mut same) = submit(&mut fast, &mut plain, planner, &request);
                if let (Decision::Refused { .. }, Step::Insist(..)) = (&decision, step) {
                    let alternatives = fast.alternatives(now, &request, limits);
                    if exact {
                        let by_plain = plain.alternatives(now, &request, limits);
                        assert_eq!(alternatives, by_plain, "{request:?}");
                    }
                    if !same {
                        adopt(&mut plain, &fast, &asked);
                    }
                    if let Some(first) = alternatives.first() {
                        request = request.fixed_to(first.start);
                        (decision, same) = submit(&mut fast, &mut plain, planner, &request);
                        assert!(
                            matches!(decision, Decision::Accepted { .. }),
                            "an alternative can be taken"
                        );
                    }
                }
                if let Decision::Accepted { placement, moved } = &decision {
                    tell(&mut told, moved);
                    told.insert(id, placement.slot);
                    asked.insert(id, request);
                    id += 1;
                }
                if !same {
                    adopt(&mut plain, &fast, &asked);
                }
            }
            Step::Restore(settled) => {
                fast = restored(planner, &fast, &asked);
                if settled {
                    fast.find_improvable();
                }
            }
            Step::Improve(passed, work, most) => {
                now = now + passed;
                let improved = fast.improve_some(now, Time::MIN, work, most, |id| id % 5 > 0);
                assert!(improved.moved.len() <= most);
                tell(&mut told, &improved.moved);
                for one_move in improved.moved {
                    assert!(one_move.to < one_move.from && one_move.id % 5 > 0, "{one_move:?}");
                }
                adopt(&mut plain, &fast, &asked);
            }
            Step::Vacate(passed, k) => {
                now = now + passed;
                if let Some(id) = asked.keys().nth(k % asked.len().max(1)).copied() {
                    fast.vacate(now, id);
                    told.remove(&id);
                    adopt(&mut plain, &fast, &asked);
                }
            }
            Step::Replace(passed, k, longer, nodes) => {
                now = now + passed;
                if let Some(id) = asked.keys().nth(k % asked.len().max(1)).copied() {
                    if let Some(request) = replace(&mut fast, now, &asked[&id], longer, nodes) {
                        told.insert(id, request.slot(told[&id].start));
                        asked.insert(id, request);
                    }
                    adopt(&mut plain, &fast, &asked);
                }
            }
            Step::Ask(passed, request) => {
                now = now + passed;
                ask(&mut fast, &asked_at(now, id, &request), limits);
                plain.begin(now);
            }
            Step::End(passed, k) => {
                now = now + passed;
                if let Some(id) = asked.keys().nth(k % asked.len().max(1)).copied() {
                    let moved = fast.end(now, id);
                    assert_eq!(moved, plain.end(now, id), "end of {id}");
                    if let Some(moved) = moved {
                        told.remove(&id);
                        tell(&mut told, &moved);
                    }
                }
            }
        }
        check_same(&fast, &plain);
        check_plan(&fast, &asked, &mut told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn random_workloads(
        order in order(),
        rule in rule(),
        fixing in fixing(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        play(Planner { order, rule, fixing, budget: None, tries: 0 }, &steps);
    }

    #[test]
    fn random_workloads_within_a_budget_and_in_other_orders(
        order in order(),
        rule in rule(),
        fixing in fixing(),
        budget in prop::sample::select(vec![Some(1), Some(300), Some(1_000), Some(3_000), Some(20_000), None]),
        tries in prop::sample::select(vec![0, 6, 60]),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        play(Planner { order, rule, fixing, budget, tries }, &steps);
    }
}
