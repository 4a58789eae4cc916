//! Ends and changes of agreements at peers: their cost there is told first, and a change is made there, also of running work.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Domain, Plan, start_domains, wanted};
use crate::support::breakable_proxy::Break;
use crate::support::offers::{date_time, hours_ahead, now};
use crate::support::{eventually, in_seconds, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// A domain with one node, and its peer with enough, where it costs half of the price to end an agreement.
async fn two_domains() -> Vec<Domain> {
    let plans = [
        Plan {
            peers: &["two"],
            // An agreement and the one in its place have no room beside each other.
            of_peers: "nodes = 3\n",
            cancellation: 10,
            ..Plan::default()
        },
        Plan {
            name: "two",
            nodes: 4,
            cancellation: 50,
            ..Plan::default()
        },
    ];
    start_domains(&plans).await
}

async fn post(domain: &Domain, path: &str, body: &Value) -> Value {
    let answer = domain.requester.post_json(path, body).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.body);
    answer.json()
}

/// The path of an agreement, or of something below it.
fn path(id: &Value, below: &str) -> String {
    format!("/agreements/{}{below}", id.as_str().unwrap_or_default())
}

/// Waits until an account has a sum, in millionths.
async fn settled(domain: &Domain, account: &str, expected: i64) {
    eventually("the money is posted", PATIENCE, async || {
        (domain.balance(account).await == expected).then_some(())
    })
    .await;
}

