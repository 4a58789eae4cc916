//! The states that operators set for nodes: they last, the plan is repaired, and all parties see the reason.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

on_both_engines!(
    what_an_operator_says_moves_what_is_planned_and_is_known_after_a_crash;
    a_release_on_postgres:
    work_on_a_node_that_is_said_to_be_down_is_lost_and_on_a_drained_one_it_ends,
    a_saying_that_means_nothing_is_refused,
    nodes_are_listed_and_said_at_the_command_line,
    what_an_operator_says_is_in_the_trail_with_who_and_why,
    all_resources_are_asked_about_at_once,
);

/// How long a test waits for an event that should come within seconds, on a machine that may be busy.
const SOON: Duration = Duration::from_mins(1);

async fn say(client: &Client, path: &str, body: &Value) -> Answer {
    let request = client
        .request(Method::PUT, path)
        .header("accept", "application/json");
    client.send(request.json(body)).await
}

async fn standing(client: &Client, node: usize) -> Value {
    client.get_json("/resources/local/nodes").await["nodes"][node].clone()
}

async fn what_an_operator_says_moves_what_is_planned_and_is_known_after_a_crash(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let later = hours_ahead(2);
    // Both at once on four nodes; one after the other on two.
    let mut ids = Vec::new();
    for end in [later + 3_600, later + 7_200] {
        let offer = Offer::reserve(2, 3_600).within(later, end);
        ids.push(client.post("/agreements", offer.xml()).await.created());
    }
    let start = async |client: &Client, nth: usize| {
        client.get_json(&format!("/agreements/{}", ids[nth])).await["plannedStart"].clone()
    };
    let before = start(&client, 1).await;
    assert_eq!(start(&client, 0).await, before);
    let saying = json!({ "state": "drained", "reason": "new disks" });
    let dry = say(&client, "/resources/local/nodes/0,3?dryRun=true", &saying).await;
    assert_eq!(dry.status, StatusCode::OK, "{dry:?}");
    assert_eq!(standing(&client, 3).await["state"], "up", "nothing is changed");
    assert_eq!(start(&client, 1).await, before);
    let said = say(&client, "/resources/local/nodes/0,3", &saying).await;
    assert_eq!(said.status, StatusCode::OK, "{said:?}");
    let said = said.json();
    let (mut dry, mut real) = (dry.json(), said.clone());
    for answer in [&mut dry, &mut real] {
        for node in answer["nodes"].as_array_mut().expect("a list") {
            node["said"][0]["since"].take();
        }
    }
    assert_eq!(dry, real);
    assert_eq!(
        (&said["lost"], &said["moved"], &said["broken"]),
        (&json!(0), &json!(1), &json!(0)),
        "{said}"
    );
    assert_ne!(start(&client, 1).await, before);
    let told = client.get_json(&format!("/agreements/{}/events", ids[1])).await;
    assert!(
        told.to_string().contains("nodes of local are out of use"),
        "{told}"
    );
    let seen = standing(&client, 3).await;
    assert_eq!(
        (&seen["state"], &seen["said"][0]["by"], &seen["said"][0]["reason"]),
        (&json!("drained"), &json!("operator"), &json!("new disks"))
    );
    server.kill9();
    server.restart();
    let client = server.client();
    assert_eq!(standing(&client, 3).await, seen, "the report is stored");
    let resources = client.get_json("/resources").await;
    let local = &resources["resources"][0];
    assert_eq!(
        (&local["up"], &local["drained"], &local["troubles"]),
        (&json!(2), &json!(2), &json!([]))
    );
    // Another reason leaves it since when it was; back, both have room at once again.
    let saying = json!({ "state": "drained", "reason": "new disks and a fan" });
    say(&client, "/resources/local/nodes/3", &saying).await;
    let again = standing(&client, 3).await;
    assert_eq!(again["said"][0]["since"], seen["said"][0]["since"]);
    assert_eq!(again["said"][0]["reason"], "new disks and a fan");
    say(&client, "/resources/local/nodes/[0-3]", &json!({ "state": "up" })).await;
    assert_eq!(standing(&client, 3).await["said"], json!([]));
    let offer = Offer::reserve(2, 3_600).within(later, later + 3_600);
    assert_eq!(
        client.post("/agreements", offer.xml()).await.status,
        StatusCode::CREATED,
        "four nodes are there again"
    );
    server.assert_verified();
}

