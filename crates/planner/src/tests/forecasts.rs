//! What is foreseen decides: the length of slots, the resource, and where agreements may move.

use domain::agreement::{
    Agreement, Compensation, CompensationValue, Currency, Execution, Guarantee, GuaranteeState, Job, Money,
    RunOutcome, Values,
};
use domain::clock::MICROS_PER_SECOND;
use domain::past::{Condition, PastExecution, ResourceHour};
use domain::resources::{NodeReport, NodeState, Reporter, Resource, Scaling};
use prediction::{Knowledge, Predictions};
use scheduler::domain::Objective;
use scheduler::prediction::Ladder;
use scheduler::{Fraction, Interval, Seconds, Time};
use uuid::Uuid;

use super::harness::{Domain, machines_of, proposal, rated};
use crate::commands::QuoteOffers;
use crate::resources::repair;
use crate::schedules::need::Need;
use crate::table::candidates::{OfferOrigin, Weights};
use crate::table::{candidates, quote};
use crate::{Energy, Kwh, Pricing, Request, Settings, Watts};

const HOUR: Seconds = 3_600;
const DAY: Seconds = 24 * HOUR;
const SLOT: u32 = 900_000;

/// An execution that ended so many seconds before now, and took so long.
fn execution(resource: &str, run: Seconds, ago: Seconds, outcome: RunOutcome) -> PastExecution {
    let ended = -ago;
    PastExecution {
        execution: Execution {
            agreement: Uuid::nil(),
            application: "solve".into(),
            version: None,
            arguments: Vec::new(),
            input_bytes: 0,
            output_bytes: 0,
            resource: resource.into(),
            nodes: 1,
            planned: Interval::of(Time(ended - run), run),
            estimate: run,
            queue_time: 0,
            run_time: run * MICROS_PER_SECOND,
            transfer_in: 0,
            transfer_out: 0,
            moved_in: 0,
            moved_out: 0,
            outcome,
            ended: ended * MICROS_PER_SECOND,
        },
        party: "physics".into(),
        agreed: (ended - run - 60) * MICROS_PER_SECOND,
    }
}

/// Runs of a length on a resource, an hour apart, the last an hour ago.
fn runs(resource: &str, run: Seconds, count: i64) -> Vec<PastExecution> {
    (1..=count)
        .map(|number| execution(resource, run, number * HOUR, RunOutcome::Completed))
        .collect()
}

/// Whether people work at an hour: the present is midnight.
fn is_office_hour(hour: i64) -> bool {
    (8..18).contains(&hour.rem_euclid(24))
}

/// Four weeks of a resource that is busy in office hours, and otherwise free.
fn busy_by_day(resource: &str) -> Vec<ResourceHour> {
    let hour = |hour: i64| ResourceHour {
        resource: resource.into(),
        start: Time(hour * HOUR),
        samples: 60,
        condition: Condition {
            free_cpu: Some(if is_office_hour(hour) { 0 } else { 1_000_000 }),
            ..Condition::default()
        },
    };
    (-28 * 24..0).map(hour).collect()
}

/// An execution a day at this hour of the day, and it takes twice as long in office hours.
fn slowed_by_day(resource: &str, run: Seconds) -> Vec<PastExecution> {
    let at = |day: i64, hour: i64| {
        let took = if is_office_hour(hour) { 2 * run } else { run };
        execution(
            resource,
            took,
            day * DAY - hour * HOUR - took,
            RunOutcome::Completed,
        )
    };
    (1..28)
        .flat_map(|day| [at(day, 2), at(day, 10), at(day, 14), at(day, 21)])
        .collect()
}

struct History {
    past: Vec<PastExecution>,
    hours: Vec<ResourceHour>,
    ladder: Option<Ladder>,
}

impl History {
    fn of(past: Vec<PastExecution>) -> Self {
        Self {
            past,
            hours: Vec::new(),
            ladder: Some(Ladder::All),
        }
    }

