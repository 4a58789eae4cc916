//! `?dryRun=true`: the answer that a request would get, of which nothing stays.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_release_on_postgres:
    a_dry_run_is_answered_like_the_request_and_leaves_nothing,
);

const HOUR: i64 = 3_600;

/// A party may hold one answer, and have four node-hours.
const BOUNDED: &str = "[negotiation]\nholds_max = 1\n[quotas]\nnode_hours = 4\n\
    [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.post_json(path, body).await
}

/// An answer without what is new in each: ids and instants.
fn shape(answer: &Value) -> Value {
    match answer {
        Value::Object(members) => {
            let own = [
                "id",
                "counterOfferTo",
                "created",
                "expires",
                "heldUntil",
                "version",
                "negotiation",
                "requestId",
                "instance",
                // They begin with the second in which they are asked for.
                "constraints",
            ];
            let kept = members.iter().filter(|(name, _)| !own.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(values) => values.iter().map(shape).collect(),
        other => other.clone(),
    }
}

/// Everything that is kept of a party: what it has, holds and was told.
async fn kept(server: &Server, client: &Client) -> [Value; 4] {
    [
        client.get_json("/agreements").await,
        client.get_json("/negotiations").await,
        client.get_json("/accounts").await,
        server.client().get_json("/events?limit=200").await,
    ]
}

async fn a_dry_run_is_answered_like_the_request_and_leaves_nothing(url: String) {
    let server = Server::configured(Some(&url), BOUNDED);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let start = hours_ahead(3);
    let window = json!({"start": date_time(start), "end": date_time(start + HOUR)});
    let wish = json!({"name": "n", "nodes": 2, "durationSeconds": HOUR, "window": window});
    let before = kept(&server, &client).await;
    // The quotas would allow each of them once; a key has nothing to keep.
    for _ in 0..3 {
        let dry = post(&client, "/negotiations?dryRun=true", &wish).await;
        assert_eq!(
            (dry.status, dry.headers.get("location")),
            (StatusCode::OK, None),
            "{dry:?}"
        );
        assert_eq!(dry.json()["offers"][0]["state"], "Acceptable", "{dry:?}");
        let keyed = client
            .request(Method::POST, "/agreements?dryRun=true")
            .header("idempotency-key", "once")
            .header("content-type", "application/json")
            .header("accept", "application/json");
        let dry = client.send(keyed.body(wish.to_string())).await;
        assert_eq!(
            (dry.status, dry.headers.get("location")),
            (StatusCode::OK, None),
            "{dry:?}"
        );
        let document = Offer::reserve(2, HOUR).within(start, start + HOUR).xml();
        let dry = client.post("/agreements?dryRun=true", document).await;
        assert_eq!(dry.status, StatusCode::OK, "{dry:?}");
    }
    assert_eq!(kept(&server, &client).await, before);
    // The same in earnest.
    let dry = post(&client, "/negotiations?dryRun=true", &wish).await.json();
    let real = post(&client, "/negotiations", &wish).await.json();
    assert_eq!(shape(&dry), shape(&real));
    let offer = json!({"offer": real["offers"][0]["id"]});
    let held = kept(&server, &client).await;
    let dry = post(&client, "/agreements?dryRun=true", &offer).await.json();
    assert_eq!(kept(&server, &client).await, held, "it is still held");
    let real = post(&client, "/agreements", &offer).await;
    assert_eq!(real.status, StatusCode::CREATED, "{real:?}");
    assert_eq!(shape(&dry), shape(&real.json()));
    let agreement = real.json()["id"].as_str().expect("an id").to_owned();
    // What is refused is refused, and not noted.
    let whole = json!({"nodes": 2, "durationSeconds": 2 * HOUR, "window": {"start": window["start"],
        "end": date_time(start + 2 * HOUR)}});
    let had = kept(&server, &client).await;
    let dry = post(&client, "/agreements?dryRun=true", &whole).await;
    assert_eq!(dry.status, StatusCode::CONFLICT, "{dry:?}");
    assert_eq!(kept(&server, &client).await, had);
    let real = post(&client, "/agreements", &whole).await;
    assert_eq!(
        shape(&dry.json()["refusal"]),
        shape(&real.json()["refusal"]),
        "{dry:?}"
    );
    // A change, a rejected offer, the end of a negotiation and that of an agreement.
    let had = kept(&server, &client).await;
    let change = json!({"agreement": agreement, "durationSeconds": HOUR / 2});
    let dry = post(&client, "/negotiations?dryRun=true", &change).await;
    assert_eq!(dry.json()["offers"][0]["durationSeconds"], HOUR / 2, "{dry:?}");
    assert_eq!(kept(&server, &client).await, had);
    let opened = post(&client, "/negotiations", &change).await.json();
    let (negotiation, name) = (&opened["id"], &opened["offers"][0]["id"]);
    let negotiation = negotiation.as_str().expect("an id");
    let had = kept(&server, &client).await;
    let reject = json!({"counterOfferTo": name, "state": "Rejected"});
    for path in [
        format!("/negotiations/{negotiation}/offers?dryRun=true"),
        format!("/negotiations/{negotiation}/terminate?dryRun=true"),
        format!("/agreements/{agreement}/terminate?dryRun=true"),
    ] {
        let body = if path.contains("offers") {
            reject.clone()
        } else {
            json!({})
        };
        let dry = post(&client, &path, &body).await;
        assert_eq!(dry.status, StatusCode::OK, "{path}: {dry:?}");
        if path.starts_with("/agreements") {
            assert_eq!(dry.json()["state"], "Terminated", "{dry:?}");
        }
        assert_eq!(kept(&server, &client).await, had, "{path}");
    }
    // What cannot be asked so is refused, and not done.
    client
        .send(client.request(Method::PUT, "/files/a").body("a"))
        .await;
    for (method, path) in [(Method::DELETE, "/files/a"), (Method::PUT, "/files/a")] {
        let refused = client
            .send(client.request(method, &format!("{path}?dryRun=true")).body("b"))
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
    }
    assert_eq!(
        client.send(client.request(Method::GET, "/files/a")).await.body,
        "a"
    );
    wrong_queries_are_refused(&server, &client, &wish).await;
    server.assert_verified();
}

async fn wrong_queries_are_refused(server: &Server, client: &Client, wish: &Value) {
    let had = kept(server, client).await;
    for (query, expected) in [
        ("dryrun=true", "unknown field `dryrun`, expected one of `dryRun`"),
        ("dryRun=yes", "dryRun: true or false is expected"),
        ("dryRun=", "dryRun: true or false is expected"),
    ] {
        let wrong = post(client, &format!("/agreements?{query}"), wish).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{query}: {wrong:?}");
        assert_eq!(wrong.json()["code"], "BAD_QUERY", "{query}: {wrong:?}");
        assert!(wrong.body.contains(expected), "{query}: {wrong:?}");
    }
    assert_eq!(kept(server, client).await, had);
}
