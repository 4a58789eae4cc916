//! Resources come and go while the service serves: by its operators, and by its configuration file.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// How long a test waits for an event that should come within seconds, on a machine that may be busy.
pub(crate) const SOON: Duration = Duration::from_mins(1);
pub(crate) const HOUR: i64 = 3_600;

on_both_engines!(
    a_service_that_is_killed_meanwhile_has_each_change_whole_or_not_at_all;
    a_release_on_postgres:
    a_resource_is_added_under_load_and_runs_jobs_from_then_on,
    fewer_nodes_move_and_break_what_waits_as_the_dry_run_said,
    a_retired_resource_takes_nothing_new_and_its_job_goes_on,
    other_resources_in_the_file_do_not_keep_the_service_from_starting,
    a_word_of_an_operator_holds_until_the_file_says_something_else,
    a_signal_has_a_good_file_taken_over_and_a_faulty_one_refused,
    resources_are_changed_at_the_command_line,
);

/// A resource in a configuration.
pub(crate) fn local(name: &str, nodes: u32) -> String {
    format!("[[resource]]\nname = \"{name}\"\nkind = \"local\"\nnodes = {nodes}\n")
}

pub(crate) async fn put(client: &Client, path: &str, body: &Value) -> Answer {
    let request = client
        .request(Method::PUT, path)
        .header("accept", "application/json");
    client.send(request.json(body)).await
}

/// The answer to a change that is possible.
pub(crate) fn done(answer: &Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

/// A resource as it is listed.
pub(crate) async fn listed(client: &Client, name: &str) -> Value {
    let all = client.get_json("/resources").await;
    let mut all = all["resources"].as_array().into_iter().flatten();
    all.find(|each| each["name"] == name)
        .unwrap_or_else(|| panic!("there is no {name}"))
        .clone()
}

pub(crate) async fn show(client: &Client, id: Uuid) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

pub(crate) async fn created(client: &Client, offer: &Offer) -> Uuid {
    client.post("/agreements", offer.xml()).await.created()
}

pub(crate) async fn running(client: &Client, id: Uuid) {
    eventually("its start", SOON, async || {
        show(client, id).await["started"].is_string().then_some(())
    })
    .await;
}

/// Where agreements are.
async fn places(client: &Client, ids: &[Uuid]) -> Vec<[Value; 3]> {
    let mut places = Vec::new();
    for id in ids {
        let shown = show(client, *id).await;
        places.push(["state", "resource", "plannedStart"].map(|each| shown[each].clone()));
    }
    places
}

/// The resources on which agreements are.
pub(crate) async fn homes(client: &Client, ids: &[Uuid]) -> Vec<Value> {
    let places = places(client, ids).await;
    places.into_iter().map(|[_, resource, _]| resource).collect()
}

/// The agreements in a list of an answer.
pub(crate) fn ids(list: &Value) -> Vec<Uuid> {
    let list = list.as_array().into_iter().flatten();
    list.map(|each| {
        each["agreement"]
            .as_str()
            .unwrap_or_default()
            .parse()
            .expect("an id")
    })
    .collect()
}

async fn a_resource_is_added_under_load_and_runs_jobs_from_then_on(url: String) {
    const OFFERS: i64 = 24;
    let mut server = Server::configured(Some(&url), &local("small", 1));
    let client = server.client();
    let busy = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, busy).await;
    let mut offering = JoinSet::new();
    for nth in 0..OFFERS {
        let client = server.client();
        offering.spawn(async move {
            let start = hours_ahead(2 + 2 * nth);
            created(&client, &Offer::reserve(1, HOUR).within(start, start + HOUR)).await
        });
    }
    let wish = json!({ "nodes": 2, "rate": 2, "attributes": { "cpus": 8 } });
    let added = done(&put(&client, "/resources/more", &wish).await);
    assert_eq!(
        added["resources"][0]["change"], "added, local with 2 nodes",
        "{added}"
    );
    let offered = offering.join_all().await;
    let ended = created(&client, &Offer::sleep(0, 900)).await;
    let shown = eventually("its end", SOON, async || {
        let shown = show(&client, ended).await;
        (shown["state"] == "Complete").then_some(shown)
    })
    .await;
    assert_eq!(
        (&shown["resource"], &shown["outcome"]),
        (&json!("more"), &json!("completed"))
    );
    let kept = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, kept).await;
    server.kill9();
    server.restart();
    let client = server.client();
    let more = listed(&client, "more").await;
    let expected = json!([2, 2.0, { "cpus": 8 }, "in-service"]);
    assert_eq!(
        json!([more["nodes"], more["rate"], more["attributes"], more["state"]]),
        expected
    );
    for id in offered.into_iter().chain([busy, kept]) {
        assert_eq!(show(&client, id).await["state"], "Observed");
    }
    let again = done(&put(&client, "/resources/more", &wish).await);
    assert_eq!(again["resources"][0]["change"], "", "{again}");
    server.assert_verified();
}

