//! Work that is done in pieces, from the offer to real processes that save their work and go on.

mod offers;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use reqwest::StatusCode;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// No work here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);
/// Steps of the work that counts: half of them before it gets the signal to save itself, where it has time for them.
const STEPS: usize = 60;
/// Seconds between an offer and its window, where it has to be taken before that.
const AHEAD: i64 = 10;
/// Seconds of the first piece, in which its program has to begin to listen, and of those the last ones in which it saves itself:
/// a busy machine may stand still for most of either.
const FIRST: i64 = 15;
const GRACE: i64 = 7;
/// Seconds by which the first piece may begin late.
const ROOM: i64 = 8;

on_both_engines!(
    a_service_that_is_killed_in_a_piece_and_between_two_goes_on_where_the_work_was;
    a_release_on_postgres:
    work_is_saved_at_the_end_of_a_piece_and_every_step_is_done_once,
    terminated_between_two_pieces_nothing_more_runs_and_its_time_is_free,
    a_program_that_does_not_save_its_work_in_time_is_stopped_and_goes_on_in_no_other_piece,
    a_piece_that_is_lost_is_run_again_from_what_the_one_before_has_saved,
    each_piece_has_its_own_number_of_nodes_where_they_may_differ,
    where_the_folder_is_gone_between_two_pieces_the_work_is_lost_and_not_begun_anew,
    the_end_of_work_in_pieces_is_changed_while_it_goes_on,
);

async fn work_is_saved_at_the_end_of_a_piece_and_every_step_is_done_once(url: String) {
    let (server, programs) = start(&url);
    let client = server.client();
    let id = cut_in_two(&client, "count").await;
    let planned = show(&client, id).await;
    let pieces = planned["pieces"].as_array().expect("it has pieces");
    assert_eq!(pieces.len(), 2, "{planned}");
    assert_eq!(planned["plannedEnd"], pieces[1]["plannedEnd"], "{planned}");
    let document = client.get(&format!("/agreements/{id}")).await;
    document.assert_valid();
    let shown = ["<bsp:Piece>", "<bsp:Placement>"].map(|element| document.body.matches(element).count());
    assert_eq!(shown[0], 2 * shown[1], "in the state of each term: {document:?}");
    until(&client, id, "Idle").await;
    let between = client.get(&format!("/agreements/{id}")).await;
    between.assert_valid();
    assert!(between.body.contains("waiting for its next piece"), "{between:?}");
    let saved = steps(&programs).len();
    assert!((1..STEPS).contains(&saved), "{saved} steps in the first piece");
    let over = until(&client, id, "Completed").await;
    assert_eq!(over["state"], "Complete");
    assert_eq!(over["outcome"], "completed");
    assert_eq!(over["guarantees"][0]["state"], "Fulfilled", "{over}");
    assert_every_step_once(&programs);
    let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
    assert_eq!(
        output.body,
        "piece 1 of 2 from 0\n".to_owned() + &format!("piece 2 of 2 from {saved}\n")
    );
    let events = client.get(&format!("/agreements/{id}/events")).await.body;
    assert!(
        events.contains("piece 1 of 2 is over, its work saved"),
        "{events}"
    );
    let said = server.run(&["show", &id.to_string()]);
    assert!(
        String::from_utf8_lossy(&said.stdout).contains("2 of 2, "),
        "{said:?}"
    );
    server.assert_verified();
}

