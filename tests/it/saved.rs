//! Work that is not over at the end of its slot, whose nodes are promised to others then: real processes save it, and the rest
//! goes on in another place.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::pieces::{counting, show, start_on, steps, until};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// No work here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);
/// Seconds until it begins: everything is planned by then.
const AHEAD: i64 = 5;
/// Seconds of the contract.
const AGREED: i64 = 14;
/// Steps: half of them before it is told to save itself, and the rest in far less time than it has after that.
const STEPS: usize = 150;
/// Twice as long as was agreed, at a thousandth for a second.
const TWICE: &str =
    "[scheduling]\noverrun_percent = 100\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"3.60\"\n";

on_both_engines!(
    work_that_was_told_to_save_itself_does_so_without_the_service_and_goes_on_after_kills;
    in_real_time:
    the_rest_of_work_that_is_not_over_goes_on_in_another_place_and_every_step_is_done_once,
    work_that_does_not_save_itself_in_time_ends_with_its_slot,
);

async fn the_rest_of_work_that_is_not_over_goes_on_in_another_place_and_every_step_is_done_once(url: String) {
    let (server, programs) = start_on(Some(&url), 1, TWICE);
    let client = server.client();
    let id = crowded(&client, "count").await;
    let told = overrun(&client, id).await;
    let said = "it saves itself in the last 3 seconds of its slot, and the rest goes on as piece 2 4 seconds after that, for 14 \
                seconds, for at most 0.014 EUR more";
    assert!(told.ends_with(said), "{told}");
    let planned = show(&client, id).await;
    let pieces = planned["pieces"].as_array().expect("it has pieces");
    assert_eq!(pieces.len(), 2, "{planned}");
    assert_eq!(pieces[0]["started"], planned["started"], "{planned}");
    assert_eq!(planned["plannedEnd"], pieces[1]["plannedEnd"], "{planned}");
    assert_eq!(planned["durationSeconds"], AGREED, "{planned}");
    server.assert_verified();
    until(&client, id, "Idle").await;
    let between = client.get(&format!("/agreements/{id}")).await;
    between.assert_valid();
    let shown = ["<bsp:Piece>", "<bsp:Placement>"].map(|element| between.body.matches(element).count());
    assert_eq!(shown[0], 2 * shown[1], "in the state of each term: {between:?}");
    assert!(between.body.contains("waiting for its next piece"), "{between:?}");
    server.assert_verified();
    let saved = steps(&programs).len();
    assert!((1..STEPS).contains(&saved), "{saved} steps in its slot");
    let over = until(&client, id, "Completed").await;
    assert_complete(&over);
    assert_every_step_once(&programs);
    let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
    let second = format!("piece 2 of 2 from {saved}\n");
    assert!(output.body.ends_with(&second), "{output:?}");
    let paid = client.get_json("/accounts").await;
    let entries = paid["entries"].as_array().cloned().unwrap_or_default();
    let overrun = entries.iter().find(|entry| entry["kind"] == "overrun");
    assert!(overrun.is_some(), "it pays for what it used: {paid}");
    server.assert_verified();
}

async fn work_that_was_told_to_save_itself_does_so_without_the_service_and_goes_on_after_kills(url: String) {
    let (mut server, programs) = start_on(Some(&url), 1, TWICE);
    let id = crowded(&server.client(), "count").await;
    let first = records(&server, id);
    eventually("its supervisor to be told", SOON, async || {
        first.join("save.json").exists().then_some(())
    })
    .await;
    server.kill9();
    server.assert_verified();
    eventually("its work to be saved", SOON, async || {
        first.join("end.json").exists().then_some(())
    })
    .await;
    server.restart();
    server.assert_verified();
    // It is between its pieces, or in the second already.
    eventually("its first piece to be over", SOON, async || {
        let shown = show(&server.client(), id).await;
        shown["pieces"][0]["ended"].is_string().then_some(())
    })
    .await;
    server.kill9();
    server.assert_verified();
    server.restart();
    eventually("its second piece", SOON, async || {
        first.join("piece-2").join("claim.json").exists().then_some(())
    })
    .await;
    server.kill9();
    server.restart();
    let over = until(&server.client(), id, "Completed").await;
    assert_complete(&over);
    assert_every_step_once(&programs);
    server.assert_verified();
}

async fn work_that_does_not_save_itself_in_time_ends_with_its_slot(url: String) {
    let (server, _programs) = start_on(Some(&url), 1, TWICE);
    let client = server.client();
    let id = crowded(&client, "deaf").await;
    let told = overrun(&client, id).await;
    assert!(told.contains("the rest goes on as piece 2"), "{told}");
    let over = until(&client, id, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"killed".into()),
        "{over}"
    );
    assert!(over["pieces"][1].get("started").is_none(), "{over}");
    server.assert_verified();
}

/// Has work that takes longer than was agreed begin, with its node promised to somebody else afterwards.
async fn crowded(client: &Client, application: &'static str) -> Uuid {
    let start = now() + AHEAD;
    let work = Offer {
        run: Some((application, vec![STEPS.to_string()])),
        ..counting(application, AGREED)
    };
    let id = client
        .post("/agreements", work.within(start, start + 200).xml())
        .await
        .created();
    let planned = show(client, id).await["plannedEnd"].clone();
    let end: jiff::Timestamp = planned.as_str().expect("an instant").parse().expect("an instant");
    let end = end.as_second();
    let taken = Offer::reserve(1, 4).within(end, end + 4).xml();
    client.post("/agreements", taken).await.created();
    id
}

/// What the timeline of an agreement says of its work not being over.
async fn overrun(client: &Client, id: Uuid) -> String {
    eventually("it to be seen that its work is not over", SOON, async || {
        let events = client.get_json(&format!("/agreements/{id}/events")).await;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        let overrun = events.iter().find(|event| event["kind"] == "overrun")?;
        overrun["detail"].as_str().map(str::to_owned)
    })
    .await
}

/// Where the records of its job are.
fn records(server: &Server, id: Uuid) -> PathBuf {
    server.data_dir().join("jobs").join(id.to_string())
}

fn assert_complete(over: &Value) {
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"completed".into()),
        "{over}"
    );
    assert_eq!(over["guarantees"][0]["state"], "Fulfilled", "{over}");
}

fn assert_every_step_once(programs: &TempDir) {
    let expected: Vec<String> = (1..=STEPS).map(|step| step.to_string()).collect();
    assert_eq!(steps(programs), expected);
}
