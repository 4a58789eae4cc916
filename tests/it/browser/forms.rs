//! What the script adds to forms and to the calendar: prices as one types, sliders, countdowns, and a range of times by the mouse.

use serde_json::{Value, json};

use super::{CONFIGURATION, SEND, SOON, Visit};
use crate::support::eventually;
use crate::support::offers::{date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

/// The keys of `WebDriver` for the arrows.
const LEFT: &str = "\u{e012}";
const RIGHT: &str = "\u{e014}";

/// What the fields of these names say.
async fn values(visit: &Visit, names: &[&str]) -> Value {
    let script = "return arguments[0].map((name) => document.querySelector(`[name=${name}]`).value);";
    visit.chrome.run(script, json!([names])).await
}

#[test]
fn prices_and_sliders_follow_the_form_without_a_reload() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut visit = Visit::begin(&server, "what-if").await;
        visit.sign_in(&key).await;
        visit.go("/portal?application=&nodes=1&hours=1").await;
        visit.mark().await;
        visit.chrome.fill(&[("nodes", "2")]).await;
        visit.chrome.see("20 EUR").await;
        let sliders = "return [...document.querySelectorAll('.slider input')].map((one) => one.value);";
        let said = visit.chrome.run(sliders, json!([])).await;
        assert_eq!(
            said,
            json!(["2", "60", "10080"]),
            "without a deadline it is at its end"
        );

        // By the keys, and each field goes with its slider.
        visit.chrome.type_into("#slider-1", RIGHT).await;
        visit.chrome.see("30 EUR").await;
        assert_eq!(values(&visit, &["nodes"]).await, json!(["3"]));
        visit.chrome.type_into("#slider-2", RIGHT).await;
        visit.chrome.see("32.5 EUR").await;
        assert_eq!(
            values(&visit, &["hours", "minutes", "seconds"]).await,
            json!(["1", "5", ""])
        );
        visit.chrome.see("1 h 5 min").await;
        let deadline = ["deadline-date", "deadline-time"];
        visit.chrome.type_into("#slider-3", LEFT).await;
        let late = values(&visit, &deadline).await;
        visit.chrome.type_into("#slider-3", LEFT).await;
        let apart = "const at = ([date, time]) => Date.parse(`${date}T${time}Z`); return (at(arguments[0]) - at(arguments[1])) / 3600000;";
        let sooner = values(&visit, &deadline).await;
        assert_eq!(visit.chrome.run(apart, json!([late, sooner])).await, 1, "an hour");
        assert!(visit.is_marked().await, "the page was loaded again");
        visit.look("sliders").await;

        // Each mistake stands beside its field.
        visit.chrome.fill(&[("nodes", "9")]).await;
        visit.chrome.click(SEND).await;
        visit.chrome.see("Nothing was reserved yet").await;
        visit.look("mistakes").await;
    });
}

#[test]
fn the_time_that_an_offer_is_held_is_counted_down() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let wish = json!({ "nodes": 1, "durationSeconds": 3_600 });
        let client = server.client_with(&key);
        let opened = client.post_json("/negotiations", &wish).await.json();
        let visit = Visit::begin(&server, "countdown").await;
        visit.sign_in(&key).await;
        let path = format!("/portal/negotiations/{}", opened["id"].as_str().expect("an id"));
        visit.go(&path).await;
        let left = "return document.querySelector('[data-until]').innerText";
        let first = visit.chrome.run(left, json!([])).await;
        let first = first.as_str().expect("a text").to_owned();
        assert!(first.contains("min") || first.ends_with(" s"), "{first}");
        eventually("less time", SOON, async || {
            (visit.chrome.run(left, json!([])).await != first.as_str()).then_some(())
        })
        .await;
    });
}

#[test]
fn a_range_of_times_is_dragged_on_the_calendar() {
    let server = Server::configured(None, CONFIGURATION);
    let key = server.key_for("ann", "consumer");
    run(async {
        let visit = Visit::begin(&server, "dragging").await;
        visit.sign_in(&key).await;
        let ahead = date_time(hours_ahead(72));
        let cell = |number: usize| format!("#calendar section:first-of-type td:nth-of-type({number}) > a");
        for (from, to) in [(3, 5), (5, 3)] {
            visit
                .go(&format!("/portal/calendar?view=day&from={}", &ahead[..10]))
                .await;
            visit.chrome.drag(&cell(from), &cell(to)).await;
            visit.chrome.see("The form is filled in").await;
            let names = ["start-date", "start-time", "deadline-date", "deadline-time"];
            assert_eq!(
                values(&visit, &names).await,
                json!([&ahead[..10], "02:00:00", &ahead[..10], "05:00:00"])
            );
            let length = values(&visit, &["hours", "minutes", "seconds"]).await;
            assert_eq!(length, json!(["3", "", ""]), "all of the range");
        }
    });
}
