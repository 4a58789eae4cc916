//! From the form to offers, and from offers to a reservation: all that a person does who knows only the pages.

use reqwest::StatusCode;
use serde_json::Value;

use super::browser::{Browser, Form, Page};
use super::{CONFIGURATION, FIRST, SECOND, SECONDS, accept, actions, agreements, reserve, start};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;
pub(super) const ASK: &str = "/portal/offers";

const PRICES: &str =
    "\n[pricing]\ncurrency = \"EUR\"\nnode_hour = \"10\"\ncancellation_percent = 10\nflexible_percent = 40\n";

fn priced(url: Option<&str>) -> Server {
    Server::configured(url, &format!("{CONFIGURATION}{PRICES}"))
}

async fn held(server: &Server, negotiation: &str) -> Vec<Value> {
    let id = negotiation.rsplit('/').next().expect("a path");
    let shown = server.client().get_json(&format!("/negotiations/{id}")).await;
    let offers = shown["offers"].as_array().expect("a list").clone();
    offers
        .into_iter()
        .filter(|offer| offer["heldUntil"].is_string())
        .collect()
}

on_both_engines!(
    a_release_on_postgres:
    a_request_becomes_offers_of_which_one_is_taken_once,
);

async fn a_request_becomes_offers_of_which_one_is_taken_once(url: String) {
    let server = priced(Some(&url));
    let key = server.key_for("ann", "consumer");
    let mut browser = Browser::signed_in(&server, &key).await;
    let from = hours_ahead(4);
    // The whole of the hour is taken: there is room before and after.
    let block = Offer::reserve(4, HOUR).within(from, from + HOUR);
    server.client().post("/agreements", block.xml()).await.created();
    let form = reserve(browser.form().await, 2, from, from + HOUR).with("name", "<b>mine</b>");
    let asked = browser.post(ASK, &form).await;
    let path = asked.location().to_owned();
    assert_eq!(
        browser.post(ASK, &form).await.location(),
        path,
        "a form counts once"
    );
    let page = browser.get(&path).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(
        page.body.matches("<li class=\"card offer\"").count(),
        2,
        "{page:?}"
    );
    assert_eq!(
        page.body.matches("<rect class=\"p-planned\"").count(),
        2,
        "{page:?}"
    );
    for part in [
        "<rect class=\"p-asked\"",
        "earlier than asked for",
        "later than asked for",
        "20 EUR for the nodes and the time<",
        "Ending it before it starts costs at least 2 EUR.",
        "never more than the price",
        "The provider guarantees: Ends by ",
        "Its times are exact: it does not move.",
        "You pay for the whole time that you reserve",
        "data-until=\"",
        "Buy for 20 EUR",
    ] {
        assert!(page.body.contains(part), "no {part} in {page:?}");
    }
    assert!(!page.body.contains("<b>mine"), "{page:?}");
    assert_eq!(held(&server, &path).await.len(), 2);

    let action = accept(&page);
    let taking = page.form_to(&action);
    let made = browser.post(&action, &taking).await.location().to_owned();
    assert_eq!(
        browser.post(&action, &taking).await.location(),
        made,
        "taken once"
    );
    assert_eq!(agreements(&server).await.len(), 2);
    // Back to the offers: nothing can be taken again, and what has become of them is said.
    let after = browser.get(&path).await;
    assert_eq!(after.link("see the reservation"), made);
    assert!(
        actions(&after).iter().all(|action| !action.ends_with("/accept")),
        "{after:?}"
    );
    assert_eq!(held(&server, &path).await.len(), 0, "the other one is released");
    server.assert_verified();
}

