//! Facts about slots that begin with another second than planned, on a plan without a store.

use domain::agreement::{RunOutcome, ServiceState};
use domain::resources::Resource;
use scheduler::{Interval, Time};

use crate::tests::harness::{Domain, work};

#[test]
fn a_slot_begins_a_second_later_where_work_has_just_ended_on_the_only_node_that_is_left_for_it() {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 2)]);
    domain.moves_up = false;
    let first = domain.place(work(1, 100, (0, 100))).unwrap().agreement;
    domain.begin(0);
    assert_eq!(*domain.state.life.nodes_of(first.id).unwrap(), [0]);
    // It counts on the other node. Within its first second that leaves, and the first one is free from the next second on.
    domain.now = 20;
    let next = domain.place(work(1, 30, (20, 50))).unwrap().agreement;
    domain.within = 400_000;
    domain.end(first.id, RunOutcome::Completed);
    domain.resize("local", 1);
    domain.within = 600_000;
    domain.begin(20);
    assert_eq!(domain.of(next.id).service, ServiceState::NotReady);
    assert_eq!(domain.state.life.next_own_due(), Some(Time(21)));
    domain.within = 0;
    domain.begin(21);
    let begun = domain.of(next.id);
    assert_eq!(begun.service, ServiceState::Processing);
    assert_eq!(begun.placement(), Interval::new(Time(20), Time(50)));
    assert_eq!(*domain.state.life.nodes_of(next.id).unwrap(), [0]);
}
