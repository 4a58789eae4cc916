//! Peers that fail: they neither hold up the others nor leave anything behind, and what they lose gets another place.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::harness::{Domain, Plan, start_domains, wanted};
use crate::support::breakable_proxy::Break;
use crate::support::offers::hours_ahead;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// A server that reads whatever comes, and then says these bytes; nothing where there are none. Its address.
async fn server_saying(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = vec![0; 65_536];
                while matches!(stream.read(&mut read).await, Ok(1..)) {
                    if !bytes.is_empty() && stream.write_all(bytes).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address.to_string()
}

/// A domain without room whose peers are `two`, which has room, and these addresses.
async fn beside(others: &[(&str, String)], nodes: u32) -> Vec<Domain> {
    let other = |(name, address): &(&str, String)| {
        format!(
            "[[peer]]\nname = \"{name}\"\naddress = \"http://{address}\"\nkey = \"bsp_the_key_of_this_peer\"\n"
        )
    };
    let more: String = others.iter().map(other).collect();
    let plans = [
        Plan {
            name: "one",
            nodes,
            peers: &["two"],
            last: more,
            ..Plan::default()
        },
        Plan {
            name: "two",
            nodes: 4,
            ..Plan::default()
        },
    ];
    start_domains(&plans).await
}

async fn post(client: &crate::support::client::Client, path: &str, body: &Value) -> Value {
    let answer = client.post_json(path, body).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.body);
    answer.json()
}

/// An agreement of `one` that is at `two`: its id.
async fn agreed_at_peer(domains: &[Domain], start: i64) -> Value {
    let request = wanted(2, 60, (start, start + HOUR));
    let made = post(&domains[0].requester, "/agreements", &request).await;
    assert_eq!(made["resource"], "two", "{made}");
    made["id"].clone()
}

async fn no_open_negotiation(domain: &Domain) {
    eventually("nothing is held any more", PATIENCE, async || {
        let list = domain.server.client().get_json("/negotiations").await;
        let all = list["negotiations"].as_array().cloned().unwrap_or_default();
        all.iter().all(|each| each["state"] != "open").then_some(())
    })
    .await;
}

#[test]
fn offers_come_beside_a_peer_that_never_answers_and_one_that_answers_rubbish() {
    run(async {
        let silent = server_saying(b"").await;
        let rubbish = server_saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<rubbish>").await;
        let domains = beside(&[("silent", silent), ("rubbish", rubbish)], 1).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        for _ in 0..3 {
            let answer = one.negotiate(&wanted(2, 60, (start, start + HOUR))).await;
            assert_eq!(answer["offers"][0]["resource"], "two", "{answer}");
            let id = answer["id"].as_str().unwrap_or_default();
            post(
                &one.requester,
                &format!("/negotiations/{id}/terminate"),
                &json!({}),
            )
            .await;
        }
        no_open_negotiation(two).await;
        assert!(two.agreements().await.is_empty());
        one.server.assert_verified();
        two.server.assert_verified();
    });
}

#[test]
fn a_peer_that_says_yes_and_then_no_leaves_a_rejected_agreement_and_holds_nothing() {
    run(async {
        let domains = beside(&[], 1).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        let answer = one.negotiate(&wanted(2, 60, (start, start + HOUR))).await;
        two.way.break_at("POST /agreements HTTP", Break::Refuse);
        let refused = one.accept(&answer["offers"][0], "k").await;
        assert_eq!(refused.status.as_u16(), 410, "{}", refused.body);
        let again = one.accept(&answer["offers"][0], "k").await;
        assert_eq!(again.status.as_u16(), 410, "{}", again.body);
        let all = one.agreements().await;
        assert!(all.iter().all(|each| each["state"] == "Rejected"), "{all:?}");
        assert!(two.agreements().await.is_empty());
        one.server.assert_verified();
    });
}

#[test]
fn what_has_lost_its_place_here_is_carried_out_by_a_peer_before_it_is_broken() {
    run(async {
        let domains = beside(&[], 2).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        let own = post(
            &one.requester,
            "/agreements",
            &wanted(2, 60, (start, start + HOUR)),
        )
        .await;
        assert_eq!(own["resource"], "of-one", "{own}");
        let operator = one.server.client();
        let down = json!({ "state": "down", "reason": "a fire" });
        let path = "/resources/of-one/nodes/0,1";
        let said = operator.request(Method::PUT, path).json(&down);
        let said = operator.send(said).await;
        assert!(said.status.is_success(), "{}", said.body);
        eventually("the peer carries it out", PATIENCE, async || {
            let is = one.agreement(&own["id"]).await;
            let there = two.agreements().await;
            (is["resource"] == "two" && is["state"] == "Observed" && there.len() == 1).then_some(())
        })
        .await;
        one.server.assert_verified();
        two.server.assert_verified();
    });
}

