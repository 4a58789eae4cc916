//! The plan on nodes, which operators see: slots with their parties, nodes out of use, and what has moved.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::browser::Browser;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;
const PAGE: &str = "/portal/gantt";

on_both_engines!(operators_see_each_slot_on_its_nodes_and_what_has_moved_and_why);

async fn operators_see_each_slot_on_its_nodes_and_what_has_moved_and_why(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("<b>ann", "consumer"));
    let start = hours_ahead(3);
    let movable = Offer::reserve(3, HOUR).within(start, start + 3 * HOUR);
    let movable = client.post("/agreements", movable.xml()).await.created();
    let rigid = Offer::reserve(2, HOUR).within(start, start + HOUR);
    let rigid = client.post("/agreements", rigid.xml()).await.created();
    let window = json!({ "start": date_time(start), "end": date_time(start + HOUR) });
    let asked = json!({ "nodes": 1, "durationSeconds": HOUR, "window": window });
    let held = client.post_json("/negotiations", &asked).await.json();
    let held = held["id"].as_str().expect("an id").to_owned();
    let say = server.client().request(Method::PUT, "/resources/local/nodes/3");
    let said = say.json(&json!({ "state": "drained", "reason": "<i>fan" }));
    assert!(server.client().send(said).await.status.is_success());

    let browser = Browser::signed_in(&server, server.key()).await;
    let from = date_time(start - HOUR);
    let page = browser.get(&format!("{PAGE}?span=day&from={from}")).await;
    assert_eq!(page.status, StatusCode::OK, "{page:?}");
    for id in [movable, rigid] {
        assert!(
            page.body
                .contains(&format!("<a href=\"/portal/agreements/{id}\" aria-label=")),
            "{page:?}"
        );
    }
    assert!(
        page.body.contains(&format!("/portal/negotiations/{held}")),
        "{page:?}"
    );
    assert!(
        page.body.contains("&#60;b&#62;ann, 2 nodes, ") && !page.body.contains("<b>"),
        "{page:?}"
    );
    assert!(page.body.contains("Nodes 3: drained"), "{page:?}");
    let changes = page
        .body
        .split("What has changed lately")
        .nth(1)
        .expect("there is a list");
    assert!(
        changes.contains(&format!("/portal/agreements/{movable}\">moved</a>")),
        "{page:?}"
    );
    assert!(!changes.contains(&rigid.to_string()), "{page:?}");
    let lowest = browser
        .get(&format!(
            "{PAGE}?span=hour&from={}&first=0&nodes=1",
            date_time(start)
        ))
        .await;
    assert!(lowest.body.contains(&rigid.to_string()), "{lowest:?}");
    assert!(lowest.body.contains("nodes 0 to 0 of 4"), "{lowest:?}");
}

#[test]
fn it_is_for_operators_alone_and_whatever_they_ask_for_is_answered_by_a_page() {
    let server = Server::local();
    let ann = server.key_for("ann", "consumer");
    run(async {
        assert_eq!(
            Browser::new(&server).get(PAGE).await.status,
            StatusCode::UNAUTHORIZED
        );
        let browser = Browser::signed_in(&server, &ann).await;
        assert_eq!(browser.get(PAGE).await.status, StatusCode::FORBIDDEN);
        let browser = Browser::signed_in(&server, server.key()).await;
        for query in [
            "span=hour",
            "span=week&first=2",
            "span=month&nodes=2",
            "span=year&from=2020-01-01",
            "span=%22&from=never&first=-1&nodes=all",
            "from=9999-12-31T23:59:59Z&span=year",
            "from=-9999-01-01T00:00:00Z",
            "first=4294967295&nodes=4294967295",
            "resource=%3Cscript%3E",
        ] {
            let page = browser.get(&format!("{PAGE}?{query}")).await;
            assert_eq!(page.status, StatusCode::OK, "{query}");
            assert!(
                page.body.contains("<h1>Plan on nodes</h1>") && !page.body.contains("<script>"),
                "{query}"
            );
        }
    });
}