/// Sixty-four node-seconds of work on one or two nodes; one of them is taken for eighteen seconds.
async fn each_piece_has_its_own_number_of_nodes_where_they_may_differ(url: String) {
    let (server, programs) = start_with(Some(&url), 2, GRACE, "");
    let client = server.client();
    let start = now() + AHEAD;
    let taken = Offer::reserve(1, 18).within(start, start + 18).xml();
    client.post("/agreements", taken).await.created();
    let law = "<bsp:Moldability><bsp:ConstantWork>64</bsp:ConstantWork></bsp:Moldability><bsp:Preemption>";
    let sizes =
        "<jsdl:Range><jsdl:LowerBound>1</jsdl:LowerBound><jsdl:UpperBound>2</jsdl:UpperBound></jsdl:Range>";
    let work = cut(&counting("count", 1).within(start, start + 120), "2", "0.25")
        .replace("<bsp:Preemption>", law)
        .replace("<jsdl:Exact>1</jsdl:Exact>", sizes)
        .replace("<arp:Duration>1</arp:Duration>", "")
        .replace("<bsp:Independent>false", "<bsp:Independent>true");
    let id = client.post("/agreements", work).await.created();
    let planned = show(&client, id).await;
    let seconds = |at: &Value| at.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let pieces: Vec<_> = planned["pieces"]
        .as_array()
        .expect("it has pieces")
        .iter()
        .collect();
    let sized = pieces.iter().map(|piece| {
        let [from, to] =
            ["plannedStart", "plannedEnd"].map(|name| seconds(&piece[name]).expect("an instant"));
        (
            from.as_second() - start,
            to.as_second() - start,
            piece["nodes"].as_u64(),
        )
    });
    assert_eq!(
        sized.collect::<Vec<_>>(),
        [(0, 16, Some(1)), (18, 42, Some(2))],
        "{planned}"
    );
    let document = client.get(&format!("/agreements/{id}")).await;
    document.assert_valid();
    assert!(
        document.body.contains("<bsp:Nodes>1</bsp:Nodes></bsp:Piece>"),
        "{document:?}"
    );
    server.assert_verified();
    let over = until(&client, id, "Completed").await;
    assert_eq!(over["outcome"], "completed", "{over}");
    assert_every_step_once(&programs);
    let given = fs::read_to_string(programs.path().join("nodes")).expect("it is written");
    assert_eq!(given, "1\n2\n", "the values given to the pieces");
    let said = server.run(&["show", &id.to_string()]);
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.contains("1 of 2, 1 node, ") && said.contains("2 of 2, 2 nodes, "),
        "{said}"
    );
    server.assert_verified();
}

async fn a_service_that_is_killed_in_a_piece_and_between_two_goes_on_where_the_work_was(url: String) {
    let (mut server, programs) = start(&url);
    let id = cut_in_two(&server.client(), "count").await;
    eventually("the first steps", SOON, async || {
        (steps(&programs).len() > 2).then_some(())
    })
    .await;
    server.kill9();
    server.restart();
    eventually("its first piece to be over", SOON, async || {
        let events = server
            .client()
            .get(&format!("/agreements/{id}/events"))
            .await
            .body;
        events
            .contains("piece 1 of 2 is over, its work saved")
            .then_some(())
    })
    .await;
    server.kill9();
    server.assert_verified();
    server.restart();
    let over = until(&server.client(), id, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"completed".into()),
        "{over}"
    );
    assert_every_step_once(&programs);
    server.assert_verified();
}

/// Changed in its first piece, between the two, and in its last.
async fn the_end_of_work_in_pieces_is_changed_while_it_goes_on(url: String) {
    let (mut server, programs) = start(&url);
    let client = server.client();
    let first = cut_in_two(&client, "count").await;
    let planned = until(&client, first, "Processing").await;
    let longer = with_duration(&client, first, 2 * FIRST + 6).await;
    let replaced = show(&client, first).await;
    assert_eq!(
        (&replaced["state"], &replaced["supersededBy"]),
        (&"Complete".into(), &json!(longer)),
        "{replaced}"
    );
    let later = show(&client, longer).await;
    assert_eq!(later["durationSeconds"], 2 * FIRST + 6, "{later}");
    assert_eq!(
        times(&later),
        [times(&planned)[0], later_by(times(&planned)[1], 6)],
        "{later}"
    );
    server.assert_verified();
    let too_short = json!({"agreement": longer, "durationSeconds": 5});
    let refused = client.post_json("/negotiations", &too_short).await;
    assert!(!refused.body.contains("\"kind\":\"exact\""), "{refused:?}");

    until(&client, longer, "Idle").await;
    fs::write(programs.path().join("hold"), "").expect("a file can be written");
    let shorter = with_duration(&client, longer, 2 * FIRST + 2).await;
    server.kill9();
    server.assert_verified();
    server.restart();
    let client = server.client();
    let waits = show(&client, shorter).await;
    assert_eq!(
        times(&waits),
        [times(&planned)[0], later_by(times(&planned)[1], 2)],
        "{waits}"
    );
    until(&client, shorter, "Processing").await;
    let last = with_duration(&client, shorter, 2 * FIRST + 4).await;
    let runs = show(&client, last).await;
    assert_eq!(
        times(&runs),
        [times(&planned)[0], later_by(times(&planned)[1], 4)],
        "{runs}"
    );
    fs::remove_file(programs.path().join("hold")).expect("it is there");
    let over = until(&client, last, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"completed".into()),
        "{over}"
    );
    assert_every_step_once(&programs);
    let output = client.get(&format!("/agreements/{last}/files/stdout")).await;
    assert_eq!(output.body.lines().count(), 2, "{output:?}");
    server.assert_verified();
}

