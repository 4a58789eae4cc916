//! Keys with limits: for reading only, or with a spending cap that neither many requests at once nor a restart get past.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{made, put_expiry, revoke};
use crate::pending::{accepted, becomes, pending};
use crate::portal::browser::{Browser, Form};
use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    of_many_requests_at_once_no_more_are_taken_than_the_cap_allows;
    a_release_on_postgres:
    with_a_key_for_reading_only_the_pages_show_no_forms_and_take_none,
    the_agreements_of_a_key_cost_no_more_than_its_cap,
    offers_pending_requests_and_the_pages_keep_to_the_cap,
    a_key_with_limits_makes_and_changes_no_keys,
    a_cap_is_in_the_currency_of_the_price_list,
);

/// Eight nodes at a euro an hour, in every window.
const FLAT: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 8\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n";

/// A key of a party with a cap in euros, and its id.
async fn capped_key(server: &Server, amount: &str) -> (String, String) {
    let cap = json!({ "amount": amount, "currency": "EUR" });
    let wish = json!({ "party": "physics", "role": "consumer", "spendingCap": cap });
    let (id, key) = made(&server.client(), &wish).await;
    (key, id)
}

/// A client with such a key, and its id.
async fn capped(server: &Server, amount: &str) -> (Client, String) {
    let (key, id) = capped_key(server, amount).await;
    (server.client_with(&key), id)
}

/// Asks for a node for so many hours, for a euro each.
async fn reserve(client: &Client, hours: i64) -> Answer {
    let start = hours_ahead(24);
    let offer = Offer::reserve(1, hours * 3_600).within(start, start + 40 * 3_600);
    client.post("/agreements", offer.xml()).await
}

/// Asserts that a request was refused for the cap.
fn assert_capped(answer: &Answer, words: &str) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    assert!(answer.body.contains("QUOTA_EXCEEDED"), "{answer:?}");
    assert!(answer.body.contains(words), "{answer:?}");
}

async fn spent(server: &Server, id: &str) -> Value {
    server.client().get_json(&format!("/keys/{id}")).await["spent"]["amount"].clone()
}

async fn with_a_key_for_reading_only_the_pages_show_no_forms_and_take_none(url: String) {
    let server = Server::configured(Some(&url), FLAT);
    let operator = server.client();
    let wish = json!({ "party": "physics", "role": "consumer", "readOnly": true });
    let (_, reader) = made(&operator, &wish).await;
    let (_, writer) = made(&operator, &json!({ "party": "physics", "role": "consumer" })).await;
    let writes = server.client_with(&writer);
    let id = reserve(&writes, 1).await.created();
    let mut browser = Browser::signed_in(&server, &reader).await;
    let terminate = format!("/portal/agreements/{id}/terminate");
    for path in [
        "/portal",
        "/portal/negotiations",
        &format!("/portal/agreements/{id}"),
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        let forms: Vec<_> = page.body.split("method=\"post\" action=\"").skip(1).collect();
        assert!(
            forms.iter().all(|form| form.starts_with("/portal/sign-out")),
            "{path}: {forms:?}"
        );
        assert!(!page.body.contains("/terminate"), "{path}");
    }
    assert_eq!(browser.get(&terminate).await.status, StatusCode::FORBIDDEN);
    let page = browser.get("/portal").await;
    let out = page.fields(page.body.find("/portal/sign-out").expect("it is there"));
    let token: Form = out.clone().with("once", &id.to_string());
    for path in ["/portal/agreements", &terminate] {
        let page = browser.post(path, &token).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{path}");
    }
    let agreement = writes.get_json(&format!("/agreements/{id}")).await;
    assert_eq!(agreement["state"], "Observed");
    let reads = server.client_with(&reader);
    let refused = reserve(&reads, 1).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.body.contains("for reading only"), "{refused:?}");
    assert_eq!(reads.get("/agreements").await.status, StatusCode::OK);
    // Signing out changes nothing but the session.
    let gone = browser.post("/portal/sign-out", &out).await;
    assert_eq!(gone.location(), "/portal");
    let listed = String::from_utf8(server.run(&["key", "list"]).stdout).expect("it is text");
    assert!(listed.contains("reads only"), "{listed}");
}

