//! `bespeak key` and `bespeak verify` as an operator runs them, on both engines, beside a service that has the lease.

use std::process::{Command, Output};

use access::{Access, Role};
use domain::clock::Clock;
use serde_json::Value;
use store::Store;

use crate::store::{agreement, create, decide, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    verify_says_that_nothing_is_wrong_or_what_is;
    a_release_on_postgres:
    a_key_that_is_made_works_until_it_is_revoked,
    a_key_for_nobody_or_for_too_long_is_refused,
);

/// Runs the real executable on a database, in a folder without data of a service: those would be of another database.
fn bespeak(url: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    Command::new(env!("CARGO_BIN_EXE_bespeak"))
        .args(arguments)
        .args(["--database-url", url])
        .env_clear()
        .current_dir(&folder)
        .output()
        .expect("the executable can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn succeed(url: &str, arguments: &[&str]) -> String {
    let output = bespeak(url, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn fail(url: &str, arguments: &[&str], status: i32) -> String {
    let output = bespeak(url, arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stderr)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn a_key_that_is_made_works_until_it_is_revoked(url: String) {
    let (store, _lease) = decide(&url).await;
    let access = Access::new(store, Clock::system());
    let add = [
        "key", "add", "--party", "physics", "--role", "consumer", "--label", "laptop",
    ];
    let key = succeed(&url, &add);
    let caller = access
        .authenticate(&key)
        .await
        .expect("an answer")
        .expect("it works");
    assert_eq!((caller.party.as_str(), caller.role), ("physics", Role::Consumer));
    let add = [
        "key",
        "add",
        "--party",
        "ops",
        "--role",
        "operator",
        "--expires",
        "30d",
        "--json",
    ];
    let made = json(&succeed(&url, &add));
    let operator = made["key"].as_str().expect("the key is told");
    let caller = access
        .authenticate(operator)
        .await
        .expect("an answer")
        .expect("it works");
    assert_eq!(caller.role, Role::Operator);

    let listed = json(&succeed(&url, &["key", "list", "--json"]));
    assert_eq!(listed[0]["party"], "physics");
    assert_eq!(listed[0]["expires"], Value::Null);
    assert_eq!(
        (&listed[1]["id"], &listed[1]["expires"]),
        (&made["id"], &made["expires"])
    );
    let human = succeed(&url, &["key", "list"]);
    assert!(
        human.lines().nth(1).is_some_and(|line| line.ends_with("laptop")),
        "{human}"
    );
    assert!(!human.contains(&key) && !human.contains(operator), "{human}");

    let id = made["id"].as_str().expect("the id is told");
    succeed(&url, &["key", "revoke", id]);
    assert_eq!(access.authenticate(operator).await.expect("an answer"), None);
    assert_eq!(
        json(&succeed(&url, &["key", "list", "--json"]))[1]["state"],
        "revoked"
    );
    let again = fail(&url, &["key", "revoke", id], 1);
    assert!(again.contains(id), "{again}");
}

async fn a_key_for_nobody_or_for_too_long_is_refused(url: String) {
    Store::open(&url).await.expect("an empty database can be opened");
    let add = |more: &[&'static str]| [&["key", "add", "--role", "consumer"], more].concat();
    fail(&url, &add(&["--party", " "]), 2);
    fail(&url, &add(&["--party", "a", "--label", "a\nb"]), 2);
    fail(&url, &add(&["--party", "a", "--expires", "36501d"]), 2);
    fail(&url, &["key", "add", "--party", "a", "--role", "king"], 2);
    fail(&url, &["key", "revoke", "1"], 2);
    assert_eq!(succeed(&url, &["key", "list", "--json"]), "[]");
}

async fn verify_says_that_nothing_is_wrong_or_what_is(url: String) {
    let (store, lease) = decide(&url).await;
    let stored = agreement("a");
    store
        .commit(lease.epoch, &[create(&stored)])
        .await
        .expect("it can be stored");
    assert_eq!(succeed(&url, &["verify"]), "nothing is wrong");
    assert_eq!(
        json(&succeed(&url, &["verify", "--json"]))["findings"],
        Value::Array(vec![])
    );
    tamper(&url, "DELETE FROM events").await;
    let wrong = bespeak(&url, &["verify"]);
    assert_eq!(wrong.status.code(), Some(1));
    let said = text(&wrong.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let timeline = format!("I6: agreement {}: it has no timeline", stored.id);
    assert!(lines.contains(&timeline.as_str()), "{said}");
    let trail = "I10: audit trail: it ends with line 0, and line 1 was the last";
    assert!(lines.contains(&trail), "{said}");
    let wrong = json(&text(&bespeak(&url, &["verify", "--json"]).stdout));
    let findings = wrong["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), lines.len());
    assert!(
        findings
            .iter()
            .any(|finding| finding["invariant"] == "I6" && finding["what"] == "it has no timeline")
    );
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("none.db");
    let url = format!("sqlite:{}", file.display());
    for command in [&["verify"][..], &["key", "list"]] {
        let said = fail(&url, command, 2);
        assert!(said.contains("none.db"), "{said}");
        assert!(!file.exists(), "{command:?} made one");
    }
}

#[test]
fn a_configuration_that_is_wrong_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("bespeak.toml");
    std::fs::write(&config, "horizon_dais = 3").expect("it can be written");
    let config = config.to_str().expect("a plain path");
    for command in [&["verify"][..], &["key", "list"]] {
        let said = fail("sqlite:none", &[command, &["--config", config]].concat(), 2);
        assert!(said.contains("horizon_dais"), "{said}");
    }
}
