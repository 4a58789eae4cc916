//! Counter offers become agreements: as they were offered, once, in time, by their own party.

use reqwest::StatusCode;
use tokio::task::JoinSet;

use crate::idempotency::with_id;
use crate::support::client::Answer;
use crate::support::eventually;
use crate::support::negotiation::{Counter, SentOffer, counters, message, negotiate, open};
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::server::Server;
use crate::support::size;
use crate::support::stores::on_both_engines;

const SOON: std::time::Duration = std::time::Duration::from_mins(1);
/// Clients that accept the last slot; `BESPEAK_TEST_RACERS` asks for more.
const CLIENTS: usize = 100;
const HOUR: i64 = 3_600;

on_both_engines!(
    an_offer_becomes_an_agreement_that_takes_over_its_hold,
    the_offers_of_the_last_slot_go_to_one_of_a_hundred,
);

async fn an_offer_becomes_an_agreement_that_takes_over_its_hold(url: String) {
    let mut server = Server::start(&url);
    let physics = server.key_for("physics", "consumer");
    let biology = server.key_for("biology", "consumer");
    let client = server.client_with(&physics);
    let start = hours_ahead(3);
    // Three alternatives; the last one is taken: the nodes kept for the others are free again.
    client
        .post(
            "/agreements",
            Offer::reserve(1, HOUR).within(start, start + HOUR).xml(),
        )
        .await
        .created();
    let id = open(&client).await;
    let ask = SentOffer::solicited("c-1", Offer::reserve(4, HOUR).within(start, start + HOUR));
    let answers = negotiate(&client, id, &[ask]).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.text("Kind")).collect();
    assert_eq!(kinds, ["Earlier", "Later"]);
    let (earlier, later) = (&answers[0], &answers[1]);
    let before = Offer::reserve(4, HOUR).within(start - HOUR, start).xml();
    let refused = client.post("/agreements", before.clone()).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "it is held: {refused:?}");

    // Not by another party, and not with other words.
    let stranger = server
        .client_with(&biology)
        .post("/agreements", later.acceptance())
        .await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND, "{stranger:?}");
    let changed = later.acceptance().replace("<jsdl:Exact>4<", "<jsdl:Exact>3<");
    let other = client.post("/agreements", changed).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "{other:?}");
    assert!(other.text("Path").ends_with("/jsdl:Exact"), "{other:?}");

    server.kill9();
    server.restart();
    let client = server.client_with(&physics);
    let request = |key: &str| {
        client
            .request(reqwest::Method::POST, "/agreements")
            .header("content-type", "application/xml")
            .header("idempotency-key", key)
            .body(later.acceptance())
    };
    let agreement = client.send(request("k")).await.created();
    assert_eq!(
        client.send(request("k")).await.created(),
        agreement,
        "the same again"
    );
    let shown = client.get_json(&format!("/agreements/{agreement}")).await;
    assert_eq!(
        shown["plannedStart"].as_str(),
        Some(later.text("PlannedStart")),
        "{shown}"
    );
    let again = client.post("/agreements", later.acceptance()).await;
    assert_eq!(again.created(), agreement, "the same without its key");
    let late = client
        .post("/agreements", with_id("late", &later.acceptance()))
        .await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{late:?}");
    assert!(!counters(&late).is_empty(), "there is something else: {late:?}");
    let sibling = client.post("/agreements", earlier.acceptance()).await;
    assert_eq!(
        sibling.status,
        StatusCode::CONFLICT,
        "it was let go of: {sibling:?}"
    );
    server.assert_verified();
    client.post(&format!("/negotiations/{id}/terminate"), "").await;
    client.post("/agreements", before).await.created();
    server.assert_verified();
}

