//! The pages for operators: every change is shown with what would follow before it is done, and no other visitor gets in.

use portal::OPERATOR_PAGES;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::browser::{Browser, Form, Page};
use crate::browser::CONFIGURATION;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

const ORDERS: &str = "/portal/operator/orders";

/// The fields of a form of a page, found by a text in it.
fn form_with(page: &Page, text: &str) -> Form {
    let at = page
        .body
        .find(text)
        .unwrap_or_else(|| panic!("no {text} in {page:?}"));
    let start = page.body[..at].rfind("<form").expect("it stands in a form");
    page.fields(start)
}

/// Sends an order, asserts that what would follow is said, and confirms it.
async fn order(browser: &mut Browser, form: &Form, told: &[&str]) -> Page {
    let asked = browser.post(ORDERS, form).await;
    assert_eq!(asked.status, StatusCode::OK, "{asked:?}");
    assert!(asked.body.contains("Nothing is done yet"), "{asked:?}");
    for text in told {
        assert!(asked.body.contains(text), "no {text} in {asked:?}");
    }
    let confirmed = form_with(&asked, "name=\"confirmed\"");
    browser.post(ORDERS, &confirmed).await
}

#[test]
fn the_operators_pages_are_there_for_operators_alone_and_their_old_addresses_lead_to_them() {
    let server = Server::configured(None, CONFIGURATION);
    let offer = Offer::reserve(1, 3_600).within(hours_ahead(3), hours_ahead(9));
    run(async {
        let ann = server.client_with(&server.key_for("ann", "consumer"));
        let id = ann.post("/agreements", offer.xml()).await.created();
        let operator = Browser::signed_in(&server, server.key()).await;
        let mut consumer = Browser::signed_in(&server, &server.key_for("ann", "consumer")).await;
        let nobody = Browser::new(&server);
        let of_agreement = format!("/portal/operator/agreements/{id}");
        let pages = OPERATOR_PAGES.iter().map(|(path, _)| *path);
        for path in pages.chain([of_agreement.as_str()]) {
            assert_eq!(operator.get(path).await.status, StatusCode::OK, "{path}");
            assert_eq!(consumer.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
            assert_eq!(nobody.get(path).await.status, StatusCode::UNAUTHORIZED, "{path}");
        }
        let own = consumer.form().await;
        let freeze = own.clone().with("verb", "freeze").with("resource", "local");
        for path in [ORDERS, "/portal/operator/keys"] {
            let refused = consumer.post(path, &freeze).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        }
        let confirmed = consumer.post(ORDERS, &freeze.with("confirmed", "yes")).await;
        assert_eq!(confirmed.status, StatusCode::FORBIDDEN);
        for (old, new) in [
            ("/portal/resources", "/portal/operator/resources"),
            ("/portal/reliability", "/portal/operator/reliability"),
        ] {
            let moved = operator.get(old).await;
            assert_eq!(moved.status, StatusCode::PERMANENT_REDIRECT);
            assert_eq!(moved.headers["location"], new);
        }
        let overview = operator.get("/portal/operator").await;
        for text in [
            "1 waiting",
            "10 EUR",
            "of local",
            "5 h",
            "no prediction with a known outcome",
        ] {
            assert!(overview.body.contains(text), "no {text} in {overview:?}");
        }
        let parties = operator.get("/portal/operator/parties").await;
        assert!(parties.body.contains("<th scope=\"row\">ann</th>"), "{parties:?}");
    });
}

#[test]
fn a_drain_names_the_reservations_that_move_and_happens_when_it_is_confirmed() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let client = server.client_with(&server.key_for("ann", "consumer"));
        let start = hours_ahead(3);
        let offer = Offer {
            name: "a large one".to_owned(),
            ..Offer::reserve(4, 3_600).within(start, start + 3_600)
        };
        let id = client.post("/agreements", offer.xml()).await.created();
        let before = client.get_json(&format!("/agreements/{id}")).await;
        let on = before["resource"].as_str().expect("it is placed").to_owned();
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get("/portal/operator/resources").await;
        let drain = form_with(&page, &format!("on {on}</span>"))
            .with("nodes", "0")
            .with("state", "drained")
            .with("reason", "a new fan");
        let node = format!("Node 0 of {on}: drained.");
        let told = ["a large one", "<td>ann</td>", "1 get another place", &node];
        let asked = browser.post(ORDERS, &drain).await;
        assert!(asked.body.contains(told[0]), "{asked:?}");
        let unchanged = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(unchanged["resource"], before["resource"], "nothing is done yet");
        let done = order(&mut browser, &drain, &told).await;
        assert_eq!(
            done.location(),
            "/portal/operator/resources?lost=0&moved=1&unlisted=0"
        );
        let moved = client.get_json(&format!("/agreements/{id}")).await;
        assert_ne!(moved["resource"], before["resource"]);
        let page = browser.get(done.location()).await;
        assert!(
            ["1 drained", "a new fan", "and 1 has another one."]
                .iter()
                .all(|told| page.body.contains(told)),
            "{page:?}"
        );
        let unknown = browser.post(ORDERS, &drain.with("nodes", "77")).await;
        assert_eq!(unknown.status, StatusCode::CONFLICT, "{unknown:?}");
        let frozen = form_with(&page, "value=\"freeze\"").with("verb", "freeze");
        order(&mut browser, &frozen, &["frozen"]).await.location();
        let page = browser.get("/portal/operator/resources").await;
        let thawed = form_with(&page, "value=\"thaw\"").with("verb", "thaw");
        order(&mut browser, &thawed, &["No reservation loses"])
            .await
            .location();
        server.assert_verified();
    });
}

