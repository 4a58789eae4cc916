//! Everything of a negotiation in JSON: offers that counter others, offers that ask for no answer, ends; and documents
//! that come without their Input element.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::negotiation::{Said, counters, message, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(an_offer_is_countered_let_go_of_and_advertised_in_json);

const HOUR: i64 = 3_600;

async fn an_offer_is_countered_let_go_of_and_advertised_in_json(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(3);
    let window = json!({"start": date_time(start), "end": date_time(start + HOUR)});
    let asked = json!({"name": "first", "nodes": 2, "durationSeconds": HOUR, "window": window});
    let opened = client.post_json("/negotiations", &asked).await;
    let id = opened.created();
    let first = opened.json()["offers"][0].clone();
    let (offers, path) = (
        format!("/negotiations/{id}/offers"),
        format!("/negotiations/{id}"),
    );
    // The same for longer: what is not said is as it was offered.
    let longer = json!({"id": "longer", "counterOfferTo": first["id"], "durationSeconds": 2 * HOUR,
        "window": {"end": date_time(start + 2 * HOUR)}, "state": "Advisory"});
    let advice = client.post_json(&offers, &longer).await.json();
    let answer = &advice["offers"][0];
    assert_eq!(
        (&answer["nodes"], &answer["start"], &answer["durationSeconds"]),
        (&2.into(), &window["start"], &(2 * HOUR).into()),
        "{advice}"
    );
    assert_eq!(
        (&answer["state"], &answer["counterOfferTo"]),
        (&"Advisory".into(), &"longer".into())
    );
    assert!(answer["heldUntil"].is_null(), "{advice}");
    // The same offer in the two representations of the same tree.
    let tree = client.get(&path).await;
    assert!(tree.texts("CounterOfferTo").contains(&"longer"), "{tree:?}");
    // Letting go of what was offered gives its nodes back, and nothing more is said to it.
    let no = json!({"counterOfferTo": first["id"], "state": "Rejected"});
    assert_eq!(client.post_json(&offers, &no).await.json(), json!({"offers": []}));
    let all = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let made = client.post("/agreements", all.xml()).await.created();
    let dead = client
        .post_json(&offers, &json!({"counterOfferTo": first["id"]}))
        .await
        .json();
    assert_eq!(dead["offers"], json!([]), "{dead}");
    assert_eq!(
        dead["refusal"]["violations"][0]["path"], "/counterOfferTo",
        "{dead}"
    );
    // An advertisement is on the table, and asks for nothing.
    let ad = json!({"id": "ad", "nodes": 1, "durationSeconds": HOUR});
    let said = client.post_json(&format!("{path}/advertisements"), &ad).await;
    assert_eq!(said.status, StatusCode::OK, "{said:?}");
    assert_eq!(
        (
            &said.json()["offers"][0]["id"],
            &said.json()["offers"][0]["state"]
        ),
        (&"ad".into(), &"Advisory".into())
    );
    let taken = client
        .post_json(&offers, &json!({"counterOfferTo": "ad"}))
        .await
        .json();
    assert_eq!(taken["offers"][0]["state"], "Acceptable", "{taken}");
    // What is wrong is told by its pointer, and nothing of it is kept.
    let before = client.get_json(&path).await;
    for verb in ["offers", "advertisements"] {
        for (wrong, pointer) in [
            (json!({"counterOfferTo": "nowhere"}), "/counterOfferTo"),
            (json!({"id": "ad"}), "/id"),
            (json!({"id": "a b"}), "/id"),
            (json!({"state": "Maybe"}), "/state"),
            (json!({"expires": date_time(start - 9 * HOUR)}), "/expires"),
            (json!({"nodes": 40}), "/nodes"),
            (json!({"pending": true}), "/pending"),
            (json!({"agreement": made}), "/agreement"),
            (json!([1]), ""),
        ] {
            let refused = client.post_json(&format!("{path}/{verb}"), &wrong).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{verb} {wrong}: {refused:?}"
            );
            let found = refused.json()["violations"][0]["path"].clone();
            assert_eq!(found, pointer, "{verb} {wrong}: {refused:?}");
        }
    }
    assert_eq!(client.get_json(&path).await, before);
    let wrong = client
        .post_json(&format!("{path}/terminate"), &json!({"why": "x"}))
        .await;
    assert_eq!(wrong.json()["violations"][0]["path"], "/why", "{wrong:?}");
    let ended = client
        .post_json(
            &format!("{path}/terminate"),
            &json!({"reason": "found elsewhere"}),
        )
        .await;
    assert_eq!(ended.json()["state"], "terminated", "{ended:?}");
    server.assert_verified();
}

