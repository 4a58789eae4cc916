//! Moves that operators order.

use domain::resources::Resource;

use super::*;
use crate::tests::harness::{Domain, proposal};

fn order(id: Uuid, start: i64) -> MoveAgreement {
    MoveAgreement {
        id,
        by: "ops".to_owned(),
        resource: None,
        start: Some(Time(start)),
        reason: None,
        versions: None,
        idempotency: None,
    }
}

#[test]
fn an_agreement_stays_at_the_start_that_is_named_however_often_it_is() {
    for start in [100, 300] {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
        let id = domain.place(proposal(2, 100, (100, 1_000))).unwrap().agreement.id;
        for _ in 0..2 {
            let moved = domain.decide(|decider| decider.decide(order(id, start))).unwrap();
            assert_eq!((moved.placement().start, moved.fixed), (Time(start), true));
            domain.check();
        }
        let told = domain
            .told
            .iter()
            .filter(|(_, told)| told == "its slot moves no more");
        assert_eq!(told.count(), 1, "{:?}", domain.told);
        let another = domain.place(proposal(4, 100, (start, start + 100)));
        assert!(another.is_err(), "it makes no room for others");
        assert_eq!(domain.of(id).placement().start, Time(start));
    }
}
