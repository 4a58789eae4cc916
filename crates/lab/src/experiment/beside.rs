//! Beyond the papers: the cost of promised slots beside a batch queue, by how early nodes are reserved and how much is promised.

use scheduler::Seconds;

use super::setup::Setup;
use crate::beside::{BatchJob, Choice, Cluster, Demand, Outcome, Promise, Scale, run};
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, Verdict, cells as numbers};
use advisor::statistics::Summary;
use advisor::table::Table;
use advisor::workload::Workload;

/// A month. The first month of a log begins at its time 0.
const MONTH_SECONDS: Seconds = 30 * 86_400;
/// Jobs and promises of so long before the month fill the cluster.
const WARM_UP_SECONDS: Seconds = 7 * 86_400;
/// Sets of promises.
const SEEDS: u64 = 5;
/// Shares of the node time that are promised, in percent.
pub const SHARES: [u32; 4] = [5, 10, 20, 30];
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
    pub fn of(workload: &Workload, index: i64) -> Self {
        let start = index * MONTH_SECONDS;
        let times = [start - WARM_UP_SECONDS, start, start + MONTH_SECONDS];
        let within = |submit| times[0] <= submit && submit < times[2];
        Self {
            index,
            nodes: workload.capacity,
            jobs: (workload.jobs.iter())
                .map(BatchJob::of)
                .filter(|job| within(job.submit))
                .collect(),
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
        let of = |at: usize| Self::of(workload, by_work[at].1);
        vec![
            ("median", of(by_work.len() / 2)),
            ("busiest", of(by_work.len() - 1)),
        ]
    }

    /// Node-seconds of the jobs that are submitted in the month, in percent of the month's.
    fn load_percent(&self) -> f64 {
        let work: i64 = self
            .measured_jobs()
            .map(|(_, job)| job.run * i64::from(job.nodes))
            .sum();
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
    pub fn run(&self, lead: Seconds, choice: Choice, promises: &[Promise]) -> Cost {
        let cluster = Cluster {
            nodes: self.nodes,
            lead,
            choice,
            measured: (self.times[1], self.times[2]),
        };
        let outcome = run(&cluster, &self.jobs, promises);
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
    fn of(month: &Month, promises: &[Promise], outcome: &Outcome) -> Self {
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
        let of_month: Vec<_> = (promises.iter().zip(&outcome.promises))
            .filter(|(promise, _)| promise.start >= month.times[1])
            .map(|(_, kept)| kept)
            .collect();
        let part = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        let late = of_month.iter().filter(|kept| kept.late).count();
        let broken = of_month.iter().filter(|kept| kept.nodes.is_empty()).count();
        Self {
            idle_hours: hours(outcome.idle_waiting + outcome.idle_dedicated),
            reserved_idle_hours: hours(outcome.idle_reserved + outcome.idle_dedicated),
            batch_hours: hours(outcome.batch),
            held_hours: hours(outcome.held),
            late_percent: part(late, of_month.len()),
            broken_percent: part(broken, of_month.len()),
            wait_hours: Summary::of(&waits).mean,
            slowdown: Summary::of(&slowdowns).mean,
            too_large_percent: part(too_large, too_large + waits.len()),
        }
    }

    /// Node-hours idled for each that was promised and held: more than without promises.
    pub fn idled(&self, without: &Self) -> f64 {
        (self.idle_hours - without.idle_hours) / self.held_hours.max(1.0)
    }

    /// Node-hours that reserved nodes idled while a job waited for each that was promised and held.
    pub fn reserved_idle(&self) -> f64 {
        self.reserved_idle_hours / self.held_hours.max(1.0)
    }

    /// Node-hours by which batch jobs had less in the month for each that was promised and held.
    pub fn displaced(&self, without: &Self) -> f64 {
        (without.batch_hours - self.batch_hours) / self.held_hours.max(1.0)
    }
}

/// How promises get their nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Reserved(Seconds, Choice),
    /// Dedicated, in percent of the nodes that are promised in the mean.
    Dedicated(u32),
}

impl Way {
    fn all() -> Vec<Self> {
        let reserved = |choice| move |lead| Self::Reserved(lead, choice);
        let mut ways: Vec<Self> = LEADS.map(reserved(Choice::Lowest)).to_vec();
        ways.extend(LEADS.map(reserved(Choice::BestFit)));
        ways.extend(DEDICATED.map(Self::Dedicated));
        ways
    }

    /// Lead, or dash, and the choice of nodes.
    fn names(self) -> [String; 2] {
        match self {
            Self::Reserved(lead, choice) => {
                let lead = if lead < 3_600 {
                    format!("{} min", lead / 60)
                } else {
                    format!("{} h", lead / 3_600)
                };
                let choice = if choice == Choice::BestFit {
                    "best fit"
                } else {
                    "lowest"
                };
                [lead, choice.to_owned()]
            }
            Self::Dedicated(percent) => ["–".to_owned(), format!("dedicated, {percent} %")],
        }
    }

    fn cost(self, month: &Month, share: u32, promises: &[Promise]) -> Cost {
        match self {
            Self::Reserved(lead, choice) => month.run(lead, choice, promises),
            Self::Dedicated(percent) => {
                let nodes = (month.nodes * share * percent).div_ceil(100 * 100);
                month.run(LEADS[3], Choice::Dedicated(nodes), promises)
            }
        }
    }
}

/// The parts of a comparison: a month, lengths of slots, a share and a way.
struct Cell {
    month: usize,
    demand: Demand,
    way: Way,
    /// Seed by seed.
    costs: Vec<Cost>,
}

pub(super) fn compare(setup: &Setup) -> Report {
    let months = Month::median_and_busiest(setup.workload);
    let without: Vec<Cost> = setup
        .workers
        .map(&months, |(_, month)| month.run(0, Choice::Lowest, &[]));
    let mut tasks = Vec::new();
    for (month, scale, shares) in [
        (0, Scale::Jobs, &SHARES[..]),
        (1, Scale::Jobs, &SHARES),
        // With larger shares of so short slots the queue all but stands still.
        (0, Scale::Minutes, &SHARES[..2]),
    ] {
        for &share in shares {
            tasks.extend((0..SEEDS).map(|seed| (month, Demand { share, scale }, seed)));
        }
    }
    let ways = Way::all();
    let run: Vec<Vec<Cost>> = setup.workers.map(&tasks, |(month, demand, seed)| {
        let month = &months[*month].1;
        let promises = month.promises(setup.seed.wrapping_add(*seed), *demand);
        let costs = ways.iter().map(|way| way.cost(month, demand.share, &promises));
        costs.collect()
    });
    let mut cells = Vec::new();
    let seeds = usize::try_from(SEEDS).unwrap_or(1);
    for (tasks, run) in tasks.chunks(seeds).zip(run.chunks(seeds)) {
        let (month, demand, _) = tasks[0];
        cells.extend(ways.iter().enumerate().map(|(at, way)| Cell {
            month,
            demand,
            way: *way,
            costs: run.iter().map(|costs| costs[at]).collect(),
        }));
    }
    Report::new(
        "What promised slots cost beside a batch queue",
        about(&months, &without),
        findings(&cells, &without),
        table(&months, &without, &cells),
        vec![figure(&cells, &without)],
    )
}

fn about(months: &[(&str, Month)], without: &[Cost]) -> String {
    let months: Vec<String> = months
        .iter()
        .zip(without)
        .map(|((name, month), cost)| {
            format!(
                "the {name} month by submitted work is number {} (from second {}), with a load of {:.0} %; without promises jobs wait \
                 {:.2} h in the mean, with a bounded slowdown of {:.1}, and {:.0} node-hours idle while a job waits",
                month.index,
                month.times[1],
                month.load_percent(),
                cost.wait_hours,
                cost.slowdown,
                cost.idle_hours
            )
        })
        .collect();
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

fn mean(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> Summary {
    Summary::of(&costs.iter().map(of).collect::<Vec<_>>())
}

fn findings(cells: &[Cell], without: &[Cost]) -> Vec<Finding> {
    let idled = |cell: &Cell| mean(&cell.costs, |cost| cost.idled(&without[cell.month])).mean;
    // In the order of the ways: leads, first of the lowest numbers and then by best fit.
    let of_demand: Vec<&[Cell]> = cells.chunks(Way::all().len()).collect();
    let rows: Vec<&[Cell]> = (of_demand.iter())
        .flat_map(|cells| [&cells[..LEADS.len()], &cells[LEADS.len()..2 * LEADS.len()]])
        .collect();
    let longer = (rows.iter())
        .filter(|row| idled(&row[LEADS.len() - 1]) > idled(&row[0]))
        .count();
    let fits: Vec<f64> = (of_demand.iter())
        .flat_map(|cells| (0..LEADS.len()).map(|lead| (&cells[lead], &cells[LEADS.len() + lead])))
        .map(|(lowest, fit)| idled(fit) - idled(lowest))
        .collect();
    let less = fits.iter().filter(|difference| **difference <= 0.0).count();
    let broken = (rows.iter()).map(|row| mean(&row[LEADS.len() - 1].costs, |cost| cost.broken_percent).mean);
    let kept = broken.filter(|percent| *percent < 0.1).count();
    vec![
        Finding::own(
            "more idles with the longest lead than with the shortest",
            format!("in {longer} of {} cases", rows.len()),
            Verdict::of_own(longer, rows.len()),
        ),
        Finding::own(
            "no more idles by best fit than on the lowest numbers",
            format!(
                "in {less} of {} cases; {:+.2} node-hours in the mean for each held",
                fits.len(),
                Summary::of(&fits).mean
            ),
            Verdict::of_own(less, fits.len()),
        ),
        Finding::own(
            "fewer than one promise in a thousand is broken with the longest lead",
            format!("in {kept} of {} cases", rows.len()),
            Verdict::of_own(kept, rows.len()),
        ),
    ]
}

fn table(months: &[(&str, Month)], without: &[Cost], cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "month",
        "slots",
        "share (%)",
        "lead",
        "nodes",
        "idled for each held",
        "idled ±",
        "reserved idle for each held",
        "batch lost for each held",
        "late (%)",
        "broken (%)",
        "broken ±",
        "held (node-hours)",
        "mean wait (h)",
        "wait without (h)",
        "bounded slowdown",
        "slowdown without",
        "too large (%)",
    ]);
    for cell in cells {
        let base = &without[cell.month];
        let [lead, nodes] = cell.way.names();
        let idled = mean(&cell.costs, |cost| cost.idled(base));
        let broken = mean(&cell.costs, |cost| cost.broken_percent);
        let of = |of: fn(&Cost) -> f64| mean(&cell.costs, of).mean;
        let mut row = vec![
            months[cell.month].0.to_owned(),
            cell.demand.scale.name().to_owned(),
            cell.demand.share.to_string(),
            lead,
            nodes,
        ];
        row.extend(numbers([
            idled.mean,
            idled.deviation,
            of(Cost::reserved_idle),
            mean(&cell.costs, |cost| cost.displaced(base)).mean,
            of(|cost| cost.late_percent),
            broken.mean,
            broken.deviation,
            of(|cost| cost.held_hours),
            of(|cost| cost.wait_hours),
            base.wait_hours,
            of(|cost| cost.slowdown),
            base.slowdown,
            of(|cost| cost.too_large_percent),
        ]));
        table.rows.push(row);
    }
    table
}

/// Of the median month, with slots as long as jobs.
fn figure(cells: &[Cell], without: &[Cost]) -> Figure {
    let shown = |cell: &&Cell| cell.month == 0 && cell.demand.scale == Scale::Jobs;
    let series = SHARES.map(|share| {
        let cells = (cells.iter().filter(shown)).filter(|cell| cell.demand.share == share);
        let points = (0..).zip(cells).map(|(at, cell)| {
            let idled = mean(&cell.costs, |cost| cost.idled(&without[cell.month]));
            Point {
                x: f64::from(at),
                y: idled.mean,
                error: idled.deviation,
            }
        });
        Series::new(format!("{share} % promised"), points)
    });
    let groups = Way::all().into_iter().map(|way| way.names().join(" "));
    Figure::bars(
        "beside-batch",
        "Node-hours idled for each held, by lead and choice of nodes, median month",
        ["lead and nodes", "node-hours idled for each held"],
        groups.collect::<Vec<_>>(),
        series,
    )
}
