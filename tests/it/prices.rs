//! The price of an agreement: settled when it is made, and the same number wherever it is shown.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::negotiation::{Counter, SentOffer, negotiate, open};
use crate::support::offers::{Offer, file, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_price_is_the_same_wherever_it_is_shown_and_after_a_restart;
    a_release_on_postgres:
    a_budget_that_is_too_low_is_refused_with_the_lowest_that_will_do,
    what_is_further_away_and_dearer_is_not_offered,
    what_a_change_costs_is_one_number_from_the_quote_to_the_ledger,
);

/// Four nodes at a euro an hour, in every window.
const FLAT: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n";

/// Four nodes at a tenth of a euro an hour, up to 40 % off for slack, half of that for an hour.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"0.10\"\nflexible_percent = 40\nflexible_half_seconds = 3600\n";

async fn a_price_is_the_same_wherever_it_is_shown_and_after_a_restart(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let start = hours_ahead(24);
    // Three nodes for an hour with an hour of slack: 0.30 less a fifth.
    // One that begins at once can be moved nowhere, however long its window is.
    let client = server.client();
    let at_once = client
        .post("/agreements", Offer::reserve(3, 3_600).xml())
        .await
        .created();
    let at_once = client.get_json(&format!("/agreements/{at_once}")).await;
    assert_eq!(at_once["price"]["amount"], "0.3", "{at_once}");
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

async fn what_is_further_away_and_dearer_is_not_offered(url: String) {
    let resources = "[[resource]]\nname = \"dear\"\nkind = \"local\"\nnodes = 5\n\
         [[resource]]\nname = \"cheap\"\nkind = \"local\"\nnodes = 4\n";
    let prices = "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n\
         [[pricing.resource]]\nname = \"cheap\"\nnode_hour = \"0.10\"\n";
    let rules = "[scheduling]\nobjective = \"cheapest\"\n";
    let server = Server::configured(Some(&url), &format!("{rules}{resources}{prices}"));
    let client = server.client();
    let start = hours_ahead(24);
    // Five nodes are there on the expensive one only; a request for four goes to the cheap one.
    for (nodes, minutes) in [(5, 45), (4, 30)] {
        let from = start + 60 * minutes;
        let block = Offer::reserve(nodes, 300).within(from, from + 300);
        client.post("/agreements", block.xml()).await.created();
    }
    let id = open(&client).await;
    let hour = Offer::reserve(4, 3_600).within(start, start + 3_600);
    let ask = |name: &str, wishes: &str| SentOffer {
        state: "Advisory",
        ..SentOffer::solicited(name, hour.clone()).wishing(wishes)
    };
    let told = |answers: &[Counter]| -> Vec<(String, String, String)> {
        // The price comes after the parts of the request, a budget say.
        let text =
            |counter: &Counter, name| counter.texts(name).last().copied().unwrap_or_default().to_owned();
        let each = answers.iter();
        each.map(|each| (text(each, "Kind"), text(each, "Deviation"), text(each, "Amount")))
            .collect()
    };
    let line = |kind: &str, deviation: &str, amount: &str| {
        (kind.to_owned(), deviation.to_owned(), amount.to_owned())
    };
    // Three quarters of an hour on the expensive one or the whole hour a quarter of it earlier; and half an hour on the cheap one or the
    // whole hour half of it earlier. Per hour these cost the same, and a shorter slot keeps no whole one away. Later on either is further
    // away than earlier at the same price.
    let near = told(&negotiate(&client, id, &[ask("a", "")]).await);
    let dear = [line("Earlier", "0.25", "4"), line("Shorter", "0.25", "3")];
    let half = [line("Earlier", "0.5", "0.4"), line("Shorter", "0.5", "0.2")];
    let expected = [&dear[..], &half].concat();
    assert_eq!(near, expected, "the nearest first");
    let price = "<bsp:Preference><bsp:Price>1</bsp:Price></bsp:Preference>";
    let cheap = told(&negotiate(&client, id, &[ask("b", price)]).await);
    assert_eq!(
        cheap,
        [&half[..], &dear].concat(),
        "the cheapest for equal work first"
    );
    // A party that cannot pay the expensive one is not offered it.
    let budget = "<bsp:Budget><bsp:Amount>1</bsp:Amount><bsp:Currency>EUR</bsp:Currency></bsp:Budget>";
    let poor = told(&negotiate(&client, id, &[ask("c", budget)]).await);
    assert_eq!(poor, half);
    server.assert_verified();
}

async fn what_a_change_costs_is_one_number_from_the_quote_to_the_ledger(url: String) {
    let rules = "change_percent = 10\ncancellation_percent = 20\n";
    let server = Server::configured(Some(&url), &format!("{FLAT}{rules}"));
    let client = server.client();
    let start = hours_ahead(24);
    let four = Offer::reserve(4, 3_600).within(start, start + 3_600);
    let id = client.post("/agreements", four.xml()).await.created();
    // Four nodes for an hour cost 4; one costs 1. A tenth of 4 for the change, and a fifth of the 3 that are given up.
    let epr = file("tests/messages/m18-initiate-renegotiation-input.xml").replace("/a-1", &format!("/{id}"));
    let negotiation = client.post("/negotiations", epr).await.created();
    let one = Offer::reserve(1, 3_600).within(start, start + 3_600);
    let quoted = negotiate(&client, negotiation, &[SentOffer::solicited("c", one)]).await;
    assert_eq!(
        quoted[0].texts("Amount"),
        ["1", "-3", "1"],
        "price, difference, fee: {quoted:?}"
    );
    let flat = client.get_json(&format!("/negotiations/{negotiation}")).await;
    let flat = &flat["offers"][1];
    let eur = |amount: &str| json!({ "amount": amount, "currency": "EUR" });
    assert_eq!(
        (&flat["price"], &flat["priceDifference"], &flat["fee"]),
        (&eur("1"), &eur("-3"), &eur("1")),
        "{flat}"
    );
    let change = ["change", &id.to_string(), "--nodes", "1"];
    let table = server.run(&change);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("1 EUR (-3 EUR more), fee 1 EUR"), "{table}");
    let changed = server.run(&[&change[..], &["--yes", "--json"]].concat());
    let changed: Value = serde_json::from_slice(&changed.stdout).expect("JSON");
    assert_eq!(changed["price"], eur("1"), "{changed}");
    let accounts = client.get_json("/accounts").await;
    let entries = accounts["entries"].as_array().cloned().unwrap_or_default();
    let fees: Vec<_> = entries.iter().filter(|entry| entry["kind"] == "change").collect();
    assert!(!fees.is_empty(), "{accounts}");
    for fee in fees {
        let amount = fee["amount"]["amount"].as_str().unwrap_or_default();
        assert_eq!(amount.trim_start_matches('-'), "1", "{accounts}");
        assert_eq!(
            fee["agreement"].as_str(),
            Some(id.to_string().as_str()),
            "{accounts}"
        );
    }
    let timeline = client.get_json(&format!("/agreements/{id}/events")).await;
    assert!(timeline.to_string().contains("1 EUR: change"), "{timeline}");
    server.assert_verified();
}