async fn fewer_nodes_move_and_break_what_waits_as_the_dry_run_said(url: String) {
    let mut server = Server::configured(Some(&url), &local("local", 4));
    let client = server.client();
    let (early, late) = (hours_ahead(2), hours_ahead(12));
    let rigid = |nodes, at| Offer::reserve(nodes, HOUR).within(at, at + HOUR);
    let mut made = Vec::new();
    for offer in [
        rigid(2, early),
        Offer::reserve(2, HOUR).within(early, early + 3 * HOUR),
        rigid(2, late),
        rigid(2, late),
    ] {
        made.push(created(&client, &offer).await);
    }
    let before = places(&client, &made).await;
    let path = "/resources/local?dryRun=true";
    let mut asked = done(&put(&client, path, &json!({ "nodes": 2 })).await);
    assert_eq!(ids(&asked["moved"]), made[1..2], "{asked}");
    let broken = ids(&asked["broken"]);
    assert!(broken.len() == 1 && made[2..].contains(&broken[0]), "{asked}");
    assert_eq!(places(&client, &made).await, before, "it was only asked");
    assert_eq!(listed(&client, "local").await["nodes"], 4);

    let followed = done(&put(&client, "/resources/local", &json!({ "nodes": 2 })).await);
    asked["dryRun"] = json!(false);
    assert_eq!(followed, asked);
    let check = async |client: &Client| {
        assert_eq!(listed(client, "local").await["nodes"], 2);
        let moved = show(client, made[1]).await;
        assert_eq!(moved["plannedStart"], asked["moved"][0]["to"]["start"], "{moved}");
        let lost = show(client, broken[0]).await;
        assert_eq!(
            (&lost["outcome"], &lost["state"]),
            (&json!("lost"), &json!("Complete")),
            "{lost}"
        );
    };
    check(&client).await;
    let told = client.get_json(&format!("/agreements/{}/events", made[1])).await;
    assert!(
        told.to_string().contains("local has fewer nodes than before"),
        "{told}"
    );
    // Its party is offered another time.
    eventually("a proposal", SOON, async || {
        show(&client, broken[0]).await["proposals"][0]
            .is_object()
            .then_some(())
    })
    .await;
    server.assert_verified();
    server.kill9();
    server.restart();
    let client = server.client();
    check(&client).await;
    let refused = client.post("/agreements", rigid(1, early).xml()).await;
    assert_eq!(
        refused.status,
        StatusCode::CONFLICT,
        "both nodes are promised: {refused:?}"
    );
    done(&put(&client, "/resources/local", &json!({ "nodes": 6 })).await);
    created(&client, &rigid(4, early)).await;
    server.assert_verified();
}

