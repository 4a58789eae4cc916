//! A start reads each open agreement once: the plan is made of the rows that were checked.

use domain::agreement::{Agreement, Slots};
use scheduler::{Interval, Time};
use store::{Invariant, Store, open_state};

use super::{agreement, create, decide, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_is_read_with_its_check_is_what_is_read_without,
    a_check_in_halves_finds_what_a_check_of_all_does,
);

const NOW: Time = Time(0);

/// The agreement in one of many slots that follow each other.
fn in_turn(turn: i64) -> Agreement {
    let start = Time(100 + turn * 60);
    Agreement {
        slots: Slots::one((Interval::new(start, start + 60), 2)),
        deadline: start + 100,
        ..agreement("a")
    }
}

async fn checked(store: &Store) -> Result<open_state::OpenState, Vec<store::Finding>> {
    let checked = store.read_checked_open_state(NOW).await;
    checked.expect("it can be read")
}

async fn what_is_read_with_its_check_is_what_is_read_without(url: String) {
    let (store, lease) = decide(&url).await;
    for turn in 0..4 {
        let open = open_state::open_state(&store, NOW).await.expect("it can be read");
        assert_eq!(i64::try_from(open.agreements.len()), Ok(turn));
        let checked = checked(&store).await.expect("nothing is found");
        assert_eq!(format!("{checked:?}"), format!("{open:?}"));
        let batch = [create(&in_turn(turn))];
        store.commit(lease.epoch, &batch).await.expect("it is stored");
    }
}

async fn a_check_in_halves_finds_what_a_check_of_all_does(url: String) {
    let (store, lease) = decide(&url).await;
    // Two that lie at the same time are in different halves.
    let batch: Vec<_> = (0..5).map(|turn| create(&in_turn(turn / 2))).collect();
    store.commit(lease.epoch, &batch).await.expect("they are stored");
    for damage in [
        "UPDATE agreements SET nodes = 7",
        "UPDATE agreements SET nodes = 9 WHERE id = (SELECT id FROM agreements ORDER BY id LIMIT 1)",
        "UPDATE agreements SET pieces = 'none' WHERE id = (SELECT id FROM agreements ORDER BY id DESC LIMIT 1)",
    ] {
        tamper(&url, damage).await;
        let found = checked(&store).await.expect_err("something is found");
        assert_eq!(found, store.verify_open(NOW).await.expect("it can be read"));
    }
    let found = checked(&store).await.expect_err("something is found");
    for invariant in [Invariant::Readable, Invariant::I1, Invariant::I10] {
        assert!(
            found.iter().any(|found| found.invariant == invariant),
            "{found:?}"
        );
    }
}
