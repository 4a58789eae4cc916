//! Agreements are changed by agreement: quoted first, then replaced in one step, and untouched where that is refused.

use reqwest::StatusCode;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, counters, message, negotiate, replacing};
use crate::support::offers::{Offer, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;

on_both_engines!(
    of_two_changes_at_once_one_wins;
    a_release_on_postgres:
    an_agreement_is_changed_in_every_way_and_may_use_its_own_place,
);

/// Opens a negotiation about an agreement.
async fn reopen(client: &Client, agreement: Uuid) -> Uuid {
    let input = file("tests/messages/m18-initiate-renegotiation-input.xml");
    let input = input.replace("/a-1", &format!("/{agreement}"));
    client.post("/negotiations", input).await.created()
}

async fn an_agreement_is_changed_in_every_way_and_may_use_its_own_place(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(4);
    let first = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let mut agreement = client.post("/agreements", first.xml()).await.created();
    let sleep = Offer {
        run: Some(("sleep", vec!["1".to_owned()])),
        ..Offer::reserve(2, HOUR)
    };
    // Moved by half an hour, over its own place; longer; shorter; smaller; with a wider window; fixed; and with a job.
    for (number, change) in [
        Offer::reserve(4, HOUR).within(start + HOUR / 2, start + HOUR * 3 / 2),
        Offer::reserve(4, 2 * HOUR).within(start + HOUR / 2, start + HOUR * 5 / 2),
        Offer::reserve(4, HOUR / 2).within(start, start + HOUR),
        Offer::reserve(2, HOUR / 2).within(start, start + HOUR),
        Offer::reserve(2, HOUR).within(start, start + 6 * HOUR),
        Offer::reserve(2, HOUR).within(start, start + HOUR),
        sleep.clone().within(start, start + HOUR),
        Offer {
            run: Some(("sleep", vec!["2".to_owned()])),
            ..sleep
        }
        .within(start, start + HOUR),
    ]
    .into_iter()
    .enumerate()
    {
        let id = reopen(&client, agreement).await;
        let offers = negotiate(&client, id, &[SentOffer::solicited("c", change.clone())]).await;
        assert_eq!(
            (offers[0].state.as_str(), offers[0].text("Kind")),
            ("Acceptable", "Exact"),
            "{number}: {offers:?}"
        );
        server.assert_verified();
        let wrong = client.post("/agreements", offers[0].acceptance()).await;
        assert_eq!(
            wrong.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "which one it replaces is said: {wrong:?}"
        );
        let next = client
            .post("/agreements", replacing(&offers[0].acceptance(), id, agreement))
            .await
            .created();
        let old = client.get(&format!("/agreements/{agreement}")).await;
        assert_eq!(
            (old.text("State"), old.text("SupersededBy")),
            ("Complete", next.to_string().as_str())
        );
        let new = client.get_json(&format!("/agreements/{next}")).await;
        assert_eq!(new["state"], "Observed", "{number}: {new}");
        assert_eq!(new["supersedes"].as_str(), Some(agreement.to_string().as_str()));
        assert_eq!(new["nodes"], change.nodes, "{number}: {new}");
        assert_eq!(new["durationSeconds"], change.duration, "{number}: {new}");
        server.assert_verified();
        agreement = next;
    }
    // Nodes that it no longer needs are free.
    client
        .post(
            "/agreements",
            Offer::reserve(2, HOUR).within(start, start + HOUR).xml(),
        )
        .await
        .created();

    // A change that is not possible leaves everything as it is.
    let id = reopen(&client, agreement).await;
    let large = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let near = SentOffer::solicited("c", large).wishing("<bsp:MaxDeviation>0</bsp:MaxDeviation>");
    let refused = negotiate(&client, id, &[near]).await;
    assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    let kept = client.get_json(&format!("/agreements/{agreement}")).await;
    assert_eq!(kept["state"], "Observed", "{kept}");
    // And an agreement that is over is not changed.
    let reason = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                  <r:Reason xmlns:r=\"urn:example:reason\"/></wsag:TerminateInput>";
    client
        .post(&format!("/agreements/{agreement}/terminate"), reason)
        .await;
    let late = SentOffer::solicited("d", Offer::reserve(1, HOUR).within(start, start + HOUR));
    let late = client
        .post(
            &format!("/negotiations/{id}/offers"),
            message("NegotiateInput", &[late]),
        )
        .await;
    assert!(
        matches!(late.status, StatusCode::CONFLICT | StatusCode::NOT_FOUND),
        "{late:?}"
    );
    let input = file("tests/messages/m18-initiate-renegotiation-input.xml");
    let over = client
        .post("/negotiations", input.replace("/a-1", &format!("/{agreement}")))
        .await;
    assert_eq!(over.status, StatusCode::CONFLICT, "{over:?}");
    server.assert_verified();
}

async fn of_two_changes_at_once_one_wins(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(4);
    let first = Offer::reserve(2, HOUR).within(start, start + HOUR);
    let agreement = client.post("/agreements", first.xml()).await.created();
    let mut inputs = Vec::new();
    for by in [HOUR / 2, 2 * HOUR] {
        let id = reopen(&client, agreement).await;
        let change = Offer::reserve(2, HOUR).within(start + by, start + by + HOUR);
        let offers = negotiate(&client, id, &[SentOffer::solicited("c", change)]).await;
        assert_eq!(offers[0].state, "Acceptable");
        inputs.push(replacing(&offers[0].acceptance(), id, agreement));
    }
    let racers: JoinSet<_> = inputs
        .into_iter()
        .map(|input| {
            let client = client.clone();
            async move { client.post("/agreements", input).await }
        })
        .collect();
    let answers = racers.join_all().await;
    let won = answers
        .iter()
        .filter(|answer| answer.status == StatusCode::CREATED);
    assert_eq!(won.count(), 1, "{answers:?}");
    let lost = answers
        .iter()
        .find(|answer| answer.status == StatusCode::CONFLICT);
    let lost = lost.unwrap_or_else(|| panic!("the other is told: {answers:?}"));
    assert!(
        counters(lost).is_empty(),
        "there is nothing left to change: {lost:?}"
    );
    server.assert_verified();
}
