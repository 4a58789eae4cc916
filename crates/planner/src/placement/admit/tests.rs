//! Many resources: the places of agreements and the conditions on nodes. After every decision all placements are inside
//! their windows, nothing is over capacity, and a refusal leaves everything as it was.

use domain::agreement::{BarredResource, Currency, Filter, Measure, Money};
use domain::resources::{NodeReport, NodeState, Reporter, Resource, Scaling};
use proptest::prelude::*;
use scheduler::preemptive::Preemption;
use uuid::Uuid;

mod prices;

use super::*;
use crate::commands::{BeginDue, ReportReserving};
use crate::resources::repair;
use crate::table::{candidates, quote};
use crate::tests::harness::{Domain, HORIZON, arm, proposal, rated};
use crate::{
    Energy, Kwh, OfferOrigin, Pricing, QuoteOffers, Request, Settings, State, Terminate, Watts, Weights,
};

fn on_arm() -> Filter {
    Filter::Word {
        attribute: "cpu_architecture".into(),
        is: "arm".into(),
    }
}

fn memory(measure: Measure, least: i64) -> Filter {
    Filter::Number {
        attribute: "memory_bytes".into(),
        measure,
        within: vec![(least, i64::MAX)],
    }
}

#[test]
fn what_the_order_refuses_another_order_lets_in() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 1)]);
    let first = domain.place(proposal(1, 12, (100, 142))).unwrap().agreement;
    let longer = domain.place(proposal(1, 20, (100, 143))).unwrap().agreement;
    // By deadline the longer one would be last, and too late.
    let between = domain.place(proposal(1, 10, (120, 130))).unwrap();
    assert_eq!(between.agreement.placement().start, Time(120));
    assert_eq!(domain.of(first.id).placement().start, Time(130));
    assert_eq!(domain.of(longer.id).placement().start, Time(100));
    domain.check();
    domain.check_rebuilt();
}

/// Twenty resources have more room than the cheap one.
#[test]
fn a_budget_is_spent_on_the_cheapest_resource_also_where_many_others_have_more_room() {
    let dear = (0..20).map(|number| Resource::new(&format!("dear{number:02}"), "local", 8));
    let resources = dear.chain([Resource::new("cheap", "local", 2)]).collect();
    let mut settings = Settings::new(resources, HORIZON);
    let eur = Currency::parse("EUR").unwrap();
    let mut pricing = Pricing::flat(1_000_000, eur);
    pricing.resources.insert("cheap".into(), 100_000);
    settings.pricing = Some(pricing);
    let mut domain = Domain::with(settings);
    let with = |micros| Request {
        budget: Some(Money::new(micros, eur)),
        ..proposal(1, 3_600, (0, HORIZON))
    };
    let refusal = domain.place(with(99_999)).unwrap_err();
    let lowest = refusal.lowest_budget.map(|lowest| lowest.micros);
    assert_eq!((refusal.reason, lowest), (Reason::BudgetTooLow, Some(100_000)));
    let placed = domain.place(with(100_000)).unwrap().agreement;
    assert_eq!(placed.resource, "cheap");
    domain.check();
}

#[test]
fn a_resource_is_chosen_by_what_is_asked_of_its_nodes() {
    let mut domain = Domain::new(vec![Resource::new("plain", "local", 8), arm("arm")]);
    let with = |filters: Vec<Filter>| Request {
        filters,
        ..proposal(2, 10, (0, 100))
    };
    let plain = domain.place(with(Vec::new())).unwrap();
    assert_eq!(plain.agreement.resource, "plain", "a tie goes to the first");
    for filter in [on_arm(), memory(Measure::Node, 100), memory(Measure::Total, 200)] {
        let placed = domain.place(with(vec![filter])).unwrap();
        assert_eq!(placed.agreement.resource, "arm");
    }
    for filter in [memory(Measure::Node, 101), memory(Measure::Total, 201)] {
        let refusal = domain.place(with(vec![filter])).unwrap_err();
        assert_eq!(refusal.reason, Reason::ResourceNotOffered, "{refusal:?}");
        assert!(refusal.binding.contains("memory_bytes"), "{refusal}");
    }
    let sparc = Filter::Word {
        attribute: "cpu_architecture".into(),
        is: "sparc".into(),
    };
    let refusal = domain.place(with(vec![sparc])).unwrap_err();
    assert!(refusal.binding.ends_with("nodes have arm"), "{refusal}");
    let large = Request {
        filters: vec![on_arm()],
        ..proposal(5, 10, (0, 100))
    };
    assert_eq!(
        domain.place(large).unwrap_err().reason,
        Reason::SizeExceedsCapacity
    );
    domain.check();
}

