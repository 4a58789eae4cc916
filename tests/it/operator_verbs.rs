//! What operators do beside the ordinary course of things: they freeze and thaw resources, and
//! plan times without nodes, and book for parties, move and end their agreements.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agreement_life::{sleepers, unlike_any_other};
use crate::resources::{HOUR, SOON, created, done, homes, ids, listed, local, put, running, show};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    maintenance_moves_what_is_in_its_way_as_the_dry_run_said_and_lasts;
    a_release_on_postgres:
    a_frozen_resource_takes_nothing_new_and_keeps_what_is_agreed,
    a_dry_run_names_whom_it_hurts_and_what_it_costs,
    an_evicted_party_is_told_the_reason_and_is_paid_once,
    a_waiting_agreement_is_moved_inside_what_was_agreed_and_no_further,
    what_is_booked_for_a_party_is_its_own_and_counts_on_its_quotas,
);

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
    let [text, errors] =
        [output.stdout, output.stderr].map(|each| String::from_utf8(each).expect("it is text"));
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

#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn maintenance_moves_what_is_in_its_way_as_the_dry_run_said_and_lasts(url: String) {
    let (early, later, latest) = (hours_ahead(2), hours_ahead(4), hours_ahead(9));
    let configured = format!(
        "{}[[resource.maintenance]]\nstart = \"{}\"\nend = \"{}\"\nnodes = 1\n",
        local("local", 4),
        date_time(latest),
        date_time(latest + HOUR)
    );
    let mut server = Server::configured(Some(&url), &configured);
    let client = server.client();
    let moves = created(&client, &Offer::reserve(4, HOUR).within(early, later + HOUR)).await;
    let stays = created(&client, &Offer::reserve(1, HOUR).within(early + HOUR, later)).await;
    let breaks = created(&client, &Offer::reserve(3, HOUR).within(early + HOUR, later)).await;
    assert_eq!(show(&client, moves).await["plannedStart"], date_time(early));
    let wish = json!({
        "resource": "local", "start": date_time(early), "end": date_time(later), "nodes": 2, "reason": "new disks"
    });
    let mut asked = done(&client.post_json("/maintenance?dryRun=true", &wish).await);
    assert_eq!(
        (ids(&asked["moved"]), ids(&asked["broken"])),
        (vec![moves], vec![breaks]),
        "{asked}"
    );
    assert!(asked["maintenance"].is_null(), "{asked}");
    assert_eq!(
        show(&client, moves).await["plannedStart"],
        date_time(early),
        "it was only asked"
    );
    let mut followed = done(&client.post_json("/maintenance", &wish).await);
    let id = followed["maintenance"]
        .take()
        .as_str()
        .expect("it has an id")
        .to_owned();
    let change = followed["resources"][0]["change"].take();
    let change = change.as_str().expect("it has words").to_owned();
    assert!(
        change.contains("of 2 nodes") && change.ends_with("added: new disks"),
        "{change}"
    );
    assert_eq!(ids(&followed["moved"]), ids(&asked["moved"].take()));
    let again = done(&client.post_json("/maintenance", &wish).await);
    assert_eq!(
        (&again["maintenance"], &again["resources"][0]["change"]),
        (&json!(id), &json!(""))
    );

    server.kill9();
    server.restart();
    let client = server.client();
    let planned = client.get_json("/maintenance").await;
    let shown = |nth: usize| {
        let maintenance = &planned["maintenance"][nth];
        ["id", "nodes", "reason", "party", "start"].map(|key| maintenance[key].clone())
    };
    let expected = [
        json!(id),
        json!(2),
        json!("new disks"),
        json!("operator"),
        json!(date_time(early)),
    ];
    assert_eq!(shown(0), expected, "{planned}");
    let of_file = [
        Value::Null,
        json!(1),
        Value::Null,
        Value::Null,
        json!(date_time(latest)),
    ];
    assert_eq!(shown(1), of_file, "{planned}");
    assert_eq!(show(&client, breaks).await["outcome"], "lost");
    assert_eq!(
        show(&client, moves).await["plannedStart"],
        date_time(later),
        "{moves}"
    );
    assert_eq!(show(&client, stays).await["state"], "Observed");
    let told = client.get_json(&format!("/agreements/{moves}/events")).await;
    assert!(
        told.to_string().contains("nodes of local are out of use"),
        "{told}"
    );
    let busy = Offer::reserve(3, HOUR).within(early, early + HOUR);
    assert_eq!(
        client.post("/agreements", busy.xml()).await.status,
        StatusCode::CONFLICT
    );
    for (wrong, status) in [
        (
            json!({ "resource": "none", "start": date_time(early), "end": date_time(later) }),
            404,
        ),
        (
            json!({ "resource": "local", "start": date_time(later), "end": date_time(early) }),
            409,
        ),
        (
            json!({ "resource": "local", "start": date_time(early), "end": date_time(later), "nodes": 9 }),
            409,
        ),
        (json!({ "resource": "local" }), 422),
    ] {
        let refused = client.post_json("/maintenance", &wrong).await;
        assert_eq!(refused.status, status, "{wrong} {refused:?}");
    }
    let (status, told, errors) = run(&server, "maintenance");
    assert!(
        status == Some(0) && told.contains(&id) && told.contains("(configuration)"),
        "{told} {errors}"
    );
    assert_eq!(
        run(&server, &format!("maintenance remove {id} --dry-run")).0,
        Some(0)
    );
    assert_eq!(run(&server, &format!("maintenance remove {id}")).0, Some(0));
    assert_eq!(run(&server, &format!("maintenance remove {id}")).0, Some(1));
    let gone = client
        .send(client.request(Method::DELETE, &format!("/maintenance/{id}")))
        .await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    created(&client, &busy).await;
    let (status, told, errors) = run(&server, "maintenance add local --from now+30h --until now+31h");
    assert!(
        status == Some(0) && told.contains("of all nodes"),
        "{told} {errors}"
    );
    let lines = words_in_trail(&server, "resource-changed").await;
    let kinds = ["added: new disks", "removed: new disks", "added"];
    let is_told = |(line, end): (&Value, &str)| line.as_str().is_some_and(|line| line.ends_with(end));
    assert!(
        lines.len() == 3 && lines.iter().zip(kinds).all(is_told),
        "{lines:?}"
    );
    server.assert_verified();
}

