//! The metrics, as Prometheus reads them: the text is taken apart by a strict reader, and the numbers add up to the operations
//! that were made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(what_was_done_is_counted, what_came_of_agreements_is_counted);

/// How long a job may take to be over on a machine that is busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// Labels in the order in which they stand.
type Labels = Vec<(String, String)>;

/// A scrape: kind of each family, and the series in order.
#[derive(Debug, Default)]
struct Scrape {
    kinds: BTreeMap<String, String>,
    series: Vec<(String, Labels, f64)>,
}

impl Scrape {
    /// The text as it is specified, and nothing besides: HELP and TYPE once a family and before its series, families in one
    /// piece, no series twice, histograms whole.
    fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut helped = BTreeSet::new();
        let (mut family, mut seen) = (String::new(), BTreeSet::new());
        assert!(text.ends_with('\n'), "the last line ends");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a family is explained");
                assert!(!words.trim().is_empty() && is_name(name), "{line}");
                assert!(helped.insert(name.to_owned()), "{name} begins twice");
                name.clone_into(&mut family);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a family has a kind");
                assert_eq!(name, family, "TYPE follows HELP");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                if kind == "counter" {
                    assert!(name.ends_with("_total"), "{name}");
                }
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
            } else {
                let (name, labels, value) = series(line);
                let kind = scrape.kinds.get(&family).map(String::as_str);
                let stem = match kind {
                    Some("histogram") => ["_bucket", "_sum", "_count"]
                        .into_iter()
                        .find_map(|suffix| name.strip_suffix(suffix))
                        .unwrap_or_else(|| panic!("{line}: no part of a histogram")),
                    _ => &name,
                };
                assert_eq!(stem, family, "{line}: the series of a family stand together");
                assert!(seen.insert((name.clone(), labels.clone())), "{line}: twice");
                assert!(value >= 0.0, "{line}");
                scrape.series.push((name, labels, value));
            }
        }
        for (name, _) in scrape.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            scrape.check_histogram(name);
        }
        scrape
    }

    /// Buckets rise, and the last of them is the count.
    fn check_histogram(&self, name: &str) {
        let [all, buckets, sums] = ["count", "bucket", "sum"].map(|part| format!("{name}_{part}"));
        for (_, labels, count) in self.of(&all, &[]) {
            let mine: Vec<(&str, &str)> = labels
                .iter()
                .map(|(label, is)| (label.as_str(), is.as_str()))
                .collect();
            let buckets: Vec<_> = self.of(&buckets, &mine).collect();
            let bounds: Vec<f64> = buckets
                .iter()
                .map(|(_, labels, _)| {
                    let (le, bound) = labels.last().expect("a bucket has a bound");
                    assert_eq!(le, "le");
                    bound.replace("+Inf", "inf").parse().expect("a bound is a number")
                })
                .collect();
            assert!(bounds.is_sorted_by(|a, b| a < b), "{name}: {bounds:?}");
            assert_eq!(bounds.last(), Some(&f64::INFINITY), "{name}");
            let values: Vec<f64> = buckets.iter().map(|(_, _, value)| *value).collect();
            assert!(values.is_sorted(), "{name}: {values:?}");
            assert_eq!(values.last(), Some(count), "{name}");
            assert_eq!(self.of(&sums, &mine).count(), 1, "{name}");
        }
    }

    fn of<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a (String, Labels, f64)> {
        self.series.iter().filter(move |(one_series, has, _)| {
            one_series == name
                && labels
                    .iter()
                    .all(|(label, value)| has.iter().any(|(ha, is)| ha == label && is == value))
        })
    }

    /// The sum of the series with a name and these labels, which is a whole number.
    fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let sum: f64 = self.of(name, labels).map(|(_, _, value)| value).sum();
        let text = sum.to_string();
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: {text} counts nothing"))
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    !name.is_empty() && name.chars().all(|c| plain(c) || c.is_ascii_digit()) && name.starts_with(plain)
}

