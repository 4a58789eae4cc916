//! Everything of a negotiation in JSON: offers that counter others, offers that ask for no answer, ends; and documents
//! that come without their Input element.

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::guard::BYTES_MAX;

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, counters, message, open};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_release_on_postgres:
    an_offer_is_countered_let_go_of_and_advertised_in_json,
    several_requests_are_answered_each_on_its_own,
);

const HOUR: i64 = 3_600;

/// Four nodes at a euro an hour.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nkwh = \"0.30\"\nkwh_grams = 350\n\
    [[pricing.energy.resource]]\nname = \"local\"\nbusy_watts = 500\nidle_watts = 100\n";

/// A wrong field is named by its pointer, and the service keeps no part of its message.
async fn wrong_fields_are_named(client: &Client, path: &str, first: &Value, made: Uuid) {
    let before = client.get_json(path).await;
    for verb in ["offers", "advertisements"] {
        for (wrong, pointer) in [
            (json!({"counterOfferTo": "nowhere"}), "/counterOfferTo"),
            (json!({"id": "ad"}), "/id"),
            (json!({"id": "a b"}), "/id"),
            (json!({"state": "Maybe"}), "/state"),
            (json!({"expires": date_time(hours_ahead(-6))}), "/expires"),
            (json!({"nodes": 40}), "/nodes"),
            (json!({"pending": true}), "/pending"),
            (json!({"agreement": made}), "/agreement"),
            (json!([1]), "/0"),
            // The window is that of the offer that it answers, and stands nowhere in the request.
            (json!({"counterOfferTo": first, "durationSeconds": 2 * HOUR}), ""),
        ] {
            let refused = client.post_json(&format!("{path}/{verb}"), &wrong).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{verb} {wrong}: {refused:?}"
            );
            let found = refused.json()["violations"][0]["path"].clone();
            assert_eq!(found, pointer, "{verb} {wrong}: {refused:?}");
            assert!(wrong.pointer(pointer).is_some(), "{wrong}");
        }
    }
    // Requests that are taken together are refused where the list has them.
    for (wrong, pointer) in [
        (json!([{"id": "x"}, {"nodes": 40}]), "/1/nodes"),
        (json!([{"id": "x"}, {"id": "x"}]), "/1/id"),
        (json!([{"counterOfferTo": "nowhere"}]), "/0/counterOfferTo"),
        (
            json!([{}, {"application": "sleep", "arguments": ["soon"]}]),
            "/1/arguments/0",
        ),
    ] {
        let refused = client.post_json(&format!("{path}/advertisements"), &wrong).await;
        let found = refused.json()["violations"][0]["path"].clone();
        assert_eq!(found, pointer, "{wrong}: {refused:?}");
        assert!(wrong.pointer(pointer).is_some(), "{wrong}");
    }
    assert_eq!(client.get_json(path).await, before);
}

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
    // The same for longer: fields that are left out are as they were offered.
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
    // Rejecting an offer gives its nodes back, and a later answer to it is refused.
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
    wrong_fields_are_named(&client, &path, &first["id"], made).await;
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
        let bare = |said: &SentOffer| {
            said.xml().replacen(
                "<wsag-neg:NegotiationOffer ",
                "<wsag-neg:NegotiationOffer \
                 xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\" ",
                1,
            )
        };
        let path = format!("/negotiations/{id}/offers");
        let answer = client
            .post(&path, bare(&SentOffer::solicited("a", reserve(2))))
            .await;
        assert_eq!(counters(&answer)[0].state, "Acceptable", "{answer:?}");
        let large = client
            .post(&path, bare(&SentOffer::solicited("b", reserve(40))))
            .await;
        let path_of_it = large.text("Path").to_owned();
        assert!(
            path_of_it.starts_with("/wsag-neg:NegotiationOffer/wsag:Terms"),
            "{large:?}"
        );
        let ad = SentOffer {
            state: "Advisory",
            ..SentOffer::solicited("ad", reserve(1))
        };
        let table = format!("/negotiations/{id}/advertisements");
        let said = client.post(&table, bare(&ad)).await;
        assert!(said.body.contains("AdvertiseOutput"), "{said:?}");
        // The answer to a message that does not belong to this operation names the messages that do.
        for (path, body) in [
            (
                &table,
                message("NegotiateInput", &[SentOffer::solicited("c", reserve(1))]),
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
            .post("/agreements", bare(&SentOffer::solicited("d", reserve(1))))
            .await;
        assert_eq!(offered.status, StatusCode::UNPROCESSABLE_ENTITY, "{offered:?}");
        server.assert_verified();
    });
}

