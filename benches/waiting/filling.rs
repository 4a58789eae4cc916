//! Filling the resource: several clients send offers at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Failure;
use super::client::{Asked, Client};
use super::mix::Format;
use super::site::{Site, latency_at};

/// Offers that were sent until so many were accepted.
pub(super) struct Filling {
    /// How many were accepted before.
    before: usize,
    begun: Instant,
    /// When each was accepted, and its latency in milliseconds, in the order of time.
    accepted: Vec<(Instant, f64)>,
    pub(super) refused: usize,
    /// Agreements that moved meanwhile, where the service counts that.
    pub(super) moves: Option<f64>,
}

/// Offers of a part of a filling.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) per_second: f64,
    /// Milliseconds: the median, the 99th percentile and the longest.
    pub(super) latencies: [f64; 3],
}

/// How many more may be refused than accepted before it is given up.
const REFUSED_MAX: usize = 1_000;

impl Filling {
    /// Has as many clients send offers of the mix until this number is accepted, where so many were before.
    pub(super) async fn run(
        site: &mut Site,
        format: Format,
        clients: usize,
        before: usize,
        number: usize,
    ) -> Result<Self, Failure> {
        let moves = site.moves().await?;
        // A few more, for those that are refused.
        let wishes: Vec<_> = (0..number * 2 + REFUSED_MAX).map(|_| site.wish()).collect();
        let wishes = Arc::new(Mutex::new((wishes.into_iter(), number)));
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for client in site.parties.iter().cycle().take(clients) {
            let (client, wishes) = (client.clone(), Arc::clone(&wishes));
            tasks.spawn(async move { fill(&client, format, &wishes).await });
        }
        let (mut accepted, mut refused) = (Vec::new(), 0);
        while let Some(filled) = tasks.join_next().await {
            let (times, refusals) = filled??;
            accepted.extend(times);
            refused += refusals;
        }
        accepted.sort_by_key(|(at, _)| *at);
        let moves = moves
            .zip(site.moves().await?)
            .map(|(before, after)| after - before);
        if accepted.len() < number {
            return Err(format!(
                "{} of {number} offers were accepted, {refused} refused",
                accepted.len()
            )
            .into());
        }
        Ok(Self {
            before,
            begun,
            accepted,
            refused,
            moves,
        })
    }

    /// How many were accepted.
    pub(super) fn number(&self) -> usize {
        self.accepted.len()
    }

    /// The offers that came when this number had been accepted, as many as are asked for; `None` where they were not of this
    /// filling.
    #[expect(clippy::cast_precision_loss, reason = "counts of offers")]
    pub(super) fn stretch(&self, from: usize, many: usize) -> Option<Stretch> {
        let from = from.checked_sub(self.before)?;
        let part = self.accepted.get(from..from + many)?;
        let start = from
            .checked_sub(1)
            .map_or(self.begun, |last| self.accepted[last].0);
        let (end, _) = part.last()?;
        let mut latencies: Vec<f64> = part.iter().map(|(_, took)| *took).collect();
        latencies.sort_by(f64::total_cmp);
        Some(Stretch {
            per_second: many as f64 / end.duration_since(start).as_secs_f64(),
            latencies: [50, 99, 100].map(|percent| latency_at(&latencies, percent)),
        })
    }
}

type Wishes = Mutex<(std::vec::IntoIter<super::mix::Wish>, usize)>;

/// Sends offers until as many are accepted as are wanted. Returns when each was accepted with its latency, and how many were
/// refused.
async fn fill(
    client: &Client,
    format: Format,
    wishes: &Wishes,
) -> Result<(Vec<(Instant, f64)>, usize), Failure> {
    let lock = || wishes.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut accepted, mut refused) = (Vec::new(), 0);
    // One that is refused gives its place to another.
    let next = || {
        let (wishes, left) = &mut *lock();
        *left = left.checked_sub(1)?;
        wishes.next()
    };
    while let Some(wish) = next() {
        let asked: Asked = client.asks(reqwest::Method::POST, "/agreements", wish.body(format));
        let answer = asked.send().await?;
        match answer.status.as_u16() {
            201 => accepted.push((Instant::now(), milliseconds(answer.took))),
            409 => {
                refused += 1;
                lock().1 += 1;
            }
            _ => return Err(format!("{}: {}", answer.status, answer.text).into()),
        }
    }
    Ok((accepted, refused))
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
