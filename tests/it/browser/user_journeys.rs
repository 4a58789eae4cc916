//! What a requester does, from signing in to the output of a job, and an operator's drain.

use std::collections::BTreeMap;

use serde_json::json;
use tempfile::TempDir;

use super::{CONFIGURATION, SEND, Visit, ZONE};
use crate::pieces::program;
use crate::support::chrome::PHONE;
use crate::support::client::Client;
use crate::support::offers::{Offer, date_time, hours_ahead, now};
use crate::support::run;
use crate::support::server::Server;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

/// A requester's film: three resources on which two nodes are free for less than an hour between what others have.
const FILM: &str = r#"
[pricing]
currency = "EUR"
node_hour = "10"

[[resource]]
name = "north"
kind = "local"
nodes = 4

[[resource]]
name = "south"
kind = "local"
nodes = 4

[[resource]]
name = "west"
kind = "local"
nodes = 4
"#;

/// Has a party take three of four nodes of each resource, but for a while that is shorter from one to the next. What it has now, by the
/// names of the resources.
async fn crowd(client: &Client) -> BTreeMap<&'static str, String> {
    let then = date_time(now() + 75 * MINUTE);
    let later = date_time(now() + 75 * MINUTE + 12 * HOUR);
    let mut taken = BTreeMap::new();
    for (resource, minutes) in [("north", 20), ("south", 30), ("west", 40)] {
        let present =
            json!({ "resource": resource, "nodes": 3, "durationSeconds": minutes * MINUTE, "fixAt": 0 });
        let coming = json!({ "resource": resource, "nodes": 3, "durationSeconds": 12 * HOUR,
            "window": { "start": then, "end": later } });
        for (wish, is_present) in [(present, true), (coming, false)] {
            let made = client.post_json("/agreements", &wish).await;
            let made = made.json()["id"].as_str().expect("an id").to_owned();
            if is_present {
                taken.insert(resource, made);
            }
        }
    }
    taken
}

#[test]
fn a_first_visitor_finds_a_time_buys_an_offer_watches_extends_and_reads_the_output() {
    let folder = TempDir::new().expect("a temporary folder");
    let over = folder.path().join("over");
    let script = format!(
        "echo it runs\nwhile [ ! -e '{}' ]; do sleep 0.1; done\necho 42 >result.txt\n",
        over.display()
    );
    let work = program(folder.path(), "work", &script);
    let application = format!("[[application]]\nname = \"work\"\nprogram = \"{work}\"\ntrusted = true\n");
    let server = Server::configured(None, &format!("{FILM}{application}"));
    let key = server.key_for("ann", "consumer");
    run(async {
        let other = server.client_with(&server.key_for("bob", "consumer"));
        let taken = crowd(&other).await;
        let mut visit = Visit::begin(&server, "film").await;
        visit.go("/portal").await;
        visit.look("sign-in").await;
        visit.chrome.count_loads().await;
        visit.enter_key(&key).await;
        visit.look("form").await;
        visit.chrome.press("Calendar").await;
        visit.chrome.see("Next times with 1 free node").await;
        visit.look("calendar").await;
        // The present time has no start: it is asked for from now on.
        visit
            .chrome
            .click(".cells td > a:not([href*=\"start-date\"])")
            .await;
        visit.chrome.see("The form is filled in").await;
        let fields = [
            ("application", "work\t"),
            ("name", "first steps"),
            ("nodes", "2"),
            ("hours", "1"),
            ("resource", ""),
        ];
        visit.chrome.fill(&fields).await;
        visit.look("filled").await;
        visit.chrome.click(SEND).await;
        visit.chrome.see("Choose one of 3").await;
        let prices =
            "return new Set([...document.querySelectorAll('.price')].map((one) => one.innerText)).size";
        assert_eq!(visit.chrome.run(prices, json!([])).await, 3, "three prices");
        visit.look("offers").await;
        visit.chrome.click("li.offer:nth-of-type(2) button.main").await;
        visit.chrome.see("first steps").await;
        let path = visit.path().await;
        assert!(path.starts_with("/portal/agreements/"), "{path}");
        assert!(visit.chrome.loads().await <= 5, "{}", visit.chrome.loads().await);
        visit.chrome.see("Waiting").await;
        visit.mark().await;
        visit.look("bought").await;

        // The other party has no use for its nodes any more. The page follows without being loaded again.
        let view = server.client().get_json(path.trim_start_matches("/portal")).await;
        let freed = &taken[view["resource"].as_str().expect("it is placed")];
        let ended = other
            .post_json(&format!("/agreements/{freed}/terminate"), &json!({}))
            .await;
        assert!(ended.status.is_success(), "{ended:?}");
        visit.chrome.see("it runs\n").await;
        assert!(visit.is_marked().await, "the page was loaded again");
        visit.look("running").await;

        visit.chrome.press("Change or extend…").await;
        let longer = [("hours", ""), ("minutes", "50"), ("seconds", "")];
        visit.chrome.fill(&longer).await;
        visit.look("change").await;
        visit.chrome.press("Ask for offers").await;
        visit.chrome.see("Offers to change a reservation").await;
        visit.look("changes").await;
        visit.chrome.click("li.offer button.main").await;
        visit
            .chrome
            .see("It takes the place of an earlier reservation")
            .await;
        visit.chrome.see("for 50 min").await;
        visit.look("extended").await;
        std::fs::write(&over, "").expect("the work ends");
        visit.chrome.see("Its program ended by itself").await;
        visit.look("output").await;
        let kept = visit.chrome.download("result.txt").await;
        assert_eq!(kept, "42\n");
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
