//! Slots that a command needs near, also those of others: it waits until they are held.

use domain::agreement::Run;
use domain::resources::{KeptNodes, NodeReport, Reporter, Resource};
use scheduler::{Seconds, Time};
use uuid::Uuid;

use super::*;
use crate::commands::{Decision, KeepNodes, ReportReserving, SetNodes};
use crate::decider::DecisionStep;
use crate::request::Request;
use crate::tests::harness::{Domain, proposal};
use crate::{CommandOptions, Place, Terminate};

/// The cluster says how far ahead it reserves slots, and which it could not reserve.
fn report(domain: &mut Domain, within: Seconds, refused: &[Uuid]) {
    let refused = refused.iter().map(|id| (*id, domain.of(*id).slot().start));
    let order = ReportReserving {
        resource: "local".into(),
        refused: refused.collect(),
        within,
    };
    domain.decide(|decider| decider.decide(order)).unwrap();
}

/// The cluster says that it holds a node for each of these from these starts on.
fn hold(domain: &mut Domain, slots: &[(Uuid, i64)]) {
    let kept = slots.iter().map(|(id, since)| KeptNodes {
        run: Run::first(*id),
        nodes: vec![0],
        since: Time(*since),
    });
    let order = KeepNodes {
        resource: "local".into(),
        kept: kept.collect(),
    };
    domain.decide(|decider| decider.decide(order)).unwrap();
}

fn ask(domain: &mut Domain, asked: &Request) -> Decision<Place> {
    let place = Place(asked.clone());
    domain.decide(|decider| decider.make_decision(place, &CommandOptions::default()))
}

/// Whether the command that asks for this can be decided.
fn is_decidable(domain: &mut Domain, asked: &Request) -> bool {
    domain.decide(|decider| decider.take_decidable_commands() == [asked.id])
}

/// One node with slots that are reserved 5,400 seconds ahead, free until 5,900. An agreement that could lie there is at 6,000, and another one
/// wants its place, beyond what is reserved.
fn with_free_near_time() -> (Domain, Uuid, Request) {
    let mut domain = Domain::with(crate::Settings::new(
        vec![Resource::new("local", "local", 1)],
        86_400,
    ));
    domain.moves_up = false;
    let ends = domain.place(proposal(1, 5_900, (0, 5_900))).unwrap().agreement.id;
    domain.place(proposal(1, 100, (5_900, 6_000))).unwrap();
    let moves = domain
        .place(proposal(1, 1_000, (100, 7_100)))
        .unwrap()
        .agreement
        .id;
    assert_eq!(domain.of(moves).placement().start, Time(6_000));
    domain
        .decide(|decider| decider.decide(Terminate::of(ends, None)))
        .unwrap();
    report(&mut domain, 5_400, &[]);
    (domain, moves, proposal(1, 2_000, (6_000, 8_000)))
}

#[test]
fn a_far_slot_is_promised_when_the_near_slots_are_held_that_others_take_for_it() {
    let (mut domain, moves, asked) = with_free_near_time();
    assert!(matches!(ask(&mut domain, &asked), Ok(DecisionStep::Wait(_))));
    assert_eq!(domain.of(moves).placement().start, Time(100));
    hold(&mut domain, &[(moves, 6_000)]);
    assert!(!is_decidable(&mut domain, &asked), "it is held where it was");
    hold(&mut domain, &[(moves, 100)]);
    assert!(is_decidable(&mut domain, &asked));
    let Ok(DecisionStep::Done(accepted)) = ask(&mut domain, &asked) else {
        panic!("its own nodes are reserved when that time comes");
    };
    assert_eq!(accepted.agreement.placement().start, Time(6_000));
    domain.check();
}

#[test]
fn a_far_slot_is_refused_where_the_near_slot_of_another_is_not_held() {
    let (mut domain, moves, asked) = with_free_near_time();
    assert!(matches!(ask(&mut domain, &asked), Ok(DecisionStep::Wait(_))));
    report(&mut domain, 5_400, &[moves]);
    let told = SetNodes {
        resource: "local".into(),
        by: Reporter::Executor,
        report: NodeReport::default(),
    };
    domain.decide(|decider| decider.decide(told)).unwrap();
    assert!(is_decidable(&mut domain, &asked));
    assert!(matches!(ask(&mut domain, &asked), Err(Error::Refused(_))));
    assert_eq!(domain.of(moves).placement().start, Time(6_000), "it is back");
    domain.check();
}
