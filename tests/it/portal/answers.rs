//! Messages in a negotiation: counter offers, rejections, refusals, and new requests.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::browser::{Browser, Form, Page};
use super::{CONFIGURATION, SECONDS, SOON, actions, reserve, start};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::{eventually, run};

const HOUR: i64 = 3_600;
const ASK: &str = "/portal/offers";

/// Asks with a form; the page with the answer, and its path.
async fn ask(browser: &mut Browser, form: &Form) -> (Page, String) {
    let path = browser.post(ASK, form).await.location().to_owned();
    (browser.get(&path).await, path)
}

/// The address that rejects the first offer of a page.
fn reject(page: &Page) -> String {
    let found = actions(page)
        .into_iter()
        .find(|action| action.ends_with("/reject"));
    found
        .unwrap_or_else(|| panic!("nothing to reject in {page:?}"))
        .to_owned()
}

#[test]
fn what_was_rejected_is_not_asked_for_again_and_what_was_refused_is_said_to_be() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let (from, to) = (hours_ahead(2), hours_ahead(8));
        let form = reserve(browser.form().await, 2, from, to);
        let (page, path) = ask(&mut browser, &form).await;
        let counter = browser.get(&page.link("Ask for something else instead")).await;
        let sent = browser
            .post(&format!("{path}/offers"), &counter.form().with("nodes", "1"))
            .await;
        let page = browser.get(sent.location()).await;
        // The first one is for two nodes.
        let reject = reject(&page);
        browser.post(&reject, &page.form_to(&reject)).await.location();
        let page = browser.get(&path).await;
        assert!(page.body.contains(">rejected</span>"), "{page:?}");
        let again = browser.get(&page.link("Change the request")).await.form();
        assert_eq!(again.0["nodes"], "1", "as it was asked for last");

        let block = Offer::reserve(4, HOUR).within(from, from + HOUR);
        let other = start();
        other.client().post("/agreements", block.xml()).await.created();
        let mut browser = Browser::signed_in(&other, other.key()).await;
        let rigid = reserve(browser.form().await, 4, from, from + HOUR).with("flexibility", "0");
        let (page, _) = ask(&mut browser, &rigid).await;
        assert!(page.body.contains("There is no room for it"), "{page:?}");
        assert_eq!(page.body.matches(">refused</span>").count(), 2, "{page:?}");
        assert!(!page.body.contains(">released</span>"), "{page:?}");
    });
}

#[test]
fn a_counter_offer_asks_for_no_more_than_it_can_change() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 2, hours_ahead(2), hours_ahead(8));
        let form = form
            .with("application", "sleep\t")
            .with(SECONDS, "1")
            .with("fix", "0");
        let (page, path) = ask(&mut browser, &form).await;
        let counter = browser.get(&page.link("Ask for something else instead")).await;
        let filled = counter.form();
        for left_out in ["application", "predict", "choices", SECONDS] {
            assert!(!filled.0.contains_key(left_out), "{left_out} in {filled:?}");
        }
        assert_eq!(filled.0["fix"], "0");
        for text in ["As it is in the offer", "Empty means: as it is in the offer."] {
            assert!(counter.body.contains(text), "no {text} in {counter:?}");
        }
        for text in ["Any that will do", "as soon as there is room"] {
            assert!(!counter.body.contains(text), "{text} in {counter:?}");
        }
        let sent = browser
            .post(&format!("{path}/offers"), &filled.with("nodes", "1"))
            .await;
        let page = browser.get(sent.location()).await;
        assert!(
            page.body.contains("sleep, 1 node, 1 h"),
            "it runs the same: {page:?}"
        );
    });
}

