//! Facts about nodes that leave a resource, on a plan without a store.

use domain::agreement::RunOutcome;
use domain::resources::Resource;
use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use crate::life::{succession, update};
use crate::table::replace;
use crate::tests::harness::{Domain, work};

/// A resource of two nodes that is to have one. Work runs on the other until 50 at the latest, and on that one until 200. Returns the
/// agreement that has the node that is to leave.
fn with_leaving_node() -> (Domain, Uuid) {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 2)]);
    domain.settings.restarting = ["t".to_owned()].into();
    domain.moves_up = false;
    let stays = domain.place(work(1, 200, (0, 200))).unwrap().agreement;
    let leaves = domain.place(work(1, 50, (0, 400))).unwrap().agreement;
    domain.begin(0);
    let bound = [&stays, &leaves].map(|agreement| domain.state.life.nodes_of(agreement.id).unwrap().clone());
    assert_eq!(bound, [[0], [1]]);
    domain.resize("local", 1);
    domain.now = 20;
    (domain, leaves.id)
}

#[test]
fn a_node_that_is_to_leave_is_gone_when_the_work_on_it_is_lost_and_waits_again() {
    let (mut domain, leaves) = with_leaving_node();
    domain.end(leaves, RunOutcome::Lost);
    assert_eq!(domain.of(leaves).placement().start, Time(200));
    let refusal = domain.place(work(1, 20, (20, 45))).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    domain.check_rebuilt();
}

#[test]
fn a_node_that_is_to_leave_is_gone_when_the_slot_on_it_is_made_shorter_and_over() {
    let (mut domain, leaves) = with_leaving_node();
    domain.decide(|decider| {
        let old = decider.state.agreements.get(leaves).cloned().unwrap();
        let (at, number) = decider
            .state
            .placement
            .planned_slot(&mut decider.state.schedules, &old, 0)
            .unwrap();
        let mut shorter = old.clone();
        shorter.place_slot(0, (Interval::new(Time(0), Time(30)), 1));
        replace::take_replaced_out(&mut decider.search(), &old);
        replace::put_replaced_slot_back(&mut decider.search(), at, &shorter, 0, number);
        succession::hand_over_nodes_to_successor(decider, &old, leaves, Time(30));
        update::update(decider, shorter, Vec::new());
    });
    domain.check();
    let refusal = domain.place(work(1, 15, (30, 48))).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
}
