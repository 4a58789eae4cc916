//! Permissions: every operation without a key, with a revoked one, by another party, by the right one.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, message, negotiate};
use crate::support::offers::{Offer, date_time, file, hours_ahead, moved};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

/// Every operation that needs a key, as the router has it; the last ones of a noun end the objects of the others.
const KEYED: &[(Method, &str)] = &[
    (Method::GET, "/applications"),
    (Method::GET, "/availability"),
    (Method::GET, "/prices"),
    (Method::GET, "/resources"),
    (Method::GET, "/templates"),
    (Method::GET, "/templates/{id}"),
    (Method::GET, "/agreements"),
    (Method::POST, "/agreements"),
    (Method::GET, "/agreements/{id}"),
    (Method::GET, "/agreements/{id}/state"),
    (Method::GET, "/agreements/{id}/terms"),
    (Method::GET, "/agreements/{id}/context"),
    (Method::GET, "/agreements/{id}/service-terms"),
    (Method::GET, "/agreements/{id}/guarantee-terms"),
    (Method::GET, "/agreements/{id}/ending"),
    (Method::GET, "/agreements/{id}/events"),
    (Method::GET, "/agreements/{id}/files"),
    (Method::GET, "/agreements/{id}/files/{name}"),
    (Method::GET, "/accounts"),
    (Method::GET, "/call-backs"),
    (Method::GET, "/usage"),
    (Method::PUT, "/call-backs/{name}"),
    (Method::GET, "/call-backs/{name}"),
    (Method::DELETE, "/call-backs/{name}"),
    (Method::GET, "/events"),
    (Method::GET, "/files"),
    (Method::PUT, "/files/{name}"),
    (Method::GET, "/files/{name}"),
    (Method::DELETE, "/files/{name}"),
    (Method::POST, "/agreements/{id}/terminate"),
    (Method::DELETE, "/agreements/{id}/files"),
    (Method::GET, "/negotiations"),
    (Method::POST, "/negotiations"),
    (Method::GET, "/negotiations/{id}"),
    (Method::POST, "/negotiations/{id}/offers"),
    (Method::POST, "/negotiations/{id}/advertisements"),
    (Method::POST, "/negotiations/{id}/terminate"),
    (Method::GET, "/offers/{id}"),
    (Method::GET, "/refusals/{id}"),
];

/// Every operation only for programs that watch over the service, and for operators.
const WATCHED: &[&str] = &["/metrics"];

/// Every operation that is there for operators alone, as it is described: what ends the objects of others comes last.
async fn operations_for_operators(client: &Client) -> Vec<(Method, String)> {
    let description = client.get_json("/openapi.json").await;
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("it has paths") {
        for (method, operation) in methods.as_object().expect("it has methods") {
            let summary = operation["summary"].as_str().unwrap_or_default();
            let summary = summary.strip_suffix("; it takes no dryRun").unwrap_or(summary);
            if summary.ends_with("; for operators") {
                let method = method.to_uppercase().parse().expect("a method");
                operations.push((method, path.clone()));
            }
        }
    }
    operations.sort_by_key(|(method, _)| *method == Method::DELETE);
    assert!(!operations.is_empty());
    operations
}

/// Every operation that needs none.
const OPEN: &[&str] = &["/.well-known/bespeak", "/healthz", "/openapi.json", "/readyz"];

/// The whole input of any POST here: an offer, a negotiation, or a reason to terminate.
fn input(path: &str) -> String {
    if path.ends_with("/offers") {
        return moved(&file("tests/messages/m14-negotiate-input.xml"));
    }
    if path.ends_with("/advertisements") {
        let offer = SentOffer::solicited("advertised", Offer::reserve(1, 60));
        return message("AdvertiseInput", &[offer]);
    }
    if path.starts_with("/negotiations/") {
        return file("tests/messages/m17-negotiation-terminate-input.xml");
    }
    if path.starts_with("/negotiations") {
        return moved(&file("tests/messages/m12-initiate-negotiation-input.xml"));
    }
    if path.ends_with("/terminate") {
        return "<wsag:TerminateInput xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">\
                <r:Reason xmlns:r=\"urn:example:reason\"/></wsag:TerminateInput>"
            .to_owned();
    }
    let later = hours_ahead(3);
    Offer::reserve(1, 60).within(later, later + 3_600).xml()
}

on_both_engines!(
    a_list_holds_what_is_ones_own;
    a_release_on_postgres:
    every_operation_asks_for_a_key_and_shows_a_party_its_own_only,
);

