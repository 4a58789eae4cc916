//! Paper 002: requests with a size and pieces that the provider may choose, and the provider's earnings from them.

pub(super) mod protocol;

use scheduler::adaptive::Policy;

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, Verdict, cells, joined, load_name, mean, spread};
use advisor::statistics::Summary;
use advisor::table::Table;
use protocol::{Mode, Outcome, asks, play};

/// Loads in percent.
const LOADS: [u32; 3] = [100, 125, 150];

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

fn mode(index: usize) -> Mode {
    Mode {
        policy: if index < MDF_RIGID {
            Policy::Fifo
        } else {
            Policy::MissingDeadlineFirst
        },
        moldable: index % 4 >= 2,
        preemptive: index % 2 == 1,
    }
}

/// Plays every mode at every load in every window; once, as all figures show the same runs. By load and mode: window by window.
fn results<'a>(setup: &'a Setup) -> Vec<&'a [Vec<Outcome>]> {
    let results = setup.adaptive.get_or_init(|| {
        setup.play(|window| {
            let asks = asks(setup.seed, window);
            let play = |load, at| play(setup.workload.capacity, &asks, mode(at), load);
            let of_load = |load| (0..NAMES.len()).map(move |at| (load, at));
            let runs = LOADS.into_iter().flat_map(of_load);
            runs.map(|(load, at)| play(load, at)).collect()
        })
    });
    results.chunks(NAMES.len()).collect()
}

fn values(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    outcomes.iter().map(of).collect()
}

/// How much more `a` is than `b`, in percent of the mean of `b`.
fn percent_more(a: &[f64], b: &[f64]) -> Summary {
    let base = Summary::of(b).mean;
    let scale = if base > 0.0 { 100.0 / base } else { 0.0 };
    let more: Vec<f64> = a.iter().zip(b).map(|(a, b)| scale * (a - b)).collect();
    Summary::of(&more)
}

const ABOUT: &str = "Sizes may shrink to 80 % above ten nodes, by a law k − c·R; 60 % of the requests may run in ten pieces; 20 % \
    pay three times as much and have no three days on top of five run times. FIFO places a request once, MDF places all that \
    waits anew.";

fn report(title: &'static str, about: &str, findings: Vec<Finding>, table: Table, figure: Figure) -> Report {
    Report::new(title, format!("{ABOUT} {about}"), findings, table, vec![figure])
}

/// A line for each of some modes over the loads, with a point for each summary of a load.
fn lines(modes: &[usize], seen: &[Vec<Summary>]) -> Vec<Series> {
    let line = |(at, mode): (usize, &usize)| {
        let points = LOADS.iter().zip(seen);
        let points = points.map(|(load, of)| Point::mean(f64::from(*load), &of[at]));
        Series::new(NAMES[*mode], points)
    };
    modes.iter().enumerate().map(line).collect()
}

/// A measure of each mode against the conventional one, load by load.
struct Comparison {
    /// By load, then mode.
    changes: Vec<Vec<Summary>>,
    table: Table,
    figure: Figure,
}

fn compare(
    setup: &Setup,
    name: &str,
    what: &str,
    change: &str,
    sign: f64,
    of: fn(&Outcome) -> f64,
) -> Comparison {
    let mut table = Table::new(&[
        "load",
        "mode",
        what,
        "± 95 %",
        "standard deviation",
        change,
        "change ± 95 %",
    ]);
    let mut changes = Vec::new();
    for (load, modes) in LOADS.into_iter().zip(results(setup)) {
        let base = values(&modes[0], of);
        let mut of_load = Vec::new();
        for (name, outcomes) in NAMES.iter().zip(modes) {
            let seen = values(outcomes, of);
            let mut more = percent_more(&seen, &base);
            more.mean *= sign;
            let mut row = vec![load_name(load), (*name).to_owned()];
            row.extend(spread(&Summary::of(&seen)));
            row.extend(mean(&more));
            table.rows.push(row);
            of_load.push(more);
        }
        changes.push(of_load);
    }
    let adaptive: Vec<Vec<Summary>> = changes.iter().map(|of| of[1..].to_vec()).collect();
    let modes: Vec<usize> = (1..NAMES.len()).collect();
    let figure = Figure::lines(name, change, ["load (%)", change], lines(&modes, &adaptive));
    Comparison {
        changes,
        table,
        figure,
    }
}

impl Comparison {
    /// The changes of the four MDF modes at a load.
    fn of_mdf(&self, load: usize) -> String {
        let of = self.changes[load][MDF_RIGID..].iter();
        joined(of.map(|change| format!("{:+.1}", change.mean)))
    }

    /// The largest of those.
    fn largest(&self, load: usize) -> f64 {
        let of = self.changes[load][MDF_RIGID..].iter().map(|change| change.mean);
        of.fold(f64::NEG_INFINITY, f64::max)
    }

