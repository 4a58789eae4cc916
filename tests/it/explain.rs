//! `bespeak explain`: why an agreement is where it is, and why offers were answered as they were.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

const HOUR: i64 = 3_600;

/// Four nodes at a euro an hour, a quarter less with an hour of slack, and 80 % of that for one party.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\nflexible_percent = 50\nflexible_half_seconds = 3600\n\
    [[pricing.profile]]\nparty = \"operator\"\npercent = 80\n";

fn explain(server: &Server, id: &str) -> String {
    let made = server.run(&["explain", id]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("it is text")
}

fn as_json(server: &Server, id: &str) -> Value {
    let made = server.run(&["explain", id, "--json"]);
    serde_json::from_slice(&made.stdout).expect("it is JSON")
}

fn assert_told(text: &str, expected: &[&str]) {
    for words in expected {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
}

#[test]
fn an_agreement_is_explained_with_its_place_its_moves_its_price_and_its_leeway() {
    run(async {
        let server = Server::configured(None, PRICED);
        let client = server.client();
        let start = hours_ahead(3);
        let flexible = Offer::reserve(2, HOUR).within(start, start + 2 * HOUR);
        let flexible = client
            .post("/agreements", flexible.xml())
            .await
            .created()
            .to_string();
        let before = as_json(&server, &flexible);
        assert_eq!(before["flexibility"]["earlierSeconds"], 0, "{before}");
        assert_eq!(before["flexibility"]["laterSeconds"], HOUR, "{before}");
        assert_eq!(before["moves"], Value::Array(Vec::new()), "{before}");
        let rigid = Offer::reserve(4, HOUR).within(start, start + HOUR);
        let rigid = client
            .post("/agreements", rigid.xml())
            .await
            .created()
            .to_string();
        assert_told(
            &explain(&server, &flexible),
            &[
                "placed on local as the first fit in its window",
                "3600 seconds later, to let another agreement in",
                // Two nodes cost 2, 80 % of that is 1.6, and a quarter of it is for an hour of slack.
                "price      1.2 EUR",
                "2 EUR for 2 nodes for 3600 seconds",
                "0.4 EUR less by the profile of its party",
                "0.4 EUR less for its slack",
                "guarantees COMPLETION NotDetermined",
                "3600 seconds earlier, 0 seconds later",
            ],
        );
        assert_told(
            &explain(&server, &rigid),
            &[
                "1 other moved inside its window",
                "moved      never",
                "0 seconds earlier, 0 seconds later",
            ],
        );
        server.assert_verified();
    });
}

#[test]
fn offers_are_explained_with_what_is_nearer_and_refusals_with_what_would_do() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(5);
        let block = Offer::reserve(3, HOUR / 2).within(start, start + HOUR / 2);
        client.post("/agreements", block.xml()).await.created();
        let id = open(&client).await;
        let rigid = Offer::reserve(4, HOUR).within(start - HOUR / 3, start + HOUR * 2 / 3);
        let near = negotiate(&client, id, &[SentOffer::solicited("c-1", rigid.clone())]).await;
        let strict = SentOffer::solicited("c-2", rigid).wishing("<bsp:MaxDeviation>0.1</bsp:MaxDeviation>");
        let refused = negotiate(&client, id, &[strict]).await;
        assert_eq!(refused[0].state, "Rejected");
        let fits = Offer::reserve(1, HOUR).within(start + 5 * HOUR, start + 6 * HOUR);
        let fits = negotiate(&client, id, &[SentOffer::solicited("c-3", fits)]).await;
        let accepted = client.post("/agreements", fits[0].acceptance()).await.created();
        let all = explain(&server, &id.to_string());
        assert_told(
            &all,
            &[
                "is open",
                "it does not fit as it was asked: these are near it",
                "it lies before the window",
                "of these the nearest",
                "it is shorter than asked for",
                &format!("{} is nearer", near[0].id),
                "its nodes are held until",
                "nothing like it can be had",
                "NO_CAPACITY_IN_WINDOW: no resource has 4 nodes free",
                "it would fit with",
                "it fits as it was asked",
                &format!("it was accepted: agreement {accepted}"),
            ],
        );
        // One of them, by the id of an answer: its other answers, and nothing of other offers.
        let one = explain(&server, &near[1].id);
        assert_told(&one, &["offer c-1", &near[0].id, &date_time(start)]);
        assert!(!one.contains("offer c-2") && !one.contains("offer c-3"), "{one}");
        let flat = as_json(&server, &refused[0].id);
        let told = &flat["explained"][0]["answers"][0]["offer"]["refusal"];
        assert_eq!(told["reason"], "NO_CAPACITY_IN_WINDOW", "{flat}");
        assert!(
            told["relaxations"]
                .as_array()
                .is_some_and(|told| !told.is_empty()),
            "{flat}"
        );
        // Another party's offer is not found there, and neither is one that does not exist.
        let key = server.key_for("physics", "consumer");
        for (id, key) in [
            (near[0].id.clone(), key.as_str()),
            (Uuid::now_v7().to_string(), server.key()),
        ] {
            let made = server.run(&["explain", &id, "--key", key]);
            assert_eq!(made.status.code(), Some(1), "{id}");
        }
        let help = server.run(&["explain", "--help"]);
        assert_told(&String::from_utf8_lossy(&help.stdout), &["Examples:", "--json"]);
    });
}

