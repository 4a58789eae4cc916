//! The changes that a refusal names.

use reqwest::StatusCode;

use super::browser::Browser;
use super::{CONFIGURATION, accept, reserve, start};
use crate::support::offers::hours_ahead;
use crate::support::run;
use crate::support::server::Server;

#[test]
fn a_refusal_says_what_it_would_cost() {
    let priced = format!("{CONFIGURATION}\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"10\"\n");
    let server = Server::configured(None, &priced);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let start = hours_ahead(2);
        let form = reserve(browser.form().await, 4, start, start + 3_600).with("budget", "39.99");
        let asked = browser.post("/portal/agreements", &form).await;
        let refused = browser.get(asked.location()).await;
        let enough = refused.link("for 40 EUR, the lowest possible price");
        let enough = browser.get(&enough).await.form();
        for field in ["nodes", "start-date", "start-time", "deadline-time"] {
            assert_eq!(enough.0[field], form.0[field], "{field}");
        }
        let asked = browser.post("/portal/agreements", &enough).await;
        accept(&browser.get(asked.location()).await);
        let page = browser
            .post("/portal/agreements", &form.with("budget", "a lot"))
            .await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.element("budget-error");
    });
}

#[test]
fn a_refusal_says_which_changes_would_do() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let start = hours_ahead(2);
        let first = reserve(browser.form().await, 4, start, start + 3_600);
        browser.post("/portal/agreements", &first).await.location();
        let late = reserve(browser.form().await, 4, start, start + 7_200).with("hours", "2");
        let refused = browser.post("/portal/agreements", &late).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert_eq!(refused.form(), late, "the values entered are kept");
        let changes = refused
            .body
            .split("<ul class=\"changes\">")
            .nth(1)
            .expect("a list of changes");
        assert!(changes.contains("with a deadline of "), "{changes}");
    });
}
