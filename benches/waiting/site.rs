//! A service with its parties, what it is asked one request after the other, and what that costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use advisor::random::Random;
use domain::clock::Clock as Calendar;
use scheduler::{Interval, Time};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::client::{Answer, Asked, Client};
use super::mix::{Body, DAY, HOUR, Mix, Wish};
use super::service::{Service, Work};
use super::{Failure, Options};

/// Parties that have agreements.
pub(super) const PARTIES: usize = 8;
/// The time over which work is looked at to find out whether the service is at rest, and the milliseconds of it that count as
/// rest: of the clock a tick has ten.
const LOOK: Duration = Duration::from_millis(100);
const REST: f64 = 10.0;
/// How long the service is waited for at most.
const REST_MAX: Duration = Duration::from_mins(5);
/// The pause in which the work of a service that is asked nothing is measured.
const PAUSE: Duration = Duration::from_secs(2);
/// The time from one offer of a bystander to the next.
const BYSTANDER: Duration = Duration::from_millis(50);

/// A service that is filled, with its clients.
pub(super) struct Site {
    pub(super) service: Service,
    pub(super) parties: Vec<Client>,
    /// The id of the key of the first party.
    pub(super) first_key: String,
    pub(super) operator: Client,
    pub(super) operator_page: Client,
    pub(super) party_page: Client,
    bystander: Client,
    pub(super) random: Random,
    pub(super) mix: Mix,
    /// The start of the reservations in front of everything else.
    pub(super) begin: Time,
    /// Milliseconds of work in a second in which nothing is asked.
    idle: Work,
    /// Milliseconds of work that an offer of a bystander takes.
    pub(super) offer: Work,
}

/// What some requests cost, sent one by one.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) done: usize,
    /// Answers with another status than was expected, with one of them.
    pub(super) unexpected: (usize, String),
    /// Milliseconds for each, with what followed from it.
    pub(super) work: Work,
    /// Milliseconds, in ascending order.
    pub(super) latencies: Vec<f64>,
    /// Agreements that moved, where the service counts that.
    pub(super) moves: Option<f64>,
    /// The longest wait of a bystander in milliseconds, where one was beside.
    pub(super) bystander: Option<f64>,
    /// Whether the service was still at work when it was waited for no longer.
    pub(super) is_restless: bool,
}

impl Site {
    /// Starts a service, makes keys and the reservations in front of all others. Returns it with the addresses of these.
    pub(super) async fn open(options: &Options, fronts: usize) -> Result<(Self, Vec<Asked>), Failure> {
        let executable = options.executable.canonicalize()?;
        let (mix, database) = (options.mix, options.database.as_deref());
        let folder = options.folder.canonicalize()?;
        let service = Service::start(&executable, &folder, database, mix.nodes()).await?;
        let (http, base) = (service.http.clone(), service.base());
        let (mut parties, mut keys) = (Vec::new(), Vec::new());
        for number in 0..PARTIES {
            let key = service.make_key(&format!("party-{number}")).await?;
            parties.push(Client::with_key(&http, &base, &key.0));
            keys.push(key);
        }
        let (first_text, first_key) = keys.swap_remove(0);
        let bystander = service.make_key("bystander").await?.0;
        let operator = service.operator_key()?;
        let site = Self {
            parties,
            first_key,
            operator: Client::with_key(&http, &base, &operator),
            operator_page: Client::signed_in(&http, &base, &operator).await?,
            party_page: Client::signed_in(&http, &base, &first_text).await?,
            bystander: Client::with_key(&http, &base, &bystander),
            random: Random::new(options.seed, &[]),
            mix,
            begin: Calendar::system().now() + mix.ahead(),
            idle: Work::default(),
            offer: Work::default(),
            service,
        };
        let mut ends = Vec::new();
        for number in 0..fronts {
            // As many as there are sizes at which something is measured.
            let number = i64::try_from(number)?;
            let slot = Interval::of(site.begin + number * mix.front(), mix.front());
            let asked = site.parties[0].posts("/agreements", Wish::exactly(mix.nodes(), slot).json());
            let made = asked.value().await?;
            let id = made["id"].as_str().unwrap_or_default();
            ends.push(site.parties[0].posts(format!("/agreements/{id}/terminate"), serde_json::json!({})));
        }
        Ok((site, ends))
    }

    /// The next offer of the mix.
    pub(super) fn wish(&mut self) -> Wish {
        self.mix.next(&mut self.random, self.begin)
    }

