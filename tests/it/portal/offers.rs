//! The page of the offers in negotiations, from which an offer is accepted, and the page of resources.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::browser::{Browser, Form, Page};
use super::{CONFIGURATION, agreements};
use crate::proposals::{PROPOSING, proposed};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

const HOUR: i64 = 3_600;
const PAGE: &str = "/portal/negotiations";

fn priced() -> Server {
    let priced = "\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"10\"\nchange_percent = 2\n";
    Server::configured(None, &format!("{CONFIGURATION}{priced}"))
}

/// Asks for nodes for an hour at a time; the answer.
async fn ask(client: &Client, nodes: u32, start: i64, more: &Value) -> Value {
    let window = json!({ "start": date_time(start), "end": date_time(start + HOUR) });
    let mut asked = json!({ "nodes": nodes, "durationSeconds": HOUR, "window": window });
    for (name, value) in more.as_object().into_iter().flatten() {
        asked[name] = value.clone();
    }
    let answer = client.post_json("/negotiations", &asked).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

/// The form that accepts an offer, and where it is sent.
fn accepting(page: &Page, offer: &Value) -> (String, Form) {
    let action = format!("/portal/offers/{}/accept", offer["id"].as_str().expect("an id"));
    (action.clone(), page.form_to(&action))
}

/// The page of the negotiation with an answer.
fn page_of(answer: &Value) -> String {
    format!("{PAGE}/{}", answer["id"].as_str().expect("an id"))
}

#[test]
fn what_is_held_is_shown_with_its_price_and_accepted_once() {
    let server = priced();
    let key = server.key_for("ann", "consumer");
    run(async {
        let client = server.client_with(&key);
        let mut browser = Browser::signed_in(&server, &key).await;
        let empty = browser.get(PAGE).await;
        assert!(empty.body.contains("Nothing is offered to you"), "{empty:?}");
        assert_eq!(empty.link("Ask for offers"), "/portal");
        let start = hours_ahead(4);
        let block = Offer::reserve(4, HOUR).within(start, start + HOUR);
        client.post("/agreements", block.xml()).await.created();
        let answer = ask(&client, 2, start, &json!({})).await;
        let offers = answer["offers"].as_array().expect("a list");
        assert_eq!(offers.len(), 2, "{answer}");
        let list = browser.get(PAGE).await;
        assert_eq!(list.link("See prices and terms, and choose"), page_of(&answer));
        let page = browser.get(&page_of(&answer)).await;
        assert_eq!(page.status, StatusCode::OK);
        for (offer, words) in offers
            .iter()
            .zip(["earlier than asked for", "later than asked for"])
        {
            let row = page
                .body
                .split("<li class=\"card offer\" id=\"offer-")
                .find(|row| row.starts_with(offer["id"].as_str().expect("an id")));
            let row = row.unwrap_or_else(|| panic!("no {offer} in {page:?}"));
            let at = |name: &str| format!("datetime=\"{}\"", offer[name].as_str().expect("an instant"));
            let parts = [
                at("start"),
                at("end"),
                at("ready"),
                at("deadline"),
                at("heldUntil"),
            ];
            for part in parts
                .iter()
                .map(String::as_str)
                .chain([words, "2 nodes for 1 h", "20 EUR"])
            {
                assert!(row.contains(part), "no {part} in {row}");
            }
        }

        // Not without the session's token, nor by another visitor.
        let (action, form) = accepting(&page, &offers[1]);
        let forged = browser.post(&action, &form.clone().with("csrf", "")).await;
        assert_eq!(forged.status, StatusCode::FORBIDDEN);
        let mut other = Browser::signed_in(&server, &server.key_for("bob", "consumer")).await;
        assert!(other.get(PAGE).await.body.contains("Nothing is offered to you"));
        assert_eq!(other.get(&page_of(&answer)).await.status, StatusCode::NOT_FOUND);
        let theirs = form.clone().with("csrf", &other.form().await.0["csrf"]);
        assert_eq!(other.post(&action, &theirs).await.status, StatusCode::NOT_FOUND);
        let operator = Browser::signed_in(&server, server.key()).await;
        assert!(operator.get(PAGE).await.body.contains(", of ann"));
        let all = operator.get(&page_of(&answer)).await;
        assert!(
            all.body.contains(", of ann") && !all.body.contains(&action),
            "{all:?}"
        );
        assert!(
            all.body.contains("<strong>ann:</strong>") && !all.body.contains("<strong>You:</strong>"),
            "{all:?}"
        );

        let made = browser.post(&action, &form).await.location().to_owned();
        let again = browser.post(&action, &form).await;
        assert_eq!(again.location(), made, "a form that is sent twice is taken once");
        let id = made.rsplit('/').next().expect("an id");
        let view = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(view["plannedStart"], offers[1]["start"], "{view}");
        assert_eq!(agreements(&server).await.len(), 2);

        // The other one was released with it.
        let (action, form) = (
            format!(
                "/portal/offers/{}/accept",
                offers[0]["id"].as_str().unwrap_or_default()
            ),
            form.with("once", id),
        );
        let lost = browser.post(&action, &form).await;
        assert!(lost.status.is_client_error(), "{lost:?}");
        assert!(
            lost.body.contains("role=\"alert\"") && lost.body.contains("This cannot be accepted"),
            "{lost:?}"
        );
        assert!(lost.body.contains("<title>Error: "), "{lost:?}");
        server.assert_verified();
    });
}

#[test]
fn a_card_says_what_is_guaranteed_by_whom_and_what_is_paid_otherwise() {
    let server = priced();
    run(async {
        let template = json!({ "template": "guaranteed-reservation" });
        let answer = ask(&server.client(), 4, hours_ahead(4), &template).await;
        let browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&page_of(&answer)).await;
        for part in [
            "The provider guarantees: Begins by ",
            ", or you get 8 EUR.",
            "The provider guarantees: Ends by ",
            ", or you get 20 EUR.",
        ] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        assert!(!page.body.contains(" le "), "{page:?}");
    });
}

