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