#[test]
fn whoever_knows_only_the_pages_is_told_what_to_do_next() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, &server.key_for("ann", "consumer")).await;
        let empty = browser.get("/portal/negotiations").await;
        assert_eq!(empty.link("Ask for offers"), "/portal");
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(3));
        let path = browser.post(ASK, &form).await.location().to_owned();
        let list = browser.get("/portal/negotiations").await;
        assert_eq!(list.link("See prices and terms"), path);
        let page = browser.get(&path).await;
        assert!(
            page.body.contains("Reserve this") && page.body.contains("Nothing is charged"),
            "{page:?}"
        );
        let release = format!("{path}/release");
        let released = browser.post(&release, &page.form_to(&release)).await;
        assert_eq!(released.location(), path);
        assert_eq!(held(&server, &path).await, Vec::<Value>::new());
        let again = browser.post(&release, &page.form_to(&release)).await;
        assert_eq!(again.location(), path, "what is over is shown as such");
        let over = browser.get(&path).await;
        assert!(over.body.contains("These offers were released"), "{over:?}");
        let filled = browser.get(&over.link("Ask again")).await.form();
        for field in ["nodes", "hours", "start-date", "start-time", "deadline-time"] {
            assert_eq!(filled.0[field], form.0[field], "{field}");
        }
        let list = browser.get("/portal/negotiations").await;
        assert!(
            list.body.contains("Nothing is offered to you") && list.body.contains("ended"),
            "{list:?}"
        );
    });
}

#[test]
fn a_request_without_room_names_changes_that_work_when_they_are_followed() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let start = hours_ahead(4);
        let form = reserve(browser.form().await, 4, start, start + HOUR).with("budget", "39");
        let path = browser.post(ASK, &form).await.location().to_owned();
        let page = browser.get(&path).await;
        assert!(page.body.contains("It costs more than it may"), "{page:?}");
        // It is noted with the negotiation, and explained by the id that the page names.
        let id = page.body.split("as refusal <code class=\"address\">").nth(1);
        let id = id.and_then(|id| id.split('<').next()).expect("an id");
        let why = server.run(&["explain", id]);
        let why = String::from_utf8_lossy(&why.stdout).into_owned();
        assert!(why.contains("BUDGET_TOO_LOW"), "{why}");
        assert!(
            actions(&page).iter().all(|action| !action.ends_with("/accept")),
            "{page:?}"
        );
        let dearer = browser
            .get(&page.link("for 40 EUR, the lowest possible price"))
            .await
            .form();
        assert_eq!(dearer.0["budget"], "40");
        let path = browser.post(ASK, &dearer).await.location().to_owned();
        let page = browser.get(&path).await;
        assert!(page.body.contains("Buy for 40 EUR"), "{page:?}");
    });
}

#[test]
fn a_refusal_of_the_form_that_reserves_at_once_is_noted_and_its_changes_fill_the_form() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let start = hours_ahead(4);
        let first = reserve(browser.form().await, 4, start, start + HOUR);
        browser.post("/portal/agreements", &first).await.location();
        let late = reserve(browser.form().await, 4, start, start + 2 * HOUR).with("hours", "2");
        let refused = browser.post("/portal/agreements", &late).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        let id = refused.body.split("as refusal <code class=\"address\">").nth(1);
        let id = id.and_then(|id| id.split('<').next()).expect("an id");
        let noted = server.client().get(&format!("/refusals/{id}")).await;
        assert_eq!(noted.status, StatusCode::OK, "{noted:?}");
        let changes = refused
            .body
            .split("<ul class=\"changes\">")
            .nth(1)
            .expect("changes");
        let words = changes
            .split("</a>")
            .next()
            .and_then(|link| link.rsplit('>').next());
        let changed = browser.get(&refused.link(words.expect("a change"))).await.form();
        browser.post("/portal/agreements", &changed).await.location();
    });
}

