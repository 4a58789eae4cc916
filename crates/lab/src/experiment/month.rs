//! A month of a log, which a cluster runs beside promises, and the cost of these.

use scheduler::Seconds;

use crate::beside::{
    BatchJob, Cluster, Demand, NodeChoice, Promise, PromiseOutcome, QueueOutcome, run_jobs_beside_promises,
};
use crate::report::count_reported_cases;
use advisor::statistics::Summary;
use advisor::workload::Workload;

/// A month. The first month of a log begins at its time 0.
const MONTH_SECONDS: Seconds = 30 * 86_400;
/// Jobs and promises of so long before the month fill the cluster.
const WARM_UP_SECONDS: Seconds = 7 * 86_400;
const SECONDS_PER_HOUR: f64 = 3_600.0;
/// The least length that a job is taken to have where its slowdown is counted, in seconds (Feitelson et al., 1997).
const SLOWDOWN_SECONDS_MIN: Seconds = 10;

/// A month of a log, which a cluster runs beside promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Month {
    /// Its number in the log, from 0.
    pub index: i64,
    pub(super) nodes: u32,
    pub(super) jobs: Vec<BatchJob>,
    /// When the warm-up, the month and its end are.
    pub(super) times: [Seconds; 3],
}

impl Month {
    /// A month of a log by its number.
    fn of(workload: &Workload, index: i64) -> Self {
        let start = index * MONTH_SECONDS;
        let times = [start - WARM_UP_SECONDS, start, start + MONTH_SECONDS];
        let is_within = |job: &BatchJob| times[0] <= job.submit && job.submit < times[2];
        let jobs = workload.jobs.iter().map(BatchJob::of);
        Self {
            index,
            nodes: workload.capacity,
            jobs: jobs.filter(is_within).collect(),
            times,
        }
    }

    /// The month with the median and the one with the most node-seconds of submitted jobs, of those months that the log holds to
    /// their end, where there are any. Of two in the middle the median is the greater. O(jobs).
    pub fn median_and_busiest(workload: &Workload) -> Vec<(&'static str, Self)> {
        let jobs = &workload.jobs;
        let months = jobs.last().map_or(0, |job| job.submit / MONTH_SECONDS).max(1);
        let mut submitted = vec![0; usize::try_from(months).unwrap_or(0)];
        for job in jobs {
            let month = usize::try_from(job.submit / MONTH_SECONDS).unwrap_or(usize::MAX);
            if let Some(submitted) = submitted.get_mut(month) {
                *submitted += job.run * i64::from(job.nodes);
            }
        }
        let mut by_work: Vec<(i64, i64)> = submitted.into_iter().zip(0..).collect();
        by_work.sort_unstable();
        let scenario_at = |at: usize| Self::of(workload, by_work[at].1);
        let (median, busiest) = (scenario_at(by_work.len() / 2), scenario_at(by_work.len() - 1));
        vec![("median", median), ("busiest", busiest)]
    }

    /// Node-seconds of the jobs that are submitted in the month, in percent of the month's.
    pub(super) fn load_percent(&self) -> f64 {
        let works = self
            .measured_jobs()
            .map(|(_, job)| job.run * i64::from(job.nodes));
        let work: i64 = works.sum();
        100.0 * work as f64 / (f64::from(self.nodes) * MONTH_SECONDS as f64)
    }

    pub(super) fn measured_jobs(&self) -> impl Iterator<Item = (usize, &BatchJob)> {
        let jobs = self.jobs.iter().enumerate();
        jobs.filter(|(_, job)| job.submit >= self.times[1])
    }

    /// Promises from a seed, from the warm-up to the end of the month.
    pub fn promises(&self, seed: u64, demand: Demand) -> Vec<Promise> {
        demand.draw(seed, self.nodes, &self.jobs, (self.times[0], self.times[2]))
    }

    /// Runs the jobs beside these promises.
    pub fn run(&self, lead: Seconds, choice: NodeChoice, promises: &[Promise]) -> MonthCost {
        let cluster = Cluster {
            nodes: self.nodes,
            lead,
            choice,
            measured: (self.times[1], self.times[2]),
        };
        let outcome = run_jobs_beside_promises(&cluster, &self.jobs, promises);
        MonthCost::of(self, promises, &outcome)
    }
}

/// The cost of a month's promises. Hours are node-hours of the month, except for the mean wait.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MonthCost {
    /// Hours in which nodes idled while a job waited, and in which nodes were dedicated in any case.
    pub idle_hours: f64,
    /// Those of them in which the node was reserved for a later slot, or dedicated.
    pub reserved_idle_hours: f64,
    /// Of batch jobs.
    pub batch_hours: f64,
    /// Promised and held.
    pub held_hours: f64,
    /// Promises with too few nodes when they were to be reserved, in percent of the month's.
    pub late_percent: f64,
    /// Promises that could not be held, in percent of the month's.
    pub broken_percent: f64,
    /// Mean wait of the jobs that are submitted in the month, in hours.
    pub wait_hours: f64,
    /// Mean of (wait + run) / run, with at least 10 seconds for the run and at least 1, of the same jobs.
    pub slowdown: f64,
    /// Jobs of the month that are larger than the part of the cluster that is not dedicated, in percent.
    pub too_large_percent: f64,
}

impl MonthCost {
    fn of(month: &Month, promises: &[Promise], outcome: &QueueOutcome) -> Self {
        let hours = |seconds: i64| seconds as f64 / SECONDS_PER_HOUR;
        let (mut waits, mut slowdowns, mut too_large) = (Vec::new(), Vec::new(), 0);
        for (index, job) in month.measured_jobs() {
            let Some(placed) = &outcome.jobs[index] else {
                too_large += 1;
                continue;
            };
            let wait = placed.start - job.submit;
            waits.push(hours(wait));
            let slowdown = (wait + job.run) as f64 / job.run.max(SLOWDOWN_SECONDS_MIN) as f64;
            slowdowns.push(slowdown.max(1.0));
        }
        let is_of_month = |(promise, _): &(&Promise, &PromiseOutcome)| promise.start >= month.times[1];
        let of_month = promises.iter().zip(&outcome.promises).filter(is_of_month);
        let part = |(count, each): (usize, usize)| 100.0 * count as f64 / each.max(1) as f64;
        let late = count_reported_cases(of_month.clone().map(|(_, kept)| kept.late));
        let broken = count_reported_cases(of_month.map(|(_, kept)| kept.nodes.is_empty()));
        Self {
            idle_hours: hours(outcome.idle_waiting + outcome.idle_dedicated),
            reserved_idle_hours: hours(outcome.idle_reserved + outcome.idle_dedicated),
            batch_hours: hours(outcome.batch),
            held_hours: hours(outcome.held),
            late_percent: part(late),
            broken_percent: part(broken),
            wait_hours: Summary::of(&waits).mean,
            slowdown: Summary::of(&slowdowns).mean,
            too_large_percent: part((too_large, too_large + waits.len())),
        }
    }

    /// Node-hours idled for each that was promised and held: more than without promises.
    pub(super) fn idled(&self, without: &Self) -> f64 {
        (self.idle_hours - without.idle_hours) / self.held_hours.max(1.0)
    }

    /// Node-hours that reserved nodes idled while a job waited for each that was promised and held.
    pub fn reserved_idle(&self) -> f64 {
        self.reserved_idle_hours / self.held_hours.max(1.0)
    }

    /// Node-hours by which batch jobs had less in the month for each that was promised and held.
    pub(super) fn displaced(&self, without: &Self) -> f64 {
        (without.batch_hours - self.batch_hours) / self.held_hours.max(1.0)
    }
}
