//! Postgres connections that break where a batch is committed: the store finds its outcome, or says that it does not know.

use store::{Error, Invariant, Store, agreements};

use super::one_statement::unsettle;
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
    // By the first batch it learns what a batch has to state that is one statement.
    let first = store.commit(lease.epoch, &[]).await;
    first.expect("the proxy passes everything on");
    (proxy, store, direct, lease)
}

#[test]
fn a_batch_whose_commit_was_cut_is_stored_exactly_once() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, lease) = behind_a_proxy(&url).await;
        for (by_one_statement, fault) in [
            (true, Fault::CutBefore),
            (true, Fault::CutAfter),
            (false, Fault::CutBefore),
            (false, Fault::CutAfter),
        ] {
            for _ in 0..2 {
                if !by_one_statement {
                    unsettle(&url).await;
                }
                proxy.plan(fault, 0);
                let one = agreement("a");
                store
                    .commit(lease.epoch, &[create(&one)])
                    .await
                    .unwrap_or_else(|error| panic!("{by_one_statement}, {fault:?}: {error:?}"));
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

/// Where the server had not begun with it when its outcome was asked for.
#[test]
fn a_batch_that_reaches_the_server_after_it_was_given_up_writes_nothing() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, mut lease) = behind_a_proxy(&url).await;
        proxy.plan(Fault::CutAndComeLate, 0);
        let one = agreement("a");
        let told = store.commit(lease.epoch, &[create(&one)]).await;
        assert!(matches!(told, Err(Error::Unknown { .. })), "{told:?}");
        let before = direct.retake_lease(&mut lease).await.expect("it holds");
        proxy.let_go().await;
        let after = direct.retake_lease(&mut lease).await.expect("it holds");
        assert_eq!(before, after, "the last batch is another one");
        let found = agreements::agreement(&direct, one.id).await;
        assert_eq!(found.expect("an answer"), None);
        let findings = direct.verify().await.expect("it can be read");
        assert!(
            findings.iter().all(|one| one.invariant != Invariant::I10),
            "{findings:?}"
        );
    });
}