#[test]
fn what_a_cluster_would_refuse_goes_elsewhere_or_is_refused_in_its_words_and_never_moves_there() {
    let mut domain = Domain::new(vec![
        Resource::new("cluster", "slurm", 4),
        Resource::new("other", "slurm", 4),
    ]);
    let bar = |resource: &str, sizes: Vec<Shape>| BarredResource {
        resource: resource.into(),
        sizes,
        why: format!("no {resource}"),
    };
    let with = |barred: Vec<BarredResource>| Request {
        barred,
        ..proposal(3, 10, (0, 10))
    };
    let size = Shape {
        nodes: 3,
        duration: 10,
    };
    let another = Shape { nodes: 2, ..size };
    let taken = domain
        .place(with(vec![bar("cluster", vec![size])]))
        .unwrap()
        .agreement;
    assert_eq!((&*taken.resource, taken.constraints.barred.len()), ("other", 1));
    let refusal = domain
        .place(with(vec![
            bar("cluster", vec![another]),
            bar("other", Vec::new()),
        ]))
        .map(|place| place.agreement.resource);
    assert_eq!(refusal.unwrap(), "cluster", "only another size is barred there");
    let refusal = domain
        .place(with(vec![bar("cluster", Vec::new()), bar("other", vec![size])]))
        .unwrap_err();
    assert_eq!(refusal.reason, Reason::ResourceNotOffered);
    assert_eq!(
        refusal.binding,
        "cluster would refuse the job: no cluster; other would refuse the job: no other"
    );
    // No room on the one, and a bar on the other.
    let refusal = domain.place(with(vec![bar("cluster", Vec::new())])).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    assert!(
        refusal
            .binding
            .ends_with("; cluster would refuse the job: no cluster"),
        "{refusal}"
    );
    domain.check();
    // Its nodes fail, and the only other resource would refuse it.
    let (mut domain, barred) = (
        Domain::new(vec![
            Resource::new("cluster", "slurm", 4),
            Resource::new("other", "slurm", 4),
        ]),
        vec![bar("other", Vec::new())],
    );
    let waits = Request {
        barred,
        ..proposal(3, 10, (100, 200))
    };
    domain.place(waits).unwrap();
    let report = NodeReport {
        states: vec![NodeState::Drained; 4],
        ..NodeReport::default()
    };
    let repaired =
        domain.decide(|decider| repair::repair_nodes(decider, "cluster", Reporter::Operator, &report));
    let repaired = repaired.unwrap();
    assert_eq!((repaired.moved, repaired.broken), (0, 1));
}

#[test]
fn work_takes_as_long_as_the_rate_says_and_a_contract_as_long_as_it_says() {
    let mut domain = Domain::new(vec![rated("slow", 4, 500_000), rated("fast", 4, 2_000_000)]);
    let work = Request {
        scaling: Scaling::ReferenceRate,
        ..proposal(4, 60, (0, 1_000))
    };
    let fast = domain.place(work.clone()).unwrap().agreement;
    assert_eq!((fast.resource.as_str(), fast.duration), ("fast", 30));
    let slow = Request {
        id: Uuid::now_v7(),
        deadline: Some(Time(120)),
        ready: Some(Time(0)),
        ..work
    };
    let second = domain
        .place(Request {
            id: Uuid::now_v7(),
            ..slow.clone()
        })
        .unwrap()
        .agreement;
    assert_eq!(
        (second.resource.as_str(), second.placement().end),
        ("fast", Time(60))
    );
    let third = Request {
        id: Uuid::now_v7(),
        ..slow.clone()
    };
    let third = domain.place(third).unwrap().agreement;
    assert_eq!(
        (third.resource.as_str(), third.placement().end),
        ("fast", Time(90))
    );
    // Either would complete at 120 now, and the slow one is configured first.
    let last = domain.place(slow).unwrap().agreement;
    assert_eq!((last.resource.as_str(), last.duration), ("slow", 120));
    let contract = domain.place(proposal(4, 60, (0, 1_000))).unwrap().agreement;
    assert_eq!((contract.duration, contract.placement().duration()), (60, 60));
    domain.check();
}