#[test]
fn nothing_is_bought_before_its_price_and_its_terms_were_shown() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(4);
        let block = Offer::reserve(4, HOUR).within(from, from + HOUR);
        server.client().post("/agreements", block.xml()).await.created();
        let empty = browser.get("/portal").await;
        assert!(
            empty.body.contains(">See the earliest offer</button>"),
            "{empty:?}"
        );
        let form = reserve(empty.form(), 2, from, from + HOUR);
        let asked = browser
            .post("/portal/agreements", &form)
            .await
            .location()
            .to_owned();
        assert!(asked.starts_with("/portal/negotiations/"), "{asked}");
        assert_eq!(agreements(&server).await.len(), 1, "nothing was bought");
        let page = browser.get(&asked).await;
        assert_eq!(
            page.body.matches("<li class=\"card offer\"").count(),
            1,
            "{page:?}"
        );
        for part in ["earlier than asked for", "Buy for 20 EUR", "costs at least 2 EUR"] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        let action = accept(&page);
        browser.post(&action, &page.form_to(&action)).await.location();
        assert_eq!(agreements(&server).await.len(), 2);
    });
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let wrong = reserve(browser.form().await, 1, hours_ahead(3), hours_ahead(2))
            .with("application", "sleep\t")
            .with(SECONDS, "101")
            .with("nodes", "many")
            .with("budget", "much")
            .with("pieces", "99")
            .with("choices", "0");
        for path in [ASK, "/portal/agreements"] {
            let page = browser.post(path, &wrong).await;
            assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
            for part in [
                "argument-0-0",
                "nodes-group",
                "budget",
                "deadline-date-group",
                "pieces",
                "choices",
            ] {
                page.element(&format!("{part}-error"));
            }
            assert!(page.body.contains("<details class=\"more\" open>"), "{page:?}");
            assert_eq!(page.form(), wrong, "the values entered are kept");
        }
        assert_eq!(agreements(&server).await, Vec::<Value>::new());
        // Nothing is known yet of how long the application takes.
        let unknown = wrong.with("predict", "1").with(SECONDS, "1");
        let unknown = unknown
            .with("nodes", "1")
            .with("budget", "")
            .with("pieces", "")
            .with("choices", "");
        let unknown = reserve(unknown, 1, hours_ahead(2), hours_ahead(3)).with("application", "sleep\t");
        let page = browser.post(ASK, &unknown).await;
        assert!(page.location().starts_with("/portal/negotiations/"), "{page:?}");
    });
}

#[test]
fn more_nodes_than_any_resource_has_lead_to_as_many_as_the_largest_has() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 6, hours_ahead(2), hours_ahead(3));
        let page = browser.post(ASK, &form).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            page.body
                .contains("One reservation uses one resource; the largest has 4 nodes."),
            "{page:?}"
        );
        let fewer = browser.get(&page.link("Fill in 4 nodes")).await.form();
        assert_eq!(fewer.0["nodes"], "4");
        browser.post(ASK, &fewer).await.location();
    });
}

#[test]
fn a_request_may_be_for_exact_times_or_without_a_deadline() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(2);
        let form = reserve(browser.form().await, 1, from, from + 9 * HOUR);
        let exact = form.clone().with("exact", "1");
        let path = browser.post(ASK, &exact).await.location().to_owned();
        let page = browser.get(&path).await;
        assert!(page.body.contains("Its times are exact"), "{page:?}");

        let open = form.with("deadline-date", "").with("deadline-time", "");
        let open = open.with("once", &browser.form().await.0["once"]);
        let path = browser.post(ASK, &open).await.location().to_owned();
        let page = browser.get(&path).await;
        assert!(
            page.body.contains("to no deadline") && page.body.contains("You gave no deadline"),
            "{page:?}"
        );
        let action = accept(&page);
        let made = browser.post(&action, &page.form_to(&action)).await;
        let page = browser.get(made.location()).await;
        assert!(page.body.contains("<td>no deadline was given</td>"), "{page:?}");
        let change = format!("{}/change", made.location());
        let page = browser.get(&change).await;
        assert_eq!(page.form_to(&change).0["deadline-date"], "");
    });
}

#[test]
fn an_offer_is_answered_with_another_one_and_rejected() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let (from, to) = (hours_ahead(2), hours_ahead(8));
        let form = reserve(browser.form().await, 2, from, to);
        let path = browser.post(ASK, &form).await.location().to_owned();
        let page = browser.get(&path).await;
        let counter = page.link("Ask for something else instead");
        let asked = browser.get(&counter).await;
        assert_eq!(asked.status, StatusCode::OK, "{asked:?}");
        let told = |text: &str| asked.body.matches(text).count();
        assert_eq!(
            told("Empty means"),
            told("Empty means: as it is in the offer."),
            "{asked:?}"
        );
        let filled = asked.form();
        assert_eq!(filled.0["nodes"], "2");
        let to_send = format!("{path}/offers");
        let wrong = browser.post(&to_send, &filled.clone().with("nodes", "x")).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        wrong.element("nodes-group-error");
        let sent = browser.post(&to_send, &filled.clone().with("nodes", "1")).await;
        assert_eq!(sent.location(), path);
        assert_eq!(
            browser
                .post(&to_send, &filled.with("nodes", "1"))
                .await
                .location(),
            path
        );
        let page = browser.get(&path).await;
        assert!(
            page.body.contains("Choose one of 2") && page.body.contains("<dd>1 node for 1 h</dd>"),
            "{page:?}"
        );
        assert!(page.body.contains("in answer to"), "{page:?}");
        let offers = held(&server, &path).await;
        assert_eq!(offers.len(), 2);
        let reject = format!(
            "/portal/offers/{}/reject",
            offers[0]["id"].as_str().expect("an id")
        );
        let rejected = browser.post(&reject, &page.form_to(&reject)).await;
        assert_eq!(rejected.location(), path);
        let page = browser.get(&path).await;
        assert!(page.body.contains(">released</span>"), "{page:?}");
        assert!(!page.body.contains(&reject), "{page:?}");
    });
}