#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn every_operation_asks_for_a_key_and_shows_a_party_its_own_only(url: String) {
    let server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let biology = server.client_with(&server.key_for("biology", "consumer"));
    let nobody = server.client_with("");
    // An address that sends many wrong keys is answered ever later: each of these has its own.
    let wrong = server.client_with(&"x".repeat(server.key().len()));
    let mut address = 1_u16;
    let mut unknown = || {
        address += 1;
        let [high, low] = address.to_be_bytes();
        wrong.at([127, 0, high, low].into())
    };
    let id = physics
        .post("/agreements", input("/agreements"))
        .await
        .created()
        .to_string();
    let negotiation = physics
        .post("/negotiations", input("/negotiations"))
        .await
        .created()
        .to_string();
    let later = hours_ahead(3);
    let asked = SentOffer::solicited("asked", Offer::reserve(1, 60).within(later, later + 3_600));
    let answers = negotiate(&physics, negotiation.parse().expect("an id"), &[asked]).await;
    let offer = answers[0].id.clone();
    let window = json!({ "start": date_time(later), "end": date_time(later + 3_600) });
    let all = json!({ "nodes": 4, "durationSeconds": 3_600, "window": window });
    let too_many = physics.post_json("/agreements", &all).await;
    let refused = too_many.json()["refusal"]["id"].clone();
    let refused = refused.as_str().expect("a refusal has an id").to_owned();
    let concrete = |route: &str| match route {
        "/refusals/{id}" => format!("/refusals/{refused}"),
        "/offers/{id}" => format!("/offers/{offer}"),
        route => concrete(route, &id, &negotiation),
    };
    for (method, route) in KEYED {
        let path = concrete(route);
        for stranger in [&nobody, &unknown()] {
            let answer = ask(stranger, method, &path).await;
            assert_eq!(answer, StatusCode::UNAUTHORIZED, "{method} {route} without a key");
        }
        if [&id, &negotiation, &offer, &refused]
            .iter()
            .any(|own| path.contains(*own))
        {
            assert_eq!(
                ask(&biology, method, &path).await,
                StatusCode::NOT_FOUND,
                "{method} {route} by another party"
            );
        }
    }
    let operator = server.client();
    assert_eq!(
        ask(&operator, &Method::GET, &format!("/agreements/{id}")).await,
        StatusCode::OK,
        "an operator sees all"
    );
    for (method, route) in KEYED {
        let answer = ask(&physics, method, &concrete(route)).await;
        assert!(answer.is_success(), "{method} {route} by its own party: {answer}");
    }
    let monitor = server.client_with(&server.key_for("prometheus", "monitor"));
    for (method, route) in KEYED {
        let answer = ask(&monitor, method, &concrete(route)).await;
        assert_eq!(answer, StatusCode::FORBIDDEN, "{method} {route} by a monitor");
    }
    // With a key for reading only nothing is changed, and everything else is as with any other.
    let reads = async |party: &str, role: &str| {
        let wish = json!({ "party": party, "role": role, "readOnly": true });
        let made = operator.post_json("/keys", &wish).await.json();
        server.client_with(made["key"].as_str().expect("it is shown"))
    };
    let (reader, supervisor) = (reads("physics", "consumer").await, reads("ops", "operator").await);
    let for_operators = operations_for_operators(&nobody).await;
    let keyed = KEYED.iter().map(|(method, route)| (&reader, method, *route));
    let ordered = for_operators
        .iter()
        .map(|(method, route)| (&supervisor, method, route.as_str()));
    for (client, method, route) in keyed
        .chain(ordered)
        .filter(|(_, method, _)| **method != Method::GET)
    {
        let path = concrete(route);
        let answer = ask(client, method, &path).await;
        assert_eq!(
            answer,
            StatusCode::FORBIDDEN,
            "{method} {route} with a key for reading only"
        );
    }
    for path in ["/agreements", "/files", "/events"] {
        assert_eq!(ask(&reader, &Method::GET, path).await, StatusCode::OK, "{path}");
        assert_eq!(
            ask(&supervisor, &Method::GET, path).await,
            StatusCode::OK,
            "{path}"
        );
    }
    for path in WATCHED {
        for (who, client, status) in [
            ("nobody", &nobody, StatusCode::UNAUTHORIZED),
            ("an unknown key", &unknown(), StatusCode::UNAUTHORIZED),
            ("a consumer", &physics, StatusCode::FORBIDDEN),
            ("a monitor", &monitor, StatusCode::OK),
            ("an operator", &operator, StatusCode::OK),
        ] {
            assert_eq!(ask(client, &Method::GET, path).await, status, "{path} by {who}");
        }
    }
    let wish = json!({ "party": "chemistry", "role": "consumer" });
    let key = operator.post_json("/keys", &wish).await.json()["id"].clone();
    let key = key.as_str().expect("a key has an id");
    for (method, route) in &for_operators {
        let planned = operator.get_json("/maintenance").await;
        let added = planned["maintenance"][0]["id"].as_str().unwrap_or_default();
        let object = if route.starts_with("/agreements") {
            // The one above was ended.
            let another = physics.post("/agreements", input("/agreements")).await;
            another.created().to_string()
        } else if route.starts_with("/keys") {
            key.to_owned()
        } else {
            added.to_owned()
        };
        let path = route.replace("{name}", "local").replace("{nodes}", "0");
        let path = path.replace("{id}", &object);
        for (client, expected) in [
            (&nobody, StatusCode::UNAUTHORIZED),
            (&unknown(), StatusCode::UNAUTHORIZED),
            (&physics, StatusCode::FORBIDDEN),
            (&monitor, StatusCode::FORBIDDEN),
        ] {
            assert_eq!(ask(client, method, &path).await, expected, "{method} {route}");
        }
        let answer = ask(&operator, method, &path).await;
        // There is no peer to compare anything with.
        let is_allowed =
            answer.is_success() || route.starts_with("/peers/") && answer == StatusCode::NOT_FOUND;
        assert!(is_allowed, "{method} {route} by an operator: {answer}");
        // Whatever was done to the resource, the next operation finds it in service.
        for verb in ["restore", "thaw"] {
            let path = format!("/resources/local/{verb}");
            assert!(ask(&operator, &Method::POST, &path).await.is_success(), "{path}");
        }
    }
    for path in OPEN {
        assert_eq!(
            ask(&nobody, &Method::GET, path).await,
            StatusCode::OK,
            "{path} needs no key"
        );
    }
}

