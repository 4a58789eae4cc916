//! Offers in JSON: the same offers as documents, refused by the member that is wrong; and choices between terms.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, date_time, hours_ahead, now};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run, size};

/// Mutated requests that are sent; `BESPEAK_TEST_DOCUMENTS` asks for more.
const MUTANTS: usize = 500;

on_both_engines!(
    a_release_on_postgres:
    an_offer_in_json_is_an_offer_like_any_other,
);

async fn post(client: &Client, body: impl Into<String>) -> Answer {
    let request = client
        .request(Method::POST, "/agreements")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    client.send(request.body(body.into())).await
}

#[test]
fn a_start_and_an_end_alone_mean_all_the_time_between_them_for_nodes_without_an_application() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let (start, length) = (hours_ahead(3), 9_000);
        let (begin, end) = (date_time(start), date_time(start + length));
        let window = json!({ "start": begin, "end": end });
        let nodes = json!({ "nodes": 1, "window": window });
        let is_whole = |told: &Value| assert_eq!(told["durationSeconds"], length, "{told}");
        let quoted = async |asked: &Value| {
            let mut asked = asked.clone();
            asked["hold"] = false.into();
            client.post_json("/negotiations", &asked).await.json()["offers"][0].clone()
        };
        let made = post(&client, nodes.to_string()).await;
        made.created();
        is_whole(&made.json());
        assert_eq!(
            (&made.json()["plannedStart"], &made.json()["plannedEnd"]),
            (&json!(begin), &json!(end))
        );
        let offered = quoted(&nodes).await;
        is_whole(&offered);
        assert_eq!(offered["kind"], "exact", "{offered}");
        let arguments = [
            "--json",
            "negotiate",
            "--nodes",
            "1",
            "--no-hold",
            "--after",
            &begin,
            "--before",
            &end,
        ];
        let told = server.run(&arguments);
        let told: Value = serde_json::from_slice(&told.stdout).expect("it is JSON");
        is_whole(&told["offers"][0]);

        // A document means the same, and a change of its end alone leaves its duration.
        let silent = |offer: Offer| {
            let (before, rest) = offer
                .xml()
                .split_once("<arp:Duration>")
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .expect("a duration");
            before + rest.split_once("</arp:Duration>").expect("its end").1
        };
        let document = silent(Offer::reserve(1, 60).within(start, start + length));
        let id = client.post("/agreements", document).await.created();
        is_whole(&client.get_json(&format!("/agreements/{id}")).await);
        let later = json!({ "agreement": id, "window": { "end": date_time(start + 2 * length) } });
        is_whole(&quoted(&later).await);

        // What is left of a time that has begun.
        let begun = json!({ "nodes": 1, "window": { "start": date_time(now() - 600), "end": date_time(now() + 7_200) } });
        let made = post(&client, begun.to_string()).await;
        made.created();
        let seconds = made.json()["durationSeconds"].as_i64().unwrap_or_default();
        assert!((6_600..7_200).contains(&seconds), "{made:?}");

        // An application, or one end of the window alone, says nothing of the duration.
        let job = json!({ "application": "sleep", "arguments": ["1"], "nodes": 1, "window": window });
        let open = json!({ "nodes": 1, "window": { "end": end } });
        for (asked, status) in [
            (job, StatusCode::CREATED),
            (open, StatusCode::UNPROCESSABLE_ENTITY),
        ] {
            let offered = quoted(&asked).await;
            assert_eq!(
                offered["durationSeconds"], 3_600,
                "that of the template: {offered}"
            );
            // Work that never ran has that duration in an agreement, too; nodes alone must state theirs.
            let answer = post(&client, asked.to_string()).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        server.assert_verified();
    });
}

