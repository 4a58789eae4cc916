//! The main pages as Lighthouse measures them in a real browser, beside a hundred thousand agreements that are over. A part of the
//! release test, which installs it: `./scripts/test release lighthouse`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bars::{fill, nodes};
use crate::portal::browser::Browser;
use crate::support::offers::{date_time, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::TestDatabase;
use crate::support::{output_of, run, size};

/// Where the release test installs it.
const PROGRAM: &str = "target/lighthouse/node_modules/.bin/lighthouse";
/// How long it may take for a page.
const DEADLINE: Duration = Duration::from_mins(5);
/// The least score in each category, of 1.
const LEAST: f64 = 0.95;
/// How often a page is looked at, at most, until it has these.
const LOOKS: usize = 3;
const CATEGORIES: [&str; 2] = ["performance", "accessibility"];
/// As root the browser has no sandbox; it speaks with this machine alone.
const BROWSER: &str = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --lang=en \
    --host-resolver-rules=\"MAP * ~NOTFOUND, EXCLUDE 127.0.0.1\"";

#[test]
#[ignore = "needs Lighthouse: a release runs it"]
fn the_main_pages_are_fast_and_accessible() {
    let database = TestDatabase::empty_sqlite();
    let url = database.url().to_owned();
    run(async {
        fill(&url, size("BESPEAK_TEST_PAST", 601)).await;
        let server = Server::configured(Some(&url), &nodes(64));
        let [start, end] = [2, 9].map(|hours| date_time(hours_ahead(hours)));
        let asked = json!({ "name": "a run", "nodes": 2, "durationSeconds": 3_600, "window": { "start": start, "end": end } });
        let id = server.client().post_json("/agreements", &asked).await.created();
        let browser = Browser::signed_in(&server, server.key()).await;
        let cookie = browser.cookie.as_deref().expect("a session");
        let own = format!("/portal/agreements/{id}");
        let pages = [
            "/portal",
            "/portal/calendar",
            "/portal/reservations",
            &own,
            "/portal/operator",
        ];
        let mut low = Vec::new();
        for page in pages {
            let address = format!("http://{}{page}", server.address());
            let mut report = look_at(&address, cookie);
            // What else this machine does counts as the page's: as Lighthouse advises, one measurement is none.
            for _ in 1..LOOKS {
                if CATEGORIES
                    .iter()
                    .all(|category| score_of(&report, category) >= LEAST)
                {
                    break;
                }
                report = look_at(&address, cookie);
            }
            for category in CATEGORIES {
                let score = score_of(&report, category);
                println!("{page}: {category} {score}");
                if score < LEAST {
                    low.push(format!(
                        "{page}: {category} {score}: {:#?}",
                        faults(&report, category)
                    ));
                }
            }
        }
        assert!(low.is_empty(), "{low:#?}");
    });
}

fn score_of(report: &Value, category: &str) -> f64 {
    report["categories"][category]["score"].as_f64().unwrap_or(0.0)
}

/// The report on a page.
fn look_at(address: &str, cookie: &str) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    let headers = json!({ "Cookie": cookie }).to_string();
    let mut command = Command::new(program);
    command
        .arg(address)
        .args(["--quiet", "--output=json", "--extra-headers", &headers])
        .arg(format!("--only-categories={}", CATEGORIES.join(",")))
        .arg(format!("--chrome-flags={BROWSER}"))
        .env("CHROME_PATH", "/usr/bin/chromium")
        .env("HOME", folder.path());
    let said = output_of(&mut command, DEADLINE);
    let report = serde_json::from_slice(&said.stdout);
    report.unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&said.stderr)))
}

/// The audits of a category that are not wholly passed.
fn faults(report: &Value, category: &str) -> Vec<String> {
    let audits = report["categories"][category]["auditRefs"].as_array();
    let audits = audits
        .into_iter()
        .flatten()
        .filter_map(|audit| audit["id"].as_str());
    let audits = audits.map(|id| &report["audits"][id]);
    let low = audits.filter(|audit| audit["score"].as_f64().is_some_and(|score| score < 0.9));
    low.map(|audit| format!("{}: {}", audit["title"], audit["displayValue"]))
        .collect()
}