async fn a_retired_resource_takes_nothing_new_and_its_job_goes_on(url: String) {
    let mut server = Server::configured(Some(&url), &(local("old", 2) + &local("new", 2)));
    let client = server.client();
    let job = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, job).await;
    let later = hours_ahead(2);
    let both = Offer::reserve(2, HOUR).within(later, later + HOUR);
    let waiting = created(&client, &both).await;
    assert_eq!(
        homes(&client, &[job, waiting]).await,
        ["old", "old"],
        "ties go to the first"
    );
    let asked = client
        .post_json("/resources/old/retire?dryRun=true", &json!({}))
        .await;
    let mut asked = done(&asked);
    assert_eq!(ids(&asked["moved"]), [waiting], "{asked}");
    assert_eq!(listed(&client, "old").await["state"], "in-service");
    let followed = done(&client.post_json("/resources/old/retire", &json!({})).await);
    asked["dryRun"] = json!(false);
    assert_eq!(followed, asked);
    let again = done(&client.post_json("/resources/old/retire", &json!({})).await);
    assert_eq!(
        (&again["resources"][0]["change"], &again["moved"]),
        (&json!(""), &json!([]))
    );

    let check = async |client: &Client| {
        let old = listed(client, "old").await;
        assert_eq!(old["state"], "retiring", "{old}");
        assert!(old["retiredSince"].is_string(), "{old}");
        assert_eq!(homes(client, &[job, waiting]).await, ["old", "new"]);
        assert_eq!(show(client, job).await["serviceState"], "Processing");
        let refused = client.post("/agreements", both.xml()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    };
    check(&client).await;
    server.assert_verified();
    server.kill9();
    server.restart();
    // The file still has it, as before: the operator's word holds.
    let client = server.client();
    check(&client).await;
    let ended = client.post(&format!("/agreements/{job}/terminate"), "").await;
    assert!(ended.status.is_success(), "{ended:?}");
    eventually("that all has left", SOON, async || {
        (listed(&client, "old").await["state"] == "retired").then_some(())
    })
    .await;
    let history = client.get_json(&format!("/agreements/{job}/events")).await;
    assert!(history.to_string().contains("old"), "{history}");
    let nowhere = client.post_json("/resources/older/retire", &json!({})).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);

    server.stop();
    server.restart();
    let client = server.client();
    assert_eq!(listed(&client, "old").await["state"], "retired");
    assert_eq!(show(&client, job).await["resource"], "old", "it stays readable");
    done(&client.post_json("/resources/old/restore", &json!({})).await);
    let back = created(&client, &both).await;
    assert_eq!(show(&client, back).await["resource"], "old");
    // It runs jobs again.
    let jobs = [2, 2].map(|nodes| Offer::sleep(600, 900).on(nodes));
    let jobs = [created(&client, &jobs[0]).await, created(&client, &jobs[1]).await];
    for job in jobs {
        running(&client, job).await;
    }
    let mut homes = homes(&client, &jobs).await;
    homes.sort_by_key(Value::to_string);
    assert_eq!(homes, ["new", "old"]);
    server.assert_verified();
}

async fn a_service_that_is_killed_meanwhile_has_each_change_whole_or_not_at_all(url: String) {
    const KILLS: u32 = 3;
    let sizes = async |client: &Client| {
        let [a, b] = [listed(client, "a").await, listed(client, "b").await];
        [a["nodes"].clone(), b["nodes"].clone()]
    };
    let mut server = Server::configured(Some(&url), &(local("a", 4) + &local("b", 4)));
    let mut kept = Vec::new();
    for nth in 0..12 {
        let start = hours_ahead(2 + nth / 2);
        let offer = Offer::reserve(3, HOUR).within(start, start + 24 * HOUR);
        kept.push(created(&server.client(), &offer).await);
    }
    for kill in 0..KILLS {
        let client = server.client();
        let mut sent = sizes(&client).await;
        let (acknowledge, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
        let changing = tokio::spawn(async move {
            for nth in 0.. {
                let (at, nodes) = (nth / 3 % 2, json!(3 * (1 + nth % 3)));
                sent[at] = nodes.clone();
                let request = client.request(Method::PUT, ["/resources/a", "/resources/b"][at]);
                match client.try_send(request.json(&json!({ "nodes": nodes }))).await {
                    Ok(answer) if answer.status == StatusCode::OK => {
                        let _ = acknowledge.send(sent.clone());
                    }
                    _ => break,
                }
            }
            sent
        });
        let mut last = None;
        for _ in 0..=(4 * kill) {
            last = acknowledged.recv().await;
        }
        server.kill9();
        let sent = changing.await.expect("it ends with the service");
        while let Ok(more) = acknowledged.try_recv() {
            last = Some(more);
        }
        server.restart();
        let client = server.client();
        let found = sizes(&client).await;
        let possible = [last.expect("some were acknowledged"), sent];
        assert!(possible.contains(&found), "{found:?} is none of {possible:?}");
        for id in &kept {
            let shown = show(&client, *id).await;
            assert_eq!(shown["state"], "Observed", "three nodes are left for it: {shown}");
        }
        server.assert_verified();
    }
}

async fn other_resources_in_the_file_do_not_keep_the_service_from_starting(url: String) {
    let mut server = Server::configured(Some(&url), &local("old", 4));
    let client = server.client();
    let later = hours_ahead(2);
    let rigid = |nodes, at| Offer::reserve(nodes, HOUR).within(at, at + HOUR);
    let made = [
        created(&client, &rigid(3, later)).await,
        created(&client, &rigid(2, later + 2 * HOUR)).await,
    ];
    let job = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, job).await;

    server.stop();
    server.reconfigure(&local("new", 4));
    server.restart();
    let client = server.client();
    assert_eq!(homes(&client, &made).await, ["new", "new"]);
    assert_eq!(listed(&client, "old").await["state"], "retiring");
    assert_eq!(show(&client, job).await["serviceState"], "Processing");
    server.assert_verified();

    server.stop();
    server.reconfigure(&local("new", 2));
    server.restart();
    let client = server.client();
    assert_eq!(show(&client, made[0]).await["outcome"], "lost");
    assert_eq!(show(&client, made[1]).await["state"], "Observed");
    server.assert_verified();

    server.stop();
    server.reconfigure(&local("old", 2));
    server.restart();
    let client = server.client();
    assert_eq!(listed(&client, "old").await["state"], "in-service");
    assert_eq!(listed(&client, "new").await["state"], "retired");
    assert_eq!(homes(&client, &made[1..]).await, ["old"]);
    assert_eq!(show(&client, job).await["serviceState"], "Processing");
    server.assert_verified();
}

