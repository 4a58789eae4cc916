//! An agreement is changed while its work runs: the end of its slot moves, and its job goes on.

use std::fs;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::negotiation::{Said, negotiate};
use crate::support::offers::{Offer, date_time, file, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// Nothing here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(3);
/// Four nodes, an hour of one for an hour's price of 3.60: a second is 0.001.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
                      [pricing]\ncurrency = \"EUR\"\nnode_hour = \"3.60\"\ncancellation_percent = 10\nchange_percent = 2\n";

on_both_engines!(
    a_later_end_keeps_the_job_that_runs_over_a_kill;
    a_release_on_postgres:
    what_has_begun_cannot_change_its_size_start_or_arguments,
    the_nodes_after_a_slot_are_had_where_others_can_make_room,
    an_earlier_end_stops_the_job_then_and_frees_its_nodes,
    a_later_end_is_accepted_now_and_decided_later,
    a_job_that_is_not_over_goes_on_where_its_template_and_its_nodes_allow,
    a_job_that_is_not_over_ends_with_its_slot_where_others_have_its_nodes,
);

/// The first offer in place of an agreement.
async fn quote(client: &Client, change: &Value) -> Value {
    let quoted = client.post_json("/negotiations", change).await;
    assert_eq!(quoted.status, StatusCode::CREATED, "{quoted:?}");
    let first = quoted.json()["offers"][0].clone();
    assert!(first.is_object(), "{quoted:?}");
    first
}

async fn show(client: &Client, id: Uuid) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

/// The agreement once its process runs.
async fn running(client: &Client, id: Uuid) -> Value {
    eventually("its process", SOON, async || {
        let shown = show(client, id).await;
        shown["started"].is_string().then_some(shown)
    })
    .await
}

async fn complete(client: &Client, id: Uuid) -> Value {
    eventually("its end", SOON, async || {
        let shown = show(client, id).await;
        (shown["state"] == "Complete").then_some(shown)
    })
    .await
}

/// The processes that sleep for so long.
fn sleepers(seconds: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let sleeps = |process: &fs::DirEntry| {
        let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        line.contains("sleep") && line.ends_with(&format!("\0{seconds}\0"))
    };
    processes
        .filter(sleeps)
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

async fn a_later_end_keeps_the_job_that_runs_over_a_kill(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    // It sleeps for longer than its slot.
    let begun = now();
    let offer = Offer::sleep(21, 18).within(begun, begun + 80);
    let old = client.post("/agreements", offer.xml()).await.created();
    let before = running(&client, old).await;
    let job = server.data_dir().join("jobs").join(old.to_string());
    let claim = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    let change = json!({"agreement": old, "durationSeconds": 60, "window": {"end": date_time(begun + 90)}});
    let offered = quote(&client, &change).await;
    assert_eq!(
        (&offered["kind"], &offered["durationSeconds"]),
        (&"exact".into(), &60.into()),
        "{offered}"
    );
    assert_eq!(offered["start"], before["plannedStart"], "{offered}");
    // 42 seconds of a node more, and the fee of 2 % of its price.
    assert_eq!(offered["priceDifference"]["amount"], "0.042", "{offered}");
    assert_eq!(offered["fee"]["amount"], "0.00036", "{offered}");
    server.assert_verified();
    let new = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await
        .created();
    server.kill9();
    server.assert_verified();
    server.restart();
    let client = server.client();
    let replaced = show(&client, old).await;
    assert_eq!(
        (&replaced["state"], &replaced["supersededBy"]),
        (&"Complete".into(), &json!(new)),
        "{replaced}"
    );
    let goes_on = show(&client, new).await;
    assert_eq!(goes_on["started"], before["started"], "{goes_on}");
    let over = complete(&client, new).await;
    assert_eq!(over["outcome"], "completed", "{over}");
    let after = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    assert_eq!(after, claim, "the job ran once");
    // Its output is its own now.
    client.get_json(&format!("/agreements/{new}/files")).await;
    server.assert_verified();
}

async fn an_earlier_end_stops_the_job_then_and_frees_its_nodes(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let seconds = format!("{}", 200_000 + u32::from(server.address().port()));
    let begun = now();
    let offer = Offer {
        run: Some(("sleep", vec![seconds.clone()])),
        ..Offer::reserve(4, 1_000)
    };
    let old = client
        // A minute of room, since the present moves on.
        .post("/agreements", offer.within(begun, begun + 1_060).xml())
        .await
        .created();
    running(&client, old).await;
    // A change of the deadline alone leaves the end.
    let later = json!({"agreement": old, "window": {"end": date_time(begun + 2_000)}});
    let offered = quote(&client, &later).await;
    assert_eq!(offered["priceDifference"]["amount"], "0", "{offered}");
    let old = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await
        .created();
    let length = now() - begun + 30;
    let offered = quote(&client, &json!({"agreement": old, "durationSeconds": length})).await;
    let new = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await
        .created();
    server.assert_verified();
    // Another agreement has the nodes from then on.
    let next = Offer::sleep(1, 20).on(4).within(begun, begun + 600);
    let next = client.post("/agreements", next.xml()).await.created();
    assert_eq!(sleepers(&seconds).len(), 1, "it goes on until then");
    let over = complete(&client, new).await;
    assert_eq!(over["outcome"], "killed", "{over}");
    assert_eq!(over["plannedEnd"], offered["end"], "{over}");
    assert_eq!(sleepers(&seconds), Vec::<String>::new());
    assert_eq!(complete(&client, next).await["outcome"], "completed");
    server.assert_verified();
}

async fn what_has_begun_cannot_change_its_size_start_or_arguments(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let begun = now();
    let (first, window) = (Offer::sleep(3_000, 600), (begun, begun + 3_000));
    let first = first.within(window.0, window.1);
    let id = client.post("/agreements", first.xml()).await.created();
    let shown = running(&client, id).await;
    let from = shown["plannedStart"].as_str().expect("an instant");
    let from: jiff::Timestamp = from.parse().expect("an instant");
    for (change, pointer) in [
        (json!({"nodes": 2}), "/nodes"),
        (
            json!({"window": {"start": date_time(begun + 100)}}),
            "/window/start",
        ),
        (
            json!({"application": "sleep", "arguments": ["4"]}),
            "/arguments/0",
        ),
        (
            json!({"application": "sha256sum", "arguments": ["x"]}),
            "/application",
        ),
        (json!({"durationSeconds": 1}), "/durationSeconds"),
    ] {
        let mut asked = change.clone();
        asked["agreement"] = json!(id);
        // The slot has to have begun longer ago than that.
        eventually("a refusal", SOON, async || {
            (now() > from.as_second() + 2).then_some(())
        })
        .await;
        let refused = client.post_json("/negotiations", &asked).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{change}: {refused:?}"
        );
        let paths: Vec<_> = refused.json()["violations"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|of| of["path"].clone())
            .collect();
        assert!(paths.contains(&pointer.into()), "{change}: {refused:?}");
    }
    // In XML each offer comes back Rejected with the paths.
    let input = file("tests/messages/m18-initiate-renegotiation-input.xml");
    let talks = client
        .post("/negotiations", input.replace("/a-1", &format!("/{id}")))
        .await
        .created();
    let larger = Said::solicited("c", first.clone().on(2));
    let refused = negotiate(&client, talks, &[larger]).await;
    assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    assert!(refused[0].xml.contains("TotalResourceCount"), "{refused:?}");
    let longer = Said::solicited(
        "d",
        Offer {
            duration: 700,
            ..first
        },
    );
    let offered = negotiate(&client, talks, &[longer]).await;
    assert_eq!(offered[0].state, "Acceptable", "{offered:?}");
    // Once its end has begun none of it is for sale, and the nodes of its offers are given back.
    client
        .post_json(&format!("/agreements/{id}/terminate"), &json!({}))
        .await;
    let late = client
        .post_json("/negotiations", &json!({"agreement": id, "durationSeconds": 900}))
        .await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{late:?}");
    complete_or_terminated(&client, id).await;
    server.assert_verified();
}

async fn complete_or_terminated(client: &Client, id: Uuid) {
    eventually("its end", SOON, async || {
        let state = show(client, id).await["state"].clone();
        (state == "Complete" || state == "Terminated").then_some(())
    })
    .await;
}

async fn the_nodes_after_a_slot_are_had_where_others_can_make_room(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let begun = now();
    let own = Offer::reserve(4, 600).within(begun, begun + 10_000);
    let id = client.post("/agreements", own.xml()).await.created();
    eventually("its slot", SOON, async || {
        (client
            .get(&format!("/agreements/{id}"))
            .await
            .body
            .contains("wsag:Idle>"))
        .then_some(())
    })
    .await;
    let start = begun + 700;
    let flexible = Offer::reserve(4, 500).within(start, begun + 4_000);
    let flexible = client.post("/agreements", flexible.xml()).await.created();
    let rigid = Offer::reserve(1, 100).within(begun + 3_000, begun + 3_100);
    client.post("/agreements", rigid.xml()).await.created();
    // Where there is not room for all of it, as much as there is room for as the plan stands.
    let asked = json!({"agreement": id, "durationSeconds": 8_000});
    let quoted = client.post_json("/negotiations", &asked).await.json();
    let over = quoted["offers"][0].clone();
    let next = show(&client, flexible).await["plannedStart"].clone();
    assert_eq!(
        (&over["kind"], &over["end"]),
        (&"shorter".into(), &next),
        "{quoted}"
    );
    let talks = format!(
        "/negotiations/{}/terminate",
        quoted["id"].as_str().unwrap_or_default()
    );
    assert!(
        client.post(&talks, "").await.status.is_success(),
        "a client that only asked gives it back"
    );
    // The flexible one makes room.
    let offered = quote(&client, &json!({"agreement": id, "durationSeconds": 1_200})).await;
    assert_eq!(offered["kind"], "exact", "{offered}");
    server.assert_verified();
    let moved = show(&client, flexible).await["plannedStart"].clone();
    assert!(moved.as_str() >= offered["end"].as_str(), "{moved} {offered}");
    let id = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await
        .created();
    server.assert_verified();
    assert_eq!(show(&client, id).await["plannedEnd"], offered["end"]);
    let lost = client
        .post_json("/agreements", &json!({"offer": over["id"]}))
        .await;
    assert!(lost.status.is_client_error(), "{lost:?}");
    server.assert_verified();
}

/// The lines of an agreement's timeline of one kind.
async fn lines(client: &Client, id: Uuid, kind: &str) -> Vec<String> {
    let events = client.get_json(&format!("/agreements/{id}/events")).await;
    let all = events["events"].as_array().cloned().unwrap_or_default();
    let of_kind = all.iter().filter(|event| event["kind"] == kind);
    of_kind
        .map(|event| event["detail"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn a_job_that_is_not_over_goes_on_where_its_template_and_its_nodes_allow(url: String) {
    let configuration = format!("[scheduling]\noverrun_percent = 100\n{PRICED}");
    let mut server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    let begun = now();
    // It needs one and a half times its slot. Others make room where they can.
    let job = Offer::sleep(18, 12).on(4).within(begun, begun + 100);
    let id = client.post("/agreements", job.xml()).await.created();
    running(&client, id).await;
    let flexible = Offer::sleep(0, 5).within(begun, begun + 300);
    let flexible = client.post("/agreements", flexible.xml()).await.created();
    eventually("a longer slot", SOON, async || {
        (!lines(&client, id, "overrun").await.is_empty()).then_some(())
    })
    .await;
    server.assert_verified();
    server.kill9();
    server.restart();
    let client = server.client();
    let over = complete(&client, id).await;
    assert_eq!(
        (&over["outcome"], &over["durationSeconds"]),
        (&"completed".into(), &12.into()),
        "{over}"
    );
    let told = lines(&client, id, "overrun").await;
    assert!(told[0].contains("seconds longer"), "{told:?}");
    let paid = client.get_json("/accounts").await;
    let entries = paid["entries"].as_array().cloned().unwrap_or_default();
    let overrun = entries.iter().find(|entry| entry["kind"] == "overrun");
    assert!(overrun.is_some(), "it pays for its use: {paid}");
    assert_eq!(complete(&client, flexible).await["outcome"], "completed");
    server.assert_verified();
}

async fn a_job_that_is_not_over_ends_with_its_slot_where_others_have_its_nodes(url: String) {
    let configuration = format!("[scheduling]\noverrun_percent = 100\n{PRICED}");
    let server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    let begun = now();
    let job = Offer::sleep(3_000, 12).on(4).within(begun, begun + 100);
    let id = client.post("/agreements", job.xml()).await.created();
    let planned = show(&client, id).await["plannedEnd"].clone();
    let end: jiff::Timestamp = planned.as_str().expect("an instant").parse().expect("an instant");
    let end = end.as_second();
    let rigid = Offer::sleep(1, 10).within(end, end + 10);
    let rigid = client.post("/agreements", rigid.xml()).await.created();
    let over = complete(&client, id).await;
    assert_eq!(
        (&over["outcome"], &over["plannedEnd"]),
        (&"killed".into(), &planned),
        "{over}"
    );
    let told = lines(&client, id, "overrun").await;
    assert!(
        told.len() == 1 && told[0].contains("promised to others"),
        "{told:?}"
    );
    assert_eq!(complete(&client, rigid).await["outcome"], "completed");
    server.assert_verified();
}

async fn a_later_end_is_accepted_now_and_decided_later(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let begun = now();
    let offer = Offer::sleep(21, 18).within(begun, begun + 80);
    let old = client.post("/agreements", offer.xml()).await.created();
    let before = running(&client, old).await;
    let job = server.data_dir().join("jobs").join(old.to_string());
    let claim = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    let change = json!({"agreement": old, "durationSeconds": 60, "window": {"end": date_time(begun + 90)}});
    let offered = quote(&client, &change).await;
    let wish = json!({"offer": offered["id"], "pending": true});
    let answer = client.post_json("/agreements", &wish).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let new = answer.json()["id"].as_str().and_then(|id| id.parse().ok());
    let new: Uuid = new.expect("an id");
    // Killed with the decision still to come, or just made.
    server.kill9();
    server.assert_verified();
    server.restart();
    let client = server.client();
    let over = complete(&client, new).await;
    assert_eq!(
        (&over["outcome"], &over["started"], &over["durationSeconds"]),
        (&"completed".into(), &before["started"], &60.into()),
        "{over}"
    );
    let replaced = show(&client, old).await;
    assert_eq!(replaced["supersededBy"], json!(new), "{replaced}");
    let after = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    assert_eq!(after, claim, "the job ran once");
    server.assert_verified();
}
