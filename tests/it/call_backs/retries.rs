//! Until when calls are tried: for a day after the first failure, and as long as a key of the party works.

use std::time::Duration;

use address::Policy;
use callbacks::{CallBacks, DroppedCounts};
use domain::clock::{Clock, MICROS_PER_SECOND};
use store::keys::{self, KeyChange};
use store::{Store, call_backs, registrations};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::call_backs::any;
use crate::pending::{OPEN, accepted, becomes, pending};
use crate::store::registrations::{NEWEST, add_key, registered};
use crate::store::{open, tamper};
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::receiver::{Receiver, answered};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    events_are_dropped_a_day_after_the_first_failure_and_not_after_themselves,
    events_of_several_agreements_are_told_at_the_same_time_and_moves_between_as_one,
    a_party_whose_last_key_is_revoked_during_a_call_is_told_nothing_more;
    a_release_on_postgres:
    a_decision_is_given_up_a_day_after_its_first_failure_and_not_after_itself,
);

const DEADLINE: Duration = Duration::from_mins(1);
const DAY: i64 = 24 * 3_600 * MICROS_PER_SECOND;
const NOW: i64 = 2_000_000_000 * MICROS_PER_SECOND;

/// Adds an event of physics, about an agreement or about none.
async fn add_event(url: &str, number: i64, kind: &str, agreement: Option<u128>, at: i64) {
    let agreement = agreement.map(Uuid::from_u128);
    let agreement = match agreement {
        // SQLite keeps ids as bytes.
        Some(id) if url.starts_with("sqlite:") => format!("x'{}'", id.simple()),
        Some(id) => format!("'{id}'"),
        None => "NULL".to_owned(),
    };
    let event = format!(
        "INSERT INTO party_events (party, number, id, at_us, kind, agreement, detail) \
         VALUES ('physics', {number}, 'evt_{number}', {at}, '{kind}', {agreement}, 'as planned')"
    );
    tamper(url, &event).await;
}

/// The next call, which comes before long.
async fn next_call(listener: &TcpListener) -> TcpStream {
    let accepted = tokio::time::timeout(DEADLINE, listener.accept()).await;
    accepted.expect("a call comes").expect("it is taken").0
}

async fn events_of_several_agreements_are_told_at_the_same_time_and_moves_between_as_one(url: String) {
    let listener = TcpListener::bind(any()).await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (store, _) = registered(
        &url,
        &[("physics", "planner")],
        &format!("http://{address}/decided?a=b"),
    )
    .await;
    tamper(&url, &format!("UPDATE party_events SET at_us = {NOW}")).await;
    for (number, kind, agreement) in [
        (201, "accepted", 1),
        (202, "accepted", 2),
        (203, "moved", 1),
        (204, "accepted", 3),
        (205, "moved", 1),
        (206, "moved", 1),
        (207, "started", 1),
    ] {
        add_event(&url, number, kind, Some(agreement), NOW).await;
    }
    let clock = Clock::standing_at(NOW);
    let (calls, stop, _) = calling(&store, &clock);
    let number = |body: &str| {
        let event: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
        event["cursor"].as_i64().expect("a number")
    };
    // The first event shows that the address takes events.
    let call = next_call(&listener).await;
    let (_, body) = answered(call, 204).await.expect("it is a call");
    assert_eq!(number(&body), 100);
    // Then one event of each agreement is on its way, before one of these is answered.
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(next_call(&listener).await);
    }
    let mut told = Vec::new();
    for call in open {
        let (_, body) = answered(call, 204).await.expect("it is a call");
        told.push(number(&body));
    }
    told.sort_unstable();
    assert_eq!(told, [NEWEST, 201, 202, 204]);
    for expected in [206, 207] {
        let call = next_call(&listener).await;
        let (_, body) = answered(call, 204).await.expect("it is a call");
        assert_eq!(number(&body), expected);
    }
    eventually("the record of what was told", DEADLINE, async || {
        let all = registrations::registrations_of_party(&store, "physics")
            .await
            .expect("it can be read");
        (all[0].told == 207).then_some(())
    })
    .await;
    stop.cancel();
    calls.await.expect("it ends");
}