    /// How many of them, at the first `loads` loads, are surely positive (95 %).
    fn positive(&self, loads: usize) -> usize {
        let of_mdf = self.changes[..loads].iter().flat_map(|of| &of[MDF_RIGID..]);
        of_mdf.filter(|change| change.is_positive()).count()
    }

    /// In how many of the four MDF modes the change is sorted by the loads in this way.
    fn sorted(&self, by: fn(f64, f64) -> bool) -> usize {
        let sorted = |mode: &usize| self.changes.is_sorted_by(|a, b| by(a[*mode].mean, b[*mode].mean));
        (MDF_RIGID..NAMES.len()).filter(sorted).count()
    }
}

pub(super) fn profit(setup: &Setup) -> Report {
    let change = "profit gain over FIFO rigid (%)";
    let comparison = compare(setup, "002-fig4", "profit", change, 1.0, |o| o.profit(0.0));
    let at_most = &comparison.changes[2];
    let more_than_rigid = at_most[MDF_PREEMPTIVE..]
        .iter()
        .filter(|c| c.mean > at_most[MDF_RIGID].mean)
        .count();
    let grows = comparison.sorted(|a, b| a < b);
    let findings = vec![
        Finding::new(
            "profit gain of MDF rigid / preemptive / moldable / both at load ×1",
            "at most about 4.5 % (moldable, both)",
            format!("{} %", comparison.of_mdf(0)),
            Verdict::of(comparison.positive(3), 12).of_number(comparison.largest(0), 4.5),
        )
        .because(
            "judged by whether it is surely positive (95 %) at all loads, and the largest by its distance from the paper's",
        ),
        Finding::new(
            "the same at load ×1.5",
            "14 % with moldable or preemptive requests, 3 % of it over MDF rigid",
            format!("{} %", comparison.of_mdf(2)),
            Verdict::of(more_than_rigid, 3).of_number(comparison.largest(2), 14.0),
        )
        .because(
            "judged by whether adaptive requests earn more than rigid ones under MDF, and the largest by its distance from the \
             paper's",
        ),
        Finding::new(
            "the gain grows with the load",
            "it does",
            format!("for {grows} of 4 kinds of requests"),
            Verdict::of(grows, 4),
        ),
    ];
    report(
        "Profit of adaptive requests",
        "Profit in currency units of one per node and hour.",
        findings,
        comparison.table,
        comparison.figure,
    )
}

pub(super) fn completion(setup: &Setup) -> Report {
    let change = "reduction of the completion time (%)";
    let what = "completion after submission (s)";
    let comparison = compare(setup, "002-fig5", what, change, -1.0, |o| o.completion);
    let falls = comparison.sorted(|a, b| a > b);
    let findings = vec![
        Finding::new(
            "placing anew completes requests sooner, at load ×1",
            "up to 20 % sooner",
            format!(
                "MDF rigid / preemptive / moldable / both: {} %",
                comparison.of_mdf(0)
            ),
            Verdict::of(comparison.positive(1), 4).of_number(comparison.largest(0), 20.0),
        )
        .because("judged by whether it is surely positive (95 %), and the largest by its distance from the paper's"),
        Finding::new(
            "the benefit shrinks with the load",
            "it does",
            format!("for {falls} of 4 kinds; at ×1.5: {} %", comparison.of_mdf(2)),
            Verdict::of(falls, 4),
        )
        .because("under MDF more requests are accepted at a high load, and the further ones complete late"),
    ];
    report(
        "Completion time of adaptive requests",
        "Means of the accepted requests of a window.",
        findings,
        comparison.table,
        comparison.figure,
    )
}

pub(super) fn rejections(setup: &Setup) -> Report {
    let change = "reduction of rejected requests (%)";
    let refused = |o: &Outcome| o.refused as f64;
    let comparison = compare(setup, "002-fig6", "requests refused", change, -1.0, refused);
    let finding = Finding::new(
        "rescheduling prevents rejections",
        "an important role",
        format!(
            "MDF rigid / preemptive / moldable / both: {} % fewer at ×1, {} % at ×1.5",
            comparison.of_mdf(0),
            comparison.of_mdf(2)
        ),
        Verdict::of(comparison.positive(3), 12),
    );
    let title = "Rejections of adaptive requests";
    report(title, "", vec![finding], comparison.table, comparison.figure)
}