#[test]
fn a_negotiation_about_an_agreement_takes_what_is_to_change_of_it() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(3);
        let offer = Offer::sleep(2, HOUR).on(3).within(start, start + 2 * HOUR);
        let agreement = client.post("/agreements", offer.xml()).await.created();
        let change = json!({"agreement": agreement, "nodes": 2});
        let id = client.post_json("/negotiations", &change).await.created();
        let more = json!({"nodes": 1, "counterOfferTo": null});
        let answer = client
            .post_json(&format!("/negotiations/{id}/offers"), &more)
            .await
            .json();
        assert_eq!(answer["offers"][0]["nodes"], 1, "{answer}");
        assert_eq!(
            answer["offers"][0]["durationSeconds"], HOUR,
            "of the agreement: {answer}"
        );
        let answered = client
            .post_json("/agreements", &json!({"offer": answer["offers"][0]["id"]}))
            .await;
        let new = answered.created();
        let shown = client.get_json(&format!("/agreements/{new}")).await;
        assert_eq!(shown["arguments"], json!(["2"]), "{shown}");
        server.assert_verified();
    });
}

#[test]
fn a_bare_document_is_taken_as_if_in_its_input() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let context = "<wsag-neg:NegotiationContext \
             xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\">\
             <wsag-neg:NegotiationType><wsag-neg:Negotiation/></wsag-neg:NegotiationType>\
             <wsag-neg:AgreementResponder>NegotiationResponder</wsag-neg:AgreementResponder>\
             </wsag-neg:NegotiationContext>";
        let id = client.post("/negotiations", context).await.created();
        let shown = client.get(&format!("/negotiations/{id}")).await;
        assert_eq!(shown.text("AgreementResponder"), "NegotiationResponder");
        let wrong = context.replace(">NegotiationResponder<", ">NegotiationInitiator<");
        let refused = client.post("/negotiations", wrong).await;
        assert_eq!(
            refused.text("Path"),
            "/wsag-neg:NegotiationContext/wsag-neg:AgreementResponder"
        );
        let start = hours_ahead(3);
        let reserve = |nodes| Offer::reserve(nodes, HOUR).within(start, start + HOUR);
        let bare = |said: &Said| {
            said.xml().replacen(
                "<wsag-neg:NegotiationOffer ",
                "<wsag-neg:NegotiationOffer \
                 xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\" ",
                1,
            )
        };
        let path = format!("/negotiations/{id}/offers");
        let answer = client.post(&path, bare(&Said::solicited("a", reserve(2)))).await;
        assert_eq!(counters(&answer)[0].state, "Acceptable", "{answer:?}");
        let large = client.post(&path, bare(&Said::solicited("b", reserve(40)))).await;
        let path_of_it = large.text("Path").to_owned();
        assert!(
            path_of_it.starts_with("/wsag-neg:NegotiationOffer/wsag:Terms"),
            "{large:?}"
        );
        let ad = Said {
            state: "Advisory",
            ..Said::solicited("ad", reserve(1))
        };
        let table = format!("/negotiations/{id}/advertisements");
        let said = client.post(&table, bare(&ad)).await;
        assert!(said.body.contains("AdvertiseOutput"), "{said:?}");
        // What is no message of this operation is told what is.
        for (path, body) in [
            (
                &table,
                message("NegotiateInput", &[Said::solicited("c", reserve(1))]),
            ),
            (&path, context.to_owned()),
            (&path, reserve(1).xml()),
        ] {
            let refused = client.post(path, body).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            assert!(
                refused.body.contains("NegotiationOffer is expected here"),
                "{refused:?}"
            );
        }
        let offered = client
            .post("/agreements", bare(&Said::solicited("d", reserve(1))))
            .await;
        assert_eq!(offered.status, StatusCode::UNPROCESSABLE_ENTITY, "{offered:?}");
        server.assert_verified();
    });
}

#[test]
fn an_offer_id_that_no_store_can_hold_is_refused() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let start = hours_ahead(3);
        let long = Said::solicited(
            &"x".repeat(5_000),
            Offer::reserve(1, HOUR).within(start, start + HOUR),
        );
        let path = format!("/negotiations/{id}/offers");
        let answer = client.post(&path, message("NegotiateInput", &[long])).await;
        assert_eq!(counters(&answer)[0].state, "Rejected");
        assert!(answer.text("Path").ends_with("/@wsag-neg:OfferId"), "{answer:?}");
    });
}
