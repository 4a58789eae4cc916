//! Accepted agreements that wait change their sizes and their cuts to let others in, and none of their promises is broken.

use domain::agreement::{Agreement, Currency, RunOutcome, ServiceState, Shape, ShapeChanges};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{Resource, Scaling};
use proptest::prelude::*;
use scheduler::moldable::WHOLE_PPM;
use scheduler::preemptive::Preemption;
use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use crate::commands::{BeginDue, Place};
use crate::life::reports;
use crate::settings::Quotas;
use crate::table::fees::cancellation_fee;
use crate::tests::harness::{Domain, HORIZON, proposal, work};
use crate::tests::stories::state_digest::state_digest;
use crate::{Pricing, Request, Settings};

/// An hour of the examples, in seconds.
const HOUR: i64 = 100;

/// Eight nodes that cost a euro an hour each.
fn priced() -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 8)], HORIZON);
    settings.improving.idle = false;
    settings.pricing = Some(Pricing::flat(1_000_000, Currency::parse("EUR").unwrap()));
    Domain::with(settings)
}

/// The sizes of work that takes an hour on eight nodes, from eight to four.
fn sizes() -> Vec<Shape> {
    let size = |nodes: u32| Shape {
        nodes,
        duration: (8 * HOUR + i64::from(nodes) - 1) / i64::from(nodes),
    };
    (4..=8).rev().map(size).collect()
}

/// Eight nodes for an hour, or as few as four for two, anywhere in two hours.
fn sized() -> Request {
    Request {
        shapes: sizes(),
        scaling: Scaling::ReferenceRate,
        ..proposal(8, HOUR, (HOUR, 3 * HOUR))
    }
}

/// Two hours of work that may be cut in the middle, anywhere in three hours.
fn cuttable() -> Request {
    let preemption = Preemption::new(2, WHOLE_PPM / 2, false).unwrap();
    Request {
        preemption: Some(preemption.whole_for(1)),
        ..work(8, 2 * HOUR, (HOUR, 4 * HOUR))
    }
}

fn may(sizes: bool, cuts: bool, until: Option<i64>) -> ShapeChanges {
    ShapeChanges { sizes, cuts, until }
}

/// Where slots lie, in seconds, and their nodes.
fn slots(agreement: &Agreement) -> Vec<(i64, i64, u32)> {
    let slots = agreement.slots.iter();
    slots
        .map(|slot| {
            let Interval { start, end } = slot.placement;
            (start.seconds(), end.seconds(), slot.nodes)
        })
        .collect()
}

