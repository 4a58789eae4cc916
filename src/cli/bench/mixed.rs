//! `bespeak bench mixed`: many requests of every kind to a running service, of which nothing lasts: agreements end, and
//! negotiations are closed. So what the service holds in memory has to stay the same, and is shown ten times over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Method;
use scheduler::measure::{Bar, verdict};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cli::Failure;
use crate::clock::Clock;

/// Memory is shown so often.
const PARTS: u64 = 10;
/// An agreement without a job lasts so many seconds: few are live at a time.
const LASTS: i64 = 2;

/// Memory that has grown by this factor at most counts as flat: an allocator keeps a varying amount.
const FLAT: f64 = 1.1;

/// Options of `bench mixed`.
#[derive(Debug, Args)]
pub(super) struct MixedOptions {
    /// Address of the service. Its configuration needs a local resource with some hundred nodes.
    #[arg(long, default_value = "http://127.0.0.1:8080", value_name = "URL")]
    server: String,
    /// A file with the key.
    #[arg(long, default_value = "bespeak-data/operator.key", value_name = "FILE")]
    key: PathBuf,
    /// The number of the service's process, to show its memory; only on the same machine.
    #[arg(long, value_name = "NUMBER")]
    process: Option<u32>,
    /// Clients that ask at the same time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// Requests in all; an hour with 25 of them a second has 90,000.
    #[arg(long, default_value_t = 90_000, value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    requests: u64,
    /// Requests for jobs among a thousand requests; each job is a process.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=300))]
    jobs_of_thousand: u64,
    /// Seconds that jobs may wait; the number of waiting jobs grows for this time and then stays the same.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(10..=86_400))]
    wait: u32,
    /// Requests a second at most; without it as many as the service answers
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    per_second: Option<u32>,
}

/// What has been asked, by all clients.
struct Load {
    http: reqwest::Client,
    options: MixedOptions,
    key: String,
    clock: Clock,
    begun: Instant,
    asked: AtomicU64,
    /// By kind of request and status.
    answers: Mutex<BTreeMap<String, u64>>,
    /// The service's own memory in KiB after the first part at whose end jobs have waited for as long as they may.
    after_first: OnceLock<u64>,
}

