//! Bars of `docs/reference/performance.md` that need a service under load. A release runs them small, for the bars that hold at any size;
//! `scripts/bars` runs them in full size, optimised and alone, and collects the rows that they print.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::agreement::{
    Account, AgreementState, Currency, EventKind, Execution, Money, Posting, PostingKind, RunOutcome,
    ServiceState, Slots,
};
use domain::change::Change;
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::ResourceRow;
use portal::OPERATOR_PAGES;
use reqwest::{Method, StatusCode};
use scheduler::Interval;
use scheduler::measure::{Bar, measurement_against_bar};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use store::Store;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::portal::browser::Browser;
use crate::store::{RESOURCE, agreement, event};
use crate::support::client::Client;
use crate::support::offers::{date_time, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{run, size};

/// Clients that send the mixed load.
const CLIENTS: usize = 16;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

on_both_engines!(
    #[ignore = "a benchmark: a release runs it small, scripts/bars in full size"]
    a_service_starts_on_a_long_past,
    #[ignore = "a benchmark: a release runs it small, scripts/bars in full size"]
    pages_are_shown_on_a_long_past,
);

/// Pages of the portal that are measured, for parties and for operators, who have [`OPERATOR_PAGES`], too.
const PARTYS_PAGES: [&str; 7] = [
    "/portal",
    "/portal/calendar?view=month",
    "/portal/negotiations",
    "/portal/reservations",
    "/portal/reservations?state=done",
    "/portal/reservations?q=nothing+like+it",
    "/portal/money",
];
const OPERATORS_PAGES: [&str; 3] = [
    "/portal/reservations",
    "/portal/gantt?span=month",
    "/portal/money?party=past",
];
/// Visits of each page that is measured.
const VISITS: usize = 20;

/// Calendar pages a second beside which decisions are measured.
const PAGES_A_SECOND: u64 = 10;
/// How often decisions are measured without these pages and with them, in turn.
const TURNS: usize = 4;

/// A configuration with one resource of this number of nodes.
pub(crate) fn nodes(many: usize) -> String {
    format!("[[resource]]\nname = \"{RESOURCE}\"\nkind = \"local\"\nnodes = {many}\n")
}

/// So many nodes for so long, within a window that begins `from` and has `room` to move.
fn asked(nodes: usize, duration: i64, from: i64, room: i64) -> Value {
    let window = json!({ "start": date_time(from), "end": date_time(from + duration + room) });
    json!({ "nodes": nodes, "durationSeconds": duration, "window": window })
}

/// Prints a row of the table, on a line of its own.
fn row(what: &str, at_most: f64, seen: f64) {
    println!("\n{}", measurement_against_bar(what, Bar::AtMost(at_most), seen));
}

/// A million agreements that are over are no reason to start late.
async fn a_service_starts_on_a_long_past(url: String) {
    let many = size("BESPEAK_TEST_PAST", 601);
    fill(&url, many).await;
    let begun = Instant::now();
    let mut server = Server::configured(Some(&url), &nodes(64));
    let first = begun.elapsed();
    server.assert_verified();
    let listed = server.client().get_json("/agreements?limit=100").await;
    assert_eq!(listed["agreements"].as_array().map(Vec::len), Some(100));
    assert!(server.stop().success());
    let again = server.restart();
    let engine = engine_of(&url);
    for (start, took) in [("for the first time", first), ("again", again)] {
        let what = format!("past: start {start} on {many} agreements that are over, {engine} (s)");
        row(&what, 5.0, took.as_secs_f64());
    }
}

/// What is over does not make pages slow.
async fn pages_are_shown_on_a_long_past(url: String) {
    let many = size("BESPEAK_TEST_PAST", 601);
    fill(&url, many).await;
    let server = Server::configured(Some(&url), &nodes(64));
    let engine = engine_of(&url);
    let key = server.key_for("past", "consumer");
    let menu = OPERATOR_PAGES.iter().map(|(path, _)| *path);
    for (key, pages) in [
        (key.as_str(), PARTYS_PAGES.to_vec()),
        (server.key(), OPERATORS_PAGES.into_iter().chain(menu).collect()),
    ] {
        let browser = Browser::signed_in(&server, key).await;
        for page in pages {
            let mut slowest = Duration::ZERO;
            for _ in 0..VISITS {
                let asked = Instant::now();
                assert_eq!(browser.get(page).await.status, StatusCode::OK, "{page}");
                slowest = slowest.max(asked.elapsed());
            }
            let what = format!("page {page} of {many} agreements, slowest of {VISITS}, {engine} (ms)");
            row(&what, 100.0, slowest.as_secs_f64() * 1_000.0);
        }
    }
}

/// The name of the engine of a database.
fn engine_of(url: &str) -> &'static str {
    if url.starts_with("sqlite") {
        "sqlite"
    } else {
        "postgres"
    }
}

