//! What there is to ask for and what it costs, before anything is bought or kept.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::offers::{date_time, hours_ahead, now};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_release_on_postgres:
    a_quote_without_a_hold_keeps_nothing_and_counts_for_no_quota,
);

const HOUR: i64 = 3_600;

/// Two resources with prices, and an application with an argument of each type.
const CONFIGURATION: &str = r#"
[pricing]
currency = "EUR"
node_hour = "1.5"
busy_percent = 20

[[pricing.resource]]
name = "fast"
node_hour = "3"

[[pricing.profile]]
party = "physics"
percent = 80

[[resource]]
name = "local"
kind = "local"
nodes = 4

[[resource]]
name = "fast"
kind = "local"
nodes = 2
rate = 2.0
cpus = 8

[[application]]
name = "all"
version = "2"
description = "Takes one of each."
program = "/bin/true"

[[application.argument]]
name = "count"
type = "integer"
min = -1
max = 9

[[application.argument]]
name = "part"
type = "number"
min = 0.5
max = 1.0

[[application.argument]]
name = "word"
type = "text"
max_length = 7
characters = "a-z_"

[[application.argument]]
name = "colour"
type = "choice"
values = ["red", "green"]

[[application.argument]]
name = "input"
type = "file"
"#;

#[test]
fn a_requester_finds_the_applications_the_resources_and_the_prices() {
    run(async {
        let server = Server::configured(None, CONFIGURATION);
        let physics = server.client_with(&server.key_for("physics", "consumer"));
        let applications = physics.get_json("/applications").await;
        let all = &applications["applications"][0];
        assert_eq!(
            (&all["name"], &all["version"], &all["savesWork"]),
            (&"all".into(), &"2".into(), &false.into()),
            "{applications}"
        );
        let without_words: Vec<Value> = all["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .cloned()
            .map(|mut argument| {
                assert!(argument["expected"].is_string(), "{argument}");
                argument.as_object_mut().map(|members| members.remove("expected"));
                argument
            })
            .collect();
        assert_eq!(
            json!(without_words),
            json!([
                {"name": "count", "type": "integer", "minimum": -1, "maximum": 9},
                {"name": "part", "type": "number", "minimum": 0.5, "maximum": 1.0},
                {"name": "word", "type": "text", "maxLength": 7, "characters": "a-z_"},
                {"name": "colour", "type": "choice", "values": ["red", "green"]},
                {"name": "input", "type": "file"},
            ])
        );
        // What the resources have, and nothing of their use, which operators see.
        let start = hours_ahead(3);
        let busy = json!({"nodes": 4, "durationSeconds": HOUR, "window": {"start": date_time(start)}});
        server.client().post_json("/agreements", &busy).await.created();
        assert_eq!(
            physics.get_json("/resources").await,
            json!({"resources": [
                {"name": "local", "nodes": 4, "rate": 1.0, "attributes": {}},
                {"name": "fast", "nodes": 2, "rate": 2.0, "attributes": {"cpus": 8}},
            ]})
        );
        assert_eq!(
            server.client().get_json("/resources").await["resources"][0]["up"],
            4
        );
        let nodes = physics.get("/resources/local/nodes").await;
        assert_eq!(nodes.status, StatusCode::FORBIDDEN, "{nodes:?}");
        let list = server.run(&["resources", "--key", &server.key_for("biology", "consumer")]);
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        assert!(list.contains("cpus=8"), "{list}");
        // The price list, with the part of it that the party pays.
        let prices = physics.get_json("/prices").await["prices"].clone();
        let expected = [
            ("currency", json!("EUR")),
            ("nodeHour", json!("1.5")),
            ("resources", json!({"fast": "3"})),
            ("ownPercent", json!(80.0)),
            ("busyPercent", json!(20.0)),
            ("latePercent", json!(0.0)),
            ("preemptivePercent", json!(0.0)),
            ("shapesPercent", json!(0.0)),
        ];
        for (member, value) in expected {
            assert_eq!(prices[member], value, "{member} of {prices}");
        }
        let own = server.client().get_json("/prices").await;
        assert_eq!(own["prices"]["ownPercent"], 100.0, "{own}");
        assert_eq!(Server::local().client().get_json("/prices").await, json!({}));
    });
}

#[test]
fn an_agreement_is_made_of_no_less_than_nodes_and_a_duration() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for (request, paths) in [
            (json!({}), vec!["/nodes", "/durationSeconds"]),
            (json!({"pending": true}), vec!["/nodes", "/durationSeconds"]),
            (json!({"nodes": 1}), vec!["/durationSeconds"]),
            (json!({"durationSeconds": 60}), vec!["/nodes"]),
            (json!({"moldability": {"constantWork": 60}}), vec!["/nodes"]),
        ] {
            let refused = client.post_json("/agreements", &request).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            let told = refused.json()["violations"].clone();
            let told: Vec<_> = told
                .as_array()
                .into_iter()
                .flatten()
                .map(|told| told["path"].as_str().unwrap_or_default().to_owned())
                .collect();
            assert_eq!(told, paths, "{request}: {refused:?}");
        }
        let listed = client.get_json("/agreements").await;
        assert_eq!(listed["agreements"], json!([]), "nothing was bought");
        // The template's duration counts while nothing is known of how long an application takes.
        let unknown = json!({"nodes": 1, "application": "sleep", "arguments": [1]});
        let made = client.post_json("/agreements", &unknown).await.created();
        let made = client.get_json(&format!("/agreements/{made}")).await;
        assert_eq!(made["durationSeconds"], 3_600, "{made}");
        // Sizes with their durations say both.
        let sizes = json!({"moldability": {"table": [{"nodes": 1, "durationSeconds": 60}]}});
        client.post_json("/agreements", &sizes).await.created();
        let both = json!({"nodes": 1, "durationSeconds": 60});
        client.post_json("/agreements", &both).await.created();
    });
}