    /// A domain of resources that has seen all this, planned for ten days from midnight on.
    fn domain(mut self, resources: Vec<Resource>, objective: Objective) -> Domain {
        let mut settings = Settings::new(resources, 10 * DAY);
        settings.objective = objective;
        settings.pricing = Some(Pricing::flat(3_600, Currency::parse("EUR").unwrap()));
        self.past.sort_by_key(|past| past.execution.ended);
        let setup = (machines_of(&settings), self.ladder);
        let known = Knowledge::of(&self.past, &self.hours, setup, Time(0));
        let predictions = Predictions::of(known);
        settings.predictions = Some(predictions);
        Domain::with(settings)
    }
}

/// Work without a duration; 500 s is what it takes at the reference rate where nothing else is foreseen.
fn work(window: (i64, i64)) -> Request {
    Request {
        scaling: Scaling::Predicted(SLOT),
        ..stated(500, window)
    }
}

/// The same for a stated time.
fn stated(seconds: Seconds, window: (i64, i64)) -> Request {
    Request {
        job: Some(Job {
            application: "solve".into(),
            ..Job::default()
        }),
        ..proposal(1, seconds, window)
    }
}

fn place(domain: &mut Domain, request: Request) -> Agreement {
    let placed = domain.place(request).unwrap().agreement;
    domain.check();
    domain.check_rebuilt();
    placed
}

fn lies(agreement: &Agreement) -> (&str, i64, Seconds) {
    let slot = agreement.placement();
    (&agreement.resource, slot.start.seconds(), slot.duration())
}

#[test]
fn a_slot_is_as_long_as_the_work_takes_where_it_goes() {
    let resources = || vec![rated("slow", 1, 1_000_000), rated("fast", 1, 2_000_000)];
    let mut domain = History::of(runs("slow", 1_000, 30)).domain(resources(), Objective::EarliestCompletion);
    let [first, second] = [0, 1].map(|_| place(&mut domain, work((0, DAY))));
    assert_eq!(lies(&first), ("fast", 0, 500));
    assert_eq!(
        lies(&second),
        ("slow", 0, 1_000),
        "it completes with the fast one's"
    );
    let third = place(&mut domain, work((0, DAY)));
    assert_eq!(lies(&third), ("fast", 500, 500));
    // Its own history counts more than the rates.
    let mut past = runs("slow", 1_000, 30);
    past.extend(runs("fast", 1_500, 30));
    let mut domain = History::of(past).domain(resources(), Objective::EarliestCompletion);
    let first = place(&mut domain, work((0, DAY)));
    assert_eq!(first.resource, "slow", "{:?}", lies(&first));
    assert!((1_000..1_010).contains(&first.duration), "{}", first.duration);
}

#[test]
fn a_resource_that_loses_work_is_worth_less_than_a_slower_one_that_keeps_it() {
    let resources = || vec![rated("fast", 4, 1_500_000), rated("sure", 4, 1_000_000)];
    let history = |lost_of_ten: i64| {
        let mut past = runs("sure", 900, 60);
        for number in 1..=60 {
            let is_lost = number % 10 < lost_of_ten;
            let outcome = if is_lost {
                RunOutcome::Lost
            } else {
                RunOutcome::Completed
            };
            past.push(execution("fast", 600, number * HOUR, outcome));
        }
        History::of(past)
    };
    for (lost, expected) in [(0, "fast"), (1, "fast"), (5, "sure")] {
        let mut domain = history(lost).domain(resources(), Objective::EarliestCompletion);
        // What was stated is ranked in the same way, and so is what follows from a law.
        let by_law = Request {
            scaling: Scaling::ReferenceRate,
            ..stated(900, (0, DAY))
        };
        for proposal in [work((0, DAY)), stated(900, (0, DAY)), by_law] {
            let placed = place(&mut domain, proposal);
            assert_eq!(placed.resource, expected, "{lost} of ten are lost");
        }
    }
    for ladder in [None, Some(Ladder::Load)] {
        let history = History { ladder, ..history(5) };
        let mut domain = history.domain(resources(), Objective::EarliestCompletion);
        assert_eq!(
            place(&mut domain, work((0, DAY))).resource,
            "fast",
            "trust does not decide"
        );
    }
}