async fn a_word_of_an_operator_holds_until_the_file_says_something_else(url: String) {
    let mut server = Server::configured(Some(&url), &local("local", 4));
    let client = server.client();
    done(&put(&client, "/resources/local", &json!({ "nodes": 3 })).await);
    done(&put(&client, "/resources/own", &json!({ "nodes": 2 })).await);
    server.stop();
    server.restart();
    let client = server.client();
    let shown = async |client: &Client, name: &str| {
        let listed_resource = listed(client, name).await;
        json!([
            listed_resource["nodes"],
            listed_resource["rate"],
            listed_resource["state"]
        ])
    };
    assert_eq!(shown(&client, "local").await, json!([3, 1.0, "in-service"]));
    assert_eq!(shown(&client, "own").await, json!([2, 1.0, "in-service"]));
    let reload = async || done(&client.post_json("/configuration/reload", &json!({})).await);
    assert_eq!(reload().await["resources"], json!([]), "the file is as it was");
    server.reconfigure(&(local("local", 4) + "rate = 2.0\n"));
    let told = reload().await;
    assert_eq!(told["resources"][0]["change"], "rate 2 instead of 1", "{told}");
    assert_eq!(shown(&client, "local").await, json!([3, 2.0, "in-service"]));
    server.reconfigure(&(local("local", 5) + "rate = 2.0\n"));
    let asked = client
        .post_json("/configuration/reload?dryRun=true", &json!({}))
        .await;
    assert_eq!(
        asked.json()["resources"][0]["change"],
        "5 nodes instead of 3",
        "{asked:?}"
    );
    assert_eq!(shown(&client, "local").await, json!([3, 2.0, "in-service"]));
    server.kill9();
    server.restart();
    let client = server.client();
    assert_eq!(shown(&client, "local").await, json!([5, 2.0, "in-service"]));
    assert_eq!(shown(&client, "own").await, json!([2, 1.0, "in-service"]));
    server.assert_verified();
}

