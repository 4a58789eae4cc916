//! What becomes of what is known when Slurm does not answer.

use uuid::Uuid;

use super::super::tests::executor;
use super::*;

#[test]
fn what_is_held_is_known_as_it_was_when_it_cannot_be_read_back() {
    let (_data, executor) = executor();
    let agreement = Uuid::now_v7();
    let kept = vec![KeptNodes {
        agreement,
        piece: 1,
        restarts: 0,
        nodes: vec![0],
        since: Time(100),
    }];
    *lock(&executor.kept) = Some(kept.clone());
    let target = Target {
        id: agreement.into(),
        interval: Interval::new(Time(100), Time(200)),
        nodes: vec!["n1".into()],
        user: "nobody".into(),
        handed: false,
    };
    assert!(executor.differences(&[], &[target]).is_err());
    assert_eq!(*lock(&executor.kept), Some(kept));
    executor.note_kept(&[], &BTreeMap::new());
    assert_eq!(*lock(&executor.kept), Some(Vec::new()));
}

#[test]
fn a_node_that_does_not_answer_takes_nothing_new_and_one_that_is_never_heard_of_is_down() {
    let row = |state: &str, silent| NodeRow {
        name: "n1".into(),
        state: state.into(),
        silent,
        cpus: (0, 4),
        reason: None,
    };
    let [up, drained, down] = [NodeState::Up, NodeState::Drained, NodeState::Down];
    // Each as an old controller and as a new one says it.
    for (state, silent, old, new) in [
        ("idle", false, up, up),
        ("idle", true, drained, drained),
        ("mixed", true, drained, drained),
        ("down", true, down, down),
        ("drained", false, drained, drained),
        ("unknown", false, down, up),
        ("unknown", true, down, drained),
        ("no_such_word", false, drained, drained),
    ] {
        let row = row(state, silent);
        assert_eq!(
            [state_of(&row, false), state_of(&row, true)],
            [old, new],
            "{row:?}"
        );
    }
}
