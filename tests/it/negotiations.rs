//! Negotiations over HTTP: opened, shown, ended, and still there after a crash.

use reqwest::StatusCode;

use crate::support::negotiation::{SentOffer, message, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead, moved, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

on_both_engines!(
    a_negotiation_is_opened_shown_and_ended,
    a_negotiation_survives_a_crash,
);

/// An InitiateNegotiationInput as it comes with the messages, and with another expiration.
pub(crate) fn opening() -> String {
    moved(&file(INITIATE))
}

/// The same that expires then.
fn expiring(at: i64) -> String {
    file(INITIATE).replace("2026-01-09T12:00:00Z", &date_time(at))
}

const INITIATE: &str = "tests/messages/m12-initiate-negotiation-input.xml";

const SOON: std::time::Duration = std::time::Duration::from_mins(1);
/// So many nodes for the hour that begins three hours from now.
fn reserve(nodes: u32) -> Offer {
    let start = hours_ahead(3);
    Offer::reserve(nodes, 3_600).within(start, start + 3_600)
}

const END: &str = "tests/messages/m17-negotiation-terminate-input.xml";

async fn a_negotiation_is_opened_shown_and_ended(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let opened = client.post("/negotiations", opening()).await;
    let id = opened.created();
    assert!(
        opened.text("Address").ends_with(&format!("/negotiations/{id}")),
        "{opened:?}"
    );
    let path = format!("/negotiations/{id}");
    let shown = client.get(&path).await;
    assert_eq!(shown.status, StatusCode::OK, "{shown:?}");
    assert_eq!(shown.text("AgreementResponder"), "NegotiationResponder");
    assert_eq!(shown.texts("TemplateId").first(), Some(&"advance-reservation"));
    let view = client.get_json(&path).await;
    assert_eq!(view["state"], "open", "{view}");
    assert_eq!(view["expires"].as_str(), Some(shown.text("ExpirationTime")));

    let ended = client.post(&format!("{path}/terminate"), file(END)).await;
    assert_eq!(ended.status, StatusCode::OK, "{ended:?}");
    assert_eq!(client.get_json(&path).await["state"], "terminated");
    let again = client.post(&format!("{path}/terminate"), "").await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");
    server.assert_verified();
}

async fn a_negotiation_survives_a_crash(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let id = client.post("/negotiations", opening()).await.created();
    let before = client.get_json(&format!("/negotiations/{id}")).await;
    server.kill9();
    server.restart();
    let client = server.client();
    let after = client.get_json(&format!("/negotiations/{id}")).await;
    assert_eq!(after, before);
    let ended = client.post(&format!("/negotiations/{id}/terminate"), "").await;
    assert_eq!(ended.status, StatusCode::OK, "{ended:?}");
    server.assert_verified();
}

#[test]
fn what_is_wrong_with_an_opening_is_told_with_its_place() {
    crate::support::run(async {
        let server = Server::local();
        let client = server.client();
        let responder = "<wsag-neg:AgreementResponder>NegotiationResponder";
        let initiator = "<wsag-neg:AgreementResponder>NegotiationInitiator";
        for (wrong, path) in [
            (expiring(now() - 5), "ExpirationTime"),
            (opening().replace(responder, initiator), "AgreementResponder"),
        ] {
            let answer = client.post("/negotiations", wrong).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
            assert!(answer.text("Path").ends_with(path), "{answer:?}");
        }
        let offer = client.post("/negotiations", file("examples/sleep.xml")).await;
        assert_eq!(offer.status, StatusCode::UNPROCESSABLE_ENTITY, "{offer:?}");
        // A negotiation that does not exist cannot be changed.
        let change = file("tests/messages/m18-initiate-renegotiation-input.xml");
        let nothing = client.post("/negotiations", change.clone()).await;
        assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY, "{nothing:?}");
        let unknown = change.replace("/a-1", "/0190a000-0000-7000-8000-000000000000");
        let answer = client.post("/negotiations", unknown).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
    });
}

#[test]
fn a_negotiation_whose_time_is_over_is_gone() {
    crate::support::run(async {
        let server = Server::local();
        let client = server.client();
        // Its time may be over as it arrives.
        let id = eventually("a brief negotiation", SOON, async || {
            let opened = client.post("/negotiations", expiring(now() + 5)).await;
            (opened.status != StatusCode::UNPROCESSABLE_ENTITY).then(|| opened.created())
        })
        .await;
        let path = format!("/negotiations/{id}");
        eventually("its end", SOON, async || {
            (client.get_json(&path).await["state"] == "expired").then_some(())
        })
        .await;
        let answer = client.post(&format!("{path}/terminate"), "").await;
        assert_eq!(answer.status, StatusCode::GONE, "{answer:?}");
    });
}

