//! What an agreement costs: settled when it is made, and the same number wherever it is shown.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_price_is_the_same_wherever_it_is_shown_and_after_a_restart,
    a_budget_that_is_too_low_is_refused_with_the_lowest_that_will_do,
);

/// Four nodes at a tenth of a euro an hour, up to 40 % off for slack, half of that for an hour.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"0.10\"\nflexible_percent = 40\nflexible_half_seconds = 3600\n";

async fn a_price_is_the_same_wherever_it_is_shown_and_after_a_restart(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let start = hours_ahead(24);
    // Three nodes for an hour with an hour of slack: 0.30 less a fifth.
    let offer = Offer::reserve(3, 3_600).within(start, start + 7_200).xml();
    let id = server.client().post("/agreements", offer).await.created();
    for _ in 0..2 {
        let client = server.client();
        let xml = client.get(&format!("/agreements/{id}")).await;
        assert_eq!(
            (xml.text("Amount"), xml.text("Currency")),
            ("0.24", "EUR"),
            "{xml:?}"
        );
        let flat = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(flat["price"], json!({ "amount": "0.24", "currency": "EUR" }));
        let shown = server.run(&["show", &id.to_string()]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("price      0.24 EUR"), "{shown}");
        server.kill9();
        server.restart();
    }
    server.assert_verified();
}

#[test]
fn without_a_price_list_nothing_is_priced() {
    crate::support::run(async {
        let server = Server::local();
        let id = server
            .client()
            .post("/agreements", Offer::reserve(1, 60).xml())
            .await
            .created();
        let flat = server.client().get_json(&format!("/agreements/{id}")).await;
        assert_eq!(flat.get("price"), None, "{flat}");
    });
}

async fn a_budget_that_is_too_low_is_refused_with_the_lowest_that_will_do(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let start = hours_ahead(24);
    let offer = Offer::reserve(3, 3_600).within(start, start + 7_200);
    let refused = client
        .post("/agreements", offer.clone().for_at_most("0.239999", "EUR").xml())
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    assert_eq!(refused.text("Reason"), "BUDGET_TOO_LOW");
    assert_eq!(
        (refused.text("Amount"), refused.text("Currency")),
        ("0.24", "EUR")
    );
    let foreign = client
        .post("/agreements", offer.clone().for_at_most("1", "CHF").xml())
        .await;
    assert_eq!(foreign.status, StatusCode::UNPROCESSABLE_ENTITY, "{foreign:?}");
    assert!(foreign.text("Path").ends_with("bsp:Currency"), "{foreign:?}");
    let accepted = client
        .post("/agreements", offer.for_at_most("0.24", "EUR").xml())
        .await
        .created();
    let flat = client.get_json(&format!("/agreements/{accepted}")).await;
    assert_eq!(flat["price"]["amount"], "0.24");
    server.assert_verified();
}