/// A line of the text: a name, labels in braces, a value.
fn series(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a name ends");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"").expect("a label has a value");
            assert!(is_name(label), "{line}");
            let mut value = String::new();
            let mut characters = after.char_indices();
            let closed = loop {
                match characters.next().expect("a value ends") {
                    (at, '"') => break at,
                    (_, '\\') => match characters.next().expect("something is escaped").1 {
                        'n' => value.push('\n'),
                        escaped @ ('\\' | '"') => value.push(escaped),
                        other => panic!("{line}: \\{other}"),
                    },
                    (_, other) => value.push(other),
                }
            };
            labels.push((label.to_owned(), value));
            inside = &after[closed + 1..];
            match inside.strip_prefix(',') {
                Some(next) => inside = next,
                None => break,
            }
        }
        rest = inside.strip_prefix('}').expect("labels end");
    }
    let value = rest.strip_prefix(' ').expect("a space stands before the value");
    (
        name.to_owned(),
        labels,
        value.parse().expect("a value is a number"),
    )
}

async fn scrape(client: &Client) -> Scrape {
    let answer = client.get("/metrics").await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(
        answer.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    Scrape::read(&answer.body)
}

#[test]
fn long_lived_tasks_tell_the_age_of_their_last_success() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let names = [
            "call-backs",
            "clock-steps",
            "dispatcher",
            "job-folders",
            "pending-agreements",
            "predictions",
            "samples of local",
            "state-check",
            "trail-heads",
        ];
        let ready = eventually("each task to have done its work", DEADLINE, async || {
            let ready = client.get("/readyz").await;
            assert_eq!(ready.status, StatusCode::OK, "{ready:?}");
            let done = |name: &&str| ready.body.contains(&format!("\ntask {name}: last success "));
            names.iter().all(done).then_some(ready)
        })
        .await;
        assert!(
            !ready.body.contains("too long") && !ready.body.contains("again"),
            "{ready:?}"
        );
        let scraped = scrape(&client).await;
        for name in names {
            let labels = [("task", name)];
            assert_eq!(
                scraped.of("bespeak_task_success_age_seconds", &labels).count(),
                1,
                "{name}"
            );
            assert_eq!(scraped.count("bespeak_task_late", &labels), 0, "{name}");
            assert_eq!(scraped.count("bespeak_task_restarts_total", &labels), 0, "{name}");
        }
    });
}

async fn what_was_done_is_counted(url: String) {
    let server = Server::start(&url);
    let consumer = server.client_with(&server.key_for("physics", "consumer"));
    let monitor = server.client_with(&server.key_for("prometheus", "monitor"));
    let before = scrape(&monitor).await;
    assert_eq!(before.count("bespeak_ready", &[]), 1);
    assert_eq!(before.count("bespeak_agreements", &[]), 0);
    assert_eq!(
        before.of("bespeak_agreements", &[]).count(),
        4,
        "every state is there"
    );
    let id = busy(&server, &consumer).await;
    let after = scrape(&server.client()).await;
    requests_add_up(&after);
    decisions_add_up(&after);
    let started = |scrape: &Scrape| {
        scrape
            .of("process_start_time_seconds", &[])
            .map(|(_, _, at)| at.to_string())
            .next()
    };
    assert!(started(&before).is_some());
    assert_eq!(started(&before), started(&after));
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(after.count("bespeak_build_info", &version), 1);
    // Parties, ids and addresses of requests are not shown here.
    let labels: BTreeSet<&str> = after
        .series
        .iter()
        .flat_map(|(_, labels, _)| labels.iter().map(|(_, value)| value.as_str()))
        .collect();
    for secret in ["physics", "secret", "SECRET", &id] {
        assert!(
            labels.iter().all(|label| !label.contains(secret)),
            "{secret}: {labels:?}"
        );
    }
}