#[test]
fn an_offer_that_was_refused_is_explained_by_the_id_in_its_refusal() {
    run(async {
        let server = Server::local();
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let start = hours_ahead(5);
        let block = Offer::reserve(3, HOUR).within(start, start + HOUR);
        client.post("/agreements", block.xml()).await.created();
        let window = json!({"start": date_time(start), "end": date_time(start + HOUR)});
        let asked = json!({"nodes": 2, "durationSeconds": HOUR, "window": window});
        let refused = client.post_json("/agreements", &asked).await.json();
        let id = refused["refusal"]["id"].as_str().expect("an id").to_owned();
        assert_told(
            &explain(&server, &id),
            &[&id, "NO_CAPACITY_IN_WINDOW: no resource has 2 nodes free"],
        );
        assert_eq!(as_json(&server, &id)["party"], "physics");
        let stranger = server.key_for("biology", "consumer");
        let made = server.run(&["explain", &id, "--key", &stranger]);
        assert_eq!(made.status.code(), Some(1), "{made:?}");
        server.assert_verified();
    });
}

#[test]
fn every_refusal_with_an_id_can_be_explained_however_many_there_are() {
    run(async {
        let server = Server::configured(None, PRICED);
        let client = server.client();
        let asked =
            json!({ "nodes": 4, "durationSeconds": HOUR, "budget": { "amount": "0.01", "currency": "EUR" } });
        let mut noted = Vec::new();
        loop {
            let refused = client.post_json("/agreements", &asked).await.json();
            assert_eq!(refused["refusal"]["reason"], "BUDGET_TOO_LOW", "{refused}");
            match refused["refusal"]["id"].as_str() {
                Some(id) => noted.push(id.to_owned()),
                None => break,
            }
        }
        assert!(noted.len() >= 60, "{}", noted.len());
        for id in noted {
            let told = client.get_json(&format!("/refusals/{id}")).await;
            assert!(
                told["why"]
                    .as_str()
                    .is_some_and(|why| why.starts_with("BUDGET_TOO_LOW")),
                "{told}"
            );
        }
    });
}

#[test]
fn a_refusal_names_no_change_that_the_template_does_not_take() {
    run(async {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = include_str!("../../templates/agreements/advance-reservation.xml");
        let least = text
            .replacen(
                "<xs:minInclusive value=\"1\"/>",
                "<xs:minInclusive value=\"3\"/>",
                2,
            )
            .replace(
                "<xs:minInclusive value=\"1\"/><xs:maxInclusive value=\"31536000\"/>",
                "<xs:minInclusive value=\"3600\"/><xs:maxInclusive value=\"31536000\"/>",
            );
        let file = folder.path().join("least.xml");
        std::fs::write(&file, least).expect("a file can be written");
        let start = hours_ahead(3);
        let window = json!({"start": date_time(start), "end": date_time(start + HOUR)});
        let asked = json!({"nodes": 4, "durationSeconds": HOUR, "window": window});
        let mut told = Vec::new();
        for templates in [
            String::new(),
            format!("[[template]]\nfile = \"{}\"\n", file.display()),
        ] {
            let configuration =
                format!("[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n{templates}");
            let server = Server::configured(None, &configuration);
            let client = server.client();
            let block = json!({"nodes": 3, "durationSeconds": HOUR,
                "window": {"start": date_time(start + HOUR / 2), "end": date_time(start + 3 * HOUR / 2)}});
            client.post_json("/agreements", &block).await.created();
            let refused = client.post_json("/agreements", &asked).await.json();
            let negotiated = client
                .post_json(
                    "/negotiations",
                    &json!({"nodes": 4, "durationSeconds": HOUR,
                "window": window, "maxDeviation": 0}),
                )
                .await
                .json();
            let named = |refusal: &Value| -> Vec<Value> {
                refusal["relaxations"]
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| panic!("{refusal}"))
            };
            told.push((named(&refused["refusal"]), named(&negotiated["refusal"])));
            // Each of them is taken.
            for change in &told.last().expect("just told").0 {
                let mut changed = asked.clone();
                for (member, value) in change.as_object().expect("an object") {
                    match member.as_str() {
                        "ready" => changed["window"]["start"] = value.clone(),
                        "deadline" => changed["window"]["end"] = value.clone(),
                        other => changed[other] = value.clone(),
                    }
                }
                let taken = client.post_json("/agreements", &changed).await;
                let id = taken.created();
                client
                    .post_json(&format!("/agreements/{id}/terminate"), &json!({}))
                    .await;
            }
        }
        let smaller = |values: &[Value]| {
            values
                .iter()
                .any(|each| each["nodes"].is_number() || each["durationSeconds"].is_number())
        };
        assert!(smaller(&told[0].0) && smaller(&told[0].1), "{told:?}");
        assert!(!smaller(&told[1].0) && !smaller(&told[1].1), "{told:?}");
        assert!(!told[1].0.is_empty(), "{told:?}");
    });
}