async fn a_quote_without_a_hold_keeps_nothing_and_counts_for_no_quota(url: String) {
    let configuration =
        format!("[negotiation]\nholds_max = 1\nopen_max = 1\nhold_seconds = 60\n{CONFIGURATION}");
    let server = Server::configured(Some(&url), &configuration);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(3);
    let ask = json!({"nodes": 4, "durationSeconds": HOUR, "hold": false,
        "window": {"start": date_time(start), "end": date_time(start + HOUR)}});
    // More often than offers may be held.
    let mut asked = Value::Null;
    for _ in 0..3 {
        let answer = physics.post_json("/negotiations", &ask).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        asked = answer.json()["offers"][0].clone();
        assert_eq!(asked["state"], "Advisory", "{asked}");
        assert_eq!(asked.get("heldUntil"), None, "{asked}");
        assert!(asked["price"]["amount"].is_string(), "{asked}");
        let quote = answer.json();
        let instant = |name: &str| quote[name].as_str().map(str::to_owned);
        assert!(instant("expires") < Some(date_time(now() + 61)), "{quote}");
    }
    let lost = physics
        .post_json("/agreements", &json!({"offer": asked["id"]}))
        .await;
    assert_eq!(lost.status, StatusCode::CONFLICT, "{lost:?}");
    let wrong = json!({"nodes": 1, "hold": "no"});
    let wrong = physics.post_json("/negotiations", &wrong).await;
    assert_eq!(wrong.json()["violations"][0]["path"], "/hold", "{wrong:?}");
    // By command, too.
    let key = server.key_for("physics", "consumer");
    let window = [date_time(start), date_time(start + HOUR)];
    let command = [
        "negotiate",
        "--no-hold",
        "--nodes",
        "4",
        "--for",
        "1h",
        "--after",
        &window[0],
        "--before",
        &window[1],
        "--key",
        &key,
    ];
    let told = server.run(&command);
    assert!(told.status.success(), "{told:?}");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("EUR") && told.contains("Nothing is held"), "{told}");
    // Its nodes are free for another party, and the one offer that may be held can be had.
    let others = server.client_with(&server.key_for("chemistry", "consumer"));
    let mut buy = ask.clone();
    buy.as_object_mut().map(|members| members.remove("hold"));
    others.post_json("/agreements", &buy).await.created();
    let held = json!({"nodes": 1, "durationSeconds": HOUR});
    let held = physics.post_json("/negotiations", &held).await.json();
    assert_eq!(held["offers"][0]["state"], "Acceptable", "{held}");
    server.assert_verified();
}

/// No objective is set.
#[test]
fn slow_nodes_take_the_work_that_they_end_in_time() {
    run(async {
        let resources = "[[resource]]\nname = \"fast\"\nkind = \"local\"\nnodes = 1\n\
            [[resource]]\nname = \"slow\"\nkind = \"local\"\nnodes = 1\nrate = 0.5\n";
        let server = Server::configured(None, resources);
        let client = server.client();
        let start = hours_ahead(3);
        let work = |seconds: i64, window: i64| {
            json!({"nodes": 1, "moldability": {"table": [{"nodes": 1, "durationSeconds": seconds}]},
                "window": {"start": date_time(start), "end": date_time(start + window)}})
        };
        let long = client
            .post_json("/agreements", &work(HOUR, 2 * HOUR))
            .await
            .json();
        assert_eq!(
            (&long["resource"], &long["durationSeconds"]),
            (&json!("slow"), &json!(2 * HOUR)),
            "{long}"
        );
        let urgent = client.post_json("/agreements", &work(HOUR, HOUR)).await.json();
        assert_eq!(urgent["resource"], "fast", "{urgent}");
        server.assert_verified();
    });
}
