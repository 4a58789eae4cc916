//! Accepted, waiting agreements get other sizes and other pieces to let others in: as their terms say, at the price that was agreed, and
//! their parties are told.

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::pieces::start_with;
use crate::portal::browser::Browser;
use crate::support::client::Client;
use crate::support::offers::{date_time, hours_ahead};
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_waiting_agreement_takes_fewer_nodes_to_let_another_in,
    waiting_work_is_cut_to_let_another_in;
    a_release_on_postgres:
    what_keeps_its_shape_is_not_shown_as_open,
    what_may_change_is_a_term_and_its_mistakes_are_told,
);

const HOUR: i64 = 3_600;
const GRACE: i64 = 7;

/// A euro for a node and an hour.
const PRICES: &str = "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n";

fn window(start: i64, hours: i64) -> Value {
    json!({ "start": date_time(start), "end": date_time(start + hours * HOUR) })
}

/// Eight nodes for an hour, or as few as four for two.
fn sized(start: i64) -> Value {
    json!({
        "nodes": { "min": 4, "max": 8 },
        "moldability": { "constantWork": 8 * HOUR },
        "window": window(start, 2),
    })
}

fn narrow(start: i64) -> Value {
    json!({ "nodes": 4, "durationSeconds": 2 * HOUR, "window": window(start, 2) })
}

/// Two hours of work that may be cut in the middle, in three hours.
fn cuttable(start: i64) -> Value {
    json!({
        "application": "count",
        "arguments": [60],
        "nodes": 8,
        "durationSeconds": 2 * HOUR,
        "preemption": { "pieces": 2, "interval": 0.5, "independent": false },
        "window": window(start, 3),
    })
}

/// All nodes in the second of three hours.
fn rigid(start: i64) -> Value {
    json!({ "nodes": 8, "durationSeconds": HOUR, "window": window(start + HOUR, 1) })
}

async fn place(client: &Client, request: &Value) -> Uuid {
    client.post_json("/agreements", request).await.created()
}

async fn show(client: &Client, id: Uuid) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

/// The members of an agreement that no change of its shape may change.
fn promised(agreement: &Value) -> [Value; 4] {
    ["ready", "deadline", "price", "guarantees"].map(|member| agreement[member].clone())
}

async fn events(client: &Client, id: Uuid) -> String {
    client.get(&format!("/agreements/{id}/events")).await.body
}

async fn a_waiting_agreement_takes_fewer_nodes_to_let_another_in(url: String) {
    let (server, _programs) = start_with(Some(&url), 8, GRACE, PRICES);
    let client = server.client();
    let start = hours_ahead(5);
    let first = place(&client, &sized(start)).await;
    let before = show(&client, first).await;
    assert_eq!(
        (&before["nodes"], &before["durationSeconds"]),
        (&json!(8), &json!(HOUR))
    );
    assert_eq!(before["price"]["amount"], "8", "{before}");
    assert_eq!(
        before["mayChange"],
        json!({ "sizes": true, "cuts": false }),
        "{before}"
    );

    let tried = client.post_json("/agreements?dryRun=true", &narrow(start)).await;
    assert!(tried.status.is_success(), "{tried:?}");
    assert_eq!(show(&client, first).await, before, "a dry run changes nothing");
    let accepted = client.post_json("/agreements", &narrow(start)).await;
    let moved = accepted.json()["moved"].clone();
    assert_eq!(moved[0]["id"], json!(first), "{accepted:?}");
    let second = show(&client, accepted.created()).await;
    assert_eq!(
        (&second["nodes"], &second["price"]["amount"]),
        (&json!(4), &json!("8"))
    );
    assert!(second["mayChange"].is_null(), "{second}");

    let after = show(&client, first).await;
    assert_eq!(
        (&after["nodes"], &after["durationSeconds"]),
        (&json!(4), &json!(2 * HOUR))
    );
    assert_eq!(after["plannedStart"], before["plannedStart"]);
    assert_eq!(after["plannedEnd"], before["deadline"]);
    assert_eq!(promised(&after), promised(&before));
    let document = client.get(&format!("/agreements/{first}")).await;
    document.assert_valid();
    let term = "<bsp:MayChange><bsp:Sizes>true</bsp:Sizes><bsp:Cuts>false</bsp:Cuts></bsp:MayChange>";
    assert!(document.body.contains(term), "{document:?}");
    let told = events(&client, first).await;
    let line = "with 4 nodes for 7200 seconds, to let another agreement in";
    assert!(told.contains(line), "{told}");

    let other = start + 24 * HOUR;
    place(&client, &narrow(other)).await;
    let sized = show(&client, place(&client, &sized(other)).await).await;
    assert_eq!(sized["nodes"], json!(4), "in the other order both fit: {sized}");
    server.assert_verified();
}