pub(super) fn incentive(setup: &Setup) -> Report {
    let modes = results(setup)[2];
    let base = values(&modes[0], |o| o.profit(0.0));
    let mut table = Table::new(&[
        "incentive (%)",
        "profit",
        "profit gain over FIFO rigid (%)",
        "± 95 %",
    ]);
    let mut points = Vec::new();
    for percent in (0..=40).step_by(5).map(f64::from) {
        let seen = values(&modes[MDF_PREEMPTIVE], |o| o.profit(percent));
        let gain = percent_more(&seen, &base);
        let row = cells([percent, Summary::of(&seen).mean, gain.mean, gain.confidence]);
        table.rows.push(row.to_vec());
        points.push(Point::mean(percent, &gain));
    }
    let crossing = points
        .windows(2)
        .find(|pair| pair[0].y >= 0.0 && pair[1].y < 0.0)
        .map(|pair| {
            let part = pair[0].y / (pair[0].y - pair[1].y);
            pair[0].x + part * (pair[1].x - pair[0].x)
        });
    let near = crossing.is_some_and(|percent| (25.0..=40.0).contains(&percent));
    let finding = Finding::new(
        "the incentive from which the provider loses",
        "about 30 %",
        crossing.map_or("none up to 40 %".to_owned(), |percent| format!("{percent:.0} %")),
        Verdict::holds(near),
    )
    .because("judged by 25 to 40 %");
    let figure = Figure::lines(
        "002-fig7",
        "Profit with an incentive for preemptive requests, load ×1.5",
        ["incentive (% of the price)", "profit gain over FIFO rigid (%)"],
        [Series::new("MDF preemptive", points)],
    );
    let title = "What an incentive for preemptive requests may cost";
    report(title, "Load ×1.5.", vec![finding], table, figure)
}

/// A share of the moldable requests of each mode that has them, load by load.
fn shares(
    setup: &Setup,
    name: &str,
    what: &str,
    of: fn(&Outcome) -> Option<f64>,
) -> (Vec<Vec<Summary>>, Table, Figure) {
    let modes: Vec<usize> = (0..NAMES.len()).filter(|at| mode(*at).moldable).collect();
    let mut table = Table::new(&["load", "mode", what, "± 95 %", "standard deviation"]);
    let seen: Vec<Vec<Summary>> = (LOADS.into_iter().zip(results(setup)))
        .map(|(load, results)| {
            let of_mode = modes.iter().map(|at| {
                let known: Vec<f64> = results[*at].iter().filter_map(of).collect();
                let summary = Summary::of(&known);
                let mut row = vec![load_name(load), NAMES[*at].to_owned()];
                row.extend(spread(&summary));
                table.rows.push(row);
                summary
            });
            of_mode.collect()
        })
        .collect();
    let figure = Figure::lines(name, what, ["load (%)", what], lines(&modes, &seen));
    (seen, table, figure)
}

/// Of how many modes the share grows with the load, and all of them as text.
fn growing(seen: &[Vec<Summary>]) -> (usize, String) {
    let modes = seen[0].len();
    let grows = (0..modes)
        .filter(|mode| seen.is_sorted_by(|a, b| a[*mode].mean < b[*mode].mean))
        .count();
    let text = (0..modes).map(|mode| joined(seen.iter().map(|load| format!("{:.0}", load[mode].mean))));
    (grows, text.collect::<Vec<_>>().join(", "))
}

pub(super) fn shrunk(setup: &Setup) -> Report {
    let part = |o: &Outcome| (o.moldable > 0).then(|| 100.0 * o.shrunk as f64 / o.moldable as f64);
    let (seen, table, figure) = shares(setup, "002-fig8", "moldable requests on fewer nodes (%)", part);
    let (grows, text) = growing(&seen);
    let more = seen.iter().filter(|load| load[3].mean > load[2].mean).count();
    let findings = vec![
        Finding::new(
            "more moldable requests shrink in a fuller cluster",
            "the scheduler tends to",
            format!("for {grows} of 4 modes; FIFO moldable, both, MDF moldable, both by load (%): {text}"),
            Verdict::of(grows, 4),
        ),
        Finding::new(
            "more shrink where they can be cut too",
            "they do",
            format!("under MDF at {more} of 3 loads"),
            Verdict::of(more, 3),
        ),
    ];
    let about = "Of the accepted requests that could shrink.";
    report(
        "How many moldable requests shrink",
        about,
        findings,
        table,
        figure,
    )
}

pub(super) fn modification(setup: &Setup) -> Report {
    let mean = |o: &Outcome| (o.shrunk > 0).then(|| o.modification / o.shrunk as f64);
    let what = "mean modification of shrunk requests (%)";
    let (seen, table, figure) = shares(setup, "002-fig9", what, mean);
    let (grows, text) = growing(&seen);
    let finding = Finding::new(
        "requests that shrink do so further in a fuller cluster",
        "figure 9",
        format!("for {grows} of 4 modes; FIFO moldable, both, MDF moldable, both by load (%): {text}"),
        Verdict::Measured,
    )
    .because("the paper gives the figure without a number");
    let about = "100 % is R^min, 0 % R^max; the pieces of a request count by their work.";
    report(
        "How far moldable requests shrink",
        about,
        vec![finding],
        table,
        figure,
    )
}
