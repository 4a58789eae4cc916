//! Domains that know each other: a request goes where there is room, and its agreement is in force on both sides or on neither.

use std::time::Duration;

use serde_json::{Value, json};

use super::domain::{Domain, Plan, start_domains, wanted};
use crate::support::offers::hours_ahead;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);
const HOUR: i64 = 3_600;

/// Four domains, each of which knows the next one only. The third has nodes.
const RING: [Plan; 4] = [
    Plan {
        name: "one",
        nodes: 1,
        node_hour: "3",
        peers: &["two"],
        of_peers: "markup_percent = 10\n",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "two",
        nodes: 1,
        node_hour: "2",
        peers: &["three"],
        of_peers: "markup_percent = 50\n",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "three",
        nodes: 8,
        node_hour: "1",
        peers: &["four"],
        of_peers: "",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "four",
        nodes: 1,
        node_hour: "1",
        peers: &["one"],
        of_peers: "",
        more: "",
        last: String::new(),
    },
];

/// The state of the only agreement of a domain.
async fn only_agreement(domain: &Domain) -> Value {
    let mut all = domain.agreements().await;
    assert_eq!(all.len(), 1, "{}: {all:?}", domain.name);
    all.remove(0)
}

/// Waits until the agreements of all of these domains are complete.
async fn all_complete(domains: &[Domain]) {
    for domain in domains {
        eventually("the agreement is complete", PATIENCE, async || {
            let all = domain.agreements().await;
            let is_complete = |of: &Value| of["state"] == "Complete";
            (!all.is_empty() && all.iter().all(is_complete)).then_some(())
        })
        .await;
    }
}

/// What of an agreement has been settled with a peer.
async fn settled(domain: &Domain, peer: &str, expected: i64) {
    let account = format!("peer:{peer}");
    eventually("the money is posted", PATIENCE, async || {
        (domain.balance(&account).await == expected).then_some(())
    })
    .await;
}

#[test]
fn what_only_the_third_domain_of_a_ring_can_place_is_accepted_at_the_first_and_runs_there() {
    run(async {
        let domains = start_domains(&RING).await;
        let [one, two, three, four] = domains.as_slice() else {
            unreachable!("there are four")
        };
        let now = bespeak::clock::Clock::system().now().seconds();
        let answer = one.negotiate(&wanted(4, 1, (now, now + HOUR))).await;
        let offer = &answer["offers"][0];
        assert_eq!(
            (&offer["kind"], &offer["resource"]),
            (&json!("exact"), &json!("two")),
            "{answer}"
        );
        // 4 nodes for 21 s at 1 EUR: 0.023334, with a half: 0.035, and with a tenth.
        let accepted = one.accept(offer, "k").await;
        assert_eq!(accepted.status.as_u16(), 201, "{}", accepted.body);
        let id = accepted.json()["id"].clone();
        // The same question again has the same answer.
        let again = one.accept(offer, "k").await;
        assert_eq!((again.status.as_u16(), &again.json()["id"]), (201, &id));
        all_complete(&domains[..3]).await;
        assert!(four.agreements().await.is_empty());
        let here = one.agreement(&id).await;
        assert_eq!(
            (&here["outcome"], &here["exitStatus"]),
            (&json!("completed"), &json!(0)),
            "{here}"
        );
        for (domain, party) in [(two, "one"), (three, "two")] {
            assert_eq!(only_agreement(domain).await["party"], party);
        }
        // What one owes its peer, the peer has; and each has added something.
        let paid_by = |domain: &'static str| format!("party:{domain}");
        let third = -three.balance(&paid_by("two")).await;
        let second = -two.balance(&paid_by("one")).await;
        let first = -one.balance(&paid_by("requester")).await;
        assert!(
            0 < third && third < second && second < first,
            "{third} {second} {first}"
        );
        settled(two, "three", third).await;
        settled(one, "two", second).await;
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn of_a_star_the_cheapest_is_offered_and_the_others_hold_nothing_any_more() {
    run(async {
        let rim = |name, nodes, node_hour| Plan {
            name,
            nodes,
            node_hour,
            ..Plan::default()
        };
        let hub = Plan {
            name: "hub",
            peers: &["east", "west", "north", "south"],
            ..Plan::default()
        };
        let plans = [
            hub,
            rim("east", 4, "0.9"),
            rim("west", 4, "0.5"),
            rim("north", 4, "0.7"),
            rim("south", 1, "0.1"),
        ];
        let domains = start_domains(&plans).await;
        let hub = &domains[0];
        let start = hours_ahead(2);
        let answer = hub.negotiate(&wanted(3, 60, (start, start + HOUR))).await;
        let offers = answer["offers"].as_array().cloned().unwrap_or_default();
        assert_eq!(offers[0]["resource"], "west", "{answer}");
        let accepted = hub.accept(&offers[0], "k").await;
        assert_eq!(accepted.status.as_u16(), 201, "{}", accepted.body);
        for domain in &domains[1..] {
            eventually("what is not wanted is given back", PATIENCE, async || {
                let list = domain.server.client().get_json("/negotiations").await;
                let all = list["negotiations"].as_array().cloned().unwrap_or_default();
                let is_over = |of: &Value| of["state"] != "open";
                (domain.name == "west" || all.iter().all(is_over)).then_some(())
            })
            .await;
        }
        assert_eq!(only_agreement(&domains[2]).await["party"], "hub");
        // What is ended here is ended there.
        let id = accepted.json()["id"].clone();
        let path = format!("/agreements/{}/terminate", id.as_str().unwrap_or_default());
        let ended = hub.requester.post_json(&path, &json!({})).await;
        assert!(ended.status.is_success(), "{}", ended.body);
        eventually("it is ended there", PATIENCE, async || {
            let there = only_agreement(&domains[2]).await;
            (there["state"] == "Terminated").then_some(())
        })
        .await;
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn an_offer_that_is_refused_here_is_forwarded_and_answered_at_once() {
    run(async {
        let plans = [
            Plan {
                peers: &["two"],
                ..Plan::default()
            },
            Plan {
                name: "two",
                nodes: 4,
                ..Plan::default()
            },
        ];
        let domains = start_domains(&plans).await;
        let start = hours_ahead(2);
        let request = wanted(3, 60, (start, start + HOUR));
        let one = &domains[0];
        let post = async || {
            let request = one
                .requester
                .request(reqwest::Method::POST, "/agreements")
                .header("Idempotency-Key", "k")
                .json(&request);
            one.requester.send(request).await
        };
        let (first, again) = (post().await, post().await);
        assert_eq!(first.status.as_u16(), 201, "{}", first.body);
        assert_eq!((again.status.as_u16(), again.json()), (201, first.json()));
        assert_eq!(first.json()["resource"], "two");
        assert_eq!(only_agreement(&domains[1]).await["party"], "one");
        // What fits at home stays at home.
        let own = one
            .requester
            .post_json("/agreements", &wanted(1, 60, (start, start + HOUR)))
            .await;
        assert_eq!(own.json()["resource"], "of-one");
        // What fits nowhere is refused as ever.
        let none = one
            .requester
            .post_json("/agreements", &wanted(9, 60, (start, start + HOUR)))
            .await;
        assert_eq!(none.status.as_u16(), 409, "{}", none.body);
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}
