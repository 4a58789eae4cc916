//! What is around every page: the navigation, the time zone, and the stream that says that something has changed.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, SET_COOKIE};

use super::browser::{Browser, Form, Page};
use super::{reserve, start};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::run;

/// How long an event may take on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// The links of the navigation, each with what it says of the present page.
fn links(page: &Page) -> Vec<(String, Option<String>)> {
    let (_, nav) = page.body.split_once("<nav ").expect("there is a navigation");
    let (nav, _) = nav.split_once("</nav>").expect("it has an end");
    let link = |rest: &str| {
        let (path, rest) = rest.split_once('"').expect("an attribute has an end");
        let current = rest.strip_prefix(" aria-current=\"");
        let current = current.map(|rest| rest.split('"').next().unwrap_or_default().to_owned());
        (path.to_owned(), current)
    };
    nav.split("<a href=\"").skip(1).map(link).collect()
}

#[test]
fn the_navigation_says_where_one_is_and_has_the_operators_part_for_operators_alone() {
    let server = start();
    run(async {
        let current = |page: &Page| {
            let links = links(page).into_iter();
            let current: Vec<_> = links.filter(|(_, current)| current.is_some()).collect();
            current
        };
        let consumer = Browser::signed_in(&server, &server.key_for("ann", "consumer")).await;
        let page = consumer.get("/portal").await;
        assert_eq!(current(&page), [("/portal".to_owned(), Some("page".to_owned()))]);
        assert_eq!(links(&page).len(), 5, "{:?}", links(&page));
        let operator = Browser::signed_in(&server, server.key()).await;
        let page = operator.get("/portal/negotiations").await;
        assert_eq!(
            current(&page),
            [("/portal/negotiations".to_owned(), Some("page".to_owned()))]
        );
        assert_eq!(links(&page).len(), 7, "{:?}", links(&page));
        let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
        let id = server.client().post("/agreements", offer.xml()).await.created();
        let page = operator.get(&format!("/portal/agreements/{id}")).await;
        assert_eq!(
            current(&page),
            [("/portal/reservations".to_owned(), Some("true".to_owned()))]
        );
    });
}

#[test]
fn times_are_shown_and_read_in_the_zone_that_a_visitor_has_set() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let session = browser.cookie.clone().expect("a session");
        let settings = browser.get("/portal/settings").await;
        let form = settings.fields(settings.body.find("action=\"/portal/settings\"").expect("a form"));
        let unknown = browser
            .post("/portal/settings", &form.clone().with("zone", "Mars/Olympus"))
            .await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        let saved = browser
            .post("/portal/settings", &form.clone().with("zone", "Asia/Tokyo"))
            .await;
        let set = saved.headers[SET_COOKIE].to_str().expect("a cookie is ASCII");
        assert!(set.starts_with("bespeak_zone=Asia/Tokyo; Path=/portal;"), "{set}");
        browser.cookie = Some(format!("{session}; bespeak_zone=Asia/Tokyo"));
        let settings = browser.get("/portal/settings").await;
        assert!(
            settings.body.contains("<option selected>Asia/Tokyo"),
            "{settings:?}"
        );

        // A window in UTC, as links have it, is shown nine hours later, and means the same.
        let query = Form::default()
            .with("application", "")
            .with("start-date", "2031-03-01")
            .with("start-time", "20:00:00");
        let filled = browser.get(&format!("/portal?{}", query.encoded())).await.form();
        assert_eq!(filled.0["zone"], "Asia/Tokyo");
        assert_eq!(
            (filled.0["start-date"].as_str(), filled.0["start-time"].as_str()),
            ("2031-03-02", "05:00:00")
        );
        let (from, to) = (hours_ahead(2), hours_ahead(5));
        let nine = 9 * 3_600;
        let form = reserve(browser.form().await, 1, from + nine, to + nine);
        let made = browser.post("/portal/agreements", &form).await;
        let id = made.location().rsplit('/').next().expect("a path");
        let view = server.client().get_json(&format!("/agreements/{id}")).await;
        let ready: jiff::Timestamp = view["ready"]
            .as_str()
            .unwrap_or_default()
            .parse()
            .expect("a time");
        assert_eq!(ready.as_second(), from);
        let page = browser.get(made.location()).await;
        let shown = ready
            .in_tz("Asia/Tokyo")
            .expect("a zone")
            .strftime("%a %-d %b %Y, %H:%M")
            .to_string();
        assert!(
            page.body.contains(&shown) && page.body.contains(" UTC)"),
            "no {shown} in {page:?}"
        );

        browser.cookie = Some(session);
        let cleared = browser
            .post("/portal/settings", &settings_form(&browser).await)
            .await;
        let set = cleared.headers[SET_COOKIE].to_str().expect("a cookie is ASCII");
        assert!(set.contains("Max-Age=0"), "{set}");
    });
}

