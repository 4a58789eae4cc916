//! Nodes go away under offers that are held: an offer that can still be kept is kept, and the party hears of one that cannot.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, counters, negotiate, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    an_offer_is_kept_on_other_nodes_or_withdrawn_with_fresh_ones_in_its_place;
    a_release_on_postgres:
    agreements_make_room_for_offers_and_offers_for_agreements,
);

const HOUR: i64 = 3_600;

/// Sets the state of nodes, as an operator; the answer.
fn set(server: &Server, nodes: &[&str], state: &str) -> String {
    let said = server.run(&[&["nodes", "local"], nodes, &["--set", state]].concat());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).expect("it is text")
}

/// Asks for two nodes for an hour; the negotiation and the offer, which is the one asked for.
async fn hold(client: &Client, start: i64) -> (String, Value) {
    let window = json!({ "start": date_time(start), "end": date_time(start + HOUR) });
    let asked = json!({ "nodes": 2, "durationSeconds": HOUR, "window": window });
    let answer = client.post_json("/negotiations", &asked).await.json();
    let offer = answer["offers"][0].clone();
    assert_eq!(
        (&offer["kind"], &offer["state"]),
        (&"exact".into(), &"Acceptable".into()),
        "{answer}"
    );
    let id = answer["id"].as_str().unwrap_or_default().to_owned();
    (id, offer["id"].clone())
}

/// The state of the first counter offer of a negotiation, and why it is in it.
async fn stands(client: &Client, negotiation: &str) -> (Value, Value) {
    let view = client.get_json(&format!("/negotiations/{negotiation}")).await;
    let offer = view["offers"][1].clone();
    (offer["state"].clone(), offer["refusal"].clone())
}

async fn an_offer_is_kept_on_other_nodes_or_withdrawn_with_fresh_ones_in_its_place(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(2);
    let (first, kept) = hold(&client, start).await;
    let id = open(&client).await;
    let asked = Offer::reserve(2, HOUR).within(start, start + HOUR);
    let second = negotiate(&client, id, &[SentOffer::solicited("c", asked)]).await;
    assert_eq!(second[0].state, "Acceptable");
    // Three nodes are left: the first stays where it is, and there is no room for the second any more.
    let told = set(&server, &["0"], "down");
    assert!(told.ends_with("; 1 held offer withdrawn\n"), "{told}");
    assert_eq!(stands(&client, &first).await, ("Acceptable".into(), Value::Null));
    let (state, why) = stands(&client, &id.to_string()).await;
    assert_eq!(
        (&state, &why["reason"]),
        (&"Rejected".into(), &"NO_CAPACITY_IN_WINDOW".into()),
        "{why}"
    );
    let told = why["bindingConstraint"].as_str().unwrap_or_default();
    assert!(told.contains("nodes are out of use"), "{why}");
    let shown = client.get(&format!("/negotiations/{id}")).await;
    assert!(shown.body.contains("nodes are out of use"), "{shown:?}");
    server.assert_verified();
    // The kept and the lost offers are the same after a crash, and another node makes no difference to them.
    server.kill9();
    server.restart();
    let client = server.client();
    assert_eq!(stands(&client, &first).await.0, "Acceptable");
    set(&server, &["3"], "drained");
    assert_eq!(stands(&client, &first).await.0, "Acceptable");
    let gone = client.post("/agreements?hold=true", second[0].acceptance()).await;
    assert_eq!(gone.status, StatusCode::GONE, "{gone:?}");
    assert!(gone.text("Description").contains("withdrawn"), "{gone:?}");
    assert_eq!(gone.text("ErrorCode"), "WITHDRAWN");
    let fresh = counters(&gone);
    assert_eq!(fresh[0].state, "Acceptable", "{gone:?}");
    assert_ne!(fresh[0].text("PlannedStart"), date_time(start), "{gone:?}");
    client.post("/agreements", fresh[0].acceptance()).await.created();
    let accepted = client
        .post_json("/agreements", &json!({ "offer": kept }))
        .await
        .created();
    let view = client.get_json(&format!("/agreements/{accepted}")).await;
    assert_eq!(view["plannedStart"], date_time(start), "{view}");
    server.assert_verified();
    set(&server, &["0", "3"], "up");
    server.assert_verified();
}

async fn agreements_make_room_for_offers_and_offers_for_agreements(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(2);
    // One that may move does so for an offer, and stays where it went when the offer has been accepted.
    let flexible = Offer::reserve(2, HOUR).within(start, start + 3 * HOUR);
    let flexible = client.post("/agreements", flexible.xml()).await.created();
    let (held, offer) = hold(&client, start).await;
    set(&server, &["0"], "down");
    assert_eq!(stands(&client, &held).await.0, "Acceptable");
    let moved = client.get_json(&format!("/agreements/{flexible}")).await;
    assert_eq!(moved["plannedStart"], date_time(start + HOUR), "{moved}");
    client
        .post_json("/agreements", &json!({ "offer": offer }))
        .await
        .created();
    server.assert_verified();
    // One that may not is kept, and an offer gives way: here one to change the agreement itself, which needs a node more than is
    // left, and one of another party.
    set(&server, &["0"], "up");
    let later = start + 5 * HOUR;
    let rigid = Offer::reserve(2, HOUR).within(later, later + HOUR);
    let rigid = client.post("/agreements", rigid.xml()).await.created();
    let change = client
        .post_json("/negotiations", &json!({ "agreement": rigid, "nodes": 3 }))
        .await
        .json();
    assert_eq!(change["offers"][0]["state"], "Acceptable", "{change}");
    let other = client.post(
        "/agreements",
        Offer::reserve(1, HOUR).within(later, later + HOUR).xml(),
    );
    other.await.created();
    set(&server, &["0"], "down");
    let change = change["id"].as_str().unwrap_or_default().to_owned();
    assert_eq!(stands(&client, &change).await.0, "Rejected");
    let stays = client.get_json(&format!("/agreements/{rigid}")).await;
    assert_eq!(
        (&stays["state"], &stays["nodes"]),
        (&"Observed".into(), &2.into()),
        "{stays}"
    );
    server.assert_verified();
    server.kill9();
    server.restart();
    server.assert_verified();
}
