//! The bounds of one party for agreements, requests and kept data: each bound has its own words, and binds no other party.

use std::ops::Range;

use domain::resources::Resource;
use planner::{Error, Place, Quotas, Request, Settings, Terminate};
use reqwest::Method;
use scheduler::{Reason, Time};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::harness::{Domain, NOW, proposal};
use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};

on_both_engines!(
    a_party_has_so_many_node_hours_what_is_held_included;
    a_release_on_postgres:
    a_party_has_the_offers_of_so_many_answers_held_and_no_more,
    a_party_asks_so_often_a_minute,
    a_party_has_so_many_agreements_and_an_operator_any_number,
    what_each_party_has_is_shown_to_itself_and_to_operators,
);

const NODES: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
const HOUR: i64 = 3_600;

/// A service with a bound, and clients of two parties.
fn bounded(url: &str, bound: &str) -> (Server, Client, Client) {
    let server = Server::configured(Some(url), &format!("{bound}\n{NODES}"));
    let client = |party| server.client_with(&server.key_for(party, "consumer"));
    let (physics, chemistry) = (client("physics"), client("chemistry"));
    (server, physics, chemistry)
}

/// Asks for nodes for an hour that begins in `hours` hours; the answer.
async fn ask(client: &Client, nodes: u32, hours: i64) -> Value {
    let start = hours_ahead(hours);
    let body = json!({
        "nodes": nodes,
        "durationSeconds": HOUR,
        "window": { "start": date_time(start), "end": date_time(start + HOUR) },
    });
    let request = client
        .request(Method::POST, "/negotiations")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    let answer = client.send(request.body(body.to_string())).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    answer.json()
}

/// The times within which a party is told that nodes are free.
async fn free_times(client: &Client, nodes: u32, (start, end): &(String, String)) -> Value {
    let path = format!("/availability?nodes={nodes}&start={start}&end={end}");
    client.get_json(&path).await["free"].clone()
}

fn assert_offered(answer: &Value) {
    assert_eq!(answer["offers"][0]["state"], "Acceptable", "{answer}");
}

fn assert_exceeded(answer: &Value, binding: &str) {
    assert_eq!(answer["offers"], json!([]), "{answer}");
    assert_eq!(answer["refusal"]["reason"], "QUOTA_EXCEEDED", "{answer}");
    let told = answer["refusal"]["bindingConstraint"]
        .as_str()
        .unwrap_or_default();
    assert!(told.contains(binding), "{binding:?} is not in {answer}");
}

async fn a_party_has_the_offers_of_so_many_answers_held_and_no_more(url: String) {
    let (server, physics, chemistry) = bounded(&url, "[negotiation]\nholds_max = 2");
    let first = ask(&physics, 1, 2).await;
    assert_offered(&first);
    assert_offered(&ask(&physics, 1, 3).await);
    let words = "may have the offers of 2 answers held";
    assert_exceeded(&ask(&physics, 1, 4).await, words);
    assert_offered(&ask(&chemistry, 1, 4).await);
    // The same in XML; and an advisory offer is answered, since it keeps nothing.
    let id = open(&physics).await;
    let start = hours_ahead(4);
    let offer = Offer::reserve(1, HOUR).within(start, start + HOUR);
    let refused = negotiate(&physics, id, &[SentOffer::solicited("a", offer.clone())]).await;
    assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    assert_eq!(refused[0].text("Reason"), "QUOTA_EXCEEDED");
    assert!(
        refused[0].text("BindingConstraint").contains(words),
        "{refused:?}"
    );
    let advice = SentOffer {
        state: "Advisory",
        ..SentOffer::solicited("b", offer)
    };
    assert_eq!(negotiate(&physics, id, &[advice]).await[0].state, "Advisory");
    // Nodes that are given back are free again.
    let path = format!(
        "/negotiations/{}/terminate",
        first["id"].as_str().unwrap_or_default()
    );
    physics.post(&path, "").await;
    assert_offered(&ask(&physics, 1, 4).await);
    server.assert_verified();
}