#[test]
fn the_end_of_an_agreement_at_a_peer_costs_at_least_what_the_peer_charges_as_was_said_before() {
    run(async {
        let mut domains = two_domains().await;
        let (one, two) = domains.split_at_mut(1);
        let (one, two) = (&one[0], &mut two[0]);
        let start = hours_ahead(2);
        let mut wish = wanted(2, 3_580, (start, start + 2 * HOUR));
        wish["template"] = json!("guaranteed-reservation");
        let made = post(one, "/agreements", &wish).await;
        assert_eq!(made["resource"], "two", "{made}");
        let id = &made["id"];
        // Two nodes for an hour at 1 EUR.
        let half = json!({ "amount": "1", "currency": "EUR" });
        let ending = one.requester.get_json(&path(id, "/ending")).await;
        assert_eq!(
            ending,
            json!({
                "charges": [{ "kind": "cancellation", "amount": half, "reason": "two charges that for its end" }],
                "credits": [], "stopsWork": false,
                "atPeer": { "peer": "two", "charge": half },
            })
        );
        assert_eq!(one.agreement(id).await["state"], "Observed", "nothing is ended");
        let there = eventually("its guarantees there", PATIENCE, async || {
            let shown = one.agreement(id).await;
            let there = shown["atPeers"][0].clone();
            there["guarantees"].is_array().then_some(there)
        })
        .await;
        assert_eq!(
            (&there["peer"], &there["state"]),
            (&json!("two"), &json!("Observed"))
        );
        let own = one.agreement(id).await;
        let names = |value: &Value| -> Vec<Value> {
            let all = value["guarantees"].as_array().cloned().unwrap_or_default();
            all.into_iter()
                .map(|each| json!([each["name"], each["state"]]))
                .collect()
        };
        assert_eq!(names(&there), names(&own), "as ours stand");
        post(one, &path(id, "/terminate"), &json!({})).await;
        settled(one, "party:requester", -1_000_000).await;
        settled(two, "party:one", -1_000_000).await;
        settled(one, "peer:two", 1_000_000).await;
        let shown = one.agreement(id).await;
        assert_eq!(
            (&shown["atPeers"][0]["state"], &shown["atPeers"][0]["charged"]),
            (&json!("Terminated"), &half),
            "{shown}"
        );
        // An agreement can be ended while its peer does not answer.
        let made = post(one, "/agreements", &wish).await;
        two.server.kill9();
        let ending = one.requester.get_json(&path(&made["id"], "/ending")).await;
        assert_eq!(ending["atPeer"], json!({ "peer": "two" }), "{ending}");
        let tenth = json!([{ "kind": "cancellation", "amount": { "amount": "0.2", "currency": "EUR" },
            "reason": "10 % of its price of 2 EUR" }]);
        assert_eq!(ending["charges"], tenth);
        post(one, &path(&made["id"], "/terminate"), &json!({})).await;
        settled(one, "party:requester", -1_200_000).await;
        two.kill_and_restart();
        settled(two, "party:one", -2_000_000).await;
        settled(one, "peer:two", 2_000_000).await;
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn an_agreement_at_a_peer_is_changed_there_for_the_fee_that_was_offered() {
    run(async {
        let domains = two_domains().await;
        let (one, two) = (&domains[0], &domains[1]);
        let start = hours_ahead(2);
        let wish = wanted(2, 3_580, (start, start + 2 * HOUR));
        let made = post(one, "/agreements", &wish).await;
        let change = json!({ "agreement": made["id"], "durationSeconds": HOUR / 2 });
        let answer = one.negotiate(&change).await;
        let offer = &answer["offers"][0];
        // Half of the price is given up. A tenth of it is ours, half of it the peer's.
        let fee = json!({ "amount": "0.5", "currency": "EUR" });
        assert_eq!(
            (&offer["resource"], &offer["fee"]),
            (&json!("two"), &fee),
            "{answer}"
        );
        let accepted = one.accept(offer, "k").await;
        assert_eq!(accepted.status.as_u16(), 201, "{}", accepted.body);
        let new = accepted.json();
        assert_eq!(one.agreement(&made["id"]).await["supersededBy"], new["id"]);
        let there = two.agreements().await;
        let of_state = |state: &str| there.iter().filter(|each| each["state"] == state).count();
        assert_eq!((of_state("Observed"), of_state("Complete")), (1, 1), "{there:?}");
        settled(one, "party:requester", -500_000).await;
        settled(one, "peer:two", 500_000).await;
        settled(two, "party:one", -500_000).await;
        assert_eq!(one.agreement(&new["id"]).await["state"], "Observed");
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn work_that_runs_at_a_peer_goes_on_beyond_its_end_where_the_peer_offers_that() {
    run(async {
        let (domains, made, longer, answer, new) = in_seconds(20, async |seconds| {
            let domains = two_domains().await;
            let one = &domains[0];
            let start = now();
            let lasts = u32::try_from(seconds).expect("a small number");
            let made = post(one, "/agreements", &wanted(2, lasts, (start, start + HOUR))).await;
            eventually("it runs", PATIENCE, async || {
                let shown = one.agreement(&made["id"]).await;
                shown["started"].is_string().then_some(())
            })
            .await;
            let longer = 60 + 3 * seconds;
            let end = date_time(start + 2 * HOUR);
            let change =
                json!({ "agreement": made["id"], "durationSeconds": longer, "window": { "end": end } });
            let answer = one.requester.post_json("/negotiations", &change).await.json();
            let accepted = one.accept(&answer["offers"][0], "k").await;
            // It is over already.
            if accepted.status.as_u16() != 201 {
                return None;
            }
            let new = accepted.json()["id"].clone();
            Some((domains, made, longer, answer, new))
        })
        .await;
        let (one, two) = (&domains[0], &domains[1]);
        let offer = &answer["offers"][0];
        assert_eq!(
            (&offer["resource"], &offer["kind"]),
            (&json!("two"), &json!("exact")),
            "{answer}"
        );
        let over = eventually("it is over", PATIENCE, async || {
            let shown = one.agreement(&new).await;
            (shown["state"] == "Complete").then_some(shown)
        })
        .await;
        assert_eq!(
            (&over["outcome"], &over["exitStatus"]),
            (&json!("completed"), &json!(0)),
            "{over}"
        );
        let old = one.agreement(&made["id"]).await;
        assert_eq!(
            (&old["state"], &old["supersededBy"]),
            (&json!("Complete"), &new),
            "{old}"
        );
        let charged = eventually("the money is posted", PATIENCE, async || {
            let charged = -two.balance("party:one").await;
            (charged > 0 && one.balance("peer:two").await == charged).then_some(charged)
        })
        .await;
        // Two nodes for so long.
        assert!(charged.abs_diff(2 * longer * 1_000_000 / 3_600) <= 1, "{charged}");
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn what_its_party_ends_at_a_peer_is_terminated_on_both_sides_also_where_ours_dies_before_it_is_told() {
    run(async {
        let mut domains = two_domains().await;
        let start = now();
        let mut wish = wanted(2, 600, (start, start + HOUR));
        wish["template"] = json!("guaranteed-reservation");
        let id = post(&domains[0], "/agreements", &wish).await["id"].clone();
        eventually("its slot begins", PATIENCE, async || {
            let shown = domains[0].agreement(&id).await;
            (shown["serviceState"] == "Processing").then_some(())
        })
        .await;
        // The peer ends it, and its answer does not come.
        let way = domains[1].way.clone();
        way.break_at("POST /agreements/", Break::KeepAfter);
        post(&domains[0], &path(&id, "/terminate"), &json!({})).await;
        eventually("the peer is told", PATIENCE, async || {
            way.has_broken().then_some(())
        })
        .await;
        let there = eventually("it is over there", PATIENCE, async || {
            let there = domains[1].agreements().await.remove(0);
            there["outcome"].is_string().then_some(there)
        })
        .await;
        assert_eq!(
            (&there["state"], &there["outcome"]),
            (&json!("Terminated"), &json!("terminated")),
            "{there}"
        );
        domains[0].server.kill9();
        way.mend();
        domains[0].kill_and_restart();
        let over = eventually("it is over here", PATIENCE, async || {
            let shown = domains[0].agreement(&id).await;
            shown["outcome"].is_string().then_some(shown)
        })
        .await;
        assert_eq!(
            (&over["state"], &over["outcome"]),
            (&json!("Terminated"), &json!("terminated")),
            "{over}"
        );
        let guarantees = over["guarantees"].as_array().cloned().unwrap_or_default();
        let completion = guarantees
            .iter()
            .find(|guarantee| guarantee["name"] == "COMPLETION");
        assert_eq!(
            completion.map(|completion| &completion["state"]),
            Some(&json!("NotDetermined")),
            "{over}"
        );
        // It pays for its slot, as its party here does.
        assert!(domains[0].balance("party:requester").await < 0, "{over}");
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn a_reservation_at_a_peer_has_begun_when_the_peer_says_that_its_nodes_are_there() {
    run(async {
        let domains = two_domains().await;
        let one = &domains[0];
        let start = now();
        let window = json!({ "start": date_time(start), "end": date_time(start + 2 * HOUR) });
        let asked = json!({ "nodes": 2, "durationSeconds": HOUR, "window": window });
        let made = post(one, "/agreements", &asked).await;
        assert_eq!(made["resource"], "two", "{made}");
        let id = &made["id"];
        let begun = eventually("its nodes are handed over", PATIENCE, async || {
            let shown = one.agreement(id).await;
            shown["started"].is_string().then_some(shown)
        })
        .await;
        assert_eq!(
            (&begun["state"], &begun["outcome"]),
            (&json!("Observed"), &Value::Null),
            "{begun}"
        );
        let events = one.requester.get_json(&path(id, "/events")).await;
        let mut events = events["events"].as_array().into_iter().flatten();
        assert!(
            events.any(|event| event["detail"] == "two holds its nodes for it"),
            "{begun}"
        );
        post(one, &path(id, "/terminate"), &json!({})).await;
        assert!(one.balance("party:requester").await < 0, "its nodes were there");
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn who_ends_a_reservation_before_its_silent_peer_has_told_pays_for_what_the_peer_had_handed_over() {
    run(async {
        let (mut domains, made) = in_seconds(5, async |seconds| {
            let mut domains = two_domains().await;
            let start = now() + seconds;
            let window = json!({ "start": date_time(start), "end": date_time(start + 2 * HOUR) });
            let asked = json!({ "nodes": 2, "durationSeconds": HOUR, "window": window });
            let made = post(&domains[0], "/agreements", &asked).await;
            assert_eq!(made["resource"], "two", "{made}");
            domains[1].server.kill9();
            // The peer must not have told already.
            (now() < start).then_some((domains, made))
        })
        .await;
        let id = &made["id"];
        // It listens elsewhere from now on, where the way does not lead yet.
        domains[1].server.restart();
        eventually("its nodes are handed over there", PATIENCE, async || {
            let there = domains[1].agreements().await.remove(0);
            there["started"].is_string().then_some(())
        })
        .await;
        let one = &domains[0];
        let begun = eventually("its slot begins here", PATIENCE, async || {
            let shown = one.agreement(id).await;
            (shown["serviceState"] == "Idle").then_some(shown)
        })
        .await;
        assert_eq!(begun["started"], Value::Null, "{begun}");
        let ending = one.requester.get_json(&path(id, "/ending")).await;
        let price = json!([{ "kind": "price", "amount": made["price"], "reason": "as far as two has handed its nodes over" }]);
        assert_eq!(ending["charges"], price, "{ending}");
        post(one, &path(id, "/terminate"), &json!({})).await;
        let ended = one.agreement(id).await;
        assert_eq!(ended["state"], "ObservedAndTerminating", "{ended}");
        assert_eq!(
            one.balance("party:requester").await,
            0,
            "the peer has not told yet"
        );
        domains[1].way.lead_to(domains[1].server.address());
        let over = eventually("it is over here", PATIENCE, async || {
            let shown = one.agreement(id).await;
            (shown["state"] == "Terminated").then_some(shown)
        })
        .await;
        assert!(over["started"].is_string(), "{over}");
        assert!(one.balance("party:requester").await < 0, "{over}");
        let charged = -domains[1].balance("party:one").await;
        assert!(charged > 0, "{over}");
        settled(one, "peer:two", charged).await;
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}
