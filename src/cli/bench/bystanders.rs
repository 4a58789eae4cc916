//! `bespeak bench bystanders`: how long others wait for the answers to their offers while one party ends an agreement in front
//! of a long queue, or is refused with alternatives.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use scheduler::measure::{Bar, verdict};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::service::{Asker, Phase, phase};
use crate::cli::Failure;

/// A bystander's offer is answered within so many milliseconds.
const BAR_MS: f64 = 100.0;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// The agreement that is ended takes all nodes for so long.
const BLOCK_HOURS: i64 = 10;
/// Those that wait may lie within so many days; the last of them has as much room behind it as all take.
const PACKED_DAYS: i64 = 60;
/// Seconds between two offers of a bystander: each waits for the service and not for its own offers.
const PAUSE: Duration = Duration::from_millis(2);
/// For how long bystanders are watched after an end, while what waits moves up.
const WATCHED: Duration = Duration::from_secs(10);

/// Options of `bench bystanders`.
#[derive(Debug, Args)]
pub(super) struct BystandersOptions {
    /// Address of the service. It must be new, plan 365 days ahead, and have one resource.
    #[arg(long, default_value = "http://127.0.0.1:8080", value_name = "URL")]
    server: String,
    /// A file with the key.
    #[arg(long, default_value = "bespeak-data/operator.key", value_name = "FILE")]
    key: PathBuf,
    /// Nodes of the resource: 64 are enough for 50,000 agreements.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// Agreements that wait: each could start at once, and is due in 30 to 60 days.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    waiting: u32,
    /// Bystanders that ask at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    bystanders: u32,
    /// Number of agreements that are ended, and of requests that are refused.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

impl BystandersOptions {
    /// What waits, in order of deadlines: each comes last in the queue, so that a service is filled in little time.
    fn packed(&self, asker: &Asker, from: i64) -> Vec<Value> {
        let spread = (PACKED_DAYS - 30) * DAY;
        let waiting = i64::from(self.waiting);
        let of = |nth: i64| {
            json!({
                "nodes": 1,
                "durationSeconds": HOUR,
                "window": asker.window(from, 30 * DAY + nth * spread / waiting - from),
            })
        };
        (0..waiting).map(of).collect()
    }

    /// All nodes for some hours.
    fn whole(&self, asker: &Asker, from: i64, hours: i64, room: i64) -> Value {
        json!({
            "nodes": self.nodes,
            "durationSeconds": hours * HOUR,
            "window": asker.window(from, hours * HOUR + room),
        })
    }
}

/// Offers of bystanders, until they are told to stop: an hour of a node on one of many days behind everything that waits.
async fn bystand(asker: Arc<Asker>, stop: Arc<AtomicBool>) -> Result<Phase, Failure> {
    let mut of = Phase::default();
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match asker.post("/agreements", &asker.request()).await? {
            Some(_) => of.took.push(asked.elapsed()),
            None => of.refused += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    of.spent = begun.elapsed();
    Ok(of)
}

/// What bystanders wait while something is done; with how long that took.
async fn watched<T>(
    asker: &Arc<Asker>,
    bystanders: u32,
    done: impl Future<Output = Result<T, Failure>>,
) -> Result<(Phase, T), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..bystanders {
        tasks.spawn(bystand(Arc::clone(asker), Arc::clone(&stop)));
    }
    let done = done.await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Phase::default();
    while let Some(of) = tasks.join_next().await {
        let of = of.map_err(|why| Failure::Unavailable(why.to_string()))??;
        all.took.extend(of.took);
        all.refused += of.refused;
        all.spent = all.spent.max(of.spent);
    }
    Ok((all, done?))
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

/// The waits of bystanders beside the bar.
fn waits(of: Phase, own: &[Duration]) -> Value {
    let worst = of.took.iter().max().copied().map_or(f64::NAN, milliseconds);
    let own: Vec<f64> = own.iter().copied().map(milliseconds).collect();
    json!({
        "bystanders": of.summary(),
        "worst_ms": worst,
        "own_ms": own,
    })
}

/// Fills a service, and measures what bystanders wait for. Prints a line of JSON.
pub(super) async fn bystanders(options: BystandersOptions) -> Result<(), Failure> {
    let asker = Arc::new(Asker::new(
        &options.server,
        &options.key,
        DAY * (PACKED_DAYS + 1),
    )?);
    let granted = |answer: Option<Value>, what: &str| {
        let id = answer.and_then(|answer| answer["id"].as_str().map(str::to_owned));
        id.ok_or_else(|| Failure::Refused(format!("{what} has no place: is the service new?")))
    };
    // One behind the other, from in an hour on.
    let block = |nth: u32| HOUR + i64::from(nth) * BLOCK_HOURS * HOUR;
    let mut blocks = Vec::new();
    for nth in 0..options.rounds {
        let whole = options.whole(&asker, block(nth), BLOCK_HOURS, 0);
        blocks.push(granted(asker.post("/agreements", &whole).await?, "a block")?);
    }
    let mut loaded = Phase::default();
    let far = Instant::now() + Duration::from_hours(24);
    let packed = options.packed(&asker, HOUR);
    phase(&asker, 16, far, "/agreements", packed, &mut loaded).await?;

    let (idle, ()) = watched(&asker, options.bystanders, async {
        tokio::time::sleep(WATCHED).await;
        Ok(())
    })
    .await?;
    let refusals = AtomicU64::new(0);
    let (refused, refusals_took) = watched(&asker, options.bystanders, async {
        let mut took = Vec::new();
        for nth in 0..options.rounds * 5 {
            // Behind the blocks, where everything is taken by what would have to move.
            let urgent = options.whole(&asker, block(options.rounds) + i64::from(nth) * HOUR, 10, HOUR);
            let asked = Instant::now();
            if asker.post("/agreements", &urgent).await?.is_none() {
                refusals.fetch_add(1, Ordering::Relaxed);
            }
            took.push(asked.elapsed());
        }
        Ok(took)
    })
    .await?;
    // The last first: each end frees time that everything behind it could use.
    let (ended, ends_took) = watched(&asker, options.bystanders, async {
        let mut took = Vec::new();
        for id in blocks.iter().rev() {
            let asked = Instant::now();
            let path = format!("/agreements/{id}/terminate");
            granted(asker.post(&path, &json!({})).await?, "an agreement to be ended")?;
            took.push(asked.elapsed());
            tokio::time::sleep(WATCHED).await;
        }
        Ok(took)
    })
    .await?;
    let seen = json!({
        "waiting": options.waiting,
        "loaded": loaded.summary(),
        "idle": waits(idle, &[]),
        "refused": refusals.into_inner(),
        "while_refused": waits(refused, &refusals_took),
        "while_ended": waits(ended, &ends_took),
    });
    println!("{seen}");
    for (phase, what) in [
        ("while_refused", "requests are refused"),
        ("while_ended", "agreements are ended"),
    ] {
        let what = format!(
            "bystanders, {} waiting: worst wait while {what} (ms)",
            options.waiting
        );
        let worst = seen[phase]["worst_ms"].as_f64().unwrap_or(f64::NAN);
        println!("{}", verdict(&what, Bar::AtMost(BAR_MS), worst));
    }
    Ok(())
}
