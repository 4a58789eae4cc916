//! The check of the invariants finds nothing in a right history, and each kind of wrong one.

use domain::agreement::{Agreement, AgreementState, EventKind, RunOutcome, ServiceState};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use scheduler::{Interval, Time};
use store::{Engine, Finding, Invariant, Store};

use super::{RESOURCE, agreement, create, decide, event, tamper, try_tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_right_history_has_no_findings,
    every_kind_of_damage_is_found,
    a_second_owner_of_a_node_is_found_or_not_even_stored,
    more_nodes_in_use_than_there_are_are_found,
    a_database_full_of_damage_gives_a_bounded_answer,
    pieces_that_take_longer_than_was_agreed_are_found_where_no_line_says_why,
);

pub(super) fn second(at: i64) -> i64 {
    at * MICROS_PER_SECOND
}

pub(crate) fn change(agreement: &Agreement, kinds: &[EventKind]) -> Change {
    Change::UpdateAgreement {
        agreement: Box::new(agreement.clone()),
        events: kinds.iter().map(|kind| event(*kind)).collect(),
    }
}

pub(super) fn bind(agreement: &Agreement, nodes: &[u32]) -> Change {
    Change::BindNodes {
        agreement: agreement.id,
        resource: RESOURCE.into(),
        nodes: nodes.to_vec(),
        interval: agreement.placement(),
    }
}

/// The agreement after its slot has begun.
pub(super) fn begun(agreement: &Agreement) -> Agreement {
    let service = if agreement.job.is_some() {
        ServiceState::Processing
    } else {
        ServiceState::Idle
    };
    let mut begun = Agreement {
        service,
        version: 2,
        ..agreement.clone()
    };
    begun.note_started(Some(second(100)));
    begun
}

/// The agreement after it has ended.
pub(crate) fn over(agreement: &Agreement, state: AgreementState, at: i64) -> Agreement {
    let mut over = agreement.clone();
    over.end_slot(at);
    Agreement {
        state,
        service: ServiceState::Completed,
        ended: Some(at),
        outcome: agreement.started.map(|_| RunOutcome::Completed),
        version: agreement.version + 1,
        ..over
    }
}

/// A history with agreements in every phase: waiting, begun, complete, ended early, terminated before and after its
/// begin, and in between. Answers with the one that has begun and the one that is complete.
pub(super) async fn live_through(store: &Store, epoch: i64) -> (Agreement, Agreement) {
    let all: Vec<_> = (0..6).map(|_| agreement("a")).collect();
    let [waiting, running, early, complete, cancelled, stopping] = &all[..] else {
        unreachable!()
    };
    let mut later = complete.clone();
    later.slots[0].placement = Interval::new(Time(140), Time(200));
    // Eight nodes: four run from 100 on, two of them until 130 only, two complete from 140 on, and two wait.
    let mut batch = vec![
        create(waiting),
        create(running),
        create(early),
        create(&later),
        create(cancelled),
    ];
    batch.extend([
        change(
            &over(cancelled, AgreementState::Terminated, second(50)),
            &[EventKind::Terminating, EventKind::Closed],
        ),
        create(stopping),
    ]);
    store.commit(epoch, &batch).await.expect("it is right");
    let (running, early, stopping) = (begun(running), begun(early), begun(stopping));
    let started = [
        change(&running, &[EventKind::Begun]),
        bind(&running, &[0, 1]),
        change(&early, &[EventKind::Begun]),
        bind(&early, &[2, 3]),
        change(&stopping, &[EventKind::Begun]),
        bind(&stopping, &[4, 5]),
    ];
    store.commit(epoch, &started).await.expect("it is right");
    let early = over(&early, AgreementState::Complete, second(129) + 1);
    let asked = Agreement {
        state: AgreementState::ObservedAndTerminating,
        version: 3,
        ..stopping
    };
    let ended = [
        change(
            &early,
            &[EventKind::Ended, EventKind::Assessed, EventKind::Closed],
        ),
        Change::ReleaseNodes {
            agreement: early.id,
            end: early.released(),
        },
        change(&asked, &[EventKind::Terminating]),
    ];
    store.commit(epoch, &ended).await.expect("it is right");
    let mut later = begun(&later);
    later.note_started(Some(second(140)));
    let begun_later = [change(&later, &[EventKind::Begun]), bind(&later, &[2, 3])];
    store.commit(epoch, &begun_later).await.expect("it is right");
    let stopped = over(&asked, AgreementState::Terminated, second(150));
    let complete = over(&later, AgreementState::Complete, second(200));
    let last = [
        change(&stopped, &[EventKind::Ended, EventKind::Closed]),
        Change::ReleaseNodes {
            agreement: stopped.id,
            end: Time(150),
        },
        change(&complete, &[EventKind::Ended, EventKind::Closed]),
        Change::ReleaseNodes {
            agreement: complete.id,
            end: Time(200),
        },
    ];
    store.commit(epoch, &last).await.expect("it is right");
    (running, complete)
}

