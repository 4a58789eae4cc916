//! Archived timelines, bound nodes and documents are shown and verified as before; those of other agreements stay where they are.

use domain::agreement::{Event, Wording};
use scheduler::Time;
use store::trail_lines::{self, TrailLine};
use store::{Invariant, Store, agreements, archive};
use uuid::Uuid;

use super::verify::{live_through, second};
use super::{all_agreements, decide, tamper};
use crate::support::fixture::column;
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_is_archived_is_shown_and_verified_as_before,
    damage_in_the_archive_is_found,
    one_that_cannot_be_archived_keeps_no_other_from_it,
);

/// All that is shown of the past: the audit trail, and of each agreement its timeline, in both forms, and its document.
type ShownHistory = (
    Vec<TrailLine>,
    Vec<(Uuid, Vec<Event>, Vec<TrailLine>, Option<Wording>)>,
);

async fn shown(store: &Store) -> ShownHistory {
    let mut all = Vec::new();
    for stored_agreement in all_agreements(store).await {
        all.push((
            stored_agreement.id,
            agreements::events_of_agreement(store, stored_agreement.id)
                .await
                .expect("it can be read"),
            trail_lines::trail_lines_of_agreement(store, stored_agreement.id)
                .await
                .expect("it can be read"),
            agreements::agreement_document(store, stored_agreement.id)
                .await
                .expect("it can be read"),
        ));
    }
    (
        trail_lines::trail_lines_after(store, 0, 1_000)
            .await
            .expect("it can be read"),
        all,
    )
}

async fn rows(url: &str, table: &str) -> usize {
    column(url, table, "1").await.expect("they can be counted").len()
}

async fn what_is_archived_is_shown_and_verified_as_before(url: String) {
    let (store, lease) = decide(&url).await;
    Box::pin(live_through(&store, lease.epoch)).await;
    let before = shown(&store).await;
    assert!(before.1.iter().all(|(_, _, _, document)| document.is_some()));
    let (lines, bound) = (rows(&url, "events").await, rows(&url, "node_bindings").await);
    // Ended at 50, just after 129, at 150 and at 200; two go on.
    let over = second(151);
    for (limit, expected) in [(2, 2), (100, 1), (100, 0)] {
        assert_eq!(
            archive::archive_agreements(&store, over, limit)
                .await
                .expect("there is room"),
            expected
        );
        assert_eq!(shown(&store).await, before);
        assert_eq!(store.verify().await.expect("it can be read"), []);
        assert_eq!(store.verify_open(Time(160)).await.expect("it can be read"), []);
    }
    assert_eq!(rows(&url, "archived_documents").await, 3);
    assert_eq!(rows(&url, "agreement_documents").await, before.1.len() - 3);
    assert_eq!(
        rows(&url, "events").await + rows(&url, "archived_events").await,
        lines
    );
    // The one that was cancelled never had nodes.
    assert_eq!(rows(&url, "archived_bindings").await, 4);
    assert_eq!(rows(&url, "node_bindings").await, bound - 4);
    let live = agreements::live_agreements(&store)
        .await
        .expect("they can be read");
    assert_eq!(live.len(), 2, "{live:?}");
}

async fn damage_in_the_archive_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    Box::pin(live_through(&store, lease.epoch)).await;
    archive::archive_agreements(&store, second(151), 100)
        .await
        .expect("there is room");
    let tables = ["archived_events", "archived_bindings"];
    for table in tables {
        tamper(
            &url,
            &format!("CREATE TABLE right_{table} AS SELECT * FROM {table}"),
        )
        .await;
    }
    for (damage, invariant) in [
        ("UPDATE archived_events SET detail = 'nothing'", Invariant::I10),
        ("DELETE FROM archived_events", Invariant::I10),
        (
            "UPDATE archived_bindings SET node = 0 WHERE node = 2 AND start_s = 100",
            Invariant::I1,
        ),
    ] {
        tamper(&url, damage).await;
        let found = store.verify().await.expect("it can be read");
        assert!(
            found.iter().any(|finding| finding.invariant == invariant),
            "{damage}: {found:?}"
        );
        for table in tables {
            let restore = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM right_{table}");
            tamper(&url, &restore).await;
        }
        assert_eq!(store.verify().await.expect("it can be read"), []);
    }
}

async fn one_that_cannot_be_archived_keeps_no_other_from_it(url: String) {
    let (store, lease) = decide(&url).await;
    Box::pin(live_through(&store, lease.epoch)).await;
    assert_eq!(
        archive::archive_agreements(&store, second(151), 1)
            .await
            .expect("there is room"),
        1
    );
    // As if its document had been copied and not deleted.
    let back = "INSERT INTO agreement_documents (agreement, document) SELECT agreement, document FROM archived_documents";
    tamper(&url, back).await;
    assert_eq!(
        archive::archive_agreements(&store, second(151), 100)
            .await
            .expect("the others can"),
        2
    );
    let both =
        "DELETE FROM archived_documents WHERE agreement IN (SELECT agreement FROM agreement_documents)";
    tamper(&url, both).await;
    assert_eq!(
        archive::archive_agreements(&store, second(151), 100)
            .await
            .expect("it can be now"),
        1
    );
    assert_eq!(store.verify().await.expect("it can be read"), []);
}
