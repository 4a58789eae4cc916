//! The last known state is kept when Slurm does not answer.

use domain::resources::KeptNodes;
use scheduler::Interval;
use uuid::Uuid;

use super::*;
use crate::slurm::tests::cluster;

#[test]
fn what_is_held_is_known_as_it_was_when_it_cannot_be_read_back() {
    let (_data, cluster) = cluster();
    let agreement = Uuid::now_v7();
    let kept = vec![KeptNodes {
        run: Run::first(agreement),
        nodes: vec![0],
        since: Time(100),
    }];
    *lock(&cluster.seen.kept) = Some(kept.clone());
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
    assert!(targets_unlike_plan(&cluster, &[], &[target]).is_err());
    assert_eq!(*lock(&cluster.seen.kept), Some(kept));
    note_kept_nodes(&cluster, &[], &BTreeMap::new());
    assert_eq!(*lock(&cluster.seen.kept), Some(Vec::new()));
}