/// Of three others that nothing is known of, the same is foreseen.
#[test]
fn an_agreement_that_keeps_its_length_on_its_resource_leaves_what_others_share_shared() {
    let names = ["own", "a", "b", "c"];
    let resources = names.map(|name| rated(name, 1, 1_000_000));
    let mut domain = History::of(runs("own", 1_000, 30)).domain(resources.into(), Objective::Cheapest);
    let placed = place(&mut domain, work((0, DAY)));
    let watts = names.map(|name| (name.to_owned(), Watts { busy: 400, idle: 100 }));
    let price = Kwh {
        from: Time(0),
        micros: 200_000,
        grams: 0,
    };
    let need = Need::of_agreement(&placed, placed.window());
    for has_energy in [false, true] {
        if has_energy {
            let pricing = domain.settings.pricing.as_mut().unwrap();
            pricing.energy = Some(Energy::new(watts.clone().into(), vec![price], 0));
            domain.state.schedules.reprice(&domain.settings);
        }
        let forecasts = domain
            .state
            .schedules
            .forecasts(&need, need.shapes[0], None)
            .unwrap();
        let others = (0..)
            .zip(names)
            .filter(|(_, name)| *name != placed.resource && *name != "own");
        let others: Vec<_> = others.map(|(id, _)| forecasts.of(id).unwrap()).collect();
        assert!(others.len() >= 2 && others.iter().all(|other| std::ptr::eq(*other, others[0])));
        let own = domain.state.schedules.place_of(&placed.resource).unwrap();
        let held = forecasts.of(u64::try_from(own).unwrap()).unwrap();
        assert_eq!(held.at(Time(0)).hold, placed.duration);
    }
}

#[test]
fn a_stated_duration_is_held_everywhere_and_never_shortened() {
    let resources = vec![rated("slow", 1, 1_000_000), rated("fast", 1, 2_000_000)];
    let mut domain = History::of(runs("slow", 100, 30)).domain(resources, Objective::EarliestCompletion);
    for (resource, start) in [("fast", 0), ("slow", 0), ("fast", 900)] {
        let placed = place(&mut domain, stated(900, (0, DAY)));
        assert_eq!(
            lies(&placed),
            (resource, start, 900),
            "of two slots at one time the one on which it completes first"
        );
        assert_eq!(
            (placed.constraints.predicted_ppm, placed.constraints.room),
            (None, None)
        );
    }
}

fn by_day(objective: Objective, more: Vec<Resource>) -> Domain {
    // Its samples count the work of others.
    let mut resources = vec![Resource::new("busy", "slurm", 1)];
    resources.extend(more);
    let mut past = slowed_by_day("busy", HOUR);
    past.extend(runs("free", 4_000, 60));
    let history = History {
        hours: busy_by_day("busy"),
        ..History::of(past)
    };
    history.domain(resources, objective)
}

#[test]
fn where_the_window_allows_a_loaded_resource_gets_its_work_at_night() {
    let mut domain = by_day(Objective::Cheapest, Vec::new());
    let (morning, next_night) = (9 * HOUR, 18 * HOUR);
    let placed = place(&mut domain, work((morning, 30 * HOUR)));
    let (_, start, length) = lies(&placed);
    assert!(start >= next_night, "it starts at {} o'clock", start / HOUR);
    assert!((3_500..3_800).contains(&length), "{length}");
    // In a window by day it takes as long as it takes then.
    let placed = place(&mut domain, work((morning, 14 * HOUR)));
    let (_, start, length) = lies(&placed);
    assert!(
        start < 13 * HOUR && (6_800..7_500).contains(&length),
        "{start} {length}"
    );
}

#[test]
fn a_slot_for_the_night_is_not_moved_into_the_day() {
    let mut domain = by_day(Objective::Cheapest, Vec::new());
    domain.settings.improving.idle = true;
    let placed = place(&mut domain, work((9 * HOUR, 30 * HOUR)));
    assert!(
        placed
            .constraints
            .room
            .is_some_and(|(start, _)| start >= 17 * HOUR),
        "{:?}",
        placed.constraints.room
    );
    domain.now = 10 * HOUR;
    domain.state.schedules.queue_looks_everywhere();
    domain.improve();
    assert_eq!(domain.of(placed.id), &placed);
    // Another one for the night makes it move within the night at most.
    let rigid = stated(
        HOUR,
        (
            placed.placement().start.seconds(),
            placed.placement().end.seconds(),
        ),
    );
    place(&mut domain, rigid);
    let moved = domain.of(placed.id);
    assert!(
        moved.placement().start.seconds() >= 17 * HOUR,
        "{:?}",
        lies(moved)
    );
    assert_eq!(moved.duration, placed.duration);
}

