//! Beyond the papers: the cost of promised slots beside a batch queue, by how early nodes are reserved and how much is promised.

use scheduler::Seconds;

use super::month::{Month, MonthCost};
use super::setup::Setup;
use crate::beside::{Demand, DemandScale, NodeChoice, Promise};
use crate::figure::{Figure, Point, Series};
use crate::report::{
    Finding, Report, count_reported_cases, number_cells as numbers, report_table, summary_of_values,
};
use advisor::statistics::Summary;

/// Sets of promises.
const SEEDS: usize = 5;
/// Shares of the node time that are promised, in percent.
const SHARES: [u32; 4] = [5, 10, 20, 30];
/// Leads: a quarter of an hour, one and four, and 18 hours with the two minutes that Bespeak adds to the longest limit.
pub const LEADS: [Seconds; 4] = [900, 3_600, 14_400, 18 * 3_600 + 120];
/// How many nodes are dedicated, in percent of the mean number of promised nodes.
const DEDICATED: [u32; 2] = [100, 200];

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

    fn cost(self, month: &Month, share: u32, promises: &[Promise]) -> MonthCost {
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
    without: MonthCost,
    demand: Demand,
    way: BesideSupply,
    /// Seed by seed.
    costs: Vec<MonthCost>,
}

impl BesideCell {
    /// Over the seeds.
    fn mean(&self, function: impl Fn(&MonthCost) -> f64) -> Summary {
        summary_of_values(self.costs.iter().map(function))
    }

    fn idled(&self) -> Summary {
        self.mean(|cost| cost.idled(&self.without))
    }

    /// A row of the table.
    fn row(&self, months: &[(&str, Month)]) -> Vec<String> {
        let broken = self.mean(|cost| cost.broken_percent);
        let mean = |function: fn(&MonthCost) -> f64| self.mean(function).mean;
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
            mean(MonthCost::reserved_idle),
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
    let without: Vec<MonthCost> = setup.workers.map(&months, alone);
    let mut tasks = Vec::new();
    for (month, scale, shares) in [
        (0, DemandScale::Jobs, &SHARES[..]),
        (1, DemandScale::Jobs, &SHARES),
        // With larger shares of so short slots the queue all but stands still.
        (0, DemandScale::Minutes, &SHARES[..2]),
    ] {
        for &share in shares {
            tasks.extend((0..SEEDS).map(|seed| (month, Demand { share, scale }, seed as u64)));
        }
    }
    let ways = BesideSupply::all();
    let run: Vec<Vec<MonthCost>> = setup.workers.map(&tasks, |(month, demand, seed)| {
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

fn describe_months_beside(months: &[(&str, Month)], without: &[MonthCost]) -> String {
    let month = |((name, month), cost): (&(&str, Month), &MonthCost)| {
        let Month {
            index,
            times: [_, start, _],
            ..
        } = month;
        let MonthCost {
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
    let cases = |holds: fn(&[BesideCell]) -> bool| count_reported_cases(rows().map(|row| holds(row)));
    let is_kept = |row: &[BesideCell]| row[LONGEST].mean(|cost| cost.broken_percent).mean < 0.1;
    let fits = pairs.iter().flat_map(|(lowest, fit)| lowest.iter().zip(*fit));
    let fits = fits.map(|(lowest, fit)| fit.idled().mean - lowest.idled().mean);
    let (less, all) = count_reported_cases(fits.clone().map(|difference| difference <= 0.0));
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
        let scale = DemandScale::Jobs;
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
