//! What many waiting agreements cost those that look: each request that reads, and a start. A release runs it small; in full size the
//! number of agreements is in `BESPEAK_TEST_WAITING`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bespeak::portal::OPERATOR_PAGES;
use domain::agreement::{Agreement, EventKind, Slots};
use domain::change::Change;
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::ResourceRow;
use reqwest::StatusCode;
use scheduler::measure::{Bar, measurement_against_bar};
use scheduler::{Interval, Time};
use sqlx::{Connection, PgConnection};
use store::Store;
use uuid::Uuid;

use crate::bars::nodes;
use crate::portal::browser::Browser;
use crate::store::{RESOURCE, agreement, event};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::size;
use crate::support::stores::on_both_engines;

on_both_engines!(
    #[ignore = "a benchmark: a release runs it small"]
    many_waiting_cost_those_that_look_nothing,
);

/// Nodes of the resource, on which each agreement has at most eight.
const NODES: usize = 64;
const LANES: i64 = 8;
/// Parties that have what waits.
const PARTIES: usize = 8;
/// Requests of a kind, sent one by one.
const ASKED: usize = 200;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// What programs ask for: an operator, and a party.
const READS: [&str; 14] = [
    "/agreements",
    "/agreements?state=Observed",
    "/agreements?state=Complete",
    "/agreements?name=nothing",
    "/agreements?start=2400-01-01T00:00:00Z",
    "/negotiations",
    "/accounts",
    "/events",
    "/usage",
    "/availability",
    "/resources",
    "/templates",
    "/metrics",
    "/readyz",
];
/// Pages of people, beside those of operators alone.
const PAGES: [&str; 12] = [
    "/portal",
    "/portal/calendar?view=day",
    "/portal/calendar",
    "/portal/calendar?view=month",
    "/portal/negotiations",
    "/portal/reservations",
    "/portal/reservations?state=waiting",
    "/portal/reservations?state=running",
    "/portal/reservations?state=done",
    "/portal/reservations?q=nothing",
    "/portal/money",
    "/portal/settings",
];
const PLANS: [&str; 4] = [
    "/portal/gantt",
    "/portal/gantt?span=week",
    "/portal/gantt?span=month",
    "/portal/gantt?span=year",
];

async fn many_waiting_cost_those_that_look_nothing(url: String) {
    let waiting = size("BESPEAK_TEST_WAITING", 100);
    fill(&url, waiting).await;
    let engine = if url.starts_with("sqlite") {
        "sqlite"
    } else {
        "postgres"
    };
    let begun = Instant::now();
    let mut server = Server::configured(Some(&url), &nodes(NODES));
    let first = begun.elapsed();
    assert!(server.stop().success());
    let again = server.restart();
    for (start, took) in [("for the first time", first), ("again", again)] {
        let what = format!("waiting: start {start} on {waiting} that wait, {engine} (s)");
        row(&what, 2.0, took.as_secs_f64());
    }
    server.assert_verified();
    let key = server.key_for("party-1", "consumer");
    for (who, key) in [("operator", server.key().to_owned()), ("party", key)] {
        let client = server.client_with(&key);
        let browser = Browser::signed_in(&server, &key).await;
        let operators = OPERATOR_PAGES.iter().map(|(path, _)| *path).chain(PLANS);
        let pages: Vec<&str> = if who == "operator" {
            PAGES.into_iter().chain(operators).collect()
        } else {
            PAGES.to_vec()
        };
        for path in READS.into_iter().chain(pages) {
            let mut took = Vec::new();
            let before = processor_time(server.process());
            for _ in 0..ASKED {
                let asked = Instant::now();
                let status = if path.starts_with("/portal") {
                    browser.get(path).await.status
                } else {
                    let request = client.request(reqwest::Method::GET, path);
                    client
                        .send(request.header("accept", "application/json"))
                        .await
                        .status
                };
                took.push(asked.elapsed());
                let is_right = status == StatusCode::OK || status == StatusCode::FORBIDDEN;
                assert!(is_right, "{path}: {status}");
            }
            took.sort_unstable();
            let part = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
            if let (Some(before), Some(after)) = (before, processor_time(server.process())) {
                let mean = after.saturating_sub(before).as_secs_f64() * 1e3
                    / f64::from(u32::try_from(ASKED).expect("a few"));
                let what = format!("waiting: {who} GET {path}, {waiting} wait, {engine}: mean CPU (ms)");
                row(&what, 10.0, mean);
            }
            let what = format!("waiting: {who} GET {path}, {waiting} wait, {engine}: p99 (ms)");
            row(&what, 20.0, part(99).as_secs_f64() * 1e3);
        }
    }
}