async fn work_on_a_node_that_is_said_to_be_down_is_lost_and_on_a_drained_one_it_ends(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let lost = Offer::sleep(600, 900).on(2);
    let lost = client.post("/agreements", lost.xml()).await.created();
    let kept = client
        .post("/agreements", Offer::sleep(1, 600).xml())
        .await
        .created();
    for id in [lost, kept] {
        eventually("its start", SOON, async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            shown["started"].is_string().then_some(())
        })
        .await;
    }
    // The first two are the first one's, the third the second one's.
    say(
        &client,
        "/resources/local/nodes/2",
        &json!({ "state": "drained" }),
    )
    .await;
    let said = say(&client, "/resources/local/nodes/1", &json!({ "state": "down" })).await;
    assert_eq!(said.json()["lost"], 1, "{said:?}");
    for (id, outcome) in [(lost, "lost"), (kept, "completed")] {
        eventually("its end", SOON, async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            let outcome = shown["outcome"] == outcome && shown["state"] == "Complete";
            outcome.then_some(())
        })
        .await;
    }
    server.assert_verified();
}

async fn a_saying_that_means_nothing_is_refused(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let up = json!({ "state": "up" });
    for path in [
        "/resources/other/nodes/0",
        "/resources/local/nodes/4",
        "/resources/local/nodes/0,m1",
        "/resources/local/nodes/[0-",
        "/resources/local/nodes/-1",
        "/resources/local/nodes/%ff",
    ] {
        assert_eq!(
            say(&client, path, &up).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let node = "/resources/local/nodes/0";
    let wrong = say(&client, node, &json!({ "state": "asleep", "who": "me" })).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let paths: Vec<_> = wrong.json()["violations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|each| each["path"].clone())
        .collect();
    assert_eq!(paths, ["/who", "/state"]);
    let form = client.request(Method::PUT, node).body("state=up");
    let refused = client.send(form).await;
    assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{refused:?}");
    assert_eq!(
        client.get("/resources/other/nodes").await.status,
        StatusCode::NOT_FOUND
    );
}

async fn nodes_are_listed_and_said_at_the_command_line(url: String) {
    let server = Server::start(&url);
    let run = |arguments: &[&str]| {
        let output = server.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, output.stderr)
    };
    let (_, said, _) = run(&["nodes", "local", "1", "--set", "down", "--dry-run"]);
    assert!(said.contains("it would be so: 0 lost their work"), "{said}");
    let (_, listed, _) = run(&["nodes", "local"]);
    assert!(!listed.contains("down"), "{listed}");
    let (status, said, wrong) = run(&[
        "nodes",
        "local",
        "1",
        "[2-3]",
        "--set",
        "down",
        "--reason",
        "power cut",
    ]);
    assert_eq!(status, Some(0), "{}", String::from_utf8_lossy(&wrong));
    assert!(
        said.ends_with("0 lost their work, 0 moved, 0 have no place any more; 0 held offers withdrawn\n"),
        "{said}"
    );
    let (_, listed, _) = run(&["nodes"]);
    let words: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        words[0],
        ["RESOURCE", "NUMBER", "NODE", "STATE", "SINCE", "REASON"]
    );
    assert_eq!(words[1], ["local", "0", "0", "up"]);
    assert_eq!(words[3][..4], ["local", "2", "2", "down"]);
    assert_eq!(words[3][5..], ["operator:", "down,", "power", "cut"], "{listed}");
    assert_eq!(words.len(), 5);
    let (_, resources, _) = run(&["resources"]);
    let line = resources.lines().nth(1).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        words,
        ["local", "local", "in-service", "4", "1", "0", "3", "1"],
        "{resources}"
    );
    let (_, listed, _) = run(&["nodes", "local", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("it is JSON");
    assert_eq!(listed[0]["nodes"][2]["state"], "down");
    assert_eq!(run(&["nodes", "local", "9", "--set", "up"]).0, Some(1));
    assert_eq!(run(&["nodes", "local", "1"]).0, Some(2), "a state is missing");
    assert_eq!(run(&["nodes", "local", "--set", "up"]).0, Some(2), "which?");
    let key = server.key_for("physics", "consumer");
    assert_eq!(run(&["nodes", "--key", &key]).0, Some(4), "for operators only");
}

async fn what_an_operator_says_is_in_the_trail_with_who_and_why(url: String) {
    let server = Server::start(&url);
    let night = server.client_with(&server.key_for("night-shift", "operator"));
    let saying = json!({ "state": "down", "reason": "power cut" });
    say(&night, "/resources/local/nodes/[0-1],3", &saying).await;
    say(&night, "/resources/local/nodes/3", &json!({ "state": "up" })).await;
    let wrong = say(&night, "/resources/local/nodes/9", &saying).await;
    assert_eq!(wrong.status, StatusCode::NOT_FOUND);
    let trail = server.client().get_json("/events").await;
    let said: Vec<_> = trail["lines"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|line| line["kind"] == "nodes-said")
        .map(|line| (line["party"].clone(), line["detail"].clone()))
        .collect();
    let by = |detail: &str| (json!("night-shift"), json!(detail));
    let expected = [by("[0-1],3 of local: down, power cut"), by("3 of local: up")];
    assert_eq!(said, expected, "{trail}");
    let printed = server.run(&["trail"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("power cut"));
    server.assert_verified();
}

#[test]
fn nodes_are_named_by_numbers_by_ranges_and_by_short_names() {
    run(async {
        let server = Server::local();
        let asked = |words: &str| {
            let line = format!("--json nodes local {words} --set drained --dry-run");
            server.run(&line.split(' ').collect::<Vec<_>>())
        };
        for words in ["0,1,2", "0-2", "n[0-2]", "n0,1-2", "2,0-1"] {
            let output = asked(words);
            assert!(output.status.success(), "{words}: {output:?}");
            let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            let nodes = told["nodes"].as_array().expect("the nodes").iter();
            let stand: Vec<_> = nodes.map(|node| json!([node["number"], node["state"]])).collect();
            let expected = [0, 1, 2].map(|number| json!([number, "drained"]));
            assert_eq!(stand, expected, "{words}");
        }
        for words in ["0-4", "2-1", "n4", "m[0-1]", "0-"] {
            assert_eq!(asked(words).status.code(), Some(1), "{words}");
        }
    });
}

async fn all_resources_are_asked_about_at_once(url: String) {
    const RESOURCES: u32 = 8;
    const TIMES: u32 = 10;
    let resource = |number| format!("[[resource]]\nname = \"r{number}\"\nkind = \"local\"\nnodes = 4\n");
    let configuration: String = (0..RESOURCES).map(resource).collect();
    let server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    say(&client, "/resources/r3/nodes/1", &json!({ "state": "drained" })).await;
    let commands = async || {
        let text = client.get("/metrics").await.body;
        let sum = text
            .lines()
            .find_map(|line| line.strip_prefix("bespeak_planner_batch_commands_sum "));
        sum.and_then(|sum| sum.parse::<f64>().ok())
            .expect("it is counted")
    };
    let before = commands().await;
    for _ in 0..TIMES {
        let listed = client.get_json("/resources").await;
        let counts = |value: &Value| {
            (
                value["up"].clone(),
                value["drained"].clone(),
                value["down"].clone(),
            )
        };
        let listed = listed["resources"].as_array().expect("a list");
        assert_eq!(counts(&listed[3]), (json!(3), json!(1), json!(0)));
        assert_eq!(counts(&listed[7]), (json!(4), json!(0), json!(0)));
    }
    let asked = commands().await - before;
    // The planner has its own business besides.
    assert!(asked < f64::from(TIMES * RESOURCES / 2), "{asked} commands");
}