async fn the_offers_of_the_last_slot_go_to_one_of_a_hundred(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let clients = size("BESPEAK_TEST_RACERS", CLIENTS);
    let start = hours_ahead(1);
    let id = open(&client).await;
    let ask = SentOffer::solicited("c-1", Offer::reserve(4, HOUR).within(start, start + HOUR));
    let offer = negotiate(&client, id, &[ask]).await.remove(0);
    // Each means an agreement of its own.
    let racers: JoinSet<_> = (0..clients)
        .map(|racer| {
            let input = with_id(&format!("r-{racer}"), &offer.acceptance());
            let client = client.clone();
            async move {
                let request = client.request(reqwest::Method::POST, "/agreements");
                let request = request.header("content-type", "application/xml").body(input);
                client.try_send(request).await.expect("every racer is answered")
            }
        })
        .collect();
    let answers = racers.join_all().await;
    let (winners, others): (Vec<&Answer>, Vec<&Answer>) = answers
        .iter()
        .partition(|answer| answer.status == StatusCode::CREATED);
    assert_eq!(winners.len(), 1, "an offer is accepted once");
    let mut fresh = 0;
    for answer in others {
        assert!(
            matches!(answer.status, StatusCode::CONFLICT | StatusCode::GONE),
            "{answer:?}"
        );
        fresh += usize::from(!counters(answer).is_empty());
    }
    assert_eq!(fresh, clients - 1, "every other client gets an offer");
    server.assert_verified();
}

#[test]
fn an_acceptance_with_words_that_were_not_offered_is_refused_at_their_path() {
    crate::support::run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(1);
        let id = open(&client).await;
        let ask = SentOffer::solicited("c-1", Offer::reserve(1, HOUR).within(start, start + HOUR));
        let offer = negotiate(&client, id, &[ask]).await.remove(0);
        // No value says an annotation, but an agreement shows it.
        let said = "<jsdl:JobIdentification><jsdl:JobAnnotation>free of charge</jsdl:JobAnnotation></jsdl:JobIdentification>";
        let described = "<jsdl:JobDescription>";
        let annotated = offer
            .acceptance()
            .replacen(described, &format!("{described}{said}"), 1);
        assert!(annotated.contains(said), "{annotated}");
        let refused = client.post("/agreements", annotated).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert!(
            refused
                .text("Path")
                .ends_with("/jsdl:JobDescription/jsdl:JobIdentification"),
            "{refused:?}"
        );
        client.post("/agreements", offer.acceptance()).await.created();
        server.assert_verified();
    });
}

#[test]
fn an_offer_that_has_expired_is_gone_and_its_slot_is_free() {
    crate::support::run(async {
        let four =
            "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n[negotiation]\nhold_seconds = 2\n";
        let server = Server::configured(None, four);
        let client = server.client();
        let start = hours_ahead(1);
        let all = Offer::reserve(4, HOUR).within(start, start + HOUR);
        let id = open(&client).await;
        let offer = negotiate(&client, id, &[SentOffer::solicited("c-1", all.clone())])
            .await
            .remove(0);
        assert_eq!(offer.state, "Acceptable");
        let changed = offer.acceptance().replace("Exact>4", "Exact>3");
        let ids = |counters: &[Counter]| counters.iter().map(|offer| offer.id.clone()).collect::<Vec<_>>();
        // The next offer is held as briefly: a client that comes too late for it gets another offer.
        eventually("the end of the hold, and another offer", SOON, async || {
            let quoted = client.post("/agreements", changed.clone()).await;
            if quoted.status == StatusCode::GONE {
                let quoted = counters(&quoted);
                assert_eq!(
                    quoted[0].state, "Advisory",
                    "nothing is held that was not asked for"
                );
            }
            let answer = client.post("/agreements?hold=true", changed.clone()).await;
            if answer.status != StatusCode::GONE {
                return None;
            }
            let fresh = counters(&answer);
            assert_eq!(fresh[0].state, "Acceptable", "it can be had again: {answer:?}");
            assert_eq!(fresh[0].text("Kind"), "Exact");
            let again = counters(&client.post("/agreements?hold=true", changed.clone()).await);
            let held = fresh[0].text("HeldUntil").parse::<jiff::Timestamp>();
            if now() < held.expect("an instant").as_second() {
                assert_eq!(ids(&again), ids(&fresh), "they are held once");
            }
            let accepted = client.post("/agreements", fresh[0].acceptance()).await;
            (accepted.status != StatusCode::GONE).then(|| accepted.created())
        })
        .await;
        let path = format!("/negotiations/{id}/offers");
        let late = client.post(
            &path,
            message(
                "NegotiateInput",
                &[SentOffer {
                    to: offer.id.clone(),
                    ..SentOffer::solicited("c-2", all)
                }],
            ),
        );
        assert_eq!(
            counters(&late.await)[0].state,
            "Rejected",
            "an expired offer is not countered"
        );
        server.assert_verified();
    });
}