/// Ten calendar pages a second take no time from decisions, whatever is planned.
#[test]
#[ignore = "a benchmark: a release runs it small, scripts/bars in full size"]
fn decisions_take_as_long_beside_calendar_pages() {
    run(async {
        let (waiting, many) = (
            size("BESPEAK_TEST_WAITING", 100),
            size("BESPEAK_TEST_DECISIONS", 60),
        );
        let server = Server::configured(None, &nodes(64));
        let (client, begin) = (server.client(), now() + HOUR);
        for number in (0..).take(waiting) {
            let offer = asked(1, HOUR, begin + number % 300 * DAY, DAY);
            client.post_json("/agreements", &offer).await.created();
        }
        let browser = Arc::new(Browser::signed_in(&server, server.key()).await);
        let [mut alone, mut beside] = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            alone.extend(decided(&client, many / TURNS).await);
            let pages = tokio::spawn(show_calendars(Arc::clone(&browser)));
            beside.extend(decided(&client, many / TURNS).await);
            pages.abort();
        }
        for (part, bar) in [(50, 1.5), (99, 2.0)] {
            let [alone, beside] = [&mut alone, &mut beside].map(|each| {
                each.sort_unstable();
                each[(each.len() * part / 100).min(each.len() - 1)].as_secs_f64()
            });
            println!(
                "p{part} of {many} decisions: {:.2} ms alone, {:.2} ms beside pages",
                alone * 1e3,
                beside * 1e3
            );
            let what = format!(
                "beside: p{part} of decisions, {waiting} waiting, × without {PAGES_A_SECOND} calendar pages a second"
            );
            row(&what, bar, beside / alone);
        }
        server.assert_verified();
    });
}

/// How long each of a number of decisions takes, one after the other.
async fn decided(client: &Client, many: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for number in (0..).take(many) {
        let offer = asked(1, HOUR, now() + (1 + number % 300) * DAY, DAY);
        let sent = Instant::now();
        client.post_json("/agreements", &offer).await.created();
        took.push(sent.elapsed());
    }
    took
}

/// Shows calendar pages in their time until it is stopped, however long each of them takes.
async fn show_calendars(browser: Arc<Browser>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(1_000 / PAGES_A_SECOND));
    let mut pages = JoinSet::new();
    loop {
        ticks.tick().await;
        let browser = Arc::clone(&browser);
        pages.spawn(async move {
            let page = browser.get("/portal/calendar").await;
            assert_eq!(page.status, StatusCode::OK);
        });
    }
}

