//! The command line: each command once as it should be used, and its exit status when it fails.

use std::process::Output;

use crate::support::offers::{Offer, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};
use std::time::Duration;

on_both_engines!(
    a_release_on_postgres:
    the_client_commands_follow_an_offer_to_its_end,
    a_revoked_key_lets_nobody_in,
);

async fn the_client_commands_follow_an_offer_to_its_end(url: String) {
    let server = Server::start(&url);
    let templates = succeeds(&server.run(&["templates"]));
    assert!(templates.contains("advance-reservation"), "{templates}");
    let sleep = example("sleep.xml");
    let offered = succeeds(&server.run(&["offer", &sleep, "--json"]));
    let agreement: serde_json::Value = serde_json::from_str(&offered).expect("--json prints JSON");
    let id = agreement["id"].as_str().expect("an id").to_owned();
    let listed = succeeds(&server.run(&["agreements"]));
    assert!(listed.contains(&id), "{listed}");
    let shown = succeeds(&server.run(&["show", &id]));
    assert!(shown.contains(&id) && shown.contains("COMPLETION"), "{shown}");
    let watched = succeeds(&server.run(&["watch", &id]));
    assert!(
        watched.contains("Complete") && watched.contains("completed"),
        "{watched}"
    );
    // A reservation is still there to be terminated.
    let reserved = succeeds(&server.run(&["offer", &example("reserve-nodes.xml"), "--json"]));
    let reserved: serde_json::Value = serde_json::from_str(&reserved).expect("--json prints JSON");
    let id = reserved["id"].as_str().expect("an id").to_owned();
    succeeds(&server.run(&["terminate", &id]));
    eventually("the end of the reservation", Duration::from_mins(1), async || {
        succeeds(&server.run(&["show", &id]))
            .contains("Terminated")
            .then_some(())
    })
    .await;
    assert_eq!(
        fails(&server.run(&["watch", &id])).0,
        1,
        "an agreement that did not complete"
    );
    server.assert_verified();
}

#[test]
fn a_command_that_cannot_be_carried_out_says_why_by_its_exit_status() {
    run(async {
        let mut server = Server::local();
        let unknown = "01900000-0000-7000-8000-000000000000";
        for (status, arguments, said) in [
            (1, &["show", unknown][..], ""),
            (1, &["terminate", unknown], ""),
            (2, &["offer", &example("wrong/wrong-argument.xml")], "Argument"),
            (2, &["offer", &example("wrong/malformed.xml")], ""),
            (2, &["offer", "no-such-file.xml"], "no-such-file.xml"),
            (1, &["show", "no-id"], "no-id"),
            (2, &["no-such-command"], "no-such-command"),
            (
                3,
                &["agreements", "--server", "http://127.0.0.1:1"],
                "127.0.0.1:1",
            ),
            (4, &["agreements", "--key", "wrong"], ""),
        ] {
            let (code, errors) = fails(&server.run(arguments));
            assert_eq!(code, status, "{arguments:?}: {errors}");
            assert!(errors.contains(said), "{arguments:?}: {errors}");
        }
        assert!(
            server.stop().success(),
            "a service that is asked to stop ends well"
        );
        let (code, errors) = fails(&server.run(&["agreements"]));
        assert_eq!(code, 3, "{errors}");
        assert!(errors.contains("is the service running?"), "{errors}");
    });
}

#[test]
fn an_agreement_is_named_by_the_beginning_of_its_id() {
    run(async {
        let server = Server::local();
        let made = |name: &str| {
            let offer = succeeds(&server.run(&["offer", &example(name), "--json"]));
            let offer: serde_json::Value = serde_json::from_str(&offer).expect("--json prints JSON");
            offer["id"].as_str().expect("an id").to_owned()
        };
        let first = made("reserve-nodes.xml");
        let shown = succeeds(&server.run(&["show", &first[..8]]));
        assert!(shown.contains(&first), "{shown}");
        // The first digits of an id are its time, the last ones chance.
        let second = made("sleep.xml");
        let (code, errors) = fails(&server.run(&["show", &first[..4]]));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("give more digits"), "{errors}");
        let (code, errors) = fails(&server.run(&["terminate", "0000"]));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("begins with 0000"), "{errors}");
        succeeds(&server.run(&["terminate", first[..35].to_uppercase().as_str()]));
        let shown = succeeds(&server.run(&["show", &second[..35]]));
        assert!(shown.contains(&second), "{shown}");
    });
}

#[test]
fn a_failure_is_bare_json_where_json_is_wanted_and_a_refusal_tells_how_it_is_explained() {
    run(async {
        let server = Server::local();
        let unknown = "01900000-0000-7000-8000-000000000000";
        for (status, arguments, member) in [
            (1, &["show", unknown, "--json"][..], "code"),
            (4, &["agreements", "--json", "--key", "wrong"], "code"),
            (2, &["agreements", "--json", "--limit", "many"], "detail"),
            (
                2,
                &["--json", "verify", "--server", "http://127.0.0.1:1"],
                "detail",
            ),
            (2, &["--json", "offer", "no-such-file.xml"], "detail"),
            (
                3,
                &["agreements", "--json", "--server", "http://127.0.0.1:1"],
                "detail",
            ),
        ] {
            let output = server.run(arguments);
            assert_eq!(output.status.code(), Some(status), "{output:?}");
            assert!(output.stderr.is_empty(), "{output:?}");
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            assert!(told[member].is_string(), "{told}");
        }
        // All nodes for an hour, twice.
        let start = hours_ahead(3);
        let offer = Offer::reserve(4, 3_600).within(start, start + 3_600);
        let document = server.data_dir().join("offer.xml");
        std::fs::write(&document, offer.xml()).expect("a file can be written");
        let document = document.to_str().expect("a path is a text");
        succeeds(&server.run(&["offer", document]));
        let (code, errors) = fails(&server.run(&["offer", document]));
        assert_eq!(code, 1, "{errors}");
        let id = errors
            .split("bespeak explain ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_else(|| panic!("it does not say how: {errors}"));
        let explained = succeeds(&server.run(&["explain", id]));
        assert!(explained.contains("which was refused at"), "{explained}");
        let output = server.run(&["offer", document, "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(told["refusal"]["reason"], "NO_CAPACITY_IN_WINDOW", "{told}");
        assert!(output.stderr.is_empty(), "{output:?}");
    });
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    run(async {
        let server = Server::local();
        let output = server.run_into_nothing(&["agreements"]);
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    });
}

async fn a_revoked_key_lets_nobody_in(url: String) {
    let server = Server::start(&url);
    let key = server.key_for("physics", "consumer");
    assert!(
        server
            .client_with(&key)
            .get("/agreements")
            .await
            .status
            .is_success()
    );
    let listed = succeeds(&server.run(&["key", "list"]));
    assert!(!listed.contains(&key), "a list of keys shows no key: {listed}");
    let line = listed
        .lines()
        .find(|line| line.contains("physics"))
        .expect("the party is listed");
    let id = line.split_whitespace().next().expect("an id comes first");
    succeeds(&server.run(&["key", "revoke", id]));
    assert_eq!(
        server.client_with(&key).get("/agreements").await.status.as_u16(),
        401
    );
    assert!(!server.log().contains(&key), "a key stands in the log");
    assert!(
        !server.log().contains(server.key()),
        "the operator's key stands in the log"
    );
}

pub(crate) fn example(name: &str) -> String {
    assert!(!file(&format!("examples/{name}")).is_empty());
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn fails(output: &Output) -> (i32, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