async fn pieces_that_take_longer_than_was_agreed_are_found_where_no_line_says_why(url: String) {
    let (store, lease) = decide(&url).await;
    let all: Vec<_> = (0..2).map(|_| agreement("a")).collect();
    let [said, unsaid] = &all[..] else { unreachable!() };
    let batch = [create(said), create(unsaid)];
    store.commit(lease.epoch, &batch).await.expect("it is right");
    for (owner, nodes, kind) in [
        (said, [0, 1], EventKind::Overrun),
        (unsaid, [2, 3], EventKind::Moved),
    ] {
        let running = begun(owner);
        let mut saved = Agreement {
            version: 3,
            ..running.clone()
        };
        saved.add_slot(Interval::new(Time(180), Time(200)));
        let batch = [
            change(&running, &[EventKind::Begun]),
            bind(&running, &nodes),
            change(&saved, &[kind]),
        ];
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
    }
    let found = store.verify().await.expect("it can be read");
    let [Finding { subject, what, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(subject, &format!("agreement {}", unsaid.id));
    assert_eq!(what, "its pieces take 80 seconds together, and 60 were agreed");
}

async fn a_right_history_has_no_findings(url: String) {
    let (store, lease) = decide(&url).await;
    assert_eq!(store.verify().await.expect("an empty history can be read"), []);
    Box::pin(live_through(&store, lease.epoch)).await;
    assert_eq!(store.verify().await.expect("it can be read"), []);
}

/// Changes to a right history, and the faults that must be found then.
const DAMAGE: &[(&str, Invariant, &str)] = &[
    (
        "UPDATE agreements SET nodes = 7 WHERE state = 'Observed' AND started_us IS NULL",
        Invariant::I1,
        "13 nodes",
    ),
    (
        "UPDATE capacities SET capacity = 3",
        Invariant::I1,
        "where there are 3",
    ),
    (
        "UPDATE node_bindings SET node = 8 WHERE node = 0",
        Invariant::I1,
        "node 8 of local",
    ),
    (
        "UPDATE agreements SET nodes = 1 WHERE service = 'Processing'",
        Invariant::I5,
        "with 1 node and has 2",
    ),
    (
        "DELETE FROM node_bindings WHERE node = 1",
        Invariant::I5,
        "with 2 nodes and has 1",
    ),
    (
        "UPDATE node_bindings SET end_s = 159 WHERE node = 1",
        Invariant::I5,
        "not its own until 160",
    ),
    (
        "UPDATE node_bindings SET end_s = 131 WHERE node = 2 AND start_s = 100",
        Invariant::I5,
        "outside of [100, 130)",
    ),
    (
        "UPDATE node_bindings SET start_s = 99 WHERE node = 0",
        Invariant::I5,
        "outside of",
    ),
    (
        "UPDATE node_bindings SET node = 6, agreement = (SELECT id FROM agreements WHERE service = 'NotReady') \
         WHERE node = 2 AND start_s = 140",
        Invariant::I5,
        "has not begun",
    ),
    (
        "UPDATE agreements SET planned_start_s = 89 WHERE service = 'Processing'",
        Invariant::I6,
        "inside its window",
    ),
    (
        "UPDATE agreements SET deadline_s = 159 WHERE service = 'NotReady'",
        Invariant::I6,
        "inside its window",
    ),
    (
        "UPDATE agreements SET planned_end_s = 100 WHERE service = 'NotReady'",
        Invariant::I6,
        "inside its window",
    ),
    (
        "UPDATE agreements SET service = 'Processing' WHERE service = 'Completed'",
        Invariant::I6,
        "has an end",
    ),
    (
        "UPDATE agreements SET service = 'Completed' WHERE service = 'NotReady'",
        Invariant::I6,
        "its service Completed",
    ),
    (
        "UPDATE agreements SET state = 'Pending' WHERE service = 'Processing'",
        Invariant::I6,
        "its state is Pending",
    ),
    (
        "UPDATE agreements SET state = 'Complete' WHERE state = 'Terminated'",
        Invariant::I6,
        "leads to Terminated",
    ),
    (
        "UPDATE agreements SET state = 'Observed' WHERE state = 'Complete'",
        Invariant::I6,
        "and its timeline has 1 closings",
    ),
    (
        "UPDATE agreements SET ended_us = NULL WHERE state = 'Complete'",
        Invariant::I6,
        "has no end",
    ),
    (
        "UPDATE agreements SET started_us = 1 WHERE service = 'NotReady'",
        Invariant::I6,
        "NotReady and has started",
    ),
    (
        "UPDATE agreements SET outcome = 'lost' WHERE service = 'Processing'",
        Invariant::I6,
        "an outcome already",
    ),
    (
        "UPDATE agreements SET version = 1 WHERE service = 'Processing'",
        Invariant::I6,
        "its version is 1",
    ),
    (
        "DELETE FROM events WHERE kind = 'accepted'",
        Invariant::I6,
        "its only acceptance",
    ),
    ("DELETE FROM events WHERE seq = 2", Invariant::I6, "has gaps"),
    (
        "DELETE FROM events WHERE kind = 'closed'",
        Invariant::I6,
        "has 0 closings",
    ),
    ("DELETE FROM events", Invariant::I6, "has no timeline"),
    (
        "UPDATE events SET kind = 'ended' WHERE kind = 'terminating'",
        Invariant::I6,
        "from Observed to Terminated",
    ),
    (
        "UPDATE events SET service = 'Completed' WHERE kind = 'begun'",
        Invariant::I6,
        "its service went from Completed",
    ),
    (
        "UPDATE events SET state = 'Rejected' WHERE kind = 'accepted'",
        Invariant::I6,
        "it began as Rejected",
    ),
    (
        "UPDATE events SET version = 9 WHERE kind = 'accepted'",
        Invariant::I6,
        "goes back from version 9",
    ),
    (
        "UPDATE agreements SET state = 'Observing' WHERE service = 'NotReady'",
        Invariant::Readable,
        "\"Observing\"",
    ),
    (
        "UPDATE events SET kind = 'happened' WHERE kind = 'terminating'",
        Invariant::Readable,
        "\"happened\"",
    ),
];

async fn every_kind_of_damage_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    Box::pin(live_through(&store, lease.epoch)).await;
    store.close().await;
    tamper(&url, &save()).await;
    for (damage, invariant, says) in DAMAGE {
        tamper(&url, damage).await;
        let store = Store::open(&url).await.expect("it can be opened");
        let findings = store.verify().await.expect("it can be read");
        store.close().await;
        let found = findings
            .iter()
            .any(|finding| finding.invariant == *invariant && finding.what.contains(says));
        assert!(
            found,
            "{damage}\nmust be found as {invariant:?}: …{says}…, and this was:\n{findings:#?}"
        );
        tamper(&url, RESTORE).await;
    }
    let store = Store::open(&url).await.expect("it can be opened");
    assert_eq!(
        store.verify().await.expect("it can be read"),
        [],
        "all damage was undone"
    );
}

/// Gives a node that is taken to another agreement, past every condition of ours.
const STEAL: &str = "INSERT INTO node_bindings (resource, node, start_s, end_s, agreement) \
    SELECT resource, node, start_s + 1, end_s, (SELECT id FROM agreements WHERE state = 'Terminated' LIMIT 1) \
    FROM node_bindings WHERE node = 0";

async fn a_second_owner_of_a_node_is_found_or_not_even_stored(url: String) {
    let (store, lease) = decide(&url).await;
    Box::pin(live_through(&store, lease.epoch)).await;
    let stolen = try_tamper(&url, STEAL).await;
    if store.kind() == Engine::Postgres {
        let why = stolen
            .expect_err("Postgres has a constraint of its own")
            .to_string();
        assert!(why.contains("node_bindings_have_one_owner"), "{why}");
        return;
    }
    stolen.expect("SQLite has no such constraint");
    let findings = store.verify().await.expect("it can be read");
    let found = |finding: &Finding| {
        finding.invariant == Invariant::I1 && finding.what.contains("node 0 has two owners from 1970")
    };
    assert!(findings.iter().any(found), "{findings:#?}");
}

/// Keeps the right history aside.
fn save() -> String {
    let tables = [
        "agreements",
        "agreement_documents",
        "events",
        "node_bindings",
        "capacities",
    ];
    let copies = tables.map(|table| format!("CREATE TABLE right_{table} AS SELECT * FROM {table};"));
    copies.concat()
}

/// Brings the right history back.
const RESTORE: &str = "DELETE FROM node_bindings; DELETE FROM events; DELETE FROM capacities; \
    DELETE FROM agreement_documents; DELETE FROM agreements; \
    INSERT INTO agreements SELECT * FROM right_agreements; \
    INSERT INTO agreement_documents SELECT * FROM right_agreement_documents; INSERT INTO events SELECT * FROM right_events; \
    INSERT INTO node_bindings SELECT * FROM right_node_bindings; INSERT INTO capacities SELECT * FROM right_capacities";

async fn more_nodes_in_use_than_there_are_are_found(url: String) {
    let (store, lease) = decide(&url).await;
    let crowd: Vec<_> = (0..5).map(|_| create(&agreement("a"))).collect();
    store
        .commit(lease.epoch, &crowd)
        .await
        .expect("the store does not plan");
    let findings = store.verify().await.expect("it can be read");
    let expected = Finding {
        invariant: Invariant::I1,
        subject: format!("resource {RESOURCE}"),
        what: "10 nodes in use where there are 8, from 1970-01-01T00:01:40Z until 1970-01-01T00:02:40Z"
            .into(),
    };
    assert_eq!(findings, [expected]);
}

async fn a_database_full_of_damage_gives_a_bounded_answer(url: String) {
    let (store, lease) = decide(&url).await;
    for _ in 0..3 {
        let many: Vec<_> = (0..500).map(|_| create(&agreement("a"))).collect();
        store
            .commit(lease.epoch, &many)
            .await
            .expect("the store does not plan");
    }
    tamper(&url, "DELETE FROM events").await;
    assert_eq!(store.verify().await.expect("it can be read").len(), 1_000);
}
