//! Counter offers that are accepted now and decided later: Pending at once, held meanwhile, Observed or Rejected afterwards; and
//! the faults of an extension, by their paths.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::idempotency::with_id;
use crate::store::tamper;
use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::negotiation::{Counter, SentOffer, counters, negotiate, open};
use crate::support::offers::{Offer, file, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    of_two_that_accept_the_same_later_one_is_observed,
    the_same_words_have_the_same_agreement_under_any_key;
    a_release_on_postgres:
    a_counter_offer_is_accepted_and_decided_later,
    what_became_of_a_rejected_acceptance_is_answered_when_it_comes_again,
);

const DEADLINE: Duration = Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// The message that accepts a counter offer later.
fn pending(offer: &Counter) -> String {
    offer
        .acceptance()
        .replace("wsag:CreateAgreementInput", "wsag:CreatePendingAgreementInput")
}

async fn post_json(client: &Client, body: &Value) -> Answer {
    let request = client
        .request(Method::POST, "/agreements")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    client.send(request.body(body.to_string())).await
}

/// The id in the answer.
fn accepted(answer: &Answer) -> Uuid {
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let location = answer.headers["location"].to_str().expect("a path is ASCII");
    let id = location.rsplit('/').next().unwrap_or_default();
    id.parse().expect("it ends with an id")
}

async fn becomes(client: &Client, id: Uuid, state: &str) -> Value {
    eventually(&format!("{id} is {state}"), DEADLINE, async || {
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        (shown["state"] == state).then_some(shown)
    })
    .await
}

async fn a_counter_offer_is_accepted_and_decided_later(url: String) {
    let mut server = Server::start(&url);
    let key = server.key_for("physics", "consumer");
    let client = server.client_with(&key);
    let start = hours_ahead(3);
    let all = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let id = open(&client).await;
    let offer = negotiate(&client, id, &[SentOffer::solicited("a", all.clone())])
        .await
        .remove(0);
    // With other words it is none, and by another party neither; both are answered at once.
    let changed = pending(&offer).replace("<jsdl:Exact>4<", "<jsdl:Exact>3<");
    let other = client.post("/agreements", changed).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "{other:?}");
    let path = other.text("Path").to_owned();
    assert!(
        path.starts_with("/wsag:CreatePendingAgreementInput/wsag:AgreementOffer/wsag:Terms"),
        "{path}"
    );
    let stranger = server.client().post("/agreements", pending(&offer)).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND, "{stranger:?}");
    let first = accepted(&client.post("/agreements", pending(&offer)).await);
    let shown = becomes(&client, first, "Observed").await;
    assert_eq!(
        (shown["plannedStart"].as_str(), &shown["nodes"]),
        (Some(offer.text("PlannedStart")), &4.into()),
        "{shown}"
    );
    let tree = client.get_json(&format!("/negotiations/{id}")).await;
    assert_eq!(tree["offers"][1]["agreement"], first.to_string(), "{tree}");
    assert_eq!(
        accepted(&client.post("/agreements", pending(&offer)).await),
        first,
        "again"
    );
    // Another AgreementId or the other operation makes it another request.
    let named = with_id("other", &pending(&offer));
    for other in [offer.acceptance(), named] {
        let other = client.post("/agreements", other).await;
        assert_eq!(other.status, StatusCode::CONFLICT, "{other:?}");
    }
    server.assert_verified();

    // Its successor, in JSON, under a key; the old one is over when the new one is decided.
    let change = json!({"agreement": first, "nodes": 2});
    let request = client
        .request(Method::POST, "/negotiations")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    let quoted = client.send(request.body(change.to_string())).await.json();
    let body = json!({"offer": quoted["offers"][0]["id"], "pending": true}).to_string();
    let ask = |client: &Client| {
        client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("idempotency-key", "later")
            .body(body.clone())
    };
    let once = client.send(ask(&client)).await;
    let second = accepted(&once);
    // Killed as soon as it has answered: the held nodes are there for the decision.
    server.kill9();
    server.assert_verified();
    server.restart();
    let client = server.client_with(&key);
    assert_eq!(client.send(ask(&client)).await.body, once.body);
    let shown = becomes(&client, second, "Observed").await;
    assert_eq!(shown["supersedes"], first.to_string(), "{shown}");
    assert_eq!(
        becomes(&client, first, "Complete").await["supersededBy"],
        second.to_string()
    );
    server.assert_verified();
}

