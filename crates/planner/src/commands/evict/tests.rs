//! Evictions.

use domain::resources::Resource;
use scheduler::Time;

use super::*;
use crate::state::State;
use crate::tests::harness::{Domain, proposal};

fn order(id: Uuid) -> Evict {
    Evict {
        id,
        by: "ops".to_owned(),
        reason: "misuse".to_owned(),
        compensation: None,
        versions: None,
        idempotency: None,
    }
}

#[test]
fn nothing_is_held_for_a_party_instead_of_what_it_had_to_leave() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    let id = domain.place(proposal(4, 100, (100, 1_000))).unwrap().agreement.id;
    domain.decide(|decider| decider.decide(order(id))).unwrap();
    assert!(domain.state.table.take_suggestions().is_empty());
    assert!(
        domain.place(proposal(4, 100, (100, 200))).is_ok(),
        "its place is free"
    );
}

#[test]
fn a_slot_that_is_lost_counts_until_its_second_is_over_in_a_plan_that_is_read_anew_too() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    let id = domain.place(proposal(4, 100, (0, 1_000))).unwrap().agreement.id;
    // It has not begun, though it is due.
    domain.now = 10;
    let mut lost = domain
        .decide(|decider| decider.decide(order(id)))
        .unwrap()
        .agreement;
    let start = |domain: &mut Domain| {
        domain
            .place(proposal(4, 20, (0, 300)))
            .unwrap()
            .agreement
            .slot()
            .start
    };
    let soonest = start(&mut domain);
    // As the store tells it: the slot of an agreement that is over ends with it.
    lost.slots[0].ended = lost.ended;
    let resources = domain.state.schedules.list();
    domain.state = State::rebuild(&domain.settings, &resources, Vec::new(), Vec::new(), Time(10)).unwrap();
    domain.state.recall_lost(vec![lost]);
    assert_eq!(start(&mut domain), soonest);
}
