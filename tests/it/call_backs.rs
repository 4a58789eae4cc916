//! Registered call-backs: every event of a party is told, signed, in order and at least once, and listed as it was told.

mod retries;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::net::TcpSocket;

use crate::pending::{OPEN, accepted, becomes, pending};
use crate::proposals::{PROPOSING, proposed};
use crate::store::tamper;
use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::receiver::{Receiver, answered};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run, xml};

const DEADLINE: Duration = Duration::from_mins(1);

on_both_engines!(
    every_event_is_told_signed_and_in_order_also_over_a_kill_and_listed_as_it_was_told,
    an_address_that_is_replaced_during_a_call_is_told_nothing_more;
    a_release_on_postgres:
    a_decision_about_an_offer_is_signed_and_carries_the_parameters_of_its_endpoint,
    proposals_and_what_could_not_be_kept_are_told_and_listed,
    more_events_than_a_page_has_are_printed_together,
);

async fn put(client: &Client, name: &str, body: &Value) -> Answer {
    let request = client
        .request(Method::PUT, &format!("/call-backs/{name}"))
        .header("content-type", "application/json")
        .body(body.to_string());
    client.send(request).await
}

async fn secret(client: &Client, name: &str, body: &Value) -> String {
    let made = put(client, name, body).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    made.json()["secret"]
        .as_str()
        .expect("it is shown once")
        .to_owned()
}

/// What a command prints.
fn by_hand(server: &Server, key: &str, arguments: &[&str]) -> String {
    let output = server.run(&[arguments, &["--key", key]].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The events of a party, each page of two after the one before.
async fn events(client: &Client) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get_json(&format!("/events?after={after}&limit=2")).await;
        all.extend(page["events"].as_array().expect("a list").clone());
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => return all,
        }
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap_or_default())
        .collect()
}

/// The events that a receiver has heard, in the order in which they happened: those of one agreement have come in it.
fn in_order(bodies: &[String]) -> Vec<Value> {
    let read = |body: &String| serde_json::from_str(body).expect("it is JSON");
    let mut heard: Vec<Value> = bodies.iter().map(read).collect();
    let mut last: HashMap<String, i64> = HashMap::new();
    for event in &heard {
        let cursor = event["cursor"].as_i64().expect("a number");
        let before = last.insert(event["data"]["agreement"].to_string(), cursor);
        assert!(before.is_none_or(|before| before < cursor), "{heard:?}");
    }
    heard.sort_by_key(|event| event["cursor"].as_i64());
    heard
}

/// Whether what a receiver has heard is signed by a secret, as a library of another maker checks it.
async fn assert_signed(told: &Receiver, secret: &str) {
    let webhook = Webhook::new(secret).expect("a secret");
    let other = Webhook::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let (bodies, headers) = (told.bodies.lock().await, told.headers.lock().await);
    for (body, headers) in bodies.iter().zip(headers.iter()) {
        webhook.verify(body.as_bytes(), headers).expect("it is signed");
        assert!(other.verify(body.as_bytes(), headers).is_err());
        assert!(webhook.verify(format!("{body} ").as_bytes(), headers).is_err());
    }
}

