//! Money: the balance, the months, their entries, and the export.

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::browser::Browser;
use super::{buy, reserve};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;

/// Four nodes at a euro an hour, half of which a cancellation costs.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\ncancellation_percent = 50\n";

on_both_engines!(a_party_sees_its_money_by_month_and_takes_it_along);

#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn a_party_sees_its_money_by_month_and_takes_it_along(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let (ann, bob) = (
        server.key_for("ann", "consumer"),
        server.key_for("bob", "consumer"),
    );
    let mut browser = Browser::signed_in(&server, &ann).await;
    let nothing = browser.get("/portal/money").await;
    assert!(
        nothing.body.contains("Nothing was charged yet"),
        "{}",
        nothing.body
    );
    let from = hours_ahead(2);
    for (number, name) in ["=HYPERLINK(\"http://x\")", "<b>\"a\", b</b>", "@c"]
        .iter()
        .enumerate()
    {
        let nodes = u32::try_from(number).expect("few") + 1;
        let form = reserve(browser.form().await, nodes, from, from + HOUR).with("name", name);
        let path = buy(&mut browser, &form).await;
        let id = path.rsplit('/').next().expect("an id");
        let client = server.client_with(&ann);
        client.post(&format!("/agreements/{id}/terminate"), "").await;
    }
    let others = server.client_with(&bob);
    let offer = Offer::reserve(4, HOUR).within(from, from + HOUR).xml();
    let id = others.post("/agreements", offer).await.created();
    others.post(&format!("/agreements/{id}/terminate"), "").await;

    let page = browser.get("/portal/money").await;
    assert_eq!(page.status, StatusCode::OK);
    for text in [
        "<strong class=\"amount\">3 EUR</strong> is owed to the provider",
        "<td class=\"number\">-3 EUR</td><td class=\"number\">0 EUR</td><td class=\"number\">-3 EUR</td>",
        "Fee for cancelling",
        "-1.5 EUR",
        "Charges and credits in EUR by month",
    ] {
        assert!(page.body.contains(text), "no {text} in {}", page.body);
    }
    assert!(!page.body.contains("<b>"), "{}", page.body);
    assert_eq!(
        page.body.matches("Fee for cancelling").count(),
        3,
        "the party's only"
    );
    assert!(
        browser
            .get("/portal/money?party=bob")
            .await
            .body
            .contains("3 EUR"),
        "its own all the same"
    );
    let other = browser.get("/portal/money?month=1999-01&before=x&after=y").await;
    assert!(other.body.contains("There are none."), "{}", other.body);
    for odd in [
        "month=%00",
        "month=9999-12",
        "before=%00",
        "month=-1",
        "after=ffffffff-ffff-ffff-ffff-ffffffffffff",
    ] {
        let page = browser.get(&format!("/portal/money?{odd}")).await;
        assert_eq!(page.status, StatusCode::OK, "{odd}");
    }

    let export = browser.get("/portal/money/export.csv").await;
    assert!(
        export.headers[CONTENT_TYPE]
            .to_str()
            .expect("ASCII")
            .starts_with("text/csv")
    );
    let lines: Vec<&str> = export
        .body
        .strip_suffix("\r\n")
        .expect("a last line")
        .split("\r\n")
        .collect();
    assert_eq!(lines.len(), 4, "{}", export.body);
    assert_eq!(
        lines[0],
        "time,month,reason,amount,currency,reservation,name,particulars"
    );
    for (line, (amount, name)) in lines[1..].iter().zip([
        ("-1.5", "\"'@c\""),
        ("-1", "\"<b>\"\"a\"\", b</b>\""),
        ("-0.5", "\"'=HYPERLINK(\"\"http://x\"\")\""),
    ]) {
        assert!(
            line.contains(&format!("\"Fee for cancelling\",{amount},EUR,")) && line.contains(name),
            "{line}"
        );
    }
    let operator = Browser::signed_in(&server, server.key()).await;
    let bobs = operator.get("/portal/money?party=bob").await;
    assert!(
        bobs.body.contains("2 EUR</strong> is owed to the provider"),
        "{}",
        bobs.body
    );
    let export = operator.get("/portal/money/export.csv?party=bob").await;
    assert_eq!(export.body.matches("\r\n").count(), 2, "{}", export.body);
    let nobody = Browser::new(&server);
    for page in [
        "/portal/money",
        "/portal/money/export.csv",
        "/portal/reservations",
    ] {
        assert_eq!(nobody.get(page).await.status, StatusCode::UNAUTHORIZED, "{page}");
    }
    // A key with a cap tells how much of it is left.
    let wish =
        json!({ "party": "ann", "role": "consumer", "spendingCap": { "amount": "5", "currency": "EUR" } });
    let capped = server.client().post_json("/keys", &wish).await.json();
    let browser = Browser::signed_in(&server, capped["key"].as_str().expect("it is shown")).await;
    let page = browser.get("/portal/money").await;
    assert!(
        page.body
            .contains("may cost 5 EUR together. It has come to 0 EUR so far"),
        "{}",
        page.body
    );
    server.assert_verified();
}