async fn an_offer_in_json_is_an_offer_like_any_other(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let later = hours_ahead(3);
    let request = json!({
        "template": "advance-reservation",
        "name": "<nightly> & \"more\"",
        "application": "sleep",
        "arguments": [2],
        "nodes": 3,
        "durationSeconds": 60,
        "window": {"start": date_time(later), "end": date_time(later + 600)},
    });
    let made = post(&client, request.to_string()).await;
    let id = made.created();
    let shown = made.json();
    assert_eq!(
        (&shown["name"], &shown["nodes"], &shown["plannedStart"]),
        (&request["name"], &request["nodes"], &request["window"]["start"])
    );
    assert_eq!(shown["arguments"], json!(["2"]), "{shown}");
    // Its document is one of WS-Agreement, which the client has checked, and makes the same agreement again.
    let document = client.get(&format!("/agreements/{id}")).await;
    assert_eq!(document.text("Name"), "&lt;nightly&gt; &amp; \"more\"");
    assert_eq!(document.text("TemplateId"), "advance-reservation");
    assert_eq!(document.text("Exact"), "3");
    assert_eq!(document.text("Argument"), "2");
    assert_eq!(document.texts("CustomServiceLevel"), ["completed le deadline"]);
    let xml = Offer::sleep(2, 60).on(3).within(later, later + 600).xml();
    let twin = client.post("/agreements", xml).await.created();
    let (mine, theirs) = (
        client.get_json(&format!("/agreements/{id}/terms")).await,
        client.get_json(&format!("/agreements/{twin}/terms")).await,
    );
    assert_eq!(mine, theirs);
    // Other members that are left out are the template's.
    let least = post(&client, r#"{"nodes": 1, "durationSeconds": 60}"#).await;
    least.created();
    assert_eq!(least.json()["template"], "advance-reservation", "{least:?}");
    let range = json!({"nodes": {"min": 2, "max": 4}, "durationSeconds": 60}).to_string();
    assert_eq!(post(&client, range).await.json()["nodes"], 2);
    // The plan refuses it with the same words as any other.
    let whole = json!({"nodes": 4, "durationSeconds": 600, "window": request["window"]});
    let refused = post(&client, whole.to_string()).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(
        refused.json()["refusal"]["reason"],
        "NO_CAPACITY_IN_WINDOW",
        "{refused:?}"
    );
    server.assert_verified();
}

#[test]
fn what_is_wrong_with_a_request_is_told_by_its_pointer() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let now = hours_ahead(0);
        for (request, mut pointers) in [
            (json!([]), vec![""]),
            (json!({"node": 3, "a/b": 1}), vec!["/node", "/a~1b"]),
            (
                json!({"nodes": 0, "durationSeconds": "1h", "name": 3}),
                vec!["/name", "/nodes", "/durationSeconds"],
            ),
            (json!({"nodes": {"min": 3, "max": 2}}), vec!["/nodes"]),
            (json!({"nodes": {"min": 3}}), vec!["/nodes"]),
            (json!({"nodes": 5}), vec!["/nodes"]),
            (json!({"template": "none"}), vec!["/template"]),
            (json!({"application": "mine-coins"}), vec!["/application"]),
            (
                json!({"application": "sleep", "arguments": ["soon"]}),
                vec!["/arguments/0"],
            ),
            (json!({"arguments": ["1"]}), vec!["/arguments"]),
            (
                json!({"window": {"end": date_time(now - 9_000)}}),
                vec!["/window/end"],
            ),
            (
                json!({"window": {"start": "noon", "end": "2026-11-21T08:00:00"}}),
                vec!["/window/start", "/window/end"],
            ),
            (
                json!({"window": {"start": date_time(now + 9_000), "end": date_time(now + 8_000)}}),
                vec!["", "/window/end"],
            ),
            (
                json!({"budget": {"amount": "12,5", "currency": "euro"}}),
                vec!["/budget/amount", "/budget/currency"],
            ),
            (
                json!({"maxDeviation": -1, "fixAt": 2, "attributes": {"cpu_architecture": "vax"}}),
                vec!["/maxDeviation", "/fixAt", "/attributes/cpu_architecture"],
            ),
            (json!({"weights": {"start": "high"}}), vec!["/weights/start"]),
            (
                json!({"moldability": {"linear": {"slope": -1}}}),
                vec!["/moldability/linear", "/moldability/linear/slope"],
            ),
            (json!({"moldability": {}}), vec!["/moldability"]),
            (
                json!({"moldability": {"constantWork": 100}, "durationSeconds": 60}),
                vec!["/durationSeconds"],
            ),
            // An argument that is missing is none of the request's members.
            (json!({"application": "sleep"}), vec!["/application"]),
        ] {
            let refused = post(&client, request.to_string()).await;
            assert_eq!(
                (refused.status, refused.content_type()),
                (StatusCode::UNPROCESSABLE_ENTITY, "application/problem+json"),
                "{request}: {refused:?}"
            );
            let problem = refused.json();
            let mut found: Vec<_> = problem["violations"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|violation| violation["path"].as_str().unwrap_or_default())
                .collect();
            found.sort_unstable();
            found.dedup();
            pointers.sort_unstable();
            assert_eq!(found, pointers, "{request}: {problem}");
            assert!(
                found.iter().all(|pointer| request.pointer(pointer).is_some()),
                "{request}: {problem}"
            );
        }
        for body in [
            "",
            "{",
            "{\"nodes\": 1, \"nodes\": 2}",
            "{\"nodes\": 1e999}",
            "nil",
        ] {
            assert_eq!(
                post(&client, body).await.status,
                StatusCode::BAD_REQUEST,
                "{body}"
            );
        }
        let long = format!("{{\"name\": \"{}\"}}", "x".repeat(256 * 1_024));
        assert_eq!(post(&client, long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
        for control in [
            json!({"name": "a\u{0}b"}),
            json!({"application": "sleep", "arguments": ["\u{ffff}"]}),
        ] {
            let refused = post(&client, control.to_string()).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        }
        let listed = client.get_json("/agreements").await;
        assert_eq!(listed["agreements"], json!([]));
    });
}

