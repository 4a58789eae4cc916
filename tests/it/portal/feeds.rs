//! The calendar of a party at a secret address.

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;

use super::browser::{Browser, Page};
use super::reserve;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;

on_both_engines!(a_calendar_is_read_at_its_address_until_there_is_a_new_one);

/// The path of the calendar on the page of reservations.
fn feed(page: &Page) -> Option<String> {
    let (_, address) = page.body.split_once("/portal/calendar-feed/")?;
    let secret = address
        .split('<')
        .next()
        .filter(|secret| secret.strip_suffix(".ics").is_some())?;
    Some(format!("/portal/calendar-feed/{secret}"))
}

/// Has a new address made.
async fn make_address(browser: &mut Browser) -> String {
    let page = browser.get("/portal/reservations").await;
    let at = page
        .body
        .find("action=\"/portal/calendar-feed\"")
        .expect("a form");
    let made = browser.post("/portal/calendar-feed", &page.fields(at)).await;
    assert_eq!(made.location(), "/portal/reservations#feed");
    feed(&browser.get("/portal/reservations").await).expect("there is an address now")
}

/// The events of a calendar as the values of their properties, read without the writer's knowledge.
fn events(text: &str) -> Vec<Vec<(String, String)>> {
    let text = text
        .strip_suffix("\r\n")
        .expect("the last line ends")
        .replace("\r\n ", "");
    let mut events = Vec::new();
    for line in text.split("\r\n") {
        let (name, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("{line:?} has no value"));
        match (name, value) {
            ("BEGIN", "VEVENT") => events.push(Vec::new()),
            (name, value) => {
                if let Some(event) = events.last_mut() {
                    event.push((name.to_owned(), value.to_owned()));
                }
            }
        }
    }
    events
}

fn value<'a>(event: &'a [(String, String)], name: &str) -> &'a str {
    let found: Vec<_> = event.iter().filter(|(event, _)| event == name).collect();
    assert_eq!(found.len(), 1, "{name} in {event:?}");
    &found[0].1
}