/// Changes the duration of an agreement to this number of seconds. Returns the agreement in its place.
async fn with_duration(client: &Client, agreement: Uuid, seconds: i64) -> Uuid {
    let change = json!({"agreement": agreement, "durationSeconds": seconds});
    let quoted = client.post_json("/negotiations", &change).await;
    assert_eq!(quoted.status, StatusCode::CREATED, "{quoted:?}");
    let offered = &quoted.json()["offers"][0];
    assert_eq!(
        (&offered["kind"], &offered["durationSeconds"]),
        (&"exact".into(), &seconds.into()),
        "{quoted:?}"
    );
    let accepted = client
        .post_json("/agreements", &json!({"offer": offered["id"]}))
        .await;
    accepted.created()
}

/// Start and end of each piece, in seconds.
fn times(shown: &Value) -> Vec<(i64, i64)> {
    let pieces = shown["pieces"].as_array().expect("it has pieces").iter();
    let at = |piece: &Value, member: &str| {
        let instant = piece[member]
            .as_str()
            .and_then(|at| at.parse::<jiff::Timestamp>().ok());
        instant.expect("an instant").as_second()
    };
    pieces
        .map(|piece| (at(piece, "plannedStart"), at(piece, "plannedEnd")))
        .collect()
}

fn later_by((start, end): (i64, i64), seconds: i64) -> (i64, i64) {
    (start, end + seconds)
}

async fn terminated_between_two_pieces_nothing_more_runs_and_its_time_is_free(url: String) {
    let (server, programs) = start(&url);
    let client = server.client();
    let id = cut_in_two(&client, "count").await;
    let between = until(&client, id, "Idle").await;
    let saved = steps(&programs).len();
    let terminate = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                     <r:Reason xmlns:r=\"urn:example:reason\">enough</r:Reason></wsag:TerminateInput>";
    let answer = client
        .post(&format!("/agreements/{id}/terminate"), terminate)
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let over = show(&client, id).await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Terminated".into(), &"terminated".into())
    );
    let free = |at: &Value| at.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let piece = &between["pieces"][1];
    let (from, to) = (free(&piece["plannedStart"]), free(&piece["plannedEnd"]));
    let (from, to) = (
        from.expect("a start").as_second(),
        to.expect("an end").as_second(),
    );
    // With room for a late start.
    let another = Offer::sleep(0, to - from).within(from, to + 60).xml();
    let another = client.post("/agreements", another).await.created();
    let planned = show(&client, another).await;
    assert_eq!(
        (&planned["plannedStart"], &planned["plannedEnd"]),
        (&piece["plannedStart"], &piece["plannedEnd"])
    );
    until(&client, another, "Completed").await;
    assert_eq!(steps(&programs).len(), saved, "nothing more was done");
    server.assert_verified();
}

async fn a_program_that_does_not_save_its_work_in_time_is_stopped_and_goes_on_in_no_other_piece(url: String) {
    let (server, _programs) = start(&url);
    let client = server.client();
    let id = cut_in_two(&client, "deaf").await;
    let over = until(&client, id, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"killed".into()),
        "{over}"
    );
    assert!(over["pieces"][1].get("started").is_none(), "{over}");
    server.assert_verified();
}

