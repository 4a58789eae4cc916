//! Postgres connections that break around COMMIT: the store finds the outcome of the batch, or says that it does not know.

use store::{Error, Store, agreements};

use super::{agreement, create, decide};
use crate::support::block_on;
use crate::support::proxy::{Fault, Proxy};
use crate::support::stores::TestDatabase;

/// A store behind a proxy, and its lease straight to the server.
async fn behind_a_proxy(url: &str) -> (Proxy, Store, Store, store::Lease) {
    let (direct, lease) = decide(url).await;
    let proxy = Proxy::before(url).await;
    let store = Store::open(&proxy.to(url))
        .await
        .expect("the proxy passes everything on");
    (proxy, store, direct, lease)
}

#[test]
fn a_batch_whose_commit_was_cut_is_stored_exactly_once() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, lease) = behind_a_proxy(&url).await;
        for round in 0..3 {
            for fault in [Fault::CutBefore, Fault::CutAfter] {
                proxy.plan(fault, 0);
                let one = agreement("a");
                store
                    .commit(lease.epoch, &[create(&one)])
                    .await
                    .unwrap_or_else(|error| panic!("round {round}, cut {fault:?}: {error:?}"));
                assert!(proxy.has_happened(), "the fault did not happen");
                assert_eq!(
                    agreements::agreement(&direct, one.id).await.expect("an answer"),
                    Some(one.clone()),
                    "{fault:?}"
                );
                assert_eq!(
                    agreements::events_of_agreement(&direct, one.id)
                        .await
                        .expect("an answer")
                        .len(),
                    1,
                    "{fault:?}"
                );
            }
        }
    });
}

#[test]
fn a_batch_whose_outcome_cannot_be_found_out_is_said_to_be_unknown() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, lease) = behind_a_proxy(&url).await;
        proxy.plan(Fault::CutAfterForEver, 0);
        let one = agreement("a");
        let told = store.commit(lease.epoch, &[create(&one)]).await;
        assert!(matches!(told, Err(Error::Unknown { .. })), "{told:?}");
        assert_eq!(
            agreements::agreement(&direct, one.id).await.expect("an answer"),
            Some(one),
            "the server had it"
        );
    });
}
