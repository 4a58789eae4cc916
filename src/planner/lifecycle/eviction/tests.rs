//! Evictions.

use super::*;
use crate::planner::Resource;
use crate::planner::tests::domain::{Domain, proposal};

#[test]
fn nothing_is_held_for_a_party_instead_of_what_it_had_to_leave() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    let id = domain.place(proposal(4, 100, (100, 1_000))).unwrap().agreement.id;
    let order = Eviction {
        id,
        by: "ops".to_owned(),
        reason: "misuse".to_owned(),
        compensation: None,
        versions: None,
        idempotency: None,
    };
    domain.decide(|of| of.evict(order)).unwrap();
    assert!(domain.plan.suggested.is_empty());
    assert!(
        domain.place(proposal(4, 100, (100, 200))).is_ok(),
        "its place is free"
    );
}
