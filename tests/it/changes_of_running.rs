//! An agreement is changed while its work runs: the end of its slot moves, and its job goes on.

use std::fs;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, negotiate};
use crate::support::offers::{Offer, date_time, file, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, in_seconds};

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

/// The first offer in place of an agreement and the agreement that is made of it; nothing where the time for that is over.
pub(crate) async fn changed(client: &Client, change: &Value) -> Option<(Value, Uuid)> {
    let quoted = client.post_json("/negotiations", change).await;
    let offered = quoted.json()["offers"][0].clone();
    let accepted = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await;
    (accepted.status == StatusCode::CREATED).then(|| (offered, accepted.created()))
}

fn instant(at: &Value) -> jiff::Timestamp {
    at.as_str().expect("an instant").parse().expect("an instant")
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

/// Has a job begin that sleeps for longer than its slot; its agreement once it runs.
async fn begin_longer_job(client: &Client, slot: i64) -> (Uuid, Value) {
    let begun = now();
    let sleeps = u32::try_from(slot + 3).expect("a small number");
    let offer = Offer::sleep(sleeps, slot).within(begun, begun + 4 * slot);
    let old = client.post("/agreements", offer.xml()).await.created();
    (old, running(client, old).await)
}

/// A change of it for as long as it needs.
fn longer(old: Uuid, slot: i64) -> Value {
    let end = date_time(now() + 5 * slot + 90);
    json!({"agreement": old, "durationSeconds": slot + 42, "window": {"end": end}})
}

async fn a_later_end_keeps_the_job_that_runs_over_a_kill(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let (slot, old, before, (offered, new)) = in_seconds(18, async |slot| {
        let (old, before) = begin_longer_job(&client, slot).await;
        let made = changed(&client, &longer(old, slot)).await?;
        Some((slot, old, before, made))
    })
    .await;
    let job = server.data_dir().join("jobs").join(old.to_string());
    let claim = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    assert_eq!(
        (&offered["kind"], &offered["durationSeconds"]),
        (&"exact".into(), &(slot + 42).into()),
        "{offered}"
    );
    assert_eq!(offered["start"], before["plannedStart"], "{offered}");
    // 42 seconds of a node more, and the fee of 2 % of its price.
    assert_eq!(offered["priceDifference"]["amount"], "0.042", "{offered}");
    let fee = format!("0.{:05}", 2 * slot);
    assert_eq!(offered["fee"]["amount"], fee, "{offered}");
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
    let (offered, new) = in_seconds(10, async |seconds| {
        let length = now() - begun + seconds;
        changed(&client, &json!({"agreement": old, "durationSeconds": length})).await
    })
    .await;
    server.assert_verified();
    // Another agreement has the nodes from then on.
    let next = Offer::sleep(1, 20).on(4).within(begun, begun + 600);
    let next = client.post("/agreements", next.xml()).await.created();
    let over = complete(&client, new).await;
    assert_eq!(over["outcome"], "killed", "{over}");
    assert_eq!(over["plannedEnd"], offered["end"], "{over}");
    assert!(
        instant(&over["ended"]) >= instant(&over["plannedEnd"]),
        "it goes on until then: {over}"
    );
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
            .map(|each| each["path"].clone())
            .collect();
        assert!(paths.contains(&pointer.into()), "{change}: {refused:?}");
    }
    // In XML each offer comes back Rejected with the paths.
    let input = file("tests/messages/m18-initiate-renegotiation-input.xml");
    let talks = client
        .post("/negotiations", input.replace("/a-1", &format!("/{id}")))
        .await
        .created();
    let larger = SentOffer::solicited("c", first.clone().on(2));
    let refused = negotiate(&client, talks, &[larger]).await;
    assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    assert!(refused[0].xml.contains("TotalResourceCount"), "{refused:?}");
    let longer = SentOffer::solicited(
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
    let (slot, id, flexible, over) = in_seconds(12, async |slot| {
        let client = server.client();
        let begun = now();
        // It needs one and a half times its slot. Others make room where they can.
        let sleeps = u32::try_from(slot + slot / 2).expect("a small number");
        let job = Offer::sleep(sleeps, slot).on(4).within(begun, begun + 8 * slot);
        let id = client.post("/agreements", job.xml()).await.created();
        running(&client, id).await;
        let flexible = Offer::sleep(0, 60).within(begun, begun + 1_800);
        let flexible = client.post("/agreements", flexible.xml()).await.created();
        eventually("a longer slot or its end", SOON, async || {
            let is_over = show(&client, id).await["state"] == "Complete";
            (is_over || !lines(&client, id, "overrun").await.is_empty()).then_some(())
        })
        .await;
        server.assert_verified();
        server.kill9();
        server.restart();
        let over = complete(&server.client(), id).await;
        // Where it stood still, its process ended after twice its slot.
        (over["outcome"] != "killed").then_some((slot, id, flexible, over))
    })
    .await;
    let client = server.client();
    assert_eq!(
        (&over["outcome"], &over["durationSeconds"]),
        (&"completed".into(), &slot.into()),
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
    let (id, planned, rigid) = in_seconds(12, async |slot| {
        let begun = now();
        let job = Offer::sleep(3_000, slot).on(4).within(begun, begun + 2 * slot);
        let id = client.post("/agreements", job.xml()).await.created();
        let planned = show(&client, id).await["plannedEnd"].clone();
        let end = instant(&planned).as_second();
        // Its job has most of its time, and a second would do.
        let rigid = Offer::sleep(1, 8 * slot).within(end, end + 8 * slot);
        let rigid = client.post("/agreements", rigid.xml()).await;
        (rigid.status == StatusCode::CREATED).then(|| (id, planned, rigid.created()))
    })
    .await;
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
    let (slot, old, before, new) = in_seconds(18, async |slot| {
        let client = server.client();
        let (old, before) = begin_longer_job(&client, slot).await;
        let quoted = client.post_json("/negotiations", &longer(old, slot)).await;
        let wish = json!({"offer": quoted.json()["offers"][0]["id"], "pending": true});
        let answer = client.post_json("/agreements", &wish).await;
        if answer.status != StatusCode::ACCEPTED {
            return None;
        }
        let new = answer.json()["id"].as_str().and_then(|id| id.parse().ok());
        let new: Uuid = new.expect("an id");
        // Killed with the decision still to come, or just made.
        server.kill9();
        server.assert_verified();
        server.restart();
        let client = server.client();
        let decided = eventually("a decision", SOON, async || {
            let shown = show(&client, new).await;
            (shown["state"] != "Pending").then_some(shown)
        })
        .await;
        (decided["state"] != "Rejected").then_some((slot, old, before, new))
    })
    .await;
    let client = server.client();
    let job = server.data_dir().join("jobs").join(old.to_string());
    let claim = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    let over = complete(&client, new).await;
    assert_eq!(
        (&over["outcome"], &over["started"], &over["durationSeconds"]),
        (&"completed".into(), &before["started"], &(slot + 42).into()),
        "{over}"
    );
    let replaced = show(&client, old).await;
    assert_eq!(replaced["supersededBy"], json!(new), "{replaced}");
    let after = fs::read_to_string(job.join("claim.json")).expect("its process is recorded");
    assert_eq!(after, claim, "the job ran once");
    server.assert_verified();
}