/// Prints a row of the table, on a line of its own.
fn row(what: &str, at_most: f64, seen: f64) {
    println!("\n{}", measurement_against_bar(what, Bar::AtMost(at_most), seen));
}

/// The processor time that a process has used; `None` where the system does not tell.
fn processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    // Linux counts a hundred a second.
    Some(Duration::from_millis(ticks * 10))
}

/// Stores agreements that wait, one to eight nodes for 5 to 20 minutes from an hour on, in eight lanes, one behind the other.
async fn fill(url: &str, many: usize) {
    let store = Store::open(url).await.expect("a database can be opened");
    let lease = store.acquire_lease().await.expect("nobody else decides");
    let nodes = u32::try_from(NODES).expect("not that many");
    let resource = [
        Change::PutResource(ResourceRow::new(RESOURCE, "local", nodes)),
        Change::SetCapacity {
            resource: RESOURCE.into(),
            steps: vec![(0, nodes)],
        },
    ];
    store
        .commit(lease.epoch, &resource)
        .await
        .expect("a resource can be stored");
    let now = Clock::system().now();
    let mut random = Random::new(1);
    let mut lanes = vec![now + HOUR; usize::try_from(LANES).expect("a few")];
    let mut slots: Vec<(Interval, u32)> = (0..many)
        .map(|number| {
            let lane = &mut lanes[number % 8];
            let slot = Interval::of(*lane, 300 + random.seconds(901));
            *lane = slot.end;
            (slot, 1 + u32::try_from(random.below(8)).expect("a few"))
        })
        .collect();
    for at in (1..slots.len()).rev() {
        slots.swap(at, random.below(at + 1));
    }
    let end = lanes.into_iter().max().unwrap_or(now) + 60 * DAY;
    for (batch, numbers) in slots.chunks(500).zip(0..) {
        let changes: Vec<Change> = batch
            .iter()
            .zip(numbers * 500_usize..)
            .map(|((slot, nodes), number)| waits(now, end, (*slot, *nodes), number))
            .collect();
        store.commit(lease.epoch, &changes).await.expect("it is stored");
    }
    // As a service does every ten minutes.
    store.verify_new_lines().await.expect("the trail is right");
    store.close().await;
    if url.starts_with("postgres") {
        // As the server does by itself some minutes after so much was stored.
        let server = PgConnection::connect(url).await;
        let mut server = server.expect("the server can be reached");
        let tidied = sqlx::raw_sql("VACUUM ANALYZE").execute(&mut server).await;
        tidied.expect("the server gathers its statistics");
    }
}

/// An agreement that waits for a slot, as the service would have stored it.
fn waits(now: Time, end: Time, (slot, nodes): (Interval, u32), number: usize) -> Change {
    let created = now.0 * MICROS_PER_SECOND;
    let agreed = Agreement {
        id: Uuid::now_v7(),
        name: None,
        initiator_id: None,
        duration: slot.duration(),
        ready: now,
        deadline: end,
        slots: Slots::one((slot, nodes)),
        job: None,
        guarantees: Vec::new(),
        choices: Vec::new(),
        created,
        ..agreement(&format!("party-{}", number % PARTIES))
    };
    Change::CreateAgreement {
        agreement: Box::new(agreed),
        document: format!("<Offer xmlns=\"urn:as-long-as-an-offer\">{:500}</Offer>", ' ')
            .as_str()
            .into(),
        events: vec![domain::agreement::Event {
            at: created,
            ..event(EventKind::Accepted)
        }],
    }
}
