//! Papers 000 and 001: the effect of flexible intervals and alternatives on utilisation.

mod alternatives;
mod gains;

use scheduler::Order;

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::report::{Finding, Report, Verdict, cells};
use advisor::flexible::{LOADS, PHIS, Run, draws, play, utilisation_percent};
use advisor::statistics::Summary;
use advisor::table::Table;
use gains::{Gains, flexible_gains};

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "000-fifo",
        title: "Utilisation of rigid requests, first come first served",
        aliases: &["001-fifo"],
        run: fifo,
    },
    Experiment {
        name: "000-fig1",
        title: "Which order of the waiting requests fills the resource best",
        aliases: &["001-fig2"],
        run: orders,
    },
    Experiment {
        name: "000-fig2",
        title: "Longer intervals, higher utilisation",
        aliases: &["001-fig3"],
        run: intervals,
    },
    Experiment {
        name: "000-fig3",
        title: "The same where users overestimate their run times",
        aliases: &["001-fig4"],
        run: overestimates,
    },
    Experiment {
        name: "000-fig4",
        title: "Fixing requests before they start",
        aliases: &["001-fig5"],
        run: fixing,
    },
    Experiment {
        name: "000-fig5",
        title: "Alternatives instead of flexible intervals",
        aliases: &[],
        run: alternatives::all_sides,
    },
    Experiment {
        name: "000-fig6",
        title: "How far the accepted alternatives are from what was asked",
        aliases: &[],
        run: alternatives::deviations,
    },
    Experiment {
        name: "001-fig6",
        title: "Earlier alternatives only",
        aliases: &[],
        run: alternatives::earlier_only,
    },
    Experiment {
        name: "001-fig7",
        title: "How far the accepted earlier alternatives are from what was asked",
        aliases: &[],
        run: alternatives::earlier_deviations,
    },
];

/// The number of random orders; their mean is the baseline of figure 1. A single one would add its own noise to every comparison.
const SHUFFLES: u64 = 4;

/// Utilisations of rigid requests as paper 000 gives them (section 4.2).
const FIFO_OF_PAPER: [&str; 3] = ["46.8 ± 3.3", "50.9 ± 3.5", "54.7 ± 3.7"];
/// The same without trimming, by an independent implementation on version 4.2 of the log; runs must come within 0.8.
const FIFO_UNTRIMMED: [f64; 3] = [47.1, 51.4, 54.6];
const FIFO_TOLERANCE: f64 = 0.8;

/// A run over all windows.
struct Column {
    utilisation: Vec<f64>,
    /// Mean φ of the alternatives taken, in percent, of the windows that had any.
    phi: Vec<f64>,
}

/// Plays every run in every window.
fn columns(setup: &Setup, runs: &[Run]) -> Vec<Column> {
    let capacity = setup.workload.capacity;
    let played = setup.workers.map(setup.windows, |window| {
        let draws = draws(setup.seed, window);
        let results = runs.iter().map(|run| {
            let outcome = play(capacity, window, &draws, run);
            let phis: Vec<f64> = outcome
                .taken
                .values()
                .map(advisor::replay::Taken::phi_percent)
                .collect();
            (
                utilisation_percent(capacity, &outcome, run.load),
                Summary::of(&phis),
            )
        });
        results.collect::<Vec<_>>()
    });
    (0..runs.len())
        .map(|run| Column {
            utilisation: played.iter().map(|window| window[run].0).collect(),
            phi: played
                .iter()
                .map(|window| window[run].1)
                .filter(|phi| phi.count > 0)
                .map(|phi| phi.mean)
                .collect(),
        })
        .collect()
}

/// Of each load: submissions come faster by this factor.
fn load_name(load: u32) -> String {
    format!("×{}", f64::from(load) / 100.0)
}

fn phi_name(phi: usize) -> String {
    format!("φ {} %", PHIS[phi])
}

/// All combinations of a load and an index into [`PHIS`].
fn cells_of_loads() -> impl Iterator<Item = (u32, usize)> {
    LOADS
        .into_iter()
        .flat_map(|load| (0..PHIS.len()).map(move |phi| (load, phi)))
}

