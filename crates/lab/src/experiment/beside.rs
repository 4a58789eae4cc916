//! Beyond the papers: the cost of promised slots beside a batch queue, by how early nodes are reserved and how much is promised.

use scheduler::Seconds;

use super::setup::Setup;
use crate::beside::{
    BatchJob, Cluster, Demand, NodeChoice, Promise, PromiseOutcome, QueueOutcome, Scale,
    run_jobs_beside_promises,
};
use crate::figure::{Figure, Point, Series};
use crate::report::{
    Finding, Report, count_holding, number_cells as numbers, report_table, summary_of_values,
};
use advisor::statistics::Summary;
use advisor::workload::Workload;

/// A month. The first month of a log begins at its time 0.
const MONTH_SECONDS: Seconds = 30 * 86_400;
/// Jobs and promises of so long before the month fill the cluster.
const WARM_UP_SECONDS: Seconds = 7 * 86_400;
/// Sets of promises.
const SEEDS: usize = 5;
/// Shares of the node time that are promised, in percent.
const SHARES: [u32; 4] = [5, 10, 20, 30];
/// Leads: a quarter of an hour, one and four, and 18 hours with the two minutes that Bespeak adds to the longest limit.
pub const LEADS: [Seconds; 4] = [900, 3_600, 14_400, 18 * 3_600 + 120];
/// How many nodes are dedicated, in percent of the mean number of promised nodes.
const DEDICATED: [u32; 2] = [100, 200];
const SECONDS_PER_HOUR: f64 = 3_600.0;
/// The least length that a job is taken to have where its slowdown is counted, in seconds (Feitelson et al., 1997).
const SLOWDOWN_SECONDS_MIN: Seconds = 10;

/// A month of a log, which a cluster runs beside promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Month {
    /// Its number in the log, from 0.
    pub index: i64,
    nodes: u32,
    jobs: Vec<BatchJob>,
    /// When the warm-up, the month and its end are.
    times: [Seconds; 3],
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
    fn load_percent(&self) -> f64 {
        let works = self
            .measured_jobs()
            .map(|(_, job)| job.run * i64::from(job.nodes));
        let work: i64 = works.sum();
        100.0 * work as f64 / (f64::from(self.nodes) * MONTH_SECONDS as f64)
    }

    fn measured_jobs(&self) -> impl Iterator<Item = (usize, &BatchJob)> {
        let jobs = self.jobs.iter().enumerate();
        jobs.filter(|(_, job)| job.submit >= self.times[1])
    }

    /// Promises from a seed, from the warm-up to the end of the month.
    pub fn promises(&self, seed: u64, demand: Demand) -> Vec<Promise> {
        demand.draw(seed, self.nodes, &self.jobs, (self.times[0], self.times[2]))
    }

    /// Runs the jobs beside these promises.
    pub fn run(&self, lead: Seconds, choice: NodeChoice, promises: &[Promise]) -> Cost {
        let cluster = Cluster {
            nodes: self.nodes,
            lead,
            choice,
            measured: (self.times[1], self.times[2]),
        };
        let outcome = run_jobs_beside_promises(&cluster, &self.jobs, promises);
        Cost::of(self, promises, &outcome)
    }
}

/// The cost of a month's promises. Hours are node-hours of the month, except for the mean wait.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
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

impl Cost {
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
        let late = count_holding(of_month.clone().map(|(_, kept)| kept.late));
        let broken = count_holding(of_month.map(|(_, kept)| kept.nodes.is_empty()));
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
    fn idled(&self, without: &Self) -> f64 {
        (self.idle_hours - without.idle_hours) / self.held_hours.max(1.0)
    }

    /// Node-hours that reserved nodes idled while a job waited for each that was promised and held.
    pub fn reserved_idle(&self) -> f64 {
        self.reserved_idle_hours / self.held_hours.max(1.0)
    }

    /// Node-hours by which batch jobs had less in the month for each that was promised and held.
    fn displaced(&self, without: &Self) -> f64 {
        (without.batch_hours - self.batch_hours) / self.held_hours.max(1.0)
    }
}

/// How promises get their nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BesideSupply {
    Reserved(Seconds, NodeChoice),
    /// Dedicated, in percent of the nodes that are promised in the mean.
    Dedicated(u32),
}

