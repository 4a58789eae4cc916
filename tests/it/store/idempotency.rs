//! The effects of requests with a key, as they are stored.

use domain::change::{Change, IDEMPOTENCY_KEPT, Idempotent};
use store::{Error, agreements, idempotency};

use super::{agreement, create, decide};
use crate::support::stores::on_both_engines;

on_both_engines!(a_key_works_once_a_day);

async fn a_key_works_once_a_day(url: String) {
    let (store, lease) = decide(&url).await;
    let make = |party: &str, created: i64| {
        let made = agreement(party);
        let done = Idempotent {
            party: party.into(),
            key: "k".into(),
            request_hash: made.id.to_string(),
            answer: format!("{{\"id\": \"{}\"}}", made.id),
            created,
        };
        ([create(&made), Change::RememberRequest(done.clone())], done)
    };
    let (first, done) = make("a", 1_000);
    store.commit(lease.epoch, &first).await.expect("the key is new");
    let (other_party, _) = make("b", 1_000);
    store
        .commit(lease.epoch, &other_party)
        .await
        .expect("another party's key is another");
    let (again, _) = make("a", 1_000 + IDEMPOTENCY_KEPT);
    let refused = store.commit(lease.epoch, &again).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    assert_eq!(
        agreements::live_agreements(&store)
            .await
            .expect("an answer")
            .len(),
        2
    );
    assert_eq!(
        idempotency::idempotent_request(&store, "a", "k")
            .await
            .expect("an answer"),
        Some(done)
    );
    assert_eq!(
        idempotency::idempotent_request(&store, "a", "other")
            .await
            .expect("an answer"),
        None
    );
    let (next_day, done) = make("a", 1_001 + IDEMPOTENCY_KEPT);
    store
        .commit(lease.epoch, &next_day)
        .await
        .expect("the key is free again");
    assert_eq!(
        idempotency::idempotent_request(&store, "a", "k")
            .await
            .expect("an answer"),
        Some(done.clone())
    );
    let taken = store.commit(lease.epoch, &[Change::RememberRequest(done)]).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
    assert_eq!(
        idempotency::forget_idempotent_requests(&store, 1_001 + IDEMPOTENCY_KEPT)
            .await
            .expect("an answer"),
        1
    );
    assert_eq!(
        idempotency::idempotent_request(&store, "b", "k")
            .await
            .expect("an answer"),
        None
    );
}
