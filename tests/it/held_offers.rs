//! A held offer is kept as it was made, even after its template or application has changed.

use std::fs;

use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::fixture::column;
use crate::support::negotiation::{Counter, SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_held_offer_is_accepted_as_it_was_offered_after_the_catalogue_and_the_templates_have_changed;
    a_release_on_postgres:
    a_held_offer_of_an_application_that_is_gone_is_withdrawn,
    an_agreement_from_a_flat_request_keeps_its_terms_after_its_template_has_changed,
    offers_are_kept_as_values,
);

const SOON: std::time::Duration = std::time::Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// Four nodes, and one application that waits at most `most` seconds.
fn configuration(application: &str, most: u32) -> String {
    format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
         [[application]]\nname = \"{application}\"\nprogram = \"/bin/sleep\"\n\
         [[application.argument]]\nname = \"seconds\"\ntype = \"integer\"\nmin = 0\nmax = {most}\n"
    )
}

/// Starts the service again with another configuration.
fn restart_with(server: &mut Server, configuration: &str) {
    server.kill9();
    let file = server.data_dir().with_file_name("bespeak.toml");
    fs::write(file, configuration).expect("the configuration can be written");
    server.restart();
}

/// The request, in JSON.
fn wanted(start: i64) -> Value {
    json!({
        "application": "wait", "arguments": ["60"], "nodes": 1, "durationSeconds": 120,
        "window": { "start": date_time(start), "end": date_time(start + HOUR) },
    })
}

/// The same as a document.
fn offer(start: i64) -> Offer {
    Offer {
        run: Some(("wait", vec!["60".to_owned()])),
        ..Offer::reserve(1, 120).within(start, start + HOUR)
    }
}

/// The id of an offer that is held.
async fn held(client: &Client, start: i64) -> Value {
    let answer = client.post_json("/negotiations", &wanted(start)).await.json();
    let offer = &answer["offers"][0];
    assert_eq!(offer["state"], "Acceptable", "{answer}");
    offer["id"].clone()
}

/// The same, negotiated in documents.
async fn held_in_words(client: &Client, start: i64) -> Counter {
    let id = open(client).await;
    let counter = negotiate(client, id, &[SentOffer::solicited("a", offer(start))])
        .await
        .remove(0);
    assert_eq!(counter.state, "Acceptable");
    counter
}

async fn assert_as_offered(client: &Client, id: Uuid) {
    let shown = eventually("its decision", SOON, async || {
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        (shown["state"] != "Pending").then_some(shown)
    })
    .await;
    assert_eq!(
        (&shown["state"], &shown["application"], &shown["arguments"]),
        (&"Observed".into(), &"wait".into(), &json!(["60"])),
        "{shown}"
    );
    assert_eq!(shown["guarantees"].as_array().map(Vec::len), Some(1), "{shown}");
}

async fn a_held_offer_is_accepted_as_it_was_offered_after_the_catalogue_and_the_templates_have_changed(
    url: String,
) {
    let mut server = Server::configured(Some(&url), &configuration("wait", 60));
    let client = server.client();
    let start = hours_ahead(2);
    let json = held(&client, start).await;
    let later = held(&client, start).await;
    let words = held_in_words(&client, start).await;

    // Its argument is out of bounds by now, and its template is another.
    let template = server.data_dir().with_file_name("other.xml");
    let other = file("templates/agreements/advance-reservation.xml").replace("advance-reservation", "other");
    fs::write(&template, other).expect("a template can be written");
    let changed = configuration("wait", 5) + "[[template]]\nfile = \"other.xml\"\n";
    restart_with(&mut server, &changed);
    let client = server.client();
    let anew = client.post_json("/agreements", &wanted(start)).await;
    assert_eq!(anew.status, StatusCode::UNPROCESSABLE_ENTITY, "{anew:?}");

    let id = client
        .post_json("/agreements", &json!({ "offer": json }))
        .await
        .created();
    assert_as_offered(&client, id).await;
    let pending = json!({ "offer": later, "pending": true });
    let answer = client.post_json("/agreements", &pending).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let id = answer.json()["id"].as_str().and_then(|id| id.parse().ok());
    assert_as_offered(&client, id.expect("an id")).await;
    // Other words are still others.
    let different = words.acceptance().replace(">60<", ">5<");
    let refused = client.post("/agreements", different).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    assert!(
        refused.text("Path").ends_with("/jsdl-posix:Argument"),
        "{refused:?}"
    );
    let endless = format!("<wsag:Name>{}</wsag:Name>", "x".repeat(201));
    let named = words
        .acceptance()
        .replace("<wsag:Name>test</wsag:Name>", &endless);
    let refused = client.post("/agreements", named).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    let id = client.post("/agreements", words.acceptance()).await.created();
    assert_as_offered(&client, id).await;
    server.assert_verified();
}