/// Makes three agreements and ends one of them; gets two refusals; has offers held; and sends a wrong document. Answers with an
/// agreement's id.
async fn busy(server: &Server, consumer: &Client) -> String {
    let later = hours_ahead(3);
    let offer = |nodes| Offer::reserve(nodes, 3_600).within(later, later + 3_600);
    let json = |method, path: &str, body: String| {
        let request = consumer
            .request(method, path)
            .header("content-type", "application/json");
        consumer.send(request.header("accept", "application/json").body(body))
    };
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(consumer.post("/agreements", offer(1).xml()).await.created());
    }
    for _ in 0..2 {
        let refused = consumer.post("/agreements", offer(2).xml()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    }
    let over = format!("/agreements/{}/terminate", made[0]);
    let over = json(Method::POST, &over, "{}".to_owned()).await;
    assert_eq!(over.status, StatusCode::OK, "{over:?}");
    let asked = json!({"nodes": 2, "durationSeconds": 3_600,
        "window": {"start": date_time(later), "end": date_time(later + 3_600)}});
    let negotiated = json(Method::POST, "/negotiations", asked.to_string()).await;
    assert_eq!(negotiated.status, StatusCode::CREATED, "{negotiated:?}");
    for id in &made {
        consumer.get(&format!("/agreements/{id}")).await;
    }
    let wrong = consumer.post("/agreements", "<").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let nobody = server.client_with("").get("/agreements/secret-of-somebody").await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    consumer.get("/secret/path").await;
    let strange = Method::from_bytes(b"SECRET").expect("a method is a token");
    consumer.send(consumer.request(strange, "/templates")).await;
    made[1].to_string()
}

fn requests_add_up(after: &Scrape) {
    for (route, method, status, count) in [
        ("/agreements", "POST", "2xx", 3),
        ("/agreements", "POST", "4xx", 3),
        ("/agreements/{id}", "GET", "2xx", 3),
        ("/agreements/{id}", "GET", "4xx", 1),
        ("/agreements/{id}/terminate", "POST", "2xx", 1),
        ("/negotiations", "POST", "2xx", 1),
        ("/metrics", "GET", "2xx", 1),
        ("none", "GET", "4xx", 1),
        ("/templates", "other", "4xx", 1),
    ] {
        let labels = [("route", route), ("method", method), ("status", status)];
        let counted = after.count("bespeak_http_request_seconds_count", &labels);
        assert_eq!(counted, count, "{labels:?}");
    }
    for (code, count) in [
        ("NO_CAPACITY_IN_WINDOW", 2),
        ("MALFORMED", 1),
        ("UNAUTHORIZED", 1),
    ] {
        let counted = after.count("bespeak_http_errors_total", &[("code", code)]);
        assert_eq!(counted, count, "{code}");
    }
}

fn decisions_add_up(after: &Scrape) {
    for (request, outcome, count) in [
        ("offer", "granted", 3),
        ("offer", "refused", 2),
        ("termination", "granted", 1),
        ("quote", "granted", 1),
    ] {
        let labels = [("request", request), ("outcome", outcome)];
        assert_eq!(
            after.count("bespeak_decisions_total", &labels),
            count,
            "{labels:?}"
        );
    }
    let reason = [("request", "offer"), ("reason", "NO_CAPACITY_IN_WINDOW")];
    assert_eq!(after.count("bespeak_refusals_total", &reason), 2);
    assert_eq!(after.count("bespeak_refusals_total", &[]), 2);
    assert_eq!(after.count("bespeak_agreements", &[("state", "Observed")]), 2);
    assert_eq!(after.count("bespeak_agreements", &[]), 2);
    let terminated = [("state", "Terminated")];
    assert_eq!(after.count("bespeak_agreements_ended_total", &terminated), 1);
    assert_eq!(after.count("bespeak_negotiations_open", &[]), 1);
    let open = after.count("bespeak_offers_open", &[]);
    let held = after.count("bespeak_offers_held", &[]);
    assert!(held >= 1 && open >= held, "{open} {held}");
    assert_eq!(after.count("bespeak_offers_made_total", &[]), open);
    for family in ["bespeak_resource_nodes", "bespeak_resource_nodes_up"] {
        assert_eq!(after.count(family, &[("resource", "local")]), 4, "{family}");
    }
    for none in [
        "bespeak_jobs_running",
        "bespeak_resource_troubles",
        "bespeak_call_backs_waiting",
        "bespeak_parties_near_quota",
        "bespeak_planner_failed_commits_total",
        "bespeak_planner_impossible_total",
        "bespeak_clock_steps_total",
        "bespeak_clock_last_step_seconds",
    ] {
        assert_eq!(after.of(none, &[]).count(), 1, "{none}");
        assert_eq!(after.count(none, &[]), 0, "{none}");
    }
    // Every batch that was stored took its time, and each has decided at least one command.
    let commits = after.count("bespeak_planner_commit_seconds_count", &[]);
    let batches = after.count("bespeak_planner_batch_commands_count", &[]);
    assert!(commits >= 5 && batches >= commits, "{commits} {batches}");
    assert!(after.count("bespeak_planner_batch_commands_sum", &[]) >= batches);
}

