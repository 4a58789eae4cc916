//! Pending agreements: answered at once, decided afterwards, the decision reported to real listeners that behave badly.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::net::TcpSocket;

use crate::store::tamper;
use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::receiver::Receiver;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run, xml};

const DEADLINE: Duration = Duration::from_mins(1);

/// Four nodes, and a provider that calls this machine.
pub(crate) const OPEN: &str =
    "[callbacks]\nprivate_addresses = true\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";

on_both_engines!(
    a_pending_agreement_is_decided_afterwards_also_over_a_kill,
    a_decision_is_told_once_also_where_that_cannot_be_stored_at_first;
    a_release_on_postgres:
    a_decision_is_told_in_spite_of_errors_silence_and_a_restart,
    what_can_be_read_no_more_is_rejected,
);

/// Asks for an agreement that is decided later, and reported to an address if there is one.
pub(crate) fn pending(offer: &Offer, acceptance: Option<&str>) -> String {
    let told = acceptance.map_or_else(String::new, |address| {
        format!(
            "<wsag:AgreementAcceptanceEPR><wsa:Address>{address}</wsa:Address></wsag:AgreementAcceptanceEPR>"
        )
    });
    format!(
        "<wsag:CreatePendingAgreementInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\" \
         xmlns:wsa=\"http://www.w3.org/2005/08/addressing\">{told}{}</wsag:CreatePendingAgreementInput>",
        offer.xml()
    )
}

/// The path in the answer.
pub(crate) fn accepted(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    answer.headers["location"]
        .to_str()
        .expect("a path is ASCII")
        .to_owned()
}

pub(crate) async fn becomes(client: &Client, path: &str, state: &str) {
    eventually(&format!("{path} is {state}"), DEADLINE, async || {
        (client.get_json(&format!("{path}/state")).await["state"] == state).then_some(())
    })
    .await;
}

