//! How much a running service acknowledges in a second: `cargo bench -p bespeak --bench storing -- --server URL --clients 16 --seconds 10`.
//! Sends it offers, negotiates with it and accepts; prints a line of JSON, and beside pgbench the bars.

mod pgbench;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use domain::clock::{Clock, time_in_words};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use scheduler::Time;
use scheduler::measure::{Bar, measurement_against_bar};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Why nothing could be measured.
type Failure = Box<dyn Error + Send + Sync>;

/// Offers that are held at a time between a phase that negotiates and one that accepts: fewer than a party may hold.
const HELD_MAX: usize = 800;
/// Requests are spread over this number of days, so that each finds a place at once and the database is measured.
const DAYS: u64 = 300;
const DAY: i64 = 86_400;

/// Measures a running service. Its configuration must let one party hold 1,000 answers and have as many negotiations going on as are made.
#[derive(Debug, Parser)]
struct Options {
    /// Address of the service.
    #[arg(long, value_name = "URL")]
    server: String,
    /// API key.
    #[arg(long, env = "BESPEAK_KEY", value_name = "KEY", hide_env_values = true)]
    key: String,
    /// Clients that ask at the same time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// Seconds for each of the three: offers, negotiations, acceptances.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// Negotiations that are opened before the measurement and stay open.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    open: u32,
    /// The service's PostgreSQL, to let `pgbench` write the same rows into it in turn with the offers, in a schema of its own.
    #[arg(long, value_name = "URL")]
    pgbench: Option<String>,
}

/// Rounds in which the offers and `pgbench` take turns.
const ROUNDS: u32 = 3;
/// Opens a negotiation without a request.
const OPENING: &str = r#"<wsag-neg:InitiateNegotiationInput
    xmlns:wsag-neg="http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation">
  <wsag-neg:NegotiationContext>
    <wsag-neg:NegotiationType><wsag-neg:Negotiation/></wsag-neg:NegotiationType>
    <wsag-neg:AgreementResponder>NegotiationResponder</wsag-neg:AgreementResponder>
  </wsag-neg:NegotiationContext>
</wsag-neg:InitiateNegotiationInput>"#;

/// The result of a phase.
#[derive(Debug, Default)]
struct Phase {
    spent: Duration,
    /// How long each took that was granted.
    took: Vec<Duration>,
    refused: usize,
}

impl Phase {
    #[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2⁵³")]
    fn summary(mut self) -> Value {
        self.took.sort_unstable();
        let done = self.took.len();
        let at = |percent: usize| {
            let place = (done * percent / 100).min(done.saturating_sub(1));
            self.took.get(place).map(|took| took.as_secs_f64() * 1_000.0)
        };
        json!({
            "done": done,
            "refused": self.refused,
            "per_second": (done as f64 / self.spent.as_secs_f64()).round(),
            "p50_ms": at(50),
            "p99_ms": at(99),
        })
    }
}

struct Asker {
    http: reqwest::Client,
    server: String,
    key: String,
    now: i64,
    asked: AtomicU64,
}

impl Asker {
    fn new(options: &Options) -> Result<Self, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Services close connections that were idle for ten seconds; the client gives them up before.
        let http = reqwest::Client::builder()
            .timeout(Duration::from_mins(1))
            .pool_idle_timeout(Duration::from_secs(5))
            .no_proxy()
            .build()?;
        Ok(Self {
            http,
            server: options.server.trim_end_matches('/').to_owned(),
            key: options.key.trim().to_owned(),
            now: Clock::system().now().seconds(),
            asked: AtomicU64::new(0),
        })
    }

    /// Opens negotiations in which nothing is asked.
    async fn open(&self, clients: u32, many: u32) -> Result<(), Failure> {
        let open = |_| async move {
            let request = self.http.post(format!("{}/negotiations", self.server));
            let request = request
                .bearer_auth(&self.key)
                .header("content-type", "application/xml");
            let answer = request.body(OPENING).send().await?;
            if answer.status().is_success() {
                return Ok(());
            }
            let text = answer.text().await?;
            Err(Failure::from(format!("/negotiations: {text}")))
        };
        let opened = stream::iter(0..many).map(open);
        opened.buffer_unordered(clients as usize).try_collect().await
    }

    /// A request for an hour of a node on one of many days.
    fn request(&self) -> Value {
        // A step that shares no factor with the number of days meets each of them.
        let day = self.asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(7) % DAYS;
        let from = DAY + DAY * i64::try_from(day).unwrap_or(0);
        json!({ "nodes": 1, "durationSeconds": 3_600, "window": self.window(from, DAY) })
    }

    /// The window that begins a number of seconds from now, with a length in seconds.
    fn window(&self, from: i64, lasts: i64) -> Value {
        let start = Time(self.now + from);
        json!({ "start": time_in_words(start), "end": time_in_words(start + lasts) })
    }

    /// Whether it was granted, with the answer.
    async fn post(&self, path: &str, body: &Value) -> Result<Option<Value>, Failure> {
        let request = self.http.post(format!("{}{path}", self.server));
        let request = request
            .bearer_auth(&self.key)
            .header("accept", "application/json")
            .json(body);
        let answer = request.send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?;
        if status.is_client_error() && status != reqwest::StatusCode::CONFLICT {
            let text = String::from_utf8_lossy(&bytes);
            return Err(format!("{path}: {status}: {text}").into());
        }
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(status.is_success().then_some(value))
    }
}