async fn of_two_that_accept_the_same_later_one_is_observed(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(3);
    let id = open(&client).await;
    let half = Offer::reserve(2, HOUR).within(start, start + HOUR);
    let offer = negotiate(&client, id, &[SentOffer::solicited("b", half)])
        .await
        .remove(0);
    // The same words are the same request: these differ.
    let other = with_id("other", &pending(&offer));
    let two = tokio::join!(
        client.post("/agreements", pending(&offer)),
        client.post("/agreements", other)
    );
    let mut states = Vec::new();
    for answer in [two.0, two.1] {
        if answer.status == StatusCode::CONFLICT {
            states.push("Rejected".to_owned());
            continue;
        }
        let id = accepted(&answer);
        let state = eventually("a decision", DEADLINE, async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            let state = shown["state"].as_str().expect("a state").to_owned();
            (state != "Pending").then_some(state)
        });
        states.push(state.await);
    }
    states.sort_unstable();
    assert_eq!(states, ["Observed", "Rejected"]);
    server.assert_verified();
}

async fn the_same_words_have_the_same_agreement_under_any_key(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(3);
    let offer = Offer::reserve(1, HOUR).within(start, start + HOUR);
    let id = open(&client).await;
    let said = ["a", "b", "c"].map(|name| SentOffer::solicited(name, offer.clone()));
    let offers = negotiate(&client, id, &said).await;
    let ask = async |offer: &Counter, key: Option<&str>| {
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/xml");
        let request = match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        client.send(request.body(pending(offer))).await
    };
    // At once, and one after the other, in either order.
    let (with, without) = tokio::join!(ask(&offers[0], Some("k-0")), ask(&offers[0], None));
    let first = accepted(&with);
    assert_eq!(accepted(&without), first);
    for (offer, keys) in [
        (&offers[1], [None, Some("k-1"), Some("k-2")]),
        (&offers[2], [Some("k-3"), None, Some("k-4")]),
    ] {
        let id = accepted(&ask(offer, keys[0]).await);
        for key in keys {
            assert_eq!(accepted(&ask(offer, key).await), id, "{key:?}");
        }
        becomes(&client, id, "Observed").await;
        let last = format!("late-{id}");
        assert_eq!(accepted(&ask(offer, Some(&last)).await), id);
        let reused = ask(&offers[0], Some(&last)).await;
        assert_eq!(reused.text("ErrorCode"), "IDEMPOTENCY_KEY_REUSED", "{reused:?}");
    }
    becomes(&client, first, "Observed").await;
    let page = client.get_json("/agreements").await;
    assert_eq!(page["agreements"].as_array().map(Vec::len), Some(3), "{page}");
    server.assert_verified();
}

async fn what_became_of_a_rejected_acceptance_is_answered_when_it_comes_again(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(3);
    let offer = Offer::reserve(2, HOUR).within(start, start + HOUR);
    let [as_json, as_xml] = ["j", "x"].map(|name| SentOffer::solicited(name, offer.clone()));
    let id = open(&client).await;
    let offers = negotiate(&client, id, &[as_json, as_xml]).await;
    let flat = json!({"offer": offers[0].id, "pending": true});
    let document = pending(&offers[1]);
    let ask = async || {
        [
            post_json(&client, &flat).await,
            client.post("/agreements", document.clone()).await,
        ]
    };
    // As where what is held lapses before it is decided.
    let lapse = "UPDATE offers SET released_us = held_us WHERE id = NEW.offer;";
    let lapses = if url.starts_with("sqlite") {
        format!("CREATE TRIGGER lapse AFTER INSERT ON pending_agreements BEGIN {lapse} END")
    } else {
        format!(
            "CREATE FUNCTION lapse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {lapse} RETURN NEW; END$$; \
             CREATE TRIGGER lapse AFTER INSERT ON pending_agreements FOR EACH ROW EXECUTE FUNCTION lapse()"
        )
    };
    tamper(&url, &lapses).await;
    let ids = ask().await.each_ref().map(accepted);
    for id in ids {
        becomes(&client, id, "Rejected").await;
    }
    let again = ask().await;
    for (answer, id) in again.iter().zip(ids) {
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let location = answer.headers["location"].to_str().expect("a path is ASCII");
        assert_eq!(location, format!("/agreements/{id}"));
    }
    let shown = again[0].json();
    assert_eq!(
        (&shown["id"], &shown["state"]),
        (&json!(ids[0]), &json!("Rejected"))
    );
    assert!(shown["rejection"].is_string(), "{shown}");
    assert!(
        again[1].text("Address").ends_with(&ids[1].to_string()),
        "{:?}",
        again[1]
    );
    // Decided now, it is another request.
    let now = post_json(&client, &json!({"offer": offers[0].id})).await;
    assert_eq!(now.status, StatusCode::CONFLICT, "{now:?}");
}

