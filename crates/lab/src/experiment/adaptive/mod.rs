//! Paper 002: requests with a size and pieces that the provider may choose, and the provider's earnings from them.

mod protocol;

use scheduler::adaptive::Policy;

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::report::{Finding, Report, Verdict, cells};
use advisor::statistics::Summary;
use advisor::table::Table;
use protocol::{Mode, Outcome, asks, play};

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "002-fig4",
        title: "Profit of adaptive requests",
        aliases: &[],
        run: profit,
    },
    Experiment {
        name: "002-fig5",
        title: "Completion time of adaptive requests",
        aliases: &[],
        run: completion,
    },
    Experiment {
        name: "002-fig6",
        title: "Rejections of adaptive requests",
        aliases: &[],
        run: rejections,
    },
    Experiment {
        name: "002-fig7",
        title: "What an incentive for preemptive requests may cost",
        aliases: &[],
        run: incentive,
    },
    Experiment {
        name: "002-fig8",
        title: "How many moldable requests shrink",
        aliases: &[],
        run: shrunk,
    },
    Experiment {
        name: "002-fig9",
        title: "How far moldable requests shrink",
        aliases: &[],
        run: modification,
    },
];

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

/// Outcomes by load, mode and window.
pub(super) type Results = Vec<Vec<Vec<Outcome>>>;

/// Plays every mode at every load in every window; once, as all figures show the same runs.
fn results<'a>(setup: &'a Setup) -> &'a Results {
    setup.adaptive.get_or_init(|| {
        let capacity = setup.workload.capacity;
        let played = setup.workers.map(setup.windows, |window| {
            let asks = asks(setup.seed, window);
            let of_load = |load| std::array::from_fn::<_, 8, _>(|at| play(capacity, &asks, mode(at), load));
            LOADS.map(of_load)
        });
        let windows = |load: usize, mode: usize| played.iter().map(|window| window[load][mode]).collect();
        (0..LOADS.len())
            .map(|load| (0..NAMES.len()).map(|mode| windows(load, mode)).collect())
            .collect()
    })
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

fn point(x: f64, summary: &Summary) -> Point {
    Point {
        x,
        y: summary.mean,
        error: summary.confidence,
    }
}

const ABOUT: &str = "Sizes may shrink to 80 % above ten nodes, by a law k − c·R; 60 % of the requests may run in ten pieces; 20 % \
    pay three times as much and have no three days on top of five run times. FIFO places a request once, MDF places all that \
    waits anew.";

fn report(about: &str, findings: Vec<Finding>, table: Table, figure: Figure) -> Report {
    Report {
        name: "",
        title: "",
        about: format!("{ABOUT} {about}"),
        findings,
        table,
        figures: vec![figure],
    }
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
    for (load, modes) in LOADS.iter().zip(results(setup)) {
        let base = values(&modes[0], of);
        let mut of_load = Vec::new();
        for (name, outcomes) in NAMES.iter().zip(modes) {
            let seen = values(outcomes, of);
            let mut more = percent_more(&seen, &base);
            more.mean *= sign;
            let mut row = vec![format!("×{}", f64::from(*load) / 100.0), (*name).to_owned()];
            row.extend(cells(&Summary::of(&seen)));
            row.extend([more.mean, more.confidence].map(|number| format!("{number:.2}")));
            table.rows.push(row);
            of_load.push(more);
        }
        changes.push(of_load);
    }
    let series = (1..NAMES.len()).map(|mode| Series {
        label: NAMES[mode].to_owned(),
        points: (LOADS.iter().zip(&changes))
            .map(|(load, of)| point(f64::from(*load), &of[mode]))
            .collect(),
    });
    let figure = Figure {
        name: name.to_owned(),
        title: change.to_owned(),
        x_label: "load (%)".to_owned(),
        y_label: change.to_owned(),
        plot: Plot::Lines,
        series: series.collect(),
    };
    Comparison {
        changes,
        table,
        figure,
    }
}

impl Comparison {
    /// The changes of the four MDF modes at a load.
    fn of_mdf(&self, load: usize) -> String {
        let of = self.changes[load][MDF_RIGID..]
            .iter()
            .map(|change| format!("{:+.1}", change.mean));
        of.collect::<Vec<_>>().join(" / ")
    }

    /// The largest of those.
    fn largest(&self, load: usize) -> f64 {
        let of = self.changes[load][MDF_RIGID..].iter().map(|change| change.mean);
        of.fold(f64::NEG_INFINITY, f64::max)
    }
}