async fn a_signal_has_a_good_file_taken_over_and_a_faulty_one_refused(url: String) {
    const ECHO: &str = "[[application]]\nname = \"greet\"\nprogram = \"/bin/echo\"\n";
    let server = Server::configured(Some(&url), &(local("local", 4)));
    let client = server.client();
    let greet = || {
        let mut offer = Offer::sleep(0, 900);
        offer.run = Some(("greet", Vec::new()));
        offer
    };
    let before = client.get_json("/resources").await;
    for (faulty, told) in [
        (local("local", 0), "nodes"),
        ("not toml".to_owned(), "bespeak.toml"),
        (local("local", 2) + &local("local", 2), "another resource"),
    ] {
        server.reconfigure(&faulty);
        let said = server.log().matches("nothing is changed").count();
        server.hang_up();
        eventually("a refusal", SOON, async || {
            (server.log().matches("nothing is changed").count() > said).then_some(())
        })
        .await;
        let refused = client.post_json("/configuration/reload", &json!({})).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert!(refused.body.contains(told), "{told}: {refused:?}");
        let at_the_line = server.run(&["reload"]);
        assert_eq!(at_the_line.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&at_the_line.stderr).into_owned();
        assert!(errors.contains(told), "{errors}");
        assert_eq!(client.get_json("/resources").await, before);
    }
    let unknown = client.post("/agreements", greet().xml()).await;
    assert!(unknown.status.is_client_error(), "{unknown:?}");

    server.reconfigure(&format!(
        "{}{}{ECHO}[limits]\nrequests = 500\n",
        local("local", 2),
        local("fast", 8)
    ));
    server.hang_up();
    eventually("the new resource", SOON, async || {
        let all = client.get_json("/resources").await;
        (all["resources"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    assert_eq!(listed(&client, "local").await["nodes"], 2);
    let job = eventually("the new application", SOON, async || {
        let answer = client.post("/agreements", greet().xml()).await;
        (answer.status == StatusCode::CREATED).then(|| answer.created())
    })
    .await;
    eventually("its end", SOON, async || {
        let shown = show(&client, job).await;
        (shown["outcome"] == "completed").then_some(())
    })
    .await;
    let told = server.run(&["reload", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("it is JSON");
    assert_eq!(
        (&told["needsRestart"], &told["resources"]),
        (&json!(["[limits]"]), &json!([])),
        "{told}"
    );
    eventually("its word in the log", SOON, async || {
        server
            .log()
            .contains("taken over by a restart only")
            .then_some(())
    })
    .await;
    server.assert_verified();
}

async fn resources_are_changed_at_the_command_line(url: String) {
    let server = Server::configured(Some(&url), &local("local", 4));
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let output = server.run(&words);
        let [text, errors] =
            [output.stdout, output.stderr].map(|each| String::from_utf8(each).expect("it is text"));
        (output.status.code(), text, errors)
    };
    let (status, told, errors) =
        run("resources add fast --nodes 16 --rate 2 --attribute cpus=8 --limit processes=200");
    assert_eq!(status, Some(0), "{errors}");
    assert!(told.starts_with("fast: added, local with 16 nodes\n"), "{told}");
    let later = hours_ahead(2);
    let offer = Offer::reserve(12, HOUR).within(later, later + HOUR);
    let id = created(&server.client(), &offer).await;
    let (status, told, errors) = run("resources resize fast --nodes 8 --dry-run");
    assert_eq!(status, Some(0), "{errors}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "fast: would be 8 nodes instead of 16", "{told}");
    assert!(
        lines[2].contains(&id.to_string()) && lines[2].contains("no place"),
        "{told}"
    );
    let end = "0 would be moved, 1 would be without a place; 0 held offers would be withdrawn";
    assert_eq!(lines[3], end, "{told}");
    let (_, json, _) = run("resources --json");
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    let fast = &json["resources"][1];
    let expected = json!(["fast", 16, { "cpus": 8 }, { "processes": 200 }]);
    assert_eq!(
        json!([fast["name"], fast["nodes"], fast["attributes"], fast["limits"]]),
        expected
    );
    let unknown = "there is no resource \"fats\"";
    for (line, status, said) in [
        ("resources resize fats --nodes 8", 1, unknown),
        ("resources add other", 1, "a new one needs a number of nodes"),
        ("resources add a/b --nodes 1", 2, "\"a/b\""),
        (
            "resources add other --nodes 1 --attribute colours=1",
            2,
            "colours",
        ),
        ("resources add other --attribute cpus", 2, "cpus=8"),
        ("resources restore other", 1, ""),
        ("resources resize fast", 2, "--nodes"),
    ] {
        let (code, _, errors) = run(line);
        assert!(
            code == Some(status) && errors.contains(said),
            "{line}: {code:?} {errors}"
        );
    }
    assert_eq!(run("resources retire fast").0, Some(0));
    let (_, all, _) = run("resources list");
    let mut listed = all
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(
        listed.any(|listed| listed[..3] == ["fast", "local", "retired"]),
        "{all}"
    );
    assert_eq!(run("resources restore fast").0, Some(0));
    let key = server.key_for("physics", "consumer");
    for line in ["resources retire fast", "reload"] {
        let status = run(&format!("{line} --key {key}")).0;
        assert_eq!(status, Some(4), "{line}: for operators only");
    }
    let trail = server.client().get_json("/events").await;
    let lines = trail["lines"].as_array().into_iter().flatten();
    let words: Vec<_> = lines
        .filter(|line| line["kind"] == "resource-changed" && line["party"] == "operator")
        .map(|line| line["detail"].clone())
        .collect();
    let expected = [
        "fast: added, local with 16 nodes",
        "fast: retired",
        "fast: back in service",
    ];
    assert_eq!(words, expected, "{trail}");
    server.assert_verified();
}
