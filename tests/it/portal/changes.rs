//! Changes of a reservation by quote, and its end with the cost stated before.

use reqwest::StatusCode;
use serde_json::json;

use super::browser::{Browser, Form, Page};
use super::{buy, reserve, start};
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

const HOUR: i64 = 3_600;

on_both_engines!(
    a_release_on_postgres:
    a_reservation_is_extended_by_an_offer_that_is_taken,
);

/// Four nodes at a euro an hour, half of which a cancellation costs.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [[application]]\nname = \"sleep\"\nprogram = \"/usr/bin/sleep\"\n\
    [[application.argument]]\nname = \"seconds\"\ntype = \"integer\"\nmin = 0\nmax = 100\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\ncancellation_percent = 50\nchange_percent = 10\n";

/// The fields of the form on a page that is sent to a path.
fn form_to(page: &Page, path: &str) -> Form {
    let at = page.body.find(&format!("action=\"{path}\""));
    page.fields(at.unwrap_or_else(|| panic!("no form to {path} in {}", page.body)))
}

async fn a_reservation_is_extended_by_an_offer_that_is_taken(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let mut browser = Browser::signed_in(&server, server.key()).await;
    let from = hours_ahead(2);
    let form = reserve(browser.form().await, 1, from, from + 8 * HOUR).with("name", "grows");
    let path = buy(&mut browser, &form).await;
    let change = format!("{path}/change");

    let page = browser.get(&change).await;
    let form = form_to(&page, &change);
    assert_eq!(
        (form.0["nodes"].as_str(), form.0["hours"].as_str()),
        ("1", "1"),
        "as it is now"
    );
    let same = browser.post(&change, &form).await;
    assert_eq!(same.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(same.body.contains("Nothing is different"), "{}", same.body);
    let wrong = browser.post(&change, &form.clone().with("nodes", "many")).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    wrong.element("nodes-error");
    let most = browser.post(&change, &form.clone().with("nodes", "9")).await;
    assert_eq!(most.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", most.body);
    assert_eq!(
        form_to(&most, &change).0["nodes"],
        "9",
        "the values entered are kept"
    );

    let longer = form.with("hours", "2").with("nodes", "2");
    let asked = browser.post(&change, &longer).await;
    let negotiation = asked.location().to_owned();
    assert!(negotiation.starts_with("/portal/negotiations/"), "{negotiation}");
    let again = browser.post(&change, &longer).await;
    assert_eq!(
        again.location(),
        negotiation,
        "a form that is sent twice is taken once"
    );
    let offers = browser.get(&negotiation).await;
    let at = offers
        .body
        .find("action=\"/portal/offers/")
        .expect("an offer can be taken");
    let accept = offers.body[at + 8..]
        .split('"')
        .next()
        .expect("an address")
        .to_owned();
    let taken = browser.post(&accept, &offers.fields(at)).await;
    let changed = browser.get(taken.location()).await;
    assert!(
        changed.body.contains("2 nodes of local for 2 h"),
        "{}",
        changed.body
    );
    assert!(
        changed.body.contains("an earlier reservation"),
        "{}",
        changed.body
    );
    let old = browser.get(&path).await;
    assert!(
        old.body.contains(">Changed<")
            && old.body.contains(taken.location())
            && !old.body.contains("/change\""),
        "{}",
        old.body
    );
    let over = browser.get(&change).await;
    assert_eq!(over.status, StatusCode::CONFLICT, "{}", over.body);
    server.assert_verified();
}

#[test]
fn the_cost_of_a_cancellation_is_stated_and_then_charged() {
    let server = Server::configured(None, PRICED);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(2);
        let form = reserve(browser.form().await, 4, from, from + HOUR);
        let path = buy(&mut browser, &form).await;
        let asked = browser.get(&format!("{path}/terminate")).await;
        assert!(
            asked
                .body
                .contains("<strong>2 EUR</strong> to the provider: Fee for cancelling")
                && asked
                    .body
                    .contains("Its price is 4 EUR. The fee follows the prices"),
            "{}",
            asked.body
        );
        assert!(
            browser.get(&path).await.body.contains("Waiting"),
            "nothing was ended by asking"
        );
        let confirm = form_to(&asked, &format!("{path}/terminate"));
        browser
            .post(&format!("{path}/terminate"), &confirm)
            .await
            .location();
        let page = browser.get(&path).await;
        for part in [
            "You were charged</strong>: 2 EUR",
            "Cancelled. You were charged 2 EUR.",
            "<th scope=\"row\">Actual</th><td>never</td><td>never</td>",
        ] {
            assert!(page.body.contains(part), "no {part} in {}", page.body);
        }
        let list = browser.get("/portal/reservations").await;
        assert!(
            list.body.contains(">Cancelled<") && !list.body.contains("4 EUR"),
            "{}",
            list.body
        );
        let again = browser.get(&format!("{path}/terminate")).await;
        assert_eq!(again.status, StatusCode::CONFLICT);
        server.assert_verified();
    });
}

