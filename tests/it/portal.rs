//! The pages, as a browser sees them: which visitors are let in, the effect of a form, and that pages cannot be misused.

mod answers;
pub(crate) mod browser;
mod calendar;
mod changes;
mod feeds;
mod frame;
mod gantt;
mod money;
mod offers;
mod operator;
mod operator_overview;
mod places;
mod refusals;
mod requests;
mod reservations;

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, SET_COOKIE};
use serde_json::Value;

use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::{eventually, run};
use browser::{Browser, Form, Page};

/// How long a job that does nothing may take on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// Four nodes, `sleep`, and an application that prints its arguments.
const CONFIGURATION: &str = r#"
[[resource]]
name = "local"
kind = "local"
nodes = 4

[[application]]
name = "sleep"
program = "/usr/bin/sleep"
[[application.argument]]
name = "seconds"
type = "integer"
min = 0
max = 100

[[application]]
name = "echo <i>"
version = "1.0"
description = "Prints <b>texts</b>."
program = "/usr/bin/echo"
[[application.argument]]
name = "first"
type = "text"
max_length = 80
[[application.argument]]
name = "second"
type = "choice"
values = ["small", "<large>"]
"#;

/// The names of the fields of the applications' arguments.
const SECONDS: &str = "argument\t0\tsleep\t";
const FIRST: &str = "argument\t0\techo <i>\t1.0";
const SECOND: &str = "argument\t1\techo <i>\t1.0";

fn start() -> Server {
    Server::configured(None, CONFIGURATION)
}

/// The form filled in to reserve nodes alone for an hour, within a window in seconds since the epoch.
fn reserve(form: Form, nodes: u32, start: i64, end: i64) -> Form {
    let form = form.with("application", "").with("nodes", &nodes.to_string());
    let (form, at) = (
        form.with("hours", "1").with("minutes", "").with("seconds", ""),
        jiff::Timestamp::from_second,
    );
    let mut form = form;
    for (field, seconds) in [("start", start), ("deadline", end)] {
        let text = at(seconds).expect("an instant of our time").to_string();
        let (date, time) = text.trim_end_matches('Z').split_once('T').expect("a dateTime");
        form = form
            .with(&format!("{field}-date"), date)
            .with(&format!("{field}-time"), time);
    }
    form
}

/// Asks for offers with a form and takes the first one; the path of the reservation.
async fn buy(browser: &mut Browser, form: &Form) -> String {
    let asked = browser.post("/portal/offers", form).await;
    let page = browser.get(asked.location()).await;
    let action = accept(&page);
    browser
        .post(&action, &page.form_to(&action))
        .await
        .location()
        .to_owned()
}

/// The addresses that the page's forms are sent to, from its main part.
fn actions(page: &Page) -> Vec<&str> {
    let main = page.body.split("<main").nth(1).expect("a page has a main part");
    let forms = main.split(" method=\"post\" action=\"").skip(1);
    forms.filter_map(|form| form.split('"').next()).collect()
}

/// The address where the first offer of a page is taken.
fn accept(page: &Page) -> String {
    let found = actions(page)
        .into_iter()
        .find(|action| action.ends_with("/accept"));
    found
        .unwrap_or_else(|| panic!("nothing to take in {page:?}"))
        .to_owned()
}

async fn agreements(server: &Server) -> Vec<Value> {
    let list = server.client().get_json("/agreements").await;
    list["agreements"].as_array().expect("a list").clone()
}

#[test]
fn whoever_is_not_signed_in_sees_the_sign_in_form_and_nothing_else() {
    let server = start();
    run(async {
        let mut browser = Browser::new(&server);
        let first = browser.get("/portal").await;
        assert_eq!(first.status, StatusCode::OK);
        assert!(first.element("key").contains("type=\"password\""), "{first:?}");
        let id = "01a1fc61-4f03-7296-9d9c-551879cc7ecd";
        for path in [
            "",
            "/terminate",
            "/change",
            "/files/stdout",
            "/document.xml",
            "/document.json",
        ] {
            let page = browser.get(&format!("/portal/agreements/{id}{path}")).await;
            assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(page.body.contains("type=\"password\""), "{path}");
        }
        let form = Form::default().with("application", "").with("nodes", "3");
        let page = browser.post("/portal/agreements", &form).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED);
        let kept = "name=\"back\" value=\"/portal?application=&#38;nodes=3\"";
        assert!(page.body.contains(kept), "{page:?}");
        for path in [
            "/portal/nothing",
            "/portal/agreements/1",
            "/portal/agreements/1/2/3",
        ] {
            let page = browser.get(path).await;
            assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
            assert!(page.body.contains("<h1>"), "{path}");
        }
        // The way back to the agreement that was asked for, and to nowhere else.
        let key = Form::default().with("key", server.key());
        let page = browser
            .post("/portal/sign-in", &key.clone().with("back", "/portal/money"))
            .await;
        assert_eq!(page.location(), "/portal/money");
        let page = browser
            .post("/portal/sign-in", &key.with("back", "//elsewhere.example"))
            .await;
        assert_eq!(page.location(), "/portal");
    });
}