/// What waits in the plan, in which windows, and where.
fn plan_in_words(domain: &Domain) -> Vec<String> {
    let plans = domain.state.schedules.plans();
    let mut lines: Vec<String> = plans
        .flat_map(|plan| {
            let waiting = plan.schedule.waiting();
            // A slot that begins now may run already.
            let lying = waiting.filter_map(|request| Some((request, plan.schedule.placement(request.id)?)));
            let ahead = lying.filter(|(_, place)| place.slot.start > Time(domain.now));
            ahead.map(|(request, place)| format!("{request:?} {place:?}"))
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// The lines of an agreement's timeline.
fn told(domain: &Domain, id: Uuid) -> Vec<&str> {
    let lines = domain.told.iter().filter(|(of, _)| *of == id);
    lines.map(|(_, line)| line.as_str()).collect()
}

#[test]
fn a_waiting_agreement_takes_fewer_nodes_for_longer_to_let_another_in_in_either_order() {
    let narrow = || proposal(4, 2 * HOUR, (HOUR, 3 * HOUR));
    let mut domain = priced();
    let first = domain.place(sized()).unwrap().agreement;
    assert_eq!(slots(&first), [(100, 200, 8)]);
    let accepted = domain.place(narrow()).unwrap();
    assert_eq!(slots(&accepted.agreement), [(100, 300, 4)]);
    let after = domain.of(first.id).clone();
    assert_eq!(slots(&after), [(100, 300, 4)]);
    assert_eq!((after.price, after.deadline), (first.price, first.deadline));
    assert_eq!(accepted.moved, [after]);
    assert_eq!(
        told(&domain, first.id)[1..],
        ["with 4 nodes for 200 seconds, to let another agreement in"]
    );
    let why = told(&domain, accepted.agreement.id);
    assert!(why[0].contains("1 other got another size"), "{why:?}");
    domain.check();
    domain.check_rebuilt();

    let mut domain = priced();
    let narrow = domain.place(narrow()).unwrap().agreement;
    let second = domain.place(sized()).unwrap().agreement;
    assert_eq!(slots(&second), [(100, 300, 4)]);
    assert_eq!(domain.of(narrow.id), &narrow);
    domain.check();
}

#[test]
fn waiting_work_is_cut_to_let_another_in_in_either_order() {
    let rigid = || proposal(8, HOUR, (2 * HOUR, 3 * HOUR));
    let mut domain = priced();
    let first = domain.place(cuttable()).unwrap().agreement;
    assert_eq!(slots(&first), [(100, 300, 8)]);
    let accepted = domain.place(rigid()).unwrap();
    assert_eq!(slots(&accepted.agreement), [(200, 300, 8)]);
    let after = domain.of(first.id).clone();
    assert_eq!(slots(&after), [(100, 200, 8), (300, 400, 8)]);
    let kept = |agreement: &Agreement| (agreement.price, agreement.deadline, agreement.duration);
    assert_eq!(kept(&after), kept(&first));
    assert_eq!(
        told(&domain, first.id)[1..],
        ["in 2 pieces, with 8 nodes for 200 seconds in all, to let another agreement in"]
    );
    domain.check();
    domain.check_rebuilt();

    let mut domain = priced();
    let rigid = domain.place(rigid()).unwrap().agreement;
    let second = domain.place(cuttable()).unwrap().agreement;
    assert_eq!(slots(&second), [(100, 200, 8), (300, 400, 8)]);
    assert_eq!(domain.of(rigid.id), &rigid);
    domain.check();
}

#[test]
fn a_shape_stays_where_its_work_has_no_other() {
    let mut domain = priced();
    let first = domain.place(cuttable()).unwrap().agreement;
    domain.place(proposal(8, HOUR, (2 * HOUR, 3 * HOUR))).unwrap();
    // Half of the second piece's time: the work has no other.
    let refusal = domain
        .place(proposal(8, HOUR / 2, (3 * HOUR, 4 * HOUR)))
        .unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    let beside = domain.place(sized()).unwrap_err();
    assert_eq!(beside.reason, Reason::NoCapacityInWindow);
    assert_eq!(slots(domain.of(first.id)), [(100, 200, 8), (300, 400, 8)]);
    domain.check();
}

#[test]
fn a_shape_that_was_changed_changes_again_and_pieces_that_begin_as_before_are_told() {
    let mut domain = priced();
    let rigid = |from, to| proposal(8, to - from, (from, to));
    let quarters = Preemption::new(2, WHOLE_PPM / 4, false).unwrap();
    let first = Request {
        preemption: Some(quarters.whole_for(1)),
        ..cuttable()
    };
    let first = domain.place(first).unwrap().agreement;
    domain.place(rigid(250, 300)).unwrap();
    assert_eq!(slots(domain.of(first.id)), [(100, 250, 8), (300, 350, 8)]);
    domain.place(rigid(200, 250)).unwrap();
    assert_eq!(slots(domain.of(first.id)), [(100, 200, 8), (300, 400, 8)]);
    assert_eq!(
        told(&domain, first.id)[2..],
        [
            "piece 1 of 2 with 8 nodes for 100 seconds, to let another agreement in",
            "piece 2 of 2 with 8 nodes for 100 seconds, to let another agreement in"
        ]
    );
    domain.check();
    domain.check_rebuilt();
}

#[test]
fn a_change_of_shape_for_others_is_no_move_of_those_that_are_counted() {
    let mut domain = priced();
    let beside = domain
        .place(proposal(4, 2 * HOUR, (HOUR, 3 * HOUR)))
        .unwrap()
        .agreement;
    let first = domain.place(sized()).unwrap().agreement;
    assert_eq!(slots(&first), [(100, 300, 4)]);
    domain.moves_up = false;
    let end = crate::Terminate::of(beside.id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
    domain.place(proposal(8, HOUR, (2 * HOUR, 3 * HOUR))).unwrap();
    assert_eq!(slots(domain.of(first.id)), [(100, 200, 8)]);
    let places = &domain.state.placement;
    let number = places.numbers_of(first.id)[0];
    let from = places.movable_from(&domain.state.agreements, None, 1, number);
    assert_eq!(from, Some(Time::MIN));
}

#[test]
fn work_in_pieces_is_not_put_together_where_its_cuts_are_to_stay() {
    let sizes = [(8, 200), (4, 400)].map(|(nodes, duration)| Shape { nodes, duration });
    let halves = Preemption::new(2, WHOLE_PPM / 2, false).unwrap();
    let first = |cuts| Request {
        shapes: sizes.to_vec(),
        scaling: Scaling::ReferenceRate,
        preemption: Some(halves.whole_for(2)),
        shape_changes: Some(may(true, cuts, None)),
        ..work(8, 2 * HOUR, (HOUR, 5 * HOUR))
    };
    let gets_in = |cuts| {
        let mut domain = priced();
        let beside = [(); 2].map(|()| domain.place(proposal(4, HOUR, (2 * HOUR, 3 * HOUR))).unwrap());
        let first = domain.place(first(cuts)).unwrap().agreement;
        assert_eq!(slots(&first), [(100, 200, 8), (300, 400, 8)]);
        let end = crate::Terminate::of(beside[0].agreement.id, None);
        domain.decide(|decider| decider.decide(end)).unwrap();
        domain.place(proposal(4, 2 * HOUR, (3 * HOUR, 5 * HOUR))).is_ok()
    };
    assert_eq!([true, false].map(gets_in), [true, false]);
}

/// An hour on eight nodes, or an hour and a half on four, which is a quarter less of node-hours.
fn cheaper_when_small() -> Request {
    let sizes = [(8, 100), (4, 150)].map(|(nodes, duration)| Shape { nodes, duration });
    Request {
        shapes: sizes.to_vec(),
        scaling: Scaling::ReferenceRate,
        ..work(8, HOUR, (100, 250))
    }
}

#[test]
fn what_the_provider_has_changed_costs_no_more_to_end_and_its_overrun_costs_no_more() {
    let mut domain = priced();
    domain.settings.pricing.as_mut().unwrap().node_hour_micros = 3_600_000;
    let first = domain.place(cheaper_when_small()).unwrap().agreement;
    assert_eq!(first.price.unwrap().micros, 800_000);
    domain.place(proposal(4, 150, (100, 250))).unwrap();
    let after = domain.of(first.id).clone();
    assert_eq!((slots(&after), after.price), (vec![(100, 250, 4)], first.price));
    assert_eq!(
        after.price_of_more(10).unwrap().micros,
        40_000,
        "as the list says"
    );
    let fee = domain.decide(|decider| {
        let mut search = decider.search();
        search
            .placement
            .take_slot_out(search.schedules, &after, 0, Time(0));
        cancellation_fee(&mut search, &after, None)
    });
    assert_eq!(fee.unwrap().amount.micros, 0);
}

#[test]
fn other_shapes_are_not_asked_for_where_a_begin_before_nodes_are_reserved_would_do() {
    let mut domain = priced();
    let sizes = [(8, 10), (4, 20)].map(|(nodes, duration)| Shape { nodes, duration });
    let small = Request {
        shapes: sizes.to_vec(),
        scaling: Scaling::ReferenceRate,
        ..proposal(8, 10, (100, 120))
    };
    let small = domain.place(small).unwrap().agreement;
    domain.place(proposal(4, 10, (110, 120))).unwrap();
    let moves = domain.place(proposal(8, 50, (40, 200))).unwrap().agreement;
    assert_eq!(
        (slots(&small), slots(&moves)),
        (vec![(100, 110, 8)], vec![(40, 90, 8)])
    );
    // Something has to be reserved, so a newcomer had better begin a moment later.
    domain.state.elsewhere.set_within("cluster".to_owned(), 60);
    let newcomer = domain.place(proposal(4, 100, (0, 103))).unwrap();
    assert_eq!(slots(&newcomer.agreement), [(0, 100, 4)]);
    assert_eq!(domain.of(small.id), &small);
}

#[test]
fn a_shape_stays_where_its_terms_say_so_and_a_refusal_changes_nothing() {
    let narrow = proposal(4, 2 * HOUR, (HOUR, 3 * HOUR));
    let rigid = proposal(8, HOUR, (2 * HOUR, 3 * HOUR));
    let cases = [
        (sized(), may(false, true, None), &narrow),
        (sized(), may(true, true, Some(50)), &narrow),
        (cuttable(), may(true, false, None), &rigid),
        (cuttable(), may(true, true, Some(0)), &rigid),
    ];
    for (first, shape_changes, newcomer) in cases {
        let mut domain = priced();
        domain.now = 50;
        let said = Request {
            shape_changes: Some(shape_changes),
            ..first
        };
        domain.place(said).unwrap();
        let before = (plan_in_words(&domain), domain.known.clone());
        let refusal = domain.place(newcomer.clone()).unwrap_err();
        assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
        assert_eq!((plan_in_words(&domain), domain.known.clone()), before);
    }
}

#[test]
fn what_lies_on_a_cluster_or_is_fixed_keeps_its_shape() {
    let narrow = || proposal(4, 2 * HOUR, (HOUR, 3 * HOUR));
    let mut cluster = Domain::new(vec![Resource::new("cluster", "slurm", 8)]);
    let first = cluster.place(sized()).unwrap().agreement;
    assert_eq!(first.constraints.open_shape_changes(), Some(ShapeChanges::NONE));
    cluster.place(narrow()).unwrap_err();
    let mut domain = priced();
    let fixed = Request {
        fix_at_ppm: Some(0),
        ..sized()
    };
    domain.place(fixed).unwrap();
    domain.decide(|decider| {
        decider.make_due_decisions();
    });
    domain.place(narrow()).unwrap_err();
}

#[test]
fn a_shape_takes_no_more_node_hours_where_they_are_bounded() {
    let dear_when_small = |quotas: Quotas| {
        let mut domain = priced();
        domain.settings.quotas = quotas;
        let mut sizes = sizes();
        sizes.last_mut().unwrap().duration = 2 * HOUR + 1;
        let first = Request {
            shapes: sizes,
            ..sized()
        };
        let first = Request {
            deadline: Some(Time(3 * HOUR + 1)),
            ..first
        };
        domain.place(first).unwrap();
        domain.place(proposal(4, 2 * HOUR, (HOUR, 3 * HOUR))).is_ok()
    };
    let bounded = Quotas {
        node_hours: Some(1_000),
        ..Quotas::default()
    };
    assert_eq!([Quotas::default(), bounded].map(dear_when_small), [true, false]);
}

#[test]
fn a_dry_run_leaves_every_shape_as_it_was() {
    let mut domain = priced();
    domain.place(sized()).unwrap();
    let (before, known) = (state_digest(&domain.state), domain.known.clone());
    let narrow = proposal(4, 2 * HOUR, (HOUR, 3 * HOUR));
    let tried = domain.decide(|decider| decider.try_out(|tried| tried.decide(Place(narrow)).is_ok()));
    assert_eq!(tried, Ok(true));
    assert_eq!((state_digest(&domain.state), domain.known), (before, known));
}

/// A request of a random list.
#[derive(Debug, Clone)]
struct Asked {
    nodes: u32,
    least: u32,
    duration: i64,
    ahead: i64,
    room: i64,
    cut: Option<(u32, bool)>,
    after: i64,
}

impl Asked {
    fn request(&self, now: i64, shape_changes: Option<ShapeChanges>) -> Request {
        let ready = now + self.ahead;
        let window = (ready, ready + self.duration + self.room);
        let node_seconds = i64::from(self.nodes) * self.duration;
        let size = |nodes: u32| Shape {
            nodes,
            duration: (node_seconds + i64::from(nodes) - 1) / i64::from(nodes),
        };
        let least = self.least.min(self.nodes);
        let shapes: Vec<Shape> = (least..=self.nodes).rev().map(size).collect();
        let scaling = if shapes.len() > 1 {
            Scaling::ReferenceRate
        } else {
            Scaling::Contract
        };
        let preemption = self.cut.map(|(pieces, independent)| {
            let cut = Preemption::new(pieces, WHOLE_PPM / 4, independent).unwrap();
            cut.whole_for(shapes.len())
        });
        Request {
            shapes,
            scaling,
            preemption,
            shape_changes,
            ..work(self.nodes, self.duration, window)
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let size = (1..9_u32, 1..9_u32, 8..60_i64);
    let times = (1..80_i64, 0..100_i64, 0..25_i64);
    let cut = proptest::option::of((2..5_u32, any::<bool>()));
    (size, times, cut).prop_map(|((nodes, least, duration), (ahead, room, after), cut)| Asked {
        nodes,
        least,
        duration,
        ahead,
        room,
        cut,
        after,
    })
}

/// Whether the slots of an agreement do the work of what was accepted, in a shape that it may have.
fn does_its_work(request: &Request, agreement: &Agreement) -> bool {
    let size = |nodes: u32| request.shapes.iter().find(|shape| shape.nodes == nodes);
    if !agreement.slots.is_split() {
        let Some(shape) = size(agreement.nodes()) else {
            return false;
        };
        // Parts that were rounded up may follow each other without a break: each is up to a second longer.
        let parts = request.preemption.map_or(0, |preemption| preemption.parts());
        let longer = agreement.duration - shape.duration;
        return (0..=i64::from(parts)).contains(&longer);
    }
    let Some(preemption) = request.preemption else {
        return false;
    };
    let whole = |nodes: u32| size(nodes).map_or(i64::MAX, |shape| shape.duration);
    let (slots, pieces_max) = (&agreement.slots, preemption.pieces_max() as usize);
    let does_all = if slots.differ() {
        let parts = slots
            .iter()
            .map(|slot| slot.placement.duration() * 1_000_000 / whole(slot.nodes) + 1);
        preemption.independent() && parts.sum::<i64>() >= 1_000_000
    } else {
        slots.seconds() >= whole(slots.nodes())
    };
    does_all && slots.len() <= pieces_max
}

/// Lets time pass, a second at a time, with every process started at once.
fn pass(domain: &mut Domain, seconds: i64) {
    for _ in 0..seconds {
        domain.now += 1;
        let over = domain.known.values().filter(|agreement| {
            agreement.service == ServiceState::Processing && agreement.slot().end.seconds() <= domain.now
        });
        let over = over.map(|over| (over.id, over.has_more_slots()));
        for (id, goes_on) in over.collect::<Vec<_>>() {
            let outcome = if goes_on {
                RunOutcome::Checkpointed
            } else {
                RunOutcome::Completed
            };
            domain.end(id, outcome);
        }
        domain.decide(|decider| decider.decide(BeginDue)).unwrap();
        let begun = domain.known.values().filter(|agreement| {
            agreement.service == ServiceState::Processing && agreement.slot_started().is_none()
        });
        for id in begun.map(|begun| begun.id).collect::<Vec<_>>() {
            let at = domain.now * MICROS_PER_SECOND;
            domain
                .decide(|decider| reports::record_reported_start(decider, id, at, None))
                .unwrap();
        }
    }
}

/// Whether what may not change of the shape of an agreement is as it was accepted.
fn keeps_what_may_not_change(changes: ShapeChanges, first: &Agreement, now: &Agreement) -> bool {
    (changes.sizes || now.nodes() == first.nodes()) && (changes.cuts || now.slots.len() == first.slots.len())
}

/// How many requests of a list are accepted, where shapes may change so; every promise holds after each.
fn accepted_of(list: &[Asked], shape_changes: Option<ShapeChanges>) -> usize {
    let mut domain = priced();
    let mut promised: Vec<(Request, Agreement)> = Vec::new();
    for asked in list {
        pass(&mut domain, asked.after);
        let request = asked.request(domain.now, shape_changes);
        let before = (plan_in_words(&domain), domain.known.clone());
        if let Ok(accepted) = domain.place(request.clone()) {
            promised.push((request, accepted.agreement));
        } else {
            assert_eq!((plan_in_words(&domain), domain.known.clone()), before);
        }
        for (request, first) in &promised {
            // What runs may have more time.
            let waits = domain.known.get(&first.id).filter(|each| each.is_waiting());
            let Some(now) = waits else { continue };
            let kept = |agreement: &Agreement| (agreement.price, agreement.ready, agreement.deadline);
            assert_eq!(kept(now), kept(first));
            assert!(does_its_work(request, now), "{request:?} as {now:?}");
            let changes = shape_changes.unwrap_or(may(true, true, None));
            assert!(
                keeps_what_may_not_change(changes, first, now),
                "{first:?} as {now:?}"
            );
        }
        domain.check();
    }
    assert_eq!(domain.over.values().filter(|over| is_broken(over)).count(), 0);
    domain.check_rebuilt();
    promised.len()
}

/// Whether an agreement is over without its slots.
fn is_broken(over: &Agreement) -> bool {
    over.outcome == Some(RunOutcome::Lost)
}

/// Random lists as many as these are decided with and without changes of shape.
fn compare_lists(lists: u32) -> [usize; 4] {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut sums = [0; 4];
    let some = [may(true, false, None), may(false, true, None), ShapeChanges::NONE].map(Some);
    let [sizes, cuts, nothing] = some;
    for _ in 0..lists {
        let list = proptest::collection::vec(asked(), 4..16);
        let list = list.new_tree(&mut runner).unwrap().current();
        for (sum, may_change) in sums.iter_mut().zip([None, sizes, cuts, nothing]) {
            *sum += accepted_of(&list, may_change);
        }
    }
    sums
}

#[test]
fn no_promise_is_broken_on_random_lists_and_more_are_accepted_than_with_fixed_shapes() {
    let [all, sizes, cuts, none] = compare_lists(80);
    let sums = [all, sizes, cuts];
    assert!(
        sums.iter().all(|sum| *sum > none),
        "{sums:?} with changes of shape, {none} without"
    );
}

#[test]
#[ignore = "ten thousand lists take minutes"]
fn no_promise_is_broken_on_ten_thousand_random_lists() {
    let [all, sizes, cuts, none] = compare_lists(10_000);
    let sums = [all, sizes, cuts];
    println!("{sums:?} with changes of shape, {none} without");
    assert!(
        sums.iter().all(|sum| *sum > none),
        "{sums:?} with changes of shape, {none} without"
    );
}
