//! The command line: each command once as it should be used, and its exit status when it fails.

use std::process::Output;

use crate::support::offers::file;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};
use std::time::Duration;

on_both_engines!(
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
    eventually(
        "the end of the reservation",
        Duration::from_secs(20),
        async || {
            succeeds(&server.run(&["show", &id]))
                .contains("Terminated")
                .then_some(())
        },
    )
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
            (2, &["show", "no-id"], "no-id"),
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

fn example(name: &str) -> String {
    assert!(!file(&format!("examples/{name}")).is_empty());
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fails(output: &Output) -> (i32, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
