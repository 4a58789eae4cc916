//! The paper's experiment on heterogeneous servers: three groups, jobs that book up to two weeks ahead, work lost.

use scheduler::heterogeneous::{Job, Operations, Search, Servers};
use scheduler::{Interval, Rate, Time};

/// The rates of the three groups in millionths, from homogeneous to most heterogeneous; their sum is always the same.
pub(crate) const LEVELS: [[u32; 3]; 5] = [
    [600_000, 600_000, 600_000],
    [550_000, 600_000, 650_000],
    [450_000, 600_000, 750_000],
    [350_000, 600_000, 850_000],
    [200_000, 600_000, 1_000_000],
];
const HOUR: f64 = 3_600.0;
const MEAN_SIZE: f64 = 5.6 * HOUR;
/// One job of so many is submitted before counting begins, so that the plan is full.
const WARM_UP: usize = 10;
/// Submissions between two times that the past is forgotten.
const FORGET_STRIDE: usize = 64;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Index into [`LEVELS`].
    pub(crate) level: usize,
    /// Servers in each of the three groups.
    pub(crate) group: usize,
    /// Offered work over what the servers can do (ρ).
    pub(crate) load: f64,
    /// Jobs submitted.
    pub(crate) jobs: usize,
    /// Whether deadlines leave time for a server of rate 0.6 (r + l/0.6 + U) or only of rate 1 (r + l + U).
    pub(crate) control: bool,
    /// Of the random draws.
    pub(crate) seed: u64,
}

/// What came of it, counted after the warm-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Share of the work that was refused.
    pub(crate) loss: f64,
    /// Mean hours from ready time to start of the accepted.
    pub(crate) waiting: f64,
    /// Mean idle periods at a decision.
    pub(crate) periods: f64,
    /// Mean entries looked at to find a period.
    pub(crate) searched: f64,
    /// Mean entries looked at or moved to keep the lists or trees in step.
    pub(crate) updated: f64,
    /// Mean nanoseconds of a decision, by the clock passed in.
    pub(crate) nanoseconds: f64,
}

impl Outcome {
    /// The mean of several.
    #[expect(clippy::cast_precision_loss, reason = "a few runs")]
    pub(crate) fn mean(outcomes: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
        Self {
            loss: mean(|o| o.loss),
            waiting: mean(|o| o.waiting),
            periods: mean(|o| o.periods),
            searched: mean(|o| o.searched),
            updated: mean(|o| o.updated),
            nanoseconds: mean(|o| o.nanoseconds),
        }
    }
}

/// A small generator of well-mixed numbers (splitmix64).
struct Mix(u64);

impl Mix {
    /// Uniform in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Run {
    fn rates(&self) -> Vec<Rate> {
        let groups = LEVELS[self.level].into_iter();
        groups
            .flat_map(|rate| std::iter::repeat_n(rate, self.group))
            .filter_map(Rate::from_millionths)
            .collect()
    }

    /// The jobs with their submission, in order of it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "seconds of a few years"
    )]
    fn submissions(&self) -> Vec<(Time, Job)> {
        let mut mix = Mix(self.seed);
        let total: f64 = self
            .rates()
            .iter()
            .map(|rate| f64::from(rate.millionths()) / 1e6)
            .sum();
        let gap = MEAN_SIZE / (self.load * total);
        let mut now = 0.0;
        let draw = |_| {
            now -= (1.0 - mix.unit()).ln() * gap;
            let submit = now as i64;
            let ready = submit + 60 + (mix.unit() * (14.0 * 24.0 * HOUR - 60.0)) as i64;
            let small = mix.unit() < 0.8;
            let hours = if small {
                4.0 * mix.unit()
            } else {
                4.0 + 32.0 * mix.unit()
            };
            let size = ((hours * HOUR) as i64).max(1);
            let least = if self.control {
                (size as f64 / 0.6) as i64
            } else {
                size
            };
            let job = Job {
                ready: Time(ready),
                size,
                deadline: Time(ready + least + (mix.unit() * 20.0 * HOUR) as i64),
            };
            (Time(submit), job)
        };
        (0..self.jobs).map(draw).collect()
    }

    /// Submits the jobs to servers that `search` looks after.
    #[expect(clippy::cast_precision_loss, reason = "means are given to a few digits")]
    pub(crate) fn play(&self, search: impl Search, clock: &dyn Fn() -> u64) -> Outcome {
        let submissions = self.submissions();
        let planned = Interval::new(Time(0), Time::MAX);
        let mut servers = Servers::new(search, &self.rates(), planned);
        let warm = self.jobs / WARM_UP;
        let (mut lost, mut offered, mut accepted, mut waited, mut periods) = (0, 0, 0, 0, 0);
        let mut before = (Operations::default(), 0);
        let mut forgetting = 0;
        for (number, (submit, job)) in submissions.iter().enumerate() {
            if number == warm {
                before = (servers.operations(), clock());
                forgetting = 0;
            }
            if number % FORGET_STRIDE == 0 {
                let begin = clock();
                servers.forget(*submit);
                periods += servers.idle_count() * usize::from(number >= warm);
                forgetting += clock() - begin;
            }
            let placement = servers.allocate(job);
            if number < warm {
                continue;
            }
            offered += job.size;
            match placement {
                Some(placement) => {
                    accepted += 1;
                    waited += placement.interval.start - job.ready;
                }
                None => lost += job.size,
            }
        }
        let decisions = (self.jobs - warm) as f64;
        let after = servers.operations();
        Outcome {
            loss: lost as f64 / offered as f64,
            waiting: waited as f64 / f64::from(accepted.max(1)) / HOUR,
            periods: periods as f64 / (decisions / FORGET_STRIDE as f64),
            searched: (after.searched - before.0.searched) as f64 / decisions,
            updated: (after.updated - before.0.updated) as f64 / decisions,
            nanoseconds: (clock() - before.1 - forgetting) as f64 / decisions,
        }
    }
}
