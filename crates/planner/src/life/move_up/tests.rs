//! Moves into free time come after the answers, in slices, and each gains enough to be told in a timeline.

use std::collections::BTreeSet;

use domain::resources::Resource;
use scheduler::{Interval, Order, Seconds, Time};
use uuid::Uuid;

use super::*;
use crate::commands::ReportReserving;
use crate::placement::places::SLICE_MOVES;
use crate::tests::harness::{Domain, proposal};
use crate::{AcceptedOffer, ImprovementSettings, Settings, Terminate};

const DAY: Seconds = 86_400;

/// Four nodes, planned thirty days ahead, with the default configuration.
fn by_default() -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 30 * DAY);
    settings.improving = ImprovementSettings::default();
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    domain
}

fn place(domain: &mut Domain, nodes: u32, duration: Seconds, window: (i64, i64)) -> Uuid {
    let AcceptedOffer { agreement, .. } = domain.place(proposal(nodes, duration, window)).unwrap();
    agreement.id
}

fn end(domain: &mut Domain, id: Uuid) {
    let order = Terminate::of(id, None);
    domain.decide(|decider| decider.decide(order)).unwrap();
}

fn start(domain: &Domain, id: Uuid) -> i64 {
    domain.of(id).placement().start.seconds()
}

/// Makes slices until there is nothing to look at; how many it took.
fn slices(domain: &mut Domain) -> usize {
    let mut count = 0;
    while domain.state.may_move_up(Time(domain.now)) {
        domain.improve();
        count += 1;
        assert!(count < 1_000, "slices come to an end");
    }
    count
}

#[test]
fn an_end_moves_nobody_and_a_slice_does() {
    let mut domain = by_default();
    let first = place(&mut domain, 4, 600, (100, 700));
    let second = place(&mut domain, 4, 600, (100, 5_000));
    slices(&mut domain);
    assert_eq!(start(&domain, second), 700);
    end(&mut domain, first);
    assert_eq!(start(&domain, second), 700, "the answer goes first");
    slices(&mut domain);
    assert_eq!(start(&domain, second), 100);
    domain.check();
}

#[test]
fn what_a_cluster_has_reserved_does_not_move_up() {
    let mut domain = by_default();
    let first = place(&mut domain, 4, 600, (100, 700));
    let near = place(&mut domain, 4, 600, (100, 5_000));
    domain
        .decide(|decider| {
            decider.decide(ReportReserving {
                resource: "local".into(),
                refused: Vec::new(),
                within: 1_000,
            })
        })
        .unwrap();
    end(&mut domain, first);
    slices(&mut domain);
    assert_eq!(start(&domain, near), 700);
    domain.check();
}

/// One node, with slots reserved so many seconds ahead; a rigid agreement from 5,000 to 6,000 and one behind it that can use its place, which
/// starts at 11,000. What lies between them stays.
fn behind_one_that_ends(within: Seconds) -> (Domain, Uuid, Uuid) {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 1)], 30 * DAY);
    settings.improving = ImprovementSettings::default();
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    let ends = place(&mut domain, 1, 1_000, (5_000, 6_000));
    place(&mut domain, 1, 5_000, (6_000, 11_000));
    let waits = place(&mut domain, 1, 500, (5_000, 40_000));
    domain
        .decide(|decider| {
            decider.decide(ReportReserving {
                resource: "local".into(),
                refused: Vec::new(),
                within,
            })
        })
        .unwrap();
    slices(&mut domain);
    assert_eq!(start(&domain, waits), 11_000);
    (domain, ends, waits)
}

#[test]
fn none_moves_up_into_time_that_a_cluster_was_not_asked_for() {
    for (within, begins) in [
        (0, 5_000),
        (5_400, 5_401),
        (5_499, 5_500),
        (5_500, 11_000),
        (20_000, 11_000),
    ] {
        let (mut domain, ends, waits) = behind_one_that_ends(within);
        end(&mut domain, ends);
        slices(&mut domain);
        assert_eq!(start(&domain, waits), begins, "within {within}");
        domain.check();
    }
}

#[test]
fn one_alone_is_found_among_many_steps_of_what_became_free() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 500)], 30 * DAY);
    settings.improving = ImprovementSettings::default();
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    for nth in 0..200 {
        place(&mut domain, 1, 100 + 10 * nth, (0, 100 + 10 * nth));
    }
    let ends = place(&mut domain, 300, 10_000, (0, 10_000));
    let waits = place(&mut domain, 400, 1_000, (2_000, DAY));
    domain.begin(0);
    slices(&mut domain);
    assert_eq!(start(&domain, waits), 10_000);
    end(&mut domain, ends);
    slices(&mut domain);
    assert_eq!(start(&domain, waits), 2_000);
    domain.check();
}