#[test]
fn a_name_has_no_character_that_is_not_seen() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for hidden in ["\u{200b}", "\u{202e}", "\u{feff}"] {
            let named = json!({"nodes": 1, "durationSeconds": 60, "name": format!("a{hidden}b")});
            let refused = post(&client, named.to_string()).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            assert_eq!(refused.json()["violations"][0]["path"], "/name", "{refused:?}");
        }
    });
}

#[test]
fn mutated_requests_are_answered_and_never_fail() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let later = hours_ahead(3);
        let valid = json!({
            "template": "advance-reservation", "name": "n", "application": "sleep", "version": null,
            "arguments": ["2"], "nodes": {"min": 1, "max": 4}, "durationSeconds": 60,
            "attributes": {"cpus": 1, "memory_bytes": 1, "cpu_architecture": "x86_64"},
            "window": {"start": date_time(later), "end": date_time(later + 600)},
            "budget": {"amount": "12.50", "currency": "EUR"}, "maxDeviation": 0.5, "fixAt": 0.5,
            "weights": {"start": 1, "size": 0, "duration": 0, "price": 2},
            "moldability": {"table": [{"nodes": 1, "durationSeconds": 60}]},
            "preemption": {"pieces": 2, "interval": 0.1, "independent": false}
        })
        .to_string();
        let mut random = Random::new(52);
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "null",
            "-1",
            "1e308",
            "99999999999999999999",
            "\\u0000",
            "\\ud800",
            "\u{fffd}",
            "true",
            "0.1",
            "4294967296",
            "\"\"",
            " ",
        ];
        for number in 0..size("BESPEAK_TEST_DOCUMENTS", MUTANTS) {
            let mut bytes = valid.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
                    2 => {
                        let piece = random.choose(&pieces).expect("there are some");
                        bytes.splice(at..at, piece.bytes());
                    }
                    _ => {
                        let to = (at + 20).min(bytes.len());
                        let again = bytes[at..to].to_vec();
                        bytes.splice(at..at, again);
                    }
                }
            }
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let request = client
                .request(Method::POST, "/agreements")
                .header("content-type", "application/json")
                .header("accept", "application/json");
            let answer = client.send(request.body(bytes)).await;
            assert!(
                answer.status.is_client_error() || answer.status == StatusCode::CREATED,
                "mutant {number} is answered {answer:?}:\n{shown}"
            );
        }
        server.assert_verified();
    });
}