async fn waiting_work_is_cut_to_let_another_in(url: String) {
    let (server, _programs) = start_with(Some(&url), 8, GRACE, PRICES);
    let client = server.client();
    let start = hours_ahead(5);
    let first = place(&client, &cuttable(start)).await;
    let before = show(&client, first).await;
    assert!(before["pieces"].is_null(), "{before}");
    assert_eq!(before["price"]["amount"], "16", "{before}");
    assert_eq!(
        before["mayChange"],
        json!({ "sizes": false, "cuts": true }),
        "{before}"
    );

    place(&client, &rigid(start)).await;
    let after = show(&client, first).await;
    let pieces = after["pieces"].as_array().expect("it has pieces");
    let planned = pieces.iter().map(|piece| {
        let [start, end] = ["plannedStart", "plannedEnd"].map(|member| piece[member].clone());
        (start, end, piece["nodes"].clone())
    });
    let at = |hours: i64| json!(date_time(start + hours * HOUR));
    assert_eq!(
        planned.collect::<Vec<_>>(),
        [(at(0), at(1), json!(8)), (at(2), at(3), json!(8))]
    );
    assert_eq!(promised(&after), promised(&before));
    assert_eq!(after["durationSeconds"], before["durationSeconds"]);
    let document = client.get(&format!("/agreements/{first}")).await;
    document.assert_valid();
    let term = "<bsp:MayChange><bsp:Sizes>false</bsp:Sizes><bsp:Cuts>true</bsp:Cuts></bsp:MayChange>";
    assert!(document.body.contains(term), "{document:?}");
    let told = events(&client, first).await;
    let line = "in 2 pieces, with 8 nodes for 7200 seconds in all, to let another agreement in";
    assert!(told.contains(line), "{told}");

    let other = start + 24 * HOUR;
    place(&client, &rigid(other)).await;
    let cut = show(&client, place(&client, &cuttable(other)).await).await;
    assert_eq!(cut["pieces"].as_array().map(Vec::len), Some(2), "{cut}");
    server.assert_verified();
}

async fn what_keeps_its_shape_is_not_shown_as_open(url: String) {
    let (server, _programs) = start_with(Some(&url), 8, GRACE, "");
    let client = server.client();
    let browser = Browser::signed_in(&server, server.key()).await;
    let all = json!({ "sizes": true, "cuts": false });
    let over = json!({ "sizes": true, "cuts": false, "until": date_time(hours_ahead(-1)) });
    let cases = [
        ("fixAt", json!(0.9), &all, true),
        ("fixAt", json!(0), &all, false),
        ("mayChange", over.clone(), &over, false),
    ];
    for ((member, value, agreed, is_open), hours) in cases.into_iter().zip([5, 29, 53]) {
        let mut request = sized(hours_ahead(hours));
        request[member] = value;
        let id = place(&client, &request).await;
        let page = browser.get(&format!("/portal/agreements/{id}")).await;
        let shown = page.body.contains("it may get another of its sizes");
        assert_eq!(shown, is_open, "{request}: {page:?}");
        assert_eq!(&show(&client, id).await["mayChange"], agreed, "as it was agreed");
    }
    server.assert_verified();
}

async fn what_may_change_is_a_term_and_its_mistakes_are_told(url: String) {
    let (server, _programs) = start_with(Some(&url), 8, GRACE, "");
    let client = server.client();
    let start = hours_ahead(5);
    let said = |changes: Value| {
        let mut request = cuttable(start);
        request["mayChange"] = changes;
        request
    };
    let until = date_time(start - HOUR);
    let changes = json!({ "sizes": false, "cuts": true, "until": until });
    let offered = client
        .post_json("/negotiations", &said(changes.clone()))
        .await
        .json();
    let offer = &offered["offers"][0];
    assert_eq!(offer["mayChange"], changes, "{offered}");
    let browser = Browser::signed_in(&server, server.key()).await;
    let negotiation = offered["id"].as_str();
    let page = browser
        .get(&format!("/portal/negotiations/{}", negotiation.expect("an id")))
        .await;
    assert!(page.body.contains("it may get other pieces, until"), "{page:?}");

    let fixed = said(json!({ "sizes": false, "cuts": false }));
    let other = hours_ahead(48);
    let mut fixed_later = fixed.clone();
    fixed_later["window"] = window(other, 3);
    let id = place(&client, &fixed_later).await;
    let shown = show(&client, id).await;
    assert_eq!(
        shown["mayChange"],
        json!({ "sizes": false, "cuts": false }),
        "{shown}"
    );
    let terms = client.get_json(&format!("/agreements/{id}/terms")).await;
    let terms = terms["terms"].as_array().expect("a list");
    let scheduling = terms.iter().find(|term| term["kind"] == "scheduling");
    assert_eq!(
        scheduling.expect("it is there")["mayChange"],
        json!({ "sizes": false, "cuts": false })
    );
    let document = client.get(&format!("/agreements/{id}")).await;
    document.assert_valid();
    let term = "<bsp:MayChange><bsp:Sizes>false</bsp:Sizes><bsp:Cuts>false</bsp:Cuts></bsp:MayChange>";
    assert!(
        document.body.matches(term).count() > 1,
        "as said and as it is: {document:?}"
    );
    let refused = client.post_json("/agreements", &rigid(other)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    assert_eq!(show(&client, id).await, shown);

    for (wrong, place) in [
        (json!({ "sizes": 1, "cuts": true }), "/mayChange/sizes"),
        (json!({ "sizes": true }), "/mayChange"),
        (
            json!({ "sizes": true, "cuts": true, "until": "soon" }),
            "/mayChange/until",
        ),
    ] {
        let refused = client.post_json("/agreements", &said(wrong)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert_eq!(refused.json()["violations"][0]["path"], place, "{refused:?}");
    }
    server.assert_verified();
}
