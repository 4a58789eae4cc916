//! The protocol of paper 003, section VII: servers of three rates, and jobs that book up to two weeks ahead.

use std::time::Instant;

use scheduler::{Interval, Rate, Seconds, Time};

use crate::heterogeneous::{
    FirstFitAware, FirstFitUnaware, Job, Operations, Search, Servers, SingleTree, TwoDimensional,
};
use crate::whole_seconds;
use advisor::random::Random;

/// Rates of the three groups in millionths, from homogeneous to most heterogeneous; their sum is always the same.
pub const LEVELS: [[u32; 3]; 5] = [
    [600_000, 600_000, 600_000],
    [550_000, 600_000, 650_000],
    [450_000, 600_000, 750_000],
    [350_000, 600_000, 850_000],
    [200_000, 600_000, 1_000_000],
];

/// Servers of a group in the paper.
pub const GROUP: u32 = 40;

const HOUR: f64 = 3_600.0;
const DAY: f64 = 24.0 * HOUR;
/// Jobs are small in this part of all cases, and then up to four hours; the others up to thirty-six.
const SMALL: f64 = 0.8;
const SMALL_MAX: f64 = 4.0 * HOUR;
const SIZE_MAX: f64 = 36.0 * HOUR;
/// Mean of these sizes.
const SIZE_MEAN: f64 = 5.6 * HOUR;
/// Ready times are from a minute to two weeks after the submission.
const NOTICE_MIN: f64 = 60.0;
const NOTICE_MAX: f64 = 14.0 * DAY;
/// Laxity: up to twenty hours.
const LAXITY_MAX: f64 = 20.0 * HOUR;
/// Rate that the control's deadlines leave time for.
const CONTROL_RATE: f64 = 0.6;
/// Submissions between two times that the past is forgotten.
const FORGET_STRIDE: usize = 64;

/// The stream of draws of these experiments, and that of the nodes of jobs.
const STREAM: u64 = 0x5E2F;
const STREAM_NODES: u64 = 0x5E30;

/// A way to find an idle period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScenarioAlgorithm {
    /// The paper's heterogeneity-unaware first fit.
    Unaware,
    /// The paper's heterogeneity-aware first fit.
    Aware,
    /// The paper's two-dimensional trees.
    AwarePlus,
    /// One tree a class.
    OneTree,
}

impl ScenarioAlgorithm {
    pub(crate) const ALL: [Self; 4] = [Self::Unaware, Self::Aware, Self::AwarePlus, Self::OneTree];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unaware => "FF-HU",
            Self::Aware => "FF-HA",
            Self::AwarePlus => "FF-HA+",
            Self::OneTree => "one tree a class",
        }
    }

    /// Plays run number `batch` of a scenario.
    pub(crate) fn play(self, scenario: &Scenario, seed: u64, batch: u64) -> ScenarioResult {
        match self {
            Self::Unaware => scenario.play(FirstFitUnaware::default(), seed, batch),
            Self::Aware => scenario.play(FirstFitAware::default(), seed, batch),
            Self::AwarePlus => scenario.play(TwoDimensional::default(), seed, batch),
            Self::OneTree => scenario.play(SingleTree::default(), seed, batch),
        }
    }
}

/// The time up to the deadline of a job, beyond a laxity U of up to twenty hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadlines {
    /// r + l + U: in time on a server of rate 1.
    Size,
    /// r + l/0.6 + U: in time on a server of rate 0.6, a control.
    SlowSize,
    /// r + U, as the paper prints it: for most of the work in time on no server.
    Printed,
}

impl Deadlines {
    /// The time from the ready time of a job of this size, without the laxity.
    fn least(self, size: f64) -> f64 {
        match self {
            Self::Size => size,
            Self::SlowSize => size / CONTROL_RATE,
            Self::Printed => 0.0,
        }
    }

    /// As a report has it.
    pub(super) fn formula(self) -> &'static str {
        match self {
            Self::Size => "r + l + U",
            Self::SlowSize => "r + l/0.6 + U",
            Self::Printed => "r + U",
        }
    }
}

/// The offered load and its servers, without the random draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Index into [`LEVELS`].
    pub level: usize,
    /// Servers in each of the three groups.
    pub group: u32,
    /// Offered work in percent of the servers' capacity (ρ).
    pub load: u32,
    /// The time that deadlines leave.
    pub deadlines: Deadlines,
    /// Jobs submitted.
    pub jobs: usize,
}

/// The result of a run, after the plan has filled up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScenarioResult {
    /// Work refused, in percent.
    pub loss: f64,
    /// Time that servers were busy, in percent.
    pub utilisation: f64,
    /// Mean hours from ready time to start.
    pub waiting: f64,
    /// Mean time from ready time to completion, in multiples of the size.
    pub stretch: f64,
    /// Mean number of idle periods.
    pub periods: f64,
    /// Entries of lists or trees looked at to decide about a job.
    pub searched: f64,
    /// Entries looked at or moved to keep the lists or trees in step.
    pub updated: f64,
    /// Nanoseconds of a decision: not the same twice.
    pub nanoseconds: f64,
}

/// The plan of what jobs are placed on.
pub(super) trait JobPlan {
    /// Drops what lies before.
    fn forget(&mut self, before: Time);
    /// Finds a place for a job on so many nodes, and takes it.
    fn allocate(&mut self, job: &Job, nodes: u32) -> Option<Interval>;
    /// Idle periods, where they are kept.
    fn periods(&self) -> usize;
    /// The work done, where it is counted.
    fn operations(&self) -> Operations;
}

