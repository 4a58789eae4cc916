//! Promises drawn at random.

use scheduler::Seconds;

use super::{BatchJob, Promise};
use crate::whole_seconds;
use advisor::random::Random;

/// The shortest run of a job that can give a promise its size and length.
const RUN_SECONDS_MIN: Seconds = 60;
/// Bounds of the length of a promise of minutes.
const MINUTES: (f64, f64) = (120.0, 600.0);
/// A promise has at most this part of the nodes, and all that are promised at one time twice as much.
const LARGEST_PART: u32 = 4;
/// Draws in a row that find no place before no more are made.
const DRAWS_MAX: usize = 10_000;

/// How long promised slots are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandScale {
    /// As long as jobs of the log ran.
    Jobs,
    /// 2 to 10 minutes.
    Minutes,
}

impl DemandScale {
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jobs => "as jobs",
            Self::Minutes => "2–10 min",
        }
    }
}

/// A promised slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Percent of the cluster's node time.
    pub share: u32,
    /// Length of the slots.
    pub scale: DemandScale,
}

impl Demand {
    /// Promises that begin in `span`, by their begin. Begins are uniform, which is a Poisson process of a given amount of work.
    /// Nodes, and with [`DemandScale::Jobs`] lengths too, are those of a job drawn from `jobs`, of a minute or more on a quarter of the
    /// nodes at most. A promise that would bring more than half of the nodes into promises at one time is drawn again. Takes time
    /// proportional to the seconds of the span and of all promises.
    pub(crate) fn draw(
        self,
        seed: u64,
        nodes: u32,
        jobs: &[BatchJob],
        (from, to): (Seconds, Seconds),
    ) -> Vec<Promise> {
        let largest = nodes / LARGEST_PART;
        let models = jobs
            .iter()
            .filter(|job| job.run >= RUN_SECONDS_MIN && job.nodes <= largest);
        let models: Vec<&BatchJob> = models.collect();
        let longest = models.iter().map(|job| job.run).max().unwrap_or(0);
        let seconds = usize::try_from(to - from + longest.max(whole_seconds(MINUTES.1)) + 1).unwrap_or(0);
        let mut promised: Vec<u32> = vec![0; seconds];
        let wanted = (to - from) * i64::from(nodes) * i64::from(self.share) / 100;
        let (mut drawn, mut misses) = (0, 0);
        let mut promises = Vec::new();
        let mut random = Random::new(seed, &[u64::from(self.share), self.scale as u64]);
        while drawn < wanted && !models.is_empty() && misses < DRAWS_MAX {
            let model = models[random.below(models.len())];
            let start = from + whole_seconds(random.uniform(0.0, (to - from) as f64));
            let duration = match self.scale {
                DemandScale::Jobs => model.run,
                DemandScale::Minutes => whole_seconds(random.uniform(MINUTES.0, MINUTES.1)),
            };
            let at = usize::try_from(start - from).unwrap_or(0);
            let taken = &mut promised[at..at + usize::try_from(duration).unwrap_or(0)];
            if taken.iter().any(|taken| taken + model.nodes > 2 * largest) {
                misses += 1;
                continue;
            }
            for taken in taken {
                *taken += model.nodes;
            }
            misses = 0;
            drawn += duration * i64::from(model.nodes);
            let nodes = model.nodes;
            promises.push(Promise {
                start,
                duration,
                nodes,
            });
        }
        promises.sort_by_key(|promise| promise.start);
        promises
    }
}