#[test]
fn a_change_is_shown_with_what_it_costs_more_and_takes_the_place_of_its_agreement() {
    let server = priced();
    run(async {
        let client = server.client();
        let start = hours_ahead(4);
        let own = Offer::reserve(2, HOUR).within(start, start + HOUR);
        let old = client.post("/agreements", own.xml()).await.created();
        let change = json!({ "agreement": old });
        let answer = ask(&client, 3, start, &change).await;
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&page_of(&answer)).await;
        for part in [
            format!("href=\"/portal/agreements/{old}\"").as_str(),
            "<p class=\"price\">30 EUR</p>",
            "10 EUR more than now",
            "a fee of 0.4 EUR for the change",
            ">Change it: 30 EUR, and a fee of 0.4 EUR</button>",
        ] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        let again = page.link("Change the request");
        assert!(
            again.starts_with(&format!("/portal/agreements/{old}/change?")),
            "{again}"
        );
        let (action, form) = accepting(&page, &answer["offers"][0]);
        let made = browser.post(&action, &form).await.location().to_owned();
        let over = browser.get(&page_of(&answer)).await;
        assert!(!over.body.contains("href=\"/portal?"), "{over:?}");
        assert!(browser.get(&made).await.body.contains("3 nodes"));
        let replaced = client.get_json(&format!("/agreements/{old}")).await;
        assert!(
            made.ends_with(replaced["supersededBy"].as_str().unwrap_or("none")),
            "{replaced}"
        );
        server.assert_verified();
    });
}

