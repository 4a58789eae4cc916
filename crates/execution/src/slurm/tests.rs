//! A cluster for tests, of which no Slurm answers.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use tempfile::TempDir;

use super::cluster::SlurmCluster;
use super::{Account, SlurmPolicies, SlurmSettings};

pub(crate) fn cluster() -> (TempDir, SlurmCluster) {
    let data = tempfile::tempdir().unwrap();
    let settings = SlurmSettings {
        resource: "cluster".into(),
        partition: "batch".into(),
        nodes: vec!["n1".into()],
        attributes: BTreeMap::new(),
        programs: None,
        configuration: Some(data.path().join("no-slurm.conf")),
        work_dir: data.path().into(),
        helper: None,
        account: Account {
            user: "nobody".into(),
            account: None,
        },
        parties: BTreeMap::new(),
        policies: SlurmPolicies::default(),
        patience: Duration::from_secs(1),
        turnaround: 0,
        dedicated: Vec::new(),
        lead: None,
        changes_a_minute: 6_000,
        reclaim_after: Some(60),
        reserve_at_once: false,
        time_zone: TimeZone::UTC,
    };
    let cluster = SlurmCluster::new(settings, data.path()).unwrap();
    (data, cluster)
}