impl BesideSupply {
    fn all() -> Vec<Self> {
        let reserved = |choice| move |lead| Self::Reserved(lead, choice);
        let mut ways: Vec<Self> = LEADS.map(reserved(NodeChoice::Lowest)).to_vec();
        ways.extend(LEADS.map(reserved(NodeChoice::BestFit)));
        ways.extend(DEDICATED.map(Self::Dedicated));
        ways
    }

    /// Lead, or dash, and the choice of nodes.
    fn names(self) -> [String; 2] {
        match self {
            Self::Reserved(lead, choice) => [
                match lead {
                    0..3_600 => format!("{} min", lead / 60),
                    _ => format!("{} h", lead / 3_600),
                },
                match choice {
                    NodeChoice::BestFit => "best fit".to_owned(),
                    _ => "lowest".to_owned(),
                },
            ],
            Self::Dedicated(percent) => ["–".to_owned(), format!("dedicated, {percent} %")],
        }
    }

    fn cost(self, month: &Month, share: u32, promises: &[Promise]) -> Cost {
        match self {
            Self::Reserved(lead, choice) => month.run(lead, choice, promises),
            Self::Dedicated(percent) => {
                let nodes = (month.nodes * share * percent).div_ceil(100 * 100);
                month.run(LEADS[3], NodeChoice::Dedicated(nodes), promises)
            }
        }
    }
}

/// The parts of a comparison: a month, lengths of slots, a share and a way.
struct BesideCell {
    month: usize,
    /// The cost of the month without promises.
    without: Cost,
    demand: Demand,
    way: BesideSupply,
    /// Seed by seed.
    costs: Vec<Cost>,
}

impl BesideCell {
    /// Over the seeds.
    fn mean(&self, function: impl Fn(&Cost) -> f64) -> Summary {
        summary_of_values(self.costs.iter().map(function))
    }

    fn idled(&self) -> Summary {
        self.mean(|cost| cost.idled(&self.without))
    }

    /// A row of the table.
    fn row(&self, months: &[(&str, Month)]) -> Vec<String> {
        let broken = self.mean(|cost| cost.broken_percent);
        let mean = |function: fn(&Cost) -> f64| self.mean(function).mean;
        let [lead, nodes] = self.way.names();
        let (month, slots) = (months[self.month].0, self.demand.scale.name());
        let names = vec![
            month.into(),
            slots.into(),
            self.demand.share.to_string(),
            lead,
            nodes,
        ];
        let numbers = numbers([
            self.idled().mean,
            self.idled().deviation,
            mean(Cost::reserved_idle),
            self.mean(|cost| cost.displaced(&self.without)).mean,
            mean(|cost| cost.late_percent),
            broken.mean,
            broken.deviation,
            mean(|cost| cost.held_hours),
            mean(|cost| cost.wait_hours),
            self.without.wait_hours,
            mean(|cost| cost.slowdown),
            self.without.slowdown,
            mean(|cost| cost.too_large_percent),
        ]);
        [names, numbers].concat()
    }
}

pub(super) fn report_slots_beside_queue(setup: &Setup) -> Report {
    let months = Month::median_and_busiest(setup.workload);
    let alone = |(_, month): &(&str, Month)| month.run(0, NodeChoice::Lowest, &[]);
    let without: Vec<Cost> = setup.workers.map(&months, alone);
    let mut tasks = Vec::new();
    for (month, scale, shares) in [
        (0, Scale::Jobs, &SHARES[..]),
        (1, Scale::Jobs, &SHARES),
        // With larger shares of so short slots the queue all but stands still.
        (0, Scale::Minutes, &SHARES[..2]),
    ] {
        for &share in shares {
            tasks.extend((0..SEEDS).map(|seed| (month, Demand { share, scale }, seed as u64)));
        }
    }
    let ways = BesideSupply::all();
    let run: Vec<Vec<Cost>> = setup.workers.map(&tasks, |(month, demand, seed)| {
        let month = &months[*month].1;
        let promises = month.promises(setup.seed.wrapping_add(*seed), *demand);
        let costs = ways.iter().map(|way| way.cost(month, demand.share, &promises));
        costs.collect()
    });
    let mut cells = Vec::new();
    for (tasks, run) in tasks.chunks(SEEDS).zip(run.chunks(SEEDS)) {
        let (month, demand, _) = tasks[0];
        cells.extend(ways.iter().enumerate().map(|(at, way)| BesideCell {
            month,
            without: without[month],
            demand,
            way: *way,
            costs: run.iter().map(|costs| costs[at]).collect(),
        }));
    }
    let headings = "month | slots | share (%) | lead | nodes | idled for each held | idled ± | reserved idle for each held | \
        batch lost for each held | late (%) | broken (%) | broken ± | held (node-hours) | mean wait (h) | wait without (h) | \
        bounded slowdown | slowdown without | too large (%)";
    let table = report_table(headings, cells.iter().map(|cell| cell.row(&months)));
    Report::new("What promised slots cost beside a batch queue")
        .about(describe_months_beside(&months, &without))
        .with(beside_findings(&cells), table, [beside_figure(&cells)])
}

