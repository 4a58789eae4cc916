//! The list of reservations: its order, its filters and its pages; and the files and the documents of one.

use reqwest::StatusCode;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde_json::{Value, json};
use uuid::Uuid;

use super::browser::{Browser, Page};
use super::{SOON, agreements, start};
use crate::support::client::Client;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

const HOUR: i64 = 3_600;

/// An application that writes a file of a name.
const WRITES_A_FILE: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 1\n\
    [[application]]\nname = \"touch\"\nprogram = \"/usr/bin/touch\"\n\
    [[application.argument]]\nname = \"file\"\ntype = \"text\"\nmax_length = 80\n";

on_both_engines!(reservations_are_listed_by_start_and_found_by_every_filter);

/// Reserves a node for an hour at a time.
async fn reserve_at(client: &Client, name: &str, start: i64) -> Uuid {
    let offer = Offer {
        name: name.to_owned(),
        ..Offer::reserve(1, HOUR).within(start, start + HOUR)
    };
    client.post("/agreements", offer.xml()).await.created()
}

/// The ids of the reservations on a page, in order.
fn listed(page: &Page) -> Vec<String> {
    assert_eq!(page.status, StatusCode::OK, "{page:?}");
    let links = page
        .body
        .split("<div class=\"head\"><a href=\"/portal/agreements/")
        .skip(1);
    links.map(|link| link[..36].to_owned()).collect()
}

async fn reservations_are_listed_by_start_and_found_by_every_filter(url: String) {
    let server = Server::start(&url);
    let (ann, bob) = (
        server.key_for("ann", "consumer"),
        server.key_for("bob", "consumer"),
    );
    let (anns, bobs) = (server.client_with(&ann), server.client_with(&bob));
    let begin = hours_ahead(2);
    let mut made = Vec::new();
    for (name, hour) in [
        ("third 50%", 4),
        ("FIRST Ünit", 0),
        ("second_a", 2),
        ("gone", 6),
        ("gone too", 8),
    ] {
        made.push(reserve_at(&anns, name, begin + hour * HOUR).await.to_string());
    }
    let other = reserve_at(&bobs, "bobs first", begin).await.to_string();
    for gone in &made[3..] {
        anns.post(&format!("/agreements/{gone}/terminate"), "").await;
    }
    let (third, first, second, gone, later) = (&made[0], &made[1], &made[2], &made[3], &made[4]);

    let browser = Browser::signed_in(&server, &ann).await;
    let get = async |query: &str| listed(&browser.get(&format!("/portal/reservations?{query}")).await);
    assert_eq!(
        get("").await,
        [first, second, third, later, gone].map(String::as_str),
        "past ones come last, the latest first"
    );
    assert_eq!(
        get("state=waiting").await,
        [first, second, third].map(String::as_str)
    );
    assert_eq!(get("state=cancelled").await, [later, gone].map(String::as_str));
    for none in [
        "state=running",
        "state=done",
        "state=failed",
        "state=lost",
        "state=refused",
        "state=changed",
        "q=bobs",
        "resource=x",
    ] {
        assert_eq!(get(none).await, Vec::<String>::new(), "{none}");
    }
    assert_eq!(
        get("resource=local&state=nothing").await.len(),
        5,
        "a word that is none filters nothing"
    );
    for (search, found) in [
        ("first", vec![first]),
        ("Ünit", vec![first]),
        ("50%25", vec![third]),
        ("d_a", vec![second]),
        ("%25_", vec![]),
        ("gone", vec![later, gone]),
        (&third[..], vec![third]),
        (&second[..35], vec![second]),
        ("%00", made.iter().collect()),
    ] {
        let mut seen = get(&format!("q={search}")).await;
        if search == "%00" {
            seen.sort();
            let mut all = made.clone();
            all.sort();
            assert_eq!(seen, all, "what cannot be a name filters nothing");
        } else {
            assert_eq!(seen, found.into_iter().cloned().collect::<Vec<_>>(), "{search}");
        }
    }
    let day = |seconds: i64| date_time(seconds)[..10].to_owned();
    assert_eq!(get(&format!("from={}", day(begin - 86_400))).await.len(), 5);
    assert_eq!(get(&format!("to={}", day(begin - 86_400))).await.len(), 0);
    assert_eq!(get(&format!("from={}", day(begin + 3 * 86_400))).await.len(), 0);
    assert_eq!(
        get("from=x&to=2026-13-13").await.len(),
        5,
        "what is no day filters nothing"
    );
    assert_eq!(get("party=bob").await.len(), 5, "a party sees its own only");

    let operator = Browser::signed_in(&server, server.key()).await;
    let all = listed(&operator.get("/portal/reservations").await);
    assert_eq!(all.len(), 6, "{all:?}");
    let bobs = operator.get("/portal/reservations?party=bob").await;
    assert_eq!(listed(&bobs), [other]);
    assert!(bobs.body.contains("of bob"), "{}", bobs.body);
    server.assert_verified();
}