#[test]
fn one_that_waits_goes_to_another_resource_before_a_newcomer_is_refused_and_its_timeline_says_so() {
    let mut domain = Domain::new(vec![arm("arm"), Resource::new("other", "local", 4)]);
    // Neither may move in time.
    let waiting = domain.place(proposal(4, 50, (100, 150))).unwrap().agreement;
    assert_eq!(waiting.resource, "arm");
    let picky = Request {
        filters: vec![on_arm()],
        ..proposal(4, 50, (100, 150))
    };
    let accepted = domain.place(picky).unwrap();
    assert_eq!(accepted.agreement.resource, "arm");
    let moved = &accepted.moved[0];
    assert_eq!((moved.id, moved.resource.as_str()), (waiting.id, "other"));
    assert_eq!(
        (domain.of(waiting.id).resource.as_str(), moved.placement()),
        ("other", waiting.placement())
    );
    let line = "to other, 0 seconds later, to let another agreement in";
    assert!(
        domain.told.contains(&(waiting.id, line.to_owned())),
        "{:?}",
        domain.told
    );
    domain.check();
    // Now both are full.
    let third = Request {
        filters: vec![on_arm()],
        ..proposal(1, 50, (100, 150))
    };
    let before = domain.known.clone();
    assert_eq!(
        domain.place(third).unwrap_err().reason,
        Reason::NoCapacityInWindow
    );
    assert_eq!(domain.known, before);
    domain.check();
}

#[test]
fn other_objectives_can_be_preferred_to_the_earliest_completion() {
    use domain::agreement::Currency;
    let mut domain = Domain::new(vec![rated("fast", 4, 2_000_000), rated("slow", 4, 1_000_000)]);
    let mut pricing = crate::Pricing::flat(3_600_000, Currency::parse("EUR").unwrap());
    pricing.resources.insert("slow".into(), 360_000);
    domain.settings.pricing = Some(pricing);
    let work = || Request {
        id: Uuid::now_v7(),
        scaling: Scaling::ReferenceRate,
        ..proposal(1, 60, (0, 1_000))
    };
    for (objective, resource, start) in [
        (Objective::EarliestCompletion, "fast", 0),
        (Objective::Cheapest, "slow", 0),
        (Objective::LatestStart, "fast", 970),
        (Objective::LeastWorkLost, "slow", 0),
    ] {
        domain.settings.objective = objective;
        domain.state = State::rebuild(
            &domain.settings,
            &domain.settings.resources,
            Vec::new(),
            Vec::new(),
            Time(0),
        )
        .unwrap();
        let placed = domain.place(work()).unwrap().agreement;
        assert_eq!(
            (placed.resource.as_str(), placed.placement().start),
            (resource, Time(start)),
            "{objective:?}"
        );
        domain.known.clear();
    }
}

/// An offer of some work on one to four nodes, half an hour of it on two.
fn moldable(window: (i64, i64)) -> Request {
    let work = |nodes: u32| Shape {
        nodes,
        duration: 120 / i64::from(nodes),
    };
    Request {
        shapes: [4, 3, 2, 1].map(work).to_vec(),
        scaling: Scaling::ReferenceRate,
        ..proposal(1, 1, window)
    }
}

