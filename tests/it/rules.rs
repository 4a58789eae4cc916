//! Rules of the two specifications that no other test is about; `docs/reference/conformance.md` has all of them.

use std::time::Duration;

use reqwest::StatusCode;
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::negotiation::{SentOffer, message, negotiate, open, replacing};
use crate::support::offers::{Offer, date_time, file, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

on_both_engines!(
    an_agreement_id_is_its_partys_only_once_and_finds_the_agreement,
    an_agreement_id_has_a_length_that_the_store_can_index;
    a_release_on_postgres:
    an_agreement_has_the_id_that_its_initiator_asked_for_or_else_its_own,
    a_named_offer_has_the_answer_of_its_own_operation_alone,
    an_acceptance_gives_no_id_that_another_agreement_has,
    an_answer_keeps_the_template_of_what_it_answers,
    nothing_is_negotiated_in_what_has_ended,
);

const HOUR: i64 = 3_600;

/// Two templates: the second one is offered where prices are configured.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n";

fn reserve(nodes: u32) -> Offer {
    let start = hours_ahead(3);
    Offer::reserve(nodes, HOUR).within(start, start + HOUR)
}

async fn an_agreement_has_the_id_that_its_initiator_asked_for_or_else_its_own(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let own = client.post("/agreements", reserve(1).xml()).await.created();
    let shown = client.get(&format!("/agreements/{own}")).await;
    assert_eq!(shown.text("AgreementId"), own.to_string());
    let named = reserve(1).xml().replacen(
        "<wsag:AgreementOffer ",
        "<wsag:AgreementOffer wsag:AgreementId=\"of-mine\" ",
        1,
    );
    let id = client.post("/agreements", named).await.created();
    let shown = client.get(&format!("/agreements/{id}")).await;
    assert_eq!(shown.text("AgreementId"), "of-mine");
}

/// An offer with an AgreementId.
fn named(id: &str, offer: &Offer) -> String {
    let root = format!("<wsag:AgreementOffer wsag:AgreementId=\"{id}\" ");
    offer.xml().replacen("<wsag:AgreementOffer ", &root, 1)
}

async fn an_agreement_id_is_its_partys_only_once_and_finds_the_agreement(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let offer = named("a/1 &amp; b", &reserve(1));
    let first = client.post("/agreements", offer.clone()).await;
    let id = first.created();
    // The same offer has the same answer, alone or in its message, and no second effect.
    let again = client.post("/agreements", offer.clone()).await;
    assert_eq!((again.created(), &again.body), (id, &first.body));
    let input = format!(
        "<wsag:CreateAgreementInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">{offer}\
         </wsag:CreateAgreementInput>"
    );
    assert_eq!(client.post("/agreements", input).await.created(), id);
    // Another offer is refused: also once the agreement is over, and after a restart.
    let other = named("a/1 &amp; b", &reserve(2));
    taken(&client.post("/agreements", other.clone()).await);
    client.post(&format!("/agreements/{id}/terminate"), "").await;
    server.kill9();
    server.restart();
    let client = server.client();
    taken(&client.post("/agreements", other.clone()).await);
    let again = client.post("/agreements", offer.clone()).await;
    assert_eq!(again.created(), id, "it stays the answer");
    // Later it would come too late, and was accepted nevertheless: the id is looked for before the words are checked.
    let wrong = named(
        "a/1 &amp; b",
        &Offer::reserve(1, HOUR).within(now() - 7_200, now() - HOUR),
    );
    taken(&client.post("/agreements", wrong).await);
    // Another party may have an agreement with the same id, and sees its own alone.
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let theirs = physics.post("/agreements", other.clone()).await.created();
    let found = |path: &'static str, client: &Client| {
        let client = client.clone();
        async move {
            let page = client.get_json(path).await;
            let ids = page["agreements"].as_array().into_iter().flatten();
            ids.map(|id| id["id"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        }
    };
    let by_id = "/agreements?agreementId=a%2F1%20%26%20b";
    assert_eq!(found(by_id, &physics).await, [theirs.to_string()]);
    assert_eq!(
        found(by_id, &client).await,
        [theirs.to_string(), id.to_string()],
        "an operator sees both"
    );
    // More have the id than are on a page, and those that match are not the newest.
    let biology = server.client_with(&server.key_for("biology", "consumer"));
    biology
        .post("/agreements", named("a/1 &amp; b", &reserve(1)))
        .await
        .created();
    let over = "/agreements?agreementId=a%2F1%20%26%20b&state=Terminated&limit=1";
    assert_eq!(found(over, &client).await, [id.to_string()]);
    let none = "/agreements?agreementId=none";
    assert_eq!(found(none, &client).await, Vec::<String>::new());
    let shown = physics.get_json(&format!("/agreements/{theirs}")).await;
    assert_eq!(shown["agreementId"], "a/1 & b", "{shown}");
    // An agreement without an id of its initiator is found by the service's.
    let own = physics.post("/agreements", reserve(1).xml()).await.created();
    let page = physics.get_json(&format!("/agreements?agreementId={own}")).await;
    assert_eq!(page["agreements"][0]["id"], own.to_string(), "{page}");
    let page = physics
        .get_json(&format!("/agreements?agreementId={theirs}"))
        .await;
    assert_eq!(page["agreements"], serde_json::json!([]), "it has another id");
    server.assert_verified();
}

fn taken(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    assert_eq!(answer.text("ErrorCode"), "AGREEMENT_ID_TAKEN", "{answer:?}");
}

/// The message that asks for an offer to be decided later.
fn later(offer: &str) -> String {
    format!(
        "<wsag:CreatePendingAgreementInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">{offer}\
         </wsag:CreatePendingAgreementInput>"
    )
}

/// A pending agreement as it was decided, by the answer that took it.
async fn decided(client: &Client, answer: &Answer) -> (Uuid, serde_json::Value) {
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let path = answer.headers["location"].to_str().expect("a path").to_owned();
    let shown = eventually("its decision", Duration::from_mins(1), async || {
        let shown = client.get_json(&path).await;
        (shown["state"] != "Pending").then_some(shown)
    })
    .await;
    let id = path.rsplit('/').next().unwrap_or_default();
    (id.parse().expect("an id"), shown)
}

async fn a_named_offer_has_the_answer_of_its_own_operation_alone(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    client.post("/agreements", reserve(4).xml()).await.created();
    let full = named("full", &reserve(1));
    let (id, shown) = decided(&client, &client.post("/agreements", later(&full)).await).await;
    assert_eq!(shown["state"], "Rejected", "{shown}");
    taken(&client.post("/agreements", full.clone()).await);
    let again = client.post("/agreements", later(&full)).await;
    let known = format!("/agreements/{id}");
    assert_eq!(
        (again.status, again.headers["location"].to_str().ok()),
        (StatusCode::OK, Some(known.as_str())),
        "the same operation has what became of it: {again:?}"
    );
    let start = hours_ahead(9);
    let free = named("free", &Offer::reserve(1, HOUR).within(start, start + HOUR));
    let id = client.post("/agreements", free.clone()).await.created();
    taken(&client.post("/agreements", later(&free)).await);
    assert_eq!(client.post("/agreements", free).await.created(), id);
    server.assert_verified();
}

async fn an_acceptance_gives_no_id_that_another_agreement_has(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let with = |id: &str, acceptance: &str| {
        let root = format!("<wsag:AgreementOffer wsag:AgreementId=\"{id}\">");
        acceptance.replacen("<wsag:AgreementOffer>", &root, 1)
    };
    let pended = |acceptance: &str| {
        acceptance.replace("wsag:CreateAgreementInput", "wsag:CreatePendingAgreementInput")
    };
    let held = async |nodes: u32| {
        let id = open(&client).await;
        let mut offers = negotiate(&client, id, &[SentOffer::solicited("a", reserve(nodes))]).await;
        offers.remove(0).acceptance()
    };
    // Of two at once one wins.
    let (first, second) = (with("m", &held(1).await), with("m", &held(1).await));
    let (first, second) = tokio::join!(
        client.post("/agreements", first),
        client.post("/agreements", second)
    );
    let mut told = [first.status.as_u16(), second.status.as_u16()];
    told.sort_unstable();
    assert_eq!(told, [201, 409], "{first:?} {second:?}");
    // The id outlives the decision.
    let answer = client
        .post("/agreements", with("p", &pended(&held(1).await)))
        .await;
    let (mut agreement, shown) = decided(&client, &answer).await;
    assert_eq!(
        (&shown["state"], &shown["agreementId"]),
        (&"Observed".into(), &"p".into()),
        "{shown}"
    );
    let change = async |agreement: Uuid| {
        let input = file("tests/messages/m18-initiate-renegotiation-input.xml");
        let input = input.replace("/a-1", &format!("/{agreement}"));
        let id = client.post("/negotiations", input).await.created();
        let mut offers = negotiate(&client, id, &[SentOffer::solicited("c", reserve(1))]).await;
        replacing(&offers.remove(0).acceptance(), id, agreement)
    };
    // What takes its place keeps it, decided at once or later; and has none of another.
    taken(
        &client
            .post("/agreements", with("m", &change(agreement).await))
            .await,
    );
    taken(
        &client
            .post("/agreements", with("m", &pended(&change(agreement).await)))
            .await,
    );
    for _ in 0..2 {
        let answer = client
            .post("/agreements", with("p", &pended(&change(agreement).await)))
            .await;
        let (next, shown) = decided(&client, &answer).await;
        assert_eq!(
            (&shown["state"], &shown["agreementId"]),
            (&"Observed".into(), &"p".into()),
            "{shown}"
        );
        agreement = next;
    }
    let answer = client
        .post("/agreements", with("p", &change(agreement).await))
        .await;
    answer.created();
    server.assert_verified();
}

async fn an_agreement_id_has_a_length_that_the_store_can_index(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    // No text of one letter: an index may compress those.
    let parts = (0..400_u64).map(|n| format!("{:020}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let long = parts.collect::<Vec<_>>().concat();
    let path = "/wsag:AgreementOffer/@wsag:AgreementId";
    let refuse = |answer: &Answer, path: &str| {
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
        assert_eq!(answer.text("Path"), path, "{answer:?}");
    };
    refuse(&client.post("/agreements", named(&long, &reserve(1))).await, path);
    refuse(
        &client.post("/agreements", named("a&#x85;b", &reserve(1))).await,
        path,
    );
    let pending = client
        .post("/agreements", later(&named(&long, &reserve(1))))
        .await;
    refuse(&pending, &format!("/wsag:CreatePendingAgreementInput{path}"));
    let id = open(&client).await;
    let held = negotiate(&client, id, &[SentOffer::solicited("a", reserve(1))])
        .await
        .remove(0);
    let accepted = |id: &str| {
        let root = format!("<wsag:AgreementOffer wsag:AgreementId=\"{id}\">");
        held.acceptance().replacen("<wsag:AgreementOffer>", &root, 1)
    };
    let refused = client.post("/agreements", accepted(&long)).await;
    refuse(&refused, &format!("/wsag:CreateAgreementInput{path}"));
    client
        .post("/agreements", accepted(&"n".repeat(255)))
        .await
        .created();
    // Such an id finds nothing.
    for id in ["%00", &long[..7_900], "a%0Ab"] {
        let page = client.get_json(&format!("/agreements?agreementId={id}")).await;
        assert_eq!(page["agreements"], serde_json::json!([]), "{id}: {page}");
    }
    server.assert_verified();
}

#[test]
fn an_offer_says_whose_it_is_from_which_template_and_until_when() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let context = "/wsag:AgreementOffer/wsag:Context";
        let name = "<wsag:TemplateName>advance-reservation</wsag:TemplateName>";
        let past = format!(
            "<wsag:ExpirationTime>{}</wsag:ExpirationTime>",
            date_time(now() - 60)
        );
        for (from, to, path) in [
            (name, String::new(), context.to_owned()),
            (
                name,
                name.replace("advance", "other"),
                format!("{context}/wsag:TemplateName"),
            ),
            (
                ">AgreementResponder<",
                ">AgreementInitiator<".to_owned(),
                format!("{context}/wsag:ServiceProvider"),
            ),
            (
                "<wsag:TemplateId>",
                format!("{past}<wsag:TemplateId>"),
                format!("{context}/wsag:ExpirationTime"),
            ),
        ] {
            let refused = client
                .post("/agreements", reserve(1).xml().replace(from, &to))
                .await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{to}: {refused:?}"
            );
            assert_eq!(refused.text("Path"), path, "{refused:?}");
        }
        // Its slot is over when it expires.
        let expiring = |at: i64| {
            format!(
                "<wsag:ExpirationTime>{}</wsag:ExpirationTime><wsag:TemplateId>",
                date_time(at)
            )
        };
        let start = hours_ahead(3);
        let offer = Offer::reserve(1, 3_600).within(start, start + 10 * 3_600).xml();
        let until = |at: i64| client.post("/agreements", offer.replace("<wsag:TemplateId>", &expiring(at)));
        assert_eq!(
            until(start + 1_800).await.status,
            StatusCode::CONFLICT,
            "no slot ends by then"
        );
        let id = until(start + 5_400).await.created();
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(shown["deadline"], date_time(start + 5_400), "{shown}");
        // One that is beyond the provider's horizon bounds nothing.
        let (before, rest) = offer.split_once("<arp:EndTime>").expect("an end");
        let (_, after) = rest.split_once("</arp:EndTime>").expect("its end");
        let distant =
            format!("{before}{after}").replace("<wsag:TemplateId>", &expiring(now() + 5 * 365 * 24 * HOUR));
        client.post("/agreements", distant).await.created();
    });
}