#[test]
fn a_counter_offer_that_comes_to_nothing_is_shown_again_with_the_reason() {
    let brief = format!("{CONFIGURATION}\n[negotiation]\nhold_seconds = 10\n");
    let server = Server::configured(None, &brief);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let (from, to) = (hours_ahead(2), hours_ahead(8));
        let form = reserve(browser.form().await, 2, from, to);
        let (page, path) = ask(&mut browser, &form).await;
        let id = page
            .body
            .split("id=\"said-")
            .nth(3)
            .and_then(|offer| offer.split('"').next());
        let counter = format!("{path}/counter?offer={}", id.expect("an offer"));
        let counter = browser.get(&counter).await;
        let said = counter.form().with("nodes", "3").with("minutes", "30");
        eventually("the offer to lapse", SOON, async || {
            let page = browser.get(&path).await;
            page.body
                .contains("Nothing is held for you here any more")
                .then_some(())
        })
        .await;
        let refused = browser.post(&format!("{path}/offers"), &said).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert!(refused.body.contains("has expired"), "{refused:?}");
        let kept = refused.form();
        assert_eq!(
            (kept.0["nodes"].as_str(), kept.0["minutes"].as_str()),
            ("3", "30")
        );
        let anew = browser.get(&refused.link("ask for it anew")).await.form();
        for field in ["nodes", "hours", "minutes", "start-time", "deadline-time"] {
            assert_eq!(anew.0[field], said.0[field], "{field}");
        }
        let released = format!("{path}/release");
        let token = browser.get("/portal").await.form();
        browser.post(&released, &token).await.location();
        let over = browser.post(&format!("{path}/offers"), &kept).await;
        assert_eq!(over.status, StatusCode::CONFLICT, "{over:?}");
        assert!(over.body.contains("terminated already"), "{over:?}");
        assert_eq!(over.form().0["nodes"], "3", "the values entered are kept");
    });
}

#[test]
fn what_is_wrong_with_a_request_is_told_where_nothing_could_be_offered() {
    let server = start();
    run(async {
        let start = hours_ahead(3);
        let asked = json!({
            "nodes": 1,
            "durationSeconds": HOUR,
            "window": { "start": date_time(start), "end": date_time(start + HOUR) },
            "constraints": [{ "of": "durationSeconds", "min": 2 * HOUR }],
        });
        let answer = server.client().post_json("/negotiations", &asked).await.json();
        let told = answer["refusal"]["violations"][0]["message"].as_str();
        let told = told.unwrap_or_else(|| panic!("no violation in {answer}"));
        let browser = Browser::signed_in(&server, server.key()).await;
        let id = answer["id"].as_str().expect("an id");
        let page = browser.get(&format!("/portal/negotiations/{id}")).await;
        assert!(!page.body.contains("Nothing is held"), "{page:?}");
        assert!(page.body.contains("The provider does not allow it"), "{page:?}");
        let figure = told.split_whitespace().find(|word| word.contains("7200"));
        let figure = figure.unwrap_or_else(|| panic!("another message: {told}"));
        assert!(page.body.contains(figure), "no {figure} in {page:?}");
    });
}

#[test]
fn asking_again_releases_what_it_came_from_and_no_advice_misleads() {
    let server = start();
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut browser = Browser::signed_in(&server, &key).await;
        let at = |hours: i64| (hours_ahead(hours), hours_ahead(hours) + HOUR);
        let mut form = reserve(browser.form().await, 1, at(2).0, at(2).1);
        for asked in 0..7 {
            let (page, _) = ask(&mut browser, &form).await;
            assert!(page.body.contains("Reserve this"), "{asked}: {page:?}");
            let again = browser.get(&page.link("Change the request")).await;
            assert!(again.body.contains("are released"), "{again:?}");
            form = again.form().with("name", &format!("asked {asked}"));
        }
        let mut refused = None;
        for hours in 2..8 {
            let (from, to) = at(hours);
            let form = reserve(browser.form().await, 1, from, to);
            refused = Some(ask(&mut browser, &form).await.0);
        }
        let refused = refused.expect("some were asked");
        assert!(refused.body.contains("exceed what you may"), "{refused:?}");
        assert!(!refused.body.contains("Try fewer nodes"), "{refused:?}");
        assert_eq!(refused.link("Look at them"), "/portal/negotiations");
        let usage: Value = server.client().get_json("/usage").await;
        assert!(usage.to_string().contains("\"heldAnswers\":5"), "{usage}");
    });
}