fn profit(setup: &Setup) -> Report {
    let comparison = compare(
        setup,
        "002-fig4",
        "profit",
        "profit gain over FIFO rigid (%)",
        1.0,
        |o| o.profit(0.0),
    );
    let changes = &comparison.changes;
    let positive = changes
        .iter()
        .flat_map(|of| &of[MDF_RIGID..])
        .filter(|change| change.is_positive())
        .count();
    let more_than_rigid = changes[2][MDF_PREEMPTIVE..]
        .iter()
        .filter(|c| c.mean > changes[2][MDF_RIGID].mean)
        .count();
    let grows = (MDF_RIGID..NAMES.len())
        .filter(|mode| changes.is_sorted_by(|a, b| a[*mode].mean < b[*mode].mean))
        .count();
    let findings = vec![
        Finding {
            what: "profit gain of MDF rigid / preemptive / moldable / both at load ×1".to_owned(),
            paper: "at most about 4.5 % (moldable, both)".to_owned(),
            seen: format!("{} %", comparison.of_mdf(0)),
            verdict: Verdict::of(positive, 12).of_number(comparison.largest(0), 4.5),
            why: "judged by whether it is surely positive (95 %) at all loads, and the largest by its distance from the paper's"
                .to_owned(),
        },
        Finding {
            what: "the same at load ×1.5".to_owned(),
            paper: "14 % with moldable or preemptive requests, 3 % of it over MDF rigid".to_owned(),
            seen: format!("{} %", comparison.of_mdf(2)),
            verdict: Verdict::of(more_than_rigid, 3).of_number(comparison.largest(2), 14.0),
            why: "judged by whether adaptive requests earn more than rigid ones under MDF, and the largest by its distance from the \
                  paper's"
                .to_owned(),
        },
        Finding {
            what: "the gain grows with the load".to_owned(),
            paper: "it does".to_owned(),
            seen: format!("for {grows} of 4 kinds of requests"),
            verdict: Verdict::of(grows, 4),
            why: String::new(),
        },
    ];
    report(
        "Profit in currency units of one per node and hour.",
        findings,
        comparison.table,
        comparison.figure,
    )
}

fn completion(setup: &Setup) -> Report {
    let change = "reduction of the completion time (%)";
    let comparison = compare(
        setup,
        "002-fig5",
        "completion after submission (s)",
        change,
        -1.0,
        |o| o.completion,
    );
    let shorter = comparison.changes[0][MDF_RIGID..]
        .iter()
        .filter(|change| change.is_positive())
        .count();
    let falls = (MDF_RIGID..NAMES.len())
        .filter(|mode| {
            comparison
                .changes
                .is_sorted_by(|a, b| a[*mode].mean > b[*mode].mean)
        })
        .count();
    let findings = vec![
        Finding {
            what: "placing anew completes requests sooner, at load ×1".to_owned(),
            paper: "up to 20 % sooner".to_owned(),
            seen: format!(
                "MDF rigid / preemptive / moldable / both: {} %",
                comparison.of_mdf(0)
            ),
            verdict: Verdict::of(shorter, 4).of_number(comparison.largest(0), 20.0),
            why: "judged by whether it is surely positive (95 %), and the largest by its distance from the paper's".to_owned(),
        },
        Finding {
            what: "the benefit shrinks with the load".to_owned(),
            paper: "it does".to_owned(),
            seen: format!("for {falls} of 4 kinds; at ×1.5: {} %", comparison.of_mdf(2)),
            verdict: Verdict::of(falls, 4),
            why: "under MDF more requests are accepted at a high load, and the further ones complete late"
                .to_owned(),
        },
    ];
    report(
        "Means of the accepted requests of a window.",
        findings,
        comparison.table,
        comparison.figure,
    )
}

fn rejections(setup: &Setup) -> Report {
    let change = "reduction of rejected requests (%)";
    let comparison = compare(setup, "002-fig6", "requests refused", change, -1.0, |o| {
        o.refused as f64
    });
    let fewer = comparison
        .changes
        .iter()
        .flat_map(|of| &of[MDF_RIGID..])
        .filter(|change| change.is_positive())
        .count();
    let findings = vec![Finding {
        what: "rescheduling prevents rejections".to_owned(),
        paper: "an important role".to_owned(),
        seen: format!(
            "MDF rigid / preemptive / moldable / both: {} % fewer at ×1, {} % at ×1.5",
            comparison.of_mdf(0),
            comparison.of_mdf(2)
        ),
        verdict: Verdict::of(fewer, 12),
        why: String::new(),
    }];
    report("", findings, comparison.table, comparison.figure)
}