async fn a_party_has_so_many_node_hours_what_is_held_included(url: String) {
    let (mut server, physics, chemistry) = bounded(&url, "[quotas]\nnode_hours = 4");
    let held = ask(&physics, 3, 2).await;
    assert_offered(&held);
    let words = "4 node-hours at a time, offers that are held included; 3 are in use, and 2 are asked for; it may have 1 node \
                 for 3600 seconds, or 2 nodes for 1800 seconds";
    let exceeded = ask(&physics, 2, 3).await;
    assert_exceeded(&exceeded, words);
    let fitting = json!([{ "nodes": 1 }, { "durationSeconds": 1_800 }]);
    assert_eq!(exceeded["refusal"]["relaxations"], fitting, "{exceeded}");
    // Nor are two nodes shown as free to it.
    let hour = (date_time(hours_ahead(3)), date_time(hours_ahead(4)));
    assert_eq!(free_times(&physics, 2, &hour).await, json!([]));
    let whole = json!([{ "start": hour.0, "end": hour.1 }]);
    assert_eq!(free_times(&physics, 1, &hour).await, whole);
    assert_eq!(free_times(&chemistry, 2, &hour).await, whole);
    let start = hours_ahead(3);
    let direct = Offer::reserve(2, HOUR).within(start, start + HOUR).xml();
    let refused = physics.post("/agreements", direct).await;
    assert_eq!(refused.text("ErrorCode"), "QUOTA_EXCEEDED", "{refused:?}");
    assert!(refused.text("BindingConstraint").contains(words), "{refused:?}");
    assert_offered(&ask(&chemistry, 2, 3).await);
    // An agreement counts as the offer that it was made from, also after a restart.
    let accept = physics
        .request(Method::POST, "/agreements")
        .header("content-type", "application/json");
    let body = json!({ "offer": held["offers"][0]["id"] }).to_string();
    let agreement = physics.send(accept.body(body)).await.created();
    server.kill9();
    server.restart();
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    assert_exceeded(&ask(&physics, 2, 3).await, words);
    assert_offered(&ask(&physics, 1, 3).await);
    // And it is given back with its end.
    physics
        .post(&format!("/agreements/{agreement}/terminate"), "")
        .await;
    assert_offered(&ask(&physics, 2, 4).await);
    server.assert_verified();
}

