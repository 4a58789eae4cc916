//! The bounds of one party for agreements, requests and kept data: each bound has its own words, and binds no other party.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::negotiation::{Said, negotiate, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_party_has_so_many_node_hours_what_is_held_included;
    a_release_on_postgres:
    a_party_has_the_offers_of_so_many_answers_held_and_no_more,
    a_party_plans_so_far_ahead,
    a_party_asks_so_often_a_minute,
    a_party_has_quotas_of_its_own_in_place_of_those_of_all,
    a_wide_window_is_used_where_the_share_leaves_room,
    a_party_has_half_of_any_thirty_days_while_others_have_work,
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
    let refused = negotiate(&physics, id, &[Said::solicited("a", offer.clone())]).await;
    assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    assert_eq!(refused[0].text("Reason"), "QUOTA_EXCEEDED");
    assert!(
        refused[0].text("BindingConstraint").contains(words),
        "{refused:?}"
    );
    let advice = Said {
        state: "Advisory",
        ..Said::solicited("b", offer)
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
    let words = "4 node-hours at a time, offers that are held included; 3 are in use";
    assert_exceeded(&ask(&physics, 2, 3).await, words);
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

async fn a_party_plans_so_far_ahead(url: String) {
    let (server, physics, _) = bounded(&url, "[quotas]\nhorizon_hours = 24");
    assert_offered(&ask(&physics, 1, 20).await);
    assert_exceeded(&ask(&physics, 1, 26).await, "may plan 24 hours ahead");
    // A window that is left open ends where the quota does, and not with an error.
    let open = json!({ "nodes": 1, "durationSeconds": HOUR }).to_string();
    let request = physics
        .request(Method::POST, "/negotiations")
        .header("content-type", "application/json");
    let answer = physics.send(request.body(open)).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    server.assert_verified();
}

async fn a_party_asks_so_often_a_minute(url: String) {
    let (server, physics, chemistry) = bounded(&url, "[quotas]\nprobes_per_minute = 3");
    let id = open(&physics).await;
    let start = hours_ahead(4);
    let advice = |name: &str| Said {
        state: "Advisory",
        ..Said::solicited(name, Offer::reserve(1, HOUR).within(start, start + HOUR))
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

async fn a_party_has_quotas_of_its_own_in_place_of_those_of_all(url: String) {
    let bound =
        "[quotas]\nnode_hours = 2\nhorizon_hours = 48\n[[quota]]\nparty = \"physics\"\nnode_hours = 4\n";
    let (server, physics, chemistry) = bounded(&url, bound);
    assert_offered(&ask(&physics, 4, 3).await);
    assert_exceeded(&ask(&chemistry, 3, 5).await, "2 node-hours");
    // What is not said of it in particular holds as for all.
    assert_exceeded(&ask(&physics, 1, 50).await, "48 hours");
    server.assert_verified();
}

const DAY: i64 = 24 * HOUR;

/// Asks for all nodes for some days from a day on, anywhere in a window of so many days.
fn days(from: i64, days: i64, window: i64) -> Value {
    let start = hours_ahead(24 * from);
    json!({
        "nodes": 4,
        "durationSeconds": days * DAY,
        "window": { "start": date_time(start), "end": date_time(start + window * DAY) },
    })
}

async fn a_party_has_half_of_any_thirty_days_while_others_have_work(url: String) {
    let bound = "horizon_days = 400\n[[quota]]\nparty = [\"climate\", \"weather\"]\nshare_percent = 100\n";
    let (mut server, physics, chemistry) = bounded(&url, bound);
    let accept = |client: &Client, body: Value| {
        let client = client.clone();
        async move { client.post_json("/agreements", &body).await }
    };
    // Nobody else has work, so all of it may be had.
    let alone = accept(&physics, days(1, 20, 20)).await.created();
    physics.post(&format!("/agreements/{alone}/terminate"), "").await;
    let small = json!({ "nodes": 1, "durationSeconds": HOUR });
    accept(&chemistry, small).await.created();
    // 300 days of the year, ten at a time: 15 of each 30 are had.
    let mut had = 0;
    for from in (2..302).step_by(10) {
        let answer = accept(&physics, days(from, 10, 10)).await;
        if answer.status.as_u16() == 201 {
            had += 10;
            continue;
        }
        let refusal = &answer.json()["refusal"];
        assert_eq!(refusal["reason"], "QUOTA_EXCEEDED", "{answer:?}");
        let told = refusal["bindingConstraint"].to_string();
        assert!(
            told.contains("50 % of the node-hours") && told.contains("1440 node-hours and has 960"),
            "{told}"
        );
    }
    assert_eq!(had, 100, "ten days of each thirty");
    // It holds after a restart, for counter offers, and not for a party of which the configuration says otherwise.
    server.kill9();
    server.restart();
    let client = |party| server.client_with(&server.key_for(party, "consumer"));
    let (physics, climate) = (client("physics"), client("climate"));
    let refused = physics.post_json("/negotiations", &days(12, 10, 10)).await.json();
    assert_eq!(refused["refusal"]["reason"], "QUOTA_EXCEEDED", "{refused}");
    assert_eq!(refused["offers"], json!([]), "{refused}");
    accept(&climate, days(12, 20, 20)).await.created();
    // Operators see what each has; a party sees its own.
    let usage = server.client().get_json("/usage").await;
    let parties = usage["parties"].as_array().expect("a list");
    let names: Vec<&Value> = parties.iter().map(|of| &of["party"]).collect();
    assert_eq!(names, ["chemistry", "climate", "physics"], "{usage}");
    let on = json!([{ "resource": "local", "nodeHours": 9_600.0, "mostPercent": 33.33, "sharePercent": 50 }]);
    assert_eq!(parties[2]["resources"], on, "{usage}");
    assert_eq!(parties[2]["agreements"], 10, "{usage}");
    assert_eq!(parties[1]["resources"][0]["mostPercent"], 66.67, "{usage}");
    let own = physics.get_json("/usage").await;
    assert_eq!(own["parties"], json!([parties[2]]), "{own}");
    let shown = server.run(&["usage", "--party", "climate"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("66.67 %"), "{shown}");
    server.assert_verified();
}

async fn a_wide_window_is_used_where_the_share_leaves_room(url: String) {
    let (server, physics, chemistry) = bounded(&url, "horizon_days = 100\n");
    let small = json!({ "nodes": 1, "durationSeconds": HOUR });
    chemistry.post_json("/agreements", &small).await.created();
    physics.post_json("/agreements", &days(2, 15, 15)).await.created();
    // Its share of each 30 days with the first is used up.
    let later = physics.post_json("/agreements", &days(2, 5, 60)).await;
    let start = later.json()["plannedStart"].clone();
    assert_eq!(later.status.as_u16(), 201, "{later:?}");
    let expected = date_time(hours_ahead(24 * 2) + 30 * DAY);
    assert_eq!(start, json!(expected), "{later:?}");
    // What is agreed is the window that was asked for.
    let asked = date_time(hours_ahead(24 * 2) + 60 * DAY);
    assert_eq!(later.json()["deadline"], json!(asked), "{later:?}");
    // What is offered at other times lies there, too.
    let asked = physics.post_json("/negotiations", &days(10, 5, 60)).await.json();
    for offer in asked["offers"].as_array().expect("a list") {
        assert!(offer["start"].as_str() >= Some(expected.as_str()), "{asked}");
    }
    server.assert_verified();
}
