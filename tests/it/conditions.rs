//! The guarantees that a client may rely on: one effect per key, changes only of a version that it has seen, answers in the form
//! that it asked for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{poll_until, run};

on_both_engines!(
    a_key_gives_the_same_answer_whatever_has_happened_since;
    a_release_on_postgres:
    an_agreement_is_ended_only_in_the_version_that_was_seen,
    a_refusal_is_repeated_under_its_key,
);

const REASON: &str = "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                      <r:Reason xmlns:r=\"urn:example:reason\"/></wsag:TerminateInput>";

fn later() -> String {
    let later = hours_ahead(3);
    Offer::reserve(1, 60).within(later, later + 3_600).xml()
}

async fn a_refusal_is_repeated_under_its_key(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(3);
    let whole = Offer::reserve(4, 3_600).within(start, start + 3_600).xml();
    let holder = client.post("/agreements", whole.clone()).await.created();
    let ask = |accept: &'static str, key: &'static str| {
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/xml")
            .header("accept", accept)
            .header("idempotency-key", key);
        request.body(whole.clone())
    };
    let refused = client.send(ask("application/json", "once")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    let refusal = refused.json()["refusal"].clone();
    assert_eq!(refusal["reason"], "NO_CAPACITY_IN_WINDOW", "{refused:?}");
    assert!(refusal["alternatives"][0]["start"].is_string(), "{refusal}");
    assert!(refusal["relaxations"][0].is_object(), "{refusal}");
    // There is room by now, and the answer stays: in both formats, and after a restart.
    client.post(&format!("/agreements/{holder}/terminate"), "").await;
    let again = client.send(ask("application/json", "once")).await;
    assert_eq!(
        (again.status, &again.json()["refusal"]),
        (StatusCode::CONFLICT, &refusal)
    );
    server.kill9();
    server.restart();
    let client = server.client();
    let ask = |key: &'static str, body: &str| {
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/xml")
            .header("idempotency-key", key);
        request.body(body.to_owned())
    };
    let again = client.send(ask("once", &whole)).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");
    assert_eq!(again.texts("Reason")[0], "NO_CAPACITY_IN_WINDOW", "{again:?}");
    let other = client.send(ask("once", &later())).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "{other:?}");
    client.send(ask("twice", &whole)).await.created();
    server.assert_verified();
}

#[test]
fn an_answer_is_in_the_format_of_its_request_or_the_one_that_is_asked_for() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let post = |kind: &'static str, accept: Option<&'static str>, body: &str| {
            let mut request = client
                .request(Method::POST, "/agreements")
                .header("content-type", kind);
            if let Some(accept) = accept {
                request = request.header("accept", accept);
            }
            request.body(body.to_owned())
        };
        let json = r#"{"nodes": 1, "durationSeconds": 60}"#;
        for accept in [None, Some("*/*")] {
            let made = client.send(post("application/json", accept, json)).await;
            made.created();
            assert_eq!(made.content_type(), "application/json", "{made:?}");
            let wrong = client
                .send(post("application/json", accept, r#"{"nodes": 0}"#))
                .await;
            assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
            assert_eq!(wrong.content_type(), "application/problem+json", "{wrong:?}");
        }
        let made = client.send(post("application/xml", None, &later())).await;
        made.created();
        assert_eq!(made.content_type(), "application/xml", "{made:?}");
        // The older name of XML, for answers and for errors.
        let made = client.send(post("text/xml", Some("text/xml"), &later())).await;
        made.created();
        assert_eq!(made.content_type(), "text/xml", "{made:?}");
        let wrong = client
            .send(post("application/json", Some("text/xml"), r#"{"nodes": 0}"#))
            .await;
        assert_eq!(
            (wrong.status, wrong.content_type()),
            (StatusCode::UNPROCESSABLE_ENTITY, "text/xml")
        );
        assert!(wrong.body.contains("ContinuingFault"), "{wrong:?}");
        // The root leads a browser to the pages, and programs on.
        let nobody = server.client_with("");
        let browser = nobody.request(Method::GET, "/").header(
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        );
        let page = nobody.send(browser).await;
        assert!(page.body.contains("<html"), "{page:?}");
        let program = nobody
            .send(
                nobody
                    .request(Method::GET, "/")
                    .header("accept", "application/json"),
            )
            .await;
        assert_eq!(program.status, StatusCode::NOT_FOUND, "{program:?}");
        assert!(program.body.contains("/openapi.json"), "{program:?}");
    });
}

async fn terminate(client: &Client, id: Uuid, headers: &[(&str, &str)], body: &str) -> Answer {
    let path = format!("/agreements/{id}/terminate");
    let mut request = client
        .request(Method::POST, &path)
        .header("content-type", "application/xml");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request.body(body.to_owned())).await
}

