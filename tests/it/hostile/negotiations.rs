//! Hostile negotiations: documents that are made to take long or to reach another party's data. Each is answered soon, with the
//! fault and its place.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::client::{Answer, Client};
use crate::support::negotiation::{SentOffer, counters, message, negotiate, open};
use crate::support::offers::{Offer, file, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

/// No such document keeps any client waiting for longer, even in a debug build on a machine that runs other tests.
const SLOWEST: Duration = Duration::from_mins(1);
/// The service never needs more memory than this, in KiB.
const MEMORY_MAX: u64 = 256 * 1_024;
const HOUR: i64 = 3_600;

fn reserve() -> Offer {
    let start = hours_ahead(3);
    Offer::reserve(1, HOUR).within(start, start + HOUR)
}

/// A message with one offer that demands this of its answer.
fn demanding(demands: String) -> String {
    let said = SentOffer {
        demands,
        ..SentOffer::solicited("a", reserve())
    };
    message("NegotiateInput", &[said])
}

/// An item of negotiation constraints.
fn item(location: &str, constraint: &str) -> String {
    format!(
        "<wsag-neg:Item wsag:Name=\"i\" wsag-neg:Type=\"Required\"><wsag:Location>{location}</wsag:Location>\
         <wsag:ItemConstraint>{constraint}</wsag:ItemConstraint></wsag-neg:Item>"
    )
}

async fn timed(client: &Client, path: &str, kind: &str, body: String) -> Answer {
    let begun = Instant::now();
    let request = client
        .request(Method::POST, path)
        .header("content-type", kind)
        .header("accept", kind);
    let shown: String = body.chars().take(400).collect();
    let answer = client.send(request.body(body)).await;
    let took = begun.elapsed();
    assert!(took < SLOWEST, "{took:?} for {shown}");
    assert!(!answer.status.is_server_error(), "{answer:?} to {shown}");
    answer
}

/// A facet that any number from 1 on meets.
const FACET: &str = "<xs:minInclusive value=\"1\"/>";

/// Asserts that the service works as before, and answers a right request.
async fn assert_well(server: &Server) {
    let memory = server.peak_memory_kib();
    assert!(memory.is_none_or(|peak| peak < MEMORY_MAX), "{memory:?} KiB");
    let client = server.client();
    let id = open(&client).await;
    let good = negotiate(&client, id, &[SentOffer::solicited("good", reserve())]).await;
    assert_eq!(good[0].state, "Acceptable");
    server.assert_verified();
}

/// Declarations of this number of prefixes, and a text that mentions each.
fn prefixes(count: usize) -> (String, String) {
    let declared: Vec<_> = (0..count).map(|n| format!(" xmlns:p{n}=\"urn:{n}\"")).collect();
    let mentioned: Vec<_> = (0..count).map(|n| format!("p{n}:")).collect();
    (declared.concat(), mentioned.concat())
}

#[test]
fn what_no_guard_would_let_through_again_is_not_kept() {
    run(async {
        let server = Server::local();
        let client = server.client();
        // Each element has no more declarations than it may; cut out of its message, the inner one has one more.
        let (declared, mentioned) = prefixes(15);
        let offer = reserve()
            .xml()
            .replacen(
                "<wsag:AgreementOffer",
                &format!("<wsag:AgreementOffer{declared}"),
                1,
            )
            .replacen("<wsag:Context>", "<wsag:Context xmlns:b=\"urn:b\">", 1)
            .replacen(
                "</wsag:Context>",
                &format!("<b:e>wsag:{mentioned}</b:e></wsag:Context>"),
                1,
            );
        let answer = timed(&client, "/agreements", "application/xml", offer).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
        assert!(answer.body.contains("namespace declarations"), "{answer:?}");
        let id = open(&client).await;
        let (declared, mentioned) = prefixes(12);
        let spread = |root: &str| {
            let element =
                format!("<b:e xmlns:b=\"urn:b\">wsag:wsag-neg:xs:arp:{mentioned}</b:e></wsag:Context>");
            let said = SentOffer::solicited("spread", reserve()).replacing("</wsag:Context>", &element);
            message(root, &[said]).replacen(
                &format!("<wsag-neg:{root}"),
                &format!("<wsag-neg:{root}{declared}"),
                1,
            )
        };
        let offers = format!("/negotiations/{id}/offers");
        let answer = timed(&client, &offers, "application/xml", spread("NegotiateInput")).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let said = counters(&answer);
        assert_eq!(
            (said.len(), said[0].state.as_str()),
            (1, "Rejected"),
            "{answer:?}"
        );
        assert!(said[0].xml.contains("cannot be kept"), "{answer:?}");
        let advertised = format!("/negotiations/{id}/advertisements");
        let answer = timed(&client, &advertised, "application/xml", spread("AdvertiseInput")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
        let shown = client.get(&format!("/negotiations/{id}")).await;
        assert!(shown.status.is_success(), "{shown:?}");
        assert_well(&server).await;
    });
}

#[test]
fn messages_that_are_too_much_are_refused_as_a_whole() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let offers = format!("/negotiations/{id}/offers");
        let deep = format!("{}{}", "<x>".repeat(60), "</x>".repeat(60));
        let many: Vec<_> = (0..33)
            .map(|n| SentOffer::solicited(&format!("o{n}"), reserve()))
            .collect();
        for (body, status) in [
            (demanding(item("//jsdl:Exact", &deep)), StatusCode::BAD_REQUEST),
            (
                demanding(item("//jsdl:Exact", FACET).repeat(1_000)),
                StatusCode::BAD_REQUEST,
            ),
            (
                format!(
                    "<wsag-neg:NegotiateInput \
                     xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\">{}\
                     </wsag-neg:NegotiateInput>",
                    "<wsag-neg:NegotiationOffer wsag-neg:OfferId=\"a\"/>".repeat(10_000)
                ),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
            (
                message("NegotiateInput", &many[..20]).repeat(2),
                StatusCode::BAD_REQUEST,
            ),
            (message("NegotiateInput", &many), StatusCode::UNPROCESSABLE_ENTITY),
            (
                demanding(item("//jsdl:Exact", FACET).replace("Required", "Perhaps")),
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            (
                demanding(item("//jsdl:Exact", FACET).replace(
                    "wsag-neg:Type",
                    "wsag-neg:Importance=\"999999999999999999999999\" wsag-neg:Type",
                )),
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
        ] {
            let answer = timed(&client, &offers, "application/xml", body).await;
            assert_eq!(answer.status, status, "{answer:?}");
            if status == StatusCode::UNPROCESSABLE_ENTITY {
                assert!(
                    answer.text("Path").starts_with("/wsag-neg:NegotiateInput"),
                    "{answer:?}"
                );
            }
        }
        assert_well(&server).await;
    });
}

#[test]
fn demands_made_to_take_long_are_refused_soon_and_with_a_reason() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let offers = format!("/negotiations/{id}/offers");
        let steps = "//*".repeat(200);
        let nested = format!("//jsdl:Exact{}", "[//*[1]]".repeat(50));
        let brackets = format!("{}nodes gt 0{}", "(".repeat(5_000), ")".repeat(5_000));
        let chain = vec!["nodes gt 0"; 2_000].join(" and ");
        let word = "a".repeat(60);
        let pattern = |text: &str| format!("<xs:pattern value=\"{text}\"/>");
        let expression = |text: &str| format!("<wsag:Constraint>{text}</wsag:Constraint>");
        for demands in [
            item(&steps, FACET),
            item(&nested, FACET),
            item("count(//*//*//*//*//*) &gt; 1", FACET),
            item(&format!("/{}", "x/".repeat(20_000)), FACET),
            item("//wsag:Name", &pattern(&format!("({word}+)+{word}"))),
            item("//wsag:Name", &pattern("((a{1,99}){1,99}){1,99}b")),
            item("//jsdl:Exact", "<xs:minInclusive value=\"1e400000000\"/>"),
            item(
                "//jsdl:Exact",
                &format!("<xs:maxInclusive value=\"{}\"/>", "9".repeat(50_000)),
            ),
            item("//jsdl:Exact", "<xs:totalDigits value=\"-1\"/>"),
            item(
                "//wsag:Terms",
                "<xs:sequence minOccurs=\"4000000000\" maxOccurs=\"4000000000\">\
                 <xs:element name=\"wsag:All\" maxOccurs=\"4000000000\"/></xs:sequence>",
            ),
            expression(&brackets),
            expression(&chain),
            expression(&format!("nodes gt {}", "9".repeat(100_000))),
            expression("nodes gt 1e999"),
        ] {
            let body = demanding(demands);
            let shown: String = body.chars().skip(1_800).take(300).collect();
            let answer = timed(&client, &offers, "application/xml", body).await;
            match answer.status {
                // The whole message is none.
                StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => {}
                StatusCode::OK => {
                    let counter = &counters(&answer)[0];
                    if counter.state == "Rejected" {
                        assert!(
                            !counter.texts("Path").is_empty() || !counter.texts("Reason").is_empty(),
                            "{shown}: {answer:?}"
                        );
                    }
                }
                _ => panic!("{shown}: {answer:?}"),
            }
        }
        assert_well(&server).await;
    });
}