const UTILISATION_COLUMNS: &[&str] = &[
    "load",
    "φ (%)",
    "run",
    "utilisation (%)",
    "± 95 %",
    "standard deviation",
    "trimmed mean (%)",
    "trimmed standard deviation",
    "difference (points)",
    "difference ± 95 %",
];

/// A row of [`UTILISATION_COLUMNS`].
fn row(load: u32, phi: Option<usize>, name: &str, values: &[f64], base: Option<&[f64]>) -> Vec<String> {
    let mut row = vec![
        load_name(load),
        phi.map_or(String::new(), |phi| PHIS[phi].to_string()),
        name.to_owned(),
    ];
    row.extend(cells(&Summary::of(values)));
    match Summary::trimmed(values) {
        Some(trimmed) => row.extend([trimmed.mean, trimmed.deviation].map(|number| format!("{number:.2}"))),
        None => row.extend([String::new(), String::new()]),
    }
    match base.map(|base| Summary::of_differences(values, base)) {
        Some(difference) => {
            row.extend([difference.mean, difference.confidence].map(|number| format!("{number:.2}")));
        }
        None => row.extend([String::new(), String::new()]),
    }
    row
}

fn point(x: f64, summary: &Summary) -> Point {
    Point {
        x,
        y: summary.mean,
        error: summary.confidence,
    }
}

fn report(about: &str, findings: Vec<Finding>, table: Table, figures: Vec<Figure>) -> Report {
    Report {
        name: "",
        title: "",
        about: about.to_owned(),
        findings,
        table,
        figures,
    }
}

fn joined(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(" / ")
}

fn fifo(setup: &Setup) -> Report {
    let columns = columns(setup, &LOADS.map(Run::rigid));
    let mut table = Table::new(UTILISATION_COLUMNS);
    let mut within = 0;
    for (at, load) in LOADS.into_iter().enumerate() {
        let values = &columns[at].utilisation;
        table.rows.push(row(load, None, "FIFO, rigid", values, None));
        within += usize::from((Summary::of(values).mean - FIFO_UNTRIMMED[at]).abs() <= FIFO_TOLERANCE);
    }
    let trimmed = columns.iter().map(|column| {
        let summary =
            Summary::trimmed(&column.utilisation).unwrap_or_else(|| Summary::of(&column.utilisation));
        format!("{:.1} ± {:.1}", summary.mean, summary.deviation)
    });
    let plain = columns
        .iter()
        .map(|column| format!("{:.1}", Summary::of(&column.utilisation).mean));
    let findings = vec![
        Finding {
            what: "utilisation in percent, trimmed ± standard deviation, at ×1 / ×1.25 / ×1.5".to_owned(),
            paper: joined(FIFO_OF_PAPER.map(str::to_owned)),
            seen: joined(trimmed),
            verdict: Verdict::of(within, LOADS.len()),
            why: format!(
                "judged untrimmed: within {FIFO_TOLERANCE} points of 47.1 / 51.4 / 54.6, which are those of SDSC-SP2"
            ),
        },
        Finding {
            what: "the same, untrimmed".to_owned(),
            paper: "–".to_owned(),
            seen: joined(plain),
            verdict: Verdict::Measured,
            why: String::new(),
        },
    ];
    let figure = Figure {
        name: "000-fifo".to_owned(),
        title: "Rigid requests, first come first served".to_owned(),
        x_label: "load".to_owned(),
        y_label: "utilisation (%)".to_owned(),
        plot: Plot::Bars {
            groups: LOADS.map(load_name).to_vec(),
        },
        series: vec![Series {
            label: "FIFO, rigid".to_owned(),
            points: (0..)
                .zip(&columns)
                .map(|(x, c)| point(f64::from(x), &Summary::of(&c.utilisation)))
                .collect(),
        }],
    };
    report(
        "Node-seconds of accepted work inside the window, of those that there are. Every order gives this plan, as no rigid \
         request can move.",
        findings,
        table,
        vec![figure],
    )
}