#[test]
fn what_no_peer_carries_out_is_broken_as_ever() {
    run(async {
        let domains = beside(&[], 8).await;
        let one = &domains[0];
        let start = hours_ahead(2);
        // More than the peer has.
        let own = post(
            &one.requester,
            "/agreements",
            &wanted(8, 60, (start, start + HOUR)),
        )
        .await;
        let operator = one.server.client();
        let said = operator
            .request(Method::PUT, "/resources/of-one/nodes/0")
            .json(&json!({ "state": "down" }));
        let said = operator.send(said).await;
        assert!(said.status.is_success(), "{}", said.body);
        eventually("it is broken", PATIENCE, async || {
            let is = one.agreement(&own["id"]).await;
            (is["outcome"] == "lost").then_some(())
        })
        .await;
        one.server.assert_verified();
    });
}

#[test]
fn what_a_peer_loses_gets_another_place_here() {
    run(async {
        let domains = beside(&[], 2).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        // Its own nodes are taken when it asks, and free again when the peer fails.
        let block = post(
            &one.requester,
            "/agreements",
            &wanted(2, 3_580, (start, start + HOUR)),
        )
        .await;
        let id = agreed_at_peer(&domains, start).await;
        let ended = format!(
            "/agreements/{}/terminate",
            block["id"].as_str().unwrap_or_default()
        );
        post(&one.requester, &ended, &json!({})).await;
        let there = two.agreements().await.remove(0);
        let evict = format!("/agreements/{}/evict", there["id"].as_str().unwrap_or_default());
        let operator = two.server.client();
        let evicted = operator
            .request(Method::POST, &evict)
            .header("If-Match", "*")
            .json(&json!({ "reason": "its nodes are needed" }));
        let evicted = operator.send(evicted).await;
        assert!(evicted.status.is_success(), "{}", evicted.body);
        eventually("it has a place here", PATIENCE, async || {
            let is = one.agreement(&id).await;
            (is["resource"] == "of-one" && is["state"] == "Observed").then_some(())
        })
        .await;
        one.server.assert_verified();
    });
}

#[test]
fn an_offer_that_is_accepted_twice_while_its_peer_is_silent_is_one_agreement() {
    run(async {
        let domains = beside(&[], 1).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        let answer = one.negotiate(&wanted(2, 60, (start, start + HOUR))).await;
        let offer = &answer["offers"][0];
        two.way.break_at("POST /agreements HTTP", Break::CutAfter);
        let (first, second) = tokio::join!(one.accept(offer, "first"), one.accept(offer, "second"));
        assert_eq!(first.status.as_u16(), 201, "{}", first.body);
        assert_eq!(second.status.as_u16(), 201, "{}", second.body);
        assert_eq!(first.json()["id"], second.json()["id"]);
        assert_eq!(one.agreements().await.len(), 1);
        assert_eq!(two.agreements().await.len(), 1);
        one.server.assert_verified();
    });
}

#[test]
fn what_a_peer_loses_while_nothing_is_free_here_is_asked_for_again_once() {
    run(async {
        let domains = beside(&[], 1).await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        let id = agreed_at_peer(&domains, start).await;
        let there = two.agreements().await.remove(0);
        let evict = format!("/agreements/{}/evict", there["id"].as_str().unwrap_or_default());
        let evicted = post(
            &two.server.client(),
            &evict,
            &json!({ "reason": "its nodes are needed" }),
        )
        .await;
        assert_eq!(evicted["agreement"]["outcome"], "lost", "{evicted}");
        eventually("the peer has another one for it", PATIENCE, async || {
            let live = two.agreements().await;
            let live = live.iter().filter(|live| live["state"] == "Observed").count();
            let is = one.agreement(&id).await;
            (live == 1 && is["state"] == "Observed" && is["resource"] == "two").then_some(())
        })
        .await;
        let path = format!("/agreements/{}/events", id.as_str().unwrap_or_default());
        let events = one.requester.get_json(&path).await;
        let forwarded = events["events"].as_array().into_iter().flatten();
        let forwarded = forwarded
            .filter(|forwarded| forwarded["kind"] == "forwarded")
            .count();
        assert_eq!(forwarded, 2, "when it was accepted, and once again: {events}");
        one.server.assert_verified();
        two.server.assert_verified();
    });
}

#[test]
fn a_service_does_not_start_without_a_peer_that_it_needs() {
    run(async {
        let mut domains = beside(&[], 1).await;
        let start = hours_ahead(2);
        agreed_at_peer(&domains, start).await;
        let one = &mut domains[0].server;
        one.kill9();
        one.reconfigure("[[resource]]\nname = \"of-one\"\nkind = \"local\"\nnodes = 1\n");
        let refused = one.run(&["serve", "--listen", "127.0.0.1:0"]);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && why.contains("peer two"), "{why}");
    });
}