#[test]
fn what_is_said_beside_an_offer_that_is_accepted_is_told_by_its_pointer() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(3);
        let id = open(&client).await;
        let offer = Offer::reserve(2, HOUR).within(start, start + HOUR);
        let offer = negotiate(&client, id, &[SentOffer::solicited("a", offer)])
            .await
            .remove(0);
        for (wrong, pointer) in [
            (json!({"offer": offer.id, "nodes": 2}), "/nodes"),
            (json!({"offer": "x", "pending": true}), "/offer"),
            (
                json!({"offer": offer.id, "callback": "http://example.org/"}),
                "/callback",
            ),
            (json!({"offer": offer.id, "pending": "yes"}), "/pending"),
        ] {
            let refused = post_json(&client, &wrong).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{wrong}: {refused:?}"
            );
            assert_eq!(
                refused.json()["violations"][0]["path"],
                pointer,
                "{wrong}: {refused:?}"
            );
        }
    });
}

#[test]
fn what_is_wrong_with_an_extension_is_told_with_its_path() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(3);
        let reserve = |nodes| Offer::reserve(nodes, HOUR).within(start, start + HOUR);
        let agreement = client.post("/agreements", reserve(1).xml()).await.created();
        let id = open(&client).await;
        let plain = negotiate(&client, id, &[SentOffer::solicited("a", reserve(1))])
            .await
            .remove(0);
        let about = file("tests/messages/m18-initiate-renegotiation-input.xml");
        let about = about.replace("/a-1", &format!("/{agreement}"));
        let renegotiation = client.post("/negotiations", about).await.created();
        let change = negotiate(&client, renegotiation, &[SentOffer::solicited("c", reserve(2))])
            .await
            .remove(0);
        let address = |name: &str, path: &str| {
            format!("<wsag-neg:{name}><wsa:Address>http://localhost{path}</wsa:Address></wsag-neg:{name}>")
        };
        let with = |offer: &Counter, kind: &str, first: &str| {
            offer
                .acceptance()
                .replace(
                    "<wsag-neg:NegotiationExtension>",
                    &format!("<wsag-neg:{kind}>{first}"),
                )
                .replace("</wsag-neg:NegotiationExtension>", &format!("</wsag-neg:{kind}>"))
        };
        let (new, replacing) = ("NegotiationExtension", "RenegotiationExtension");
        let negotiated = |id: Uuid| address("ResponderNegotiationEPR", &format!("/negotiations/{id}"));
        let replaced = |id: Uuid| address("ResponderAgreementEPR", &format!("/agreements/{id}"));
        let other = plain.acceptance().replace(&plain.id, "first");
        for (input, below) in [
            (
                with(&plain, new, &negotiated(renegotiation)),
                "/wsag-neg:NegotiationExtension/wsag-neg:ResponderNegotiationEPR",
            ),
            (
                with(
                    &plain,
                    new,
                    &address("ResponderNegotiationEPR", "/negotiations/x"),
                ),
                "/wsag-neg:NegotiationExtension/wsag-neg:ResponderNegotiationEPR",
            ),
            (
                other,
                "/wsag-neg:NegotiationExtension/wsag-neg:NegotiationOfferContext/wsag-neg:CounterOfferTo",
            ),
            (
                with(&plain, replacing, &(negotiated(id) + &replaced(agreement))),
                "/wsag-neg:RenegotiationExtension",
            ),
            (with(&change, new, ""), "/wsag-neg:NegotiationExtension"),
            (
                with(&change, replacing, &(negotiated(renegotiation) + &replaced(id))),
                "/wsag-neg:RenegotiationExtension/wsag-neg:ResponderAgreementEPR",
            ),
            (
                with(
                    &change,
                    replacing,
                    &(negotiated(renegotiation) + &address("ResponderAgreementEPR", "/agreements/x")),
                ),
                "/wsag-neg:RenegotiationExtension/wsag-neg:ResponderAgreementEPR",
            ),
        ] {
            for root in ["CreateAgreementInput", "CreatePendingAgreementInput"] {
                let input = input.replace("wsag:CreateAgreementInput", &format!("wsag:{root}"));
                let refused = client.post("/agreements", input).await;
                assert_eq!(
                    refused.status,
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "{below}: {refused:?}"
                );
                assert_eq!(refused.text("Path"), format!("/wsag:{root}{below}"));
            }
        }
        assert!(counters(&client.post("/agreements", plain.acceptance()).await).is_empty());
        server.assert_verified();
    });
}