#[test]
fn of_several_sizes_the_one_that_completes_first_is_granted_and_of_equal_ones_the_larger() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    let largest = domain.place(moldable((0, 500))).unwrap().agreement;
    assert_eq!(
        (largest.nodes(), largest.placement()),
        (4, Interval::new(Time(0), Time(30)))
    );
    // Two nodes at once end at 90, four after the others at 80 + 30.
    domain.place(proposal(2, 50, (30, 80))).unwrap();
    let narrow = domain.place(moldable((0, 500))).unwrap().agreement;
    assert_eq!(
        (narrow.nodes(), narrow.placement()),
        (2, Interval::new(Time(30), Time(90)))
    );
    assert_eq!(
        narrow.constraints.shapes.len(),
        4,
        "what else it may have is kept"
    );
    let line = "; 2 nodes for 60 seconds of 4 sizes";
    assert!(
        domain
            .told
            .iter()
            .any(|(id, detail)| *id == narrow.id && detail.ends_with(line))
    );
    // Two nodes at 80 and two more at 90: three nodes at 90 complete at 130 and two at 80 at 140, four at 120.
    let wide = domain.place(moldable((0, 500))).unwrap().agreement;
    assert_eq!(
        (wide.nodes(), wide.placement()),
        (4, Interval::new(Time(90), Time(120)))
    );
    domain.check();
}

#[test]
fn a_refused_offer_of_several_sizes_learns_of_slots_with_their_sizes_and_of_a_window_that_would_do() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    domain.place(proposal(4, 200, (0, 200))).unwrap();
    let asked = moldable((0, 150));
    let refusal = domain.place(asked.clone()).unwrap_err();
    let sizes: Vec<_> = refusal
        .alternatives
        .iter()
        .map(|request| (request.nodes, request.slot.start))
        .collect();
    assert_eq!(sizes[0], (Some(4), Time(200)), "{refusal:?}");
    assert!(sizes.contains(&(Some(2), Time(200))), "{sizes:?}");
    assert_eq!(
        refusal.relaxations,
        [scheduler::refusal::Relaxation::Deadline(Time(230))]
    );
    assert!(
        refusal.binding.contains("any of 4 sizes, 1 to 4 nodes"),
        "{refusal}"
    );
    let near = Request {
        id: Uuid::now_v7(),
        deviation_max: Some(Fraction::percent(50)),
        ..asked.clone()
    };
    let near = domain.place(near).unwrap_err();
    for alternative in &near.alternatives {
        let deviation = alternative.slot.end - Time(150);
        assert!(2 * deviation <= alternative.slot.duration(), "{alternative:?}");
    }
    let relaxed = Request {
        id: Uuid::now_v7(),
        deadline: Some(Time(230)),
        ..asked
    };
    assert!(domain.place(relaxed).is_ok());
}

#[test]
fn one_is_fixed_after_the_part_of_its_wait_that_it_asked_for() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    let waiting = Request {
        fix_at_ppm: Some(250_000),
        ..proposal(4, 100, (100, 1_000))
    };
    let waiting = domain.place(waiting).unwrap().agreement;
    domain.now = 24;
    let first = domain.place(proposal(4, 50, (100, 150))).unwrap().agreement;
    assert_eq!(
        domain.of(waiting.id).placement().start,
        Time(150),
        "it still moves"
    );
    domain
        .decide(|decider| decider.decide(Terminate::of(first.id, None)))
        .unwrap();
    assert_eq!(domain.of(waiting.id).placement().start, Time(100));
    domain.now = 25;
    let refusal = domain.place(proposal(4, 50, (100, 150))).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    assert!(domain.of(waiting.id).fixed);
}

/// The possible steps of a domain.
#[derive(Debug, Clone)]
enum Verb {
    Place {
        shapes: Vec<Shape>,
        scaled: bool,
        picky: bool,
        window: (i64, i64),
    },
    Terminate(usize),
    Improve,
    Pass(i64),
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    proptest::collection::btree_map(1..5_u32, 5..60_i64, 1..4).prop_map(|sizes| {
        let shape = |(nodes, duration)| Shape { nodes, duration };
        sizes.into_iter().rev().map(shape).collect()
    })
}