async fn a_piece_that_is_lost_is_run_again_from_what_the_one_before_has_saved(url: String) {
    let template = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/templates/agreements/advance-reservation.xml"
    );
    let restarting = format!("[[template]]\nfile = \"{template}\"\non_loss = \"restart\"\n");
    let (server, programs) = start_with(Some(&url), 1, GRACE, &restarting);
    let client = server.client();
    let start = now();
    take(&client, start + FIRST + ROOM).await;
    let work = counting("count", 10 * FIRST).within(start, start + 600);
    let id = client.post("/agreements", cut(&work, "2", "0.1")).await.created();
    until(&client, id, "Idle").await;
    let saved = steps(&programs);
    fs::write(programs.path().join("hold"), "").expect("a file can be written");
    let folder = server.data_dir().join("jobs").join(id.to_string());
    let second = format!("piece 2 of 2 from {}\n", saved.len());
    eventually(
        "the first step of the second piece and its output",
        SOON,
        async || {
            let output = fs::read_to_string(folder.join("stdout")).unwrap_or_default();
            (steps(&programs).len() > saved.len() && output.ends_with(&second)).then_some(())
        },
    )
    .await;
    // As when the machine stops: its end is not seen.
    let records = folder.join("piece-2");
    kill_process(process(&records.join("lock"), ""), Signal::KILL).expect("its supervisor runs");
    kill_process_group(process(&records.join("claim.json"), "/process"), Signal::KILL).expect("it runs");
    eventually("it to be run again", SOON, async || {
        let events = client.get(&format!("/agreements/{id}/events")).await.body;
        events
            .contains("it is run again from what piece 1 has saved")
            .then_some(())
    })
    .await;
    fs::remove_file(programs.path().join("hold")).expect("it is there");
    let over = until(&client, id, "Completed").await;
    assert_eq!(over["outcome"], "completed", "{over}");
    let again: Vec<String> = (saved.len()..=STEPS).map(|step| step.to_string()).collect();
    assert_eq!(
        steps(&programs)[saved.len() + 1..],
        again[1..],
        "those of the lost piece, too"
    );
    let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
    assert_eq!(
        output.body,
        format!("piece 1 of 2 from 0\n{second}{second}"),
        "all in one folder"
    );
    assert!(records.with_file_name("piece-2.0").join("spec.json").exists());
    server.assert_verified();
}

async fn where_the_folder_is_gone_between_two_pieces_the_work_is_lost_and_not_begun_anew(url: String) {
    let (server, programs) = start(&url);
    let client = server.client();
    let id = cut_in_two(&client, "count").await;
    until(&client, id, "Idle").await;
    let saved = steps(&programs);
    let folder = server.data_dir().join("jobs").join(id.to_string());
    fs::remove_dir_all(folder).expect("it is there");
    let over = until(&client, id, "Completed").await;
    assert_eq!(
        (&over["state"], &over["outcome"]),
        (&"Complete".into(), &"lost".into()),
        "{over}"
    );
    assert_eq!(over["guarantees"][0]["state"], "Violated", "{over}");
    assert_eq!(steps(&programs), saved, "nothing is done again");
    let events = client.get(&format!("/agreements/{id}/events")).await.body;
    let why = "its work cannot go on: what the piece before it had saved is gone";
    assert!(events.contains(why), "{events}");
    server.assert_verified();
}

/// The process in a record of a job.
fn process(record: &Path, at: &str) -> Pid {
    let text = fs::read(record).expect("it is there");
    let record: Value = serde_json::from_slice(&text).expect("it is JSON");
    let pid = record.pointer(at).and_then(|pointer| pointer["pid"].as_i64());
    let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    pid.expect("it names a process")
}

#[test]
fn work_that_cannot_be_saved_is_not_cut() {
    crate::support::run(async {
        let (server, _programs) = start_with(None, 1, GRACE, "");
        let client = server.client();
        let refused = client
            .post("/agreements", cut(&Offer::sleep(1, 60), "3", "0.25"))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert!(refused.body.contains("bsp:Preemption"), "its path: {refused:?}");
        assert!(
            refused.body.contains("sleep does not save its work"),
            "{refused:?}"
        );
        let reserved = client
            .post("/agreements", cut(&Offer::reserve(1, 60), "3", "0.25"))
            .await;
        assert_eq!(reserved.status, StatusCode::UNPROCESSABLE_ENTITY, "{reserved:?}");
        let at_once = client
            .post("/agreements", cut(&counting("count", 60), "3", "0.25"))
            .await;
        let id = at_once.created();
        assert!(
            show(&client, id).await.get("pieces").is_none(),
            "there is room for all of it"
        );
        server.assert_verified();
    });
}

/// Has work planned around three seconds that are taken: half of it before them, and half after.
async fn cut_in_two(client: &Client, application: &'static str) -> Uuid {
    let start = now();
    take(client, start + FIRST + ROOM).await;
    let work = counting(application, 2 * FIRST).within(start, start + 120);
    client.post("/agreements", cut(&work, "3", "0.5")).await.created()
}

/// Has a node taken for three seconds.
async fn take(client: &Client, from: i64) {
    let taken = Offer::reserve(1, 3).within(from, from + 3).xml();
    client.post("/agreements", taken).await.created();
}

