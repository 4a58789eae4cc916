//! Nodes that go from one reservation to another, while batch jobs wait for any moment in which they are free.

use std::fs;

use domain::agreement::Run;
use domain::clock::Clock;
use execution::slurm::slurm_name_of_run;
use execution::{Executor, PlannedSlot};
use scheduler::Interval;
use uuid::Uuid;

use super::{PATIENCE, Site, slot};
use crate::support::poll_until;
use crate::support::slurm::NODES;

/// Has a batch job wait for each node that would last into every slot of these tests.
pub(super) fn lie_in_wait(site: &Site) {
    let script = site.cluster.folder().join("script");
    fs::write(&script, "#!/bin/sh\nsleep 600\n").unwrap();
    let script = script.to_str().unwrap();
    for node in NODES {
        let job = [
            "-w",
            node,
            "--exclusive",
            "-t30",
            "-o/dev/null",
            "--chdir=/",
            script,
        ];
        site.cluster.run("sbatch", &job);
    }
}

pub(super) fn running(site: &Site) -> usize {
    let jobs = site.cluster.jobs();
    jobs.iter().filter(|[_, _, state]| state == "RUNNING").count()
}

/// The same slot under another agreement.
fn replaced(slot: &PlannedSlot) -> PlannedSlot {
    PlannedSlot {
        run: Run::first(Uuid::now_v7()),
        ..slot.clone()
    }
}

#[test]
fn nodes_of_a_full_cluster_go_from_one_agreement_to_the_next_without_a_moment_between() {
    let site = Site::start();
    let mut now = slot(4, 300, 600);
    site.executor.prepare(std::slice::from_ref(&now)).unwrap();
    lie_in_wait(&site);
    for _ in 0..5 {
        let next = replaced(&now);
        site.executor.prepare(std::slice::from_ref(&next)).unwrap();
        assert_eq!(site.reservation(&now), None);
        assert_eq!(site.reservation(&next).unwrap()["NodeCnt"], "4");
        now = next;
    }
    // One that follows it moves into its time when it goes.
    let mut later = PlannedSlot {
        interval: Interval::of(now.interval.end + 60, 600),
        ..replaced(&now)
    };
    site.executor.prepare(&[now.clone(), later.clone()]).unwrap();
    later.interval = Interval::of(now.interval.start + 30, 600);
    site.executor.prepare(std::slice::from_ref(&later)).unwrap();
    assert_eq!(site.reservation(&now), None);
    // And one that has begun, and was handed to its user, to another one that begins at once.
    let begun = PlannedSlot {
        interval: Interval::of(Clock::system().now(), 600),
        begun: true,
        has_job: false,
        ..replaced(&later)
    };
    site.executor.prepare(std::slice::from_ref(&begun)).unwrap();
    assert_eq!(site.reservation(&later), None);
    let next = replaced(&begun);
    site.executor.prepare(std::slice::from_ref(&next)).unwrap();
    assert_eq!(site.reservation(&begun), None);
    assert_eq!(site.reservation(&next).unwrap()["NodeCnt"], "4");
    assert_eq!(running(&site), 0, "a batch job got in: {:?}", site.cluster.jobs());
    // They would have: nothing else is in their way.
    site.executor.prepare(&[]).unwrap();
    assert!(
        poll_until(PATIENCE, || running(&site) == 4),
        "{:?}",
        site.cluster.jobs()
    );
}

#[test]
fn a_reservation_that_is_made_anew_because_others_are_in_its_way_keeps_its_nodes_meanwhile() {
    let site = Site::start();
    let maintenance = [
        "create",
        "reservation",
        "ReservationName=maintenance",
        "StartTime=now+3600",
        "Duration=60",
        "Nodes=n2",
        "Users=root",
    ];
    site.cluster.run("scontrol", &maintenance);
    // Over the time of the maintenance, and before it; and then each wants the nodes of the other.
    let (mut one, mut other) = (slot(2, 1_800, 5_400), slot(2, 1_900, 600));
    site.executor.prepare(&[one.clone(), other.clone()]).unwrap();
    std::mem::swap(&mut one.interval, &mut other.interval);
    site.executor.prepare(&[other.clone(), one.clone()]).unwrap();
    let log = fs::read_to_string(site.cluster.folder().join("slurmctld.log")).unwrap();
    let ours = [&one, &other].map(|slot| slurm_name_of_run("cluster", slot.run));
    let mut keeping = 0;
    let mut deleted = 0;
    for line in log.lines() {
        let made = line.contains("Created reservation=bespeak");
        keeping += usize::from(made && !ours.iter().any(|name| line.contains(name.as_str())));
        // As 22.05 says it, and later versions.
        if line.contains("delete_reservation complete") || line.contains("resv_delete complete") {
            deleted += 1;
            assert!(deleted <= keeping, "no agreement's in between:\n{log}");
        }
    }
    assert_eq!((keeping, deleted), (2, 2), "{log}");
    // The maintenance that has kept the nodes goes.
    site.executor.prepare(&[other.clone(), one.clone()]).unwrap();
    let shown = site.cluster.run("scontrol", &["-o", "show", "reservation"]);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    for slot in [&one, &other] {
        assert_eq!(site.reservation(slot).unwrap()["NodeCnt"], "2");
    }
}
