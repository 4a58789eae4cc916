//! Paper 002: requests with a size and pieces that the provider may choose, and the provider's earnings from them.

use std::array;

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{
    Finding, Report, Verdict, count_reported_cases, join_results, load_name, mean_cells, number_cells,
    report_table, rows_of_report_grid, spread_cells, summary_of_values,
};
use advisor::adaptive::{AdaptiveOutcome, Mode, adaptive_asks, play_adaptive_asks};
use advisor::adaptive_plan::Policy;
use advisor::flexible::LOADS;
use advisor::statistics::Summary;
use advisor::table::Table;

/// Names of the modes, FIFO first; the first is the conventional one that all are compared with.
const NAMES: [&str; 8] = [
    "FIFO rigid",
    "FIFO preemptive",
    "FIFO moldable",
    "FIFO both",
    "MDF rigid",
    "MDF preemptive",
    "MDF moldable",
    "MDF both",
];

const MDF_RIGID: usize = 4;
const MDF_PREEMPTIVE: usize = 5;

fn adaptive_mode(index: usize) -> Mode {
    Mode {
        policy: [Policy::Fifo, Policy::MissingDeadlineFirst][index / MDF_RIGID],
        moldable: index % 4 >= 2,
        preemptive: index % 2 == 1,
    }
}

/// Plays every mode at every load in every window; once, as all figures show the same runs. By load and mode: window by window.
fn adaptive_results<'a>(setup: &'a Setup) -> Vec<&'a [Vec<AdaptiveOutcome>]> {
    let results = setup.adaptive.get_or_init(|| {
        setup.play(|window| {
            let asks = adaptive_asks(setup.seed, window);
            let play = |load, at| play_adaptive_asks(setup.workload.capacity, &asks, adaptive_mode(at), load);
            let of_load = |load| array::from_fn::<_, { NAMES.len() }, _>(|at| play(load, at));
            LOADS.map(of_load).concat()
        })
    });
    results.chunks(NAMES.len()).collect()
}

fn measure_outcomes(outcomes: &[AdaptiveOutcome], function: impl Fn(&AdaptiveOutcome) -> f64) -> Vec<f64> {
    outcomes.iter().map(function).collect()
}

/// How much more `a` is than `b`, in percent of the mean of `b`.
fn adaptive_percent_more(a: &[f64], b: &[f64]) -> Summary {
    let base = Summary::of(b).mean;
    let scale = if base > 0.0 { 100.0 / base } else { 0.0 };
    summary_of_values(a.iter().zip(b).map(|(a, b)| scale * (a - b)))
}

/// The mean without the best and worst windows, four of 48 at either end, which the paper leaves out (section 4.1); of all where
/// they are few.
fn trimmed_mean(values: &[f64]) -> f64 {
    let all = || Summary::of(values);
    Summary::trimmed(values).unwrap_or_else(all).mean
}

/// How much more `a` is than `b` by their trimmed means, in percent.
fn trimmed_percent_more(a: &[f64], b: &[f64]) -> f64 {
    let base = trimmed_mean(b);
    if base > 0.0 {
        100.0 * (trimmed_mean(a) - base) / base
    } else {
        0.0
    }
}

const ABOUT: &str = "Sizes may shrink to 80 % above ten nodes, by a law k − c·R; 60 % of the requests may run in ten pieces; 20 % \
    pay three times as much and have no three days on top of five run times. FIFO places a request once, MDF places all that \
    waits anew. Trimmed means leave out the four best and worst windows of 48, as the paper does; verdicts are of all windows.";

fn adaptive_report(title: &'static str, about: &str) -> Report {
    Report::new(title).about(format!("{ABOUT} {about}"))
}

/// A measure of four of the modes by load, with the table and the figure of all that are shown.
struct AdaptiveComparison {
    /// By load, then mode.
    means: Vec<Vec<Summary>>,
    /// The trimmed means of the same.
    trimmed: Vec<Vec<f64>>,
    table: Table,
    figure: Figure,
}

impl AdaptiveComparison {
    fn report(self, title: &'static str, about: &str, findings: impl Into<Vec<Finding>>) -> Report {
        adaptive_report(title, about).with(findings, self.table, [self.figure])
    }

