//! What operators do beside the ordinary course of things: they freeze and thaw resources, and
//! plan times without nodes.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::resources::{HOUR, created, done, homes, ids, listed, local, put, running, show};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_frozen_resource_takes_nothing_new_and_keeps_what_is_agreed,
    maintenance_moves_what_is_in_its_way_as_the_dry_run_said_and_lasts,
    a_dry_run_names_whom_it_hurts_and_what_it_costs,
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
        let of = &planned["maintenance"][nth];
        ["id", "nodes", "reason", "party", "start"].map(|key| of[key].clone())
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
        (json!({ "resource": "local" }), 400),
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
    for of in asked.iter().chain([&dry["agreements"]]) {
        let of = &of[0];
        assert_eq!(
            json!([
                of["agreement"],
                of["party"],
                of["from"]["resource"],
                of["to"],
                of["penalties"]
            ]),
            json!([id, "physics", "local", null, sums]),
            "{of}"
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