fn orders(setup: &Setup) -> Report {
    const NAMES: [&str; 4] = ["EDF", "LFF", "BJF", "FIFO"];
    let orders = [Order::Edf, Order::Lff, Order::Bjf, Order::Fifo];
    let shuffles = (0..SHUFFLES).map(|shuffle| Order::Shuffle {
        seed: setup.seed ^ shuffle,
    });
    let all: Vec<Order> = orders.into_iter().chain(shuffles).collect();
    let runs: Vec<Run> = cells_of_loads()
        .flat_map(|(load, phi)| all.iter().map(move |order| Run::flexible(load, phi, *order)))
        .collect();
    let columns = columns(setup, &runs);
    let mut table = Table::new(UTILISATION_COLUMNS);
    let mut differences = Vec::new();
    let (mut in_order, mut edf_first) = (0, 0);
    for (cell, (load, phi)) in columns.chunks(all.len()).zip(cells_of_loads()) {
        let (sorted, shuffled) = cell.split_at(orders.len());
        let baseline: Vec<f64> = (0..setup.windows.len())
            .map(|window| shuffled.iter().map(|c| c.utilisation[window]).sum::<f64>() / SHUFFLES as f64)
            .collect();
        table.rows.push(row(load, Some(phi), "shuffle", &baseline, None));
        let of: Vec<Summary> = (sorted.iter().zip(NAMES))
            .map(|(column, name)| {
                table
                    .rows
                    .push(row(load, Some(phi), name, &column.utilisation, Some(&baseline)));
                Summary::of_differences(&column.utilisation, &baseline)
            })
            .collect();
        let means = [of[0].mean, of[1].mean, 0.0, of[2].mean, of[3].mean];
        in_order += usize::from(means.is_sorted_by(|before, after| before > after));
        edf_first += usize::from(means[1..].iter().all(|mean| means[0] > *mean));
        differences.push(of);
    }
    let edf: Vec<f64> = differences.iter().map(|of| of[0].mean).collect();
    let spread = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{low:+.1} … {high:+.1}")
    };
    let findings = vec![
        Finding {
            what: "EDF gives the highest utilisation in every cell".to_owned(),
            paper: "in all nine".to_owned(),
            seen: format!("in {edf_first} of 9; {} points over the shuffle", spread(&edf)),
            verdict: Verdict::of(edf_first, 9),
            why: String::new(),
        },
        Finding {
            what: "EDF > LFF > shuffle > BJF > FIFO".to_owned(),
            paper: "figure 1".to_owned(),
            seen: format!("in {in_order} of 9 cells"),
            verdict: Verdict::of(in_order, 9),
            why: "the shuffle and BJF are often closer than their intervals".to_owned(),
        },
    ];
    let figures = LOADS
        .into_iter()
        .zip(differences.chunks(PHIS.len()))
        .map(|(load, cells)| Figure {
            name: format!("000-fig1-load-{load}"),
            title: format!(
                "Order of the waiting requests against a random one, load {}",
                load_name(load)
            ),
            x_label: "mean length of the flexible intervals beyond the run time".to_owned(),
            y_label: "utilisation, difference (points)".to_owned(),
            plot: Plot::Bars {
                groups: (0..PHIS.len()).map(phi_name).collect(),
            },
            series: (0..NAMES.len())
                .map(|order| Series {
                    label: NAMES[order].to_owned(),
                    points: (0..)
                        .zip(cells)
                        .map(|(x, of)| point(f64::from(x), &of[order]))
                        .collect(),
                })
                .collect(),
        })
        .collect();
    report(
        &format!(
            "Utilisation less that of the same requests in random order (the mean of {SHUFFLES}), half of them flexible."
        ),
        findings,
        table,
        figures,
    )
}