async fn a_held_offer_of_an_application_that_is_gone_is_withdrawn(url: String) {
    let mut server = Server::configured(Some(&url), &configuration("wait", 60));
    let client = server.client();
    let start = hours_ahead(2);
    let json = held(&client, start).await;
    let words = held_in_words(&client, start).await;
    restart_with(&mut server, &configuration("another", 60));
    let client = server.client();
    let why = "the offer cannot be carried out, since its application is no longer offered";
    for pending in [false, true] {
        let gone = client
            .post_json("/agreements", &json!({ "offer": json, "pending": pending }))
            .await;
        assert_eq!(gone.status, StatusCode::GONE, "{gone:?}");
        let problem = gone.json();
        assert_eq!(
            (&problem["code"], &problem["detail"]),
            (&"WITHDRAWN".into(), &why.into()),
            "{problem}"
        );
        assert!(!gone.body.contains("wsag:"), "no path of a document: {gone:?}");
    }
    let gone = client.post("/agreements", words.acceptance()).await;
    assert_eq!(gone.status, StatusCode::GONE, "{gone:?}");
    assert_eq!(gone.text("ErrorCode"), "WITHDRAWN");
    // It may come back within the hold.
    restart_with(&mut server, &configuration("wait", 60));
    let client = server.client();
    let id = client
        .post_json("/agreements", &json!({ "offer": json }))
        .await
        .created();
    assert_as_offered(&client, id).await;
    server.assert_verified();
}

async fn an_agreement_from_a_flat_request_keeps_its_terms_after_its_template_has_changed(url: String) {
    let mut server = Server::configured(Some(&url), &configuration("wait", 60));
    let client = server.client();
    let start = hours_ahead(2);
    let mut wanted = wanted(start);
    // Nothing that a document has to escape, and no number, comes back as another.
    wanted["name"] = "a <b> & \"c\" ]]> \u{1f600}".into();
    wanted["nodes"] = json!({ "min": 1, "max": 2 });
    wanted["fixAt"] = json!(0.300_000_000_000_000_04);
    wanted["weights"] = json!({ "start": 1.0e-7, "price": 3 });
    wanted["window"]["end"] = date_time(start + HOUR).replace('Z', ".123456789Z").into();
    let id = client.post_json("/agreements", &wanted).await.created();
    let path = format!("/agreements/{id}");
    let parts = ["", "/terms", "/context"].map(|part| format!("{path}{part}"));
    let mut before = Vec::new();
    for part in &parts {
        before.push((client.get(part).await.body, client.get_json(part).await));
    }
    assert!(before[1].0.contains("0.30000000000000004"), "{}", before[1].0);
    assert!(before[1].0.contains(".123456789Z"), "{}", before[1].0);
    let kept = column(&url, "agreement_documents", "document")
        .await
        .expect("it can be read");
    assert!(
        !kept[0].contains("wsag:"),
        "the document is kept besides: {kept:?}"
    );

    // The guarantee that the agreement has is no longer in the template; the least size is not there either.
    let template = server.data_dir().with_file_name("other.xml");
    let text = file("templates/agreements/advance-reservation.xml");
    let (head, rest) = text.split_once("<wsag:GuaranteeTerm").expect("it has one");
    let (_, tail) = rest.split_once("</wsag:GuaranteeTerm>").expect("it ends");
    fs::write(&template, format!("{head}{tail}")).expect("a template can be written");
    let changed = configuration("wait", 60) + "[[template]]\nfile = \"other.xml\"\n";
    restart_with(&mut server, &changed);
    let client = server.client();
    for (part, (document, json)) in parts.iter().zip(&before) {
        assert_eq!(&client.get(part).await.body, document);
        assert_eq!(&client.get_json(part).await, json);
    }
    // Its negotiation begins with the words of then.
    let asked = json!({ "agreement": id, "nodes": 2 });
    let answer = client.post_json("/negotiations", &asked).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
    server.assert_verified();
}

async fn offers_are_kept_as_values(url: String) {
    let server = Server::configured(Some(&url), &configuration("wait", 60));
    let client = server.client();
    let start = hours_ahead(2);
    held(&client, start).await;
    let words = held_in_words(&client, start).await;
    client.post("/agreements", words.acceptance()).await.created();
    client.post("/agreements", offer(start).xml()).await.created();
    client.post_json("/agreements", &wanted(start)).await.created();
    for table in [
        "negotiations",
        "offers",
        "agreement_documents",
        "template_versions",
    ] {
        let kept = column(&url, table, "document").await.expect("it can be read");
        assert!(!kept.is_empty(), "{table}");
        for text in kept {
            let value: Value =
                serde_json::from_str(&text).unwrap_or_else(|why| panic!("{table}: {why}: {text}"));
            assert!(value.is_object(), "{table}: {text}");
        }
    }
    server.assert_verified();
}