#[test]
fn a_refusal_names_nothing_that_ends_after_its_agreement_expires() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(5);
        let within = |hours: i64| Offer::reserve(4, HOUR).within(start, start + hours * HOUR);
        client.post("/agreements", within(1).xml()).await.created();
        let until = async |end: i64| {
            let expires = format!(
                "<wsag:ExpirationTime>{}</wsag:ExpirationTime><wsag:TemplateId>",
                date_time(end)
            );
            let offer = within(1).xml().replace("<wsag:TemplateId>", &expires);
            let refused = client.post("/agreements", offer).await;
            assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
            let all = |element: &str| -> Vec<String> {
                refused.texts(element).into_iter().map(str::to_owned).collect()
            };
            (all("End"), all("Deadline"), all("Start"))
        };
        let second = until(start + 2 * HOUR).await;
        assert!(second.0.contains(&date_time(start + 2 * HOUR)), "{second:?}");
        assert_eq!(second.1, [date_time(start + 2 * HOUR)], "{second:?}");
        let first = until(start + 2 * HOUR - 1).await;
        assert_eq!(first.0, [date_time(start)], "the one before is left: {first:?}");
        assert_eq!(first.1, Vec::<String>::new(), "{first:?}");
        let sooner = date_time(start - HOUR);
        assert_eq!(
            first.2,
            [sooner.clone(), sooner],
            "an alternative and a change: {first:?}"
        );
    });
}