/// Four nodes with a price of a euro for each node and hour.
fn priced() -> String {
    let pricing = "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n";
    local("local", 4) + pricing
}

async fn a_dry_run_names_whom_it_hurts_and_what_it_costs(url: String) {
    let server = Server::configured(Some(&url), &priced());
    let client = server.client();
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let later = hours_ahead(2);
    let rigid = Offer::reserve(4, HOUR).within(later, later + HOUR);
    let id = physics
        .post("/agreements", rigid.guaranteed_xml())
        .await
        .created();
    // Half of the price, and a fifth of it because it has not begun either.
    let sums = json!([{ "amount": "2.8", "currency": "EUR" }]);
    let maintenance = json!({
        "resource": "local", "start": date_time(later), "end": date_time(later + HOUR), "nodes": 1
    });
    let asked = [
        done(&client.post_json("/maintenance?dryRun=true", &maintenance).await)["broken"].clone(),
        done(
            &client
                .post_json("/resources/local/retire?dryRun=true", &json!({}))
                .await,
        )["broken"]
            .clone(),
        done(&put(&client, "/resources/local?dryRun=true", &json!({ "nodes": 3 })).await)["broken"].clone(),
    ];
    let drained = json!({ "state": "drained" });
    let dry = done(&put(&client, "/resources/local/nodes/0?dryRun=true", &drained).await);
    assert_eq!(dry["penalties"], sums, "{dry}");
    for agreements in asked.iter().chain([&dry["agreements"]]) {
        let first_agreement = &agreements[0];
        assert_eq!(
            json!([
                first_agreement["agreement"],
                first_agreement["party"],
                first_agreement["from"]["resource"],
                first_agreement["to"],
                first_agreement["penalties"]
            ]),
            json!([id, "physics", "local", null, sums]),
            "{first_agreement}"
        );
    }
    let (status, told, errors) = run(&server, "nodes local 0 --set drained --dry-run");
    assert_eq!(status, Some(0), "{errors}");
    for said in [
        id.to_string().as_str(),
        "physics",
        "no place",
        "2.8 EUR would be paid as penalties",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert_eq!(show(&client, id).await["state"], "Observed", "it was only asked");
    assert_eq!(physics.get_json("/accounts").await["accounts"], json!([]));
    let real = done(&put(&client, "/resources/local/nodes/0", &drained).await);
    assert_eq!(
        (&real["agreements"], &real["penalties"]),
        (&dry["agreements"], &sums),
        "{real}"
    );
    let accounts = physics.get_json("/accounts").await;
    assert_eq!(accounts["accounts"][0]["balance"], sums[0], "{accounts}");
    server.assert_verified();
}

#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn an_evicted_party_is_told_the_reason_and_is_paid_once(url: String) {
    let mut server = Server::configured(Some(&url), &priced());
    let client = server.client();
    let key = server.key_for("physics", "consumer");
    let physics = server.client_with(&key);
    let seconds = unlike_any_other(&server);
    let sleep = Offer::sleep(seconds, HOUR).guaranteed_xml();
    let job = physics.post("/agreements", sleep).await.created();
    running(&physics, job).await;
    let later = hours_ahead(2);
    let rigid = Offer::reserve(4, HOUR).within(later, later + HOUR);
    let waiting = physics
        .post("/agreements", rigid.guaranteed_xml())
        .await
        .created();
    let evict = async |client: &Client, id: Uuid, query: &str, key: &str| {
        let paid = json!({ "amount": "5", "currency": "EUR" });
        let request = client
            .request(Method::POST, &format!("/agreements/{id}/evict{query}"))
            .header("accept", "application/json")
            .header("idempotency-key", key);
        client
            .send(request.json(&json!({ "reason": "the room is too hot", "compensation": paid })))
            .await
    };
    let own = evict(&physics, waiting, "", "0").await;
    assert_eq!(own.status, StatusCode::FORBIDDEN, "{own:?}");
    let dry = done(&evict(&client, waiting, "?dryRun=true", "1").await);
    assert_eq!(
        show(&client, waiting).await["state"],
        "Observed",
        "it was only asked"
    );
    let real = evict(&client, waiting, "", "1").await;
    let told = done(&real);
    for one_answer in [&dry, &told] {
        assert_eq!(one_answer["agreement"]["outcome"], "lost", "{one_answer}");
        assert_eq!(
            one_answer["penalties"],
            json!([{ "amount": "2.8", "currency": "EUR" }]),
            "{one_answer}"
        );
        assert_eq!(
            one_answer["compensation"],
            json!({ "amount": "5", "currency": "EUR" }),
            "{one_answer}"
        );
    }
    assert_eq!(
        done(&evict(&client, waiting, "", "1").await),
        told,
        "the same request"
    );
    let again = evict(&client, waiting, "", "2").await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");

    let (status, text, errors) = run(&server, &format!("evict {job} --reason hot"));
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        text.contains("paid as penalties") && !text.contains("compensation"),
        "{text}"
    );
    let (status, _, errors) = run(&server, &format!("evict {job}"));
    assert!(status == Some(2) && errors.contains("--reason"), "{errors}");
    server.kill9();
    server.restart();
    let (client, physics) = (server.client(), server.client_with(&key));
    let accounts = physics.get_json("/accounts").await;
    let kinds = accounts["entries"].as_array().into_iter().flatten();
    let mut kinds: Vec<&str> = kinds.filter_map(|kind| kind["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "compensation").count(),
        1,
        "{accounts}"
    );
    assert!(
        kinds.contains(&"penalty") && !kinds.contains(&"price"),
        "{accounts}"
    );
    for id in [waiting, job] {
        let shown = show(&physics, id).await;
        assert_eq!(
            (&shown["state"], &shown["outcome"]),
            (&json!("Complete"), &json!("lost")),
            "{shown}"
        );
    }
    let events = physics.get_json("/events").await;
    let broken = events["events"].as_array().into_iter().flatten();
    let broken: Vec<&Value> = broken
        .filter(|broken| broken["type"] == "agreement.broken")
        .collect();
    assert!(broken[0].to_string().contains("the room is too hot"), "{events}");
    eventually("the end of its job", SOON, async || {
        sleepers(seconds).is_empty().then_some(())
    })
    .await;
    let lines = words_in_trail(&server, "by-operator").await;
    let first = format!("evicted {waiting} of physics, with 5 EUR: the room is too hot");
    assert_eq!(lines[0], json!(first));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let path = format!("/agreements/{}/evict", Uuid::now_v7());
    let nowhere = client.post_json(&path, &json!({ "reason": "r" })).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    server.assert_verified();
}