#[test]
fn every_route_of_the_api_is_in_these_tables() {
    run(async {
        let server = Server::local();
        let description = server.client_with("").get_json("/openapi.json").await;
        let paths = description["paths"].as_object().expect("it has paths");
        let routes: BTreeSet<(String, &str)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("it has methods").keys();
                methods.map(|method| (method.to_uppercase(), path.as_str()))
            })
            .collect();
        let for_operators = operations_for_operators(&server.client_with("")).await;
        let keyed = KEYED.iter().map(|(method, route)| (method, *route));
        let ordered = for_operators
            .iter()
            .map(|(method, route)| (method, route.as_str()));
        // The root only leads a browser to the pages.
        let (others, get) = (OPEN.iter().chain(WATCHED).chain(&["/"]), Method::GET);
        let known: BTreeSet<(String, &str)> = keyed
            .chain(ordered)
            .chain(others.map(|route| (&get, *route)))
            .map(|(method, route)| (method.to_string(), route))
            .collect();
        assert_eq!(known, routes);
    });
}

/// The path of a route about the agreement `id` or the negotiation.
fn concrete(route: &str, id: &str, negotiation: &str) -> String {
    let id = if route.starts_with("/templates") {
        "advance-reservation"
    } else if route.starts_with("/negotiations") {
        negotiation
    } else {
        id
    };
    let name = if route.starts_with("/call-backs") {
        "decisions"
    } else {
        "stdout"
    };
    route.replace("{id}", id).replace("{name}", name)
}

async fn a_list_holds_what_is_ones_own(url: String) {
    let server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let biology = server.client_with(&server.key_for("biology", "consumer"));
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(
            physics
                .post("/agreements", input("/agreements"))
                .await
                .created()
                .to_string(),
        );
    }
    biology.post("/agreements", input("/agreements")).await.created();
    let mut listed = Vec::new();
    let mut path = "/agreements?limit=2".to_owned();
    loop {
        let page = physics.get_json(&path).await;
        let agreements = page["agreements"].as_array().expect("a list");
        assert!(agreements.len() <= 2, "a page of two: {page}");
        listed.extend(
            agreements
                .iter()
                .map(|agreement| agreement["id"].as_str().unwrap_or_default().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/agreements?limit=2&after={next}");
    }
    made.reverse();
    assert_eq!(listed, made, "newest first, each once, no other party's");
}

async fn ask(client: &Client, method: &Method, path: &str) -> StatusCode {
    let mut request = client.request(method.clone(), path);
    if path == "/maintenance" && *method == Method::POST {
        let (start, end) = (date_time(hours_ahead(9)), date_time(hours_ahead(10)));
        request = request.json(&json!({ "resource": "local", "start": start, "end": end }));
    } else if path.ends_with("/move") {
        request = request.json(&json!({ "resource": "local" }));
    } else if path.ends_with("/evict") {
        request = request.json(&json!({ "reason": "a test" }));
    } else if *method == Method::POST {
        request = request
            .header("content-type", "application/xml")
            .body(input(path));
    }
    if path.starts_with("/resources") && *method == Method::PUT {
        let body = if path.contains("/nodes/") {
            r#"{"state": "up"}"#
        } else {
            r#"{"nodes": 3}"#
        };
        request = request.header("content-type", "application/json").body(body);
    }
    if path.starts_with("/keys") && *method != Method::GET {
        let body = if *method == Method::POST {
            r#"{"party": "geology", "role": "consumer"}"#
        } else {
            r#"{"expires": null}"#
        };
        request = client
            .request(method.clone(), path)
            .header("content-type", "application/json")
            .body(body);
    }
    if path.starts_with("/call-backs") && *method == Method::PUT {
        request = request.header("content-type", "application/json").body("{}");
    }
    client.send(request).await.status
}
