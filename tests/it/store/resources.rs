//! The resources and their capacities, as they are stored.

use domain::agreement::{AgreementState, EventKind};
use domain::change::Change;
use domain::resources::ResourceRow;
use store::resources;

use super::verify::{begun, bind, change, over, second};
use super::{RESOURCE, agreement, create, decide};
use crate::support::stores::on_both_engines;

on_both_engines!(
    resources_are_replaced_by_name_and_kept_in_their_order,
    what_was_promised_is_judged_by_what_there_was_then,
);

async fn resources_are_replaced_by_name_and_kept_in_their_order(url: String) {
    let (store, lease) = decide(&url).await;
    let row = |name: &str, capacity| ResourceRow {
        position: 7,
        rate: 2_000_000,
        details: "{\"executor\": 1}".into(),
        configured: Some("as in the file".into()),
        retired: Some(3),
        frozen: Some(2),
        ..ResourceRow::new(name, "local", capacity)
    };
    for capacity in [4, 4, 2, 0] {
        let rows = [row("b", capacity), row("a", 1), row("b", capacity)];
        let changes = rows.map(Change::PutResource);
        store
            .commit(lease.epoch, &changes)
            .await
            .expect("they can be stored");
        let expected = [
            ResourceRow::new(RESOURCE, "local", 8),
            row("a", 1),
            row("b", capacity),
        ];
        assert_eq!(
            resources::all_resources(&store).await.expect("they are there"),
            expected
        );
    }
}

async fn what_was_promised_is_judged_by_what_there_was_then(url: String) {
    let (store, lease) = decide(&url).await;
    let has = |steps: &[(i64, u32)]| {
        [Change::SetCapacity {
            resource: RESOURCE.into(),
            steps: steps.iter().map(|(at, nodes)| (second(*at), *nodes)).collect(),
        }]
    };
    let promised = agreement("a");
    store
        .commit(lease.epoch, &[create(&promised)])
        .await
        .expect("it is right");
    // Two are enough, one is not, and one is enough from when on it is over.
    for (steps, faults) in [(&[(60, 2)][..], 0), (&[(90, 1)], 1), (&[(90, 2), (160, 1)], 0)] {
        store
            .commit(lease.epoch, &has(steps))
            .await
            .expect("it is stored");
        assert_eq!(
            store.verify().await.expect("it can be read").len(),
            faults,
            "{steps:?}"
        );
    }
    let begun = begun(&promised);
    let done = over(&begun, AgreementState::Complete, second(160));
    let batch = [
        change(&begun, &[EventKind::Begun]),
        bind(&begun, &[0, 1]),
        change(&done, &[EventKind::Ended, EventKind::Closed]),
    ];
    store.commit(lease.epoch, &batch).await.expect("it is right");
    store
        .commit(lease.epoch, &has(&[(200, 4)]))
        .await
        .expect("it is stored");
    assert_eq!(
        store.verify().await.expect("it can be read"),
        [],
        "then there were two"
    );
}
