//! A negotiation in four JSON calls, and at the command line.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::offers::{date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_release_on_postgres:
    a_loop_of_four_calls_asks_accepts_changes_and_ends,
);

async fn a_loop_of_four_calls_asks_accepts_changes_and_ends(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let later = hours_ahead(3);
    let window = json!({"start": date_time(later), "end": date_time(later + 3_600)});
    let asked = json!({"nodes": 3, "durationSeconds": 3_600, "window": window});
    let negotiated = client.post_json("/negotiations", &asked).await;
    assert_eq!(negotiated.status, StatusCode::CREATED, "{negotiated:?}");
    let first = negotiated.json()["offers"][0].clone();
    assert_eq!(
        (&first["nodes"], &first["start"]),
        (&3.into(), &window["start"]),
        "{first}"
    );
    assert!(first["heldUntil"].is_string(), "{first}");
    // Held nodes are kept from other clients, which get another offer.
    let other = client.post_json("/negotiations", &asked).await.json();
    assert_ne!(other["offers"][0]["start"], window["start"], "{other}");
    let accepted = client
        .post_json("/agreements", &json!({"offer": first["id"]}))
        .await;
    let id = accepted.created();
    let twice = client
        .post_json("/agreements", &json!({"offer": first["id"]}))
        .await;
    assert_eq!(
        (twice.created(), twice.json()),
        (id, accepted.json()),
        "{twice:?}"
    );
    // Another request in place of the agreement: fewer nodes, everything else as it is.
    let change = json!({"agreement": id, "nodes": 2});
    let quoted = client.post_json("/negotiations", &change).await;
    assert_eq!(quoted.status, StatusCode::CREATED, "{quoted:?}");
    let quote = quoted.json()["offers"][0].clone();
    assert_eq!(
        (&quote["nodes"], &quote["start"]),
        (&2.into(), &window["start"]),
        "{quote}"
    );
    let changed = client
        .post_json("/agreements", &json!({"offer": quote["id"]}))
        .await;
    let new = changed.created();
    assert_ne!(new, id);
    assert_eq!(
        client.get_json(&format!("/agreements/{id}")).await["state"],
        "Complete"
    );
    let ended = client
        .post_json(&format!("/agreements/{new}/terminate"), &json!({}))
        .await;
    assert_eq!(ended.json()["state"], "Terminated", "{ended:?}");
    // A wrong field is named by its pointer, and no negotiation is opened for it.
    for (wrong, pointer) in [
        (json!({"nodes": 40}), "/nodes"),
        (json!({"agreement": "x"}), "/agreement"),
        (json!({"pending": true}), "/pending"),
        (json!({"window": {"begin": 1}}), "/window/begin"),
    ] {
        let refused = client.post_json("/negotiations", &wrong).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{wrong}: {refused:?}"
        );
        assert_eq!(refused.json()["violations"][0]["path"], pointer, "{refused:?}");
    }
    let nobody = client.post_json("/agreements", &json!({"offer": id})).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND, "{nobody:?}");
    server.assert_verified();
}

#[test]
fn offers_are_printed_as_a_table_and_accepted_by_their_id() {
    run(async {
        let server = Server::local();
        let later = hours_ahead(3);
        let (start, end) = (date_time(later), date_time(later + 7_200));
        let print = |arguments: &[&str]| {
            let made = server.run(arguments);
            let text = String::from_utf8_lossy(&made.stdout).into_owned();
            assert!(
                made.status.success(),
                "{arguments:?}: {text}{}",
                String::from_utf8_lossy(&made.stderr)
            );
            text
        };
        let table = print(&[
            "negotiate",
            "--nodes",
            "2",
            "--for",
            "1h",
            "--after",
            &start,
            "--before",
            &end,
            "--app",
            "sleep",
            "--",
            "2",
        ]);
        assert!(table.contains("held until") && table.contains(&start), "{table}");
        let how = table.lines().last().expect("it says how to accept");
        let offer = how.rsplit(' ').next().unwrap_or_default();
        let accepted = print(&["accept", offer]);
        assert!(accepted.contains("runs       sleep 2"), "{accepted}");
        let id = accepted
            .lines()
            .find_map(|line| line.strip_prefix("agreement  "))
            .expect("it has an id");
        let changed = print(&["change", id, "--for", "30m", "--yes"]);
        assert!(changed.contains("runs       sleep 2"), "{changed}");
        let none = server.run(&["negotiate", "--nodes", "5000", "--for", "1h"]);
        assert!(!none.status.success());
        // A hold stands in the way, and the answer has the possible changes.
        let end = date_time(later + 3_600);
        let taken = [
            "negotiate",
            "--nodes",
            "4",
            "--for",
            "1h",
            "--after",
            &start,
            "--before",
            &end,
            "--max-deviation",
            "0",
            "--prefer",
            "start=1,price=2",
        ];
        print(&taken);
        let refused = server.run(&taken);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains("NO_CAPACITY_IN_WINDOW"), "{told}");
        assert!(told.contains("it would fit with"), "{told}");
        let wrong = server.run(&["negotiate", "--prefer", "luck=1"]);
        assert_eq!(wrong.status.code(), Some(2));
        let help = print(&["negotiate", "--help"]);
        assert!(help.contains("--max-deviation 0.5 --prefer"), "{help}");
    });
}
