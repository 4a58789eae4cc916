//! Every page, on a phone and on a desk, light and dark.

use portal::OPERATOR_PAGES;
use serde_json::json;

use super::{CONFIGURATION, Visit};
use crate::support::chrome::{DESK, PHONE};
use crate::support::offers::{date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

/// Every page that a signed-in operator sees, who sees those of every party, beside the [`OPERATOR_PAGES`]; `{agreement}` stands for
/// one that waits, `{over}` for one whose job has ended, and `{negotiation}` for one that goes on. A page that is not here is looked at
/// by no test.
const PAGES: &[&str] = &[
    "/portal",
    "/portal/estimate?application=&nodes=2&hours=1",
    "/portal/calendar?view=day",
    "/portal/calendar?view=week",
    "/portal/calendar?view=month",
    "/portal/negotiations",
    "/portal/negotiations/{negotiation}",
    "/portal/reservations",
    "/portal/money",
    "/portal/gantt",
    "/portal/gantt?span=month",
    "/portal/agreements/{agreement}",
    "/portal/agreements/{agreement}/terminate",
    "/portal/agreements/{over}",
    "/portal/settings",
    "/portal/operator/agreements/{agreement}",
    "/portal/nothing",
    "/docs",
];

/// The parts of the long description of the API: what is around it, its head with the first operations, and its last schema. The others
/// look as these do.
const DOCS: &[&str] = &[
    "body > :not(main)",
    "main > :nth-child(-n+20)",
    "main > section:last-of-type",
];

/// What somebody may enter who means harm, and a word longer than a phone is wide.
const HOSTILE: &str = "\"><img src=x onerror=hacked()><script>hacked()</script>'&amp;{{7*7}}";
const LONG: &str = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft";

/// A server with something on every page, entered by somebody who means harm. Answers a waiting agreement, one that is over, and
/// a negotiation.
async fn fill(server: &Server) -> [String; 3] {
    let party = "<script>hacked()</script>";
    let client = server.client_with(&server.key_for(party, "consumer"));
    let [start, end] = [3, 6].map(|hours| date_time(hours_ahead(hours)));
    let window = json!({ "start": start, "end": end });
    let mut made = Vec::new();
    for name in [HOSTILE, LONG] {
        let wish = json!({ "name": name, "nodes": 1, "durationSeconds": 3_600, "window": window });
        let agreement = client.post_json("/agreements", &wish).await.json();
        made.push(agreement["id"].as_str().expect("an id").to_owned());
    }
    // Without a window it begins at once. Arguments have no slashes.
    let echo = json!({ "name": HOSTILE, "application": "echo", "arguments": [HOSTILE.replace('/', "")], "nodes": 1, "durationSeconds": 60 });
    let over = client.post_json("/agreements", &echo).await;
    let over = over.json()["id"].as_str().expect("an id").to_owned();
    let negotiation = client
        .post_json("/negotiations", &json!({ "nodes": 2, "durationSeconds": 3_600 }))
        .await;
    assert!(negotiation.status.is_success(), "{negotiation:?}");
    let negotiation = negotiation.json()["id"].as_str().expect("an id").to_owned();
    let operator = server.client();
    let drain = json!({ "state": "drained", "reason": HOSTILE });
    let said = operator
        .request(reqwest::Method::PUT, "/resources/other/nodes/3")
        .json(&drain);
    assert!(operator.send(said).await.status.is_success());
    let [start, end] = [30, 31].map(|hours| date_time(hours_ahead(hours)));
    let planned = json!({ "resource": "other", "start": start, "end": end, "nodes": 1, "reason": HOSTILE });
    assert!(
        operator
            .post_json("/maintenance", &planned)
            .await
            .status
            .is_success()
    );
    let key = json!({ "party": HOSTILE, "role": "consumer", "label": LONG });
    assert!(operator.post_json("/keys", &key).await.status.is_success());
    [made.swap_remove(0), over, negotiation]
}

#[test]
fn every_page_is_accessible_fits_its_window_and_shows_what_others_entered_as_text() {
    let server = Server::configured(None, CONFIGURATION);
    run(async {
        let [agreement, over, negotiation] = fill(&server).await;
        let mut visit = Visit::begin(&server, "pages").await;
        visit.sign_in(server.key()).await;
        let menu = OPERATOR_PAGES.iter().map(|(path, _)| path);
        for page in PAGES.iter().chain(menu) {
            let path = page.replace("{agreement}", &agreement);
            let path = path
                .replace("{over}", &over)
                .replace("{negotiation}", &negotiation);
            let name = page
                .trim_start_matches('/')
                .replace(['/', '{', '}', '?', '=', '&'], "-");
            for (size, scheme) in [(PHONE, "light"), (DESK, "light"), (DESK, "dark")] {
                visit.chrome.resize(size).await;
                visit.chrome.prefer(scheme).await;
                if (size, scheme) == (PHONE, "light") {
                    visit.go(&path).await;
                }
                let what = format!("{name}-{}-{scheme}", size.0);
                visit.photograph(&what).await;
                assert_eq!(visit.chrome.misplaced().await, Vec::<String>::new(), "{what}");
                let (chrome, is_long) = (&visit.chrome, *page == "/docs");
                let barriers = match scheme {
                    "light" if !is_long => chrome.barriers().await,
                    "light" if size == DESK => [
                        chrome.barriers_but_colours().await,
                        chrome.barriers_of_colours(DOCS).await,
                    ]
                    .concat(),
                    "dark" if !is_long => chrome.barriers_of_colours(&["html"]).await,
                    _ => Vec::new(),
                };
                assert_eq!(barriers, Vec::<String>::new(), "{what}");
            }
            let harm =
                "return [...document.querySelectorAll('img, main script')].map((one) => one.outerHTML);";
            assert_eq!(visit.chrome.run(harm, json!([])).await, json!([]), "{page}");
        }
    });
}