#[test]
fn a_wrong_key_is_said_to_be_wrong_and_opens_no_session() {
    let server = start();
    run(async {
        let mut browser = Browser::new(&server);
        let mistyped = format!("{}0", &server.key()[..server.key().len() - 1]);
        for key in ["", "wrong", "bsp_", "\"><script>", &mistyped] {
            if key == server.key() {
                continue;
            }
            let page = browser
                .post("/portal/sign-in", &Form::default().with("key", key))
                .await;
            assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{key}");
            assert!(page.headers.get(SET_COOKIE).is_none(), "{key}");
            assert!(page.body.contains("role=\"alert\""), "{key}");
            assert!(!page.body.contains("<script>"), "{key}");
        }
    });
}

#[test]
fn signing_out_ends_the_session_for_whoever_has_its_cookie() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let cookie = browser.cookie.clone();
        let page = browser.get("/portal").await;
        let sign_out = page.fields(page.body.find("/portal/sign-out").expect("a form to sign out"));
        assert!(
            page.body.contains("Signed in as <strong>operator</strong>"),
            "{page:?}"
        );
        let left = browser.post("/portal/sign-out", &sign_out).await;
        assert_eq!(left.location(), "/portal");
        let set = left.headers[SET_COOKIE].to_str().expect("a cookie is ASCII");
        assert!(
            set.contains("Max-Age=0") && set.contains("HttpOnly") && set.contains("SameSite=Strict"),
            "{set}"
        );
        browser.cookie = cookie;
        assert!(browser.get("/portal").await.body.contains("type=\"password\""));
    });
}

#[test]
fn a_form_that_our_page_did_not_send_does_nothing() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let other = Browser::signed_in(&server, server.key()).await;
        let form = browser.form().await.with("application", "");
        let foreign = other.form().await.0["csrf"].clone();
        assert_ne!(form.0["csrf"], foreign, "each session has its own token");
        let paths = [
            "/portal/agreements".to_owned(),
            "/portal/sign-out".to_owned(),
            format!("/portal/agreements/{}/terminate", form.0["once"]),
        ];
        for path in paths {
            for forged in [
                form.clone().without("csrf"),
                form.clone().with("csrf", ""),
                form.clone().with("csrf", &foreign),
                form.clone().with("csrf", &form.0["csrf"][1..]),
            ] {
                let page = browser.post(&path, &forged).await;
                assert_eq!(page.status, StatusCode::FORBIDDEN, "{path} {forged:?}");
            }
            browser.site = "cross-site";
            let page = browser.post(&path, &form).await;
            assert_eq!(page.status, StatusCode::FORBIDDEN, "{path} of another site");
            browser.site = "same-origin";
        }
        assert_eq!(agreements(&server).await, Vec::<Value>::new());
        assert!(
            browser.get("/portal").await.body.contains("Sign out"),
            "still signed in"
        );
        let mut stranger = Browser::new(&server);
        stranger.site = "cross-site";
        let page = stranger
            .post("/portal/sign-in", &Form::default().with("key", server.key()))
            .await;
        assert_eq!(
            page.status,
            StatusCode::FORBIDDEN,
            "another site signs no visitor in"
        );
    });
}

#[test]
fn a_form_becomes_the_same_agreement_as_an_offer_to_the_api() {
    let server = start();
    run(async {
        let client = server.client();
        let (from, to) = (hours_ahead(1), hours_ahead(5));
        let offer = Offer {
            name: "both".to_owned(),
            ..Offer::sleep(7, 3_600).within(from, to)
        };
        let by_offer = client.post("/agreements", offer.xml()).await.created();

        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 1, from, to)
            .with("application", "sleep\t")
            .with(SECONDS, "7")
            .with("name", "both");
        let page = browser.post("/portal/agreements", &form).await;
        let by_form = page.location().rsplit('/').next().expect("a path").to_owned();

        let mut views = Vec::new();
        for id in [by_offer.to_string(), by_form.clone()] {
            let mut view = client.get_json(&format!("/agreements/{id}")).await;
            let view_of = view.as_object_mut().expect("an object");
            for own in ["id", "created"] {
                view_of
                    .remove(own)
                    .unwrap_or_else(|| panic!("no {own} in {view_of:?}"));
            }
            let document = client.get(&format!("/agreements/{id}")).await.body;
            views.push((view, crate::support::xml::terms_of(&document)));
        }
        assert_eq!(views[0], views[1]);

        let shown = browser.get(page.location()).await;
        assert_eq!(shown.status, StatusCode::OK);
        let address = format!("http://{}/agreements/{by_form}", server.address());
        for text in [
            &address,
            "Waiting",
            "COMPLETION",
            "It was reserved",
            "data-live=\"/portal/agreements/",
        ] {
            assert!(shown.body.contains(text), "no {text} in {}", shown.body);
        }
        for word in ["Observed", "NotReady", "http-equiv"] {
            assert!(!shown.body.contains(word), "{word} in {}", shown.body);
        }
        server.assert_verified();
    });
}