/// Stores agreements of a minute on one of 64 nodes, one behind the other, the last of which ended an hour ago.
pub(crate) async fn fill(url: &str, many: usize) {
    let store = Store::open(url).await.expect("a database can be opened");
    let lease = store.acquire_lease().await.expect("nobody else decides");
    let resource = [
        Change::PutResource(ResourceRow::new(RESOURCE, "local", 64)),
        Change::SetCapacity {
            resource: RESOURCE.into(),
            steps: vec![(0, 64)],
        },
    ];
    store
        .commit(lease.epoch, &resource)
        .await
        .expect("a resource can be stored");
    let rounds = i64::try_from(many.div_ceil(64)).expect("not that many");
    let begin = Clock::system().now() - (rounds * 60 + HOUR);
    let numbers: Vec<i64> = (0..).take(many).collect();
    for batch in numbers.chunks(500) {
        let changes: Vec<Change> = batch
            .iter()
            .flat_map(|number| lived(Interval::of(begin + number / 64 * 60, 60), number % 64))
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

/// The life of an agreement whose job ran in a slot on a node, as the service would have stored it.
fn lived(slot: Interval, node: i64) -> [Change; 7] {
    let (start, end) = (slot.start.0 * MICROS_PER_SECOND, slot.end.0 * MICROS_PER_SECOND);
    let event = |at, kind| domain::agreement::Event { at, ..event(kind) };
    let mut over = agreement("past");
    (over.ready, over.deadline, over.created) = (slot.start, slot.end + HOUR, start);
    over.slots = Slots::one((slot, 1));
    over.guarantees.clear();
    let price = Money::new(1_000_000, Currency::parse("EUR").expect("a currency"));
    over.price = Some(price);
    let job = over.job.clone().expect("it has a job");
    let accepted = Change::CreateAgreement {
        agreement: Box::new(over.clone()),
        document: format!("<Offer xmlns=\"urn:as-long-as-an-offer\">{:2000}</Offer>", ' ')
            .as_str()
            .into(),
        events: vec![event(start, EventKind::Accepted)],
    };
    (over.service, over.started, over.version) = (ServiceState::Processing, Some(start), 2);
    let begun = Change::UpdateAgreement {
        agreement: Box::new(over.clone()),
        events: vec![event(start, EventKind::Begun)],
    };
    (over.state, over.service) = (AgreementState::Complete, ServiceState::Completed);
    (over.ended, over.outcome, over.version) = (Some(end), Some(RunOutcome::Completed), 3);
    let id = over.id;
    [
        accepted,
        begun,
        Change::BindNodes {
            agreement: id,
            resource: RESOURCE.into(),
            nodes: vec![u32::try_from(node).expect("one of 64")],
            interval: slot,
        },
        Change::UpdateAgreement {
            agreement: Box::new(over),
            events: vec![
                event(start, EventKind::Running),
                event(end, EventKind::Ended),
                event(end, EventKind::Closed),
            ],
        },
        Change::ReleaseNodes {
            agreement: id,
            end: slot.end,
        },
        Change::Post(Box::new(Posting {
            id: Uuid::now_v7(),
            at: end,
            agreement: id,
            kind: PostingKind::Price,
            from: Account::Party("past".to_owned()),
            to: Account::Provider,
            amount: price,
            detail: String::new(),
        })),
        Change::RecordExecution(Box::new(Execution {
            agreement: id,
            application: job.application,
            version: None,
            arguments: job.arguments,
            input_bytes: 0,
            output_bytes: 0,
            resource: RESOURCE.into(),
            nodes: 1,
            planned: slot,
            estimate: 60,
            queue_time: 0,
            run_time: 60 * MICROS_PER_SECOND,
            transfer_in: 0,
            transfer_out: 0,
            moved_in: 0,
            moved_out: 0,
            outcome: RunOutcome::Completed,
            ended: end,
        })),
    ]
}

/// Four parties that ask for an hour on days behind everything else do not wait for what another one has decided: agreements in
/// front of a long queue are ended, and urgent requests are refused.
#[test]
#[ignore = "a benchmark: a release runs it small, scripts/bars in full size"]
fn bystanders_are_answered_while_others_make_the_service_work() {
    run(async {
        let waiting = size("BESPEAK_TEST_WAITING", 100);
        let server = Server::configured(None, &nodes(64));
        let (client, begin) = (server.client(), now() + HOUR);
        // Each begins as the one before it ends, and ends before what waits is due.
        let block = |nth: i64| begin + nth * 10 * HOUR;
        let mut blocks = Vec::new();
        for nth in 0..3 {
            let whole = asked(64, 10 * HOUR, block(nth), 0);
            blocks.push(client.post_json("/agreements", &whole).await.created());
        }
        // In order of deadlines: each comes last in the queue, so that a service is filled in little time.
        for number in (0..).take(waiting) {
            let due = 30 * DAY + number * 30 * DAY / i64::try_from(waiting).expect("not that many");
            let flexible = asked(1, HOUR, begin, due - 2 * HOUR);
            client.post_json("/agreements", &flexible).await.created();
        }
        let refused = watched(&server, async {
            for nth in 0..15 {
                // Behind the blocks, where everything is taken by what would have to move.
                let urgent = asked(64, 10 * HOUR, block(3) + nth * HOUR, HOUR);
                client.post_json("/agreements", &urgent).await;
            }
        })
        .await;
        let ended = watched(&server, async {
            // The last first: each end frees time that everything behind it could use.
            for id in blocks.iter().rev() {
                let path = format!("/agreements/{id}/terminate");
                let ended = client.post_json(&path, &json!({})).await;
                assert!(ended.status.is_success(), "{ended:?}");
                // What waits moves up after the answer, while more is asked.
                for _ in 0..waiting / 10 {
                    let offer = asked(1, HOUR, begin + 345 * DAY, 10 * DAY);
                    client.post_json("/agreements", &offer).await.created();
                }
            }
        })
        .await;
        for (deed, worst) in [("requests are refused", refused), ("agreements are ended", ended)] {
            let what = format!("bystanders, {waiting} waiting: worst wait while {deed} (ms)");
            row(&what, 100.0, worst.as_secs_f64() * 1_000.0);
        }
        server.assert_verified();
    });
}

/// The longest that one of four bystanders waits for an answer while something is done.
async fn watched(server: &Server, done: impl Future<Output = ()>) -> Duration {
    let stop = Arc::new(AtomicBool::new(false));
    let mut bystanders = JoinSet::new();
    for first in 0..4 {
        let (client, stop) = (server.client(), Arc::clone(&stop));
        bystanders.spawn(async move {
            let (mut worst, mut day) = (Duration::ZERO, 61 + first);
            while !stop.load(Ordering::Relaxed) {
                let offer = asked(1, HOUR, now() + day * DAY, DAY);
                let sent = Instant::now();
                client.post_json("/agreements", &offer).await.created();
                worst = worst.max(sent.elapsed());
                day = 61 + (day - 61 + 4) % 280;
            }
            worst
        });
    }
    done.await;
    stop.store(true, Ordering::Relaxed);
    bystanders.join_all().await.into_iter().max().unwrap_or_default()
}

/// Requests of every kind, of which nothing lasts: agreements end, and negotiations are closed. So the memory of the service has
/// to stay the same.
#[test]
#[ignore = "a benchmark: a release runs it small, scripts/bars in full size"]
fn memory_is_flat_under_a_load_of_which_nothing_lasts() {
    run(async {
        let rounds = size("BESPEAK_TEST_MIXED_ROUNDS", 40);
        let server = Server::configured(None, &nodes(1_000));
        let next = Arc::new(AtomicUsize::new(0));
        let (mut answers, mut own) = (BTreeMap::<_, usize>::new(), Vec::new());
        for tenth in 1..=10 {
            let mut clients = JoinSet::new();
            for _ in 0..CLIENTS {
                let (client, next) = (server.client(), Arc::clone(&next));
                clients.spawn(async move {
                    let mut answers = Vec::new();
                    loop {
                        let round = next.fetch_add(1, Ordering::Relaxed);
                        if round >= rounds * tenth / 10 {
                            return answers;
                        }
                        answers.extend(mixed(&client, round).await);
                    }
                });
            }
            while let Some(joined) = clients.join_next().await {
                for kind in joined.expect("a client ends") {
                    *answers.entry(kind).or_default() += 1;
                }
            }
            next.store(rounds * tenth / 10, Ordering::Relaxed);
            own.push(own_memory_kib(server.process()));
        }
        println!("KiB of the service's own after each tenth: {own:?}; {answers:?}");
        assert!(answers.keys().all(|(_, status)| *status < 500), "{answers:?}");
        assert!(answers.contains_key(&("offer", 201)), "{answers:?}");
        if let (Some(Some(first)), Some(Some(last))) = (own.first(), own.last()) {
            let what = "memory: the service's own after all requests, × after a tenth of them";
            row(what, 1.1, last / first);
        }
    });
}

/// A request of each kind, with the statuses of the answers.
async fn mixed(client: &Client, round: usize) -> Vec<(&'static str, u16)> {
    let mut answers = Vec::new();
    let mut send = async |kind, method, path: &str, body: &Value| {
        let request = client.request(method, path).header("accept", "application/json");
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        let answer = client.send(request).await;
        answers.push((kind, answer.status.as_u16()));
        serde_json::from_str(&answer.body).unwrap_or(Value::Null)
    };
    let (empty, id) = (json!({}), |value: &Value| {
        value["id"].as_str().unwrap_or("-").to_owned()
    });
    let made = send("offer", Method::POST, "/agreements", &asked(1, 2, now() + 1, 60)).await;
    let path = format!("/agreements/{}", id(&made));
    send("show", Method::GET, &path, &Value::Null).await;
    if round.is_multiple_of(10) {
        let mut job = asked(1, 5, now(), 10);
        job["application"] = "sleep".into();
        job["arguments"] = json!(["0"]);
        send("job", Method::POST, "/agreements", &job).await;
    }
    let far = send(
        "offer",
        Method::POST,
        "/agreements",
        &asked(1, HOUR, now() + DAY, DAY),
    )
    .await;
    let path = format!("/agreements/{}/terminate", id(&far));
    send("terminate", Method::POST, &path, &empty).await;
    send(
        "impossible",
        Method::POST,
        "/agreements",
        &asked(100_000, 60, now(), HOUR),
    )
    .await;
    let opened = send(
        "negotiate",
        Method::POST,
        "/negotiations",
        &asked(2, 2, now() + 2, 90),
    )
    .await;
    let negotiation = format!("/negotiations/{}", id(&opened));
    if let Some(offer) = opened["offers"][0]["id"].as_str() {
        if round.is_multiple_of(2) {
            send("accept", Method::POST, "/agreements", &json!({ "offer": offer })).await;
        } else {
            let other = json!({ "counterOfferTo": offer, "durationSeconds": 3 });
            send("counter", Method::POST, &format!("{negotiation}/offers"), &other).await;
        }
    }
    let path = format!("{negotiation}/terminate");
    send("end", Method::POST, &path, &empty).await;
    let file = format!("/files/mixed-{}", round % 20);
    send("file", Method::PUT, &file, &json!("x".repeat(2_000))).await;
    for path in [
        "/agreements?limit=20",
        "/availability",
        "/templates",
        "/resources",
        "/metrics",
    ] {
        send("look", Method::GET, path, &Value::Null).await;
    }
    answers
}

/// What a process has written in memory, in KiB: the heap, and no pages of files, which come as parts of the program are first run.
/// `None` where the system does not tell.
fn own_memory_kib(process: u32) -> Option<f64> {
    let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