fn describe_months_beside(months: &[(&str, Month)], without: &[Cost]) -> String {
    let month = |((name, month), cost): (&(&str, Month), &Cost)| {
        let Month {
            index,
            times: [_, start, _],
            ..
        } = month;
        let Cost {
            wait_hours,
            slowdown,
            idle_hours,
            ..
        } = cost;
        format!(
            "the {name} month by submitted work is number {index} (from second {start}), with a load of {:.0} %; without promises jobs wait \
             {wait_hours:.2} h in the mean, with a bounded slowdown of {slowdown:.1}, and {idle_hours:.0} node-hours idle while a job waits",
            month.load_percent()
        )
    };
    let months: Vec<String> = months.iter().zip(without).map(month).collect();
    format!(
        "All jobs of a month of 30 days (the filter does not apply), after a warm-up of seven days, by EASY backfilling with the limits of the \
         log on a cluster of named nodes; where a job has none, its run time. Beside them promised slots of nodes that are reserved a lead before \
         their begin: {SEEDS} sets of promises, from the seed and those that follow it. Of the months that the log holds to their end, {}. Node-hours \
         idled for each held: those that idle while a job waits (and dedicated nodes in any case), less those without promises. Reserved idle: those in which a \
         reserved node idles before its slot while a job waits. Batch lost: by how much fewer node-hours batch jobs have in the month. Late: too \
         few nodes when they were to be reserved. Broken: too few at the begin of the slot, too. ± is the standard deviation over the sets.",
        months.join("; ")
    )
}

fn beside_findings(cells: &[BesideCell]) -> Vec<Finding> {
    const LONGEST: usize = LEADS.len() - 1;
    // In the order of the ways: by lead, on the lowest numbers and then by best fit.
    let pairs: Vec<_> = (cells.chunks(BesideSupply::all().len()))
        .map(|of_demand| of_demand[..2 * LEADS.len()].split_at(LEADS.len()))
        .collect();
    let rows = || pairs.iter().flat_map(|(lowest, fit)| [lowest, fit]);
    let cases = |holds: fn(&[BesideCell]) -> bool| count_holding(rows().map(|row| holds(row)));
    let is_kept = |row: &[BesideCell]| row[LONGEST].mean(|cost| cost.broken_percent).mean < 0.1;
    let fits = pairs.iter().flat_map(|(lowest, fit)| lowest.iter().zip(*fit));
    let fits = fits.map(|(lowest, fit)| fit.idled().mean - lowest.idled().mean);
    let (less, all) = count_holding(fits.clone().map(|difference| difference <= 0.0));
    let by = summary_of_values(fits).mean;
    let fits = format!("in {less} of {all} cases; {by:+.2} node-hours in the mean for each held");
    vec![
        Finding::new("more idles with the longest lead than with the shortest")
            .cases(cases(|row| row[LONGEST].idled().mean > row[0].idled().mean)),
        Finding::new("no more idles by best fit than on the lowest numbers")
            .seen(fits)
            .counted(less, all),
        Finding::new("fewer than one promise in a thousand is broken with the longest lead")
            .cases(cases(is_kept)),
    ]
}

/// Of the median month, with slots as long as jobs.
fn beside_figure(cells: &[BesideCell]) -> Figure {
    let series = SHARES.map(|share| {
        let scale = Scale::Jobs;
        let is_shown = |cell: &&BesideCell| cell.month == 0 && cell.demand == Demand { share, scale };
        let shown = cells.iter().filter(is_shown);
        let points = (0..).zip(shown).map(|(at, cell)| Point {
            error: cell.idled().deviation,
            ..Point::new(f64::from(at), cell.idled().mean)
        });
        Series::new(format!("{share} % promised"), points)
    });
    let groups = BesideSupply::all().into_iter().map(|way| way.names().join(" "));
    Figure::new("Node-hours idled for each held, by lead and choice of nodes, median month")
        .x("lead and nodes")
        .y("node-hours idled for each held")
        .bars(groups.collect::<Vec<_>>(), series)
}