async fn the_agreements_of_a_key_cost_no_more_than_its_cap(url: String) {
    let mut server = Server::configured(Some(&url), FLAT);
    let (key, id) = capped_key(&server, "3.5").await;
    let physics = server.client_with(&key);
    let first = reserve(&physics, 2).await.created();
    assert_capped(
        &reserve(&physics, 2).await,
        "this key may spend 3.5 EUR, and has spent 2 EUR",
    );
    // What was only asked about costs nothing, and is told the same.
    let dry = async |hours: i64| {
        let start = hours_ahead(24);
        let offer = Offer::reserve(1, hours * 3_600).within(start, start + 40 * 3_600);
        physics.post("/agreements?dryRun=true", offer.xml()).await
    };
    assert_eq!(dry(1).await.status, StatusCode::OK);
    assert_capped(&dry(2).await, "has spent 2 EUR");
    assert_eq!(spent(&server, &id).await, "2");
    reserve(&physics, 1).await.created();
    // Another key of the party has no cap, and spends nothing of this one.
    let other = server.client_with(&server.key_for("physics", "consumer"));
    reserve(&other, 10).await.created();
    // What ends early is not given back.
    let ended = physics.post(&format!("/agreements/{first}/terminate"), "").await;
    assert!(ended.status.is_success(), "{ended:?}");
    server.kill9();
    server.restart();
    let physics = server.client_with(&key);
    assert_capped(
        &reserve(&physics, 1).await,
        "this key may spend 3.5 EUR, and has spent 3 EUR",
    );
    assert_eq!(spent(&server, &id).await, "3");
    let listed = String::from_utf8(server.run(&["key", "list"]).stdout).expect("it is text");
    assert!(listed.contains("has spent 3 of 3.5 EUR"), "{listed}");
    // The events of a party are told to its call-backs, which are no place for what a key has spent.
    let events = physics.get_json(&format!("/agreements/{first}/events")).await;
    assert!(!events.to_string().contains("spent"), "{events}");
    server.assert_verified();
}

async fn of_many_requests_at_once_no_more_are_taken_than_the_cap_allows(url: String) {
    let server = Server::configured(Some(&url), FLAT);
    let (physics, id) = capped(&server, "3").await;
    let asked = futures_util::future::join_all((0..8).map(|_| reserve(&physics, 1))).await;
    let made = asked
        .iter()
        .filter(|answer| answer.status == StatusCode::CREATED)
        .count();
    assert_eq!(made, 3, "{asked:?}");
    assert_eq!(spent(&server, &id).await, "3");
}

async fn offers_pending_requests_and_the_pages_keep_to_the_cap(url: String) {
    let server = Server::configured(Some(&url), FLAT);
    let (key, id) = capped_key(&server, "3").await;
    let physics = server.client_with(&key);
    let start = hours_ahead(24);
    let offer = |hours: i64| Offer::reserve(1, hours * 3_600).within(start, start + 40 * 3_600);
    let taken = accepted(&physics.post("/agreements", pending(&offer(1), None)).await);
    becomes(&physics, &taken, "Observed").await;
    assert_eq!(spent(&server, &id).await, "1");
    let rejected = accepted(&physics.post("/agreements", pending(&offer(3), None)).await);
    becomes(&physics, &rejected, "Rejected").await;
    let why = physics.get_json(&format!("{rejected}/events")).await;
    assert!(
        why.to_string()
            .contains("this key may spend 3 EUR, and has spent 1 EUR"),
        "{why}"
    );
    // Offers are made beyond the cap, too, and cannot be accepted with this key.
    let ask = async |hours: i64| {
        let wish = json!({ "nodes": 1, "durationSeconds": hours * 3_600 });
        let opened = physics.post_json("/negotiations", &wish).await;
        assert_eq!(opened.status, StatusCode::CREATED, "{opened:?}");
        opened.json()["offers"][0]["id"].clone()
    };
    let dear = ask(3).await;
    assert_capped(
        &physics.post_json("/agreements", &json!({ "offer": dear })).await,
        "this key may spend 3 EUR, and has spent 1 EUR",
    );
    let mut browser = Browser::signed_in(&server, &key).await;
    let accept = format!("/portal/offers/{}/accept", dear.as_str().expect("an id"));
    let list = browser.get("/portal/negotiations").await;
    let page = browser.get(&list.link("See prices and terms")).await;
    let form = page.form_to(&accept);
    let refused = browser.post(&accept, &form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused
            .body
            .contains("Nothing was reserved: this key may spend 3 EUR, and has spent 1 EUR.")
            && !refused.body.contains("QUOTA_EXCEEDED"),
        "{refused:?}"
    );
    let cheap = ask(1).await;
    let taken = physics.post_json("/agreements", &json!({ "offer": cheap })).await;
    assert_eq!(taken.status, StatusCode::CREATED, "{taken:?}");
    assert_eq!(spent(&server, &id).await, "2");
}