async fn an_agreement_is_ended_only_in_the_version_that_was_seen(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let made = client.post("/agreements", later()).await;
    let id = made.created();
    let tag = made.headers["etag"].clone();
    let shown = client.get(&format!("/agreements/{id}/state")).await;
    assert_eq!(
        shown.headers["etag"], tag,
        "a new agreement is in its first version"
    );
    for other in ["\"7\"", "W/\"1\"", "\"nonsense\"", "\"\""] {
        let refused = terminate(&client, id, &[("if-match", other)], REASON).await;
        assert_eq!(
            refused.status,
            StatusCode::PRECONDITION_FAILED,
            "{other}: {refused:?}"
        );
    }
    let wrong = terminate(&client, id, &[("if-match", "7")], REASON).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{wrong:?}");
    let state = client.get(&format!("/agreements/{id}/state")).await;
    assert_eq!(state.text("State"), "Observed", "nothing has happened to it");
    let tag = tag.to_str().expect("a tag is ASCII");
    let done = terminate(&client, id, &[("if-match", &format!("\"9\", {tag}"))], REASON).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    assert_ne!(
        done.headers["etag"].to_str().expect("a tag is ASCII"),
        tag,
        "it has changed"
    );
    let again = terminate(&client, id, &[("if-match", "*")], REASON).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");
}

async fn a_key_gives_the_same_answer_whatever_has_happened_since(url: String) {
    let mut server = Server::start(&url);
    let offer = later();
    let keyed = |client: &Client, accept: &str, body: &str| {
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/xml")
            .header("accept", accept)
            .header("idempotency-key", "one");
        request.body(body.to_owned())
    };
    let client = server.client();
    let json = client.send(keyed(&client, "application/json", &offer)).await;
    let xml = client.send(keyed(&client, "application/xml", &offer)).await;
    let id = xml.created();
    assert_eq!(json.created(), id);
    let ended = terminate(&client, id, &[("idempotency-key", "two")], REASON).await;
    assert_eq!(ended.status, StatusCode::OK, "{ended:?}");
    // An id may be written in several ways.
    let path = format!("/agreements/{}/terminate", id.to_string().to_uppercase());
    let again = client
        .request(Method::POST, &path)
        .header("content-type", "application/xml")
        .header("idempotency-key", "two");
    let again = client.send(again.body(REASON.to_owned())).await;
    assert_eq!(again.status, StatusCode::OK, "{again:?}");
    for restarted in [false, true] {
        if restarted {
            server.kill9();
            server.restart();
        }
        let client = server.client();
        let again = client.send(keyed(&client, "application/json", &offer)).await;
        assert_eq!(
            (again.status, &again.body, again.headers.get("etag")),
            (json.status, &json.body, json.headers.get("etag")),
            "as it was answered, though it has ended since"
        );
        let again = terminate(&client, id, &[("idempotency-key", "two")], REASON).await;
        assert_eq!(
            (again.status, &again.body, again.headers.get("etag")),
            (ended.status, &ended.body, ended.headers.get("etag"))
        );
        // Another body, another operation, another agreement: another request.
        let other = Offer::reserve(2, 60).xml();
        let reused = client.send(keyed(&client, "application/xml", &other)).await;
        assert_eq!(reused.status, StatusCode::UNPROCESSABLE_ENTITY, "{reused:?}");
        for (id, key, body) in [
            (id, "two", ""),
            (id, "one", REASON),
            (client.post("/agreements", later()).await.created(), "two", REASON),
        ] {
            let reused = terminate(&client, id, &[("idempotency-key", key)], body).await;
            assert_eq!(reused.status, StatusCode::UNPROCESSABLE_ENTITY, "{reused:?}");
        }
    }
    // Keys of another party have nothing to do with it.
    let other = server.client_with(&server.key_for("physics", "consumer"));
    let made = other.send(keyed(&other, "application/xml", &offer)).await;
    assert_ne!(made.created(), id);
    server.assert_verified();
}