#[test]
fn counter_offers_are_the_services_to_make_and_an_offer_comes_before_its_time_is_over() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let path = format!("/negotiations/{id}/offers");
        let said = message("NegotiateInput", &[SentOffer::solicited("a", reserve(1))]);
        let late = format!(
            "<wsag-neg:ExpirationTime>{}</wsag-neg:ExpirationTime><wsag-neg:Creator>",
            date_time(now() - 60)
        );
        for (from, to, local) in [
            (
                "<wsag-neg:Creator>NegotiationInitiator",
                "<wsag-neg:Creator>NegotiationResponder",
                "Creator",
            ),
            ("<wsag-neg:Creator>", late.as_str(), "ExpirationTime"),
        ] {
            let answer = client.post(&path, said.replace(from, to)).await;
            assert_eq!(
                answer.status,
                StatusCode::OK,
                "each offer is answered by itself: {answer:?}"
            );
            assert!(answer.body.contains("<wsag-neg:Rejected>"), "{answer:?}");
            let expected = format!(
                "/wsag-neg:NegotiateInput/wsag-neg:NegotiationOffer/wsag-neg:NegotiationOfferContext/wsag-neg:{local}"
            );
            assert_eq!(answer.text("Path"), expected);
        }
        let view = client.get_json(&format!("/negotiations/{id}")).await;
        assert_eq!(
            view["offers"],
            serde_json::json!([]),
            "neither has a place in the tree"
        );
    });
}

