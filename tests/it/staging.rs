//! The files that a job names: brought from addresses and uploads before it starts, sent to addresses after it has completed, as part
//! of its slot, whatever the other end does and whatever is killed.

mod failures;
mod refusals;

use std::time::Duration;

use domain::agreement::{Execution, RunOutcome};
use reqwest::{Method, StatusCode};
use scheduler::Time;
use serde_json::{Value, json};
use store::{Store, executions, samples};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::data_server::{DataServer, ServedRequest};
use crate::support::offers::Offer;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

on_both_engines!(
    a_killed_service_goes_on_where_the_file_was;
    a_release_on_postgres:
    files_come_from_addresses_and_uploads_and_results_go_to_addresses,
);

/// Sixteen nodes, a program that copies a file, and files of that server; with more keys of `[staging]`.
fn configured(data: &DataServer, staging: &str) -> String {
    format!(
        "[limits]\nheader_seconds = 600\nbody_seconds = 600\n\
         [staging]\nallowed = [\"{}\"]\nprivate_addresses = true\n{staging}\n\
         [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 16\n\
         [[application]]\nname = \"copy\"\nprogram = \"/bin/cp\"\n\
         [[application.argument]]\nname = \"from\"\ntype = \"text\"\nmax_length = 80\n\
         [[application.argument]]\nname = \"to\"\ntype = \"text\"\nmax_length = 80\n",
        data.url("/open/")
    )
}

/// A request to copy a file, with these files.
fn copying(from: &str, to: &str, seconds: i64, staging: &Value) -> Value {
    json!({
        "application": "copy", "arguments": [from, to], "nodes": 1, "durationSeconds": seconds, "staging": staging,
    })
}

/// The same as a document, with the elements of its files.
fn copying_xml(from: &str, to: &str, staging: &str) -> String {
    let mut offer = Offer::sleep(0, 600);
    offer.run = Some(("copy", vec![from.to_owned(), to.to_owned()]));
    offer
        .xml()
        .replace("</jsdl:Resources>", &format!("</jsdl:Resources>{staging}"))
}

/// Bytes that no other part of a file repeats.
fn bytes(count: u32) -> Vec<u8> {
    (0..count.div_ceil(4))
        .flat_map(u32::to_le_bytes)
        .take(count as usize)
        .collect()
}

async fn made(client: &Client, request: &Value) -> String {
    client
        .post_json("/agreements", request)
        .await
        .created()
        .to_string()
}

async fn view(client: &Client, id: &str) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

/// An agreement that is over.
async fn over(client: &Client, id: &str) -> Value {
    eventually("the agreement to be over", PATIENCE, async || {
        let view = view(client, id).await;
        (view["serviceState"] == "Completed").then_some(view)
    })
    .await
}

/// The kinds and the words of a timeline.
async fn timeline(client: &Client, id: &str) -> Vec<(String, String)> {
    let timeline = client.get_json(&format!("/agreements/{id}/events")).await;
    let events = timeline["events"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .map(|event| (text(&event["kind"]), text(&event["detail"])))
        .collect()
}

/// The words of the first event of a kind.
async fn told(client: &Client, id: &str, kind: &str) -> String {
    let timeline = timeline(client, id).await;
    let found = timeline.iter().find(|(timeline, _)| timeline == kind);
    found
        .unwrap_or_else(|| panic!("no {kind} in {timeline:?}"))
        .1
        .clone()
}

/// The execution of an agreement, and the rates of its resource.
async fn recorded(url: &str, id: &str) -> (Vec<Execution>, Vec<(Option<i64>, Option<i64>)>) {
    let store = Store::open(url)
        .await
        .expect("the store can be read beside the service");
    let id: Uuid = id.parse().expect("an id");
    let executions = executions::executions_of_agreement(&store, id)
        .await
        .expect("they can be read");
    let hours = samples::sample_hours_of_resources(&store, Time(0))
        .await
        .expect("they can be read");
    let rates = hours
        .iter()
        .map(|hour| (hour.condition.transfer_in, hour.condition.transfer_out));
    let rates = rates.filter(|rates| *rates != (None, None)).collect();
    store.close().await;
    (executions, rates)
}

fn asked_for<'a>(asked: &'a [ServedRequest], path: &str) -> Vec<&'a ServedRequest> {
    asked.iter().filter(|asked| asked.path == path).collect()
}

