//! Acknowledged agreements are there after SIGKILL, and nothing runs twice.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};
use crate::support::{eventually, size};

const OFFERS: usize = 44;
const CLIENTS: usize = 8;

/// One offer in this number runs at once; the others are for later.
const RUNS_AT_ONCE: usize = 11;

/// Seconds of a slot that runs at once: far longer than the service is away, so that no slot passes meanwhile.
const JOB_SLOT: i64 = 60;

/// Seconds between the beginnings of two of them: some still wait as the service is killed.
const APART: i64 = 3;

/// Acknowledgements that are waited for before the kill; further rounds have it earlier and later.
const ACKNOWLEDGED_BEFORE_KILL: usize = 20;

/// Kills; `BESPEAK_TEST_KILLS` asks for more.
const KILLS: usize = 1;

on_both_engines!(
    acknowledged_agreements_survive_a_kill_and_every_job_runs_once,
    a_key_has_one_effect_also_over_a_restart,
);

async fn acknowledged_agreements_survive_a_kill_and_every_job_runs_once(url: String) {
    survives_a_kill_after(ACKNOWLEDGED_BEFORE_KILL, &url).await;
    for kill in 1..size("BESPEAK_TEST_KILLS", KILLS) {
        // A store of its own, as each round fills its ten minutes.
        let database = if url.starts_with("postgres") {
            TestDatabase::postgres()
        } else {
            TestDatabase::sqlite()
        };
        survives_a_kill_after((ACKNOWLEDGED_BEFORE_KILL + 7 * kill) % OFFERS, database.url()).await;
    }
}

async fn survives_a_kill_after(acknowledgements: usize, url: &str) {
    let traces = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::configured(Some(url), &configuration(traces.path()));
    let begun = now();
    let mut agreed = kill_in_the_middle(&mut server, acknowledgements, begun).await;
    server.assert_verified();
    server.restart();
    server.assert_verified();

    let client = server.client();
    for (index, id) in &agreed {
        let shown = client.get(&format!("/agreements/{id}")).await;
        assert_eq!(
            shown.status,
            StatusCode::OK,
            "job-{index} was acknowledged as {id}"
        );
        assert_eq!(shown.text("Name"), format!("job-{index}"));
    }
    // The same key gives the same agreement: a client may ask again, with or without an answer before.
    for index in 0..OFFERS {
        let id = post(&client, index, offer(index, begun))
            .await
            .expect("the service answers");
        let before = agreed.insert(index, id);
        assert!(
            before.is_none_or(|before| before == id),
            "job-{index} was {before:?} and is {id}"
        );
    }
    let one_too_many = client.post("/agreements", later(begun).xml()).await;
    assert_eq!(one_too_many.status, StatusCode::CONFLICT, "{one_too_many:?}");
    for (index, id) in agreed
        .iter()
        .filter(|(index, _)| index.is_multiple_of(RUNS_AT_ONCE))
    {
        eventually(
            &format!("the end of job-{index}"),
            Duration::from_mins(1),
            async || {
                let state = client.get(&format!("/agreements/{id}/state")).await;
                (state.text("State") == "Complete").then_some(())
            },
        )
        .await;
    }
    server.assert_verified();
    let starts = fs::read_to_string(traces.path().join("starts")).expect("jobs have run");
    let mut starts: Vec<String> = starts.lines().map(str::to_owned).collect();
    let mut expected: Vec<String> = (0..OFFERS)
        .step_by(RUNS_AT_ONCE)
        .map(|index| format!("job-{index}"))
        .collect();
    starts.sort_unstable();
    expected.sort_unstable();
    assert_eq!(starts, expected, "each job starts once");
}