#[test]
fn words_that_look_like_an_element_are_kept() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let name = "the <wsag-neg:Constraint> of mine"
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let said = SentOffer::solicited("a", reserve(1)).replacing(
            "<wsag:Name>test</wsag:Name>",
            &format!("<wsag:Name>{name}</wsag:Name>"),
        );
        let offers = negotiate(&client, id, &[said]).await;
        assert!(offers[0].xml.contains(&name), "{offers:?}");
        let shown = client.get(&format!("/negotiations/{id}")).await;
        assert!(shown.body.contains(&name), "{shown:?}");
        let agreement = client.post("/agreements", offers[0].acceptance()).await.created();
        let shown = client.get(&format!("/agreements/{agreement}")).await;
        assert!(shown.body.contains(&name), "{shown:?}");
    });
}

#[test]
fn a_counter_offer_is_over_when_its_agreement_expires() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(5);
        let window = |nodes: u32| Offer::reserve(nodes, HOUR).within(start, start + HOUR);
        client.post("/agreements", window(1).xml()).await.created();
        let id = open(&client).await;
        let expires = format!(
            "<wsag:ExpirationTime>{}</wsag:ExpirationTime><wsag:TemplateId>",
            date_time(start + HOUR)
        );
        // Nothing is held for the first, so that the second finds the same room.
        let near = |id: &str| SentOffer {
            state: "Advisory",
            ..SentOffer::solicited(id, window(4))
        };
        let kinds = async |said: SentOffer| {
            let offers = negotiate(&client, id, &[said]).await;
            let kinds = offers.iter().flat_map(|offer| offer.texts("Kind"));
            kinds.map(str::to_owned).collect::<Vec<_>>()
        };
        let free = kinds(near("a")).await;
        assert!(free.iter().any(|kind| kind == "Later"), "{free:?}");
        let bound = kinds(near("b").replacing("<wsag:TemplateId>", &expires)).await;
        assert!(
            !bound.is_empty() && !bound.iter().any(|kind| kind == "Later"),
            "{bound:?}"
        );
        server.assert_verified();
    });
}