async fn a_key_with_limits_makes_and_changes_no_keys(url: String) {
    let server = Server::configured(Some(&url), FLAT);
    let operator = server.client();
    let cap = json!({ "amount": 1, "currency": "EUR" });
    let wish = json!({ "party": "ops", "role": "operator", "spendingCap": cap });
    let (id, key) = made(&operator, &wish).await;
    let limited = server.client_with(&key);
    assert_eq!(limited.get("/keys").await.status, StatusCode::OK);
    let asked = limited
        .post_json("/keys", &json!({ "party": "a", "role": "operator" }))
        .await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    assert_eq!(
        put_expiry(&limited, &id, &json!({ "expires": null }))
            .await
            .status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(revoke(&limited, &id).await, StatusCode::FORBIDDEN);
    let path = format!("/agreements/{}/evict", uuid::Uuid::now_v7());
    let evicted = limited.post_json(&path, &json!({ "reason": "r" })).await;
    assert_eq!(evicted.status, StatusCode::FORBIDDEN, "an eviction is paid for");
    // Nor does one that ends: its keys would not end with it.
    let ends = json!({ "party": "ops", "role": "operator", "expires": "2999-01-01T00:00:00Z" });
    let (_, ends) = made(&operator, &ends).await;
    let asked = server.client_with(&ends).post_json("/keys", &wish).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    // The last key without limits stays.
    let first = super::first_key(&operator).await;
    assert_eq!(revoke(&operator, &first).await, StatusCode::CONFLICT);
    let reader = json!({ "party": "ops", "role": "operator", "readOnly": true });
    let (_, reader) = made(&operator, &reader).await;
    let reader = server.client_with(&reader);
    assert_eq!(reader.get("/resources/local/nodes").await.status, StatusCode::OK);
    let reload = reader
        .send(reader.request(Method::POST, "/configuration/reload?dryRun=true"))
        .await;
    assert_eq!(reload.status, StatusCode::FORBIDDEN);
}

async fn a_cap_is_in_the_currency_of_the_price_list(url: String) {
    let server = Server::configured(Some(&url), FLAT);
    let wish = |amount: &str, currency: &str| {
        let cap = json!({ "amount": amount, "currency": currency });
        json!({ "party": "a", "role": "consumer", "spendingCap": cap })
    };
    for (amount, currency) in [("1", "CHF"), ("-1", "EUR"), ("1", "euro")] {
        let answer = server.client().post_json("/keys", &wish(amount, currency)).await;
        assert_eq!(
            answer.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{amount} {currency}"
        );
    }
    let add = [
        "key",
        "add",
        "--party",
        "a",
        "--role",
        "consumer",
        "--spending-cap",
    ];
    for (cap, code) in [("1 CHF", Some(2)), ("1", Some(2)), ("1 EUR", Some(0))] {
        let done = server.run(&[&add[..], &[cap]].concat());
        assert_eq!(done.status.code(), code, "{cap}: {done:?}");
    }
    server.reconfigure("[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 8\n");
    let reloaded = server.run(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    let nothing = server.client().post_json("/keys", &wish("1", "EUR")).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY, "{nothing:?}");
}