#[test]
fn by_day_another_resource_takes_the_work_and_by_night_the_loaded_one_does() {
    let more = vec![rated("free", 4, 900_000)];
    let mut domain = by_day(Objective::EarliestCompletion, more);
    let night = place(&mut domain, work((0, DAY)));
    assert_eq!(night.resource, "busy");
    let day = place(&mut domain, work((9 * HOUR, 2 * DAY)));
    assert_eq!(day.resource, "free");
    assert_eq!(day.duration, 4_000);
}

#[test]
fn a_repair_sizes_predicted_work_again_and_leaves_what_was_stated() {
    let resources = vec![rated("local", 1, 2_000_000), rated("other", 2, 500_000)];
    let mut domain = History::of(runs("local", 500, 30)).domain(resources, Objective::EarliestCompletion);
    let predicted = place(&mut domain, work((HOUR, DAY)));
    assert_eq!(lies(&predicted), ("local", HOUR, 500));
    let moved = place(&mut domain, stated(900, (3 * HOUR, 3 * HOUR + 900)));
    assert_eq!(moved.resource, "local");
    let report = NodeReport {
        states: vec![NodeState::Down],
        ..NodeReport::default()
    };
    domain
        .decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report))
        .unwrap();
    domain.check();
    domain.check_rebuilt();
    assert_eq!(lies(domain.of(predicted.id)), ("other", HOUR, 2_000));
    assert_eq!(lies(domain.of(moved.id)), ("other", 3 * HOUR, 900));
}

#[test]
fn an_agreement_keeps_its_length_on_its_own_resource_whatever_is_learned_meanwhile() {
    let resources = || vec![rated("local", 1, 1_000_000)];
    let mut domain = History::of(runs("local", 500, 30)).domain(resources(), Objective::EarliestCompletion);
    let placed = place(&mut domain, work((HOUR, DAY)));
    assert_eq!(placed.duration, 500);
    let known = Knowledge::of(
        &runs("local", 900, 60),
        &[],
        (machines_of(&domain.settings), Some(Ladder::All)),
        Time(0),
    );
    let predictions = Predictions::of(known);
    domain.settings.predictions = Some(predictions);
    domain.state = crate::State::rebuild(
        &domain.settings,
        &domain.settings.resources,
        vec![placed.clone()],
        Vec::new(),
        Time(0),
    )
    .unwrap();
    let next = place(&mut domain, work((HOUR, DAY)));
    assert_eq!(next.duration, 900);
    // It moves to let another in, as it is.
    place(&mut domain, stated(600, (HOUR, HOUR + 600)));
    assert_eq!(domain.of(placed.id).duration, 500);
}

#[test]
fn quotes_are_for_the_places_that_requests_get() {
    let more = || vec![rated("fast", 1, 1_800_000)];
    for objective in [Objective::EarliestCompletion, Objective::Cheapest] {
        let mut domain = by_day(objective, more());
        for (number, window) in [(9, 30), (0, 40), (11, 13), (9, 30), (17, 60)]
            .into_iter()
            .enumerate()
        {
            let proposal = work((window.0 * HOUR, window.1 * HOUR));
            let ask = QuoteOffers {
                about: OfferOrigin::Negotiation(Uuid::nil()),
                proposal: proposal.clone(),
                others: None,
                weights: Weights::default(),
            };
            let quoted = domain.decide(|decider| {
                let context = candidates::candidate_context(decider.view(), &ask, Time(HOUR), None);
                quote::quote_request(&mut decider.search(), &context, &mut None)
            });
            let quoted = quoted.unwrap().candidates[0].clone();
            let placed = place(&mut domain, proposal);
            let terms = &quoted.terms;
            assert_eq!(
                (&*terms.resource, terms.placement()),
                (&*placed.resource, placed.placement()),
                "{objective:?} {number}"
            );
        }
    }
}