fn incentive(setup: &Setup) -> Report {
    let modes = &results(setup)[2];
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
        let numbers = [percent, Summary::of(&seen).mean, gain.mean, gain.confidence];
        table
            .rows
            .push(numbers.map(|number| format!("{number:.2}")).to_vec());
        points.push(point(percent, &gain));
    }
    let crossing = points
        .windows(2)
        .find(|pair| pair[0].y >= 0.0 && pair[1].y < 0.0)
        .map(|pair| {
            let part = pair[0].y / (pair[0].y - pair[1].y);
            pair[0].x + part * (pair[1].x - pair[0].x)
        });
    let near = crossing.is_some_and(|percent| (25.0..=40.0).contains(&percent));
    let findings = vec![Finding {
        what: "the incentive from which the provider loses".to_owned(),
        paper: "about 30 %".to_owned(),
        seen: crossing.map_or("none up to 40 %".to_owned(), |percent| format!("{percent:.0} %")),
        verdict: Verdict::holds(near),
        why: "judged by 25 to 40 %".to_owned(),
    }];
    let figure = Figure {
        name: "002-fig7".to_owned(),
        title: "Profit with an incentive for preemptive requests, load ×1.5".to_owned(),
        x_label: "incentive (% of the price)".to_owned(),
        y_label: "profit gain over FIFO rigid (%)".to_owned(),
        plot: Plot::Lines,
        series: vec![Series {
            label: "MDF preemptive".to_owned(),
            points,
        }],
    };
    report("Load ×1.5.", findings, table, figure)
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
    let seen: Vec<Vec<Summary>> = (LOADS.iter().zip(results(setup)))
        .map(|(load, results)| {
            let of_mode = modes.iter().map(|at| {
                let known: Vec<f64> = results[*at].iter().filter_map(of).collect();
                let summary = Summary::of(&known);
                let mut row = vec![format!("×{}", f64::from(*load) / 100.0), NAMES[*at].to_owned()];
                row.extend(cells(&summary));
                table.rows.push(row);
                summary
            });
            of_mode.collect()
        })
        .collect();
    let series = modes.iter().enumerate().map(|(at, mode)| Series {
        label: NAMES[*mode].to_owned(),
        points: (LOADS.iter().zip(&seen))
            .map(|(load, of)| point(f64::from(*load), &of[at]))
            .collect(),
    });
    let figure = Figure {
        name: name.to_owned(),
        title: what.to_owned(),
        x_label: "load (%)".to_owned(),
        y_label: what.to_owned(),
        plot: Plot::Lines,
        series: series.collect(),
    };
    (seen, table, figure)
}

/// Of how many modes the share grows with the load, and all of them as text.
fn growing(seen: &[Vec<Summary>]) -> (usize, String) {
    let modes = seen[0].len();
    let grows = (0..modes)
        .filter(|mode| seen.is_sorted_by(|a, b| a[*mode].mean < b[*mode].mean))
        .count();
    let text = (0..modes)
        .map(|mode| {
            let of = seen
                .iter()
                .map(|load| format!("{:.0}", load[mode].mean))
                .collect::<Vec<_>>();
            of.join(" / ")
        })
        .collect::<Vec<_>>();
    (grows, text.join(", "))
}

fn shrunk(setup: &Setup) -> Report {
    let part = |o: &Outcome| (o.moldable > 0).then(|| 100.0 * o.shrunk as f64 / o.moldable as f64);
    let (seen, table, figure) = shares(setup, "002-fig8", "moldable requests on fewer nodes (%)", part);
    let (grows, text) = growing(&seen);
    let more = seen.iter().filter(|load| load[3].mean > load[2].mean).count();
    let findings = vec![
        Finding {
            what: "more moldable requests shrink in a fuller cluster".to_owned(),
            paper: "the scheduler tends to".to_owned(),
            seen: format!(
                "for {grows} of 4 modes; FIFO moldable, both, MDF moldable, both by load (%): {text}"
            ),
            verdict: Verdict::of(grows, 4),
            why: String::new(),
        },
        Finding {
            what: "more shrink where they can be cut too".to_owned(),
            paper: "they do".to_owned(),
            seen: format!("under MDF at {more} of 3 loads"),
            verdict: Verdict::of(more, 3),
            why: String::new(),
        },
    ];
    report(
        "Of the accepted requests that could shrink.",
        findings,
        table,
        figure,
    )
}

fn modification(setup: &Setup) -> Report {
    let mean = |o: &Outcome| (o.shrunk > 0).then(|| o.modification / o.shrunk as f64);
    let (seen, table, figure) = shares(
        setup,
        "002-fig9",
        "mean modification of shrunk requests (%)",
        mean,
    );
    let (grows, text) = growing(&seen);
    let findings = vec![Finding {
        what: "requests that shrink do so further in a fuller cluster".to_owned(),
        paper: "figure 9".to_owned(),
        seen: format!("for {grows} of 4 modes; FIFO moldable, both, MDF moldable, both by load (%): {text}"),
        verdict: Verdict::Measured,
        why: "the paper gives the figure without a number".to_owned(),
    }];
    report(
        "100 % is R^min, 0 % R^max; the pieces of a request count by their work.",
        findings,
        table,
        figure,
    )
}
