//! Keys over the API and by `bespeak key --remote`: made, listed, revoked and expired by operators, on both engines.

mod limits;

use access::{Access, Error, Role};
use domain::clock::Clock;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::{Store, idempotency};

use crate::access::wish;
use crate::portal::browser::Browser;
use crate::support::client::{Answer, Client};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_key_works_until_an_operator_revokes_it_and_the_trail_names_the_key_of_the_operator,
    the_same_request_makes_one_key_and_shows_it_once,
    of_two_operators_who_revoke_each_other_at_once_one_stays;
    a_release_on_postgres:
    a_request_for_a_key_is_told_each_of_its_faults,
    a_key_expires_at_another_time_or_never,
    an_expired_key_is_not_revived,
    the_last_key_of_operators_stays,
    the_command_line_does_the_same_from_anywhere,
);

/// Changes a key.
async fn put_expiry(client: &Client, id: &str, body: &Value) -> Answer {
    let path = format!("/keys/{id}/expiry");
    client.send(client.request(Method::PUT, &path).json(body)).await
}

async fn revoke(client: &Client, id: &str) -> StatusCode {
    let path = format!("/keys/{id}");
    client.send(client.request(Method::DELETE, &path)).await.status
}

/// The id and the secret of a new key.
async fn made(client: &Client, body: &Value) -> (String, String) {
    let answer = client.post_json("/keys", body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let made = answer.json();
    let member_of_key = |member: &str| made[member].as_str().expect("it is told").to_owned();
    assert_eq!(
        answer.headers["location"],
        format!("/keys/{}", member_of_key("id"))
    );
    (member_of_key("id"), member_of_key("key"))
}

/// The id of the key that a server has made at its start.
async fn first_key(operator: &Client) -> String {
    let keys = operator.get_json("/keys").await;
    keys["keys"][0]["id"].as_str().expect("it is listed").to_owned()
}

async fn a_key_works_until_an_operator_revokes_it_and_the_trail_names_the_key_of_the_operator(url: String) {
    let server = Server::start(&url);
    let operator = server.client();
    let by = first_key(&operator).await;
    let wish = json!({ "party": "physics", "role": "consumer", "label": "laptop" });
    let (id, key) = made(&operator, &wish).await;
    let physics = server.client_with(&key);
    let browser = Browser::signed_in(&server, &key).await;
    // Looked up, and then known where it may be.
    for _ in 0..2 {
        assert_eq!(physics.get("/agreements").await.status, StatusCode::OK);
        assert_eq!(browser.get("/portal").await.status, StatusCode::OK);
    }
    let listed = operator.get("/keys").await;
    assert!(!listed.body.contains(&key), "{}", listed.body);
    let listed = &listed.json()["keys"][1];
    assert_eq!(listed, &operator.get_json(&format!("/keys/{id}")).await);
    let members = ["id", "party", "role", "label", "state"].map(|member| listed[member].clone());
    assert_eq!(
        members,
        [&*id, "physics", "consumer", "laptop", "works"].map(Value::from)
    );

    assert_eq!(revoke(&operator, &id).await, StatusCode::NO_CONTENT);
    assert_eq!(physics.get("/agreements").await.status, StatusCode::UNAUTHORIZED);
    assert!(
        browser.get("/portal").await.body.contains("sign-in"),
        "its session has ended"
    );
    assert_eq!(
        revoke(&operator, &id).await,
        StatusCode::NOT_FOUND,
        "once is enough"
    );
    assert_eq!(
        operator.get_json(&format!("/keys/{id}")).await["state"],
        "revoked"
    );

    let lines = operator.get_json("/events").await;
    let lines = lines["lines"].as_array().expect("a list");
    let of_key: Vec<[&str; 2]> = lines
        .iter()
        .filter(|line| line["subject"] == id.as_str())
        .map(|line| ["kind", "detail"].map(|member| line[member].as_str().unwrap_or_default()))
        .collect();
    let added = format!("as consumer: \"laptop\", by key {by}");
    let revoked = format!("by key {by}");
    let signed_in = "from 127.0.0.1: \"laptop\"";
    let expected = [
        ["key-added", &*added],
        ["signed-in", signed_in],
        ["key-revoked", &*revoked],
    ];
    assert_eq!(of_key, expected);
    assert!(!server.log().contains(&key), "no secret is logged");
    server.assert_verified();
}

async fn the_same_request_makes_one_key_and_shows_it_once(url: String) {
    let server = Server::start(&url);
    let operator = server.client();
    let ask = async |party: &str| {
        let body = json!({ "party": party, "role": "consumer" });
        let request = operator.request(Method::POST, "/keys").json(&body);
        operator.send(request.header("idempotency-key", "once")).await
    };
    let first = ask("physics").await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = ask("physics").await;
    assert_eq!(
        (again.status, &again.json()["key"]),
        (StatusCode::CREATED, &Value::Null)
    );
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(ask("biology").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let keys = operator.get_json("/keys").await;
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(2), "{keys}");
    let store = Store::open(&url).await.expect("it can be opened");
    let kept = idempotency::idempotent_request(&store, "operator", "once")
        .await
        .expect("it can be read");
    let secret = first.json()["key"].clone();
    let kept = kept.expect("it is kept").answer;
    assert!(!kept.contains(secret.as_str().expect("it was shown")), "{kept}");
}

async fn a_request_for_a_key_is_told_each_of_its_faults(url: String) {
    let server = Server::start(&url);
    let operator = server.client();
    let long = "x".repeat(101);
    for (body, path) in [
        (json!({ "role": "consumer" }), ""),
        (json!({ "party": "a", "role": "king" }), "/role"),
        (
            json!({ "party": "a", "role": "consumer", "expires": "tomorrow" }),
            "/expires",
        ),
        (
            json!({ "party": "a", "role": "consumer", "expires": "2020-01-01T00:00:00Z" }),
            "",
        ),
        (json!({ "party": " a", "role": "consumer" }), ""),
        (json!({ "party": "a", "role": "consumer", "label": long }), ""),
        (
            json!({ "party": "a", "role": "consumer", "secret": "mine" }),
            "/secret",
        ),
    ] {
        let answer = operator.post_json("/keys", &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(
            answer.json()["violations"][0]["path"],
            path,
            "{body}: {}",
            answer.body
        );
    }
    let document = operator.post("/keys", "<key/>").await;
    assert_eq!(document.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let keys = operator.get_json("/keys").await;
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
}

async fn a_key_expires_at_another_time_or_never(url: String) {
    let server = Server::start(&url);
    let operator = server.client();
    let by = first_key(&operator).await;
    let wish = json!({ "party": "physics", "role": "consumer", "expires": "2100-01-01T01:00:00+01:00" });
    let (id, _) = made(&operator, &wish).await;
    let expires = async || operator.get_json(&format!("/keys/{id}")).await["expires"].clone();
    assert_eq!(expires().await, "2100-01-01T00:00:00Z");
    let changed = put_expiry(&operator, &id, &json!({ "expires": "2101-01-01T00:00:00Z" })).await;
    assert_eq!(changed.json()["expires"], "2101-01-01T00:00:00Z");
    assert_eq!(expires().await, "2101-01-01T00:00:00Z");
    for wrong in [
        json!({}),
        json!({ "expires": "2020-01-01T00:00:00Z" }),
        json!({ "expires": 1 }),
    ] {
        let answer = put_expiry(&operator, &id, &wrong).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
    let never = put_expiry(&operator, &id, &json!({ "expires": null })).await;
    assert_eq!((never.status, expires().await), (StatusCode::OK, Value::Null));
    let unknown = put_expiry(
        &operator,
        "01a1fc5d-835f-7000-8000-000000000000",
        &json!({ "expires": null }),
    )
    .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let lines = operator.get_json("/events").await;
    let lines = lines["lines"].as_array().expect("a list").iter();
    let told: Vec<&str> = lines
        .filter(|line| line["kind"] == "key-expires")
        .filter_map(|line| line["detail"].as_str())
        .collect();
    let first = format!("at 2101-01-01T00:00:00Z, by key {by}");
    assert_eq!(told, [first, format!("never, by key {by}")]);
}

async fn an_expired_key_is_not_revived(url: String) {
    let clock = Clock::standing_at(1_000);
    let store = Store::open(&url).await.expect("an empty database can be opened");
    let access = Access::new(store, clock.clone());
    let key = access
        .add_key(wish("a", Role::Consumer, None, Some(2_000)), None)
        .await;
    let key = key.expect("a key");
    assert!(
        access
            .set_expiry(key.info.id, Some(3_000), None)
            .await
            .expect("an answer")
    );
    clock.set(2_500);
    let works = async || {
        access
            .authenticate(key.secret.expose())
            .await
            .expect("an answer")
            .is_some()
    };
    assert!(works().await);
    clock.set(3_000);
    assert!(!works().await);
    assert!(
        !access
            .set_expiry(key.info.id, None, None)
            .await
            .expect("an answer")
    );
    assert!(!works().await);
}

async fn the_last_key_of_operators_stays(url: String) {
    let server = Server::start(&url);
    let operator = server.client();
    let first = first_key(&operator).await;
    // A key of no operator does not count, and neither does one that has ended.
    made(&operator, &json!({ "party": "a", "role": "consumer" })).await;
    let (ended, _) = made(&operator, &json!({ "party": "b", "role": "operator" })).await;
    assert_eq!(revoke(&operator, &ended).await, StatusCode::NO_CONTENT);
    assert_eq!(revoke(&operator, &first).await, StatusCode::CONFLICT);
    let soon = json!({ "expires": "2100-01-01T00:00:00Z" });
    assert_eq!(
        put_expiry(&operator, &first, &soon).await.status,
        StatusCode::CONFLICT
    );
    let never = put_expiry(&operator, &first, &json!({ "expires": null })).await;
    assert_eq!(never.status, StatusCode::OK, "it ends no earlier");
    assert_eq!(operator.get("/keys").await.status, StatusCode::OK);
    let (_, other) = made(&operator, &json!({ "party": "c", "role": "operator" })).await;
    assert_eq!(put_expiry(&operator, &first, &soon).await.status, StatusCode::OK);
    assert_eq!(revoke(&operator, &first).await, StatusCode::NO_CONTENT);
    assert_eq!(operator.get("/keys").await.status, StatusCode::UNAUTHORIZED);
    let other = server.client_with(&other);
    assert_eq!(other.get("/keys").await.status, StatusCode::OK);
    // Whoever can open the store can make another.
    let store = Store::open(&url).await.expect("it can be opened");
    let access = Access::new(store, Clock::system());
    let keys = access.keys().await.expect("they can be read");
    let last = keys.last().expect("there is one").id;
    let by_itself = access.revoke(last, Some(last)).await;
    assert!(matches!(by_itself, Err(Error::LastOfOperators)), "{by_itself:?}");
    assert!(access.revoke(last, None).await.expect("it is revoked"));
}

async fn of_two_operators_who_revoke_each_other_at_once_one_stays(url: String) {
    let server = Server::start(&url);
    let one = server.client();
    let first = first_key(&one).await;
    let (second, key) = made(&one, &json!({ "party": "ops", "role": "operator" })).await;
    let two = server.client_with(&key);
    let revoked = tokio::join!(revoke(&one, &second), revoke(&two, &first));
    let count = [revoked.0, revoked.1]
        .iter()
        .filter(|status| **status == StatusCode::NO_CONTENT)
        .count();
    assert_eq!(count, 1, "{revoked:?}");
    let works = [one.get("/keys").await.status, two.get("/keys").await.status];
    assert_eq!(
        works.iter().filter(|status| **status == StatusCode::OK).count(),
        1,
        "{works:?}"
    );
}

async fn the_command_line_does_the_same_from_anywhere(url: String) {
    let server = Server::start(&url);
    let succeed = |arguments: &[&str]| {
        // No store is there: the service does it.
        let nowhere = ["--remote", "--data-dir", "nowhere", "--key", server.key()];
        let done = server.run(&[arguments, &nowhere].concat());
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stdout)
            .expect("it is text")
            .trim()
            .to_owned()
    };
    let add = ["key", "add", "--party", "physics", "--role", "consumer"];
    let key = succeed(&[&add[..], &["--expires", "30d"]].concat());
    assert_eq!(
        server.client_with(&key).get("/agreements").await.status,
        StatusCode::OK
    );
    let list =
        || -> Value { serde_json::from_str(&succeed(&["key", "list", "--json"])).expect("it is JSON") };
    let listed = list()[1].clone();
    assert_eq!(listed["party"], "physics");
    let id = listed["id"].as_str().expect("it has an id");
    let changed: Value =
        serde_json::from_str(&succeed(&["key", "expire", id, "never", "--json"])).expect("it is JSON");
    assert_eq!(
        (&changed["id"], &changed["expires"]),
        (&listed["id"], &Value::Null)
    );
    assert!(succeed(&["key", "expire", id, "12h"]).contains("physics"));
    assert_eq!(succeed(&["key", "revoke", id]), format!("revoked {id}"));
    assert_eq!(list()[1]["state"], "revoked");
    // In the store itself the same words do the same.
    let local = server.run(&["key", "expire", id, "never"]);
    assert_eq!(local.status.code(), Some(1), "{local:?}");
    let both = server.run(&["key", "list", "--key", server.key()]);
    assert_eq!(both.status.code(), Some(2), "{both:?}");
    let stranger = server.run(&["key", "list", "--remote", "--key", &key]);
    assert_eq!(stranger.status.code(), Some(4), "{stranger:?}");
}
