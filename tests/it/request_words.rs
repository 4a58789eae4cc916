//! Mistakes in requests: each is told in the words of the form that the request came in, never in names of elements of XML.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::offers::{date_time, hours_ahead, now};
use crate::support::random::Random;
use crate::support::run;
use crate::support::server::Server;

/// The prefixes of elements.
const PREFIXES: [&str; 8] = [
    "jsdl:",
    "jsdl-posix:",
    "wsag:",
    "wsag-neg:",
    "arp:",
    "bsp:",
    "wsa:",
    "xs:",
];

/// Asserts that a text names no element of XML.
#[track_caller]
fn assert_no_elements(text: &str, about: &str) {
    for prefix in PREFIXES {
        assert!(!text.contains(prefix), "{prefix} is told about {about}: {text}");
    }
}

/// Members of requests with values that are wrong, or wrong beside others.
fn wrong_members() -> Vec<(&'static str, Value)> {
    let at = hours_ahead(3);
    vec![
        ("nodes", json!("2")),
        ("nodes", json!(40)),
        ("nodes", json!({ "min": 3, "max": 2 })),
        ("nodes", json!([1])),
        ("nodes", json!(1.5)),
        ("durationSeconds", json!("1h")),
        ("durationSeconds", json!(2_000_000_000)),
        ("durationSeconds", json!(-1)),
        (
            "window",
            json!({ "start": date_time(at), "end": date_time(at - 60) }),
        ),
        ("window", json!({ "end": date_time(now() - 9_000) })),
        ("window", json!({ "start": "noon" })),
        (
            "window",
            json!({ "start": date_time(at), "end": date_time(at + 5) }),
        ),
        ("application", json!("mine-coins")),
        ("application", json!("sleep")),
        ("version", json!("7")),
        ("arguments", json!(["soon"])),
        ("arguments", json!([1e300])),
        ("arguments", json!(["1", "2", "3"])),
        ("staging", json!([{ "file": "../a" }])),
        (
            "staging",
            json!([{ "file": "a", "source": "b", "bytes": "many" }]),
        ),
        ("attributes", json!({ "cpus": "8" })),
        ("attributes", json!({ "cpu_architecture": "vax" })),
        ("moldability", json!({ "constantWork": 100 })),
        (
            "moldability",
            json!({ "linear": { "intercept": 1, "slope": 900 } }),
        ),
        (
            "moldability",
            json!({ "table": [{ "nodes": 99, "durationSeconds": 5 }] }),
        ),
        (
            "preemption",
            json!({ "pieces": 3, "interval": 0.25, "independent": false }),
        ),
        (
            "preemption",
            json!({ "pieces": 50, "interval": 0.0001, "independent": true }),
        ),
        ("budget", json!({ "amount": "1", "currency": "XTS" })),
        ("maxDeviation", json!("far")),
        ("fixAt", json!(7)),
        ("weights", json!({ "start": "high" })),
        ("mayChange", json!({ "sizes": true, "until": "soon" })),
        ("resource", json!("nowhere")),
        ("template", json!("none")),
        ("name", json!("a\u{200b}b")),
        ("callback", json!("http://localhost/")),
        ("unknown", json!(1)),
    ]
}

#[test]
fn mistakes_in_json_are_told_without_names_of_elements() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let members = wrong_members();
        let mut random = Random::new(7);
        let mut requests: Vec<Value> = members
            .iter()
            .map(|(name, value)| {
                let mut request = json!({ "nodes": 1, "durationSeconds": 60 });
                request[*name] = value.clone();
                request
            })
            .collect();
        for _ in 0..200 {
            let mut request = json!({});
            for _ in 0..=random.below(4) {
                let (name, value) = random.choose(&members).expect("there are some");
                request[*name] = value.clone();
            }
            requests.push(request);
        }
        let mut refused = 0;
        for request in requests {
            for path in ["/agreements?dryRun=true", "/negotiations?dryRun=true"] {
                let answer = client.post_json(path, &request).await;
                assert!(!answer.status.is_server_error(), "{request}: {answer:?}");
                assert_no_elements(&answer.body, &request.to_string());
                refused += usize::from(!answer.status.is_success());
            }
        }
        assert!(refused > 200, "{refused}");
    });
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let body = r#"{"nodes": 1.0, "durationSeconds": 600.0, "application": "sleep", "arguments": [2.0]}"#;
        let request = client
            .request(reqwest::Method::POST, "/agreements")
            .header("content-type", "application/json")
            .header("accept", "application/json");
        let made = client.send(request.body(body)).await;
        made.created();
        let shown = made.json();
        assert_eq!(
            (&shown["nodes"], &shown["durationSeconds"], &shown["arguments"]),
            (&json!(1), &json!(600), &json!(["2"])),
            "{shown}"
        );
        let refused = client
            .post_json("/agreements", &json!({ "nodes": "2", "durationSeconds": 60 }))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let violations = &refused.json()["violations"];
        assert_eq!(violations[0]["path"], "/nodes", "{violations}");
        let message = violations[0]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("a number"), "{message}");
        assert!(message.ends_with("is expected, not a text"), "{message}");
        let refused = client
            .post_json("/agreements", &json!({ "nodes": 1, "durationSeconds": 60.5 }))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    });
}

#[test]
fn mistakes_at_the_command_line_are_told_by_its_options() {
    run(async {
        let server = Server::local();
        let past = date_time(now() - 9_000);
        for (arguments, told) in [
            (vec!["--nodes", "40", "--for", "1h"], "--nodes"),
            (vec!["--nodes", "1", "--for", "30000d"], "--for"),
            (vec!["--nodes", "1", "--for", "1h", "--before", &past], "--before"),
            (
                vec!["--nodes", "1", "--for", "1h", "--template", "none"],
                "--template",
            ),
            (
                vec!["--nodes", "1", "--for", "1h", "--app", "mine-coins"],
                "--app",
            ),
            (
                vec!["--nodes", "1", "--for", "1h", "--budget", "x EUR"],
                "--budget",
            ),
            (
                vec!["--nodes", "1", "--for", "1h", "--app", "sleep", "--", "soon"],
                "argument 1",
            ),
        ] {
            let all: Vec<&str> = ["negotiate"].into_iter().chain(arguments).collect();
            let output = server.run(&all);
            assert!(!output.status.success(), "{all:?}");
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(words.lines().any(|line| line.trim() == told), "{all:?}: {words}");
            assert_no_elements(&words, &format!("{all:?}"));
            for member in ["durationSeconds", "window/", "\n  /"] {
                assert!(!words.contains(member), "{all:?}: {words}");
            }
        }
    });
}