#[test]
fn long_lists_go_on_on_further_pages_until_all_were_seen_once() {
    let server = start();
    run(async {
        let client = server.client();
        let begin = hours_ahead(1);
        let mut ended = Vec::new();
        for number in 0..45 {
            let id = reserve_at(
                &client,
                &format!("number {number}."),
                begin + (number * 7 % 45) * HOUR,
            )
            .await;
            if number % 2 == 0 {
                ended.push(id);
            }
        }
        for id in ended {
            client.post(&format!("/agreements/{id}/terminate"), "").await;
        }
        let browser = Browser::signed_in(&server, server.key()).await;
        let (mut path, mut seen) = (Some("/portal/reservations?q=number".to_owned()), Vec::new());
        let mut pages = 0;
        while let Some(next) = path {
            let page = browser.get(&next).await;
            seen.extend(listed(&page));
            pages += 1;
            let link = page
                .body
                .split("href=\"/portal/reservations?")
                .find(|link| link.contains(">Further ones<"));
            path = link.map(|link| {
                let query = &link[..link.find('"').expect("an attribute has an end")];
                assert!(query.contains("q=number"), "the filter goes on: {query}");
                format!("/portal/reservations?{}", query.replace("&#38;", "&"))
            });
        }
        assert_eq!((pages, seen.len()), (3, 45));
        let all = agreements(&server).await;
        let start = |id: &String| {
            let found = all
                .iter()
                .find(|each| each["id"] == id.as_str())
                .expect("it is there");
            (
                found["state"] == "Terminated",
                found["plannedStart"].as_str().expect("a place").to_owned(),
            )
        };
        let places: Vec<_> = seen.iter().map(start).collect();
        let mut sorted = places.clone();
        sorted.sort();
        sorted[22..].reverse();
        assert_eq!(places, sorted, "by start, and past ones backwards");
    });
}

#[test]
fn all_files_and_both_documents_of_a_reservation_can_be_downloaded() {
    let server = Server::configured(None, WRITES_A_FILE);
    run(async {
        let client = server.client();
        let request =
            json!({ "application": "touch", "arguments": ["result.txt"], "nodes": 1, "durationSeconds": 60 });
        let id = client.post_json("/agreements", &request).await.created();
        let browser = Browser::signed_in(&server, server.key()).await;
        let path = format!("/portal/agreements/{id}");
        let over = eventually("the end of the job", SOON, async || {
            let page = browser.get(&path).await;
            page.body.contains("Completed").then_some(page)
        });
        let page = over.await;
        for text in [
            "Its program ended by itself (exit status 0).",
            "Ends in time; no deadline was given",
            "A guarantee was kept",
            "Its time began",
            "Why it is there",
            "role=\"img\"",
            "/files/stdout\"",
            "/files/stderr\"",
            "/files/result.txt\"",
        ] {
            assert!(page.body.contains(text), "no {text} in {}", page.body);
        }
        let document = browser.get(&format!("{path}/document.xml")).await;
        assert_eq!(document.body, client.get(&format!("/agreements/{id}")).await.body);
        assert_eq!(document.headers[CONTENT_TYPE], "application/xml; charset=utf-8");
        let disposition = format!("attachment; filename=\"reservation-{id}.xml\"");
        assert_eq!(document.headers[CONTENT_DISPOSITION], disposition.as_str());
        let value = browser.get(&format!("{path}/document.json")).await;
        let value: Value = serde_json::from_str(&value.body).expect("it is JSON");
        assert_eq!(value, client.get_json(&format!("/agreements/{id}")).await);
        let file = browser.get(&format!("{path}/files/result.txt")).await;
        assert_eq!(
            file.headers[CONTENT_DISPOSITION],
            "attachment; filename=\"result.txt\""
        );
        assert_eq!(file.headers[CONTENT_TYPE], "application/octet-stream");
        let nothing = browser.get(&format!("{path}/files/..%2Foperator.key")).await;
        assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    });
}