#[test]
fn what_is_wrong_stands_beside_its_field_and_nothing_entered_is_lost() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let wrong = reserve(browser.form().await, 9, hours_ahead(3), hours_ahead(2))
            .with("application", "sleep\t")
            .with(SECONDS, "101")
            .with("name", "kept");
        let page = browser.post("/portal/agreements", &wrong).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(page.form(), wrong, "the values entered are kept");
        let element = page.element("argument-0-0");
        assert!(element.contains("aria-invalid=\"true\""), "{element}");
        page.element("argument-0-0-error");
        page.element("nodes-group-error");
        for id in ["nodes", "argument-0-0"] {
            assert!(
                page.body.contains(&format!("href=\"#{id}\"")),
                "the summary leads to {id}"
            );
        }
        assert!(
            page.body.contains("href=\"#deadline-date\""),
            "the summary leads to the deadline"
        );
        page.element("deadline-date-group-error");
        assert!(
            !page.body.contains("wsag:"),
            "a visitor need not know the documents: {}",
            page.body
        );

        let unreadable = wrong.with("nodes", "many").with("deadline-time", "soon");
        let page = browser.post("/portal/agreements", &unreadable).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(page.form(), unreadable);
        // What cannot be read and what the provider does not accept are said at the same time.
        for part in [
            "nodes-group-error",
            "deadline-date-group-error",
            "argument-0-0-error",
        ] {
            page.element(part);
        }
        assert_eq!(agreements(&server).await, Vec::<Value>::new());
    });
}

#[test]
fn a_refusal_fills_the_form_with_the_nearest_slot_which_is_then_taken() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let (from, to) = (hours_ahead(2), hours_ahead(4));
        for start in [from, from + 3_600] {
            let form = reserve(browser.form().await, 4, start, start + 3_600);
            browser.post("/portal/agreements", &form).await.location();
        }
        let form = reserve(browser.form().await, 2, from, to).with("name", "nearest");
        let refused = browser.post("/portal/agreements", &form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert_eq!(refused.form(), form, "the values entered are kept");
        assert!(
            refused.body.contains("Earlier:") && refused.body.contains("Later:"),
            "{}",
            refused.body
        );
        let slots: Vec<_> = refused.body.split("<ul class=\"slots\">").skip(1).collect();
        let slots: Vec<_> = slots[0].split("<li>").skip(1).take(2).collect();
        for slot in slots {
            let slot = Page {
                status: refused.status,
                headers: refused.headers.clone(),
                body: slot.to_owned(),
            };
            let address = slot.link("Fill in this time");
            assert!(
                !address.contains("csrf") && !address.contains("once"),
                "a token does not belong into an address: {address}"
            );
            let page = browser.get(&address).await;
            assert!(page.body.contains("Nothing is reserved until"), "{}", page.body);
            let filled = page.form();
            assert_eq!(filled.0["name"], "nearest");
            assert_ne!(filled.0["start-time"], form.0["start-time"]);
            browser.post("/portal/agreements", &filled).await.location();
        }
        assert_eq!(agreements(&server).await.len(), 4);
    });
}

#[test]
fn a_form_that_is_sent_twice_is_taken_once() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(4));
        let first = browser.post("/portal/agreements", &form).await;
        let again = browser.post("/portal/agreements", &form).await;
        assert_eq!(first.location(), again.location());
        assert_eq!(agreements(&server).await.len(), 1);

        // Gone back to, changed and sent: the page says so, and it is accepted when it is sent once more.
        let changed = browser
            .post("/portal/agreements", &form.clone().with("nodes", "2"))
            .await;
        assert_eq!(changed.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_ne!(changed.form().0["once"], form.0["once"]);
        let other = browser.post("/portal/agreements", &changed.form()).await;
        assert_ne!(other.location(), first.location());
        let without = browser.post("/portal/agreements", &form.without("once")).await;
        assert_eq!(without.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(agreements(&server).await.len(), 2);
    });
}

