//! An agreement from its offer to its end, with a real process.

use std::fs;
use std::time::Duration;

use reqwest::StatusCode;
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// No job here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_secs(40);

/// Any one foreign element: what a `TerminateInput` must hold.
const TERMINATE: &str = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                         <r:Reason xmlns:r=\"urn:example:reason\">no longer needed</r:Reason></wsag:TerminateInput>";

on_both_engines!(
    a_job_goes_through_its_states_and_fulfils_its_guarantee,
    a_job_that_overruns_its_slot_is_stopped_and_violates_its_guarantee,
    terminate_works_in_every_state_that_allows_it,
    an_early_end_frees_the_rest_of_the_slot,
);

async fn a_job_goes_through_its_states_and_fulfils_its_guarantee(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = now() + 2;
    let id = client
        .post("/agreements", Offer::sleep(1, 20).within(start, start + 60).xml())
        .await
        .created();
    assert_eq!(
        states(&show(&client, id).await),
        ["Observed", "NotDetermined", "NotReady"]
    );
    let running = until(&client, id, "Ready").await;
    assert_eq!(states(&running), ["Observed", "NotDetermined", "Ready"]);
    assert!(
        !running.texts("Processing").is_empty() || running.body.contains("Processing>"),
        "{running:?}"
    );
    let over = until(&client, id, "Complete").await;
    assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"]);
    server.assert_verified();
}

async fn a_job_that_overruns_its_slot_is_stopped_and_violates_its_guarantee(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let seconds = unlike_any_other(&server);
    let id = client
        .post("/agreements", Offer::sleep(seconds, 2).xml())
        .await
        .created();
    let over = until(&client, id, "Complete").await;
    assert_eq!(states(&over), ["Complete", "Violated", "Completed"]);
    assert_eq!(
        sleepers(seconds),
        Vec::<String>::new(),
        "the process is still there"
    );
    server.assert_verified();
}

async fn terminate_works_in_every_state_that_allows_it(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    // Waiting for its slot.
    let later = hours_ahead(5);
    let waiting = Offer::sleep(1, 30).on(4).within(later, later + 30).xml();
    let id = client.post("/agreements", waiting.clone()).await.created();
    terminate(&client, id, StatusCode::OK).await;
    assert_eq!(states(&until(&client, id, "Terminated").await)[0], "Terminated");
    let again = client.post("/agreements", waiting).await.created();
    assert_ne!(again, id, "the slot is free again");
    // Running.
    let seconds = unlike_any_other(&server);
    let id = client
        .post("/agreements", Offer::sleep(seconds, 7_200).xml())
        .await
        .created();
    until(&client, id, "Ready").await;
    terminate(&client, id, StatusCode::OK).await;
    let over = until(&client, id, "Terminated").await;
    assert_eq!(states(&over)[2], "Completed");
    assert_eq!(
        sleepers(seconds),
        Vec::<String>::new(),
        "the process is still there"
    );
    // Over: nothing is left to terminate.
    terminate(&client, id, StatusCode::CONFLICT).await;
    let id = client
        .post("/agreements", Offer::sleep(0, 10).xml())
        .await
        .created();
    until(&client, id, "Complete").await;
    terminate(&client, id, StatusCode::CONFLICT).await;
    server.assert_verified();
}

async fn an_early_end_frees_the_rest_of_the_slot(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let begun = now();
    let id = client
        .post("/agreements", Offer::sleep(0, 3_600).on(4).xml())
        .await
        .created();
    until(&client, id, "Complete").await;
    let next = Offer::reserve(4, 60).within(begun, begun + 1_800).xml();
    client.post("/agreements", next).await.created();
    server.assert_verified();
}

async fn show(client: &Client, id: Uuid) -> Answer {
    let shown = client.get(&format!("/agreements/{id}")).await;
    assert_eq!(shown.status, StatusCode::OK, "{shown:?}");
    shown
}

async fn terminate(client: &Client, id: Uuid, status: StatusCode) {
    let answer = client
        .post(&format!("/agreements/{id}/terminate"), TERMINATE)
        .await;
    assert_eq!(answer.status, status, "{answer:?}");
}

/// The agreement once one of its states is `state`.
async fn until(client: &Client, id: Uuid, state: &str) -> Answer {
    eventually(&format!("{state} of {id}"), SOON, async || {
        let shown = show(client, id).await;
        shown.texts("State").contains(&state).then_some(shown)
    })
    .await
}

/// The states of the agreement, its guarantee and its first service term.
fn states(shown: &Answer) -> Vec<&str> {
    shown.texts("State").into_iter().take(3).collect()
}

/// A long time to sleep, by which the processes of this service can be told from those of other tests.
fn unlike_any_other(server: &Server) -> u32 {
    100_000 + u32::from(server.address().port())
}

/// Command lines of running processes that sleep so long.
fn sleepers(seconds: u32) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok())
        .map(|line| line.replace('\0', " "))
        .filter(|line| line.contains("sleep") && line.trim_end().ends_with(&format!(" {seconds}")))
        .collect()
}