#[test]
fn answers_come_in_the_form_that_was_asked_for_and_bodies_are_read_in_ours_only() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let get = |accept: &str| client.request(Method::GET, "/templates").header("accept", accept);
        for (accept, kind) in [
            ("application/xml;q=0, */*", Some("application/json")),
            ("application/json, */*;q=0.1", Some("application/json")),
            ("*/*", Some("application/xml")),
            ("text/html", None),
            ("*/*, application/xml;q=0, application/json;q=0", None),
        ] {
            let answer = client.send(get(accept)).await;
            match kind {
                Some(kind) => assert_eq!(
                    (answer.status, answer.content_type()),
                    (StatusCode::OK, kind),
                    "{accept}"
                ),
                None => assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE, "{accept}"),
            }
        }
        let post = |name: &'static str, value: &'static str| {
            client
                .request(Method::POST, "/agreements")
                .header("content-type", "application/xml")
                .header(name, value)
                .body(later())
        };
        let none = client.send(post("accept", "text/html")).await;
        assert_eq!(none.status, StatusCode::NOT_ACCEPTABLE, "{none:?}");
        let zipped = client.send(post("content-encoding", "gzip")).await;
        assert_eq!(zipped.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{zipped:?}");
        let listed = client.get_json("/agreements").await;
        assert_eq!(
            listed["agreements"].as_array().map(Vec::len),
            Some(0),
            "a request that cannot be answered has no effect: {listed}"
        );
        for (kind, status) in [
            ("application/xml; charset=UTF-8", StatusCode::CREATED),
            ("text/xml;charset=\"us-ascii\"", StatusCode::CREATED),
            (
                "application/xml; charset=utf-16",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ),
            ("application/xmlx", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("multipart/form-data", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ] {
            let request = client
                .request(Method::POST, "/agreements")
                .header("content-type", kind);
            let answer = client.send(request.body(later())).await;
            assert_eq!(answer.status, status, "{kind}: {answer:?}");
        }
    });
}

#[test]
fn lists_that_no_specification_knows_are_in_json_alone() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = client.post("/agreements", later()).await.created();
        let (events, files) = (
            format!("/agreements/{id}/events"),
            format!("/agreements/{id}/files"),
        );
        for path in [
            "/accounts",
            "/agreements",
            "/availability",
            "/events",
            "/files",
            "/negotiations",
            &events,
            &files,
        ] {
            for (accept, status) in [
                ("application/xml", StatusCode::NOT_ACCEPTABLE),
                ("application/xml, application/json;q=0.1", StatusCode::OK),
                ("*/*", StatusCode::OK),
            ] {
                let request = client.request(Method::GET, path).header("accept", accept);
                let answer = client.send(request).await;
                assert_eq!(answer.status, status, "{path} as {accept}: {answer:?}");
                let kind = match status {
                    StatusCode::OK => "application/json",
                    _ => "application/xml",
                };
                assert_eq!(answer.content_type(), kind, "{path} as {accept}");
            }
        }
    });
}

#[test]
fn the_parts_of_an_agreement_are_parts_in_json_too() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let later = hours_ahead(3);
        let offer = Offer::sleep(2, 60).on(3).within(later, later + 3_600).xml();
        let id = client.post("/agreements", offer).await.created();
        let context = client.get_json(&format!("/agreements/{id}/context")).await;
        assert_eq!(
            context,
            serde_json::json!({
                "serviceProvider": "AgreementResponder",
                "templateId": "advance-reservation",
                "templateName": "advance-reservation",
            })
        );
        let shown = client.get_json(&format!("/agreements/{id}/terms")).await;
        let terms = shown["terms"].as_array().expect("a list");
        let kinds: Vec<_> = terms
            .iter()
            .map(|term| term["kind"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(kinds, ["job", "time", "guarantee"], "{shown}");
        assert_eq!(terms[0]["arguments"], serde_json::json!(["2"]), "{shown}");
        assert_eq!(
            (&terms[0]["nodesMin"], &terms[0]["nodesMax"]),
            (&3.into(), &3.into())
        );
        assert_eq!(terms[1]["durationSeconds"], 60, "{shown}");
        assert_eq!(terms[2]["objective"], "completed le deadline", "{shown}");
    });
}