#[test]
fn what_anybody_enters_is_shown_as_text_only() {
    let server = start();
    run(async {
        let attack = "\"><img src=x onerror=alert(1)>'&amp;";
        let clean = |page: &Page| {
            for markup in ["<img", "<i>", "<b>", "<large>"] {
                assert!(!page.body.contains(markup), "{markup} in {}", page.body);
            }
        };
        let key = server.key_for("<i>Eve</i>", "consumer");
        let mut browser = Browser::signed_in(&server, &key).await;
        let form = browser
            .form()
            .await
            .with("application", "echo <i>\t1.0")
            .with("name", attack);
        let form = form
            .with(FIRST, attack)
            .with(SECOND, "<large>")
            .with("nodes", attack);
        let wrong = browser.post("/portal/agreements", &form).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        clean(&wrong);
        assert_eq!(
            wrong.form().0["name"],
            attack,
            "shown, and sent again, as it was entered"
        );
        let made = browser.post("/portal/agreements", &form.with("nodes", "1")).await;
        let path = made.location().to_owned();
        let output = eventually("the output", SOON, async || {
            let page = browser.get(&path).await;
            clean(&page);
            page.body.contains("Completed").then_some(page)
        });
        let page = output.await;
        assert!(!page.body.contains("data-live"), "it will not change any more");
        clean(&browser.get("/portal").await);
        clean(&browser.get("/portal/reservations").await);
        clean(&browser.get("/portal/money").await);
        let file = browser.get(&format!("{path}/files/stdout")).await;
        assert_eq!(file.body, format!("{attack} <large>\n"));
        assert_eq!(file.headers[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
        assert_eq!(
            browser.get(&format!("{path}/files/operator.key")).await.status,
            StatusCode::NOT_FOUND
        );
    });
}

#[test]
fn another_partys_agreement_is_not_there() {
    let server = start();
    let (ann, bob) = (
        server.key_for("ann", "consumer"),
        server.key_for("bob", "consumer"),
    );
    run(async {
        let mut browser = Browser::signed_in(&server, &ann).await;
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(4)).with("name", "anns own");
        let path = browser
            .post("/portal/agreements", &form)
            .await
            .location()
            .to_owned();
        assert_eq!(browser.get(&path).await.status, StatusCode::OK);

        let mut other = Browser::signed_in(&server, &bob).await;
        let list = other.get("/portal/reservations?q=anns").await;
        assert!(!list.body.contains("anns own"), "{}", list.body);
        for page in [
            "",
            "/terminate",
            "/change",
            "/files/stdout",
            "/document.xml",
            "/document.json",
        ] {
            assert_eq!(
                other.get(&format!("{path}{page}")).await.status,
                StatusCode::NOT_FOUND,
                "{page}"
            );
        }
        let token = other.form().await;
        let ended = other.post(&format!("{path}/terminate"), &token).await;
        assert_eq!(ended.status, StatusCode::NOT_FOUND);

        let operator = Browser::signed_in(&server, server.key()).await;
        let list = operator.get("/portal/reservations?party=ann").await;
        assert!(
            list.body.contains("anns own") && list.body.contains("of ann"),
            "{}",
            list.body
        );
        assert!(
            operator.get(&path).await.body.contains("Waiting"),
            "it was not cancelled"
        );
    });
}

#[test]
fn a_reservation_is_terminated_once() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(4));
        let path = browser
            .post("/portal/agreements", &form)
            .await
            .location()
            .to_owned();
        let page = browser.get(&path).await;
        assert!(
            page.body.contains(&format!("href=\"{path}/terminate\"")),
            "{}",
            page.body
        );
        let asked = browser.get(&format!("{path}/terminate")).await;
        let confirm = asked.fields(
            asked
                .body
                .find(&format!("action=\"{path}/terminate\""))
                .expect("a form"),
        );
        let ended = browser.post(&format!("{path}/terminate"), &confirm).await;
        assert_eq!(ended.location(), path);
        let page = browser.get(&path).await;
        assert!(
            page.body.contains("Cancelled") && !page.body.contains("data-live"),
            "{}",
            page.body
        );
        let again = browser.post(&format!("{path}/terminate"), &confirm).await;
        assert_eq!(again.location(), path, "what is over is shown as such");
    });
}

#[test]
fn a_form_that_is_too_large_is_refused_with_a_page() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = browser.form().await.with("name", &"x".repeat(300_000));
        let page = browser.post("/portal/agreements", &form).await;
        assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(page.body.contains("<h1>"), "{page:?}");
        assert!(browser.get("/portal").await.body.contains("Sign out"));
    });
}