#[test]
fn a_maintenance_is_planned_and_removed() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get("/portal/operator/maintenance").await;
        let at = |hours: i64| {
            let at = jiff::Timestamp::from_second(hours_ahead(hours))
                .expect("an instant")
                .to_string();
            let (date, time) = at.trim_end_matches('Z').split_once('T').expect("a dateTime");
            (date.to_owned(), time.to_owned())
        };
        let (start, end) = (at(5), at(7));
        let form = form_with(&page, "value=\"add-maintenance\"")
            .with("resource", "local")
            .with("start-date", &start.0)
            .with("start-time", &start.1)
            .with("deadline-date", &end.0)
            .with("deadline-time", &end.1)
            .with("nodes", "2")
            .with("reason", "new <disks>");
        let wrong = browser.post(ORDERS, &form.clone().with("nodes", "two")).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
        let planned = order(
            &mut browser,
            &form,
            &["No reservation loses", "2 nodes of local: out of use from "],
        )
        .await;
        let page = browser.get(planned.location()).await;
        assert!(page.body.contains("new &#60;disks&#62;"), "{page:?}");
        let listed = server.client().get_json("/maintenance").await;
        assert_eq!(
            listed["maintenance"].as_array().map(Vec::len),
            Some(1),
            "{listed}"
        );
        let remove = form_with(&page, "value=\"remove-maintenance\"");
        let removed = order(&mut browser, &remove, &[]).await;
        assert!(
            browser
                .get(removed.location())
                .await
                .body
                .contains("None is planned")
        );
        let again = browser.post(ORDERS, &remove).await;
        assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");
    });
}

#[test]
fn a_reservation_is_moved_and_evicted_once_with_what_follows_shown_before() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let client = server.client_with(&server.key_for("ann", "consumer"));
        let offer = Offer::reserve(2, 3_600).within(hours_ahead(3), hours_ahead(9));
        let id = client.post("/agreements", offer.guaranteed_xml()).await.created();
        let path = format!("/agreements/{id}");
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&format!("/portal/operator{path}")).await;
        let before = client.get_json(&path).await;
        let to = if before["resource"] == "local" {
            "other"
        } else {
            "local"
        };
        let form = form_with(&page, "value=\"move\"")
            .with("resource", to)
            .with("reason", "room");
        let moved = order(&mut browser, &form, &[&format!("2 of {to}")]).await;
        assert_eq!(moved.location(), format!("/portal{path}"));
        assert_eq!(client.get_json(&path).await["resource"], to);

        let evict = form_with(&page, "value=\"evict\"")
            .with("reason", "misuse")
            .with("compensation", "3");
        let told = ["3 EUR are paid as compensation", ">lost</strong>", "in penalties"];
        let asked = browser.post(ORDERS, &evict).await;
        let confirmed = form_with(&asked, "name=\"confirmed\"");
        for text in told {
            assert!(asked.body.contains(text), "no {text} in {asked:?}");
        }
        assert_eq!(client.get_json(&path).await["state"], "Observed");
        for _ in 0..2 {
            let evicted = browser.post(ORDERS, &confirmed).await;
            assert_eq!(
                evicted.location(),
                format!("/portal{path}"),
                "once, and told twice"
            );
        }
        assert_eq!(client.get_json(&path).await["state"], "Complete");
        let accounts = client.get_json("/accounts").await;
        let paid = |kind: &str| {
            let entries = accounts["entries"].as_array().expect("a list").iter();
            entries.filter(|entry| entry["kind"] == kind).count()
        };
        assert_eq!(paid("compensation"), 1, "{accounts}");
        let trail = browser.get("/portal/operator/trail?text=misuse").await;
        assert!(trail.body.contains("misuse"), "{trail:?}");
        let trail = browser
            .get("/portal/operator/trail?text=%22%3E%3Cb%3Enothing")
            .await;
        assert!(
            trail.body.contains("Nothing was found") && !trail.body.contains("<b>"),
            "{trail:?}"
        );
        server.assert_verified();
    });
}