async fn a_waiting_agreement_is_moved_inside_what_was_agreed_and_no_further(url: String) {
    let mut server = Server::configured(Some(&url), &(local("first", 4) + &local("second", 2)));
    let client = server.client();
    let key = server.key_for("physics", "consumer");
    let physics = server.client_with(&key);
    let later = hours_ahead(2);
    let flexible = Offer::reserve(2, HOUR).within(later, later + 5 * HOUR);
    let id = physics.post("/agreements", flexible.xml()).await.created();
    let wide = physics.post(
        "/agreements",
        Offer::reserve(4, HOUR).within(later, later + 9 * HOUR).xml(),
    );
    let wide = wide.await.created();
    assert_eq!(homes(&client, &[id, wide]).await, ["first", "first"]);
    let at = |hours: i64| date_time(later + hours * HOUR);
    let path = format!("/agreements/{id}/move");
    let own = physics.post_json(&path, &json!({ "resource": "second" })).await;
    assert_eq!(own.status, StatusCode::FORBIDDEN, "{own:?}");
    for (wrong, why) in [
        (json!({ "start": at(5) }), "it may start there from"),
        (
            json!({ "start": date_time(later - HOUR) }),
            "it may start there from",
        ),
        (
            json!({ "start": date_time(later + 4 * HOUR + 60) }),
            "has not the nodes free",
        ),
        (json!({ "resource": "third" }), "may not take it"),
    ] {
        let refused = client.post_json(&path, &wrong).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{wrong} {refused:?}");
        assert!(refused.json().to_string().contains(why), "{wrong} {refused:?}");
    }
    let wish = json!({ "resource": "second", "start": at(2), "reason": "tests of the first" });
    let dry = done(&client.post_json(&format!("{path}?dryRun=true"), &wish).await);
    assert_eq!(
        (&dry["resource"], &dry["plannedStart"]),
        (&json!("second"), &json!(at(2))),
        "{dry}"
    );
    assert_eq!(homes(&client, &[id]).await, ["first"], "it was only asked");
    assert_eq!(done(&client.post_json(&path, &wish).await), dry);
    let again = client.post_json(&path, &json!({ "start": at(3) })).await;
    assert!(
        again.json().to_string().contains("its time moves no more"),
        "{again:?}"
    );
    // It is too large for the other one.
    let large = client
        .post_json(
            &format!("/agreements/{wide}/move"),
            &json!({ "resource": "second" }),
        )
        .await;
    assert_eq!(large.status, StatusCode::CONFLICT, "{large:?}");
    assert_eq!(client.post_json(&path, &json!({})).await.status.as_u16(), 422);

    server.kill9();
    server.restart();
    let (client, physics) = (server.client(), server.client_with(&key));
    let shown = show(&physics, id).await;
    assert_eq!(
        (&shown["resource"], &shown["plannedStart"]),
        (&json!("second"), &json!(at(2))),
        "{shown}"
    );
    let events = physics.get_json("/events").await;
    let moved = events["events"].as_array().into_iter().flatten();
    let mut moved = moved
        .filter(|moved| moved["type"] == "agreement.moved")
        .map(ToString::to_string);
    assert!(
        moved.any(|moved| moved.contains("by the operator: tests of the first")),
        "{events}"
    );
    let (status, told, errors) = run(&server, &format!("move {id} --to first"));
    assert!(
        status == Some(0) && told.contains("of first") && told.contains(&at(2)),
        "{told} {errors}"
    );
    assert_eq!(run(&server, &format!("move {id}")).0, Some(2));
    assert_eq!(words_in_trail(&server, "by-operator").await.len(), 2);
    let begun = created(&client, &Offer::sleep(600, 900)).await;
    running(&client, begun).await;
    let refused = client
        .post_json(
            &format!("/agreements/{begun}/move"),
            &json!({ "resource": "second" }),
        )
        .await;
    assert!(refused.json().to_string().contains("not waiting"), "{refused:?}");
    server.assert_verified();
}