#[test]
fn a_window_that_is_too_short_for_what_is_foreseen_is_refused_with_that_length() {
    let mut domain = by_day(Objective::EarliestCompletion, Vec::new());
    let short = domain.place(work((9 * HOUR, 10 * HOUR + 1_800))).unwrap_err();
    assert_eq!(short.reason, scheduler::Reason::WindowContradictory, "{short:?}");
    // A refusal for want of room speaks of the work, and its alternatives are as long as that takes.
    place(&mut domain, stated(6 * HOUR, (9 * HOUR, 15 * HOUR)));
    let full = domain.place(work((11 * HOUR, 13 * HOUR + 1_800))).unwrap_err();
    assert_eq!(full.reason, scheduler::Reason::NoCapacityInWindow);
    assert!(
        full.binding.contains("predicted to take there"),
        "{}",
        full.binding
    );
    let near = full.alternatives.first().expect("there is room before and after");
    assert!((6_800..7_500).contains(&near.slot.duration()), "{near:?}");
    // By night the same time is enough.
    place(&mut domain, work((20 * HOUR, 21 * HOUR + 1_800)));
}

#[test]
fn where_the_cheapest_is_best_a_penalty_counts_as_likely_as_it_is() {
    let resources = || vec![rated("cheap", 1, 1_000_000), rated("sure", 1, 1_000_000)];
    let history = || {
        let mut past = runs("sure", 900, 60);
        for number in 1..=60 {
            let outcome = if number % 2 == 0 {
                RunOutcome::Lost
            } else {
                RunOutcome::Completed
            };
            past.push(execution("cheap", 900, number * HOUR, outcome));
        }
        History::of(past)
    };
    let eur = Currency::parse("EUR").unwrap();
    for (penalty, expected) in [(0, "cheap"), (200, "cheap"), (100_000, "sure")] {
        let mut domain = history().domain(resources(), Objective::Cheapest);
        let mut pricing = Pricing::flat(3_600, eur);
        pricing.resources.insert("sure".into(), 5_000);
        pricing.busy = Fraction::percent(0);
        domain.settings.pricing = Some(pricing);
        domain.state = crate::State::rebuild(
            &domain.settings,
            &domain.settings.resources,
            Vec::new(),
            Vec::new(),
            Time(0),
        )
        .unwrap();
        let mut proposal = stated(1_000, (0, DAY));
        proposal.guarantees = vec![Guarantee {
            name: "ends".into(),
            objective: "completionTime <= deadline".into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values {
                penalties: vec![Compensation {
                    worth: CompensationValue::Amount(Money::new(penalty, eur)),
                    every: None,
                    paid: 0,
                }],
                ..Values::default()
            },
        }];
        assert_eq!(place(&mut domain, proposal).resource, expected, "{penalty}");
    }
}

#[test]
fn the_published_estimate_sizes_slots_and_is_kept_as_it_was_made() {
    let local = || vec![rated("local", 1, 1_000_000)];
    // Each took 500 s and was estimated at 450: RT is −50, and JT is 500 + 50.
    let short = |run: &PastExecution| PastExecution {
        execution: Execution {
            estimate: 450,
            ..run.execution.clone()
        },
        ..run.clone()
    };
    let past: Vec<_> = runs("local", 500, 30).iter().map(short).collect();
    let published = |hours| History {
        past: past.clone(),
        hours,
        ladder: Some(Ladder::Published),
    };
    let mut domain = published(Vec::new()).domain(local(), Objective::EarliestCompletion);
    let placed = place(&mut domain, work((HOUR, DAY)));
    assert_eq!((placed.duration, placed.constraints.estimate), (550, Some(550)));
    // What is learned later does not change the estimate with which it is compared.
    let stated = place(&mut domain, stated(2_000, (2 * HOUR, DAY)));
    assert_eq!((stated.duration, stated.constraints.estimate), (2_000, Some(550)));
    // In office hours nothing is free: × 2.
    let mut busy = published(busy_by_day("local")).domain(local(), Objective::EarliestCompletion);
    let slowed = place(&mut busy, work((10 * HOUR, 11 * HOUR)));
    assert!((1_040..=1_060).contains(&slowed.duration), "{}", slowed.duration);
    // Where nothing is known of the application, nothing is estimated.
    let mut new = published(Vec::new());
    new.past.clear();
    let mut new = new.domain(local(), Objective::EarliestCompletion);
    let first = place(&mut new, work((HOUR, DAY)));
    assert_eq!((first.duration, first.constraints.estimate), (500, None));
}