/// Nodes by the hour are paid, and a guarantee that is violated costs.
const PAID: &str = "[limits]\nheader_seconds = 600\nbody_seconds = 600\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"3600\"\nbusy_percent = 0\nlate_percent = 0\nflexible_percent = 0\n";

async fn what_came_of_agreements_is_counted(url: String) {
    let server = Server::configured(Some(&url), PAID);
    let client = server.client();
    let before = scrape(&client).await;
    for state in ["Fulfilled", "Violated"] {
        assert_eq!(
            before.count("bespeak_guarantees_assessed_total", &[("state", state)]),
            0
        );
    }
    let resource = [("resource", "local")];
    assert_eq!(before.count("bespeak_resource_nodes_busy", &resource), 0);
    // Two nodes for a minute, of which the job needs a moment.
    let id = client
        .post("/agreements", Offer::sleep(1, 60).on(2).xml())
        .await
        .created();
    // All nodes for half of the week that begins in an hour.
    let later = hours_ahead(1);
    let half = Offer::reserve(4, 302_400).within(later, later + 302_400);
    client.post("/agreements", half.xml()).await.created();
    eventually("the end of the job", DEADLINE, async || {
        let state = client.get(&format!("/agreements/{id}/state")).await;
        state.body.contains("Complete<").then_some(())
    })
    .await;
    let after = scrape(&client).await;
    let sum = |name: &str, labels: &[(&str, &str)]| -> f64 {
        assert!(after.of(name, labels).next().is_some(), "{name}");
        after.of(name, labels).map(|(_, _, value)| value).sum()
    };
    let used = sum("bespeak_used_node_seconds_total", &resource);
    let booked = sum("bespeak_booked_node_seconds_total", &resource);
    assert!(
        (2.0..=booked).contains(&used) && booked < 120.0,
        "{used} {booked}"
    );
    // Its price is that of the whole slot: a currency unit a second and node.
    let price = [("currency", "EUR"), ("kind", "price")];
    assert!((sum("bespeak_earned_total", &price) - 120.0).abs() < 1e-9);
    assert_eq!(after.of("bespeak_owed_total", &[]).count(), 0);
    assert_eq!(
        after.count("bespeak_guarantees_assessed_total", &[("state", "Fulfilled")]),
        1
    );
    assert_eq!(
        after.count("bespeak_guarantees_assessed_total", &[("state", "Violated")]),
        0
    );
    let week = sum(
        "bespeak_resource_taken_ratio",
        &[("resource", "local"), ("ahead", "week")],
    );
    assert!((0.49..=0.51).contains(&week), "{week}");
    let decided = after.count("bespeak_planner_decision_seconds_count", &[]);
    assert_eq!(after.count("bespeak_planner_wait_seconds_count", &[]), decided);
    assert!(decided > 4, "{decided}");
    assert!(sum("process_resident_memory_bytes", &[]) > 1e6);
    assert!(sum("process_virtual_memory_bytes", &[]) >= sum("process_resident_memory_bytes", &[]));
    assert!(sum("process_cpu_seconds_total", &[]) > 0.0);
}
