//! The row of a waiting agreement that has moved is written with as few pages of the log as it takes.

use std::fs;

use domain::agreement::{Agreement, EventKind};
use domain::change::Change;
use scheduler::{Interval, Time};
use store::{Invariant, Store, agreements};

use super::verify::change;
use super::{agreement, create, decide, event, tamper};
use crate::support::stores::{TestDatabase, on_both_engines, with};

on_both_engines!(what_has_moved_is_stored_and_what_was_changed_past_it_is_found);

/// A waiting agreement a second later.
fn moved(agreement: &Agreement) -> Agreement {
    let mut moved = agreement.clone();
    let slot = moved.placement();
    moved.slots[0].placement = Interval::new(slot.start + 1, slot.end + 1);
    moved.version += 1;
    moved
}

/// The move as one that is settled and of which its party is not told.
fn settled(agreement: &Agreement) -> Change {
    Change::SettleMoves {
        agreement: Box::new(agreement.clone()),
        event: event(EventKind::Moved),
        before: agreement.version - 1,
        is_told: false,
    }
}

async fn stored(store: &Store, agreement: &Agreement) -> Option<Agreement> {
    agreements::agreement(store, agreement.id)
        .await
        .expect("an answer")
}

async fn what_has_moved_is_stored_and_what_was_changed_past_it_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    let first = agreement("a");
    store
        .commit(lease.epoch, &[create(&first)])
        .await
        .expect("it is stored");
    let second = moved(&first);
    let third = moved(&second);
    let batch = [change(&second, &[EventKind::Moved]), settled(&third)];
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    assert_eq!(stored(&store, &first).await, Some(third.clone()));
    assert_eq!(store.verify_open(Time(0)).await.expect("it can be read"), []);
    // A move and something else in one batch.
    let fourth = moved(&third);
    let mut fifth = moved(&fourth);
    fifth.fixed = true;
    let batch = [settled(&fourth), change(&fifth, &[EventKind::Fixed])];
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    assert_eq!(stored(&store, &first).await, Some(fifth.clone()));
    tamper(&url, "UPDATE agreements SET service = 'Idle'").await;
    let refused = store.commit(lease.epoch, &[settled(&moved(&fifth))]).await;
    assert!(matches!(refused, Err(store::Error::Conflict(_))), "{refused:?}");
    let found = store.verify_open(Time(0)).await.expect("it can be read");
    assert!(
        found.iter().any(|found| found.invariant == Invariant::I10),
        "{found:?}"
    );
}

/// How many pages a batch adds to the log of a SQLite file.
async fn pages_of_batch(url: &str, store: &Store, epoch: i64, batch: &[Change]) -> u64 {
    /// With its header in the log.
    const PAGE: u64 = 4_096 + 24;
    let log = format!("{}-wal", url.strip_prefix("sqlite:").expect("a file"));
    tamper(url, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    store.commit(epoch, batch).await.expect("it is stored");
    fs::metadata(log).expect("the log is there").len() / PAGE
}

#[test]
fn a_move_leaves_the_indexes_alone_that_have_no_start() {
    with(&TestDatabase::sqlite(), async |url: String| {
        let (store, lease) = decide(&url).await;
        let (one, other) = (agreement("a"), agreement("a"));
        let batch = [create(&one), create(&other)];
        store.commit(lease.epoch, &batch).await.expect("they are stored");
        let of_move = [settled(&moved(&one))];
        let of_move = pages_of_batch(&url, &store, lease.epoch, &of_move).await;
        // The same in the row, as something that may have changed the state.
        let of_change = [change(&moved(&other), &[EventKind::Fixed])];
        let of_change = pages_of_batch(&url, &store, lease.epoch, &of_change).await;
        assert!(of_move + 4 <= of_change, "{of_move} pages and {of_change}");
    });
}
