//! The use of a reservation, and the users of its jobs, as reported by a simulated Slurm.

use domain::agreement::Run;
use scheduler::{Interval, Time};

use super::*;
use crate::slurm::jobs::ownership::is_job_ours;
use crate::slurm::tests::cluster;

fn slot() -> PlannedSlot {
    PlannedSlot {
        run: Run::first(Uuid::now_v7()),
        party: "physics".into(),
        nodes: 1,
        interval: Interval::new(Time(0), Time(600)),
        given: vec![0],
        begun: true,
        is_awaited: false,
        replaces: None,
        has_job: false,
        application: String::new(),
    }
}

/// A job of a number, a user and a start, in a reservation.
fn job(id: &str, user: u32, start: i64, reservation: Option<String>) -> JobRow {
    JobRow {
        id: id.into(),
        state: JobState::Running,
        reservation,
        nodes: vec!["n1".into()],
        start: Some(Time(start)),
        end: None,
        user,
        put_off: false,
        name: "own".into(),
    }
}

#[test]
fn a_job_that_was_given_the_number_of_one_in_a_reservation_is_somebody_elses() {
    let (_data, cluster) = cluster();
    let (slot, at) = (slot(), Instant::now());
    let inside = job("57", 1_000, 100, Some(cluster.name_of_run(slot.run)));
    note_use_after_handover(&cluster, std::slice::from_ref(&slot), |_| true, &[inside], at);
    let own = job("57", 1_000, 100, None);
    let others = [job("57", 1_001, 100, None), job("57", 1_000, 160, None)];
    // Its reservation is over, and Slurm has forgotten that it ran in there.
    let all = [own.clone(), others[0].clone(), others[1].clone()];
    note_use_after_handover(&cluster, &[], |_| false, &all, at);
    assert_eq!(jobs_left_over_after_handover(&cluster, &all), [&own]);
    let handed = jobs_after_handover(&cluster);
    for other in &others {
        assert!(!is_job_ours(&cluster, other, &handed, |_| false), "{other:?}");
    }
    assert!(is_job_ours(&cluster, &own, &handed, |_| false));
    note_use_after_handover(&cluster, &[], |_| false, &others, at);
    assert!(jobs_after_handover(&cluster).is_empty(), "it is gone");
}

#[test]
fn only_time_in_which_it_was_held_and_looked_at_counts_as_unused() {
    let (_data, cluster) = cluster();
    let (slot, begin) = (slot(), Instant::now());
    let look = |seconds: u64, held: bool| {
        let at = begin + Duration::from_secs(seconds);
        note_use_after_handover(&cluster, std::slice::from_ref(&slot), |_| held, &[], at);
        unused_after_handover(&cluster)
    };
    // Not held, and then only from the first look on that says so.
    for seconds in [0, 15, 30, 45, 60, 75] {
        assert_eq!(look(seconds, false), []);
    }
    assert_eq!(look(90, true), []);
    // There was no look for an hour, and then Slurm could not be asked.
    assert_eq!(look(3_700, true), []);
    cluster.seen.blind.store(true, Ordering::Relaxed);
    assert_eq!(look(3_715, true), []);
    assert_eq!(look(3_730, true), [(slot.run.agreement, Unused::Warn)]);
    assert_eq!(look(3_745, true), []);
    assert_eq!(look(3_760, true), [(slot.run.agreement, Unused::Reclaim)]);
}

#[test]
fn nobody_loses_a_reservation_unwarned() {
    let (_data, cluster) = cluster();
    let (slot, begin) = (slot(), Instant::now());
    for seconds in [0, 20, 40, 60] {
        let at = begin + Duration::from_secs(seconds);
        note_use_after_handover(&cluster, std::slice::from_ref(&slot), |_| true, &[], at);
    }
    // There was no look since it was time for a warning.
    assert_eq!(
        unused_after_handover(&cluster),
        [(slot.run.agreement, Unused::Warn)]
    );
    assert_eq!(unused_after_handover(&cluster), []);
    for seconds in [75, 90] {
        let at = begin + Duration::from_secs(seconds);
        note_use_after_handover(&cluster, std::slice::from_ref(&slot), |_| true, &[], at);
    }
    assert_eq!(
        unused_after_handover(&cluster),
        [(slot.run.agreement, Unused::Reclaim)]
    );
}

#[test]
fn a_job_that_waits_for_its_nodes_is_a_use() {
    let (_data, cluster) = cluster();
    let (slot, begin) = (slot(), Instant::now());
    let mut waiting = job("3", 1_000, 0, Some(cluster.name_of_run(slot.run)));
    (waiting.state, waiting.start, waiting.nodes) = (JobState::Waiting, None, Vec::new());
    for seconds in [0, 15, 30, 45, 60, 75, 90] {
        let at = begin + Duration::from_secs(seconds);
        let waiting = std::slice::from_ref(&waiting);
        note_use_after_handover(&cluster, std::slice::from_ref(&slot), |_| true, waiting, at);
        assert_eq!(unused_after_handover(&cluster), []);
    }
}