/// Has the calls of a store made until a signal; with the count of what is dropped.
fn calling(store: &Store, clock: &Clock) -> (JoinHandle<()>, CancellationToken, DroppedCounts) {
    let stop = CancellationToken::new();
    let policy = Policy {
        private_addresses: true,
    };
    let calls = CallBacks::new(store.clone(), clock.clone(), policy, "http://localhost".into());
    let dropped = calls.dropped();
    (tokio::spawn(calls.run(stop.clone())), stop, dropped)
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
    let told = Receiver::answer(nobody_yet.listen(16).expect("it can listen"), &[500]);
    let (calls, stop, dropped) = calling(&store, &clock);
    let due = eventually("a failure is noted", DEADLINE, async || {
        let all = call_backs::call_backs_due(&store, NOW + DAY, 1, 1).await;
        let call = all.expect("it can be read").remove(0).call;
        ((call.attempts, call.since) == (1, NOW)).then_some(call.due)
    })
    .await;
    assert_eq!(due, NOW + MICROS_PER_SECOND);
    clock.set(NOW + DAY);
    told.hears(2).await;
    eventually("it is given up", DEADLINE, async || {
        let waiting = call_backs::call_backs_waiting(&store)
            .await
            .expect("it can be read");
        (waiting == 0).then_some(())
    })
    .await;
    assert_eq!(told.bodies.lock().await.len(), 2);
    eventually("the count of what was dropped", DEADLINE, async || {
        (dropped.counts() == [("event", 0), ("decision", 1)]).then_some(())
    })
    .await;
    stop.cancel();
    calls.await.expect("it ends");
}

async fn events_are_dropped_a_day_after_the_first_failure_and_not_after_themselves(url: String) {
    let told = Receiver::listen(any(), &[500, 500, 500, 500, 204]).await;
    let (store, receivers) = registered(&url, &[("physics", "planner")], &told.url()).await;
    // As after two days without the service.
    tamper(
        &url,
        &format!("UPDATE party_events SET at_us = {}", NOW - 2 * DAY),
    )
    .await;
    let clock = Clock::standing_at(NOW);
    let (calls, stop, dropped) = calling(&store, &clock);
    let mut due = NOW;
    for attempts in 1..=3 {
        clock.set(due);
        due = eventually("a failure is noted", DEADLINE, async || {
            let all = registrations::registrations_of_party(&store, "physics")
                .await
                .expect("it can be read");
            (all[0].attempts == attempts).then(|| all[0].due)
        })
        .await;
    }
    assert_eq!(told.hears(3).await.len(), 3);
    assert_eq!(dropped.counts(), [("event", 0), ("decision", 0)]);
    clock.set(NOW + DAY);
    let bodies = told.hears(4).await;
    let same = bodies.iter().take_while(|body| **body == bodies[0]).count();
    assert_eq!(same, 4, "the last attempt comes a day after the first");
    // The one after it has waited as long.
    eventually("the record of what was dropped", DEADLINE, async || {
        let all = registrations::registrations_of_party(&store, "physics")
            .await
            .expect("it can be read");
        let stands = (all[0].id, all[0].told, all[0].failing);
        (stands == (receivers[0].id, NEWEST, Some(NOW))).then_some(())
    })
    .await;
    eventually("the count of what was dropped", DEADLINE, async || {
        (dropped.counts() == [("event", 2), ("decision", 0)]).then_some(())
    })
    .await;
    // What happens later is told, when the address takes it again.
    add_event(&url, NEWEST + 1, "started", None, NOW + DAY).await;
    clock.set(NOW + DAY + 3_600 * MICROS_PER_SECOND);
    let bodies = told.hears(5).await;
    assert!(bodies[4].contains(&format!("evt_{}", NEWEST + 1)), "{bodies:?}");
    eventually("the record of what was told", DEADLINE, async || {
        let all = registrations::registrations_of_party(&store, "physics")
            .await
            .expect("it can be read");
        let stands = (all[0].told, all[0].attempts, all[0].failing);
        (stands == (NEWEST + 1, 0, None)).then_some(())
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
    let (calls, stop, _) = calling(&store, &clock);
    // The first of two events is on its way.
    let (call, _) = listener.accept().await.expect("a call");
    let keys = keys::all_keys(&store).await.expect("they can be read");
    for key in keys.iter().filter(|key| key.party == "physics") {
        assert!(
            keys::revoke_key(&store, key.id, KeyChange { by: None, at: NOW })
                .await
                .expect("it is revoked")
        );
    }
    answered(call, 204).await.expect("it is a call");
    eventually("the record of what was told", DEADLINE, async || {
        let all = registrations::registrations_of_party(&store, "physics")
            .await
            .expect("it can be read");
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