    /// In percent at a load, mode by mode; then the trimmed means.
    fn text(&self, load: usize) -> String {
        let text = |mean: f64| format!("{mean:+.1}");
        let means = join_results(self.means[load].iter().map(|change| text(change.mean)));
        let trimmed = join_results(self.trimmed[load].iter().map(|mean| text(*mean)));
        format!("{means} % (trimmed {trimmed})")
    }

    /// The largest at a load.
    fn largest(&self, load: usize) -> f64 {
        let means = self.means[load].iter().map(|change| change.mean);
        means.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How many, at the first `loads` loads, are surely positive (95 %).
    fn positive(&self, loads: usize) -> usize {
        let means = self.means[..loads].iter().flatten();
        means.filter(|change| change.is_positive()).count()
    }

    /// In how many of the four modes the measure is sorted by the loads in this way.
    fn sorted(&self, by: fn(f64, f64) -> bool) -> usize {
        let sorted = |mode: &usize| self.means.is_sorted_by(|a, b| by(a[*mode].mean, b[*mode].mean));
        (0..4).filter(sorted).count()
    }
}

/// Lines of modes over the loads.
fn figure_of_adaptive_modes(what: &'static str, modes: &[&str], means: &[Vec<Summary>]) -> Figure {
    let lines = Series::over(LOADS, modes.iter().copied(), means);
    Figure::new(what).x("load (%)").y(what).lines(lines)
}

/// A measure of each mode and its change against the conventional one; the four MDF modes are judged by the change.
fn compare_adaptive_modes(
    setup: &Setup,
    what: &str,
    change: &'static str,
    sign: f64,
    function: fn(&AdaptiveOutcome) -> f64,
) -> AdaptiveComparison {
    let of_load = |modes: &[Vec<AdaptiveOutcome>]| -> Vec<(Summary, Summary, f64)> {
        let base = measure_outcomes(&modes[0], function);
        let of_mode = modes.iter().map(|outcomes| {
            let seen = measure_outcomes(outcomes, function);
            let mut more = adaptive_percent_more(&seen, &base);
            more.mean *= sign;
            (
                Summary::of(&seen),
                more,
                sign * trimmed_percent_more(&seen, &base),
            )
        });
        of_mode.collect()
    };
    let cells: Vec<Vec<_>> = adaptive_results(setup).into_iter().map(of_load).collect();
    let text =
        |(seen, more, trimmed): &_| [spread_cells(seen), mean_cells(more), number_cells([*trimmed])].concat();
    let rows = rows_of_report_grid(&LOADS.map(load_name), &NAMES, &cells, text);
    let headings = format!(
        "load | mode | {what} | ± 95 % | standard deviation | {change} | change ± 95 % | trimmed change (%)"
    );
    let changes = |from: usize| -> Vec<Vec<Summary>> {
        let of_load = |cells: &Vec<(_, Summary, _)>| cells[from..].iter().map(|cell| cell.1).collect();
        cells.iter().map(of_load).collect()
    };
    let trimmed = |cells: &Vec<(_, _, f64)>| cells[MDF_RIGID..].iter().map(|cell| cell.2).collect();
    AdaptiveComparison {
        means: changes(MDF_RIGID),
        trimmed: cells.iter().map(trimmed).collect(),
        table: report_table(&headings, rows),
        figure: figure_of_adaptive_modes(change, &NAMES[1..], &changes(1)),
    }
}

pub(super) fn report_adaptive_profit(setup: &Setup) -> Report {
    let change = "profit gain over FIFO rigid (%)";
    let comparison = compare_adaptive_modes(setup, "profit", change, 1.0, |o| o.profit(0.0));
    let at_most = &comparison.means[2];
    let more_than_rigid = at_most[1..].iter().filter(|c| c.mean > at_most[0].mean).count();
    let grows = comparison.sorted(|a, b| a < b);
    let findings = [
        Finding::new("profit gain of MDF rigid / preemptive / moldable / both at load ×1")
            .paper("at most about 4.5 % (moldable, both)")
            .seen(comparison.text(0))
            .counted(comparison.positive(3), 12)
            .near(comparison.largest(0), 4.5)
            .because(
                "judged by whether it is surely positive (95 %) at all loads, and the largest by its distance from the paper's",
            ),
        Finding::new("the same at load ×1.5")
            .paper("14 % with moldable or preemptive requests, 3 % of it over MDF rigid")
            .seen(comparison.text(2))
            .counted(more_than_rigid, 3)
            .near(comparison.largest(2), 14.0)
            .because(
                "judged by whether adaptive requests earn more than rigid ones under MDF, and the largest by its distance from the \
                 paper's",
            ),
        Finding::new("the gain grows with the load")
            .paper("it does")
            .seen(format!("for {grows} of 4 kinds of requests"))
            .counted(grows, 4),
    ];
    let about = "Profit in currency units of one per node and hour.";
    comparison.report("Profit of adaptive requests", about, findings)
}

pub(super) fn report_adaptive_completion(setup: &Setup) -> Report {
    let change = "reduction of the completion time (%)";
    let what = "completion after submission (s)";
    let comparison = compare_adaptive_modes(setup, what, change, -1.0, |o| o.completion);
    let falls = comparison.sorted(|a, b| a > b);
    let (least, most) = (comparison.text(0), comparison.text(2));
    let findings = [
        Finding::new("placing anew completes requests sooner, at load ×1")
            .paper("up to 20 % sooner")
            .seen(format!("MDF rigid / preemptive / moldable / both: {least}"))
            .counted(comparison.positive(1), 4)
            .near(comparison.largest(0), 20.0)
            .because(
                "judged by whether it is surely positive (95 %), and the largest by its distance from the paper's",
            ),
        Finding::new("the benefit shrinks with the load")
            .paper("it does")
            .seen(format!("for {falls} of 4 kinds; at ×1.5: {most}"))
            .counted(falls, 4)
            .because("under MDF more requests are accepted at a high load, and the further ones complete late"),
    ];
    let about = "Means of the accepted requests of a window.";
    comparison.report("Completion time of adaptive requests", about, findings)
}

pub(super) fn report_adaptive_rejections(setup: &Setup) -> Report {
    let change = "reduction of rejected requests (%)";
    let comparison = compare_adaptive_modes(setup, "requests refused", change, -1.0, |o| o.refused as f64);
    let (least, most) = (comparison.text(0), comparison.text(2));
    let reductions =
        format!("fewer by, MDF rigid / preemptive / moldable / both: at ×1 {least}; at ×1.5 {most}");
    let finding = Finding::new("rescheduling prevents rejections")
        .paper("an important role")
        .seen(reductions)
        .counted(comparison.positive(3), 12);
    comparison.report("Rejections of adaptive requests", "", [finding])
}

/// The incentive at which a line of gains falls below zero.
fn incentive_that_loses(gains: &[Point]) -> Option<f64> {
    let pair = gains
        .windows(2)
        .find(|pair| pair[0].y >= 0.0 && pair[1].y < 0.0)?;
    let part = pair[0].y / (pair[0].y - pair[1].y);
    Some(pair[0].x + part * (pair[1].x - pair[0].x))
}

pub(super) fn report_adaptive_incentive(setup: &Setup) -> Report {
    let modes = adaptive_results(setup)[2];
    let base = measure_outcomes(&modes[0], |o| o.profit(0.0));
    let mut rows = Vec::new();
    let (mut points, mut trimmed) = (Vec::new(), Vec::new());
    for percent in (0..=40).step_by(5).map(f64::from) {
        let seen = measure_outcomes(&modes[MDF_PREEMPTIVE], |o| o.profit(percent));
        let (profit, gain) = (Summary::of(&seen), adaptive_percent_more(&seen, &base));
        let of_trimmed = trimmed_percent_more(&seen, &base);
        rows.push(number_cells([
            percent,
            profit.mean,
            gain.mean,
            gain.confidence,
            of_trimmed,
        ]));
        points.push(Point::mean(percent, &gain));
        trimmed.push(Point::new(percent, of_trimmed));
    }
    let crossings = [&points, &trimmed].map(|points| incentive_that_loses(points));
    let near = crossings[0].is_some_and(|percent| (25.0..=40.0).contains(&percent));
    let text = crossings
        .map(|crossing| crossing.map_or("none up to 40 %".to_owned(), |percent| format!("{percent:.0} %")));
    let finding = Finding::new("the incentive from which the provider loses")
        .paper("about 30 %")
        .seen(format!("{} (trimmed {})", text[0], text[1]))
        .holds(near)
        .because("judged by 25 to 40 %");
    let figure = Figure::new("Profit with an incentive for preemptive requests, load ×1.5")
        .x("incentive (% of the price)")
        .y("profit gain over FIFO rigid (%)")
        .lines([Series::new("MDF preemptive", points)]);
    let headings = "incentive (%) | profit | profit gain over FIFO rigid (%) | ± 95 % | trimmed gain (%)";
    let title = "What an incentive for preemptive requests may cost";
    adaptive_report(title, "Load ×1.5.").with([finding], report_table(headings, rows), [figure])
}

/// A share of the moldable requests of each mode that has them.
fn compare_adaptive_shares(
    setup: &Setup,
    what: &'static str,
    function: fn(&AdaptiveOutcome) -> Option<f64>,
) -> AdaptiveComparison {
    let modes: Vec<usize> = (0..NAMES.len())
        .filter(|at| adaptive_mode(*at).moldable)
        .collect();
    let names: Vec<&str> = modes.iter().map(|at| NAMES[*at]).collect();
    let share = |outcomes: &[AdaptiveOutcome]| -> Vec<f64> { outcomes.iter().filter_map(function).collect() };
    let of_load = |results: &[Vec<AdaptiveOutcome>]| modes.iter().map(|at| share(&results[*at])).collect();
    let shares: Vec<Vec<Vec<f64>>> = adaptive_results(setup).into_iter().map(of_load).collect();
    let text = |share: &Vec<f64>| {
        [
            spread_cells(&Summary::of(share)),
            number_cells([trimmed_mean(share)]),
        ]
        .concat()
    };
    let rows = rows_of_report_grid(&LOADS.map(load_name), &names, &shares, text);
    let headings = format!("load | mode | {what} | ± 95 % | standard deviation | trimmed mean");
    let means: Vec<Vec<Summary>> = (shares.iter())
        .map(|load| load.iter().map(|share| Summary::of(share)).collect())
        .collect();
    AdaptiveComparison {
        trimmed: (shares.iter())
            .map(|load| load.iter().map(|share| trimmed_mean(share)).collect())
            .collect(),
        table: report_table(&headings, rows),
        figure: figure_of_adaptive_modes(what, &names, &means),
        means,
    }
}

/// Of how many modes the share grows with the load.
fn growing_adaptive_share_finding(shares: &AdaptiveComparison, claim: &str, paper: &str) -> Finding {
    let grows = shares.sorted(|a, b| a < b);
    let by_load =
        |mode: usize| join_results(shares.means.iter().map(|load| format!("{:.0}", load[mode].mean)));
    let text = [0, 1, 2, 3].map(by_load).join(", ");
    let seen = format!("for {grows} of 4 modes; FIFO moldable, both, MDF moldable, both by load (%): {text}");
    Finding::new(claim).paper(paper).seen(seen).counted(grows, 4)
}

pub(super) fn report_adaptive_shrinking(setup: &Setup) -> Report {
    let part = |o: &AdaptiveOutcome| (o.moldable > 0).then(|| 100.0 * o.shrunk as f64 / o.moldable as f64);
    let shares = compare_adaptive_shares(setup, "moldable requests on fewer nodes (%)", part);
    let (more, loads) = count_reported_cases(shares.means.iter().map(|load| load[3].mean > load[2].mean));
    let claim = "more moldable requests shrink in a fuller cluster";
    let findings = [
        growing_adaptive_share_finding(&shares, claim, "the scheduler tends to"),
        Finding::new("more shrink where they can be cut too")
            .paper("they do")
            .seen(format!("under MDF at {more} of {loads} loads"))
            .counted(more, loads),
    ];
    let about = "Of the accepted requests that could shrink.";
    shares.report("How many moldable requests shrink", about, findings)
}

pub(super) fn report_adaptive_modification(setup: &Setup) -> Report {
    let mean = |o: &AdaptiveOutcome| (o.shrunk > 0).then(|| o.modification / o.shrunk as f64);
    let shares = compare_adaptive_shares(setup, "mean modification of shrunk requests (%)", mean);
    let claim = "requests that shrink do so further in a fuller cluster";
    let finding = Finding {
        verdict: Verdict::Measured,
        ..growing_adaptive_share_finding(&shares, claim, "figure 9")
    };
    let finding = finding.because("the paper gives the figure without a number");
    let about = "100 % is R^min, 0 % R^max; the pieces of a request count by their work.";
    shares.report("How far moldable requests shrink", about, [finding])
}