#[test]
fn operators_see_which_nodes_are_out_of_use_and_why_and_others_do_not() {
    let large = "\n[[resource]]\nname = \"large\"\nkind = \"local\"\nnodes = 1000\n";
    let server = Server::configured(None, &format!("{CONFIGURATION}{large}"));
    run(async {
        let set = [
            "nodes",
            "local",
            "1",
            "3",
            "--set",
            "drained",
            "--reason",
            "a <new> fan",
        ];
        assert!(server.run(&set).status.success());
        let one = ["nodes", "large", "700", "--set", "down"];
        assert!(server.run(&one).status.success());
        let operator = Browser::signed_in(&server, server.key()).await;
        let page = operator.get("/portal/operator/resources").await;
        assert_eq!(page.status, StatusCode::OK);
        for text in [
            "4 nodes: 2 up, 2 drained.",
            "operator: drained since",
            "a &#60;new&#62; fan",
        ] {
            assert!(page.body.contains(text), "no {text} in {page:?}");
        }
        // All nodes where they are few; where they are many, the ones that are not up.
        assert_eq!(page.body.matches("<th scope=\"row\">").count(), 4 + 1, "{page:?}");
        assert!(page.body.contains("999 more that are up."), "{page:?}");
        assert!(
            operator
                .get("/portal")
                .await
                .body
                .contains("href=\"/portal/operator\"")
        );
        let consumer = Browser::signed_in(&server, &server.key_for("ann", "consumer")).await;
        assert!(
            !consumer
                .get("/portal")
                .await
                .body
                .contains("href=\"/portal/operator\"")
        );
        let refused = consumer.get("/portal/operator/resources").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
        let nothing_yet = operator.get("/portal/operator/reliability").await;
        assert!(
            nothing_yet
                .body
                .contains("no prediction with a known outcome yet"),
            "{nothing_yet:?}"
        );
        let refused = consumer.get("/portal/operator/reliability").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
        let nobody = Browser::new(&server);
        for path in [PAGE, "/portal/operator/resources", "/portal/operator/reliability"] {
            let page = nobody.get(path).await;
            assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(page.body.contains("type=\"password\""), "{path}");
        }
    });
}