#[test]
fn what_goes_wrong_around_a_page_is_a_page() {
    run(async {
        let server = Server::configured(
            None,
            "[limits]\nrequests = 1\nbody_seconds = 600\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n",
        );
        let client = server.client();
        let lost = client.get("/portal/agreements/%ff").await;
        assert_eq!(
            (lost.status, lost.content_type()),
            (StatusCode::NOT_FOUND, "text/html"),
            "{lost:?}"
        );
        // A client that sends its body slowly keeps the only place.
        let mut slow = TcpStream::connect(server.address()).expect("it listens");
        write!(
            slow,
            "POST /agreements HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: 9\r\n\
             expect: 100-continue\r\n\r\n",
            server.key()
        )
        .expect("it reads");
        let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
        slow.read_exact(&mut asked)
            .expect("it asks for the body once it has the place");
        let busy = |path: &'static str| {
            let client = client.clone();
            let look = move || {
                let client = client.clone();
                crate::support::block_on(async move { client.get(path).await })
            };
            let mut answer = look();
            poll_until(Duration::from_secs(10), || {
                answer = look();
                answer.status == StatusCode::SERVICE_UNAVAILABLE
            });
            answer
        };
        let page = busy("/portal");
        assert_eq!(
            (page.status, page.content_type()),
            (StatusCode::SERVICE_UNAVAILABLE, "text/html"),
            "{page:?}"
        );
        assert!(page.headers.contains_key("content-security-policy"), "{page:?}");
        assert_eq!(page.headers["retry-after"], "1");
        let fault = busy("/agreements");
        assert_eq!(fault.content_type(), "application/xml", "{fault:?}");
    });
}

#[test]
fn a_read_is_answered_under_its_conditions() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let made = client.post("/agreements", later()).await;
        let id = made.created();
        let tag = made.headers["etag"].to_str().expect("a tag is ASCII").to_owned();
        let request_with = |path: &str, name: &'static str, value: &str| {
            let request = client.request(Method::GET, path).header(name, value);
            client.send(request.header("accept", "application/json"))
        };
        for path in [format!("/agreements/{id}"), format!("/agreements/{id}/terms")] {
            for (name, value, status) in [
                ("if-none-match", tag.as_str(), 304),
                ("if-none-match", "*", 304),
                ("if-none-match", &format!("\"7\",, W/{tag},"), 304),
                ("if-none-match", "\"7\"", 200),
                ("if-none-match", "7", 400),
                ("if-match", &tag, 200),
                ("if-match", "*", 200),
                ("if-match", &format!(",{tag}"), 200),
                ("if-match", "\"7\"", 412),
                ("if-match", &format!("W/{tag}"), 412),
            ] {
                let answer = request_with(&path, name, value).await;
                assert_eq!(answer.status.as_u16(), status, "{name}: {value}: {answer:?}");
                if status == 304 {
                    assert!(answer.body.is_empty(), "{answer:?}");
                    assert_eq!(answer.headers["etag"], tag.as_str(), "{answer:?}");
                }
            }
        }
        // What has no entity tag is what any names, and none of a list.
        for (name, value, status) in [
            ("if-none-match", "*", 304),
            ("if-none-match", tag.as_str(), 200),
            ("if-match", &tag, 412),
        ] {
            let answer = request_with("/templates", name, value).await;
            assert_eq!(answer.status.as_u16(), status, "{name}: {value}: {answer:?}");
        }
        // What is not there is told as without a condition.
        for value in ["*", "7"] {
            let nothing = request_with(&format!("/agreements/{}", Uuid::nil()), "if-none-match", value).await;
            assert_eq!(nothing.status, StatusCode::NOT_FOUND, "{nothing:?}");
        }
        terminate(&client, id, &[("if-match", &format!("\"9\",,{tag},"))], REASON).await;
        let changed = request_with(&format!("/agreements/{id}/state"), "if-none-match", &tag).await;
        assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
        assert_eq!(changed.json()["state"], "Terminated", "{changed:?}");
    });
}

#[test]
fn a_key_for_one_effect_is_as_it_is_described() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for (key, status) in [("a b", 400), ("a\tb", 400), ("!~", 201)] {
            let request = client
                .request(Method::POST, "/agreements")
                .header("content-type", "application/xml")
                .header("idempotency-key", key);
            let answer = client.send(request.body(later())).await;
            assert_eq!(answer.status.as_u16(), status, "{key:?}: {answer:?}");
        }
    });
}