fn longer_is_better(gains: &Gains) -> Finding {
    Finding {
        what: "the longer the interval, the higher the utilisation".to_owned(),
        paper: "at every load".to_owned(),
        seen: format!(
            "at {} of 3 loads; points at φ 25 / 50 / 100: {}",
            gains.monotone(),
            gains.text()
        ),
        verdict: Verdict::of(gains.monotone(), LOADS.len()),
        why: String::new(),
    }
}

fn intervals(setup: &Setup) -> Report {
    let gains = flexible_gains(setup, false);
    let findings = vec![longer_is_better(&gains)];
    let figure = gains.figure("000-fig2", "Flexible intervals, EDF, half of the requests");
    report(
        "Gain of utilisation over rigid requests.",
        findings,
        gains.table,
        vec![figure],
    )
}

fn overestimates(setup: &Setup) -> Report {
    let exact = flexible_gains(setup, false);
    let gains = flexible_gains(setup, true);
    let more: Vec<f64> = gains
        .relative
        .iter()
        .zip(&exact.relative)
        .map(|(a, b)| a - b)
        .collect();
    let higher = more.iter().filter(|more| **more > 0.0).count();
    let findings = vec![
        Finding {
            what: "flexibility matters more where users overestimate".to_owned(),
            paper: "figure 3 above figure 2".to_owned(),
            seen: format!(
                "relative gain higher in {higher} of 9 cells, by {} points",
                joined(more.iter().map(|more| format!("{more:+.1}")))
            ),
            verdict: Verdict::of(higher, 9),
            why: "relative to the rigid requests of the same runs".to_owned(),
        },
        longer_is_better(&gains),
    ];
    let figure = gains.figure("000-fig3", "Flexible intervals, EDF, run times overestimated");
    report(
        "A job really runs for a Poisson number of percent of its run time (mean 80, at most 100). At each early end the \
         rest of its slot is freed and the waiting requests are placed again.",
        findings,
        gains.table,
        vec![figure],
    )
}

fn fixing(setup: &Setup) -> Report {
    const PARTS: [Option<u32>; 5] = [Some(0), Some(25), Some(50), Some(75), None];
    let runs = PARTS.map(|fixing_percent| Run {
        fixing_percent,
        ..Run::flexible(125, 2, Order::Edf)
    });
    let columns = columns(setup, &runs);
    let base = &columns[0].utilisation;
    let name = |part: Option<u32>| part.map_or("never".to_owned(), |percent| format!("{percent} %"));
    let mut table = Table::new(UTILISATION_COLUMNS);
    let gains: Vec<Summary> = (columns.iter().zip(PARTS))
        .map(|(column, part)| {
            let name = format!("fixed after: {}", name(part));
            table
                .rows
                .push(row(125, Some(2), &name, &column.utilisation, Some(base)));
            Summary::of_differences(&column.utilisation, base)
        })
        .collect();
    let findings = vec![Finding {
        what: "the longer a request remains flexible, the higher the utilisation".to_owned(),
        paper: "figure 4".to_owned(),
        seen: format!(
            "points over fixing at once, after 25 % / 50 % / 75 % of the wait / never: {}",
            joined(gains[1..].iter().map(|gain| format!("{:+.2}", gain.mean)))
        ),
        verdict: Verdict::holds(gains.is_sorted_by(|a, b| a.mean < b.mean)),
        why: String::new(),
    }];
    let figure = Figure {
        name: "000-fig4".to_owned(),
        title: "Requests fixed to their slots after a part of their wait".to_owned(),
        x_label: "part of the wait after which a request is fixed".to_owned(),
        y_label: "utilisation, gain over fixing at once (points)".to_owned(),
        plot: Plot::Bars {
            groups: PARTS.map(name).to_vec(),
        },
        series: vec![Series {
            label: "EDF, load ×1.25, φ 100 %".to_owned(),
            points: (0..)
                .zip(&gains)
                .map(|(x, gain)| point(f64::from(x), gain))
                .collect(),
        }],
    };
    report(
        "Load ×1.25, intervals of φ 100 %, order EDF. A request is fixed to the slot that it has when the part of its wait \
         has passed.",
        findings,
        table,
        vec![figure],
    )
}