/// The form of the settings as the browser's own zone is chosen.
async fn settings_form(browser: &Browser) -> Form {
    let page = browser.get("/portal/settings").await;
    let form = page.fields(page.body.find("action=\"/portal/settings\"").expect("a form"));
    form.with("zone", "")
}

#[test]
fn open_pages_are_told_of_changes_until_the_service_stops() {
    let mut server = start();
    run(async {
        let nobody = Browser::new(&server);
        let refused = nobody.get("/portal/events").await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let browser = Browser::signed_in(&server, server.key()).await;
        let mut stream = browser.stream("/portal/events").await;
        assert_eq!(stream.headers()[CONTENT_TYPE], "text/event-stream");
        let offer = Offer::reserve(1, 60).within(hours_ahead(3), hours_ahead(4));
        server.client().post("/agreements", offer.xml()).await.created();
        let told = tokio::time::timeout(SOON, async {
            let mut text = String::new();
            while !text.contains("data: changed") {
                let part = stream.chunk().await.expect("it is read").expect("it goes on");
                text += &String::from_utf8_lossy(&part);
            }
        });
        told.await.expect("a change is told");
        let stopped = tokio::task::spawn_blocking(move || server.stop());
        let ended = tokio::time::timeout(SOON, async { while let Ok(Some(_)) = stream.chunk().await {} });
        ended.await.expect("the stream ends with the service");
        assert!(stopped.await.expect("it stops").success());
    });
}

#[test]
fn the_page_of_an_error_keeps_the_navigation_of_its_visitor() {
    let server = start();
    run(async {
        let (browser, nobody) = (
            Browser::signed_in(&server, &server.key_for("ann", "consumer")).await,
            Browser::new(&server),
        );
        let other = "01a1fc61-4f03-7296-9d9c-551879cc7ecd";
        for (path, status) in [
            ("/portal/nothing", StatusCode::NOT_FOUND),
            (&format!("/portal/agreements/{other}"), StatusCode::NOT_FOUND),
            ("/portal/operator", StatusCode::FORBIDDEN),
        ] {
            let page = browser.get(path).await;
            assert_eq!(page.status, status, "{path}");
            for part in ["aria-label=\"Pages\"", "Signed in as <strong>ann</strong>"] {
                assert!(page.body.contains(part), "no {part} in {page:?}");
            }
            let page = nobody.get(path).await;
            assert!(!page.body.contains("Signed in as"), "{page:?}");
        }
    });
}

#[test]
fn every_page_forbids_foreign_scripts_frames_and_forms() {
    let server = start();
    run(async {
        let browser = Browser::signed_in(&server, server.key()).await;
        for path in [
            "/portal",
            "/portal/style.css",
            "/portal/live.js",
            "/portal/icon.svg",
            "/portal/settings",
            "/portal/nothing",
            "/portal/sign-in",
            "/portal/negotiations",
            "/portal/operator/resources",
            "/portal/operator/reliability",
        ] {
            let page = browser.get(path).await;
            let policy = page.headers["content-security-policy"]
                .to_str()
                .expect("a policy is ASCII");
            for part in [
                "default-src 'none'",
                "style-src 'self'",
                "script-src 'self'",
                "connect-src 'self'",
                "img-src 'self'",
                "form-action 'self'",
                "frame-ancestors 'none'",
                "base-uri 'none'",
            ] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
            assert_eq!(page.headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(page.headers["x-frame-options"], "DENY", "{path}");
            assert_eq!(page.headers["referrer-policy"], "same-origin", "{path}");
            let scripts = page
                .body
                .replace("<script src=\"/portal/live.js\" defer></script>", "");
            assert!(
                !scripts.contains("<script") && !page.body.contains(" style="),
                "{path}"
            );
        }
        assert_eq!(browser.get("/portal").await.headers["cache-control"], "no-store");
        let style = browser.get("/portal/style.css").await;
        assert_eq!(style.headers[CONTENT_TYPE], "text/css; charset=utf-8");
    });
}
