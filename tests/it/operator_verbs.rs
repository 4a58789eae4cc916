//! What operators do beside the ordinary course of things: they freeze and thaw resources.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::resources::{HOUR, created, done, homes, listed, local, running, show};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(a_frozen_resource_takes_nothing_new_and_keeps_what_is_agreed);

/// The details of an operator's lines of a kind in the trail.
async fn words_in_trail(server: &Server, kind: &str) -> Vec<Value> {
    let trail = server.client().get_json("/events").await;
    let lines = trail["lines"].as_array().into_iter().flatten();
    let own = lines.filter(|line| line["kind"] == kind && line["party"] == "operator");
    own.map(|line| line["detail"].clone()).collect()
}

/// Runs a line of the command line.
fn run(server: &Server, line: &str) -> (Option<i32>, String, String) {
    let output = server.run(&line.split(' ').collect::<Vec<_>>());
    let [text, errors] = [output.stdout, output.stderr].map(|of| String::from_utf8(of).expect("it is text"));
    (output.status.code(), text, errors)
}

async fn a_frozen_resource_takes_nothing_new_and_keeps_what_is_agreed(url: String) {
    let mut server = Server::configured(Some(&url), &(local("large", 4) + &local("small", 2)));
    let client = server.client();
    let job = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, job).await;
    let later = hours_ahead(2);
    let within = |nodes| Offer::reserve(nodes, HOUR).within(later, later + HOUR);
    let waiting = created(&client, &within(2)).await;
    let talks = client
        .post_json("/negotiations", &json!({ "nodes": 1, "durationSeconds": HOUR }))
        .await;
    let offered = talks.json()["offers"][0].clone();
    assert_eq!(offered["resource"], "large", "{offered}");
    let asked = done(
        &client
            .post_json("/resources/large/freeze?dryRun=true", &json!({}))
            .await,
    );
    assert_eq!(asked["resources"][0]["change"], "frozen");
    assert_eq!(
        listed(&client, "large").await["state"],
        "in-service",
        "it was only asked"
    );
    let frozen = done(&client.post_json("/resources/large/freeze", &json!({})).await);
    assert_eq!(frozen["moved"], json!([]), "{frozen}");

    server.kill9();
    server.restart();
    let client = server.client();
    let large = listed(&client, "large").await;
    assert_eq!(large["state"], "frozen", "{large}");
    assert!(large["frozenSince"].is_string(), "{large}");
    assert_eq!(homes(&client, &[job, waiting]).await, ["large", "large"]);
    assert_eq!(show(&client, job).await["serviceState"], "Processing");
    let refused = client
        .post_json("/agreements", &json!({ "nodes": 3, "durationSeconds": HOUR }))
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    let told = refused.json().to_string();
    assert!(told.contains("large is frozen by the operator"), "{told}");
    let elsewhere = created(&client, &within(1)).await;
    assert_eq!(homes(&client, &[elsewhere]).await, ["small"]);
    let fresh = client
        .post_json("/negotiations", &json!({ "nodes": 1, "durationSeconds": HOUR }))
        .await;
    assert_eq!(fresh.json()["offers"][0]["resource"], "small", "{fresh:?}");
    // It was promised before.
    let kept = client
        .post_json("/agreements", &json!({ "offer": offered["id"] }))
        .await;
    assert_eq!(kept.json()["resource"], "large", "{kept:?}");
    let (status, told, errors) = run(&server, "resources thaw large");
    assert_eq!(
        (status, told.lines().next()),
        (Some(0), Some("large: thawed")),
        "{errors}"
    );
    let back = created(&client, &within(1)).await;
    assert_eq!(homes(&client, &[back]).await, ["large"]);
    let nowhere = client.post_json("/resources/none/freeze", &json!({})).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert_eq!(
        words_in_trail(&server, "resource-changed").await,
        ["large: frozen", "large: thawed"]
    );
    server.assert_verified();
}
