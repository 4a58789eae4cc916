//! What a peer says of an agreement without a job, and of the begin of one with a job.

use domain::agreement::{Currency, PlacementConstraints, Slots};
use scheduler::Interval;
use wsag::states::{Activity, ServiceState};

use super::*;

/// An agreement of ours from 100 to 160.
fn ours() -> Agreement {
    Agreement {
        id: Uuid::nil(),
        party: "physics".into(),
        name: None,
        initiator_id: None,
        template: "t".into(),
        resource: "south".into(),
        duration: 60,
        ready: Time(100),
        deadline: Time(160),
        slots: Slots::one((Interval::of(Time(100), 60), 2)),
        fixed: true,
        price: None,
        constraints: PlacementConstraints::default(),
        job: None,
        guarantees: Vec::new(),
        choices: Vec::new(),
        state: AgreementState::Observed,
        service: domain::agreement::ServiceState::Idle,
        started: None,
        ended: None,
        outcome: None,
        created: 0,
        version: 1,
        origin: None,
    }
}

/// What a peer says that tells of the plan and of the begin so much, and of its service.
fn said(service: Option<ServiceState>, planned: Option<i64>, started: Option<i64>) -> PeerStatus {
    let second = DateTime::from_seconds;
    PeerStatus {
        state: AgreementState::Observed,
        service,
        planned: planned.map(|start| (second(start), second(start + 60))),
        nodes: None,
        started: started.map(second),
        ended: None,
        outcome: None,
        exit_status: None,
        guarantees: Vec::new(),
        price: None,
        charged: Vec::new(),
        paid: Vec::new(),
        reason: None,
        superseded_by: None,
    }
}

#[test]
fn nodes_are_handed_over_when_their_peer_says_so_and_else_by_the_plan_of_one_that_tells_no_times() {
    let idle = Some(ServiceState::Ready(Activity::Idle));
    let not_ready = Some(ServiceState::NotReady);
    for (status, handed_over) in [
        (said(idle.clone(), Some(100), Some(130)), Some(130)),
        (said(idle.clone(), Some(100), None), None),
        (said(not_ready.clone(), Some(140), None), None),
        (said(not_ready, None, None), None),
        (said(idle, None, None), Some(100)),
        (said(None, None, None), Some(100)),
    ] {
        let found = followed_handover(&status, &ours());
        assert_eq!(
            found,
            handed_over.map(|second| second * MICROS_PER_SECOND),
            "{status:?}"
        );
    }
}

#[test]
fn a_job_is_late_in_the_slot_that_its_peer_has_for_it() {
    for (planned, started, late) in [
        (Some(100), Some(130), 30),
        (Some(100), Some(98), 0),
        // It has another slot there, and all of it.
        (Some(130), Some(130), 0),
        (Some(100), None, 0),
        (None, Some(130), 0),
    ] {
        let status = PeerStatus {
            state: AgreementState::Complete,
            ..said(Some(ServiceState::Completed), planned, started)
        };
        let job = followed_job_status(&status, false, 0);
        match job {
            JobStatus::Ended(end) => assert_eq!(end.late, late, "{status:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_job_for_which_its_peer_charges_its_whole_price_had_its_slot_in_time() {
    let euro = |micros| Money::new(micros, Currency::parse("EUR").unwrap());
    for (price, charged, late) in [
        (Some(6_000), Some(6_000), 0),
        (Some(6_000), Some(3_000), 30),
        (Some(6_000), None, 30),
        (Some(0), None, 30),
        (None, None, 30),
    ] {
        let status = PeerStatus {
            state: AgreementState::Complete,
            price: price.map(euro),
            charged: charged.map(euro).into_iter().collect(),
            ..said(Some(ServiceState::Completed), Some(100), Some(130))
        };
        assert_eq!(followed_lateness(&status), late, "{status:?}");
    }
}

#[test]
fn nodes_are_not_lost_after_their_time_while_their_peer_may_wait_for_a_peer_of_its_own() {
    let idle = || Some(ServiceState::Ready(Activity::Idle));
    let ended = |status: PeerStatus| PeerStatus {
        state: AgreementState::Complete,
        ..status
    };
    let waits = || said(idle(), Some(100), None);
    let (back, never) = (
        "south has taken its nodes back",
        "south has not handed its nodes over",
    );
    for (status, is_over, never_came, lost) in [
        (waits(), false, true, None),
        (waits(), true, true, None),
        (
            said(Some(ServiceState::NotReady), Some(140), None),
            false,
            true,
            None,
        ),
        (
            said(Some(ServiceState::NotReady), Some(140), None),
            true,
            true,
            Some(never),
        ),
        (ended(waits()), true, true, Some(never)),
        (ended(waits()), false, true, Some(back)),
        (ended(waits()), true, false, None),
    ] {
        let found = followed_nodes_lost(&status, "south", is_over, never_came);
        assert_eq!(found.as_deref(), lost, "{status:?}, {is_over}");
    }
}
