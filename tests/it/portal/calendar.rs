//! The calendar: everybody sees when nodes are free and what is their own, and nothing of the others.

use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::CONFIGURATION;
use super::browser::{Browser, Page};
use crate::support::offers::{Offer, date_time, hours_ahead, now};
use crate::support::run;
use crate::support::server::Server;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const PAGE: &str = "/portal/calendar";

/// The day of an hour, as an address has it.
fn day_of(at: i64) -> String {
    date_time(at)
        .split('T')
        .next()
        .expect("a dateTime has a date")
        .to_owned()
}

/// The page of the day of an hour.
fn day(at: i64) -> String {
    format!("{PAGE}?view=day&nodes=2&from={}", day_of(at))
}

/// The cell of an hour: its element, with its link where it has one.
fn cell(page: &Page, at: i64) -> &str {
    let hour = jiff::Timestamp::from_second(at).expect("an instant of our time");
    let hour = hour
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%a %-d %b %H:%M")
        .to_string();
    let words = format!("<span class=\"hidden\">{hour}");
    let found = page.body.split("<td").find(|cell| cell.contains(&words));
    found.unwrap_or_else(|| panic!("no {words} in {page:?}"))
}

/// The first address in an element, as a browser reads it.
fn address(element: &str) -> String {
    let after = element.split("href=\"").nth(1).expect("there is a link");
    let address = after.split('"').next().expect("an attribute has an end");
    address.replace("&#38;", "&").replace("&amp;", "&")
}

async fn reserve(server: &Server, key: &str, nodes: u32, start: i64) -> Uuid {
    let offer = Offer::reserve(nodes, HOUR).within(start, start + HOUR);
    server
        .client_with(key)
        .post("/agreements", offer.xml())
        .await
        .created()
}

#[test]
fn ones_own_slots_are_shown_and_of_the_others_only_that_their_nodes_are_taken() {
    let server = Server::configured(None, CONFIGURATION);
    let (ann, zoe) = (
        server.key_for("ann", "consumer"),
        server.key_for("<i>zoe", "consumer"),
    );
    run(async {
        // The next hour is of the same day.
        let start = (now() / DAY + 2) * DAY + 12 * HOUR;
        let others = reserve(&server, &zoe, 3, start).await;
        let own = reserve(&server, &ann, 1, start + HOUR).await;
        let window = json!({ "start": date_time(start + HOUR), "end": date_time(start + 2 * HOUR) });
        let asked = json!({ "nodes": 2, "durationSeconds": HOUR, "window": window });
        let held = server.client_with(&ann).post_json("/negotiations", &asked).await;
        let held = held.json()["id"].as_str().expect("an id").to_owned();

        let browser = Browser::signed_in(&server, &ann).await;
        for view in ["day", "week", "month"] {
            let page = browser.get(&day(start + HOUR).replace("day", view)).await;
            assert_eq!(page.status, StatusCode::OK);
            assert!(
                page.body.contains(&format!("/portal/agreements/{own}\"")),
                "{view}: {page:?}"
            );
            assert!(
                page.body.contains(&format!("/portal/negotiations/{held}\"")),
                "{view}: {page:?}"
            );
            let is_told = page.body.contains("zoe") || page.body.contains(&others.to_string());
            assert!(!is_told, "{view}: {page:?}");
        }
        let page = browser.get(&day(start)).await;
        assert!(cell(&page, start).starts_with(" class=\"none\""), "{page:?}");
        assert!(cell(&page, start).contains("1 of 4 nodes free"));
        assert!(
            !cell(&page, start).contains("href"),
            "two nodes cannot be had then"
        );

        let operator = Browser::signed_in(&server, server.key()).await;
        let page = operator.get(&day(start)).await;
        assert!(
            page.body.contains(&others.to_string()) && page.body.contains("&#60;i&#62;zoe"),
            "{page:?}"
        );
        assert!(!page.body.contains("<i>"), "{page:?}");
    });
}