async fn a_party_has_so_many_agreements_and_an_operator_any_number(url: String) {
    let (server, physics, chemistry) = bounded(&url, "[quotas]\nagreements = 2");
    let offer = |hours| {
        let start = hours_ahead(hours);
        Offer::reserve(1, HOUR).within(start, start + HOUR)
    };
    let first = physics.post("/agreements", offer(2).xml()).await.created();
    // One that waits for its decision counts.
    let pending = crate::pending::pending(&offer(3), None);
    let pending = crate::pending::accepted(&physics.post("/agreements", pending).await);
    crate::pending::becomes(&physics, &pending, "Observed").await;
    let words = "may have 2 agreements that are not over";
    let refused = physics.post("/agreements", offer(4).xml()).await;
    assert_eq!(refused.text("ErrorCode"), "QUOTA_EXCEEDED", "{refused:?}");
    assert!(refused.text("BindingConstraint").contains(words), "{refused:?}");
    let more = crate::pending::pending(&offer(4), None);
    let more = physics.post("/agreements", more).await;
    assert_eq!(more.text("ErrorCode"), "QUOTA_EXCEEDED", "{more:?}");
    assert_exceeded(&ask(&physics, 1, 4).await, words);
    chemistry.post("/agreements", offer(4).xml()).await.created();
    // An operator's key of the same party has no bound, and sees which party is near its own.
    let operator = server.client_with(&server.key_for("physics", "operator"));
    let third = operator.post("/agreements", offer(5).xml()).await.created();
    let usage = operator.get_json("/usage").await;
    let near: Vec<_> = usage["parties"].as_array().into_iter().flatten().collect();
    let near: Vec<_> = near
        .iter()
        .map(|near| (&near["party"], &near["agreementsMax"], &near["nearQuota"]))
        .collect();
    assert_eq!(
        near,
        [
            (&json!("chemistry"), &json!(2), &json!(false)),
            (&json!("physics"), &json!(2), &json!(true))
        ]
    );
    let shown = server.run(&["usage"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("3 of 2") && shown.contains("near a quota: physics"),
        "{shown}"
    );
    let metrics = operator.get("/metrics").await.body;
    assert!(metrics.contains("\nbespeak_parties_near_quota 1\n"), "{metrics}");
    // What is over does not count.
    for id in [first, third] {
        physics.post(&format!("/agreements/{id}/terminate"), "").await;
    }
    physics.post("/agreements", offer(6).xml()).await.created();
    server.assert_verified();
}

#[test]
fn without_a_word_of_the_configuration_a_party_has_bounds_and_zero_is_none() {
    run(async {
        for (configuration, agreements, questions) in [
            ("", json!(2_000), json!(600)),
            (
                "[quotas]\nagreements = 0\nprobes_per_minute = 0\n",
                Value::Null,
                Value::Null,
            ),
        ] {
            let server = Server::configured(None, &format!("{configuration}{NODES}"));
            let client = server.client_with(&server.key_for("physics", "consumer"));
            let start = hours_ahead(2);
            let offer = Offer::reserve(1, HOUR).within(start, start + HOUR);
            client.post("/agreements", offer.xml()).await.created();
            let usage = client.get_json("/usage").await;
            let own = &usage["parties"][0];
            assert_eq!(
                (&own["agreementsMax"], &own["questionsMax"], &own["nearQuota"]),
                (&agreements, &questions, &json!(false)),
                "{usage}"
            );
        }
    });
}

async fn a_party_asks_so_often_a_minute(url: String) {
    let (server, physics, chemistry) = bounded(&url, "[quotas]\nprobes_per_minute = 3");
    let id = open(&physics).await;
    let start = hours_ahead(4);
    let advice = |name: &str| SentOffer {
        state: "Advisory",
        ..SentOffer::solicited(name, Offer::reserve(1, HOUR).within(start, start + HOUR))
    };
    // The seventh is refused even where the minute changes in between.
    let mut refused = None;
    for number in 0..7 {
        let answers = negotiate(&physics, id, &[advice(&format!("a-{number}"))]).await;
        match answers[0].state.as_str() {
            "Advisory" => {}
            "Rejected" => {
                assert!(number >= 3, "{answers:?}");
                refused = refused.or(answers.into_iter().next());
            }
            other => panic!("{other}: {answers:?}"),
        }
    }
    let refused = refused.expect("requests are bounded");
    assert_eq!(refused.text("Reason"), "QUOTA_EXCEEDED");
    assert!(
        refused
            .text("BindingConstraint")
            .contains("may ask 3 times a minute"),
        "{refused:?}"
    );
    assert_offered(&ask(&chemistry, 1, 4).await);
    // A refusal or a look at the free nodes does not reveal more than advice would.
    let mut turned_away = None;
    for _ in 0..7 {
        let answer = physics.get("/availability").await;
        if answer.status.as_u16() == 429 {
            turned_away = Some(answer);
        }
    }
    let turned_away = turned_away.expect("looks are bounded");
    assert!(turned_away.headers.contains_key("retry-after"), "{turned_away:?}");
    let too_many = Offer::reserve(3, HOUR).within(start, start + HOUR);
    chemistry.post("/agreements", too_many.xml()).await.created();
    let mut refused = None;
    for _ in 0..7 {
        let answer = physics.post("/agreements", too_many.xml()).await;
        assert_eq!(answer.status.as_u16(), 409, "{answer:?}");
        if answer.text("Reason") == "QUOTA_EXCEEDED" {
            refused = Some(answer);
        }
    }
    let refused = refused.expect("refusals with reasons are bounded");
    assert!(!refused.body.contains("Alternative"), "{refused:?}");
    // A dry run reveals as much.
    let wish = json!({"nodes": 1, "durationSeconds": HOUR,
        "window": {"start": date_time(start), "end": date_time(start + HOUR)}});
    let mut refused = 0;
    for _ in 0..7 {
        let answer = chemistry.post_json("/negotiations?dryRun=true", &wish).await;
        assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
        refused += u32::from(answer.json()["refusal"]["reason"] == "QUOTA_EXCEEDED");
    }
    assert!(refused > 0, "dry runs are bounded");
    server.assert_verified();
}

const DAY: i64 = 24 * HOUR;

async fn what_each_party_has_is_shown_to_itself_and_to_operators(url: String) {
    let bound = "horizon_days = 100\n[[quota]]\nparty = [\"climate\", \"weather\"]\nshare_percent = 100\n";
    let (server, physics, chemistry) = bounded(&url, bound);
    let climate = server.client_with(&server.key_for("climate", "consumer"));
    let small = json!({ "nodes": 1, "durationSeconds": HOUR });
    chemistry.post_json("/agreements", &small).await.created();
    let days = |from: i64, days: i64, window: i64| {
        let start = hours_ahead(24 * from);
        let window = json!({ "start": date_time(start), "end": date_time(start + window * DAY) });
        json!({ "nodes": 4, "durationSeconds": days * DAY, "window": window })
    };
    physics.post_json("/agreements", &days(2, 15, 15)).await.created();
    let refused = physics.post_json("/negotiations", &days(17, 5, 5)).await.json();
    assert_exceeded(&refused, "50 % of the node-hours");
    let week = (date_time(hours_ahead(24 * 17)), date_time(hours_ahead(24 * 24)));
    assert_eq!(free_times(&physics, 4, &week).await, json!([]));
    let whole = json!([{ "start": week.0, "end": week.1 }]);
    assert_eq!(free_times(&chemistry, 4, &week).await, whole);
    // What is offered lies where the share leaves room.
    let asked = physics
        .post_json("/negotiations?dryRun=true", &days(10, 5, 60))
        .await;
    let (asked, room) = (asked.json(), date_time(hours_ahead(24 * 32)));
    let offers = asked["offers"].as_array().expect("a list");
    assert!(!offers.is_empty(), "{asked}");
    assert!(
        offers
            .iter()
            .all(|offer| offer["start"].as_str() >= Some(room.as_str())),
        "{asked}"
    );
    climate
        .post_json("/agreements", &days(17, 20, 20))
        .await
        .created();
    let usage = server.client().get_json("/usage").await;
    let parties = usage["parties"].as_array().expect("a list");
    let names: Vec<&Value> = parties.iter().map(|party| &party["party"]).collect();
    assert_eq!(names, ["chemistry", "climate", "physics"], "{usage}");
    let on = json!([{ "resource": "local", "nodeHours": 1440.0, "mostPercent": 50.0, "sharePercent": 50 }]);
    assert_eq!(parties[2]["resources"], on, "{usage}");
    assert_eq!(parties[2]["agreements"], 1, "{usage}");
    assert_eq!(parties[1]["resources"][0]["mostPercent"], 66.67, "{usage}");
    let own = physics.get_json("/usage").await;
    assert_eq!(own["parties"], json!([parties[2]]), "{own}");
    let shown = server.run(&["usage", "--party", "climate"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("66.67 %"), "{shown}");
    server.assert_verified();
}

/// A planner of four nodes with quotas for all parties, and others for some.
async fn planner(quotas: Quotas, of_parties: &[(&str, Quotas)]) -> (TestDatabase, Domain, Settings) {
    let database = TestDatabase::sqlite();
    let of_parties = of_parties
        .iter()
        .map(|(party, of_party)| ((*party).to_owned(), *of_party));
    let settings = Settings {
        quotas,
        quotas_of_parties: of_parties.collect(),
        ..Settings::new(vec![Resource::new("local", "local", 4)], 400 * DAY)
    };
    let domain = Domain::start(database.url(), settings.clone()).await;
    (database, domain, settings)
}

/// A request of a party for nodes that run nothing.
fn of_party(party: &str, nodes: u32, duration: i64, window: Range<i64>) -> Request {
    Request {
        party: party.into(),
        job: None,
        ..proposal(nodes, duration, window)
    }
}

/// Asserts that a request is beyond a quota, in these words.
async fn assert_beyond(domain: &Domain, request: Request, words: &str) {
    let refusal = domain.refuse(request).await;
    assert_eq!(refusal.reason, Reason::QuotaExceeded, "{refusal:?}");
    assert!(refusal.binding.contains(words), "{refusal:?}");
}

/// All nodes for some days from a day on, anywhere in a window of so many days.
fn days(party: &str, from: i64, days: i64, window: i64) -> Request {
    of_party(party, 4, days * DAY, from * DAY..(from + window) * DAY)
}

#[test]
fn a_party_plans_so_far_ahead() {
    run(async {
        let quotas = Quotas {
            horizon: Some(DAY),
            ..Quotas::default()
        };
        let (_database, domain, _) = planner(quotas, &[]).await;
        domain
            .place(of_party("physics", 1, HOUR, 20 * HOUR..21 * HOUR))
            .await;
        let late = of_party("physics", 1, HOUR, 26 * HOUR..27 * HOUR);
        assert_beyond(&domain, late, "may plan 24 hours ahead").await;
        // A window that is left open ends where the quota does, and not with an error.
        let open = Request {
            ready: None,
            deadline: None,
            ..of_party("physics", 1, HOUR, 0..HOUR)
        };
        let made = domain.place(open).await;
        assert!(made.deadline <= Time(NOW + DAY), "{made:?}");
    });
}

#[test]
fn a_party_has_quotas_of_its_own_in_place_of_those_of_all() {
    run(async {
        let quotas_of = |node_hours| Quotas {
            node_hours: Some(node_hours),
            horizon: Some(2 * DAY),
            ..Quotas::default()
        };
        let (_database, domain, _) = planner(quotas_of(2), &[("physics", quotas_of(4))]).await;
        domain
            .place(of_party("physics", 4, HOUR, 3 * HOUR..4 * HOUR))
            .await;
        let more = of_party("chemistry", 3, HOUR, 5 * HOUR..6 * HOUR);
        assert_beyond(&domain, more, "2 node-hours").await;
    });
}

/// Half of the node-hours of any thirty days.
const HALF: Quotas = Quotas {
    node_hours: None,
    horizon: None,
    agreements: None,
    probes_per_minute: None,
    share_percent: Some(50),
};

#[test]
fn a_party_has_half_of_any_thirty_days_while_others_have_work() {
    run(async {
        let all = Quotas {
            share_percent: Some(100),
            ..HALF
        };
        let (_database, mut domain, settings) = planner(HALF, &[("climate", all)]).await;
        // Nobody else has work, so all of it may be had.
        let alone = domain.place(days("physics", 1, 20, 20)).await;
        let given_back = domain.planner.send(Terminate::of(alone.id, None)).await;
        given_back.expect("it is stored");
        domain.place(of_party("chemistry", 1, HOUR, 0..DAY)).await;
        // 300 days of the year, ten at a time: 15 of each 30 are had.
        let words = ["50 % of the node-hours", "1440 node-hours and has 960"];
        let mut had = 0;
        for from in (2..302).step_by(10) {
            match domain.planner.send(Place(days("physics", from, 10, 10))).await {
                Ok(_) => had += 10,
                Err(Error::Refused(refusal)) => {
                    assert_eq!(refusal.reason, Reason::QuotaExceeded, "{refusal:?}");
                    assert!(
                        words.iter().all(|word| refusal.binding.contains(word)),
                        "{refusal:?}"
                    );
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(had, 100, "ten days of each thirty");
        // It holds after a restart, and not for a party of which the configuration says otherwise.
        domain.restart(settings, 0).await;
        assert_beyond(&domain, days("physics", 12, 10, 10), words[0]).await;
        domain.place(days("climate", 12, 20, 20)).await;
        domain.assert_verified().await;
    });
}

#[test]
fn a_wide_window_is_used_where_the_share_leaves_room() {
    run(async {
        let (_database, domain, _) = planner(HALF, &[]).await;
        domain.place(of_party("chemistry", 1, HOUR, 0..DAY)).await;
        domain.place(days("physics", 2, 15, 15)).await;
        // Its share of each 30 days with the first is used up.
        let later = domain.place(days("physics", 2, 5, 60)).await;
        assert_eq!(later.placement().start, Time(NOW + 32 * DAY), "{later:?}");
        // What is agreed is the window that was asked for.
        assert_eq!(later.deadline, Time(NOW + 62 * DAY), "{later:?}");
        domain.assert_verified().await;
    });
}