#[test]
fn an_extension_of_exact_times_takes_its_deadline_along() {
    let server = Server::configured(None, PRICED);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(2);
        let mut made = Vec::new();
        for to in [from + HOUR, from + 3 * HOUR] {
            let form = reserve(browser.form().await, 1, from, to);
            made.push(format!("{}/change", buy(&mut browser, &form).await));
        }
        let form = form_to(&browser.get(&made[0]).await, &made[0]);
        let asked = browser.post(&made[0], &form.with("minutes", "30")).await;
        let offers = browser.get(asked.location()).await;
        assert!(
            offers.body.contains("<p class=\"change\">End: ")
                && offers.body.contains("; 0.5 EUR more than now</p>"),
            "{}",
            offers.body
        );
        // A wider window stays as it is, and its form says which deadline would do.
        let form = form_to(&browser.get(&made[1]).await, &made[1]);
        let refused = browser.post(&made[1], &form.with("hours", "4")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            refused.element("deadline-date-group-error").contains("id=")
                && refused.body.contains("It leaves too little time: set it to ")
                && !refused.body.contains("arp:"),
            "{}",
            refused.body
        );
    });
}

#[test]
fn the_cost_is_stated_again_where_the_reservation_has_changed_since() {
    let server = Server::configured(None, PRICED);
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut browser = Browser::signed_in(&server, &key).await;
        let from = hours_ahead(3);
        let form = reserve(browser.form().await, 4, from, from + 3 * HOUR);
        let path = buy(&mut browser, &form).await;
        let terminate = format!("{path}/terminate");
        let seen = form_to(&browser.get(&terminate).await, &terminate);
        let api = path.trim_start_matches("/portal");
        let order = json!({ "start": date_time(from + HOUR) });
        let moved = server.client().post_json(&format!("{api}/move"), &order).await;
        assert_eq!(moved.status, StatusCode::OK, "{moved:?}");
        for form in [seen.clone(), seen.without("version")] {
            let asked = browser.post(&terminate, &form).await;
            assert_eq!(asked.status, StatusCode::CONFLICT, "{asked:?}");
            for text in ["has changed since", "<strong>2 EUR</strong> to the provider"] {
                assert!(asked.body.contains(text), "no {text} in {asked:?}");
            }
            assert!(browser.get(&path).await.body.contains("Waiting"));
        }
        let asked = browser.get(&terminate).await;
        let confirmed = form_to(&asked, &terminate);
        for _ in 0..2 {
            let ended = browser.post(&terminate, &confirmed).await;
            assert_eq!(ended.location(), path, "once; then it is shown that it is over");
        }
        assert!(browser.get(&path).await.body.contains("Cancelled"));
        server.assert_verified();
    });
}