#[test]
fn what_the_provider_proposes_is_shown_with_the_reason_and_accepted_by_a_button() {
    let server = priced();
    let key = server.key_for("ann", "consumer");
    run(async {
        let client = server.client_with(&key);
        let mut browser = Browser::signed_in(&server, &key).await;
        let start = hours_ahead(4);
        let rigid = Offer::reserve(4, HOUR).within(start, start + HOUR);
        let broken = client.post("/agreements", rigid.guaranteed_xml()).await.created();
        let down = server.run(&["nodes", "local", "0", "--set", "down"]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        let path = format!("/agreements/{broken}");
        let offer = eventually("a proposal", Duration::from_mins(1), async || {
            let shown = client.get_json(&path).await;
            shown["proposals"][0]["offers"].get(0).cloned()
        })
        .await;
        let page = browser.get(&format!("/portal{path}")).await;
        assert!(page.body.contains("proposes"), "{page:?}");
        assert!(
            page.body.contains("It lost its place before it began"),
            "{page:?}"
        );
        let waiting = |page: &Page| page.body.contains("<span class=\"count\">1<");
        assert!(waiting(&page), "{page:?}");
        let list = browser.get("/portal/reservations").await;
        assert!(
            list.body.contains(">Waiting for your answer<") && !list.body.contains(">Past<"),
            "{list:?}"
        );
        let list = browser.get(PAGE).await;
        // Seven tenths of 40 EUR.
        let why = "could not be kept, since its nodes are out of use. 28 EUR were paid to you";
        assert!(list.body.contains(why), "{list:?}");
        let page = browser.get(&list.link("A proposal of the provider")).await;
        assert!(page.body.contains(why), "{page:?}");
        assert!(page.body.contains("which lost its place"), "{page:?}");
        let (action, form) = accepting(&page, &offer);
        let accepted = browser.post(&action, &form).await;
        let shown = client.get_json(&path).await;
        let by = shown["supersededBy"]
            .as_str()
            .unwrap_or_else(|| panic!("{shown} after {accepted:?}"));
        assert_eq!(accepted.location(), format!("/portal/agreements/{by}"));
        let page = browser.get(accepted.location()).await;
        assert!(!waiting(&page), "{page:?}");
    });
}

#[test]
fn a_lost_reservation_whose_proposal_is_declined_can_be_asked_for_again() {
    let server = priced();
    let key = server.key_for("ann", "consumer");
    run(async {
        let client = server.client_with(&key);
        let mut browser = Browser::signed_in(&server, &key).await;
        let start = hours_ahead(4);
        let rigid = Offer::reserve(4, HOUR).within(start, start + HOUR);
        let path = format!(
            "/portal/agreements/{}",
            client.post("/agreements", rigid.xml()).await.created()
        );
        let down = server.run(&["nodes", "local", "0", "--set", "down"]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        let page = eventually("a proposal", Duration::from_mins(1), async || {
            let page = browser.get(&path).await;
            page.body.contains("another place</a>").then_some(page)
        })
        .await;
        let proposal = page.link("another place");
        let release = format!("{proposal}/release");
        let form = browser.get(&proposal).await.form_to(&release);
        browser.post(&release, &form).await.location();
        let page = browser.get(&path).await;
        let again = browser.get(&page.link("Ask for it again")).await.form();
        assert_eq!((again.0["nodes"].as_str(), again.0["hours"].as_str()), ("4", "1"));
        assert!(!again.0["start-date"].is_empty(), "its time is yet to come");
        let list = browser.get("/portal/reservations?state=lost").await;
        assert!(
            list.body.contains(&path) && list.body.contains(">Past<"),
            "{list:?}"
        );
    });
}

#[test]
fn a_proposal_is_accepted_with_its_discount_or_declined() {
    for accepts in [true, false] {
        let server = Server::configured(None, PROPOSING);
        let keys = ["ann", "bob"].map(|party| server.key_for(party, "consumer"));
        run(async {
            let [ann, bob] = keys.each_ref().map(|key| server.client_with(key));
            let start = hours_ahead(4);
            let full = Offer::reserve(4, HOUR).within(start, start + HOUR);
            let id = ann.post("/agreements", full.xml()).await.created();
            let path = format!("/agreements/{id}");
            let before = ann.get_json(&path).await;
            let refused = bob.post("/agreements", full.xml()).await;
            assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
            let proposal = proposed(&ann, id).await;
            let mut browser = Browser::signed_in(&server, &keys[0]).await;
            let list = browser.get(PAGE).await;
            let negotiation = list.link("A proposal of the provider");
            let page = browser.get(&negotiation).await;
            for part in [
                "would let others in. Nothing moves unless you accept.",
                "<p class=\"price\">3 EUR</p>",
                "1 EUR less than now",
                "<button>Decline</button>",
            ] {
                assert!(page.body.contains(part), "no {part} in {page:?}");
            }
            if accepts {
                let (action, form) = accepting(&page, &proposal["offers"][0]);
                let made = browser.post(&action, &form).await.location().to_owned();
                let shown = browser.get(&made).await;
                assert!(shown.body.contains("Price: <strong>3 EUR</strong>"), "{shown:?}");
            } else {
                let decline = format!("{negotiation}/release");
                let declined = browser.post(&decline, &page.form_to(&decline)).await;
                let page = browser.get(declined.location()).await;
                assert!(page.body.contains("These offers were released"), "{page:?}");
                let after = ann.get_json(&path).await;
                assert_eq!(
                    (&after["state"], &after["plannedStart"], after.get("proposals")),
                    (&before["state"], &before["plannedStart"], None),
                    "{after}"
                );
            }
            server.assert_verified();
        });
    }
}

#[test]
fn the_energy_of_its_nodes_is_shown_with_an_offer_and_with_its_reservation() {
    let energy = "[pricing.energy]\nkwh = \"0.25\"\n[[pricing.energy.resource]]\nname = \"local\"\nbusy_watts = 500\nidle_watts = 100\n";
    let priced = "\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"10\"\n";
    let server = Server::configured(None, &format!("{CONFIGURATION}{priced}{energy}"));
    run(async {
        let answer = ask(&server.client(), 3, hours_ahead(4), &json!({})).await;
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&page_of(&answer)).await;
        let shown = "<dt>Energy</dt><dd>1.5 kWh</dd>";
        assert!(page.body.contains(shown), "{page:?}");
        let (action, form) = accepting(&page, &answer["offers"][0]);
        let made = browser.post(&action, &form).await.location().to_owned();
        let page = browser.get(&made).await;
        assert!(page.body.contains(shown), "{page:?}");
    });
}