async fn every_event_is_told_signed_and_in_order_also_over_a_kill_and_listed_as_it_was_told(url: String) {
    // A start in four hours is announced at once.
    let noticed = OPEN.replace("[callbacks]\n", "[callbacks]\nstart_notice_seconds = 18000\n");
    let mut server = Server::configured(Some(&url), &noticed);
    let keys = ["physics", "biology"].map(|party| server.key_for(party, "consumer"));
    let [physics, biology] = [&keys[0], &keys[1]].map(|key| server.client_with(key));
    // Of which nothing more is heard here.
    let far = Offer::reserve(1, 60).within(hours_ahead(20), hours_ahead(21));
    // Nobody listens there yet, and the port is not another program's meanwhile.
    let nobody_yet = TcpSocket::new_v4().expect("a socket can be made");
    nobody_yet.bind(any()).expect("a port is free");
    let address = nobody_yet.local_addr().expect("it is bound");
    let address = json!({"address": format!("http://{address}/decided?a=b")});
    physics.post("/agreements", far.xml()).await.created();
    let replaced = secret(&physics, "planner", &address).await;
    let planner = secret(&physics, "planner", &address).await;
    assert_ne!(replaced, planner, "a new one each time");
    let later = hours_ahead(4);
    let whole = Offer::reserve(4, 3_600).within(later, later + 3_600);
    let waiting = physics.post("/agreements", whole.xml()).await.created();
    let short = Offer::reserve(1, 1).within(now(), now() + 3_600);
    let over = physics.post("/agreements", short.xml()).await.created();
    biology.post("/agreements", far.xml()).await.created();
    becomes(&physics, &format!("/agreements/{over}"), "Complete").await;
    eventually("the start is announced", DEADLINE, async || {
        let events = events(&physics).await;
        kinds(&events).contains(&"agreement.starting").then_some(())
    })
    .await;
    // Killed between the commits and the calls.
    server.kill9();
    server.assert_verified();
    server.restart();
    let [physics, biology] = [&keys[0], &keys[1]].map(|key| server.client_with(key));
    physics
        .post(&format!("/agreements/{waiting}/terminate"), String::new())
        .await;
    let all = events(&physics).await;
    // What was before the registration is not told. The first attempt is answered with an error.
    let since = all
        .iter()
        .position(|each| each["data"]["agreement"] == json!(waiting));
    let since = &all[since.expect("it was accepted")..];
    let told = Receiver::answer(nobody_yet.listen(16).expect("it can listen"), &[500, 204]);
    let bodies = told.hears(since.len() + 1).await;
    assert_eq!(bodies[0], bodies[1], "the same at each attempt");
    let heard = in_order(&bodies[1..]);
    assert_eq!(heard, since);
    assert_signed(&told, &planner).await;
    let headers = told.headers.lock().await.clone();
    let ids: Vec<_> = headers
        .iter()
        .map(|header| header["webhook-id"].to_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(ids[0], ids[1]);
    assert_eq!(heard[0]["id"], json!(ids[0]));
    let events_of = |id: uuid::Uuid| -> Vec<Value> {
        let about = |event: &&Value| event["data"]["agreement"] == json!(id);
        heard.iter().filter(about).cloned().collect()
    };
    assert_eq!(
        kinds(&events_of(waiting)),
        ["agreement.accepted", "agreement.starting", "agreement.ended"],
        "a start is announced once, also over a kill: {heard:?}"
    );
    let short = events_of(over);
    // On a slow machine it may miss its first slot.
    let sure = ["agreement.accepted", "agreement.started", "agreement.ended"];
    let short: Vec<_> = kinds(&short)
        .into_iter()
        .filter(|kind| sure.contains(kind))
        .collect();
    assert_eq!(short, sure);
    let last = &events_of(waiting)[2];
    assert_eq!(last["data"]["state"], "Terminated", "{last}");
    let path = format!("/agreements/{waiting}");
    assert!(
        last["data"]["address"]
            .as_str()
            .is_some_and(|each| each.ends_with(&path)),
        "{last}"
    );
    // Others have their own.
    assert_eq!(kinds(&events(&biology).await)[0], "agreement.accepted");
    assert!(
        events(&biology)
            .await
            .iter()
            .all(|each| each["data"]["party"] == "biology")
    );
    let theirs = biology.get("/events?party=physics").await;
    assert_eq!(theirs.status, StatusCode::FORBIDDEN, "{theirs:?}");
    let seen = server.client().get_json("/events?party=physics").await;
    assert_eq!(seen["events"], json!(all));
    eventually("the record of what was told", DEADLINE, async || {
        let one = physics.get_json("/call-backs/planner").await;
        let up_to_date = one["cursor"] == since[since.len() - 1]["cursor"] && one["failures"] == 0;
        (up_to_date && one.get("secret").is_none()).then_some(())
    })
    .await;
    server.assert_verified();
}

async fn proposals_and_what_could_not_be_kept_are_told_and_listed(url: String) {
    let config = format!("{PROPOSING}[callbacks]\nprivate_addresses = true\n");
    let server = Server::configured(Some(&url), &config);
    let [physics, biology] =
        ["physics", "biology"].map(|party| server.client_with(&server.key_for(party, "consumer")));
    let told = Receiver::listen(any(), &[204]).await;
    let secret = secret(&physics, "planner", &json!({"address": told.url()})).await;
    // Another place for the first would let another party in.
    let later = hours_ahead(4);
    let full = Offer::reserve(4, 3_600).within(later, later + 3_600);
    let waiting = physics.post("/agreements", full.xml()).await.created();
    let crowded = biology.post("/agreements", full.xml()).await;
    assert_eq!(crowded.status, StatusCode::CONFLICT, "{crowded:?}");
    let better = proposed(&physics, waiting).await;
    // The second loses its nodes and cannot move inside its window.
    let soon = now() + 1_800;
    let rigid = Offer::reserve(4, 3_600).within(soon, soon + 3_600);
    let lost = physics
        .post("/agreements", rigid.guaranteed_xml())
        .await
        .created();
    let operator = server.client();
    let down = operator
        .request(Method::PUT, "/resources/local/nodes/0,1")
        .header("accept", "application/json")
        .json(&json!({"state": "down", "reason": "no power"}));
    let down = operator.send(down).await;
    assert_eq!(down.json()["broken"], 1, "{down:?}");
    let instead = proposed(&physics, lost).await;
    let all = events(&physics).await;
    let about = |agreement: uuid::Uuid| -> Vec<&Value> {
        let about = all
            .iter()
            .filter(|each| each["data"]["agreement"] == json!(agreement));
        about.collect()
    };
    let names =
        |values: &[&Value]| -> Vec<Value> { values.iter().map(|each| each["type"].clone()).collect() };
    let first = about(waiting);
    assert_eq!(
        names(&first),
        ["agreement.accepted", "negotiation.proposed"],
        "{all:?}"
    );
    let mut second = about(lost);
    let sure = ["agreement.accepted", "agreement.broken", "negotiation.proposed"];
    second.retain(|second| second["type"].as_str().is_some_and(|kind| sure.contains(&kind)));
    assert_eq!(names(&second), sure, "{all:?}");
    for (event, proposal) in [(first[1], &better), (second[2], &instead)] {
        let data = &event["data"];
        assert_eq!(data["negotiation"], proposal["negotiation"], "{event}");
        let path = format!(
            "/negotiations/{}",
            data["negotiation"].as_str().unwrap_or_default()
        );
        let address = data["address"].as_str().unwrap_or_default();
        assert!(address.ends_with(&path), "{event}");
        assert_eq!(data["party"], "physics", "{event}");
    }
    let broken = &second[1]["data"];
    assert!(
        broken["detail"].as_str().is_some_and(|each| !each.is_empty()),
        "{broken}"
    );
    // Called back with the same content, in the same order, signed.
    let bodies = told.hears(all.len()).await;
    assert_eq!(in_order(&bodies), all);
    assert_signed(&told, &secret).await;
    // Another party is told of neither.
    let theirs = events(&biology).await;
    assert!(theirs.is_empty(), "{theirs:?}");
    server.assert_verified();
}

async fn a_decision_about_an_offer_is_signed_and_carries_the_parameters_of_its_endpoint(url: String) {
    let mut server = Server::configured(Some(&url), OPEN);
    let key = server.key_for("physics", "consumer");
    let client = server.client_with(&key);
    let later = hours_ahead(3);
    let whole = Offer::reserve(4, 3_600).within(later, later + 3_600);
    let told = Receiver::listen(any(), &[500, 204]).await;
    let parameters = "<wsa:ReferenceParameters><my:Ticket xmlns:my=\"urn:x-mine\">a&amp;b</my:Ticket></wsa:ReferenceParameters>";
    let ask = || {
        let offer = pending(&whole, Some(&told.url()));
        offer.replace(
            "</wsa:Address></wsag:AgreementAcceptanceEPR>",
            &format!("</wsa:Address>{parameters}</wsag:AgreementAcceptanceEPR>"),
        )
    };
    let secret = secret(&client, "decisions", &json!({})).await;
    let made = accepted(&client.post("/agreements", ask()).await);
    becomes(&client, &made, "Observed").await;
    told.hears(1).await;
    server.kill9();
    server.restart();
    let client = server.client_with(&key);
    told.hears(2).await;
    let refused = accepted(&client.post("/agreements", ask()).await);
    becomes(&client, &refused, "Rejected").await;
    let bodies = told.hears(3).await;
    for (body, root, path) in [
        (&bodies[0], "AcceptAgreementInput", &made),
        (&bodies[1], "AcceptAgreementInput", &made),
        (&bodies[2], "RejectAgreementInput", &refused),
    ] {
        xml::assert_valid(body);
        assert!(body.contains(root), "{body}");
        assert!(body.contains(">a&amp;b</my:Ticket>"), "{body}");
        assert!(body.contains(&format!("{path}</wsa:Address>")), "{body}");
    }
    assert_signed(&told, &secret).await;
    let headers = told.headers.lock().await;
    assert_eq!(headers[0]["webhook-id"], headers[1]["webhook-id"]);
    assert_ne!(headers[1]["webhook-id"], headers[2]["webhook-id"]);
}

async fn an_address_that_is_replaced_during_a_call_is_told_nothing_more(url: String) {
    let server = Server::configured(Some(&url), OPEN);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    socket.bind(any()).expect("a port is free");
    let old = socket.local_addr().expect("it is bound");
    let old = json!({"address": format!("http://{old}/decided?a=b")});
    secret(&client, "planner", &old).await;
    let offer = Offer::reserve(1, 60).within(hours_ahead(20), hours_ahead(21));
    for _ in 0..3 {
        client.post("/agreements", offer.xml()).await.created();
    }
    // The first event is on its way, and most often the others are read.
    let listener = socket.listen(16).expect("it can listen");
    let (call, _) = listener.accept().await.expect("a call");
    let new = Receiver::listen(any(), &[204]).await;
    secret(&client, "planner", &json!({"address": new.url()})).await;
    let (_, first) = answered(call, 204).await.expect("it is a call");
    let old = Receiver::answer(listener, &[204]);
    eventually("the end of the turn", DEADLINE, async || {
        let is_over = server.log().contains("nothing more is told") || new.bodies.lock().await.len() == 3;
        is_over.then_some(())
    })
    .await;
    let bodies = new.hears(3).await;
    assert_eq!(bodies[0], first, "that one was not recorded");
    assert_eq!(*old.bodies.lock().await, Vec::<String>::new());
}

async fn more_events_than_a_page_has_are_printed_together(url: String) {
    let server = Server::start(&url);
    let key = server.key_for("physics", "consumer");
    let many = format!(
        "INSERT INTO party_events (party, number, id, at_us, kind, detail) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450) \
         SELECT 'physics', 1000 + i, 'e' || i, {}000000, 'moved', '' FROM n",
        now()
    );
    tamper(&url, &many).await;
    for (limit, shown, next) in [("420", 420, json!(1_420)), ("0", 450, Value::Null)] {
        let all = by_hand(
            &server,
            &key,
            &["call-backs", "events", "--limit", limit, "--json"],
        );
        let all: Value = serde_json::from_str(&all).expect("it is JSON");
        let cursors = all["events"].as_array().expect("a list").iter();
        let cursors: Vec<_> = cursors.map(|event| event["cursor"].clone()).collect();
        let expected: Vec<_> = (1..=shown).map(|number| json!(1_000 + number)).collect();
        assert_eq!((cursors, &all["next"]), (expected, &next), "--limit {limit}");
    }
}

#[test]
fn call_backs_are_bounded_and_go_to_no_address_that_is_not_public() {
    run(async {
        let server = Server::local();
        let key = server.key_for("physics", "consumer");
        let client = server.client_with(&key);
        for wrong in [
            json!({"address": "http://127.0.0.1:9/"}),
            json!({"address": "http://169.254.169.254/"}),
            json!({"address": "ftp://example.org/"}),
            json!({"address": 3}),
        ] {
            let refused = put(&client, "planner", &wrong).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            let path = &refused.json()["violations"][0]["path"];
            assert_eq!(path, "/address", "{refused:?}");
        }
        let public = json!({"address": "http://93.184.216.34/x"});
        let missing = put(&client, "planner", &json!({})).await;
        assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY, "{missing:?}");
        let named = put(&client, "decisions", &public).await;
        assert_eq!(named.status, StatusCode::UNPROCESSABLE_ENTITY, "{named:?}");
        for number in 0..8 {
            secret(&client, &format!("planner-{number}"), &public).await;
        }
        let more = put(&client, "another", &public).await;
        assert_eq!(more.status, StatusCode::CONFLICT, "{more:?}");
        secret(&client, "planner-0", &public).await;
        let path = "/call-backs/planner-0";
        let remove = || client.send(client.request(Method::DELETE, path));
        assert_eq!(remove().await.status, StatusCode::NO_CONTENT);
        assert_eq!(remove().await.status, StatusCode::NOT_FOUND);
        secret(&client, "another", &public).await;
        // And by hand.
        let listed = by_hand(&server, &key, &["call-backs"]);
        assert!(
            listed.contains("planner-7") && !listed.contains("planner-0"),
            "{listed}"
        );
        by_hand(&server, &key, &["call-backs", "remove", "another"]);
        let shown = by_hand(&server, &key, &["call-backs", "add", "decisions"]);
        assert!(shown.starts_with("whsec_"), "{shown}");
        let listed = by_hand(&server, &key, &["call-backs", "events", "--after", "0"]);
        assert!(listed.contains("CURSOR"), "{listed}");
    });
}