#[test]
fn a_change_that_cannot_be_had_leaves_nothing_open_and_names_what_fills_the_form() {
    let server = start();
    run(async {
        let client = server.client();
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(2);
        let form = reserve(browser.form().await, 2, from, from + HOUR);
        let made = browser.post("/portal/agreements", &form).await;
        let change = format!("{}/change", made.location());
        let block = Offer::reserve(2, 4 * HOUR).within(from - HOUR, from + 3 * HOUR);
        client.post("/agreements", block.xml()).await.created();
        let more = form_to(&browser.get(&change).await, &change).with("nodes", "4");
        let refused = browser.post(&change, &more).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert!(
            refused.body.contains("This change cannot be offered"),
            "{refused:?}"
        );
        assert_eq!(
            form_to(&refused, &change).0["nodes"],
            "4",
            "the values entered are kept"
        );
        let links = refused.body.matches(&format!("href=\"{change}?")).count();
        assert!(links > 0, "no changes that fill the form in {refused:?}");
        assert!(!refused.body.contains("href=\"/portal?"), "{refused:?}");
        let filled = browser.get(&refused.link("on 2 nodes")).await;
        assert_eq!(form_to(&filled, &change).0["nodes"], "2");
        let all = client.get_json("/negotiations").await;
        assert_eq!(all["negotiations"][0]["state"], "terminated", "{all}");

        let shorter = form_to(&refused, &change).with("nodes", "1");
        let asked = browser.post(&change, &shorter).await.location().to_owned();
        let opened = client.get_json(asked.trim_start_matches("/portal")).await;
        let at = |name: &str| -> jiff::Timestamp {
            let text = opened[name].as_str().expect("an instant");
            text.parse().expect("a dateTime")
        };
        let lasts = at("expires").as_second() - at("created").as_second();
        assert!(lasts <= HOUR, "{opened}");
        // Another request changes the same reservation, and releases the earlier offers.
        let page = browser.get(&asked).await;
        let again = browser.get(&page.link("Change the request")).await;
        let again = form_to(&again, &change);
        assert_eq!(again.0["nodes"], "1");
        browser
            .post(&change, &again.with("hours", "").with("minutes", "30"))
            .await
            .location();
        let before = client.get_json(asked.trim_start_matches("/portal")).await;
        assert_eq!(before["state"], "terminated", "{before}");
    });
}

#[test]
fn only_the_end_of_what_runs_can_change_and_its_loss_is_stated() {
    let server = Server::configured(None, PRICED);
    run(async {
        let client = server.client();
        let id = client
            .post("/agreements", Offer::sleep(100, HOUR).xml())
            .await
            .created();
        let path = format!("/portal/agreements/{id}");
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let running = eventually("the job", super::SOON, async || {
            let page = browser.get(&path).await;
            page.body.contains(">Running<").then_some(page)
        });
        let page = running.await;
        assert!(page.body.contains("Actual run"), "{}", page.body);
        let change = format!("{path}/change");
        let asked = browser.get(&change).await;
        assert!(asked.body.contains("only its end can change"), "{}", asked.body);
        let form = form_to(&asked, &change);
        assert!(
            !form.0.contains_key("nodes") && !form.0.contains_key("start-date"),
            "{form:?}"
        );
        let shorter = browser
            .post(&change, &form.with("hours", "").with("minutes", "30"))
            .await;
        assert!(
            shorter.location().starts_with("/portal/negotiations/"),
            "{shorter:?}"
        );
        let asked = browser.get(&format!("{path}/terminate")).await;
        for text in [
            "<strong>1 EUR</strong> to the provider: Price",
            "is stopped",
            "nothing is given back",
        ] {
            assert!(asked.body.contains(text), "no {text} in {}", asked.body);
        }
    });
}

#[test]
fn neither_a_key_for_reading_only_nor_another_party_changes_anything() {
    let server = start();
    run(async {
        let made = server.client();
        let id = made.post(
            "/agreements",
            Offer::reserve(1, HOUR)
                .within(hours_ahead(1), hours_ahead(3))
                .xml(),
        );
        let path = format!("/portal/agreements/{}", id.await.created());
        let wish = serde_json::json!({ "party": "operator", "role": "operator", "readOnly": true });
        let reader = made.post_json("/keys", &wish).await.json();
        let mut browser = Browser::signed_in(&server, reader["key"].as_str().expect("it is shown")).await;
        let page = browser.get(&path).await;
        assert!(
            !page.body.contains("/change\"") && !page.body.contains("/terminate\""),
            "{}",
            page.body
        );
        let list = browser.get("/portal/reservations").await;
        assert!(list.body.contains("/portal/agreements/"), "{}", list.body);
        assert!(
            !list.body.contains("action=\"/portal/calendar-feed\""),
            "{}",
            list.body
        );
        let token = form_to(&list, "/portal/sign-out");
        for form in [
            format!("{path}/change"),
            format!("{path}/terminate"),
            "/portal/calendar-feed".to_owned(),
        ] {
            assert_eq!(
                browser.post(&form, &token).await.status,
                StatusCode::FORBIDDEN,
                "{form}"
            );
        }
        let other = Browser::signed_in(&server, &server.key_for("ops", "operator")).await;
        let page = other.get(&path).await;
        assert!(
            !page.body.contains("/change\"") && page.body.contains("/terminate\""),
            "{}",
            page.body
        );
        assert_eq!(
            other.get(&format!("{path}/change")).await.status,
            StatusCode::NOT_FOUND
        );
    });
}
