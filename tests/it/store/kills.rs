//! The store has every batch that it acknowledged, whichever process is killed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use sqlx::{Connection, PgConnection};
use store::{Error, Invariant, Store, agreements};
use uuid::Uuid;

use super::{agreement, create, decide, open};
use crate::support::block_on;
use crate::support::sessions::SessionEnder;
use crate::support::stores::{TestDatabase, on_both_engines};

on_both_engines!(what_a_writer_acknowledged_before_it_was_killed_is_there);

/// Names the database for the process that [`writes_until_it_is_killed`] is.
const DATABASE: &str = "BESPEAK_TEST_WRITER_DATABASE";
/// Batches acknowledged before the kill.
const BATCHES: usize = 25;
/// Agreements of one batch.
const BATCH: usize = 3;

async fn what_a_writer_acknowledged_before_it_was_killed_is_there(url: String) {
    let mut writer = Command::new(std::env::current_exe().expect("this program has a path"))
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "store::kills::writes_until_it_is_killed",
        ])
        .env(DATABASE, &url)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run");
    let said = BufReader::new(writer.stdout.take().expect("it was given a pipe"));
    let mut acknowledged = BTreeSet::new();
    for line in said.lines().map_while(Result::ok) {
        let Some(ids) = line.strip_prefix("stored ") else {
            continue;
        };
        acknowledged.extend(ids.split(' ').map(|id| id.parse::<Uuid>().expect("an id")));
        // Its last output while it dies still counts.
        if acknowledged.len() == BATCHES * BATCH {
            writer.kill().expect("it can be killed");
        }
    }
    writer.wait().expect("it has ended");
    assert!(
        acknowledged.len() >= BATCHES * BATCH,
        "the writer ended too early"
    );

    let store = open(&url).await;
    store
        .acquire_lease()
        .await
        .expect("the lease died with its holder");
    let stored: BTreeSet<_> = agreements::live_agreements(&store)
        .await
        .expect("they can be read")
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert!(
        acknowledged.is_subset(&stored),
        "acknowledged and gone: {:?}",
        acknowledged.difference(&stored)
    );
    assert_eq!(stored.len() % BATCH, 0, "a batch is whole or not there");
    assert!(
        stored.len() - acknowledged.len() <= BATCH,
        "one batch was being written at most"
    );
    let findings = store.verify().await.expect("it can be read");
    assert!(
        findings.iter().all(|one| one.invariant != Invariant::I6),
        "{findings:?}"
    );
}

#[test]
#[ignore = "another test runs it as a process of its own, and kills it"]
fn writes_until_it_is_killed() {
    let url = std::env::var(DATABASE).expect("the test that starts this names a database");
    block_on(async move {
        let (store, lease) = decide(&url).await;
        loop {
            let batch: Vec<_> = (0..BATCH).map(|_| agreement("a")).collect();
            store
                .commit(lease.epoch, &batch.iter().map(create).collect::<Vec<_>>())
                .await
                .expect("it can be stored");
            let ids: Vec<_> = batch.iter().map(|one| one.id.to_string()).collect();
            println!("stored {}", ids.join(" "));
            std::io::stdout().flush().expect("the output is read");
        }
    });
}

#[test]
fn batches_are_stored_exactly_as_told_while_their_sessions_are_being_ended() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (store, mut lease) = decide(&url).await;
        let ender = SessionEnder::start(&url, "bespeak", 1);
        let mut told: BTreeMap<Uuid, Result<(), Error>> = BTreeMap::new();
        for _ in 0..60 {
            let one = agreement("a");
            ender.end();
            let answer = store.commit(lease.epoch, &[create(&one)]).await;
            told.insert(one.id, answer);
        }
        let ended = ender.finish().await;
        let acknowledged = told.values().filter(|told| told.is_ok()).count();
        assert!(ended >= 20, "only {ended} sessions were ended");
        assert!(acknowledged >= 10, "only {acknowledged} batches were stored");

        let direct = Store::open(&url).await.expect("the server is there");
        direct
            .retake_lease(&mut lease)
            .await
            .expect("nothing is left open");
        for (id, told) in &told {
            let stored = agreements::agreement(&direct, *id)
                .await
                .expect("it can be read")
                .is_some();
            match told {
                Ok(()) => assert!(stored, "{id} was acknowledged"),
                Err(Error::Unavailable(_)) => assert!(!stored, "{id} was refused"),
                Err(Error::Unknown { .. }) => {}
                Err(error) => panic!("{id}: {error:?}"),
            }
            let lines = agreements::events_of_agreement(&direct, *id)
                .await
                .expect("they can be read")
                .len();
            assert_eq!(lines, usize::from(stored), "{id} is stored once or not at all");
        }
    });
}

#[test]
fn a_lease_whose_session_was_ended_is_taken_again_unless_another_process_was_faster() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (store, mut lease) = decide(&url).await;
        let epoch = lease.epoch;
        store.check_lease(&mut lease).await.expect("it holds");
        let mut administrator = PgConnection::connect(&url).await.expect("the server is there");
        end_deciders(&mut administrator).await;
        let gone = store.check_lease(&mut lease).await;
        assert!(matches!(gone, Err(Error::Unavailable(_))), "{gone:?}");
        store
            .commit(epoch, &[create(&agreement("a"))])
            .await
            .expect("no process has taken over yet");
        store.retake_lease(&mut lease).await.expect("the lock is free");
        store.check_lease(&mut lease).await.expect("it holds again");
        assert_eq!(lease.epoch, epoch);
        let refused = store.acquire_lease().await.expect_err("there is one decider");
        assert!(matches!(refused, Error::LeaseHeld(_)), "{refused:?}");

        end_deciders(&mut administrator).await;
        let other = store
            .acquire_lease()
            .await
            .expect("the lock died with its session");
        for _ in 0..2 {
            let lost = store.retake_lease(&mut lease).await;
            assert!(matches!(lost, Err(Error::LeaseLost)), "{lost:?}");
        }
        other.release().await;
        let lost = store.retake_lease(&mut lease).await;
        assert!(matches!(lost, Err(Error::LeaseLost)), "for good: {lost:?}");
        let late = store.commit(epoch, &[create(&agreement("a"))]).await;
        assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
    });
}

/// Another session may have the lock and no epoch yet: it may be our own, where the server has not noticed that it is gone.
#[test]
fn a_lock_that_another_session_has_without_an_epoch_is_waited_for() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (store, mut lease) = decide(&url).await;
        let mut administrator = PgConnection::connect(&url).await.expect("the server is there");
        end_deciders(&mut administrator).await;
        sqlx::query("SELECT pg_advisory_lock(7018974218)")
            .execute(&mut administrator)
            .await
            .expect("the lock is free");
        let held = store.retake_lease(&mut lease).await;
        assert!(matches!(held, Err(Error::LeaseHeld(_))), "{held:?}");
        administrator.close().await.expect("it can be closed");
        store.retake_lease(&mut lease).await.expect("the lock is free");
    });
}

/// Ends the sessions of deciders, as an administrator may.
async fn end_deciders(administrator: &mut PgConnection) {
    sqlx::query(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'bespeak decider'",
    )
    .execute(administrator)
    .await
    .expect("a superuser may");
}
