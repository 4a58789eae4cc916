//! The right to decide on a PostgreSQL database hangs on one session, and sessions end: the service notices, and takes it
//! again or gives up.

use std::time::Duration;

use reqwest::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};

use crate::store::tamper;
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::postgres::OwnServer;
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};

/// Far longer than the service takes to notice anything.
const DEADLINE: Duration = Duration::from_mins(1);

/// The processes of sessions that hold the deciders' lock.
const HOLDERS: &str = "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) \
    WHERE locktype = 'advisory' AND granted AND application_name LIKE 'bespeak %decider' AND datname = current_database()";

#[test]
fn a_lease_whose_session_was_ended_is_taken_again_without_anything_to_write() {
    let database = TestDatabase::postgres();
    let server = Server::start(database.url());
    run(async {
        let client = server.client();
        offer(&client).await;
        let mut administrator = PgConnection::connect(database.url())
            .await
            .expect("the server is there");
        for _ in 0..3 {
            let before = holder(&mut administrator)
                .await
                .expect("the service holds the lock");
            end_holder(&mut administrator).await;
            let taken = async || holder(&mut administrator).await.filter(|pid| *pid != before);
            eventually("another session with the lock", DEADLINE, taken).await;
            eventually_ready(&client).await;
            offer(&client).await;
        }
    });
    assert_second_is_refused(&server);
    server.assert_verified();
}

on_both_engines!(a_process_under_an_epoch_that_is_over_ends_without_anything_to_write);

async fn a_process_under_an_epoch_that_is_over_ends_without_anything_to_write(url: String) {
    let mut server = Server::start(&url);
    // As where its lock did not keep another process out, and that one is gone again.
    tamper(&url, "UPDATE lease SET epoch = epoch + 1").await;
    assert_gave_way(&mut server);
}

#[test]
fn a_process_that_was_overtaken_ends_without_anything_to_write() {
    let database = TestDatabase::postgres();
    let mut first = Server::start(database.url());
    let client = first.client();
    run(offer(&client));
    // It stands still while its session ends and another process has the lock, or it might take that again first.
    signal(&first, Signal::STOP);
    run(async {
        let mut administrator = PgConnection::connect(database.url())
            .await
            .expect("the server is there");
        end_holder(&mut administrator).await;
        eventually("the end of its session", DEADLINE, async || {
            holder(&mut administrator).await.is_none().then_some(())
        })
        .await;
    });
    let second = Server::start(database.url());
    signal(&first, Signal::CONT);
    let status = first.wait_until_ended();
    assert!(
        !status.success(),
        "it must not look as if it was told to stop: {status}"
    );
    assert!(
        first.log().contains("another process decides now"),
        "{}",
        first.log()
    );
    run(offer(&second.client()));
    second.assert_verified();
}

#[test]
fn a_lease_is_taken_again_after_a_restart_of_the_database() {
    let mut database = OwnServer::start(None);
    let server = Server::start(database.url());
    let client = server.client();
    run(offer(&client));
    database.restart();
    run(async {
        eventually("the lock in a new session", DEADLINE, async || {
            let mut administrator = PgConnection::connect(database.url()).await.ok()?;
            holder(&mut administrator).await
        })
        .await;
        eventually_ready(&client).await;
        offer(&client).await;
    });
    assert_second_is_refused(&server);
    server.assert_verified();
}

/// Sends a signal to the process of a service.
fn signal(server: &Server, signal: Signal) {
    let process = i32::try_from(server.process()).ok().and_then(Pid::from_raw);
    kill_process(process.expect("the number of a process"), signal).expect("the service can be signalled");
}

/// Asserts that a service does not get ready again, and ends with a failure that names the reason.
fn assert_gave_way(server: &mut Server) {
    let status = server.wait_until_ended();
    assert!(
        !status.success(),
        "it must not look as if it was told to stop: {status}"
    );
    let log = server.log();
    assert!(log.contains("another process decides now"), "{log}");
}

/// The process of the session that holds the lock.
pub(crate) async fn holder(administrator: &mut PgConnection) -> Option<i32> {
    sqlx::query_scalar(HOLDERS)
        .fetch_optional(administrator)
        .await
        .ok()
        .flatten()
}

/// Ends the session that holds the lock, as an administrator may.
async fn end_holder(administrator: &mut PgConnection) {
    let ended = format!("SELECT pg_terminate_backend(pid) FROM ({HOLDERS}) AS holders");
    sqlx::query(sqlx::AssertSqlSafe(ended))
        .execute(administrator)
        .await
        .expect("a superuser may");
}

async fn eventually_ready(client: &Client) {
    eventually("readiness", DEADLINE, async || {
        (client.get("/readyz").await.status == StatusCode::OK).then_some(())
    })
    .await;
}

/// Makes an offer, which is stored.
async fn offer(client: &Client) {
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    client.post("/agreements", offer.xml()).await.created();
}

/// Asserts that another process on the same data folder does not start.
fn assert_second_is_refused(server: &Server) {
    let second = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success(), "a second process decides");
    assert!(said.contains("another process uses the data folder"), "{said}");
}
