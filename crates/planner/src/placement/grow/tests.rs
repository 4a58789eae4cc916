//! Larger sizes of waiting agreements in time that became free.

use domain::agreement::{Shape, ShapeChanges};
use domain::resources::{Resource, Scaling};
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::tests::harness::{Domain, proposal};
use crate::{Request, Settings, Terminate};

const DAY: i64 = 86_400;

/// Eight nodes with the default configuration.
fn by_default() -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 8)], 30 * DAY);
    settings.improving = crate::ImprovementSettings::default();
    Domain::with(settings)
}

/// An hour of eight nodes, or two of four, in a window.
fn sized(window: (i64, i64)) -> Request {
    let size = |nodes: u32| Shape {
        nodes,
        duration: 28_800 / i64::from(nodes),
    };
    Request {
        shapes: [8, 6, 4].map(size).to_vec(),
        scaling: Scaling::ReferenceRate,
        ..proposal(8, 3_600, window)
    }
}

fn slot(domain: &Domain, id: Uuid) -> (u32, Interval) {
    (domain.of(id).nodes(), domain.of(id).placement())
}

fn at(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

#[test]
fn a_waiting_agreement_takes_more_nodes_when_those_beside_it_become_free() {
    let mut domain = by_default();
    let beside = domain
        .place(proposal(4, 7_200, (1_000, 8_200)))
        .unwrap()
        .agreement;
    let small = domain.place(sized((1_000, 9_000))).unwrap().agreement;
    assert_eq!(slot(&domain, small.id), (4, at(1_000, 8_200)));
    let end = Terminate::of(beside.id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
    assert_eq!(slot(&domain, small.id), (8, at(1_000, 4_600)));
    let (_, last) = domain.told.iter().rfind(|(id, _)| *id == small.id).unwrap();
    assert_eq!(last, "with 8 nodes for 3600 seconds, into time that became free");
    assert_eq!(domain.of(small.id).deadline, small.deadline);
    domain.check_rebuilt();
    // What grew gives way again.
    let again = domain
        .place(proposal(4, 7_200, (1_000, 8_200)))
        .unwrap()
        .agreement;
    assert_eq!(slot(&domain, small.id), (4, at(1_000, 8_200)));
    assert_eq!(slot(&domain, again.id), (4, at(1_000, 8_200)));
    domain.check_rebuilt();
}

#[test]
fn a_size_stays_where_its_terms_say_so() {
    let mut domain = by_default();
    let beside = domain
        .place(proposal(4, 7_200, (1_000, 8_200)))
        .unwrap()
        .agreement;
    let small = Request {
        shape_changes: Some(ShapeChanges::NONE),
        ..sized((1_000, 9_000))
    };
    let small = domain.place(small).unwrap().agreement;
    let end = Terminate::of(beside.id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
    assert_eq!(slot(&domain, small.id), (4, at(1_000, 8_200)));
}

fn size(nodes: u32, duration: i64) -> Shape {
    Shape { nodes, duration }
}

/// Work of some sizes in a window.
fn of_sizes(shapes: &[Shape], window: (i64, i64)) -> Request {
    Request {
        shapes: shapes.to_vec(),
        scaling: Scaling::ReferenceRate,
        ..proposal(shapes[0].nodes, shapes[0].duration, window)
    }
}

/// The size of this work once four nodes beside it become free at 1000, where it had four until then.
fn size_after_end_beside(domain: &mut Domain, shapes: &[Shape]) -> (u32, Interval) {
    let beside = proposal(4, 7_200, (1_000, 8_200));
    let beside = domain.place(beside).unwrap().agreement;
    let small = domain.place(of_sizes(shapes, (1_000, 8_200))).unwrap().agreement;
    assert_eq!(slot(domain, small.id), (4, at(1_000, 8_200)));
    let end = Terminate::of(beside.id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
    slot(domain, small.id)
}

#[test]
fn those_that_cannot_grow_do_not_hide_one_that_can() {
    let mut domain = by_default();
    // Each has its largest size.
    for hour in 1..=20 {
        let window = (3_600 * hour, 3_600 * hour + 1_200);
        domain
            .place(of_sizes(&[size(2, 600), size(1, 1_200)], window))
            .unwrap();
    }
    let window = (90_000, 90_000 + 28_800);
    let beside = domain.place(proposal(7, 28_800, window)).unwrap().agreement;
    let small = of_sizes(&[size(8, 3_600), size(1, 28_800)], window);
    let small = domain.place(small).unwrap().agreement;
    assert_eq!(slot(&domain, small.id).0, 1);
    let end = Terminate::of(beside.id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
    assert_eq!(slot(&domain, small.id), (8, at(90_000, 93_600)));
}

#[test]
fn the_size_that_ends_first_is_taken() {
    let sizes = [size(8, 4_000), size(6, 3_000), size(4, 7_200)];
    let after = size_after_end_beside(&mut by_default(), &sizes);
    assert_eq!(after, (6, at(1_000, 4_000)));
}

#[test]
fn a_size_that_gains_too_little_is_not_taken() {
    for (duration, nodes) in [(7_140, 8), (7_141, 4)] {
        let sizes = [size(8, duration), size(4, 7_200)];
        assert_eq!(size_after_end_beside(&mut by_default(), &sizes).0, nodes);
    }
}

#[test]
fn a_size_with_more_node_seconds_is_not_taken_where_they_are_bounded() {
    for (node_hours, nodes) in [(None, 8), (Some(1_000), 4)] {
        let mut domain = by_default();
        domain.settings.quotas.node_hours = node_hours;
        let sizes = [size(8, 3_601), size(4, 7_200)];
        assert_eq!(size_after_end_beside(&mut domain, &sizes).0, nodes);
    }
}

#[test]
fn the_moves_in_an_hour_are_bounded() {
    let mut domain = by_default();
    domain.settings.improving.moves_per_hour = 1;
    let small = domain.place(sized((1_000, 9_000))).unwrap().agreement;
    let mut size_after = |nodes| {
        let beside = proposal(4, 7_200, (1_000, 8_200));
        let beside = domain.place(beside).unwrap().agreement;
        assert_eq!(slot(&domain, small.id), (4, at(1_000, 8_200)));
        let end = Terminate::of(beside.id, None);
        domain.decide(|decider| decider.decide(end)).unwrap();
        assert_eq!(slot(&domain, small.id).0, nodes);
    };
    size_after(8);
    size_after(4);
}