#[test]
fn an_order_about_a_reservation_that_has_changed_meanwhile_is_shown_again() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let client = server.client();
        let start = hours_ahead(3);
        let offer = Offer::reserve(2, 3_600).within(start, start + 6 * 3_600);
        let id = client.post("/agreements", offer.xml()).await.created();
        let path = format!("/agreements/{id}");
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&format!("/portal/operator{path}")).await;
        let evict = form_with(&page, "value=\"evict\"").with("reason", "misuse");
        let mut asked = browser.post(ORDERS, &evict).await;
        let order = json!({ "start": date_time(start + 3_600) });
        let moved = client.post_json(&format!("{path}/move"), &order).await;
        assert_eq!(moved.status, StatusCode::OK, "{moved:?}");
        for form in [
            form_with(&asked, "name=\"confirmed\""),
            form_with(&asked, "name=\"confirmed\"").without("version"),
        ] {
            asked = browser.post(ORDERS, &form).await;
            assert_eq!(asked.status, StatusCode::CONFLICT, "{asked:?}");
            assert!(asked.body.contains("has changed since"), "{asked:?}");
            assert_eq!(client.get_json(&path).await["state"], "Observed");
        }
        let confirmed = form_with(&asked, "name=\"confirmed\"");
        browser.post(ORDERS, &confirmed).await.location();
        assert_eq!(client.get_json(&path).await["state"], "Complete");
    });
}

#[test]
fn a_key_is_made_shown_once_expired_and_revoked() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get("/portal/operator/keys").await;
        let form = form_with(&page, "name=\"read-only\"")
            .without("read-only")
            .with("party", "ann")
            .with("role", "consumer")
            .with("label", "<laptop>")
            .with("cap", "25");
        let made = browser.post("/portal/operator/keys", &form).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        let (_, secret) = made
            .body
            .split_once("id=\"secret\">")
            .expect("the secret is shown");
        let secret = secret.split('<').next().expect("it has an end").to_owned();
        assert!(
            made.body.contains("&#60;laptop&#62;") && made.body.contains("up to 25 EUR"),
            "{made:?}"
        );
        let ann = server.client_with(&secret);
        assert_eq!(ann.get("/agreements").await.status, StatusCode::OK);
        let again = browser.post("/portal/operator/keys", &form).await;
        assert!(
            !again.body.contains(&secret) && again.body.contains("sent before"),
            "{again:?}"
        );
        let keys = server.client().get_json("/keys").await;
        let keys = keys["keys"].as_array().expect("a list").clone();
        let of_ann: Vec<&Value> = keys.iter().filter(|key| key["party"] == "ann").collect();
        let [key] = of_ann.as_slice() else {
            panic!("one key: {keys:?}")
        };
        let wrong = browser
            .post("/portal/operator/keys", &form.with("role", "king"))
            .await;
        assert_ne!(wrong.status, StatusCode::CREATED);

        let id = key["id"].as_str().expect("an id");
        let page = browser.get("/portal/operator/keys").await;
        let row = page.body.find(&format!("id=\"key-{id}\"")).expect("a row");
        let rest = &page.body[row..];
        let form_of = |verb: &str| {
            page.fields(
                row + rest
                    .find(verb)
                    .map(|at| rest[..at].rfind("<form").expect("a form"))
                    .expect("a verb"),
            )
        };
        let (expire, revoke) = (form_of("expire-key"), form_of("revoke-key"));
        let expire = expire
            .with("deadline-date", "2099-01-01")
            .with("deadline-time", "00:00");
        order(&mut browser, &expire, &["ann", "1 Jan 2099"])
            .await
            .location();
        let shown = server.client().get_json(&format!("/keys/{id}")).await;
        assert_eq!(shown["expires"], "2099-01-01T00:00:00Z");
        order(&mut browser, &revoke, &["cannot be undone"])
            .await
            .location();
        assert_eq!(ann.get("/agreements").await.status, StatusCode::UNAUTHORIZED);
    });
}