/// The same faults in a document that has several offers.
#[test]
fn what_is_wrong_with_an_offer_of_several_is_told_by_its_path() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(3);
        let id = open(&client).await;
        let right = || Offer::reserve(1, HOUR).within(start, start + HOUR);
        let term = "/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm";
        let job = format!("{term}[1]/jsdl:JobDefinition/jsdl:JobDescription");
        let posix = format!("{job}/jsdl:Application/jsdl-posix:POSIXApplication");
        let wrong = [
            (
                right().on(40),
                format!("{job}/jsdl:Resources/jsdl:TotalResourceCount"),
            ),
            (
                Offer {
                    run: Some(("sleep", vec!["soon".to_owned()])),
                    ..right()
                },
                format!("{posix}/jsdl-posix:Argument"),
            ),
            (
                Offer {
                    run: Some(("mine-coins", Vec::new())),
                    ..right()
                },
                format!("{job}/jsdl:Application/jsdl:ApplicationName"),
            ),
            (
                right().within(start, start + HOUR / 2),
                format!("{term}[2]/arp:AllocationTimeConstraint/arp:EndTime"),
            ),
        ];
        for (nth, (offer, path)) in wrong.into_iter().enumerate() {
            let name = |text: &str| format!("{text}{nth}");
            let said = [
                SentOffer::solicited(&name("right"), right()),
                SentOffer::solicited(&name("wrong"), offer),
            ];
            let body = message("NegotiateInput", &said);
            let answer = client.post(&format!("/negotiations/{id}/offers"), body).await;
            let place = "/wsag-neg:NegotiateInput/wsag-neg:NegotiationOffer[2]";
            let paths = answer.texts("Path");
            assert!(!paths.is_empty(), "{answer:?}");
            for found in paths {
                assert!(found.starts_with(&format!("{place}{path}")), "{path}: {answer:?}");
            }
        }
    });
}

#[test]
fn an_offer_id_that_no_store_can_hold_is_refused() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let start = hours_ahead(3);
        let long = SentOffer::solicited(
            &"x".repeat(5_000),
            Offer::reserve(1, HOUR).within(start, start + HOUR),
        );
        let path = format!("/negotiations/{id}/offers");
        let answer = client.post(&path, message("NegotiateInput", &[long])).await;
        assert_eq!(counters(&answer)[0].state, "Rejected");
        assert!(answer.text("Path").ends_with("/@wsag-neg:OfferId"), "{answer:?}");
    });
}

