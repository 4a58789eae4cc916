//! The last known state is kept when Slurm does not answer.

use scheduler::Interval;
use uuid::Uuid;

use super::*;
use crate::slurm::tests::executor;

#[test]
fn what_is_held_is_known_as_it_was_when_it_cannot_be_read_back() {
    let (_data, executor) = executor();
    let agreement = Uuid::now_v7();
    let kept = vec![KeptNodes {
        run: Run::first(agreement),
        nodes: vec![0],
        since: Time(100),
    }];
    *lock(&executor.seen.kept) = Some(kept.clone());
    let target = Target {
        id: Run::first(agreement),
        interval: Interval::new(Time(100), Time(200)),
        nodes: vec!["n1".into()],
        user: "nobody".into(),
        party: String::new(),
        application: String::new(),
        is_awaited: false,
        handed: false,
        behind_own_jobs: false,
    };
    assert!(executor.unmet_targets(&[], &[target]).is_err());
    assert_eq!(*lock(&executor.seen.kept), Some(kept));
    executor.note_kept(&[], &BTreeMap::new());
    assert_eq!(*lock(&executor.seen.kept), Some(Vec::new()));
}

#[test]
fn what_was_refused_just_now_waits_until_anything_else_is_wanted() {
    let (_data, executor) = executor();
    let target = |nodes: &[&str]| Target {
        id: Run::first(Uuid::nil()),
        interval: Interval::of(Clock::system().now() + 3_600, 60),
        nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        user: "nobody".into(),
        party: String::new(),
        application: String::new(),
        is_awaited: false,
        handed: false,
        behind_own_jobs: false,
    };
    let (first, other) = (target(&["n1"]), target(&["n2"]));
    let pause = || lock(&executor.seen.refused).as_ref().map(|refused| refused.pause);
    assert_eq!(executor.refused_just_now(&[&first]), None);
    let said = vec!["no".to_owned()];
    for expected in [2, 4, 8, 16, 16] {
        executor.note_refused(&[&first], &said);
        assert_eq!(pause(), Some(Duration::from_secs(expected)));
    }
    assert_eq!(executor.refused_just_now(&[&first]), Some(said.clone()));
    assert_eq!(executor.refused_just_now(&[&other]), None);
    assert_eq!(executor.refused_just_now(&[&first, &other]), None);
    // One that begins soon is asked for more often.
    let due = Target {
        interval: Interval::of(Clock::system().now(), 60),
        ..target(&["n1"])
    };
    executor.note_refused(&[&due], &said);
    assert_eq!(pause(), Some(ASK_AGAIN.0));
    executor.note_refused(&[&due], &[]);
    assert_eq!(pause(), None);
}
