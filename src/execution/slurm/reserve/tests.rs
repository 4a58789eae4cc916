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
    lock(&executor.kept).clone_from(&kept);
    let target = Target {
        id: agreement.into(),
        interval: Interval::new(Time(100), Time(200)),
        nodes: vec!["n1".into()],
        user: "nobody".into(),
        handed: false,
    };
    assert!(executor.differences(&[], &[target]).is_err());
    assert_eq!(*lock(&executor.kept), kept);
    executor.note_kept(&[], &BTreeMap::new());
    assert_eq!(*lock(&executor.kept), []);
}
