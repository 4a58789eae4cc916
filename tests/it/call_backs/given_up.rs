//! Until when calls are tried: for a day after the first failure, and as long as a key of the party works.

use std::time::Duration;

use bespeak::address::Policy;
use bespeak::callbacks::CallBacks;
use bespeak::clock::{Clock, MICROS_PER_SECOND};
use bespeak::store::{KeyChange, Store};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::call_backs::any;
use crate::pending::{OPEN, accepted, becomes, pending};
use crate::store::registrations::{NEWEST, add_key, registered};
use crate::store::{open, tamper};
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::told::{Told, answered};

on_both_engines!(
    an_event_is_given_up_a_day_after_its_first_failure_and_not_after_itself,
    a_party_whose_last_key_is_revoked_during_a_call_is_told_nothing_more;
    a_release_on_postgres:
    a_decision_is_given_up_a_day_after_its_first_failure_and_not_after_itself,
);

const DEADLINE: Duration = Duration::from_mins(1);
const DAY: i64 = 24 * 3_600 * MICROS_PER_SECOND;
const NOW: i64 = 2_000_000_000 * MICROS_PER_SECOND;

/// Has the calls of a store made until a signal.
fn calling(store: &Store, clock: &Clock) -> (JoinHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let policy = Policy {
        private_addresses: true,
    };
    let calls = CallBacks::new(store.clone(), clock.clone(), policy, "http://localhost".into());
    (tokio::spawn(calls.run(stop.clone())), stop)
}

async fn a_decision_is_given_up_a_day_after_its_first_failure_and_not_after_itself(url: String) {
    let server = Server::configured(Some(&url), OPEN);
    let client = server.client();
    let nobody_yet = TcpSocket::new_v4().expect("a socket can be made");
    nobody_yet.bind(any()).expect("a port is free");
    let address = nobody_yet.local_addr().expect("it is bound");
    let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
    let offer = pending(&offer, Some(&format!("http://{address}/decided?a=b")));
    becomes(
        &client,
        &accepted(&client.post("/agreements", offer).await),
        "Observed",
    )
    .await;
    drop((client, server));
    // As after two days without the service, which has not tried it before.
    let long_ago = NOW - 2 * DAY;
    tamper(
        &url,
        &format!("UPDATE call_backs SET attempts = 0, created_us = {long_ago}, due_us = {long_ago}"),
    )
    .await;
    let store = open(&url).await;
    let clock = Clock::standing_at(NOW);
    let told = Told::answer(nobody_yet.listen(16).expect("it can listen"), &[500]);
    let (calls, stop) = calling(&store, &clock);
    let due = eventually("a failure is noted", DEADLINE, async || {
        let all = store.call_backs_due(NOW + DAY, 1, 1).await;
        let call = all.expect("it can be read").remove(0).call;
        ((call.attempts, call.since) == (1, NOW)).then_some(call.due)
    })
    .await;
    assert_eq!(due, NOW + MICROS_PER_SECOND);
    clock.set(NOW + DAY);
    told.hears(2).await;
    eventually("it is given up", DEADLINE, async || {
        let waiting = store.call_backs_waiting().await.expect("it can be read");
        (waiting == 0).then_some(())
    })
    .await;
    assert_eq!(told.bodies.lock().await.len(), 2);
    stop.cancel();
    calls.await.expect("it ends");
}

async fn an_event_is_given_up_a_day_after_its_first_failure_and_not_after_itself(url: String) {
    let told = Told::listen(any(), &[500, 500, 500, 500, 204]).await;
    let (store, of) = registered(&url, &[("physics", "planner")], &told.url()).await;
    // As after two days without the service.
    tamper(
        &url,
        &format!("UPDATE party_events SET at_us = {}", NOW - 2 * DAY),
    )
    .await;
    let clock = Clock::standing_at(NOW);
    let (calls, stop) = calling(&store, &clock);
    let mut due = NOW;
    for attempts in 1..=3 {
        clock.set(due);
        due = eventually("a failure is noted", DEADLINE, async || {
            let all = store.registrations("physics").await.expect("it can be read");
            (all[0].attempts == attempts).then(|| all[0].due)
        })
        .await;
    }
    assert_eq!(told.hears(3).await.len(), 3);
    clock.set(NOW + DAY);
    let bodies = told.hears(5).await;
    let same = bodies.iter().take_while(|body| **body == bodies[0]).count();
    assert_eq!(same, 4, "the last attempt comes a day after the first");
    eventually("the record of what was told", DEADLINE, async || {
        let all = store.registrations("physics").await.expect("it can be read");
        let stands = (all[0].id, all[0].told, all[0].attempts, all[0].failing);
        (stands == (of[0].id, NEWEST, 0, None)).then_some(())
    })
    .await;
    stop.cancel();
    calls.await.expect("it ends");
}

async fn a_party_whose_last_key_is_revoked_during_a_call_is_told_nothing_more(url: String) {
    let listener = TcpListener::bind(any()).await.expect("a port is free");
    let address = format!(
        "http://{}/decided?a=b",
        listener.local_addr().expect("it is bound")
    );
    let (store, _) = registered(&url, &[("physics", "planner")], &address).await;
    // Older ones would be forgotten.
    tamper(&url, &format!("UPDATE party_events SET at_us = {NOW}")).await;
    let clock = Clock::standing_at(NOW);
    let (calls, stop) = calling(&store, &clock);
    // The first of two events is on its way.
    let (call, _) = listener.accept().await.expect("a call");
    let keys = store.keys().await.expect("they can be read");
    for key in keys.iter().filter(|key| key.party == "physics") {
        assert!(
            store
                .revoke_key(key.id, KeyChange { by: None, at: NOW })
                .await
                .expect("it is revoked")
        );
    }
    answered(call, 204).await.expect("it is a call");
    eventually("the record of what was told", DEADLINE, async || {
        let all = store.registrations("physics").await.expect("it can be read");
        (all[0].told >= 100).then_some(())
    })
    .await;
    // The second event waits for the next key.
    clock.set(NOW + DAY);
    add_key(&store, "physics", None).await;
    let (call, _) = listener.accept().await.expect("a call");
    let (headers, _) = answered(call, 204).await.expect("it is a call");
    let told_at = (NOW + DAY) / MICROS_PER_SECOND;
    assert_eq!(headers["webhook-timestamp"], told_at.to_string());
    stop.cancel();
    calls.await.expect("it ends");
}
