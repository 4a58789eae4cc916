//! What a requester does, from signing in to the output of a job, and an operator's drain.

use serde_json::json;

use super::{CONFIGURATION, Visit, ZONE};
use crate::support::chrome::PHONE;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

/// The button of the form, which has the name of a link.
const SEND: &str = "main form button.main";

#[test]
fn a_requester_reserves_watches_and_reads_the_output_on_a_phone() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut visit = Visit::begin(&server, "requester").await;
        visit.chrome.resize(PHONE).await;
        visit.go("/portal").await;
        visit.look("sign-in").await;
        visit.sign_in(&key).await;
        visit.chrome.see(&format!("Times in {ZONE}")).await;
        visit.look("form").await;
        visit.chrome.press("Calendar").await;
        visit.chrome.see("Next times with 1 free node").await;
        visit.look("calendar").await;
        visit.chrome.press("Reserve").await;

        // What is wrong is said beside its field.
        visit
            .chrome
            .fill(&[("application", "echo\t"), ("nodes", "9")])
            .await;
        visit.chrome.click(SEND).await;
        visit.chrome.see("Nothing was reserved yet").await;
        visit.look("mistakes").await;
        let fields = [
            ("argument\t0\techo\t", "hello out there"),
            ("nodes", "1"),
            ("name", "first steps"),
        ];
        visit.chrome.fill(&fields).await;
        visit.chrome.click(SEND).await;
        visit.chrome.see("This is offered to you").await;
        visit.look("offers").await;
        visit.chrome.click("li.offer button.main").await;
        visit.chrome.see("first steps").await;
        let path = visit.path().await;
        assert!(path.starts_with("/portal/agreements/"), "{path}");
        visit.mark().await;
        visit.look("reservation").await;

        // The page follows the job without being loaded again, and leaves the reader where it was.
        visit.chrome.see("hello out there\n").await;
        assert!(visit.is_marked().await, "the page was loaded again");
        visit.look("output").await;
        visit.chrome.press("stdout").await;
        visit.chrome.see("hello out there").await;
    });
}

#[test]
fn a_time_of_the_calendar_is_bought_and_extended() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut visit = Visit::begin(&server, "extended").await;
        visit.sign_in(&key).await;
        // A month that has not begun.
        let ahead = date_time(hours_ahead(40 * 24));
        visit
            .go(&format!("/portal/calendar?view=month&from={}", &ahead[..10]))
            .await;
        visit.chrome.click(".cells td > a").await;
        visit.chrome.see("The form is filled in").await;
        visit.chrome.fill(&[("application", ""), ("hours", "1")]).await;
        visit.look("filled").await;
        visit.chrome.click(SEND).await;
        visit.chrome.see("This is offered to you").await;
        visit.chrome.click("li.offer button.main").await;
        visit.chrome.see("Waiting").await;
        visit.look("bought").await;
        visit.chrome.press("Change or extend…").await;
        visit.chrome.fill(&[("hours", "2")]).await;
        visit.look("change").await;
        visit.chrome.press("Ask for offers").await;
        visit.chrome.see("Offers to change a reservation").await;
        visit.look("changes").await;
        visit.chrome.click("li.offer button.main").await;
        visit
            .chrome
            .see("It takes the place of an earlier reservation")
            .await;
        visit.chrome.see("for 2 h").await;
        visit.look("extended").await;
    });
}

#[test]
fn a_page_that_follows_what_happens_keeps_focus_scrolling_and_typing() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let client = server.client_with(&key);
        let offer = Offer::reserve(1, 3_600).within(hours_ahead(3), hours_ahead(9));
        let id = client.post("/agreements", offer.xml()).await.created();
        let visit = Visit::begin(&server, "following").await;
        visit.chrome.resize(PHONE).await;
        visit.sign_in(&key).await;
        visit.go(&format!("/portal/agreements/{id}")).await;
        visit.mark().await;
        let place =
            "const link = document.querySelector('main a.button'); link.focus({ preventScroll: true });
            scrollTo(0, 200); return [scrollY, document.activeElement === link];";
        assert_eq!(visit.chrome.run(place, json!([])).await, json!([200, true]));
        // What its page does not know yet.
        let body = json!({ "start": date_time(hours_ahead(5)) });
        let moved = server
            .client()
            .post_json(&format!("/agreements/{id}/move"), &body)
            .await;
        assert!(moved.status.is_success(), "{moved:?}");
        visit.chrome.see("moved").await;
        let kept = "return [scrollY, document.activeElement.matches('main a.button')];";
        assert_eq!(visit.chrome.run(kept, json!([])).await, json!([200, true]));
        assert!(visit.is_marked().await, "the page was loaded again");
    });
}

#[test]
fn a_requester_needs_no_scripts() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut visit = Visit::begin(&server, "without-scripts").await;
        visit.chrome.forbid_scripts().await;
        visit.sign_in(&key).await;
        visit.chrome.see("Times in UTC").await;
        visit.chrome.press("Times in UTC").await;
        visit.chrome.fill(&[("zone", ZONE)]).await;
        visit.chrome.press("Save").await;
        visit.chrome.see(&format!("Times in {ZONE}")).await;
        visit.chrome.press("Reserve").await;
        let fields = [
            ("application", "echo\t"),
            ("argument\t0\techo\t", "no scripts"),
            ("nodes", "1"),
        ];
        visit.chrome.fill(&fields).await;
        visit.chrome.press("See the earliest offer").await;
        visit.chrome.see("This is offered to you").await;
        visit.chrome.click("li.offer button.main").await;
        let again = "Load this page again";
        visit.photograph("reservation").await;
        crate::support::eventually("the output", super::SOON, async || {
            if visit.chrome.text().await.contains("Completed") {
                return Some(());
            }
            visit.chrome.press(again).await;
            None
        })
        .await;
        assert!(visit.chrome.text().await.contains("no scripts\n"));
        visit.chrome.press("Sign out").await;
        visit.chrome.see("Sign in").await;
    });
}

#[test]
fn an_operator_sees_what_a_drain_would_do_and_then_drains() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let client = server.client_with(&server.key_for("ann", "consumer"));
        let start = hours_ahead(3);
        let offer = Offer::reserve(4, 3_600).within(start, start + 3_600);
        let id = client.post("/agreements", offer.xml()).await.created();
        let view = client.get_json(&format!("/agreements/{id}")).await;
        let on = view["resource"].as_str().expect("it is placed").to_owned();
        let mut visit = Visit::begin(&server, "operator").await;
        visit.sign_in(server.key()).await;
        visit.chrome.press("Operate").await;
        visit.chrome.see("1 waiting").await;
        visit.look("overview").await;
        visit.chrome.press("Resources").await;
        let form = format!("form:has(input[value=\"set-nodes\"]):has(input[value=\"{on}\"])");
        visit.chrome.type_into(&format!("{form} [name=nodes]"), "0").await;
        visit.look("resources").await;
        visit.chrome.click(&format!("{form} button")).await;
        visit.chrome.see("Nothing is done yet").await;
        visit.chrome.see("1 get another place").await;
        visit.look("drain").await;
        visit.chrome.press("Change the nodes").await;
        visit.chrome.see("1 drained").await;
        let moved = client.get_json(&format!("/agreements/{id}")).await;
        assert_ne!(moved["resource"], view["resource"]);
    });
}