async fn a_key_has_one_effect_also_over_a_restart(url: String) {
    const KEYS: usize = 20;
    let mut server = Server::start(&url);
    let begun = now();
    let mut first = Vec::new();
    for key in 0..KEYS {
        first.push(
            post(&server.client(), key, later(begun).xml())
                .await
                .expect("the service answers"),
        );
    }
    for restarted in [false, true] {
        if restarted {
            server.kill9();
            server.restart();
        }
        let client = server.client();
        for (key, id) in first.iter().enumerate() {
            let again = post(&client, key, later(begun).xml())
                .await
                .expect("the service answers");
            assert_eq!(again, *id, "key {key}, restarted: {restarted}");
            let other = send(&client, key, Offer::reserve(2, 60).xml())
                .await
                .expect("the service answers");
            assert_eq!(
                other.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "key {key} with another body: {other:?}"
            );
        }
    }
    let listed = server.client().get_json("/agreements?limit=100").await;
    assert_eq!(
        listed["agreements"].as_array().map(Vec::len),
        Some(KEYS),
        "{listed}"
    );
    server.assert_verified();
}

/// Offer number `index`.
///
/// Four are jobs to run at once, or soon; the other forty fill the ten minutes of four nodes that they ask for: none may be lost,
/// and there is no room for one too many.
fn offer(index: usize, begun: i64) -> String {
    let name = format!("job-{index}");
    if index.is_multiple_of(RUNS_AT_ONCE) {
        let run = Some(("trace", vec![name.clone()]));
        let number = i64::try_from(index / RUNS_AT_ONCE).expect("they are few");
        let start = begun + APART * number;
        Offer {
            name,
            run,
            ..Offer::reserve(1, JOB_SLOT)
        }
        .within(start, begun + 600)
        .xml()
    } else {
        Offer { name, ..later(begun) }.xml()
    }
}

/// A minute of one node somewhere in ten minutes an hour from `begun`.
fn later(begun: i64) -> Offer {
    Offer::reserve(1, 60).within(begun + 3_600, begun + 4_200)
}

/// Posts the offers from many clients and kills the service while some jobs run, some wait, and some offers are not answered or
/// not yet posted. Answers the acknowledged ones.
async fn kill_in_the_middle(
    server: &mut Server,
    acknowledgements: usize,
    begun: i64,
) -> BTreeMap<usize, Uuid> {
    let pending = Arc::new(Mutex::new((0..OFFERS).rev().collect::<Vec<_>>()));
    let (acknowledged, mut received) = mpsc::unbounded_channel();
    for _ in 0..CLIENTS {
        let (client, pending, acknowledged) = (server.client(), Arc::clone(&pending), acknowledged.clone());
        tokio::spawn(async move {
            loop {
                let next = pending.lock().await.pop();
                let Some(index) = next else { return };
                let Some(id) = post(&client, index, offer(index, begun)).await else {
                    return;
                };
                if acknowledged.send((index, id)).is_err() {
                    return;
                }
            }
        });
    }
    drop(acknowledged);
    let mut agreed = BTreeMap::new();
    for _ in 0..acknowledgements {
        agreed.extend(received.recv().await);
    }
    server.kill9();
    // Answers that were sent before the kill, and are read only now, count as well.
    while let Some(more) = received.recv().await {
        agreed.extend([more]);
    }
    agreed
}

/// An application that leaves a line at each start.
fn configuration(traces: &Path) -> String {
    let program = traces.join("trace");
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> '{}'\nexec sleep 0.5\n",
        traces.join("starts").display()
    );
    fs::write(&program, script).expect("a script can be written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\n\
         [[application]]\nname = \"trace\"\nprogram = \"{}\"\ntrusted = true\n\
         [[application.argument]]\nname = \"line\"\ntype = \"text\"\nmax_length = 20\n",
        program.display()
    )
}

/// The agreement that an offer became; `None` when the service is gone.
async fn post(client: &Client, key: usize, offer: String) -> Option<Uuid> {
    Some(send(client, key, offer).await?.created())
}

/// The answer to an offer under an idempotency key; `None` when the service is gone.
async fn send(client: &Client, key: usize, offer: String) -> Option<Answer> {
    let request = client
        .request(Method::POST, "/agreements")
        .header("content-type", "application/xml")
        .header("idempotency-key", format!("offer-{key}"))
        .body(offer);
    client.try_send(request).await.ok()
}