/// Work that counts on one node.
pub(crate) fn counting(application: &'static str, duration: i64) -> Offer {
    Offer {
        run: Some((application, vec![STEPS.to_string()])),
        ..Offer::reserve(1, duration)
    }
}

/// The offer with the permission to cut its work.
fn cut(offer: &Offer, pieces: &str, interval: &str) -> String {
    let scheduling = format!(
        "<wsag:ServiceDescriptionTerm wsag:Name=\"SCHEDULING\" wsag:ServiceName=\"COMPUTE\">\
         <bsp:Scheduling xmlns:bsp=\"urn:bespeak:terms:1\"><bsp:Preemption><bsp:Pieces>{pieces}</bsp:Pieces>\
         <bsp:Interval>{interval}</bsp:Interval><bsp:Independent>false</bsp:Independent></bsp:Preemption>\
         </bsp:Scheduling></wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm"
    );
    offer.xml().replacen("<wsag:GuaranteeTerm", &scheduling, 1)
}

fn start(url: &str) -> (Server, TempDir) {
    start_with(Some(url), 1, GRACE, "")
}

/// A service with `nodes` nodes, and two programs that have `grace` seconds to save their work. One counts, up to the half before
/// it has saved its work, stops counting while there is a file called hold, and ends where there is one called enough. The other
/// does not react to the signal.
pub(crate) fn start_with(url: Option<&str>, nodes: u32, grace: i64, more: &str) -> (Server, TempDir) {
    let programs = tempfile::tempdir().expect("a temporary folder");
    let count = program(
        programs.path(),
        "count",
        &format!(
            "done=0\n[ \"$2\" = --resume ] && done=$(cat saved)\n\
             echo \"piece $BESPEAK_PIECE of $BESPEAK_PIECES from $done\"\n\
             echo \"$BESPEAK_NODES\" >> '{0}/nodes'\n\
             trap 'stop=1' USR1\n\
             while [ \"$done\" -lt \"$1\" ] && [ ! -e '{0}/enough' ]; do\n\
             if [ \"$2\" = --resume ] || [ \"$done\" -lt $(($1 / 2)) ]; then\n\
             done=$((done+1)); echo \"$done\" >> '{0}/steps'\n\
             fi\n\
             if [ -n \"$stop\" ]; then echo \"$done\" > saved; exit 0; fi\n\
             while [ -e '{0}/hold' ]; do sleep 0.05; done\n\
             sleep 0.05\ndone\n",
            programs.path().display()
        ),
    );
    let deaf = program(
        programs.path(),
        "deaf",
        "trap '' TERM\nwhile :; do sleep 1; done\n",
    );
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = {nodes}\n\n\
         [[application]]\nname = \"sleep\"\nprogram = \"/bin/sleep\"\n\
         [[application.argument]]\nname = \"seconds\"\ntype = \"integer\"\nmin = 0\nmax = 1000\n\n\
         {}{}{more}",
        application("count", &count, ("USR1", grace), "resume = [\"--resume\"]\n"),
        application("deaf", &deaf, ("TERM", grace), "")
    );
    (Server::configured(url, &configuration), programs)
}

fn application(name: &str, program: &str, (signal, grace): (&str, i64), more: &str) -> String {
    format!(
        "[[application]]\nname = \"{name}\"\nprogram = \"{program}\"\ntrusted = true\n\
         [[application.argument]]\nname = \"steps\"\ntype = \"integer\"\nmin = 1\nmax = 1000\n\
         [application.checkpoint]\nsignal = \"{signal}\"\ngrace_seconds = {grace}\n{more}\n"
    )
}

pub(crate) fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a script can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    path.display().to_string()
}

/// The steps counted so far.
pub(crate) fn steps(programs: &TempDir) -> Vec<String> {
    let steps = fs::read_to_string(programs.path().join("steps")).unwrap_or_default();
    steps.lines().map(str::to_owned).collect()
}

fn assert_every_step_once(programs: &TempDir) {
    let expected: Vec<String> = (1..=STEPS).map(|step| step.to_string()).collect();
    assert_eq!(steps(programs), expected);
}

pub(crate) async fn show(client: &Client, id: Uuid) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

pub(crate) async fn until(client: &Client, id: Uuid, service: &str) -> Value {
    eventually(&format!("its service to be {service}"), SOON, async || {
        let shown = show(client, id).await;
        (shown["serviceState"] == service).then_some(shown)
    })
    .await
}
