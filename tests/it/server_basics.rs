//! The basis that an operator and a client rely on around every request: keys, ids, statuses, stops and starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, StatusCode};

use crate::pieces::program;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

/// The largest body that is read, in bytes.
const BODY_MAX: usize = 256 * 1_024;

on_both_engines!(
    a_running_job_is_followed_on_over_a_restart,
    a_second_service_on_the_same_store_does_not_start,
);

async fn a_running_job_is_followed_on_over_a_restart(url: String) {
    let programs = tempfile::tempdir().expect("a temporary folder");
    let go = programs.path().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", go.display());
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
         [[application]]\nname = \"wait\"\nprogram = \"{}\"\ntrusted = true\n",
        program(programs.path(), "wait", &script)
    );
    let mut server = Server::configured(Some(&url), &configuration);
    let work = Offer {
        run: Some(("wait", Vec::new())),
        ..Offer::reserve(1, 600)
    };
    let id = server.client().post("/agreements", work.xml()).await.created();
    let path = format!("/agreements/{id}");
    let state = async |server: &Server, wanted: &str| {
        let client = server.client();
        eventually(&format!("{wanted} of {id}"), Duration::from_mins(1), async || {
            let shown = client.get_json(&path).await;
            (shown["serviceState"] == wanted && shown["started"].is_string()).then_some(shown)
        })
        .await
    };
    let before = state(&server, "Processing").await;
    assert!(
        server.stop().success(),
        "a service that is asked to stop ends well"
    );
    server.restart();
    let after = state(&server, "Processing").await;
    assert_eq!(before["started"], after["started"], "it is the same process");
    server.kill9();
    server.restart();
    fs::write(&go, "").expect("a file can be written");
    let over = state(&server, "Completed").await;
    assert_eq!(over["started"], before["started"]);
    assert_eq!(over["outcome"], "completed", "{over}");
    assert_eq!(over["exitStatus"], 0, "{over}");
    server.assert_verified();
}

async fn a_second_service_on_the_same_store_does_not_start(url: String) {
    let server = Server::start(&url);
    let second = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!second.status.success(), "two services work on one store");
    assert!(!second.stderr.is_empty(), "it does not say why it does not start");
    server
        .client()
        .post("/agreements", Offer::reserve(1, 60).xml())
        .await
        .created();
}

#[test]
fn the_operator_key_is_alone_in_its_file_and_nobody_else_may_read_it() {
    let server = Server::local();
    let path = server.data_dir().join("operator.key");
    let mode = fs::metadata(&path)
        .expect("the file is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "mode {mode:o}");
    let text = fs::read_to_string(&path).expect("the file can be read");
    assert_eq!(text.split_whitespace().count(), 1, "it holds more than the key");
}

#[test]
fn what_cannot_be_served_is_told_by_its_status() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let offer = Offer::reserve(1, 60).xml();
        let post = |media_type: &'static str| {
            client
                .request(Method::POST, "/agreements")
                .header("content-type", media_type)
                .body(offer.clone())
        };
        let blank = " ".repeat(BODY_MAX);
        for (what, request, status) in [
            (
                "nothing here",
                client.request(Method::GET, "/nothing"),
                StatusCode::NOT_FOUND,
            ),
            (
                "no such template",
                client.request(Method::GET, "/templates/none"),
                StatusCode::NOT_FOUND,
            ),
            (
                "no id",
                client.request(Method::GET, "/agreements/none"),
                StatusCode::NOT_FOUND,
            ),
            (
                "no text",
                client.request(Method::GET, "/agreements/%ff/state"),
                StatusCode::NOT_FOUND,
            ),
            (
                "no such method",
                client.request(Method::DELETE, "/templates"),
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            (
                "no such type",
                post("application/xml").header("accept", "image/png"),
                StatusCode::NOT_ACCEPTABLE,
            ),
            ("not read", post("image/png"), StatusCode::UNSUPPORTED_MEDIA_TYPE),
            (
                "too large",
                post("application/xml").body(blank.clone() + &offer),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
            ("empty", post("application/xml").body(""), StatusCode::BAD_REQUEST),
            (
                "bad query",
                client.request(Method::GET, "/agreements?limit=many"),
                StatusCode::BAD_REQUEST,
            ),
        ] {
            let answer = client.send(request).await;
            assert_eq!(answer.status, status, "{what}: {answer:?}");
            assert!(
                answer.content_type().starts_with("application/xml"),
                "{what}: a fault is expected, not {answer:?}"
            );
        }
        // curl sends this type where none is named: `curl --data-binary @offer.xml` has to work.
        client
            .send(post("application/x-www-form-urlencoded"))
            .await
            .created();
    });
}

#[test]
fn every_answer_bears_a_request_id_that_the_log_knows_and_refusals_come_as_problems_in_json() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let later = hours_ahead(2);
        let offer = Offer::reserve(4, 3_600).within(later, later + 3_600).xml();
        let made = client.post("/agreements", offer.clone()).await;
        made.created();
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/xml")
            .header("accept", "application/json")
            .body(offer);
        let refused = client.send(request).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert_eq!(refused.content_type(), "application/problem+json");
        let problem = refused.json();
        assert_eq!(problem["status"], 409, "{problem}");
        assert_eq!(
            problem["refusal"]["alternatives"].as_array().map(Vec::len),
            Some(2),
            "{problem}"
        );
        for answer in [&made, &refused] {
            let id = answer.headers["x-request-id"].to_str().expect("an id is ASCII");
            assert!(server.log().contains(id), "the log does not know request {id}");
        }
        assert!(
            !server.log().contains(server.key()),
            "the operator's key stands in the log"
        );
    });
}