async fn several_requests_are_answered_each_on_its_own(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(5);
    let block = Offer::reserve(3, HOUR / 2).within(start, start + HOUR / 2);
    client.post("/agreements", block.xml()).await.created();
    let id = open(&client).await;
    let offers = format!("/negotiations/{id}/offers");
    let window = json!({"start": date_time(start - HOUR / 3), "end": date_time(start + HOUR * 2 / 3)});
    let asked = |id: &str, constraints: serde_json::Value| {
        json!({"id": id, "nodes": 4, "durationSeconds": HOUR, "window": window, "state": "Advisory",
            "constraints": constraints})
    };
    let late = |more: serde_json::Value| {
        let mut constraint = json!({"of": "start", "min": date_time(start)});
        constraint
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        json!([constraint])
    };
    let requests = json!([
        asked("a", json!([])),
        asked("b", late(json!({}))),
        asked("c", late(json!({"importance": 3}))),
        {"nodes": "four"},
        {"id": "d", "counterOfferTo": "a", "nodes": 1},
        asked("e", json!([{"of": "nodes", "max": 3}])),
        asked("f", json!([{"of": "durationSeconds", "max": HOUR}, {"of": "end", "max": date_time(start)}])),
    ]);
    let answers = client.post_json(&offers, &requests).await.json();
    let kinds = |number: usize| -> Vec<&str> {
        let offers = answers["answers"][number]["offers"].as_array();
        offers
            .unwrap_or_else(|| panic!("{answers}"))
            .iter()
            .filter_map(|offer| offer["kind"].as_str())
            .collect()
    };
    assert_eq!(kinds(0), ["earlier", "shorter", "later"]);
    assert_eq!(kinds(1), ["later"], "its demands hold in all answers");
    assert_eq!(
        kinds(2),
        ["later", "earlier", "shorter"],
        "and its preference comes first"
    );
    assert_eq!(
        answers["answers"][3]["refusal"]["violations"][0]["path"],
        "/nodes"
    );
    assert_eq!(kinds(4), ["exact"], "it answers one of the same message");
    assert_eq!(kinds(5), Vec::<&str>::new());
    assert_eq!(kinds(6), ["earlier"]);
    // Words, bounds and weights are checked, each at its place.
    for (constraints, pointer) in [
        (json!({}), "/constraints"),
        (json!([{"of": "price", "max": 1}]), "/constraints/0/of"),
        (json!([{"of": "nodes"}]), "/constraints/0"),
        (
            json!([{"of": "nodes", "min": date_time(start)}]),
            "/constraints/0/min",
        ),
        (json!([{"of": "end", "max": 4}]), "/constraints/0/max"),
        (
            json!([{"of": "end", "max": date_time(start), "importance": -1}]),
            "/constraints/0/importance",
        ),
    ] {
        let wrong = json!({"nodes": 1, "constraints": constraints});
        let refused = client.post_json(&offers, &wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
        assert_eq!(refused.json()["violations"][0]["path"], pointer, "{refused:?}");
    }
    assert_eq!(
        client.post_json(&offers, &json!([])).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    // Of advertisements all are taken, or none.
    let advertisements = format!("/negotiations/{id}/advertisements");
    let wrong = json!([{"id": "known", "nodes": 1}, {"id": "x", "nodes": 0}]);
    let refused = client.post_json(&advertisements, &wrong).await;
    assert_eq!(refused.json()["violations"][0]["path"], "/1/nodes", "{refused:?}");
    let right = json!([{"id": "known", "nodes": 1}, {"id": "more", "nodes": 2}]);
    let taken = client.post_json(&advertisements, &right).await.json();
    assert_eq!(taken["offers"].as_array().map(Vec::len), Some(2), "{taken}");
    // A request that opens a negotiation demands in the same words.
    let opened = asked("", late(json!({})));
    let mut opened = opened.as_object().cloned().expect("an object");
    opened.retain(|member, _| !["id", "state"].contains(&member.as_str()));
    let opened = client.post_json("/negotiations", &opened.into()).await.json();
    assert_eq!(opened["offers"][0]["kind"], "later", "{opened}");
    server.assert_verified();
}

/// Under both templates that are offered out of the box, which propose a duration.
#[test]
fn a_law_of_scaling_needs_no_duration() {
    run(async {
        let server = Server::configured(None, PRICED);
        let client = server.client();
        for template in ["advance-reservation", "guaranteed-reservation"] {
            let work = json!({"template": template, "nodes": {"min": 1, "max": 4},
                "moldability": {"constantWork": 120}});
            let made = client.post_json("/agreements", &work).await;
            assert_eq!(made.status, StatusCode::CREATED, "{template}: {made:?}");
            let opened = client.post_json("/negotiations", &work).await.json();
            assert_ne!(opened["offers"], json!([]), "{template}: {opened}");
        }
        server.assert_verified();
    });
}

/// A bound on `arp:Duration` is one on the slot that is granted.
#[test]
fn a_bound_of_the_template_on_the_duration_holds_however_the_duration_is_asked_for() {
    run(async {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let template = crate::support::offers::file("templates/agreements/advance-reservation.xml");
        let bounded = template
            .replace("<arp:Duration>3600<", "<arp:Duration>60<")
            .replace(
                "<xs:maxInclusive value=\"31536000\"/>",
                "<xs:maxInclusive value=\"100\"/>",
            );
        let file = folder.path().join("bounded.xml");
        std::fs::write(&file, bounded).expect("a file can be written");
        let templates = format!("[[template]]\nfile = \"{}\"\n", file.display());
        let resources = |slow: &str| {
            format!("{slow}[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n{templates}")
        };
        let server = Server::configured(None, &resources(""));
        let client = server.client();
        let table = |sizes: &[(u32, i64)]| {
            let size = |(nodes, seconds): &(u32, i64)| json!({"nodes": nodes, "durationSeconds": seconds});
            let sizes: Vec<Value> = sizes.iter().map(size).collect();
            json!({"nodes": {"min": 1, "max": 4}, "moldability": {"table": sizes}})
        };
        let work = |work: u32, most: u32| json!({"nodes": {"min": 1, "max": most}, "moldability": {"constantWork": work}});
        for asked in [table(&[(1, 4_000)]), work(125, 1), table(&[(1, 4_000), (4, 101)])] {
            let refused = client.post_json("/agreements", &asked).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{asked}: {refused:?}"
            );
            assert_eq!(
                refused.json()["violations"][0]["path"],
                "/moldability",
                "{refused:?}"
            );
            let quoted = client.post_json("/negotiations", &asked).await.json();
            let offers = quoted["offers"].as_array().map_or(0, Vec::len);
            assert_eq!(offers, 0, "{asked}: {quoted}");
        }
        for asked in [table(&[(1, 4_000), (4, 100)]), work(400, 4)] {
            let made = client.post_json("/agreements", &asked).await;
            assert_eq!(made.status, StatusCode::CREATED, "{asked}: {made:?}");
            let made = made.json();
            assert_eq!(
                (&made["nodes"], &made["durationSeconds"]),
                (&json!(4), &json!(100)),
                "{made}"
            );
            let quoted = client.post_json("/negotiations", &asked).await.json();
            let offers = quoted["offers"].as_array().cloned().unwrap_or_default();
            assert!(!offers.is_empty(), "{quoted}");
            let seconds = |value: &Value| value["durationSeconds"].as_i64();
            assert!(offers.iter().all(|offer| seconds(offer) <= Some(100)), "{quoted}");
        }
        server.assert_verified();
        // A slower resource would have to grant more.
        let slow = "[[resource]]\nname = \"slow\"\nkind = \"local\"\nnodes = 9\nrate = 0.5\n";
        let server = Server::configured(None, &resources(slow));
        let client = server.client();
        let start = hours_ahead(3);
        let mut asked = work(400, 4);
        asked["window"] = json!({"start": date_time(start), "end": date_time(start + 150)});
        let made = client.post_json("/agreements", &asked).await.json();
        assert_eq!(
            (&made["resource"], &made["durationSeconds"]),
            (&json!("local"), &json!(100)),
            "{made}"
        );
        asked["window"] = json!({"start": date_time(start), "end": date_time(start + 250)});
        client.post_json("/agreements", &asked).await.created();
        let full = client.post_json("/agreements", &asked).await;
        assert_eq!(full.status, StatusCode::CONFLICT, "{full:?}");
    });
}

#[test]
fn a_change_says_what_its_base_has_no_term_for() {
    run(async {
        let server = Server::configured(None, PRICED);
        let client = server.client();
        let start = hours_ahead(3);
        let plain = Offer::reserve(2, HOUR).within(start, start + 2 * HOUR);
        let agreement = client.post("/agreements", plain.xml()).await.created();
        let costs = |amount: &str| {
            json!({"agreement": agreement, "nodes": 1,
                "budget": {"amount": amount, "currency": "EUR"}})
        };
        let dear = client.post_json("/negotiations", &costs("0.5")).await.json();
        assert_eq!(dear["offers"], json!([]), "an hour costs more: {dear}");
        let opened = client.post_json("/negotiations", &costs("5")).await;
        let (id, first) = (opened.created(), opened.json()["offers"][0]["id"].clone());
        let path = format!("/negotiations/{id}");
        // A node of 500 W for an hour, in both representations.
        let energy = &opened.json()["offers"][0]["energy"];
        let expected =
            json!({"wattHours": 500, "cost": {"amount": "0.15", "currency": "EUR"}, "carbonGrams": 175});
        assert_eq!(*energy, expected);
        let tree = client.get(&path).await;
        assert!(tree.texts("Amount").contains(&"5"), "{tree:?}");
        assert!(tree.texts("WattHours").contains(&"500"), "{tree:?}");
        let again = client
            .post_json("/negotiations", &json!({"agreement": agreement}))
            .await;
        let (id, unbound) = (again.created(), again.json()["offers"][0]["id"].clone());
        let other = format!("/negotiations/{id}");
        let free = json!({"counterOfferTo": unbound, "maxDeviation": 0.25, "state": "Advisory"});
        let answer = client.post_json(&format!("{other}/offers"), &free).await.json();
        assert_ne!(answer["offers"], json!([]), "{answer}");
        let tree = client.get(&other).await;
        assert!(!tree.texts("MaxDeviation").is_empty(), "{tree:?}");
        // What was made from a template stays of it.
        for (path, mut request) in [
            ("/negotiations".to_owned(), json!({"agreement": agreement})),
            (format!("{path}/offers"), json!({"counterOfferTo": first})),
        ] {
            request["template"] = json!("guaranteed-reservation");
            let refused = client.post_json(&path, &request).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            assert_eq!(refused.json()["violations"][0]["path"], "/template");
            request["template"] = json!("advance-reservation");
            let taken = client.post_json(&path, &request).await;
            assert!(taken.status.is_success(), "{taken:?}");
        }
        server.assert_verified();
    });
}

#[test]
fn a_request_that_no_document_can_carry_fails_alone() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let offers = format!("/negotiations/{id}/offers");
        let long = "<".repeat(BYTES_MAX / 4);
        let requests = json!([
            {"id": "a", "nodes": 1},
            {"id": "b", "application": "sleep", "arguments": [long]},
            {"id": "c", "nodes": 1},
        ]);
        let answers = client.post_json(&offers, &requests).await.json();
        for answered in [0, 2] {
            let state = &answers["answers"][answered]["offers"][0]["state"];
            assert_eq!(state, "Acceptable", "{answers}");
        }
        let refusal = &answers["answers"][1]["refusal"];
        assert_eq!(refusal["violations"][0]["path"], "", "{refusal}");
        let said = refusal["violations"][0]["message"].as_str().unwrap_or_default();
        assert!(said.contains("at most 262144"), "{said}");
        // Lines and quotation marks grow in no text.
        let script = "\"a\"\n".repeat(12_500);
        let fits = json!({"application": "sleep", "arguments": ["1", script]});
        let answer = client.post_json(&offers, &fits).await.json();
        assert_eq!(answer["violations"][0]["path"], "/arguments/1", "{answer}");
        server.assert_verified();
    });
}