fn verbs() -> impl Strategy<Value = Vec<Verb>> {
    let place = (shapes(), any::<bool>(), any::<bool>(), 0..300_i64, 0..200_i64);
    let place = place.prop_map(|(shapes, scaled, picky, start, room)| Verb::Place {
        window: (start, start + 2 * shapes[0].duration + room),
        shapes,
        scaled,
        picky,
    });
    let verb = prop_oneof![
        8 => place,
        2 => any::<usize>().prop_map(Verb::Terminate),
        1 => Just(Verb::Improve),
        2 => (0..60_i64).prop_map(Verb::Pass),
    ];
    proptest::collection::vec(verb, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn nobody_leaves_his_window_nothing_is_over_capacity_and_a_refusal_changes_nothing(verbs in verbs()) {
        let fast = rated("fast", 3, 1_500_000);
        let mut domain = Domain::new(vec![rated("slow", 4, 700_000), arm("arm"), fast]);
        domain.moves_up = false;
        for verb in verbs {
            match verb {
                Verb::Place { shapes, scaled, picky, window } => {
                    let mut asked = proposal(1, 1, (domain.now + window.0, domain.now + window.1));
                    asked.shapes = shapes;
                    asked.scaling = if scaled { Scaling::ReferenceRate } else { Scaling::Contract };
                    asked.filters = if picky { vec![memory(Measure::Total, 100)] } else { Vec::new() };
                    let earliest = domain.earliest(&asked);
                    let before = domain.known.clone();
                    match domain.place(asked) {
                        // In the order it may even come before others, which then make room. A slot that ended within
                        // this second delays it by a second.
                        Ok(accepted) => if let Some(earliest) = earliest {
                            prop_assert!(accepted.agreement.placement().end <= earliest + 1);
                        },
                        Err(refusal) => {
                            prop_assert_eq!(earliest, None, "{}", refusal);
                            prop_assert_eq!(&domain.known, &before);
                        }
                    }
                }
                Verb::Terminate(nth) => {
                    let ids: Vec<Uuid> = domain.known.keys().copied().collect();
                    if let Some(id) = ids.get(nth % ids.len().max(1)) {
                        let ended = domain.decide(|decider| decider.decide(Terminate::of(*id, None)));
                        prop_assert!(ended.is_ok());
                    }
                }
                Verb::Improve => domain.improve(),
                Verb::Pass(seconds) => {
                    domain.now += seconds;
                    domain.decide(|decider| decider.decide(BeginDue).map(drop)).unwrap();
                }
            }
            domain.check();
        }
    }
}

const DAY: i64 = 86_400;

/// One node. A newcomer moves the first of two behind the second, which gains if it moves into what the first has left. Returns the second.
fn with_a_gain(settings: Settings, prepare: impl FnOnce(&mut Domain)) -> (Domain, Uuid) {
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    domain.place(proposal(1, 6_000, (5_000, 40_000))).unwrap();
    let second = domain
        .place(proposal(1, 1_000, (5_000, 40_000)))
        .unwrap()
        .agreement
        .id;
    assert_eq!(domain.of(second).placement().start, Time(11_000));
    prepare(&mut domain);
    domain.place(proposal(1, 2_000, (9_000, 11_000))).unwrap();
    domain.check();
    (domain, second)
}

fn one_node() -> Settings {
    Settings::new(vec![Resource::new("local", "local", 1)], 2 * DAY)
}

#[test]
fn no_time_is_gained_that_a_cluster_was_not_asked_for() {
    for (within, start) in [(0, 5_000), (5_400, 5_401), (7_500, 11_000)] {
        let (domain, second) = with_a_gain(one_node(), |domain| {
            let order = ReportReserving {
                resource: "local".into(),
                refused: Vec::new(),
                within,
            };
            domain.decide(|decider| decider.decide(order)).unwrap();
        });
        assert_eq!(
            domain.of(second).placement().start,
            Time(start),
            "within {within}"
        );
    }
}

#[test]
fn where_energy_decides_none_gains_by_a_newcomer() {
    for has_energy in [false, true] {
        let mut settings = one_node();
        settings.objective = Objective::Cheapest;
        let mut pricing = Pricing::flat(1_000_000, Currency::parse("EUR").unwrap());
        if has_energy {
            let watts = Watts { busy: 400, idle: 100 };
            let hour = Kwh {
                from: Time(0),
                micros: 100_000,
                grams: 0,
            };
            pricing.energy = Some(Energy::new([("local".to_owned(), watts)].into(), vec![hour], 0));
        }
        settings.pricing = Some(pricing);
        let (domain, second) = with_a_gain(settings, |_| {});
        let start = if has_energy { 11_000 } else { 5_000 };
        assert_eq!(
            domain.of(second).placement().start,
            Time(start),
            "energy: {has_energy}"
        );
    }
}