async fn an_answer_keeps_the_template_of_what_it_answers(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let id = open(&client).await;
    let first = negotiate(&client, id, &[SentOffer::solicited("a", reserve(1))])
        .await
        .remove(0);
    let template = |text: &str| {
        text.split("<wsag:TemplateId>")
            .nth(1)
            .and_then(|rest| rest.split('<').next())
            .map(str::to_owned)
    };
    assert_eq!(template(&first.xml).as_deref(), Some("advance-reservation"));
    let other = message(
        "NegotiateInput",
        &[SentOffer {
            to: first.id.clone(),
            ..SentOffer::solicited("b", reserve(1))
        }],
    );
    let other = other
        .replace("<wsag:TemplateId>advance", "<wsag:TemplateId>guaranteed")
        .replace("<wsag:TemplateName>advance", "<wsag:TemplateName>guaranteed");
    let answer = client.post(&format!("/negotiations/{id}/offers"), other).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert!(
        answer.text("Path").ends_with("/wsag-neg:CounterOfferTo"),
        "{answer:?}"
    );
    assert!(answer.text("Message").contains("another template"), "{answer:?}");
}

async fn nothing_is_negotiated_in_what_has_ended(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let ended = open(&client).await;
    let held = negotiate(&client, ended, &[SentOffer::solicited("a", reserve(4))])
        .await
        .remove(0);
    client.post(&format!("/negotiations/{ended}/terminate"), "").await;
    // Its time may be over as it arrives.
    let expired = eventually("a brief negotiation", Duration::from_mins(1), async || {
        let soon = date_time(now() + 5);
        let short = format!(
            "<wsag-neg:NegotiationContext \
             xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\">\
             <wsag-neg:NegotiationType><wsag-neg:Negotiation/></wsag-neg:NegotiationType>\
             <wsag-neg:ExpirationTime>{soon}</wsag-neg:ExpirationTime>\
             <wsag-neg:AgreementResponder>NegotiationResponder</wsag-neg:AgreementResponder>\
             </wsag-neg:NegotiationContext>"
        );
        let opened = client.post("/negotiations", short).await;
        (opened.status != StatusCode::UNPROCESSABLE_ENTITY).then(|| opened.created())
    })
    .await;
    eventually("its end", Duration::from_mins(1), async || {
        let view = client.get_json(&format!("/negotiations/{expired}")).await;
        (view["state"] == "expired").then_some(())
    })
    .await;
    for (id, status) in [(ended, StatusCode::CONFLICT), (expired, StatusCode::GONE)] {
        for (verb, root) in [("offers", "NegotiateInput"), ("advertisements", "AdvertiseInput")] {
            let said = message(root, &[SentOffer::solicited("late", reserve(1))]);
            let answer = client.post(&format!("/negotiations/{id}/{verb}"), said).await;
            assert_eq!(answer.status, status, "{verb}: {answer:?}");
        }
    }
    let lost = client.post("/agreements", held.acceptance()).await;
    assert_eq!(lost.status, StatusCode::CONFLICT, "{lost:?}");
    client.post("/agreements", reserve(4).xml()).await.created();
    server.assert_verified();
}