/// An offer of one of two sizes: four nodes, or two.
fn one_of_two(start: i64, end: i64) -> String {
    let offer = Offer::reserve(4, 3_600).within(start, end).xml();
    let (before, rest) = offer
        .split_once("<wsag:ServiceDescriptionTerm wsag:Name=\"JOB\"")
        .expect("it has a job");
    let (inside, after) = rest
        .split_once("</wsag:ServiceDescriptionTerm>")
        .expect("it ends");
    let job = format!("<wsag:ServiceDescriptionTerm wsag:Name=\"JOB\"{inside}</wsag:ServiceDescriptionTerm>");
    let smaller = job.replace(">4<", ">2<");
    format!("{before}<wsag:ExactlyOne>{job}{smaller}</wsag:ExactlyOne>{after}")
}

#[test]
fn of_a_choice_the_first_that_can_be_had_is_taken_and_the_answer_says_which() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let later = hours_ahead(3);
        let offer = one_of_two(later, later + 3_600);
        let ask = |accept: &'static str| {
            let request = client
                .request(Method::POST, "/agreements")
                .header("content-type", "application/xml")
                .header("accept", accept);
            request.body(offer.clone())
        };
        let taken =
            |member: u32| json!([{"path": "/wsag:Terms/wsag:All/wsag:ExactlyOne", "members": [member]}]);
        let first = client.send(ask("application/json")).await;
        let id = first.created();
        assert_eq!(
            (&first.json()["nodes"], &first.json()["choices"]),
            (&4.into(), &taken(1)),
            "{first:?}"
        );
        let ended = client.post(&format!("/agreements/{id}/terminate"), "").await;
        assert_eq!(ended.status, StatusCode::OK, "{ended:?}");
        let one = Offer::reserve(1, 3_600).within(later, later + 3_600);
        client.post("/agreements", one.xml()).await.created();
        let second = client.send(ask("application/xml")).await;
        let id = second.created();
        assert_eq!(
            (second.text("Path"), second.text("Member")),
            ("/wsag:Terms/wsag:All/wsag:ExactlyOne", "2")
        );
        let shown = client.get(&format!("/agreements/{id}")).await;
        assert_eq!(shown.texts("Exact"), ["4", "2"], "the offer keeps its words");
        assert_eq!(
            (shown.text("Path"), shown.text("Member")),
            ("/wsag:Terms/wsag:All/wsag:ExactlyOne", "2"),
            "{shown:?}"
        );
        let flat = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(
            (&flat["nodes"], &flat["choices"]),
            (&2.into(), &taken(2)),
            "{flat}"
        );
        // One that is decided later has no choice until then.
        let pended = format!(
            "<wsag:CreatePendingAgreementInput \
             xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">{}</wsag:CreatePendingAgreementInput>",
            one_of_two(later + 7_200, later + 10_800)
        );
        let other = Offer::reserve(1, 3_600).within(later + 7_200, later + 10_800);
        client.post("/agreements", other.xml()).await.created();
        let answer = client.post("/agreements", pended).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
        let path = answer.headers["location"].to_str().expect("a path").to_owned();
        eventually("its decision", Duration::from_mins(1), async || {
            let view = client.get_json(&path).await;
            (view["state"] == "Observed").then(|| assert_eq!(view["choices"], taken(2), "{view}"))
        })
        .await;
        let events = client.get_json(&format!("/agreements/{id}/events")).await;
        let told = events["events"][0]["detail"].as_str().unwrap_or_default();
        assert!(told.contains("chosen: 2 of /wsag:Terms"), "{events}");
        let terms: Value = client.get_json(&format!("/agreements/{id}/terms")).await;
        assert_eq!(terms["terms"][0]["kind"], "exactlyOne", "{terms}");
        // No way is left, and the refusal is about the requester's first choice.
        let refused = client.send(ask("application/json")).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        let why = refused.json()["refusal"]["bindingConstraint"].to_string();
        assert!(why.contains("4 nodes"), "{why}");
        // A way that is wrong is no way, and what is wrong with it is not wrong with the others.
        let half = offer.replacen(">4<", ">40<", 1).replace(">2<", ">1<");
        let made = client.post("/agreements", half).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        assert_eq!(made.text("Member"), "2", "{made:?}");
        let wrong = offer.replacen(">4<", ">40<", 1).replace(">2<", ">41<");
        let refused = client.post("/agreements", wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        assert!(
            refused.text("Path").contains("/wsag:ServiceDescriptionTerm[1]/"),
            "{refused:?}"
        );
        server.assert_verified();
    });
}
