//! A service that starts checks the open agreements, and the rest while it serves. A fault that it finds then stops it from
//! deciding.

use std::time::Duration;

use domain::clock::Clock;
use reqwest::StatusCode;
use store::Store;

use crate::portal::browser::Browser;
use crate::store::tamper;
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_cannot_be_in_the_past_stops_all_decisions_and_is_named,
    what_is_open_and_the_new_lines_of_the_trail_are_checked_before_the_start,
    a_check_of_all_is_remembered_for_the_next_start,
);

/// Far longer than a check takes.
const DEADLINE: Duration = Duration::from_mins(1);

/// The first agreement was accepted in other words.
const CHANGE_THE_PAST: &str =
    "UPDATE events SET detail = 'nothing' WHERE number = (SELECT MIN(number) FROM events)";

/// A service that has made an agreement and ended it, and one that waits; stopped, with its trail checked so far.
async fn stopped_with_a_past(url: &str) -> (Server, Store) {
    let mut server = Server::start(url);
    let client = server.client();
    let offer = || Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    let over = client.post("/agreements", offer().xml()).await.created();
    client.post("/agreements", offer().xml()).await.created();
    let ended = client.post(&format!("/agreements/{over}/terminate"), "").await;
    assert!(ended.status.is_success(), "{ended:?}");
    server.stop();
    let store = Store::open(url).await.expect("the database is there");
    assert_eq!(store.verify_and_remember().await.expect("it can be read"), []);
    (server, store)
}

async fn what_cannot_be_in_the_past_stops_all_decisions_and_is_named(url: String) {
    let (mut server, store) = stopped_with_a_past(&url).await;
    tamper(&url, CHANGE_THE_PAST).await;
    store.close().await;
    server.start_again();
    let client = server.client();
    let said = eventually("what was found", DEADLINE, async || {
        let answer = client.get("/readyz").await;
        (answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.body.contains("is not what was written"))
            .then_some(answer.body)
    });
    let said = said.await;
    assert!(said.contains("audit trail"), "{said}");
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    let refused = client.post("/agreements", offer.xml()).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        client.get("/agreements").await.status,
        StatusCode::OK,
        "it still tells"
    );
    let operator = Browser::signed_in(&server, server.key()).await;
    for page in [
        "/portal/operator",
        "/portal/operator/resources",
        "/portal/operator/parties",
        "/portal/operator/policies",
        "/portal/gantt",
    ] {
        assert_eq!(operator.get(page).await.status, StatusCode::OK, "{page}");
    }
    for list in ["/resources", "/resources/local/nodes", "/usage"] {
        assert_eq!(client.get(list).await.status, StatusCode::OK, "{list}");
    }
    assert!(
        server.log().contains("the stored state is inconsistent"),
        "{}",
        server.log()
    );
}

async fn what_is_open_and_the_new_lines_of_the_trail_are_checked_before_the_start(url: String) {
    let (_server, store) = stopped_with_a_past(&url).await;
    let now = Clock::system().now();
    let found_before_start = async || {
        let open = store.verify_open(now).await.expect("it can be read");
        let lines = store.verify_new_lines().await.expect("it can be read");
        [open, lines].concat()
    };
    assert_eq!(found_before_start().await, []);
    let damages = [
        (
            "UPDATE agreements SET nodes = 9 WHERE state = 'Observed'",
            "UPDATE agreements SET nodes = 1 WHERE state = 'Observed'",
        ),
        (
            "UPDATE agreements SET version = 7 WHERE state = 'Observed'",
            "UPDATE agreements SET version = 1 WHERE state = 'Observed'",
        ),
        (
            "UPDATE lease SET trail_number = trail_number + 1",
            "UPDATE lease SET trail_number = trail_number - 1",
        ),
    ];
    for (damage, mend) in damages {
        tamper(&url, damage).await;
        assert_ne!(found_before_start().await, [], "{damage}");
        tamper(&url, mend).await;
    }
    assert_eq!(found_before_start().await, []);
    // The past is left to the check behind.
    tamper(&url, CHANGE_THE_PAST).await;
    assert_eq!(found_before_start().await, []);
    assert_ne!(store.verify().await.expect("it can be read"), []);
}

async fn a_check_of_all_is_remembered_for_the_next_start(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    client.post("/agreements", offer.xml()).await.created();
    let log = async || {
        server
            .log()
            .contains("the whole stored state has been checked")
            .then_some(())
    };
    eventually("a check of all", DEADLINE, log).await;
    let store = Store::open(&url).await.expect("the database is there");
    assert_eq!(store.verify_new_lines().await.expect("it can be read"), []);
    tamper(&url, CHANGE_THE_PAST).await;
    // Remembered lines are not read again.
    assert_eq!(store.verify_new_lines().await.expect("it can be read"), []);
}