/// Standard output and standard error of a command, and whether it succeeded.
fn said(server: &Server, arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = server.run(arguments);
    let text = |each: &[u8]| String::from_utf8_lossy(each).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn an_end_that_costs_something_is_not_asked_for_by_mistake() {
    run(async {
        let server = Server::configured(None, &format!("{FLAT}cancellation_percent = 20\n"));
        let client = server.client();
        let start = hours_ahead(24);
        let four = Offer::reserve(4, 3_600).within(start, start + 3_600);
        let id = client.post("/agreements", four.xml()).await.created().to_string();
        // A script cannot be asked.
        let (code, _, errors) = said(&server, &["terminate", &id]);
        assert_eq!(code, Some(1), "{errors}");
        assert!(
            errors.contains("costs 0.8 EUR") && errors.contains("--yes"),
            "{errors}"
        );
        let kept = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(kept["state"], "Observed", "{kept}");
        let (code, told, errors) = said(&server, &["terminate", &id, "--yes"]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(
            told.contains("0.8 EUR (cancellation: 20 % of its price of 4 EUR)"),
            "{told}"
        );
        let ended = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(ended["state"], "Terminated", "{ended}");
        let page = client.get(&format!("/agreements/{id}/events")).await;
        assert!(page.body.contains("20 % of its price of 4 EUR"), "{page:?}");
        server.assert_verified();
    });
}

#[test]
fn a_change_without_a_question_is_what_was_asked_for_and_no_dearer_than_what_was_shown() {
    run(async {
        let server = Server::configured(None, &format!("{FLAT}busy_percent = 100\nchange_percent = 1\n"));
        let client = server.client();
        let start = hours_ahead(24);
        let within = |nodes| Offer::reserve(nodes, 3_600).within(start, start + 3_600);
        let id = client
            .post("/agreements", within(1).xml())
            .await
            .created()
            .to_string();
        let next = Offer::reserve(4, 3_600).within(start + 3_600, start + 7_200);
        client.post("/agreements", next.xml()).await.created();
        // Two hours cannot be had there.
        let (code, told, errors) = said(&server, &["change", &id, "--for", "2h", "--yes"]);
        assert_eq!(code, Some(1), "{told}{errors}");
        let is_refused = errors.contains("nothing is changed") || errors.contains("no resource has");
        assert!(is_refused, "{errors}");
        let kept = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(
            (&kept["state"], &kept["nodes"]),
            (&json!("Observed"), &json!(1)),
            "{kept}"
        );
        let (_, shown, _) = said(&server, &["change", &id, "--nodes", "2", "--json"]);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        let shown = &shown["offers"][0];
        // The same again is the same, also beside what is held for it.
        let (_, again, _) = said(&server, &["change", &id, "--nodes", "2", "--json"]);
        let again: Value = serde_json::from_str(&again).expect("JSON");
        for member in ["kind", "start", "price", "fee", "feeReason"] {
            assert_eq!(again["offers"][0][member], shown[member], "{again}");
        }
        assert_eq!(shown["feeReason"], "1 % of its price of 1 EUR", "{shown}");
        client.post("/agreements", within(1).xml()).await.created();
        let (code, _, errors) = said(&server, &["change", &id, "--nodes", "2", "--yes"]);
        assert_eq!(code, Some(1), "{errors}");
        let old = shown["id"].as_str().expect("an id");
        assert!(
            errors.contains("was shown before") && errors.contains("bespeak accept"),
            "{errors}"
        );
        let kept = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(kept["state"], "Observed", "{kept}");
        let (code, _, errors) = said(&server, &["accept", old]);
        assert_eq!(code, Some(0), "what was shown is still had: {errors}");
        server.assert_verified();
    });
}
