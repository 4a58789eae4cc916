//! Papers 000 and 001: the effect of flexible intervals and alternatives on utilisation.

pub(super) mod alternatives;
mod gains;

use scheduler::{Fraction, Order};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::report::{Finding, Report, Verdict, cells, joined, load_name, mean, spread};
use advisor::flexible::{LOADS, PHIS, Run, draws, play, utilisation_percent};
use advisor::statistics::Summary;
use advisor::table::Table;
use gains::{Gains, flexible_gains};

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
    let played = setup.play(|window| {
        let draws = draws(setup.seed, window);
        let results = runs.iter().map(|run| {
            let outcome = play(capacity, window, &draws, run);
            let phis: Vec<f64> = (outcome.taken.values())
                .map(|taken| 100.0 * taken.phi())
                .collect();
            let phi = (!phis.is_empty()).then(|| Summary::of(&phis).mean);
            (utilisation_percent(capacity, &outcome, run.load), phi)
        });
        results.collect()
    });
    let column = |windows: Vec<(f64, Option<f64>)>| Column {
        utilisation: windows.iter().map(|of| of.0).collect(),
        phi: windows.iter().filter_map(|of| of.1).collect(),
    };
    played.into_iter().map(column).collect()
}

fn phi_name(phi: u32) -> String {
    format!("φ {phi} %")
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
    row.extend(spread(&Summary::of(values)));
    let trimmed = Summary::trimmed(values);
    row.extend(trimmed.map_or_else(Default::default, |of| cells([of.mean, of.deviation])));
    let difference = base.map(|base| Summary::of_differences(values, base));
    row.extend(difference.map_or_else(Default::default, |of| mean(&of)));
    row
}

pub(super) fn fifo(setup: &Setup) -> Report {
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
        Finding::new(
            "utilisation in percent, trimmed ± standard deviation, at ×1 / ×1.25 / ×1.5",
            joined(FIFO_OF_PAPER.map(str::to_owned)),
            joined(trimmed),
            Verdict::of(within, LOADS.len()),
        )
        .because(format!(
            "judged untrimmed: within {FIFO_TOLERANCE} points of 47.1 / 51.4 / 54.6, which are those of SDSC-SP2"
        )),
        Finding::own("the same, untrimmed", joined(plain), Verdict::Measured),
    ];
    let means = columns.iter().map(|column| Summary::of(&column.utilisation));
    let figure = Figure::bars(
        "000-fifo",
        "Rigid requests, first come first served",
        ["load", "utilisation (%)"],
        LOADS.map(load_name),
        [Series::bars("FIFO, rigid", means)],
    );
    Report::new(
        "Utilisation of rigid requests, first come first served",
        "Node-seconds of accepted work inside the window, of those that there are. Every order gives this plan, as no rigid \
         request can move.",
        findings,
        table,
        vec![figure],
    )
}

pub(super) fn orders(setup: &Setup) -> Report {
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
    let range = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{low:+.1} … {high:+.1}")
    };
    let findings = vec![
        Finding::new(
            "EDF gives the highest utilisation in every cell",
            "in all nine",
            format!("in {edf_first} of 9; {} points over the shuffle", range(&edf)),
            Verdict::of(edf_first, 9),
        ),
        Finding::new(
            "EDF > LFF > shuffle > BJF > FIFO",
            "figure 1",
            format!("in {in_order} of 9 cells"),
            Verdict::of(in_order, 9),
        )
        .because("the shuffle and BJF are often closer than their intervals"),
    ];
    let figure = |(load, cells): (u32, &[Vec<Summary>])| {
        let series = (0..).zip(NAMES).map(|(order, name): (usize, _)| {
            let of_order = cells.iter().map(|of| of[order]);
            Series::bars(name, of_order)
        });
        Figure::bars(
            format!("000-fig1-load-{load}"),
            format!(
                "Order of the waiting requests against a random one, load {}",
                load_name(load)
            ),
            [
                "mean length of the flexible intervals beyond the run time",
                "utilisation, difference (points)",
            ],
            PHIS.map(phi_name),
            series.collect::<Vec<_>>(),
        )
    };
    let of_loads = LOADS.into_iter().zip(differences.chunks(PHIS.len()));
    Report::new(
        "Which order of the waiting requests fills the resource best",
        format!(
            "Utilisation less that of the same requests in random order (the mean of {SHUFFLES}), half of them flexible."
        ),
        findings,
        table,
        of_loads.map(figure).collect(),
    )
}

fn longer_is_better(gains: &Gains) -> Finding {
    Finding::new(
        "the longer the interval, the higher the utilisation",
        "at every load",
        format!(
            "at {} of 3 loads; points at φ 25 / 50 / 100: {}",
            gains.monotone(),
            gains.text()
        ),
        Verdict::of(gains.monotone(), LOADS.len()),
    )
}

pub(super) fn intervals(setup: &Setup) -> Report {
    let gains = flexible_gains(setup, false);
    let figure = gains.figure("000-fig2", "Flexible intervals, EDF, half of the requests");
    Report::new(
        "Longer intervals, higher utilisation",
        "Gain of utilisation over rigid requests.",
        vec![longer_is_better(&gains)],
        gains.table,
        vec![figure],
    )
}

pub(super) fn overestimates(setup: &Setup) -> Report {
    let exact = flexible_gains(setup, false);
    let gains = flexible_gains(setup, true);
    let pairs = gains.relative.iter().zip(&exact.relative);
    let more: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
    let higher = more.iter().filter(|more| **more > 0.0).count();
    let findings = vec![
        Finding::new(
            "flexibility matters more where users overestimate",
            "figure 3 above figure 2",
            format!(
                "relative gain higher in {higher} of 9 cells, by {} points",
                joined(more.iter().map(|more| format!("{more:+.1}")))
            ),
            Verdict::of(higher, 9),
        )
        .because("relative to the rigid requests of the same runs"),
        longer_is_better(&gains),
    ];
    let figure = gains.figure("000-fig3", "Flexible intervals, EDF, run times overestimated");
    Report::new(
        "The same where users overestimate their run times",
        "A job really runs for a Poisson number of percent of its run time (mean 80, at most 100). At each early end the \
         rest of its slot is freed and the waiting requests are placed again.",
        findings,
        gains.table,
        vec![figure],
    )
}

pub(super) fn fixing(setup: &Setup) -> Report {
    const PARTS: [Option<u32>; 5] = [Some(0), Some(25), Some(50), Some(75), None];
    let runs = PARTS.map(|part| {
        let mut run = Run::flexible(125, 2, Order::Edf);
        run.policy.fixing = part.map(Fraction::percent);
        run
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
    let finding = Finding::new(
        "the longer a request remains flexible, the higher the utilisation",
        "figure 4",
        format!(
            "points over fixing at once, after 25 % / 50 % / 75 % of the wait / never: {}",
            joined(gains[1..].iter().map(|gain| format!("{:+.2}", gain.mean)))
        ),
        Verdict::holds(gains.is_sorted_by(|a, b| a.mean < b.mean)),
    );
    let figure = Figure::bars(
        "000-fig4",
        "Requests fixed to their slots after a part of their wait",
        [
            "part of the wait after which a request is fixed",
            "utilisation, gain over fixing at once (points)",
        ],
        PARTS.map(name),
        [Series::bars("EDF, load ×1.25, φ 100 %", gains)],
    );
    Report::new(
        "Fixing requests before they start",
        "Load ×1.25, intervals of φ 100 %, order EDF. A request is fixed to the slot that it has when the part of its wait \
         has passed.",
        vec![finding],
        table,
        vec![figure],
    )
}