#[test]
fn moves_of_a_second_are_not_made() {
    let mut domain = by_default();
    let blocks: Vec<Uuid> = (0..50)
        .map(|nth| place(&mut domain, 4, 10, (1_000 + 10 * nth, 1_010 + 10 * nth)))
        .collect();
    let waits = place(&mut domain, 4, 600, (1_000, DAY));
    assert_eq!(start(&domain, waits), 1_500);
    for (ended, id) in (1..).zip(blocks.into_iter().rev()) {
        end(&mut domain, id);
        slices(&mut domain);
        assert_eq!(start(&domain, waits), 1_500 - 60 * (ended / 6).min(4));
    }
    let moved = domain.told.iter().filter(|(id, _)| *id == waits);
    assert_eq!(moved.count(), 5, "its acceptance, and four moves of a minute");
    domain.check();
}

#[test]
fn who_was_moved_often_enough_is_moved_again_once_an_hour_is_over() {
    let mut domain = by_default();
    let blocks: Vec<Uuid> = (0..6)
        .map(|nth| {
            let at = 20_000 + 600 * nth;
            place(&mut domain, 4, 600, (at, at + 600))
        })
        .collect();
    let waits = place(&mut domain, 4, 600, (20_000, 2 * DAY));
    for (nth, id) in blocks.into_iter().rev().enumerate() {
        domain.now = i64::try_from(nth).unwrap();
        end(&mut domain, id);
        slices(&mut domain);
    }
    assert_eq!(
        start(&domain, waits),
        20_000 + 2 * 600,
        "four moves, and none for what ended then"
    );
    domain.now = 3_599;
    assert_eq!(slices(&mut domain), 0, "nothing is looked at meanwhile");
    domain.now = 3_600;
    assert_eq!(slices(&mut domain), 1);
    assert_eq!(start(&domain, waits), 20_000, "and nothing else had to happen");
    domain.check();
}

#[test]
fn a_slice_is_bounded_and_slices_come_to_an_end() {
    let mut domain = by_default();
    let block = place(&mut domain, 4, 72_000, (100, 72_100));
    for _ in 0..400 {
        place(&mut domain, 4, 600, (100, 25 * DAY));
    }
    slices(&mut domain);
    domain.told.clear();
    end(&mut domain, block);
    domain.told.clear();
    domain.improve();
    assert_eq!(domain.told.len(), SLICE_MOVES);
    let count = slices(&mut domain);
    assert!((1..=3).contains(&count), "{count}");
    assert_eq!(domain.told.len(), 120, "as many as fit in what became free");
    let moved: BTreeSet<Uuid> = domain.told.iter().map(|(id, _)| *id).collect();
    assert_eq!(moved.len(), 120, "each of them once");
    let first = domain.known.values().map(|known| known.placement().start).min();
    assert_eq!(first, Some(Time(100)));
}

#[test]
fn slices_come_to_an_end_in_an_order_that_changes_with_time() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 30 * DAY);
    settings.order = Order::Mdf;
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    for _ in 0..2_000 {
        place(&mut domain, 4, 600, (100, 25 * DAY));
    }
    let mut count = 0;
    while domain.state.may_move_up(Time(domain.now)) {
        // Each of them is another second, so that all are to be put in order anew.
        domain.now += 1;
        domain.improve();
        count += 1;
        assert!(count < 20, "slices come to an end");
    }
}

#[test]
fn who_lies_at_its_first_fit_does_so_after_a_restart() {
    let mut domain = by_default();
    for _ in 0..2_000 {
        place(&mut domain, 4, 600, (100, 25 * DAY));
    }
    let mut known: Vec<_> = domain.known.values().cloned().collect();
    known.sort_by_key(|agreement| agreement.id);
    domain.state = State::rebuild(
        &domain.settings,
        &domain.settings.resources,
        known,
        Vec::new(),
        Time(0),
    )
    .unwrap();
    domain.state.schedules.reset_look_queue();
    domain.state.schedules.queue_looks_everywhere();
    domain.told.clear();
    // Looking at each of them would take three.
    assert_eq!(slices(&mut domain), 1);
    assert_eq!(domain.told, []);
}

#[test]
fn what_could_start_earlier_before_a_restart_does_so_after_it() {
    let mut domain = by_default();
    let first = place(&mut domain, 4, 600, (100, 700));
    let second = place(&mut domain, 4, 600, (100, 5_000));
    end(&mut domain, first);
    let known = domain.known.values().cloned().collect();
    domain.state = State::rebuild(
        &domain.settings,
        &domain.settings.resources,
        known,
        Vec::new(),
        Time(0),
    )
    .unwrap();
    domain.state.schedules.reset_look_queue();
    domain.state.schedules.queue_looks_everywhere();
    slices(&mut domain);
    assert_eq!(domain.of(second).placement(), Interval::of(Time(100), 600));
    domain.check();
}