async fn files_come_from_addresses_and_uploads_and_results_go_to_addresses(url: String) {
    let data = DataServer::start().await;
    let content = bytes(3 << 20);
    data.put("/open/a b?.dat", "nothing that is asked for");
    data.put("/open/in.dat", content.clone());
    let server = Server::configured(Some(&url), &configured(&data, ""));
    let client = server.client_with(&server.key_for("physics", "consumer"));

    // As JSON: from an address to an address, with its size declared.
    let staging = json!([
        { "file": "in.dat", "source": data.url("/open/in.dat?key=secret"), "bytes": 3 << 20, "deleteOnTermination": true },
        { "file": "out.dat", "target": data.url("/open/results/out.dat"), "bytes": 3 << 20 },
        { "file": "stdout", "target": data.url("/open/results/stdout") },
    ]);
    let id = made(&client, &copying("in.dat", "out.dat", 60, &staging)).await;
    let ended = over(&client, &id).await;
    assert_eq!(
        ended["outcome"],
        "completed",
        "{ended} {:?}",
        timeline(&client, &id).await
    );
    assert_eq!(data.file("/open/results/out.dat"), Some(content.clone()));
    assert_eq!(data.file("/open/results/stdout"), Some(Vec::new()));
    let put = data.asked();
    let put = asked_for(&put, "/open/results/out.dat");
    assert_eq!((put[0].method.as_str(), put[0].length), ("PUT", Some(3 << 20)));
    let files = &ended["staging"];
    assert_eq!(
        (&files[0]["bytesIn"], &files[1]["bytesOut"]),
        (&json!(3 << 20), &json!(3 << 20)),
        "{files}"
    );
    let kinds: Vec<_> = timeline(&client, &id)
        .await
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    let position_of = |kind: &str| kinds.iter().position(|position_of| position_of == kind);
    assert!(
        position_of("begun") < position_of("staging")
            && position_of("staging") < position_of("staged")
            && position_of("staged") < position_of("running"),
        "{kinds:?}"
    );
    let last_staged = kinds.iter().rposition(|kind| kind == "staged");
    assert!(
        position_of("running") < last_staged && last_staged < position_of("ended"),
        "{kinds:?}"
    );
    assert!(
        told(&client, &id, "staged")
            .await
            .starts_with("brought 1 file with 3145728 bytes in ")
    );
    // Its result stays, too; what was to be removed is gone.
    let listed = client.get_json(&format!("/agreements/{id}/files")).await;
    let names: Vec<_> = listed["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| &file["name"])
        .collect();
    assert_eq!(names, ["stdout", "stderr", "out.dat"]);

    let (executions, rates) = recorded(&url, &id).await;
    let [execution] = executions.as_slice() else {
        panic!("{executions:?}");
    };
    assert_eq!((execution.moved_in, execution.moved_out), (3 << 20, 3 << 20));
    assert!(
        execution.transfer_in > 0 && execution.transfer_out > 0,
        "{execution:?}"
    );
    assert_eq!(
        (execution.input_bytes, execution.outcome),
        (3 << 20, RunOutcome::Completed)
    );
    assert!(
        matches!(rates.as_slice(), [(Some(into), Some(out))] if *into > 0 && *out > 0),
        "{rates:?}"
    );

    an_upload_under_another_name(&client, &data, &url).await;
    let absent = json!([{ "file": "in.dat", "source": data.url("/open/absent.dat") }]);
    let id = made(&client, &copying("in.dat", "out.dat", 60, &absent)).await;
    assert_eq!(over(&client, &id).await["outcome"], "failed-staging");
    server.assert_verified();
}

/// As a document, kept as it is.
async fn an_upload_under_another_name(client: &Client, data: &DataServer, url: &str) {
    let upload = client.request(Method::PUT, "/files/words.txt").body("words");
    assert_eq!(client.send(upload).await.status, StatusCode::CREATED);
    let elements = format!(
        "<jsdl:DataStaging><jsdl:FileName>copied.txt</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>\
         <jsdl:Source><jsdl:URI>words.txt</jsdl:URI></jsdl:Source>\
         <bsp:Bytes xmlns:bsp=\"urn:bespeak:terms:1\">5</bsp:Bytes></jsdl:DataStaging>\
         <jsdl:DataStaging><jsdl:FileName>again.txt</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>\
         <jsdl:Target><jsdl:URI>{}</jsdl:URI></jsdl:Target></jsdl:DataStaging>",
        data.url("/open/again.txt")
    );
    let answer = client
        .post("/agreements", copying_xml("copied.txt", "again.txt", &elements))
        .await;
    let id = answer.created().to_string();
    assert_eq!(
        over(client, &id).await["outcome"],
        "completed",
        "{:?}",
        timeline(client, &id).await
    );
    assert_eq!(data.file("/open/again.txt").as_deref(), Some(&b"words"[..]));
    let document = client.get(&format!("/agreements/{id}")).await;
    assert_eq!(document.texts("FileName"), ["copied.txt", "again.txt"]);
    assert_eq!(document.text("Bytes"), "5");
    let (executions, _) = recorded(url, &id).await;
    let moved = executions.iter().map(|execution| {
        (
            execution.moved_in,
            execution.moved_out,
            execution.transfer_in,
            execution.input_bytes,
        )
    });
    assert_eq!(
        moved.collect::<Vec<_>>(),
        [(0, 5, 0, 5)],
        "an upload is only linked"
    );
}

async fn a_killed_service_goes_on_where_the_file_was(url: String) {
    use crate::support::data_server::Behaviour::SilentAfter;
    let data = DataServer::start().await;
    let content = bytes(1_000_000);
    data.put("/open/in.dat", content.clone());
    data.behave("/open/in.dat", SilentAfter(300_000));
    let mut server = Server::configured(Some(&url), &configured(&data, ""));
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let staging = json!([
        { "file": "in.dat", "source": data.url("/open/in.dat") },
        { "file": "out.dat", "target": data.url("/open/out.dat") },
    ]);
    let id = made(&client, &copying("in.dat", "out.dat", 300, &staging)).await;
    eventually("a part of the file", PATIENCE, async || {
        (view(&client, &id).await["staging"][0]["bytesIn"] == 300_000).then_some(())
    })
    .await;
    let document = client.get(&format!("/agreements/{id}/service-terms")).await;
    assert!(document.body.contains("bringing files"), "{}", document.body);
    server.kill9();
    data.behave("/open/in.dat", None);
    // The other direction is cut, too: the service is killed while the result is on its way.
    data.behave(
        "/open/out.dat",
        crate::support::data_server::Behaviour::Status(503),
    );
    server.restart();
    eventually("the result to be refused", PATIENCE, async || {
        (!asked_for(&data.asked(), "/open/out.dat").is_empty()).then_some(())
    })
    .await;
    server.kill9();
    data.behave("/open/out.dat", None);
    server.restart();
    let client = server.client();
    let ended = over(&client, &id).await;
    assert_eq!(
        ended["outcome"],
        "completed",
        "{:?}",
        timeline(&client, &id).await
    );
    assert_eq!(data.file("/open/out.dat"), Some(content));
    let asked = data.asked();
    let [first, second] = asked_for(&asked, "/open/in.dat")[..] else {
        panic!("{asked:?}");
    };
    assert_eq!((&first.range, &first.if_range), (&None, &None));
    assert_eq!(second.range.as_deref(), Some("bytes=300000-"), "{second:?}");
    assert_eq!(second.if_range.as_deref(), Some("\"1\""));
    let told = timeline(&client, &id).await;
    for (kind, times) in [("staging", 1), ("staged", 2), ("running", 1), ("ended", 1)] {
        assert_eq!(
            told.iter().filter(|(told, _)| told == kind).count(),
            times,
            "{kind}: {told:?}"
        );
    }
    let (executions, _) = recorded(&url, &id).await;
    assert_eq!(
        executions
            .iter()
            .map(|execution| execution.moved_in)
            .collect::<Vec<_>>(),
        [1_000_000]
    );
    server.assert_verified();
}

#[test]
fn terms_show_files_as_they_were_asked_for() {
    run(async {
        let data = DataServer::start().await;
        let server = Server::configured(None, &configured(&data, ""));
        let client = server.client();
        let upload = client.request(Method::PUT, "/files/words.txt").body("words");
        client.send(upload).await;
        let staging = json!([
            { "file": "in.dat", "source": data.url("/open/in.dat"), "bytes": 7, "deleteOnTermination": true },
            { "file": "copied.txt", "source": "words.txt" },
            { "file": "out.dat", "target": data.url("/open/out.dat"), "creationFlag": "dontOverwrite" },
            { "file": "kept.dat", "bytes": 0 },
        ]);
        let mut request = copying("in.dat", "out.dat", 60, &staging);
        request["window"] =
            json!({ "start": crate::support::offers::date_time(crate::support::offers::hours_ahead(24)) });
        let id = made(&client, &request).await;
        let terms = client.get_json(&format!("/agreements/{id}/terms")).await;
        let job = terms["terms"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|term| term["kind"] == "job");
        assert_eq!(job.expect("a job")["staging"], staging);
        let document = client.get(&format!("/agreements/{id}")).await;
        assert_eq!(
            document.texts("FileName"),
            ["in.dat", "copied.txt", "out.dat", "kept.dat"]
        );
        assert_eq!(document.texts("Bytes"), ["7", "0"]);
        assert!(document.body.contains("dontOverwrite"), "{}", document.body);
        let removal = client
            .send(client.request(Method::DELETE, "/files/words.txt"))
            .await;
        assert_eq!(
            removal.status,
            StatusCode::CONFLICT,
            "the job has yet to read it: {removal:?}"
        );
    });
}