#[test]
fn flat_requests_beyond_all_bounds_are_refused_by_their_pointers() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let offers = format!("/negotiations/{id}/offers");
        for body in [
            "[".repeat(200_000),
            format!("{{\"id\": \"{}\"}}", "x".repeat(200_000)),
            format!("{{\"counterOfferTo\": \"{}\"}}", "x".repeat(200_000)),
            "{\"nodes\": 1e308}".to_owned(),
            "{\"durationSeconds\": 99999999999999999999}".to_owned(),
            "{\"window\": {\"end\": \"9999-12-31T23:59:59.999999999999Z\"}, \"maxDeviation\": 1e300}"
                .to_owned(),
            "{\"weights\": {\"start\": 1e308, \"price\": 1e308}, \"maxDeviation\": 1e308, \"nodes\": 4}"
                .to_owned(),
            format!(
                "{{\"arguments\": [{}\"\"], \"application\": \"sleep\"}}",
                "\"\",".repeat(5_000)
            ),
        ] {
            let answer = timed(&client, &offers, "application/json", body.clone()).await;
            let shown: String = body.chars().take(80).collect();
            assert!(
                answer.status.is_client_error() || body.contains("1e30"),
                "{shown}: {answer:?}"
            );
        }
        assert_well(&server).await;
    });
}