/// More than is read of an output at a time.
#[test]
fn an_output_is_sent_whole_however_long_it_is() {
    let configuration = r#"
[[application]]
name = "count"
program = "/usr/bin/seq"
[[application.argument]]
name = "last"
type = "integer"
min = 1
max = 1000000
"#;
    run(async {
        let server = Server::configured(None, configuration);
        let client = server.client();
        let offer = Offer::sleep(400_000, 600).xml().replace(">sleep<", ">count<");
        let id = client.post("/agreements", offer).await.created();
        eventually("the end of the job", Duration::from_mins(1), async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            (shown["state"] == "Complete").then_some(())
        })
        .await;
        let numbers: Vec<_> = (1..=400_000).map(|number: u32| number.to_string()).collect();
        let counted = numbers.join("\n") + "\n";
        let sent = client.get(&format!("/agreements/{id}/files/stdout")).await;
        assert_eq!(sent.body.len(), counted.len());
        assert!(sent.body == counted, "something else was sent than was written");
    });
}

#[test]
fn where_no_limit_of_processes_holds_offers_of_applications_that_are_not_trusted_are_told_why() {
    if !rustix::process::geteuid().is_root() {
        // The limit of a job's own namespace holds for every other user.
        return;
    }
    let configuration = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
        [[application]]\nname = \"echo\"\nprogram = \"/bin/echo\"\n";
    // A service as root, without control groups that it could use.
    let without =
        "exec bwrap --die-with-parent --dev-bind / / --ro-bind /sys/fs/cgroup /sys/fs/cgroup -- \"$@\"";
    run(async {
        let server = Server::through(without, configuration);
        let mut echo = Offer::sleep(0, 600);
        echo.run = Some(("echo", Vec::new()));
        let refused = server.client().post("/agreements", echo.xml()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        for why in [
            "echo is not trusted, and nothing holds the limit of processes of a job",
            "the service runs as root",
        ] {
            assert!(refused.body.contains(why), "{refused:?}");
            assert!(
                server.log().contains("the service runs as root"),
                "{}",
                server.log()
            );
        }
        assert!(
            server
                .log()
                .contains("local resources take jobs of trusted applications only")
        );
    });
}

#[test]
fn without_bubblewrap_only_trusted_applications_run_here_and_offers_of_others_are_told_why() {
    let configuration = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
        [[application]]\nname = \"sleep\"\nprogram = \"/bin/sleep\"\ntrusted = true\n\
        [[application.argument]]\nname = \"seconds\"\ntype = \"integer\"\nmin = 0\nmax = 10\n\
        [[application]]\nname = \"echo\"\nprogram = \"/bin/echo\"\n";
    // A machine on which nothing is at the tool's place.
    let without = "tool=$(command -v bwrap) && \
        exec \"$tool\" --die-with-parent --dev-bind / / --ro-bind /dev/null \"$tool\" -- \"$@\"";
    run(async {
        let server = Server::through(without, configuration);
        let client = server.client();
        let mut echo = Offer::sleep(0, 600);
        echo.run = Some(("echo", Vec::new()));
        let refused = client.post("/agreements", echo.xml()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        let why = "echo is not trusted, and jobs cannot be isolated: bubblewrap (bwrap) is not installed";
        assert!(refused.body.contains(why), "{refused:?}");
        assert!(
            server
                .log()
                .contains("local resources take jobs of trusted applications only")
        );
        let id = client
            .post("/agreements", Offer::sleep(0, 600).xml())
            .await
            .created();
        eventually("the end of the job", Duration::from_mins(1), async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            (shown["state"] == "Complete").then_some(())
        })
        .await;
    });
}

#[test]
fn an_answer_is_compressed_for_a_client_that_takes_it_so() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let ask = async |path: &str, coding: Option<&str>| {
            let mut request = client.request(Method::GET, path);
            if let Some(coding) = coding {
                request = request.header("accept-encoding", coding);
            }
            let answer = request.send().await.expect("the service answers");
            assert_eq!(answer.status(), StatusCode::OK, "{answer:?}");
            let coding = answer.headers().get("content-encoding").cloned();
            (coding, answer.bytes().await.expect("a body"))
        };
        for path in ["/openapi.json", "/templates"] {
            let (none, plain) = ask(path, None).await;
            assert_eq!(none, None, "{path}");
            let (coding, packed) = ask(path, Some("br, gzip;q=0.5")).await;
            assert_eq!(
                coding.as_ref().map(HeaderValue::as_bytes),
                Some(&b"gzip"[..]),
                "{path}"
            );
            assert!(
                packed.len() < plain.len() / 2,
                "{path}: {} of {}",
                packed.len(),
                plain.len()
            );
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            fs::write(file.path(), &packed).expect("it can be written");
            let unpacked = std::process::Command::new("gzip")
                .arg("-dc")
                .stdin(fs::File::open(file.path()).expect("it is there"))
                .output()
                .expect("gzip runs");
            assert!(unpacked.stdout == plain, "{path}: something else was packed");
        }
        let (none, _) = ask("/healthz", Some("gzip")).await;
        assert_eq!(none, None, "too small to be worth it");
        let (none, _) = ask("/docs", Some("gzip")).await;
        assert_eq!(none, None, "a page may have a secret beside the words of others");
        let (none, _) = ask("/templates", Some("identity, gzip;q=0")).await;
        assert_eq!(none, None);
    });
}