impl Load {
    /// The answer to a request, where it is a success in JSON.
    async fn ask(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Option<Value>, Failure> {
        let unavailable = |why: reqwest::Error| Failure::Unavailable(why.to_string());
        let noun = path.split(['/', '?']).nth(1).unwrap_or_default();
        let kind = format!("{method} /{noun}");
        let request = self
            .http
            .request(method, format!("{}{path}", self.options.server))
            .bearer_auth(&self.key)
            .header("accept", "application/json")
            .header("content-type", "application/json");
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let answer = request.send().await.map_err(unavailable)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(unavailable)?;
        {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            *answers.entry(format!("{kind} {}", status.as_u16())).or_default() += 1;
        }
        let part = (self.options.requests / PARTS).max(1);
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if asked.is_multiple_of(part) {
            let shown = self.shown(asked);
            // Until then what waits grows.
            if self.begun.elapsed().as_secs() > self.options.wait.into() {
                self.after_first
                    .get_or_init(|| shown["own_kib"].as_u64().unwrap_or_default());
            }
            println!("{shown}");
        }
        let value = serde_json::from_slice(&bytes).ok();
        Ok(value.filter(|_| status.is_success()))
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Option<Value>, Failure> {
        self.ask(Method::POST, path, Some(body.to_string().into_bytes()))
            .await
    }

    /// How far the load is, and what memory the service has.
    fn shown(&self, asked: u64) -> Value {
        let of = self.options.process.map(memory_kib).unwrap_or_default();
        json!({
            "requests": asked,
            "seconds": self.begun.elapsed().as_secs(),
            "own_kib": of.own,
            "resident_kib": of.resident,
            "peak_kib": of.peak,
        })
    }

    /// The window that begins so many seconds from now and lasts so many.
    fn window(&self, from: i64, lasts: i64) -> Value {
        let start = self.clock.now().seconds() + from;
        let at = |second: i64| {
            jiff::Timestamp::from_second(second).map_or_else(|why| why.to_string(), |at| at.to_string())
        };
        json!({ "start": at(start), "end": at(start + lasts) })
    }

    /// One client: requests of every kind, which one next is drawn from its seed.
    async fn client(self: Arc<Self>, seed: u64) -> Result<(), Failure> {
        let mut random = Random(seed);
        let mut made: Vec<String> = Vec::new();
        loop {
            let asked = self.asked.load(Ordering::Relaxed);
            if asked >= self.options.requests {
                return Ok(());
            }
            if let Some(rate) = self.options.per_second {
                let due = Duration::from_micros(asked * 1_000_000 / u64::from(rate));
                tokio::time::sleep_until((self.begun + due).into()).await;
            }
            if random.below(1_000) < self.options.jobs_of_thousand {
                let job = json!({ "application": "sleep", "arguments": ["0"], "nodes": 1,
                    "durationSeconds": 5, "window": self.window(0, self.options.wait.into()) });
                self.post("/agreements", &job).await?;
                continue;
            }
            match random.below(100) {
                0..30 => {
                    let offer = json!({ "nodes": 1, "durationSeconds": LASTS, "window": self.window(1, 60) });
                    let granted = self.post("/agreements", &offer).await?;
                    let id = granted.as_ref().and_then(|granted| granted["id"].as_str());
                    made.extend(id.map(str::to_owned));
                    made.truncate(50);
                }
                30..35 => self.make_and_end().await?,
                35..40 => {
                    let impossible =
                        json!({ "nodes": 100_000, "durationSeconds": 60, "window": self.window(0, 3_600) });
                    self.post("/agreements", &impossible).await?;
                }
                40..50 => self.negotiate(&mut random).await?,
                50..75 if !made.is_empty() => {
                    let at = usize::try_from(random.below(made.len() as u64)).unwrap_or_default();
                    let path = format!("/agreements/{}", made.swap_remove(at));
                    self.ask(Method::GET, &path, None).await?;
                }
                75..85 => drop(self.ask(Method::GET, "/agreements?limit=20", None).await?),
                85..90 => drop(self.ask(Method::GET, "/availability", None).await?),
                90..93 => drop(self.ask(Method::GET, "/templates", None).await?),
                93..96 => drop(self.ask(Method::GET, "/resources", None).await?),
                96..98 => {
                    let path = format!("/files/mixed-{}", random.below(20));
                    self.ask(Method::PUT, &path, Some(vec![b'x'; 2_000])).await?;
                }
                _ => drop(self.ask(Method::GET, "/metrics", None).await?),
            }
        }
    }

    /// An agreement far ahead that is ended at once.
    async fn make_and_end(&self) -> Result<(), Failure> {
        let far = json!({ "nodes": 1, "durationSeconds": 3_600, "window": self.window(86_400, 86_400) });
        let made = self.post("/agreements", &far).await?;
        if let Some(id) = made.as_ref().and_then(|made| made["id"].as_str()) {
            self.post(&format!("/agreements/{id}/terminate"), &json!({}))
                .await?;
        }
        Ok(())
    }

    /// A negotiation that comes to an agreement, or to a counter offer, and is ended.
    async fn negotiate(&self, random: &mut Random) -> Result<(), Failure> {
        let asked = json!({ "nodes": 2, "durationSeconds": LASTS, "window": self.window(2, 90) });
        let Some(opened) = self.post("/negotiations", &asked).await? else {
            return Ok(());
        };
        let Some(id) = opened["id"].as_str() else {
            return Ok(());
        };
        match opened["offers"][0]["id"].as_str() {
            Some(offer) if random.below(2) == 0 => {
                self.post("/agreements", &json!({ "offer": offer })).await?;
            }
            Some(offer) => {
                let other = json!({ "counterOfferTo": offer, "durationSeconds": LASTS + 1 });
                self.post(&format!("/negotiations/{id}/offers"), &other).await?;
            }
            None => {}
        }
        self.post(&format!("/negotiations/{id}/terminate"), &json!({}))
            .await?;
        Ok(())
    }
}

/// Numbers drawn from a seed (splitmix64): which requests come is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

/// The memory of a process in KiB; 0 where the system does not tell.
#[derive(Default)]
struct Memory {
    /// What it has written: the heap, and no pages of files, which come as parts of the program are first run.
    own: u64,
    /// With pages of files.
    resident: u64,
    /// The most that it had with those.
    peak: u64,
}

fn memory_kib(process: u32) -> Memory {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        number.unwrap_or(0)
    };
    Memory {
        own: of("RssAnon:"),
        resident: of("VmRSS:"),
        peak: of("VmHWM:"),
    }
}

/// Sends the load. Prints a line of JSON for each tenth of it, one with the answers that came, and whether memory was flat.
#[expect(clippy::cast_precision_loss, reason = "memory is compared to three digits")]
pub(super) async fn mixed(options: MixedOptions) -> Result<(), Failure> {
    let key = std::fs::read_to_string(&options.key)
        .map_err(|why| Failure::Usage(format!("{}: {why}", options.key.display())))?;
    let clients = options.clients;
    let load = Arc::new(Load {
        http: super::client()?,
        key: key.trim().to_owned(),
        clock: Clock::system(),
        begun: Instant::now(),
        asked: AtomicU64::new(0),
        answers: Mutex::default(),
        after_first: OnceLock::new(),
        options,
    });
    println!("{}", load.shown(0));
    let mut tasks: JoinSet<_> = (0..clients)
        .map(|seed| Arc::clone(&load).client(seed.into()))
        .collect();
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|why| Failure::Unavailable(why.to_string()))??;
    }
    let answers = load.answers.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", json!({ "answers": *answers }));
    if let (Some(process), Some(first)) = (load.options.process, load.after_first.get()) {
        let what = "memory: the service's own after all requests, × after a tenth of them";
        let growth = match memory_kib(process).own {
            0 => f64::NAN,
            own => own as f64 / (*first).max(1) as f64,
        };
        println!("{}", verdict(what, Bar::AtMost(FLAT), growth));
    }
    Ok(())
}
