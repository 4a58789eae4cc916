//! Domains that know each other: a request goes where there is room, and its agreement is in force on both sides or on neither.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Domain, Plan, start_domains, wanted};
use crate::support::offers::hours_ahead;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// Four domains, each of which knows the next one only. The third has nodes.
const RING: [Plan; 4] = [
    Plan {
        name: "one",
        nodes: 1,
        node_hour: "3",
        cancellation: 0,
        peers: &["two"],
        of_peers: "markup_percent = 10\n",
        of_domain: "",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "two",
        nodes: 1,
        node_hour: "2",
        cancellation: 0,
        peers: &["three"],
        of_peers: "markup_percent = 50\n",
        of_domain: "",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "three",
        nodes: 8,
        node_hour: "1",
        cancellation: 0,
        peers: &["four"],
        of_peers: "",
        of_domain: "",
        more: "",
        last: String::new(),
    },
    Plan {
        name: "four",
        nodes: 1,
        node_hour: "1",
        cancellation: 0,
        peers: &["one"],
        of_peers: "",
        of_domain: "",
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
            let is_complete = |value: &Value| value["state"] == "Complete";
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
        let now = domain::clock::Clock::system().now().seconds();
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
                let is_over = |value: &Value| value["state"] != "open";
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
        // What runs there costs the hub what the peer has charged.
        let now = domain::clock::Clock::system().now().seconds();
        let wish = wanted(3, 1, (now, now + HOUR));
        let made = hub.requester.post_json("/agreements", &wish).await;
        assert_eq!(made.status.as_u16(), 201, "{}", made.body);
        let made = made.json();
        assert_eq!(made["resource"], "west", "{made}");
        eventually("it is complete", PATIENCE, async || {
            (hub.agreement(&made["id"]).await["state"] == "Complete").then_some(())
        })
        .await;
        let west = &domains[2];
        let charged = -west.balance("party:hub").await;
        assert!(charged > 0, "{charged}");
        settled(hub, "west", charged).await;
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

#[test]
fn agreements_at_a_peer_cost_no_more_together_than_its_credit() {
    run(async {
        let plans = [
            Plan {
                peers: &["two"],
                of_peers: "credit = \"3\"\n",
                ..Plan::default()
            },
            Plan {
                name: "two",
                nodes: 8,
                ..Plan::default()
            },
        ];
        let domains = start_domains(&plans).await;
        let one = &domains[0];
        let start = hours_ahead(2);
        // Two nodes for an hour cost 2.
        let wish = wanted(2, 3_600, (start, start + 2 * HOUR));
        let mut offers = Vec::new();
        for _ in 0..3 {
            let answer = one.negotiate(&wish).await;
            assert_eq!(answer["offers"][0]["resource"], "two", "{answer}");
            offers.push(answer["offers"][0].clone());
        }
        let (a, b, c) = tokio::join!(
            one.accept(&offers[0], "a"),
            one.accept(&offers[1], "b"),
            one.accept(&offers[2], "c")
        );
        let said = [&a, &b, &c].map(|answer| answer.status.as_u16());
        let taken = said.iter().filter(|status| **status == 201).count();
        let lost = said.iter().filter(|status| **status == 410).count();
        assert_eq!(
            (taken, lost),
            (1, 2),
            "{said:?}: {} {} {}",
            a.body,
            b.body,
            c.body
        );
        let direct = one.requester.post_json("/agreements", &wish).await;
        assert_eq!(direct.status.as_u16(), 409, "{}", direct.body);
        // What is over there costs nothing any more.
        let of_it = only_agreement(&domains[1]).await;
        let own = one.agreements().await;
        let own = own
            .iter()
            .find(|each| each["state"] == "Observed")
            .expect("one is agreed");
        let id = own["id"].as_str().unwrap_or_default();
        let path = format!("/agreements/{id}/terminate");
        let ended = one.requester.post_json(&path, &json!({})).await;
        assert!(ended.status.is_success(), "{}", ended.body);
        assert_eq!(of_it["party"], "one");
        eventually("there is credit again", PATIENCE, async || {
            let again = one.requester.post_json("/agreements", &wish).await;
            (again.status.as_u16() == 201).then_some(())
        })
        .await;
        for domain in &domains {
            domain.server.assert_verified();
        }
    });
}

#[test]
fn a_request_stays_on_the_resource_that_it_names_and_where_its_template_stays() {
    run(async {
        let plans = [
            Plan {
                peers: &["two", "three"],
                ..Plan::default()
            },
            Plan {
                name: "two",
                nodes: 4,
                node_hour: "2",
                ..Plan::default()
            },
            Plan {
                name: "three",
                nodes: 4,
                ..Plan::default()
            },
            Plan {
                name: "four",
                peers: &["two"],
                of_domain: "home_templates = [\"advance-reservation\"]\n",
                ..Plan::default()
            },
        ];
        let domains = start_domains(&plans).await;
        let start = hours_ahead(2);
        let on = |resource: &str| {
            let mut wish = wanted(2, 60, (start, start + HOUR));
            wish["resource"] = json!(resource);
            wish
        };
        let one = &domains[0].requester;
        let own = one.post_json("/agreements", &on("of-one")).await;
        assert_eq!(own.status.as_u16(), 409, "{}", own.body);
        let at_two = one.post_json("/agreements", &on("two")).await;
        assert_eq!(at_two.status.as_u16(), 201, "{}", at_two.body);
        assert_eq!(at_two.json()["resource"], "two");
        assert!(domains[2].agreements().await.is_empty());
        let wish = wanted(2, 60, (start, start + HOUR));
        let stays = domains[3].requester.post_json("/agreements", &wish).await;
        assert_eq!(stays.status.as_u16(), 409, "{}", stays.body);
    });
}