/// Jobs take one server whole.
impl<S: Search> JobPlan for Servers<S> {
    fn forget(&mut self, before: Time) {
        Servers::forget(self, before);
    }

    fn allocate(&mut self, job: &Job, _: u32) -> Option<Interval> {
        Servers::allocate(self, job).map(|placement| placement.interval)
    }

    fn periods(&self) -> usize {
        self.idle_count()
    }

    fn operations(&self) -> Operations {
        Servers::operations(self)
    }
}

impl Scenario {
    pub(super) fn rates(&self) -> Vec<Rate> {
        let groups = LEVELS[self.level].into_iter();
        groups
            .flat_map(|rate| std::iter::repeat_n(rate, self.group as usize))
            .filter_map(Rate::from_millionths)
            .collect()
    }

    /// The offered load ρ.
    pub(crate) fn rho(&self) -> f64 {
        f64::from(self.load) / 100.0
    }

    /// Mean seconds between submissions of jobs on one node. All levels have the same total rate.
    fn gap(&self) -> f64 {
        let total = 0.6 * 3.0 * f64::from(self.group);
        SIZE_MEAN / (self.rho() * total)
    }

    /// The next job and its submission, after `gap` seconds in the mean.
    fn job(&self, gap: f64, random: &mut Random, now: &mut f64) -> (Time, Job) {
        *now += random.exponential(gap);
        let ready = *now + random.uniform(NOTICE_MIN, NOTICE_MAX);
        let size = if random.chance(SMALL) {
            random.uniform(0.0, SMALL_MAX)
        } else {
            random.uniform(SMALL_MAX, SIZE_MAX)
        };
        let deadline = ready + self.deadlines.least(size) + random.uniform(0.0, LAXITY_MAX);
        let job = Job {
            ready: Time(whole_seconds(ready)),
            size: whole_seconds(size).max(1),
            deadline: Time(whole_seconds(deadline)),
        };
        (Time(whole_seconds(*now)), job)
    }

    /// Plays run number `batch` with the servers that `search` looks after. Searches and levels see the same jobs.
    pub fn play(&self, search: impl Search, seed: u64, batch: u64) -> ScenarioResult {
        let servers = Servers::new(search, &self.rates(), Interval::new(Time(0), Time::MAX));
        self.play_on(servers, &[1], seed, batch)
    }

    /// Plays run number `batch` on a plan, with jobs on one of these numbers of nodes.
    pub(super) fn play_on(
        &self,
        mut plan: impl JobPlan,
        sizes: &[u32],
        seed: u64,
        batch: u64,
    ) -> ScenarioResult {
        let mut random = Random::new(seed, &[STREAM, batch, self.load.into()]);
        let mut random_nodes = Random::new(seed, &[STREAM_NODES, batch, self.load.into()]);
        let gap = self.gap() * f64::from(sizes.iter().sum::<u32>()) / sizes.len() as f64;
        // The plan fills up in two weeks; of a shorter run half is counted.
        let from = Time(whole_seconds(NOTICE_MAX.min(gap * self.jobs as f64 / 2.0)));
        let mut placements: Vec<(Interval, u32)> = Vec::new();
        // Sums of whole numbers, far below 2⁵³, but for the stretch.
        let mut sums = ScenarioResult::default();
        let (mut looks, mut decisions, mut accepted, mut offered) = (0.0, 0.0, 0.0, 0.0);
        let mut now = 0.0;
        for number in 0..self.jobs {
            let (submit, job) = self.job(gap, &mut random, &mut now);
            let nodes = sizes[random_nodes.below(sizes.len())];
            let work = job.size as f64 * f64::from(nodes);
            let is_counted = submit >= from;
            if number % FORGET_STRIDE == 0 {
                plan.forget(submit);
                if is_counted {
                    sums.periods += plan.periods() as f64;
                    looks += 1.0;
                }
            }
            let before = plan.operations();
            let begin = Instant::now();
            let slot = plan.allocate(&job, nodes);
            let nanoseconds = begin.elapsed().as_nanos();
            placements.extend(slot.map(|slot| (slot, nodes)));
            if !is_counted {
                continue;
            }
            let after = plan.operations();
            sums.nanoseconds += nanoseconds as f64;
            sums.searched += (after.searched - before.searched) as f64;
            sums.updated += (after.updated - before.updated) as f64;
            decisions += 1.0;
            offered += work;
            match slot {
                Some(slot) => {
                    sums.waiting += (slot.start - job.ready) as f64;
                    sums.stretch += (slot.end - job.ready) as f64 / job.size as f64;
                    accepted += 1.0;
                }
                None => sums.loss += work,
            }
        }
        let (end, all) = (Time(whole_seconds(now)), f64::from(3 * self.group));
        let within = |(slot, nodes): &(Interval, u32)| {
            let slot = Interval::new(slot.start.max(from), slot.end.min(end));
            slot.duration() * Seconds::from(*nodes)
        };
        let busy: Seconds = placements.iter().map(within).sum();
        let mean = |sum: f64, count: f64| sum / count.max(1.0);
        ScenarioResult {
            loss: mean(100.0 * sums.loss, offered),
            utilisation: 100.0 * busy as f64 / ((end - from).max(1) as f64 * all),
            waiting: mean(sums.waiting, accepted) / HOUR,
            stretch: mean(sums.stretch, accepted),
            periods: mean(sums.periods, looks),
            searched: mean(sums.searched, decisions),
            updated: mean(sums.updated, decisions),
            nanoseconds: mean(sums.nanoseconds, decisions),
        }
    }
}
