//! Never two deciders, also where one was killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use store::{Error, Store, agreements};

use super::{agreement, create, decide, open, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_second_decider_is_refused_until_the_first_gives_up,
    one_that_was_overtaken_cannot_write,
    one_that_was_overtaken_learns_it_without_writing,
    a_decider_in_another_process_keeps_others_out_until_it_is_killed,
    a_lease_that_is_dropped_is_free,
);

/// Names the database for the process that [`holds_the_lease_as_a_process_of_its_own`] is.
const DATABASE: &str = "BESPEAK_TEST_LEASE_DATABASE";

async fn a_second_decider_is_refused_until_the_first_gives_up(url: String) {
    let (store, mut first) = decide(&url).await;
    store.check_lease(&mut first).await.expect("it holds");
    for other in [store.clone(), Store::open(&url).await.expect("others may read")] {
        let refused = other.acquire_lease().await.expect_err("there is one decider");
        assert!(matches!(refused, Error::LeaseHeld(_)), "{refused:?}");
    }
    store
        .commit(first.epoch, &[])
        .await
        .expect("and it still decides");
    let epoch = first.epoch;
    first.release().await;
    let second = store.acquire_lease().await.expect("it is free");
    assert!(second.epoch > epoch);
}

async fn a_lease_that_is_dropped_is_free(url: String) {
    let (store, first) = decide(&url).await;
    drop(first);
    store.acquire_lease().await.expect("it is free");
}

async fn one_that_was_overtaken_cannot_write(url: String) {
    let (store, first) = decide(&url).await;
    let stale = first.epoch;
    first.release().await;
    let other = open(&url).await;
    let second = other.acquire_lease().await.expect("it is free");
    let late = store.commit(stale, &[create(&agreement("a"))]).await;
    assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
    let early = store.commit(second.epoch + 1, &[create(&agreement("a"))]).await;
    assert!(matches!(early, Err(Error::LeaseLost)), "{early:?}");
    assert!(
        agreements::live_agreements(&store)
            .await
            .expect("an answer")
            .is_empty()
    );
    other
        .commit(second.epoch, &[create(&agreement("a"))])
        .await
        .expect("it decides now");
}

async fn one_that_was_overtaken_learns_it_without_writing(url: String) {
    let (store, mut lease) = decide(&url).await;
    store.retake_lease(&mut lease).await.expect("it holds");
    // As where its lock did not keep others out: its file was removed, or the server's locks were lost.
    tamper(&url, "UPDATE lease SET epoch = epoch + 1").await;
    for told in [
        store.check_lease(&mut lease).await,
        store.retake_lease(&mut lease).await.map(drop),
    ] {
        assert!(matches!(told, Err(Error::LeaseLost)), "{told:?}");
    }
}

async fn a_decider_in_another_process_keeps_others_out_until_it_is_killed(url: String) {
    let store = open(&url).await;
    let mut holder = Holder::start(&url);
    let refused = store.acquire_lease().await.expect_err("another process decides");
    assert!(matches!(refused, Error::LeaseHeld(_)), "{refused:?}");
    holder.0.kill().expect("it can be killed");
    holder.0.wait().expect("it has ended");
    let lease = store
        .acquire_lease()
        .await
        .expect("a lease dies with its process");
    assert!(lease.epoch > 1, "the killed one had an epoch of its own");
}

/// This test program once more, with one test that holds the lease.
struct Holder(Child);

impl Holder {
    /// Starts it and waits until it has the lease.
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("store::decider::holds_the_lease_as_a_process_of_its_own")
            .env(DATABASE, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run");
        let output = BufReader::new(child.stdout.take().expect("it was given a pipe"));
        let held = output
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("lease held"));
        assert!(held, "the other process did not get the lease");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have been killed and waited for already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "another test runs it as a process of its own"]
fn holds_the_lease_as_a_process_of_its_own() {
    let url = std::env::var(DATABASE).expect("the test that starts this names a database");
    crate::support::block_on(async move {
        let store = Store::open(&url).await.expect("the database is there");
        let lease = store.acquire_lease().await.expect("no other process decides");
        println!("lease held, epoch {}", lease.epoch);
        std::io::stdout().flush().expect("the other test reads");
        // Until it is killed, or the other test has gone.
        let _ = std::io::stdin().read_line(&mut String::new());
    });
}
