//! The audit trail: every change has its line, and no line can be changed, taken out, added or moved unseen.

use domain::agreement::{Agreement, AgreementState, EventKind, RunOutcome, ServiceState};
use domain::change::Change;
use store::{Finding, Invariant, Store};

use crate::store::{agreement, create, decide, event, tamper};
use crate::support::eventually;
use crate::support::offers::Offer;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    whoever_changes_the_trail_is_found,
    batches_that_were_not_stored_leave_no_gap,
    a_timeline_tells_everything_in_order_and_what_was_cut,
);

/// Changes to a whole trail, and the faults that must be found then.
const DAMAGE: &[(&str, &str)] = &[
    (
        "UPDATE events SET detail = 'nothing' WHERE number = 2",
        "line 2 (begun",
    ),
    (
        "UPDATE events SET at_us = at_us + 1 WHERE number = 1",
        "line 1 (accepted",
    ),
    (
        "UPDATE events SET hash = '' WHERE number = 3",
        "line 3 (terminating",
    ),
    (
        "UPDATE events SET state = 'Observed' WHERE number = 4",
        "line 4 (closed",
    ),
    ("DELETE FROM events WHERE number = 2", "line 2 is missing"),
    (
        "DELETE FROM events WHERE number = 4",
        "it ends with line 3, and line 4 was the last",
    ),
    ("DELETE FROM events", "it ends with line 0"),
    (
        "UPDATE events SET number = 9 WHERE number = 1; UPDATE events SET number = 1 WHERE number = 2; \
      UPDATE events SET number = 2 WHERE number = 9",
        "line 1 (begun",
    ),
    ("UPDATE lease SET trail_number = 5", "it ends with line 4"),
    (
        "INSERT INTO events SELECT agreement, 9, at_us, kind, detail, version, state, service, 5, hash, digest, sums FROM events \
      WHERE number = 4",
        "line 5 (closed",
    ),
    (
        "DELETE FROM events WHERE number = 3; UPDATE agreements SET version = 3",
        "not every change has its line",
    ),
];

async fn whoever_changes_the_trail_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    let one = agreement("a");
    let mut begun = Agreement {
        service: ServiceState::Idle,
        job: None,
        version: 2,
        ..one.clone()
    };
    begun.note_started(Some(100_000_000));
    let asked = Agreement {
        state: AgreementState::ObservedAndTerminating,
        version: 3,
        ..begun.clone()
    };
    let mut over = asked.clone();
    over.end_slot(110_000_000);
    let over = Agreement {
        state: AgreementState::Terminated,
        service: ServiceState::Completed,
        ended: Some(110_000_000),
        outcome: Some(RunOutcome::Terminated),
        version: 4,
        ..over
    };
    let changed = |agreement: &Agreement, kind| Change::UpdateAgreement {
        agreement: Box::new(agreement.clone()),
        events: vec![event(kind)],
    };
    let bind = Change::BindNodes {
        agreement: one.id,
        resource: one.resource.clone(),
        nodes: vec![0, 1],
        interval: one.placement(),
    };
    let release = Change::ReleaseNodes {
        agreement: one.id,
        end: over.released(),
    };
    let first = [create(&one)];
    let second = [
        changed(&begun, EventKind::Begun),
        bind,
        changed(&asked, EventKind::Terminating),
    ];
    let third = [changed(&over, EventKind::Closed), release];
    for batch in [&first[..], &second[..], &third[..]] {
        store.commit(lease.epoch, batch).await.expect("it is right");
    }
    assert_eq!(findings(&store).await, []);
    tamper(&url, "CREATE TABLE kept AS SELECT * FROM events").await;
    for (sql, said) in DAMAGE {
        tamper(&url, sql).await;
        let found = findings(&store).await;
        let names = |finding: &Finding| finding.invariant == Invariant::I10 && finding.what.contains(said);
        assert!(found.iter().any(names), "{sql}: {found:#?}");
        let mended = "DELETE FROM events; INSERT INTO events SELECT * FROM kept; UPDATE lease SET trail_number = 4; \
            UPDATE agreements SET version = 4";
        tamper(&url, mended).await;
        assert_eq!(findings(&store).await, []);
    }
}

async fn batches_that_were_not_stored_leave_no_gap(url: String) {
    let (store, lease) = decide(&url).await;
    let (one, other) = (agreement("a"), agreement("b"));
    store
        .commit(lease.epoch, &[create(&one)])
        .await
        .expect("it is right");
    // The second change is a conflict, and takes the first with it.
    let wrong = store.commit(lease.epoch, &[create(&other), create(&one)]).await;
    assert!(wrong.is_err());
    store
        .commit(lease.epoch, &[create(&other)])
        .await
        .expect("it is right");
    assert_eq!(findings(&store).await, []);
}

async fn findings(store: &Store) -> Vec<Finding> {
    store.verify().await.expect("it can be read")
}

async fn a_timeline_tells_everything_in_order_and_what_was_cut(url: String) {
    let server = Server::configured(
        Some(&url),
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"100\"\n",
    );
    let client = server.client();
    let id = client
        .post("/agreements", Offer::sleep(0, 600).xml())
        .await
        .created();
    let deadline = std::time::Duration::from_mins(1);
    let told = eventually("its end", deadline, async || {
        let timeline = client.get_json(&format!("/agreements/{id}/events")).await;
        let events = timeline["events"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<String> = events
            .iter()
            .map(|event| event["kind"].as_str().unwrap_or_default().to_owned())
            .collect();
        kinds.contains(&"closed".to_owned()).then_some(kinds)
    })
    .await;
    let all = [
        "accepted", "begun", "running", "ended", "assessed", "charged", "closed",
    ];
    let told: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|kind| *kind != "running")
        .collect();
    let expected: Vec<&str> = all.into_iter().filter(|kind| *kind != "running").collect();
    assert_eq!(told, expected);
    server.assert_verified();
}