#[test]
fn a_free_time_fills_in_the_form_and_can_be_reserved_as_it_stands() {
    let server = Server::configured(None, CONFIGURATION);
    let ann = server.key_for("ann", "consumer");
    run(async {
        let mut browser = Browser::signed_in(&server, &ann).await;
        let start = hours_ahead(48);
        let page = browser.get(&day(start)).await;
        let filled = browser.get(&address(cell(&page, start))).await;
        assert!(filled.body.contains("The form is filled in"), "{filled:?}");
        let form = filled.form();
        let at = |name: &str| form.0.get(name).cloned().unwrap_or_default();
        let begins = format!("{}T{}Z", at("start-date"), at("start-time"));
        assert_eq!((begins, at("nodes")), (date_time(start), "2".to_owned()));
        let sent = browser
            .post("/portal/agreements", &form.with("application", ""))
            .await;
        let made = sent.location().to_owned();
        let page = browser.get(&day(start)).await;
        assert!(page.body.contains(&made), "{page:?}");
        assert!(cell(&page, start).contains("2 of 4 nodes free"), "{page:?}");

        // The first free time of the list, and the present hour.
        let list = page
            .body
            .split("<h4>Next times")
            .nth(1)
            .expect("there are free times");
        for link in [
            address(list),
            address(cell(&page_of_now(&browser).await, hours_ahead(-1))),
        ] {
            let filled = browser.get(&link).await;
            assert!(filled.body.contains("The form is filled in"), "{link}");
        }
    });
}

async fn page_of_now(browser: &Browser) -> Page {
    browser
        .get(&format!("{PAGE}?view=day&from={}", day_of(hours_ahead(-1))))
        .await
}

#[test]
fn each_hour_has_its_price_and_a_reader_has_no_links_to_the_form() {
    let priced = "\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"2\"\nbusy_percent = 50\n";
    let server = Server::configured(None, &format!("{CONFIGURATION}{priced}"));
    run(async {
        let start = hours_ahead(48);
        reserve(&server, server.key(), 2, start).await;
        let wish = json!({ "party": "ann", "role": "consumer", "readOnly": true });
        let made = server.client().post_json("/keys", &wish).await.json();
        let browser = Browser::signed_in(&server, made["key"].as_str().expect("it is shown")).await;
        let page = browser.get(&day(start)).await;
        assert!(
            cell(&page, start).contains("2 of 4 nodes free, 2.5 EUR per node-hour"),
            "{page:?}"
        );
        assert!(!page.body.contains("/portal?"), "{page:?}");
        let next = browser.get(&day(start + HOUR)).await;
        assert!(
            cell(&next, start + HOUR).contains("4 of 4 nodes free, 2 EUR per node-hour"),
            "{next:?}"
        );
    });
}

#[test]
fn a_provider_that_hides_when_nodes_are_free_shows_ones_own_slots_alone() {
    let hidden = format!("[scheduling]\navailability = false\n{CONFIGURATION}");
    let server = Server::configured(None, &hidden);
    let ann = server.key_for("ann", "consumer");
    run(async {
        let start = hours_ahead(48);
        reserve(&server, server.key(), 3, start).await;
        let own = reserve(&server, &ann, 1, start).await;
        let browser = Browser::signed_in(&server, &ann).await;
        let page = browser.get(&day(start)).await;
        assert!(page.body.contains(&own.to_string()), "{page:?}");
        assert!(!page.body.contains("nodes free"), "{page:?}");
        assert!(
            cell(&page, start).contains("href=\"/portal?"),
            "it can be asked for: {page:?}"
        );
        let operator = Browser::signed_in(&server, server.key()).await;
        assert!(cell(&operator.get(&day(start)).await, start).contains("0 of 4 nodes free"));
    });
}

#[test]
fn whatever_is_asked_for_is_answered_by_a_page() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let stranger = Browser::new(&server);
        assert_eq!(stranger.get(PAGE).await.status, StatusCode::UNAUTHORIZED);
        let browser = Browser::signed_in(&server, server.key()).await;
        for query in [
            "view=year&from=yesterday&nodes=none",
            "nodes=0",
            "nodes=4294967296",
            "nodes=4294967295",
            "from=0000-01-01&view=month",
            "from=9999-12-31&view=week",
            "skip=18446744073709551615",
            "resource=%22%3E%3Cscript%3E",
            "resource=local&resource=other&view=%FF",
        ] {
            let page = browser.get(&format!("{PAGE}?{query}")).await;
            assert_eq!(page.status, StatusCode::OK, "{query}");
            assert!(
                page.body.contains("<h1>Calendar</h1>") && !page.body.contains("<script>"),
                "{query}"
            );
        }
        let retired = server
            .client()
            .post_json("/resources/local/retire", &json!({}))
            .await;
        assert!(retired.status.is_success(), "{retired:?}");
        let page = browser.get(PAGE).await;
        assert!(
            page.body
                .contains("There is no resource on which something can be reserved"),
            "{page:?}"
        );
    });
}
