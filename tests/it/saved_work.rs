//! Work that is not over at the end of its slot, on nodes that are promised to others then: real processes save it, and the rest
//! goes on in another place.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::pieces::{counting, show, start_with, steps, until};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};

/// No work here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);
/// Seconds of the contract.
const AGREED: i64 = 30;
/// Seconds in which its work saves itself. It gets the signal within five seconds before these: a slot of this length leaves room
/// for no more.
const GRACE: i64 = 10;
/// Steps of a tenth of a second at least: more than anything here has time for.
const STEPS: usize = 1_000;
/// How often a run is repeated until the machine does not stand still in it.
const TIMES: usize = 5;
/// Twice as long as was agreed, at a thousandth for a second.
const TWICE: &str =
    "[scheduling]\noverrun_percent = 100\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"3.60\"\n";

on_both_engines!(
    work_that_was_told_to_save_itself_does_so_without_the_service_and_goes_on_after_kills;
    a_release_on_postgres:
    the_rest_of_work_that_is_not_over_goes_on_in_another_place_and_every_step_is_done_once,
    work_that_does_not_save_itself_in_time_ends_with_its_slot,
);

async fn the_rest_of_work_that_is_not_over_goes_on_in_another_place_and_every_step_is_done_once(url: String) {
    tell(&url, the_rest_goes_on).await;
}

async fn work_that_was_told_to_save_itself_does_so_without_the_service_and_goes_on_after_kills(url: String) {
    tell(&url, it_is_saved_without_the_service).await;
}

async fn work_that_does_not_save_itself_in_time_ends_with_its_slot(url: String) {
    tell(&url, what_is_not_saved_ends).await;
}

/// The service came too late for something that it must do within seconds.
struct StoodStill;

/// Tells a story, and on a store of its own again where the machine stood still in it.
async fn tell(url: &str, story: impl AsyncFn(&str) -> Result<(), StoodStill>) {
    let mut told = story(url).await;
    for _ in 1..TIMES {
        if told.is_ok() {
            return;
        }
        let database = if url.starts_with("postgres") {
            TestDatabase::postgres()
        } else {
            TestDatabase::sqlite()
        };
        told = story(database.url()).await;
    }
    assert!(told.is_ok(), "the machine stood still {TIMES} times");
}

async fn the_rest_goes_on(url: &str) -> Result<(), StoodStill> {
    let (server, programs) = start_with(Some(url), 1, GRACE, TWICE);
    let client = server.client();
    let (id, end) = crowded(&client, "count").await?;
    let told = overrun(&client, id, end).await?;
    let said = "it saves itself in the last 10 seconds of its slot, and the rest goes on 4 seconds after that as piece 2, for 30 \
                seconds, for at most 0.03 EUR more";
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
    let saved = steps(&programs).len();
    assert!((1..STEPS).contains(&saved), "{saved} steps in its slot");
    server.assert_verified();
    let second = instant(&planned["pieces"][1]["plannedStart"]);
    // The first was shorter by no more than that, so that it has more than its contract.
    eventually(
        "the rest to go on for longer than the first saved itself",
        SOON,
        async || (now() > second + GRACE && steps(&programs).len() > saved).then_some(()),
    )
    .await;
    enough(&programs);
    let over = until(&client, id, "Completed").await;
    assert_complete(&over);
    assert_every_step_once(&programs);
    let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
    let second = format!("piece 2 of 2 from {saved}\n");
    assert!(output.body.ends_with(&second), "{output:?}");
    let paid = client.get_json("/accounts").await;
    let entries = paid["entries"].as_array().cloned().unwrap_or_default();
    let overrun = entries.iter().find(|entry| entry["kind"] == "overrun");
    assert!(overrun.is_some(), "it pays for its use: {paid}");
    server.assert_verified();
    Ok(())
}

async fn it_is_saved_without_the_service(url: &str) -> Result<(), StoodStill> {
    let (mut server, programs) = start_with(Some(url), 1, GRACE, TWICE);
    let (id, end) = crowded(&server.client(), "count").await?;
    overrun(&server.client(), id, end).await?;
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
    let done = steps(&programs).len();
    server.restart();
    eventually("a step more", SOON, async || {
        (steps(&programs).len() > done).then_some(())
    })
    .await;
    enough(&programs);
    let over = until(&server.client(), id, "Completed").await;
    assert_complete(&over);
    assert_every_step_once(&programs);
    server.assert_verified();
    Ok(())
}

async fn what_is_not_saved_ends(url: &str) -> Result<(), StoodStill> {
    let (server, _programs) = start_with(Some(url), 1, GRACE, TWICE);
    let client = server.client();
    let (id, end) = crowded(&client, "deaf").await?;
    let told = overrun(&client, id, end).await?;
    assert!(
        told.contains("the rest goes on 4 seconds after that as piece 2"),
        "{told}"
    );
    let over = until(&client, id, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"killed".into()),
        "{over}"
    );
    assert!(over["pieces"][1].get("started").is_none(), "{over}");
    server.assert_verified();
    Ok(())
}

/// Has work that takes longer than was agreed begin, with its node promised to another agreement afterwards; when its slot ends.
async fn crowded(client: &Client, application: &'static str) -> Result<(Uuid, i64), StoodStill> {
    let start = now();
    let work = Offer {
        run: Some((application, vec![STEPS.to_string()])),
        ..counting(application, AGREED)
    };
    let id = client
        .post("/agreements", work.within(start, start + 200).xml())
        .await
        .created();
    let end = instant(&show(client, id).await["plannedEnd"]);
    let taken = Offer::reserve(1, 4).within(end, end + 4).xml();
    let taken = client.post("/agreements", taken).await;
    if taken.status == StatusCode::CONFLICT {
        events(client, id).await?;
    }
    taken.created();
    Ok((id, end))
}

/// The timeline of an agreement with a job that was started in its first slot, and soon.
async fn events(client: &Client, id: Uuid) -> Result<Vec<Value>, StoodStill> {
    let events = client.get_json(&format!("/agreements/{id}/events")).await;
    let events = events["events"].as_array().cloned().unwrap_or_default();
    let is_late = |event: &Value| {
        let detail = event["detail"].as_str().unwrap_or_default();
        [
            "too little of its slot was left",
            "it was never started in its slot",
        ]
        .iter()
        .any(|why| detail.starts_with(why))
    };
    if events.iter().any(is_late) {
        Err(StoodStill)
    } else {
        Ok(events)
    }
}

/// The timeline's statement that the work of an agreement is not over, where that was seen before the signal.
async fn overrun(client: &Client, id: Uuid, end: i64) -> Result<String, StoodStill> {
    let seen = eventually("it to be seen that its work is not over", SOON, async || {
        let overrun = |events: Vec<Value>| events.into_iter().find(|event| event["kind"] == "overrun");
        events(client, id).await.map(overrun).transpose()
    })
    .await?;
    if instant(&seen["at"]) >= end - GRACE {
        return Err(StoodStill);
    }
    Ok(seen["detail"].as_str().expect("it is a text").to_owned())
}

/// Has the work that counts end with its next step.
fn enough(programs: &TempDir) {
    fs::write(programs.path().join("enough"), "").expect("a file can be written");
}

fn instant(at: &Value) -> i64 {
    let at: jiff::Timestamp = at.as_str().expect("an instant").parse().expect("an instant");
    at.as_second()
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
    let done = steps(programs);
    let expected: Vec<String> = (1..=done.len()).map(|step| step.to_string()).collect();
    assert_eq!(done, expected);
}