#[test]
fn reference_parameters_that_cannot_be_told_again_are_refused() {
    run(async {
        let server = Server::configured(None, OPEN);
        let client = server.client();
        let told = Receiver::listen(any(), &[204]).await;
        let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
        let declared = |names: std::ops::Range<u32>| -> String {
            let declared = names.map(|name| format!(" xmlns:n{name}=\"urn:x-{name}\""));
            declared.collect::<Vec<_>>().concat()
        };
        // Of the namespaces of the ticket, eight are declared around the parameters, and the others and that of wsa at them.
        let ask = |namespaces: u32| {
            let used = (0..namespaces).map(|name| format!(" n{name}:a=\"\""));
            let used = used.collect::<Vec<_>>().concat();
            let parameters = format!(
                "</wsa:Address><wsa:ReferenceParameters{}><n0:Ticket{used}/></wsa:ReferenceParameters>",
                declared(8..namespaces)
            );
            pending(&offer, Some(&told.url()))
                .replacen(
                    "<wsag:CreatePendingAgreementInput",
                    &format!("<wsag:CreatePendingAgreementInput{}", declared(0..8)),
                    1,
                )
                .replacen("</wsa:Address>", &parameters, 1)
        };
        let refused = client.post("/agreements", ask(16)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
        let path = refused.text("Path");
        assert!(path.ends_with("/wsa:ReferenceParameters"), "{refused:?}");
        accepted(&client.post("/agreements", ask(15)).await);
        let body = told.hears(1).await.remove(0);
        assert!(body.contains(" n14:a=\"\""), "{body}");
    });
}

#[test]
fn operators_see_and_remove_the_call_backs_of_any_party_and_others_only_their_own() {
    run(async {
        let server = Server::local();
        let client = server.client_with(&server.key_for("physics", "consumer"));
        for name in ["planner", "watcher"] {
            secret(&client, name, &json!({"address": "http://93.184.216.34/x"})).await;
        }
        let operator = server.client();
        let of_physics = "/call-backs?party=physics";
        let own = client.get_json("/call-backs").await;
        assert_eq!(own["callBacks"].as_array().map(Vec::len), Some(2), "{own}");
        assert_eq!(client.get_json(of_physics).await, own);
        assert_eq!(operator.get_json(of_physics).await, own);
        assert_eq!(operator.get_json("/call-backs").await["callBacks"], json!([]));
        let other = server.client_with(&server.key_for("biology", "consumer"));
        // In the same words everywhere.
        let refusals = [of_physics, "/events?party=physics", "/agreements?party=physics"];
        let mut words = Vec::new();
        for path in refusals {
            let refused = other
                .send(
                    other
                        .request(Method::GET, path)
                        .header("accept", "application/json"),
                )
                .await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
            words.push(refused.json()["detail"].clone());
        }
        assert!(words[0].is_string(), "{words:?}");
        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
        let remove = async |client: &Client, query: &str| {
            let path = format!("/call-backs/planner{query}");
            client.send(client.request(Method::DELETE, &path)).await.status
        };
        assert_eq!(remove(&other, "?party=physics").await, StatusCode::FORBIDDEN);
        assert_eq!(remove(&operator, "").await, StatusCode::NOT_FOUND);
        assert_eq!(remove(&operator, "?of=physics").await, StatusCode::BAD_REQUEST);
        assert_eq!(client.get_json("/call-backs").await, own);
        assert_eq!(remove(&operator, "?party=physics").await, StatusCode::NO_CONTENT);
        // And by hand.
        let key = server.key();
        let listed = by_hand(&server, key, &["call-backs", "--party", "physics"]);
        assert!(
            listed.contains("watcher") && !listed.contains("planner"),
            "{listed}"
        );
        let add = [
            "call-backs",
            "add",
            "a",
            "https://example.org/",
            "--party",
            "physics",
        ];
        let refused = server.run(&[&add[..], &["--key", key]].concat());
        assert!(!refused.status.success(), "{refused:?}");
        by_hand(
            &server,
            key,
            &["call-backs", "remove", "watcher", "--party", "physics"],
        );
        assert_eq!(client.get_json("/call-backs").await["callBacks"], json!([]));
    });
}