#[test]
fn an_estimate_holds_nothing_and_its_variants_fill_the_form() {
    let server = priced(None);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let form = reserve(browser.form().await, 2, hours_ahead(2), hours_ahead(3));
        let to = browser
            .post("/portal/estimate", &form)
            .await
            .location()
            .to_owned();
        assert!(
            to.starts_with("/portal/estimate?") && !to.contains("csrf"),
            "{to}"
        );
        let page = browser.get(&to).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        page.element("estimate");
        for part in [
            "There is room: 2 nodes for 1 h",
            "<td>20 EUR</td>",
            "<td>40 EUR</td>",
        ] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        assert_eq!(page.body.matches("<th scope=\"row\">").count(), 7, "{page:?}");
        let twice = browser.get(&page.link("Twice the nodes")).await.form();
        assert_eq!(twice.0["nodes"], "4");
        let back = browser.get(&page.link("Back to the form")).await.form();
        assert_eq!(back.0["nodes"], "2");
        let none = server.client().get_json("/negotiations").await;
        assert_eq!(none["negotiations"].as_array().map(Vec::len), Some(0), "{none}");
        let wrong = browser.get("/portal/estimate?application=&nodes=many").await;
        assert_eq!(wrong.status, StatusCode::OK);
        assert!(wrong.body.contains("Nodes: Enter a whole number"), "{wrong:?}");
        let bounded = format!("{CONFIGURATION}{PRICES}\n[quotas]\nprobes_per_minute = 3\n");
        let bounded = Server::configured(None, &bounded);
        let key = bounded.key_for("physics", "consumer");
        let mut asking = Browser::signed_in(&bounded, &key).await;
        let form = reserve(asking.form().await, 2, hours_ahead(2), hours_ahead(3));
        let to = asking.post("/portal/estimate", &form).await.location().to_owned();
        let page = asking.get(&to).await;
        assert!(
            page.body.contains("A party may ask 3 times a minute."),
            "{page:?}"
        );
    });
}

#[test]
fn a_file_is_uploaded_beside_the_form() {
    let server = start();
    let key = server.key_for("ann", "consumer");
    run(async {
        let mut browser = Browser::signed_in(&server, &key).await;
        let page = browser.get("/portal").await;
        let token = page.form_to("/portal/files").0["csrf"].clone();
        let file = ("input.csv", b"a,b\n1,2\n".as_slice());
        for forged in ["", "0", &"x".repeat(10_000)] {
            let refused = browser.upload("/portal/files", forged, file).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
        }
        browser.site = "cross-site";
        let foreign = browser.upload("/portal/files", &token, file).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN);
        browser.site = "same-origin";
        let done = browser.upload("/portal/files", &token, file).await;
        assert_eq!(done.location(), "/portal?uploaded=input.csv");
        let client = server.client_with(&key);
        assert_eq!(client.get("/files/input.csv").await.body, "a,b\n1,2\n");
        let told = browser.get(done.location()).await;
        assert!(told.body.contains("input.csv is uploaded"), "{told:?}");
        let wrong = browser
            .upload("/portal/files", &token, ("../x", b"1".as_slice()))
            .await;
        assert!(wrong.status.is_client_error(), "{wrong:?}");
    });
}