#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn a_calendar_is_read_at_its_address_until_there_is_a_new_one(url: String) {
    let server = Server::start(&url);
    let (ann, bob) = (
        server.key_for("ann", "consumer"),
        server.key_for("bob", "consumer"),
    );
    let mut browser = Browser::signed_in(&server, &ann).await;
    let from = hours_ahead(3);
    let hostile =
        "a;b,c\\n\"BEGIN:VEVENT\" ünïcödé, and a name that is far longer than one line of a calendar";
    let form = reserve(browser.form().await, 1, from, from + HOUR).with("name", hostile);
    let path = browser
        .post("/portal/agreements", &form)
        .await
        .location()
        .to_owned();
    let others = server.client_with(&bob);
    others
        .post(
            "/agreements",
            Offer::reserve(1, HOUR).within(from, from + HOUR).xml(),
        )
        .await
        .created();

    assert_eq!(
        feed(&browser.get("/portal/reservations").await),
        None,
        "there is none before it is asked for"
    );
    let first = make_address(&mut browser).await;
    let nobody = Browser::new(&server);
    let calendar = nobody.get(&first).await;
    assert_eq!(calendar.status, StatusCode::OK, "{calendar:?}");
    assert_eq!(calendar.headers[CONTENT_TYPE], "text/calendar; charset=utf-8");
    assert!(
        calendar.body.split("\r\n").all(|line| line.len() <= 75),
        "{}",
        calendar.body
    );
    let read = events(&calendar.body);
    let [event] = &read[..] else {
        panic!("the party's only: {read:?}")
    };
    let id = path.rsplit('/').next().expect("an id");
    assert_eq!(value(event, "UID"), format!("{id}@bespeak"));
    assert_eq!(value(event, "STATUS"), "CONFIRMED");
    let name = hostile
        .replace('\\', "\\\\")
        .replace(';', "\\;")
        .replace(',', "\\,");
    assert_eq!(value(event, "SUMMARY"), name);
    for name in ["DTSTAMP", "DTSTART", "DTEND"] {
        let at = value(event, name);
        let digits = at.chars().filter(char::is_ascii_digit).count();
        assert!(
            at.len() == 16 && digits == 14 && at.as_bytes()[8] == b'T' && at.ends_with('Z'),
            "{name} {at}"
        );
    }
    let before: i64 = value(event, "SEQUENCE").parse().expect("a number");

    // The end of the reservation is a later version of the same event.
    let asked = browser.get(&format!("{path}/terminate")).await;
    let at = asked
        .body
        .find(&format!("action=\"{path}/terminate\""))
        .expect("a form");
    browser
        .post(&format!("{path}/terminate"), &asked.fields(at))
        .await
        .location();
    let read = events(&nobody.get(&first).await.body);
    assert_eq!(value(&read[0], "STATUS"), "CANCELLED");
    assert!(value(&read[0], "SEQUENCE").parse::<i64>().expect("a number") > before);

    let second = make_address(&mut browser).await;
    assert_ne!(first, second);
    assert_eq!(
        nobody.get(&first).await.status,
        StatusCode::NOT_FOUND,
        "the old one is worth nothing"
    );
    assert_eq!(nobody.get(&second).await.status, StatusCode::OK);

    // The address opens nothing else, and is in no log.
    let secret = second
        .rsplit('/')
        .next()
        .expect("a name")
        .trim_end_matches(".ics");
    for wrong in [
        format!("/portal/calendar-feed/{secret}"),
        format!("/portal/calendar-feed/{}.ics", &secret[..95]),
        format!("/portal/calendar-feed/{}0.ics", &secret[..95]),
        "/portal/calendar-feed/ü.ics".to_owned(),
        "/portal/calendar-feed/.ics".to_owned(),
    ] {
        if !wrong.ends_with(&format!("{secret}.ics")) {
            assert_eq!(nobody.get(&wrong).await.status, StatusCode::NOT_FOUND, "{wrong}");
        }
    }
    for key in [secret, &secret[32..], &format!("bsp_{}", &secret[32..])] {
        assert_eq!(
            server.client_with(key).get("/agreements").await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    assert!(!server.log().contains(&secret[32..]), "the secret is in the log");

    // It is one of the keys that operators see, for reading only, and goes with the key of its owner.
    let keys = server.client().get_json("/keys").await;
    let keys = keys["keys"].as_array().expect("a list").clone();
    let feeds: Vec<_> = keys
        .iter()
        .filter(|key| {
            key["label"]
                .as_str()
                .is_some_and(|label| label.starts_with("calendar feed of key "))
        })
        .map(|key| {
            (
                key["state"].as_str(),
                key["readOnly"].as_bool(),
                key["party"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        feeds,
        [(Some("works"), Some(true), Some("ann"))],
        "one for both addresses"
    );
    let anns = keys
        .iter()
        .find(|key| key["party"] == "ann" && key["readOnly"] == false)
        .expect("it is there");
    let revoke = server.client().request(
        reqwest::Method::DELETE,
        &format!("/keys/{}", anns["id"].as_str().expect("an id")),
    );
    assert!(server.client().send(revoke).await.status.is_success());
    assert_eq!(nobody.get(&second).await.status, StatusCode::NOT_FOUND);
    server.assert_verified();
}

#[test]
fn a_reservation_that_is_lost_is_cancelled_in_the_calendar() {
    run(async {
        let server = Server::local();
        let ann = server.key_for("ann", "consumer");
        let mut browser = Browser::signed_in(&server, &ann).await;
        let from = hours_ahead(3);
        let exactly = Offer::reserve(1, HOUR).within(from, from + HOUR);
        server
            .client_with(&ann)
            .post("/agreements", exactly.xml())
            .await
            .created();
        let path = make_address(&mut browser).await;
        let seen = async || {
            let read = events(&Browser::new(&server).get(&path).await.body);
            let [event] = &read[..] else {
                panic!("its only one: {read:?}")
            };
            let sequence: i64 = value(event, "SEQUENCE").parse().expect("a number");
            (value(event, "STATUS").to_owned(), sequence)
        };
        let (status, before) = seen().await;
        assert_eq!(status, "CONFIRMED");
        let client = server.client();
        let down = client.request(reqwest::Method::PUT, "/resources/local/nodes/0,1,2,3");
        let down = down.json(&serde_json::json!({ "state": "down" }));
        assert_eq!(client.send(down).await.status, StatusCode::OK);
        let (status, after) = seen().await;
        assert_eq!(status, "CANCELLED");
        assert!(after > before, "{after} {before}");
        server.assert_verified();
    });
}
