//! Pieces on a resource that holds nodes by name.

use domain::agreement::Run;
use domain::resources::{CLUSTER, KeptNodes};

use super::*;
use crate::commands::KeepNodes;
use crate::life::reports;

#[test]
fn a_cluster_runs_it_in_pieces_each_on_the_nodes_that_are_kept_for_it() {
    let mut domain = domain(vec![Resource::new("cluster", CLUSTER, 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let agreement = domain.place(cut(2, 40, (2, 250), (0, 100))).unwrap().agreement;
    let placed: Vec<_> = agreement
        .slots
        .pieces()
        .iter()
        .map(|piece| piece.placement)
        .collect();
    assert_eq!(
        placed,
        [
            Interval::new(Time(0), Time(10)),
            Interval::new(Time(30), Time(60))
        ]
    );
    let kept = |piece, restarts, nodes: [u32; 2], since| KeptNodes {
        run: Run {
            agreement: agreement.id,
            slot: piece,
            attempt: restarts,
        },
        nodes: nodes.to_vec(),
        since: Time(since),
    };
    let all = vec![kept(1, 0, [0, 2], 0), kept(2, 0, [1, 3], 30)];
    domain
        .decide(|decider| {
            decider.decide(KeepNodes {
                resource: "cluster".into(),
                kept: all,
            })
        })
        .unwrap();
    domain.begin(0);
    assert_eq!(*domain.state.life.nodes_of(agreement.id).unwrap(), [0, 2]);
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.begin(30);
    assert_eq!(*domain.state.life.nodes_of(agreement.id).unwrap(), [1, 3]);
    // Of a time before, and of another piece.
    let others = vec![kept(2, 1, [0, 1], 30), kept(1, 0, [2, 3], 0)];
    domain
        .decide(|decider| {
            decider.decide(KeepNodes {
                resource: "cluster".into(),
                kept: others,
            })
        })
        .unwrap();
    assert_eq!(*domain.state.life.nodes_of(agreement.id).unwrap(), [1, 3]);
    domain.check();
}

#[test]
fn what_is_lost_on_a_cluster_is_run_again_there_when_nothing_can_be_left_of_it() {
    let resource_of = |name: &str| Resource::new(name, CLUSTER, 4);
    let mut domain = restarting(vec![resource_of("one"), resource_of("other"), local("local", 4)]);
    let id = domain.place(cut(1, 30, (2, 500), (0, 200))).unwrap().agreement.id;
    assert_eq!(domain.of(id).resource, "one");
    domain.begin(0);
    domain.now = 3;
    // It has not begun, and so nothing of it runs.
    domain.never_started(id);
    assert_eq!(domain.of(id).placement().start, Time(4));
    domain.begin(4);
    let begun =
        domain.decide(|decider| reports::record_reported_start(decider, id, 4 * MICROS_PER_SECOND, None));
    begun.unwrap();
    domain.now = 6;
    domain.end(id, RunOutcome::Lost);
    let again = domain.of(id);
    assert_eq!(
        (again.resource.as_str(), again.placement().start, again.ready),
        ("one", Time(27), Time(0)),
        "the others were free at once"
    );
    domain.check_rebuilt();
}