    /// Waits until the service does no more than in a pause. Returns whether it came to rest.
    async fn settle(&mut self) -> Result<bool, Failure> {
        let (begun, mut at_rest) = (Instant::now(), 0);
        while at_rest < 2 {
            let (before, looked) = (self.service.clock().await?, Instant::now());
            sleep(LOOK).await;
            let work = self.service.work_since(&before).await?;
            let idle = self.idle.total() * looked.elapsed().as_secs_f64();
            at_rest = if work.total() - idle <= REST {
                at_rest + 1
            } else {
                0
            };
            if begun.elapsed() > REST_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures the work of the service while nothing is asked.
    pub(super) async fn measure_pause(&mut self) -> Result<Work, Failure> {
        self.settle().await?;
        let (before, begun) = (self.service.clock().await?, Instant::now());
        sleep(PAUSE).await;
        let work = self.service.work_since(&before).await?;
        self.idle = work.over(begun.elapsed().as_secs_f64());
        Ok(self.idle)
    }

    /// Sends requests one after the other, for this long at most. Returns what they and what followed from them cost, and the
    /// answers.
    pub(super) async fn ask(
        &mut self,
        requests: &[Asked],
        expected: u16,
        at_most: Duration,
        watched: bool,
    ) -> Result<(Seen, Vec<Answer>), Failure> {
        self.settle().await?;
        let moves = self.moves().await?;
        let (mut seen, mut answers) = (Seen::default(), Vec::new());
        let stop = Arc::new(AtomicBool::new(false));
        let beside = watched.then(|| self.stand_by(Arc::clone(&stop)));
        let (before, begun) = (self.service.clock().await?, Instant::now());
        for request in requests {
            let answer = request.send().await?;
            seen.latencies.push(answer.took.as_secs_f64() * 1_000.0);
            if answer.status.as_u16() != expected {
                let told: String = answer.text.chars().take(300).collect();
                seen.unexpected = (
                    seen.unexpected.0 + 1,
                    format!("{}: {} {told}", request.path, answer.status),
                );
            }
            answers.push(answer);
            if begun.elapsed() > at_most {
                break;
            }
        }
        seen.is_restless = !self.settle().await?;
        let mut work = self.service.work_since(&before).await?;
        work = work.minus(self.idle, begun.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        if let Some(beside) = beside {
            let (worst, many) = beside.await??;
            seen.bystander = Some(worst.as_secs_f64() * 1_000.0);
            work = work.minus(self.offer, many);
        }
        seen.done = answers.len();
        seen.work = work.over(f64::from(u32::try_from(seen.done.max(1))?));
        seen.latencies.sort_by(f64::total_cmp);
        seen.moves = moves
            .zip(self.moves().await?)
            .map(|(before, after)| after - before);
        Ok((seen, answers))
    }

    /// Sends an offer for a far day every 50 milliseconds until it is stopped. Returns the longest wait and the number of them.
    fn stand_by(&self, stop: Arc<AtomicBool>) -> JoinHandle<Result<(Duration, f64), Failure>> {
        let (client, begin) = (self.bystander.clone(), self.begin);
        tokio::spawn(async move {
            let (mut worst, mut many) = (Duration::ZERO, 0_u32);
            let mut ticks = interval(BYSTANDER);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !stop.load(Ordering::Relaxed) {
                ticks.tick().await;
                let day = begin + (70 + i64::from(many % 250)) * DAY;
                let wish = Wish {
                    nodes: 1,
                    duration: HOUR,
                    window: Interval::of(day, DAY),
                };
                let answer = client
                    .asks(reqwest::Method::POST, "/agreements", Body::Json(wish.json()))
                    .send()
                    .await?;
                if answer.status.as_u16() != 201 {
                    return Err(format!("a bystander: {}: {}", answer.status, answer.text).into());
                }
                worst = worst.max(answer.took);
                many += 1;
            }
            Ok((worst, f64::from(many)))
        })
    }

    /// The moves of agreements so far, by the metrics; `None` where the service does not count them.
    pub(super) async fn moves(&self) -> Result<Option<f64>, Failure> {
        let metrics = self.operator.looks("/metrics").send().await?;
        let lines = metrics.text.lines();
        let samples =
            lines.filter_map(|line| line.strip_prefix(MOVES)?.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(samples.fold(None, |sum, moves| Some(sum.unwrap_or(0.0) + moves)))
    }
}

/// The metric of agreements that moved.
const MOVES: &str = "bespeak_moves_total";

impl Work {
    pub(super) fn total(self) -> f64 {
        self.service + self.database
    }

    fn over(self, parts: f64) -> Self {
        Self {
            service: self.service / parts,
            database: self.database / parts,
        }
    }

    fn minus(self, each: Self, times: f64) -> Self {
        Self {
            service: (self.service - each.service * times).max(0.0),
            database: (self.database - each.database * times).max(0.0),
        }
    }
}

impl Seen {
    /// The latency that this percentage of the answers do not exceed.
    pub(super) fn latency(&self, percent: usize) -> f64 {
        latency_at(&self.latencies, percent)
    }
}

/// The value at a percentage of values in ascending order; no number where there are none.
pub(super) fn latency_at(ascending: &[f64], percent: usize) -> f64 {
    let place = (ascending.len() * percent / 100).min(ascending.len().saturating_sub(1));
    ascending.get(place).copied().unwrap_or(f64::NAN)
}
