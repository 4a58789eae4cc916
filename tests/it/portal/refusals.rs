//! The changes that a refusal names.

use reqwest::StatusCode;

use super::browser::Browser;
use super::{CONFIGURATION, reserve};
use crate::support::offers::hours_ahead;
use crate::support::run;
use crate::support::server::Server;

#[test]
fn a_refusal_says_which_changes_would_do_and_what_it_would_cost() {
    let priced = format!("{CONFIGURATION}\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"10\"\n");
    let server = Server::configured(None, &priced);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let start = hours_ahead(2);
        let form = reserve(browser.form().await, 4, start, start + 3_600).with("budget", "39.99");
        let refused = browser.post("/portal/agreements", &form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert_eq!(refused.form(), form, "the values entered are kept");
        let cost = "for 40 EUR, the lowest possible price";
        assert!(refused.body.contains(cost), "{}", refused.body);
        let enough = refused.form().with("budget", "40");
        browser.post("/portal/agreements", &enough).await.location();

        let late = reserve(browser.form().await, 4, start, start + 7_200).with("hours", "2");
        let refused = browser.post("/portal/agreements", &late).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        let changes = refused
            .body
            .split("<ul class=\"changes\">")
            .nth(1)
            .expect("a list of changes");
        assert!(changes.contains("with a deadline of "), "{changes}");
        let wrong = late.with("budget", "a lot");
        let page = browser.post("/portal/agreements", &wrong).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.element("budget-error");
    });
}