async fn a_pending_agreement_is_decided_afterwards_also_over_a_kill(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let later = hours_ahead(3);
    let whole = Offer::reserve(4, 3_600).within(later, later + 3_600);
    let first = client.post("/agreements", pending(&whole, None)).await;
    let path = accepted(&first);
    assert!(first.text("Address").ends_with(&path), "{first:?}");
    becomes(&client, &path, "Observed").await;
    let shown = client.get(&path).await;
    assert_eq!(
        (shown.text("Exact"), shown.text("PlannedStart")),
        ("4", date_time(later).as_str())
    );
    let second = accepted(&client.post("/agreements", pending(&whole, None)).await);
    becomes(&client, &second, "Rejected").await;
    // It has no place, and none is invented.
    let shown = client.get(&second).await;
    assert!(!shown.body.contains("bsp:Placement"), "{shown:?}");
    assert!(
        shown.text("Reason").contains("NO_CAPACITY_IN_WINDOW"),
        "{shown:?}"
    );
    let flat = client.get_json(&second).await;
    let why = flat["rejection"].as_str().unwrap_or_default();
    assert!(why.starts_with("NO_CAPACITY_IN_WINDOW: "), "{flat}");
    for member in ["resource", "plannedStart", "plannedEnd"] {
        assert_eq!(flat.get(member), None, "{flat}");
    }
    let events = client.get_json(&format!("{second}/events")).await;
    let kinds: Vec<_> = events["events"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| event["kind"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["offered", "closed"], "{events}");
    let why = events["events"][1]["detail"].to_string();
    assert!(why.contains("NO_CAPACITY_IN_WINDOW"), "{why}");
    // The same offer under the same AgreementId is one.
    let named = pending(
        &Offer::reserve(1, 3_600).within(later + 90_000, later + 93_600),
        None,
    )
    .replacen(
        "<wsag:AgreementOffer ",
        "<wsag:AgreementOffer wsag:AgreementId=\"mine\" ",
        1,
    );
    let mine = accepted(&client.post("/agreements", named.clone()).await);
    becomes(&client, &mine, "Observed").await;
    let again = client.post("/agreements", named.clone()).await;
    assert_eq!(accepted(&again), mine);
    let other = client.post("/agreements", named.replace(">1<", ">2<")).await;
    assert_eq!(other.status, StatusCode::CONFLICT, "{other:?}");
    assert_eq!(other.text("ErrorCode"), "AGREEMENT_ID_TAKEN", "{other:?}");
    // Under a key it is one, in JSON as well, and a wrong request is refused at once.
    let request = json!({"nodes": 1, "durationSeconds": 60, "pending": true,
        "window": {"start": date_time(later + 7_200), "end": date_time(later + 9_000)}});
    let ask = || {
        client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("idempotency-key", "pending")
            .body(request.to_string())
    };
    let once = client.send(ask()).await;
    let again = client.send(ask()).await;
    assert_eq!((accepted(&once), &once.body), (accepted(&again), &again.body));
    assert_eq!(once.json()["state"], "Pending");
    let wrong = client
        .post("/agreements", pending(&Offer::reserve(40, 60), None))
        .await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
    // Killed as soon as it has answered: the agreement of the answer is decided nevertheless.
    let mut paths = vec![accepted(&once)];
    for _ in 0..10 {
        let offer = Offer::reserve(1, 60).within(later + 7_200, later + 9_000);
        paths.push(accepted(&client.post("/agreements", pending(&offer, None)).await));
    }
    server.kill9();
    server.assert_verified();
    server.restart();
    for path in &paths {
        becomes(&server.client(), path, "Observed").await;
    }
    server.assert_verified();
}

async fn a_decision_is_told_in_spite_of_errors_silence_and_a_restart(url: String) {
    let mut server = Server::configured(Some(&url), OPEN);
    let client = server.client();
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let later = hours_ahead(3);
    let offer = |nodes: u32| Offer::reserve(nodes, 3_600).within(later, later + 3_600);
    // One that never answers holds up no other.
    let silent = format!("http://{}/decided?a=b", Receiver::silent().await);
    let unheard = client
        .post("/agreements", pending(&offer(1), Some(&silent)))
        .await;
    becomes(&client, &accepted(&unheard), "Observed").await;
    // An address that fails first, or redirects, is called again.
    let failing = Receiver::listen(any, &[500, 302, 204]).await;
    let made = client
        .post("/agreements", pending(&offer(3), Some(&failing.url())))
        .await;
    becomes(&client, &accepted(&made), "Observed").await;
    let bodies = failing.hears(3).await;
    for body in &bodies {
        xml::assert_valid(body);
        assert!(body.contains("AcceptAgreementInput"), "{body}");
    }
    // An address that is down meanwhile is called after a restart of the service.
    let down = Receiver::listen(any, &[204]).await;
    // Its port is not another program's meanwhile.
    let nobody_yet = TcpSocket::new_v4().expect("a socket can be made");
    nobody_yet.bind(any).expect("a port is free");
    let address = nobody_yet.local_addr().expect("it is bound");
    let nobody = format!("http://{address}/decided?a=b");
    let refused = client
        .post("/agreements", pending(&offer(4), Some(&nobody)))
        .await;
    becomes(&client, &accepted(&refused), "Rejected").await;
    let told = client
        .post("/agreements", pending(&offer(4), Some(&down.url())))
        .await;
    becomes(&client, &accepted(&told), "Rejected").await;
    let bodies = down.hears(1).await;
    xml::assert_valid(&bodies[0]);
    assert!(
        bodies[0].contains("RejectAgreementInput") && bodies[0].contains("NO_CAPACITY_IN_WINDOW"),
        "{bodies:?}"
    );
    // Not killed between the call and its record, or it would rightly be made again: two calls without an answer are left.
    eventually("the record of what was told", DEADLINE, async || {
        let metrics = client.get("/metrics").await.body;
        metrics.contains("bespeak_call_backs_waiting 2\n").then_some(())
    })
    .await;
    server.kill9();
    server.restart();
    let back = Receiver::answer(nobody_yet.listen(16).expect("it can listen"), &[200]);
    assert!(back.hears(1).await[0].contains("RejectAgreementInput"));
    assert_eq!(down.bodies.lock().await.len(), 1, "a decision is told only once");
    assert_eq!(failing.bodies.lock().await.len(), 3);
    server.assert_verified();
}

async fn a_decision_is_told_once_also_where_that_cannot_be_stored_at_first(url: String) {
    const ATTEMPTS: usize = 3;
    let server = Server::configured(Some(&url), OPEN);
    let client = server.client();
    // As on a disk without room, but of this table only.
    let (refuse, allow) = if url.starts_with("sqlite") {
        (
            "CREATE TRIGGER no_room BEFORE DELETE ON call_backs BEGIN SELECT RAISE(ABORT, 'no room'); END",
            "DROP TRIGGER no_room",
        )
    } else {
        (
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no room'; END$$; \
             CREATE TRIGGER no_room BEFORE DELETE ON call_backs FOR EACH ROW EXECUTE FUNCTION no_room()",
            "DROP FUNCTION no_room CASCADE",
        )
    };
    tamper(&url, refuse).await;
    let told = Receiver::listen("127.0.0.1:0".parse().expect("an address"), &[204]).await;
    let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
    let made = client
        .post("/agreements", pending(&offer, Some(&told.url())))
        .await;
    becomes(&client, &accepted(&made), "Observed").await;
    eventually("attempts to store that it was told", DEADLINE, async || {
        let attempts = server.log().matches("the result of a call").count();
        (attempts >= ATTEMPTS).then_some(())
    })
    .await;
    tamper(&url, allow).await;
    eventually("the record of what was told", DEADLINE, async || {
        let metrics = client.get("/metrics").await.body;
        metrics.contains("bespeak_call_backs_waiting 0\n").then_some(())
    })
    .await;
    assert_eq!(told.bodies.lock().await.len(), 1);
}

async fn what_can_be_read_no_more_is_rejected(url: String) {
    let server = Server::configured(Some(&url), OPEN);
    // What is stored is not what came.
    let garble = if url.starts_with("sqlite") {
        "CREATE TRIGGER garble AFTER INSERT ON agreement_documents BEGIN \
         UPDATE agreement_documents SET document = '<x' WHERE agreement = NEW.agreement; END"
    } else {
        "CREATE FUNCTION garble() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.document := '<x'; RETURN NEW; END$$; \
         CREATE TRIGGER garble BEFORE INSERT ON agreement_documents FOR EACH ROW EXECUTE FUNCTION garble()"
    };
    tamper(&url, garble).await;
    let told = Receiver::listen("127.0.0.1:0".parse().expect("an address"), &[200]).await;
    let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
    let made = server
        .client()
        .post("/agreements", pending(&offer, Some(&told.url())))
        .await;
    accepted(&made);
    let said = told.hears(1).await[0].clone();
    assert!(
        said.contains("RejectAgreementInput") && said.contains("cannot read"),
        "{said}"
    );
}

#[test]
fn addresses_that_are_not_public_are_not_called() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for address in [
            "http://127.0.0.1:9/",
            "http://169.254.169.254/",
            "ftp://example.org/",
            "nowhere",
        ] {
            let refused = client
                .post("/agreements", pending(&Offer::reserve(1, 60), Some(address)))
                .await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{address}");
            assert!(refused.text("Path").ends_with("wsa:Address"), "{refused:?}");
            let request = client
                .request(Method::POST, "/agreements")
                .header("content-type", "application/json")
                .header("accept", "application/json")
                .body(json!({"pending": true, "callback": address}).to_string());
            let refused = client.send(request).await;
            assert_eq!(
                refused.json()["violations"][0]["path"],
                "/callback",
                "{refused:?}"
            );
        }
        // A name is looked up when it is called: the agreement is decided, and no address is called.
        let named = Receiver::listen("127.0.0.1:0".parse().expect("an address"), &[204]).await;
        let address = format!("http://localhost:{}/decided?a=b", named.address.port());
        let made = client
            .post("/agreements", pending(&Offer::reserve(1, 60), Some(&address)))
            .await;
        becomes(&client, &accepted(&made), "Observed").await;
        eventually("a second attempt", DEADLINE, async || {
            let tries = server.log().matches("could not be told").count();
            (tries > 0).then_some(())
        })
        .await;
        assert!(named.bodies.lock().await.is_empty());
    });
}

#[test]
fn an_endpoint_that_is_no_place_is_taken_and_never_called() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for name in ["anonymous", "none"] {
            let address = format!("http://www.w3.org/2005/08/addressing/{name}");
            let made = client
                .post("/agreements", pending(&Offer::reserve(1, 60), Some(&address)))
                .await;
            becomes(&client, &accepted(&made), "Observed").await;
            let request = json!({"nodes": 1, "durationSeconds": 60, "pending": true, "callback": address});
            let made = client.post_json("/agreements", &request).await;
            becomes(&client, &accepted(&made), "Observed").await;
            // A call is stored with the decision that it tells.
            let metrics = client.get("/metrics").await.body;
            assert!(metrics.contains("bespeak_call_backs_waiting 0\n"), "{metrics}");
            let refused = client
                .request(Method::PUT, "/call-backs/planner")
                .header("content-type", "application/json")
                .body(json!({"address": address}).to_string());
            let refused = client.send(refused).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
            assert!(
                refused.body.contains("the address of a place is expected"),
                "{refused:?}"
            );
        }
        server.assert_verified();
    });
}