/// Asks with this number of clients until the time is over or no request is left. Returns the granted requests.
async fn run_bench_phase(
    asker: &Arc<Asker>,
    clients: u32,
    until: Instant,
    path: &'static str,
    work: Vec<Value>,
    into: &mut Phase,
) -> Result<Vec<Value>, Failure> {
    let work = Arc::new(work);
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (asker, work, next) = (Arc::clone(asker), Arc::clone(&work), Arc::clone(&next));
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while Instant::now() < until {
                let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                let Some(body) = work.get(at) else { break };
                let asked = Instant::now();
                let answer = asker.post(path, body).await?;
                latencies.push((asked.elapsed(), answer));
            }
            Ok::<_, Failure>(latencies)
        });
    }
    let mut granted = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        let measured = joined??;
        for (took, answer) in measured {
            match answer {
                Some(answer) => {
                    into.took.push(took);
                    granted.push(answer);
                }
                None => into.refused += 1,
            }
        }
    }
    into.spent += begun.elapsed();
    Ok(granted)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // Cargo says that it is a benchmark.
    let options = Options::parse_from(std::env::args().filter(|argument| argument != "--bench"));
    let asker = Arc::new(Asker::new(&options)?);
    let limit = Duration::from_secs(options.seconds.into());
    let clients = options.clients;
    let requests = || (0..HELD_MAX).map(|_| asker.request()).collect::<Vec<_>>();
    let (mut offers, mut negotiations, mut acceptances) =
        (Phase::default(), Phase::default(), Phase::default());
    asker.open(clients, options.open).await?;
    let mut beside = Vec::new();
    let mut one_by_one = Phase::default();
    let rounds = if options.pgbench.is_some() { ROUNDS } else { 1 };
    if let Some(url) = &options.pgbench {
        pgbench::prepare_tables(url).await?;
    }
    for round in 1..=rounds {
        while offers.spent < limit * round / rounds {
            let until = Instant::now() + (limit * round / rounds).saturating_sub(offers.spent);
            run_bench_phase(&asker, clients, until, "/agreements", requests(), &mut offers).await?;
        }
        if let Some(url) = &options.pgbench {
            let rate = pgbench::measure_offers(url, clients, options.seconds.div_ceil(rounds)).await?;
            beside.push(rate);
        }
    }
    let until = Instant::now() + limit / 2;
    run_bench_phase(&asker, 1, until, "/agreements", requests(), &mut one_by_one).await?;
    let commit = match &options.pgbench {
        Some(url) => {
            let commit = pgbench::measure_commit(url, options.seconds.div_ceil(2)).await?;
            pgbench::remove_tables(url).await?;
            commit
        }
        None => Value::Null,
    };
    // Held offers have to be accepted before more can be held; the clock of each phase stands while the other runs.
    while negotiations.spent < limit {
        let until = Instant::now() + limit.saturating_sub(negotiations.spent);
        let work = requests();
        let answers =
            run_bench_phase(&asker, clients, until, "/negotiations", work, &mut negotiations).await?;
        let held = answers
            .iter()
            .filter_map(|answer| answer["offers"][0]["id"].as_str())
            .map(|id| json!({ "offer": id }))
            .collect();
        let far = Instant::now() + Duration::from_mins(5);
        run_bench_phase(&asker, clients, far, "/agreements", held, &mut acceptances).await?;
    }
    let seen = json!({
        "clients": clients,
        "open": options.open,
        "offers": offers.summary(),
        "pgbench_per_second": beside,
        "one_client": one_by_one.summary(),
        "bare_commit_ms": commit,
        "negotiations": negotiations.summary(),
        "acceptances": acceptances.summary(),
    });
    println!("{seen}");
    print_bench_verdicts(&seen);
    Ok(())
}

/// Prints the results beside the bars, where pgbench ran beside the service.
#[expect(clippy::cast_precision_loss, reason = "there are a few rounds")]
fn print_bench_verdicts(seen: &Value) {
    let rounds = seen["pgbench_per_second"].as_array().map_or(0, Vec::len);
    let rates = seen["pgbench_per_second"].as_array().into_iter().flatten();
    let pgbench: f64 = rates.filter_map(Value::as_f64).sum();
    let Some(commit) = seen["bare_commit_ms"].as_f64() else {
        return;
    };
    let measurement = |phase: &str, what: &str| seen[phase][what].as_f64().unwrap_or(f64::NAN);
    let offers = measurement("offers", "per_second");
    for (what, bar, ratio) in [
        (
            "direct offers, × pgbench",
            Bar::AtLeast(1.0),
            offers * rounds as f64 / pgbench,
        ),
        (
            "negotiations, × direct offers",
            Bar::AtLeast(0.5),
            measurement("negotiations", "per_second") / offers,
        ),
        (
            "acceptances, × direct offers",
            Bar::AtLeast(0.5),
            measurement("acceptances", "per_second") / offers,
        ),
        (
            "one offer on an idle service, × a bare commit",
            Bar::AtMost(3.0),
            measurement("one_client", "p50_ms") / commit,
        ),
    ] {
        let what = format!("storing, {} negotiations open: {what}", seen["open"]);
        println!("{}", measurement_against_bar(&what, bar, ratio));
    }
}
