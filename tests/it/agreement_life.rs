//! An agreement from its offer to its end, with a real process.

use std::fs;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::pieces::program;
use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, date_time, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, in_seconds};

/// No job here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);

/// The length of a dateTime to its seconds: fractions and zone come after.
const SECONDS: usize = 19;

/// Any one foreign element: a `TerminateInput` must hold one.
const TERMINATE: &str = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                         <r:Reason xmlns:r=\"urn:example:reason\">no longer needed</r:Reason></wsag:TerminateInput>";

on_both_engines!(
    a_job_goes_through_its_states_and_fulfils_its_guarantee;
    a_release_on_postgres:
    terminate_works_in_every_state_that_allows_it,
    a_job_has_a_control_group_where_the_service_says_so_and_only_there,
    a_job_that_overruns_its_slot_is_stopped_and_violates_its_guarantee,
    an_early_end_frees_the_rest_of_the_slot,
    a_job_that_fails_by_itself_shows_its_exit_status_and_got_what_it_was_promised,
    a_reservation_runs_nothing_and_ends_with_its_slot,
);

/// Which limits were exercised here is said by the service's log: control groups, or looks and the limits of single processes.
async fn a_job_has_a_control_group_where_the_service_says_so_and_only_there(url: String) {
    let server = Server::configured(
        Some(&url),
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 1\n\
         [[application]]\nname = \"show\"\nprogram = \"/bin/cat\"\ntrusted = true\n\
         [[application.argument]]\nname = \"file\"\ntype = \"choice\"\nvalues = [\"/proc/self/cgroup\"]\n",
    );
    let client = server.client();
    let wanted = json!({
        "application": "show", "arguments": ["/proc/self/cgroup"], "nodes": 1, "durationSeconds": 600,
    });
    let id = client.post_json("/agreements", &wanted).await.created();
    until(&client, id, "Complete").await;
    let groups = client.get(&format!("/agreements/{id}/files/stdout")).await.body;
    let (with, without) = ("limited by control groups", "limited without control groups");
    let log = server.log();
    assert_ne!(log.contains(with), log.contains(without), "{log}");
    assert_eq!(
        groups.contains(&format!("/job-{id}")),
        log.contains(with),
        "{groups}"
    );
}

async fn a_job_goes_through_its_states_and_fulfils_its_guarantee(url: String) {
    let programs = tempfile::tempdir().expect("a temporary folder");
    let go = programs.path().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", go.display());
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
         [[application]]\nname = \"wait\"\nprogram = \"{}\"\ntrusted = true\n",
        program(programs.path(), "wait", &script)
    );
    let server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    let later = hours_ahead(5);
    let waiting = Offer::reserve(1, 60).within(later, later + 60).xml();
    let waiting = client.post("/agreements", waiting).await.created();
    assert_eq!(
        states(&show(&client, waiting).await),
        ["Observed", "NotDetermined", "NotReady"]
    );
    let start = now();
    let work = Offer {
        run: Some(("wait", Vec::new())),
        ..Offer::reserve(1, 600)
    };
    let work = work.within(start, start + 1_200).xml();
    let id = client.post("/agreements", work).await.created();
    let made = show(&client, id).await;
    let planned = ["PlannedStart", "PlannedEnd"].map(|name| made.text(name));
    assert!(planned[0] >= date_time(start).as_str(), "{planned:?}");
    let running = until(&client, id, "Ready").await;
    assert_eq!(states(&running), ["Observed", "NotDetermined", "Ready"]);
    assert!(running.body.contains("wsag:Processing>"), "{running:?}");
    fs::write(&go, "").expect("a file can be written");
    let over = until(&client, id, "Complete").await;
    assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"]);
    assert_eq!(
        (over.text("Outcome"), over.text("ExitStatus")),
        ("completed", "0")
    );
    assert_eq!(
        ["PlannedStart", "PlannedEnd"].map(|name| over.text(name)),
        planned
    );
    let (started, ended) = (over.text("Started"), over.text("Ended"));
    let ordered = [
        &planned[0][..SECONDS],
        &started[..SECONDS],
        &ended[..SECONDS],
        &date_time(now())[..SECONDS],
    ];
    assert!(ordered.is_sorted(), "{ordered:?}");
    server.assert_verified();
}

async fn a_job_that_overruns_its_slot_is_stopped_and_violates_its_guarantee(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let seconds = unlike_any_other(&server);
    let id = client
        .post("/agreements", Offer::sleep(seconds, 4).xml())
        .await
        .created();
    let over = until(&client, id, "Complete").await;
    assert_eq!(states(&over), ["Complete", "Violated", "Completed"]);
    assert_eq!(over.text("Outcome"), "killed");
    assert_eq!(
        over.texts("ExitStatus"),
        Vec::<&str>::new(),
        "a process that was stopped has none: {over:?}"
    );
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

async fn a_job_that_fails_by_itself_shows_its_exit_status_and_got_what_it_was_promised(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let input = server.data_dir().join("files/input.txt");
    let id = in_seconds(5, async |seconds| {
        fs::write(&input, "gone when the job wants it").expect("an input file");
        let start = now() + seconds;
        let offer = Offer {
            run: Some(("sha256sum", vec!["input.txt".to_owned()])),
            ..Offer::reserve(1, 600)
        };
        let offer = offer.within(start, start + 1_200).xml();
        let id = client.post("/agreements", offer).await.created();
        fs::remove_file(&input).expect("the file is there");
        (now() < start).then_some(id)
    })
    .await;
    let over = until(&client, id, "Complete").await;
    // The provider kept its promise: the job had its slot and ended in it, by its own doing.
    assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"]);
    assert_eq!((over.text("Outcome"), over.text("ExitStatus")), ("failed", "1"));
    let errors = client.get(&format!("/agreements/{id}/files/stderr")).await;
    assert!(
        errors.body.contains("input.txt"),
        "its lines on standard error: {errors:?}"
    );
    server.assert_verified();
}

async fn a_reservation_runs_nothing_and_ends_with_its_slot(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let (id, begun) = in_seconds(5, async |seconds| {
        let offer = Offer::reserve(2, seconds).xml();
        let id = client.post("/agreements", offer).await.created();
        let seen = eventually("its slot", SOON, async || {
            let shown = show(&client, id).await;
            let states = states(&shown);
            (states.contains(&"Ready") || states.contains(&"Complete")).then_some(shown)
        })
        .await;
        states(&seen).contains(&"Ready").then_some((id, seen))
    })
    .await;
    assert!(begun.body.contains("Idle"), "nothing runs in it: {begun:?}");
    let over = until(&client, id, "Complete").await;
    assert_eq!(states(&over), ["Complete", "Fulfilled", "Completed"]);
    let (planned, ended) = (over.text("PlannedEnd"), over.text("Ended"));
    assert!(
        ended[..SECONDS] >= planned[..SECONDS],
        "it ends at {planned}, not at {ended}"
    );
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

/// A long time to sleep, which distinguishes the processes of this service from those of other tests.
pub(crate) fn unlike_any_other(server: &Server) -> u32 {
    100_000 + u32::from(server.address().port())
}

/// Command lines of running processes that sleep so long.
pub(crate) fn sleepers(seconds: u32) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok())
        .map(|line| line.replace('\0', " "))
        .filter(|line| line.contains("sleep") && line.trim_end().ends_with(&format!(" {seconds}")))
        .collect()
}