#[test]
fn of_several_offers_the_one_that_cannot_be_had_is_rejected_and_the_others_are_answered() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let hosts =
            "<jsdl:Resources><jsdl:CandidateHosts><jsdl:HostName>n1</jsdl:HostName></jsdl:CandidateHosts>";
        let unknown = "<wsa:To xmlns:wsa=\"http://www.w3.org/2005/08/addressing\">urn:x</wsa:To>";
        let term = |name: &str, content: &str| {
            format!(
                "<wsag:ServiceDescriptionTerm wsag:Name=\"{name}\" wsag:ServiceName=\"COMPUTE\">{content}\
                 </wsag:ServiceDescriptionTerm>"
            )
        };
        let said = |name: &str| SentOffer::solicited(name, reserve(1));
        let offers = [
            said("first"),
            said("hosts").replacing("<jsdl:Resources>", hosts),
            said("unknown").replacing(
                "<wsag:GuaranteeTerm",
                &(format!(
                    "<wsag:ExactlyOne>{}</wsag:ExactlyOne><wsag:GuaranteeTerm",
                    term("TO", unknown)
                )),
            ),
            said("last"),
        ];
        let answers = negotiate(&client, id, &offers).await;
        for (to, state) in [
            ("first", "Acceptable"),
            ("hosts", "Rejected"),
            ("unknown", "Rejected"),
            ("last", "Acceptable"),
        ] {
            let found: Vec<_> = answers
                .iter()
                .filter(|answer| answer.text("CounterOfferTo") == to)
                .collect();
            assert!(!found.is_empty(), "{to}: {answers:?}");
            assert!(found.iter().all(|found| found.state == state), "{to}: {found:?}");
        }
        let rejected: Vec<_> = answers
            .iter()
            .filter(|answer| answer.state == "Rejected")
            .collect();
        let offer = "/wsag-neg:NegotiateInput/wsag-neg:NegotiationOffer";
        for (answer, number, end) in [
            (rejected[0], 2, "/jsdl:CandidateHosts"),
            (rejected[1], 3, "/wsa:To"),
        ] {
            let path = answer.text("Path");
            assert!(
                path.starts_with(&format!("{offer}[{number}]/")) && path.ends_with(end),
                "{path}"
            );
        }
        // One that is no message at all is a fault of the whole.
        let broken =
            message("NegotiateInput", &offers).replacen("<wsag:Terms>", "<wsag:Terms><wsag:None/>", 1);
        let refused = client.post(&format!("/negotiations/{id}/offers"), broken).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        // A bare offer is answered in the same way.
        let input = message("NegotiateInput", &offers[1..2]);
        let (_, bare) = input.split_once("<wsag-neg:NegotiationOffer ").expect("an offer");
        let (bare, _) = bare.split_once("</wsag-neg:NegotiateInput>").expect("its end");
        let bare = format!(
            "<wsag-neg:NegotiationOffer xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\" {bare}"
        );
        let answer = client.post(&format!("/negotiations/{id}/offers"), bare).await;
        assert!(answer.body.contains("<wsag-neg:Rejected>"), "{answer:?}");
        assert!(
            answer
                .text("Path")
                .starts_with("/wsag-neg:NegotiationOffer/wsag:Terms/"),
            "{answer:?}"
        );
        server.assert_verified();
    });
}

#[test]
fn an_acceptance_that_does_not_say_acceptable_concludes_nothing() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let counter = negotiate(&client, id, &[SentOffer::solicited("a", reserve(1))])
            .await
            .remove(0);
        let acceptance = counter.acceptance();
        for state in ["Rejected", "Advisory", "Solicited"] {
            let other = acceptance.replace("<wsag-neg:Acceptable/>", &format!("<wsag-neg:{state}/>"));
            let refused = client.post("/agreements", other).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{state}: {refused:?}"
            );
            assert_eq!(
                refused.text("Path"),
                "/wsag:CreateAgreementInput/wsag-neg:NegotiationExtension/wsag-neg:NegotiationOfferContext/wsag-neg:State",
                "{state}"
            );
        }
        let agreements = client.get_json("/agreements").await;
        assert_eq!(agreements["agreements"], serde_json::json!([]), "{agreements}");
        // The offer is still held.
        client.post("/agreements", acceptance).await.created();
        server.assert_verified();
    });
}
