//! What operators see of the past and of the rules in force.

use reqwest::StatusCode;

use super::SOON;
use super::browser::Browser;
use crate::bars::{fill, nodes};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

on_both_engines!(the_past_use_of_a_resource_is_added_up);

async fn the_past_use_of_a_resource_is_added_up(url: String) {
    // Each had a node for a minute, in this day.
    fill(&url, 128).await;
    let server = Server::configured(Some(&url), &nodes(2));
    let browser = Browser::signed_in(&server, server.key()).await;
    let shown = eventually("the sums", SOON, async || {
        let page = browser.get("/portal/operator").await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        page.body.contains("Added up").then_some(page.body)
    })
    .await;
    // Of 48 node-hours of a day, and of 336 of seven days.
    let (day, week) = ("<td>2.1 node-hours (4 %)</td>", "<td>2.1 node-hours (0 %)</td>");
    let row = format!("<th scope=\"row\">local</th>{day}{day}{week}{week}</tr>");
    assert!(shown.contains(&row), "{shown}");
    server.assert_verified();
}

/// Every rule that a page names.
const RULES: &str = r#"
horizon_days = 30
[[resource]]
name = "local"
kind = "local"
nodes = 4
[[resource]]
name = "fast"
kind = "local"
nodes = 4
[scheduling]
fix_after_percent = 40
[pricing]
currency = "EUR"
node_hour = "10"
busy_percent = 50
flexible_percent = 30
cancellation_percent = 15
change_percent = 3
[[pricing.resource]]
name = "fast"
node_hour = "25.5"
[[pricing.profile]]
party = "<physics>"
percent = 80
[negotiation]
lasts_hours = 12
open_max = 7
offers_max = 70
hold_seconds = 120
holds_max = 3
proposals_max = 2
proposal_discount_percent = 20
[quotas]
share_percent = 60
node_hours = 500
probes_per_minute = 0
[[quota]]
party = "climate"
horizon_hours = 48
probes_per_minute = 9
[callbacks]
start_notice_seconds = 0
"#;

#[test]
fn the_prices_fees_quotas_and_times_in_force_are_told_in_words() {
    let server = Server::configured(None, RULES);
    run(async {
        let browser = Browser::signed_in(&server, server.key()).await;
        let overview = browser.get("/portal/operator").await;
        let link = overview.link("All prices, fees, quotas and times");
        let page = browser.get(&link).await.body;
        for text in [
            "<dt>A node for an hour</dt><dd>10 EUR</dd>",
            "<dt>On fast</dt><dd>25.5 EUR</dd>",
            "<dt>On top for a busy time</dt><dd>up to 50 %</dd>",
            "<dt>Discount for room to move</dt><dd>up to 30 %</dd>",
            "<dt>Fee for a cancellation</dt><dd>at least 15 % of the price.",
            "<dt>Fee for a change</dt><dd>3 % of the price, and the fee for a cancellation of what is given up</dd>",
            "<dt>Of all that, &#60;physics&#62; pays</dt><dd>80 %</dd>",
            "<th scope=\"row\">climate</th><td>60 %</td><td>500</td><td>2 d</td><td>2000</td><td>9</td>",
            "<th scope=\"row\">Each other party</th><td>60 %</td><td>500</td><td>as far as the provider plans</td><td>2000</td><td>any number</td>",
            "<dt>The provider</dt><dd>plans 30 d ahead</dd>",
            "<dt>An offer</dt><dd>is held for at most 2 min</dd>",
            "<dt>A negotiation</dt><dd>goes on for at most 12 h, with at most 70 offers</dd>",
            "may have 7 negotiations at a time, and offers held of 3 answers",
            "may be moved within its window, for the first 40 % of its wait",
            "at most 2 are proposed at a time, for 20 % off the price",
            "is not told before",
        ] {
            assert!(page.contains(text), "no {text} in {page}");
        }
    });
}