#[test]
fn others_and_readers_can_do_nothing_in_a_negotiation() {
    let server = priced(None);
    let (ann, bob) = (
        server.key_for("ann", "consumer"),
        server.key_for("bob", "consumer"),
    );
    run(async {
        let mut browser = Browser::signed_in(&server, &ann).await;
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(3));
        let path = browser.post(ASK, &form).await.location().to_owned();
        let offer = held(&server, &path).await[0]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let wish = serde_json::json!({ "party": "ann", "role": "consumer", "readOnly": true });
        let made = server.client().post_json("/keys", &wish).await.json();
        let reader = Browser::signed_in(&server, made["key"].as_str().expect("a key")).await;
        let page = reader.get(&path).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(actions(&page), Vec::<&str>::new(), "{page:?}");

        let mut other = Browser::signed_in(&server, &bob).await;
        let token = other.form().await;
        let mut nobody = Browser::new(&server);
        let posts = [
            format!("/portal/offers/{offer}/accept"),
            format!("/portal/offers/{offer}/reject"),
            format!("{path}/release"),
            format!("{path}/offers"),
        ];
        for post in &posts {
            let sent = token.clone().with("offer", &offer);
            assert_eq!(
                other.post(post, &sent).await.status,
                StatusCode::NOT_FOUND,
                "{post}"
            );
            assert_eq!(
                nobody.post(post, &sent).await.status,
                StatusCode::UNAUTHORIZED,
                "{post}"
            );
        }
        for get in [path.clone(), format!("{path}/counter?offer={offer}")] {
            assert_eq!(other.get(&get).await.status, StatusCode::NOT_FOUND, "{get}");
            assert_eq!(nobody.get(&get).await.status, StatusCode::UNAUTHORIZED, "{get}");
        }
        assert_eq!(
            nobody.get("/portal/estimate").await.status,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(held(&server, &path).await.len(), 1, "nothing has happened");
    });
}

#[test]
fn what_anybody_asks_for_is_shown_as_text_only() {
    let server = priced(None);
    run(async {
        let attack = "\"><img src=x onerror=alert(1)>'&amp;";
        let mut browser = Browser::signed_in(&server, &server.key_for("<i>Eve</i>", "consumer")).await;
        let form = reserve(browser.form().await, 1, hours_ahead(1), hours_ahead(3))
            .with("application", "echo <i>\t1.0")
            .with(FIRST, attack)
            .with(SECOND, "<large>")
            .with("name", attack);
        let clean = |page: &Page| {
            for markup in ["<img", "<i>", "<b>", "<large>"] {
                assert!(!page.body.contains(markup), "{markup} in {}", page.body);
            }
        };
        let fields: Vec<String> = form.0.keys().cloned().collect();
        for field in fields
            .iter()
            .filter(|field| !["csrf", "once"].contains(&field.as_str()))
        {
            let hostile = form.clone().with(field, attack);
            let query = hostile.clone().without("csrf").without("once").encoded();
            clean(&browser.get(&format!("/portal?{query}")).await);
            clean(&browser.get(&format!("/portal/estimate?{query}")).await);
            if field != "name" && field != FIRST {
                clean(&browser.post(ASK, &hostile).await);
            }
        }
        let path = browser.post(ASK, &form).await.location().to_owned();
        let page = browser.get(&path).await;
        clean(&page);
        clean(&browser.get("/portal/negotiations").await);
        let counter = browser.get(&page.link("Ask for something else instead")).await;
        clean(&counter);
        assert_eq!(counter.form().0["name"], attack, "as it was entered");
        let release = format!("{path}/release");
        browser.post(&release, &page.form_to(&release)).await.location();
        let again: Form = browser
            .get(&browser.get(&path).await.link("Ask again"))
            .await
            .form();
        assert_eq!(
            (again.0["name"].as_str(), again.0[SECOND].as_str()),
            (attack, "<large>")
        );
    });
}

#[test]
fn mistakes_in_a_form_are_told_by_its_fields() {
    let server = start();
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let from = hours_ahead(4);
        for (field, value) in [
            ("nodes", "40"),
            ("pieces", "3"),
            ("name", "a\u{200b}b"),
            ("hours", "100"),
            ("start-date", "2001-01-01"),
        ] {
            let form = reserve(browser.form().await, 1, from, from + HOUR).with(field, value);
            for path in [ASK, "/portal/agreements"] {
                let answer = browser.post(path, &form).await;
                for prefix in ["jsdl:", "wsag:", "arp:", "bsp:"] {
                    assert!(!answer.body.contains(prefix), "{field}: {answer:?}");
                }
                if field == "nodes" || field == "pieces" || field == "name" {
                    assert_eq!(
                        answer.status,
                        StatusCode::UNPROCESSABLE_ENTITY,
                        "{field}: {answer:?}"
                    );
                }
            }
        }
    });
}
