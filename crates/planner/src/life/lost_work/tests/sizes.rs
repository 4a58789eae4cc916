//! Pieces of differing sizes.

use domain::agreement::Currency;
use domain::resources::Scaling;

use super::*;
use crate::Pricing;
use crate::resources::repair;

/// The same with several sizes, where the law of scaling is constant work, with one size for each piece or one for all.
pub(super) fn cut_to_size(
    (fewest, most): (u32, u32),
    shortest: Seconds,
    how: (u32, u32),
    independent: bool,
    window: (i64, i64),
) -> Request {
    let lasts = |nodes: u32| (shortest * i64::from(most) + i64::from(nodes) - 1) / i64::from(nodes);
    let sizes = (fewest..=most).rev().map(|nodes| Shape {
        nodes,
        duration: lasts(nodes),
    });
    let rounding = if independent && fewest < most {
        Rounding::Up
    } else {
        Rounding::Cuts
    };
    let preemption = Preemption::new(how.0, how.1 * 1_000, independent).unwrap();
    Request {
        shapes: sizes.collect(),
        scaling: Scaling::ReferenceRate,
        preemption: Some(preemption.rounded(rounding)),
        ..cut(most, shortest, how, window)
    }
}

/// From when to when each piece goes, and on how many nodes.
fn sized(agreement: &Agreement) -> Vec<(i64, i64, u32)> {
    let sizes = agreement.slots.pieces().iter().map(|piece| piece.nodes);
    let with = |((start, end), nodes)| (start, end, nodes);
    slots(agreement).into_iter().zip(sizes).map(with).collect()
}

#[test]
fn each_piece_has_a_size_of_its_own_where_they_may_differ_and_all_have_one_where_not() {
    let mut domain = domain(vec![local("local", 4)]);
    // A millionth for a node and a second.
    domain.settings.pricing = Some(Pricing::flat(3_600, Currency::parse("EUR").unwrap()));
    domain.place(proposal(2, 10, (0, 10))).unwrap();
    domain.place(proposal(3, 20, (21, 41))).unwrap();
    let alike = cut_to_size((2, 4), 10, (2, 250), false, (0, 200));
    let alike = domain.place(alike).unwrap().agreement;
    assert_eq!(
        (alike.slots.pieces().len(), alike.placement().end),
        (0, Time(20)),
        "no earlier than in one"
    );
    domain
        .decide(|decider| decider.decide(Terminate::of(alike.id, None)))
        .unwrap();
    let each = cut_to_size((2, 4), 10, (2, 250), true, (0, 200));
    let each = domain.place(each).unwrap().agreement;
    assert_eq!(sized(&each), [(0, 10, 2), (10, 15, 4)]);
    assert_eq!((each.nodes(), each.duration, each.node_seconds()), (4, 15, 40));
    assert_eq!(each.price.unwrap().micros, 40, "for what its pieces use");
    assert!(each.constraints.pieces_differ);
    domain.check();
    domain.check_rebuilt();
    let said = |domain: &Domain, words: &str| {
        let contain = |(id, line): &(uuid::Uuid, String)| *id == each.id && line.contains(words);
        domain.told.iter().any(contain)
    };
    assert!(
        said(&domain, "for pieces of up to 4 nodes for 15 seconds"),
        "{:?}",
        domain.told
    );
    domain.begin(0);
    assert_eq!(domain.state.life.nodes_of(each.id).unwrap().len(), 2);
    domain.now = 10;
    domain.end(each.id, RunOutcome::Checkpointed);
    domain.begin(10);
    assert_eq!(domain.state.life.nodes_of(each.id).unwrap().len(), 4);
    domain.now = 15;
    domain.end(each.id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&each.id), "complete");
}

#[test]
fn a_piece_that_loses_its_nodes_goes_on_fewer_for_longer_where_pieces_may_differ() {
    for independent in [true, false] {
        let mut domain = domain(vec![local("local", 4)]);
        domain.place(proposal(4, 10, (8, 18))).unwrap();
        let asked = cut_to_size((2, 4), 16, (2, 250), independent, (0, 60));
        let id = domain.place(asked).unwrap().agreement.id;
        assert_eq!(sized(domain.of(id)), [(0, 8, 4), (18, 26, 4)]);
        domain.begin(0);
        domain.now = 8;
        domain.end(id, RunOutcome::Checkpointed);
        let report = NodeReport {
            states: vec![NodeState::Up, NodeState::Up, NodeState::Up, NodeState::Drained],
            ..NodeReport::default()
        };
        domain
            .decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report))
            .unwrap();
        domain.check();
        if independent {
            let after = domain.of(id);
            // Half of the work, which takes 22 seconds on three nodes.
            assert_eq!(sized(after), [(0, 8, 4), (8, 19, 3)]);
            assert_eq!((after.nodes(), after.duration), (4, 19));
            assert!(
                domain
                    .told
                    .iter()
                    .any(|(_, line)| line.contains("with 3 nodes for 11 seconds")),
                "{:?}",
                domain.told
            );
        } else {
            assert!(!domain.known.contains_key(&id), "it has promised its one size");
        }
    }
}