async fn what_is_booked_for_a_party_is_its_own_and_counts_on_its_quotas(url: String) {
    let quota = "[quotas]\nnode_hours = 2\n";
    let mut server = Server::configured(Some(&url), &(priced() + quota));
    let client = server.client();
    let key = server.key_for("physics", "consumer");
    let biology = server.client_with(&server.key_for("biology", "consumer"));
    let later = hours_ahead(2);
    let offer = Offer::reserve(1, HOUR).within(later, later + 5 * HOUR).xml();
    let book = async |client: &Client, query: &str, key: &str| {
        let request = client
            .request(Method::POST, &format!("/agreements?{query}"))
            .header("content-type", "application/xml")
            .header("idempotency-key", key);
        client.send(request.body(offer.clone())).await
    };
    let own = book(&biology, "party=physics", "0").await;
    assert_eq!(own.status, StatusCode::FORBIDDEN, "{own:?}");
    let unknown = book(&client, "party=chemistry", "0").await;
    assert_eq!(unknown.status, StatusCode::CONFLICT, "{unknown:?}");
    let dry = book(&client, "party=physics&dryRun=true", "1").await;
    assert_eq!(dry.status, StatusCode::OK, "{dry:?}");
    let id = book(&client, "party=physics", "1").await.created();
    assert_eq!(
        book(&client, "party=physics", "1").await.created(),
        id,
        "the same request"
    );
    let reused = book(&client, "party=biology", "1").await;
    assert_eq!(reused.status.as_u16(), 422, "{reused:?}");

    server.kill9();
    server.restart();
    let (client, physics) = (server.client(), server.client_with(&key));
    let shown = show(&physics, id).await;
    assert_eq!(
        (&shown["party"], &shown["state"]),
        (&json!("physics"), &json!("Observed")),
        "{shown}"
    );
    let events = physics.get_json("/events").await;
    assert_eq!(events["events"][0]["type"], "agreement.accepted", "{events}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("offer.xml");
    std::fs::write(&file, &offer).expect("a file can be written");
    let line = format!("offer {} --for-party physics", file.display());
    let (status, told, errors) = run(&server, &line);
    assert!(status == Some(0) && told.contains("physics"), "{told} {errors}");
    let (status, _, errors) = run(&server, &line);
    assert!(status == Some(1), "it has as much as it may: {errors}");
    let more = book(&physics, "", "3").await;
    assert!(!more.status.is_success(), "it has as much as it may: {more:?}");
    book(&client, "", "4").await.created();
    let lines = words_in_trail(&server, "by-operator").await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], json!(format!("booked {id} for physics")));
    let ended = physics.post(&format!("/agreements/{id}/terminate"), "").await;
    assert!(ended.status.is_success(), "its party may end it: {ended:?}");
    server.assert_verified();
}