#[test]
fn nothing_of_another_party_is_reached_by_its_id() {
    run(async {
        let server = Server::local();
        let physics = server.client_with(&server.key_for("physics", "consumer"));
        let biology = server.client_with(&server.key_for("biology", "consumer"));
        let agreement = physics.post("/agreements", reserve().xml()).await.created();
        let theirs = open(&physics).await;
        let offer = negotiate(&physics, theirs, &[SentOffer::solicited("a", reserve())])
            .await
            .remove(0);
        let before = physics.get_json(&format!("/negotiations/{theirs}")).await;
        let mine = open(&biology).await;
        // Their negotiation, in either representation.
        let said = SentOffer::solicited("b", reserve());
        for (path, kind, body) in [
            (
                "offers",
                "application/xml",
                message("NegotiateInput", std::slice::from_ref(&said)),
            ),
            (
                "offers",
                "application/json",
                json!({"counterOfferTo": offer.id}).to_string(),
            ),
            (
                "advertisements",
                "application/xml",
                message("AdvertiseInput", &[said]),
            ),
            ("advertisements", "application/json", "{}".to_owned()),
            ("terminate", "application/json", "{}".to_owned()),
            ("terminate", "application/xml", String::new()),
        ] {
            let answer = timed(&biology, &format!("/negotiations/{theirs}/{path}"), kind, body).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {answer:?}");
        }
        // Their offer in a negotiation of one's own, and as the offer to accept.
        let theirs_here = SentOffer {
            to: offer.id.clone(),
            ..SentOffer::solicited("c", reserve())
        };
        let answers = negotiate(&biology, mine, &[theirs_here]).await;
        assert_eq!(answers[0].state, "Rejected", "{answers:?}");
        assert!(
            answers[0].text("Path").ends_with("/wsag-neg:CounterOfferTo"),
            "{answers:?}"
        );
        let flat = json!({"counterOfferTo": offer.id}).to_string();
        let path = format!("/negotiations/{mine}/offers");
        let flat = timed(&biology, &path, "application/json", flat).await;
        assert_eq!(
            flat.json()["violations"][0]["path"],
            "/counterOfferTo",
            "{flat:?}"
        );
        for (kind, body) in [
            ("application/xml", offer.acceptance()),
            (
                "application/xml",
                offer
                    .acceptance()
                    .replace("CreateAgreementInput", "CreatePendingAgreementInput"),
            ),
            ("application/json", json!({"offer": offer.id}).to_string()),
            (
                "application/json",
                json!({"offer": offer.id, "pending": true}).to_string(),
            ),
        ] {
            let answer = timed(&biology, "/agreements", kind, body).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
        }
        // Their agreement as the one to be changed.
        let about = file("tests/messages/m18-initiate-renegotiation-input.xml");
        let about = about.replace("/a-1", &format!("/{agreement}"));
        for (kind, body) in [
            ("application/xml", about),
            ("application/json", json!({"agreement": agreement}).to_string()),
        ] {
            let answer = timed(&biology, "/negotiations", kind, body).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
        }
        // Paths that name nothing.
        for id in ["x", "%00", "..", "%2e%2e", &"9".repeat(4_000)] {
            let answer = biology.get(&format!("/negotiations/{id}")).await;
            assert!(answer.status.is_client_error(), "{id}: {answer:?}");
        }
        assert_eq!(physics.get_json(&format!("/negotiations/{theirs}")).await, before);
        physics.post("/agreements", offer.acceptance()).await.created();
        server.assert_verified();
    });
}
