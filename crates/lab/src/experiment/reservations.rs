//! Papers 000 and 001: the effect of flexible intervals and alternatives on utilisation.

use scheduler::{Fraction, Order};

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{
    Finding, Report, count_reported_cases, join_results, load_name, mean_cells, number_cells, report_table,
    rows_of_report_grid, spread_cells, summary_of_values,
};
use advisor::flexible::{
    FlexibleRun, LOADS, PHIS, Takers, draw_flexible_jobs, flexible_utilisation_percent, play_flexible_run,
};
use advisor::statistics::Summary;

/// The number of random orders; their mean is the baseline of figure 1. A single one would add its own noise to every comparison.
const SHUFFLES: u64 = 4;

/// Utilisations of rigid requests as paper 000 gives them (section 4.2).
const FIFO_OF_PAPER: &str = "46.8 ± 3.3 / 50.9 ± 3.5 / 54.7 ± 3.7";
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
fn play_reservation_runs(setup: &Setup, runs: &[FlexibleRun]) -> Vec<Column> {
    let capacity = setup.workload.capacity;
    let played = setup.play(|window| {
        let draws = draw_flexible_jobs(setup.seed, window);
        let results = runs.iter().map(|run| {
            let outcome = play_flexible_run(capacity, window, &draws, run);
            let phi = summary_of_values(outcome.taken.values().map(|taken| 100.0 * taken.phi()));
            let phi = (phi.count > 0).then_some(phi.mean);
            (flexible_utilisation_percent(capacity, &outcome, run.load), phi)
        });
        results.collect()
    });
    let column = |windows: Vec<(f64, Option<f64>)>| Column {
        utilisation: windows.iter().map(|window| window.0).collect(),
        phi: windows.iter().filter_map(|window| window.1).collect(),
    };
    played.into_iter().map(column).collect()
}

fn phi_name(phi: u32) -> String {
    format!("φ {phi} %")
}

/// All combinations of a load and an index into [`PHIS`].
fn reservation_cells() -> impl Iterator<Item = (u32, usize)> {
    let of_load = |load| [(load, 0), (load, 1), (load, 2)];
    LOADS.into_iter().flat_map(of_load)
}

const UTILISATION_COLUMNS: &str = "load | φ (%) | run | utilisation (%) | ± 95 % | standard deviation | trimmed mean (%) | \
    trimmed standard deviation | difference (points) | difference ± 95 %";

/// A row of [`UTILISATION_COLUMNS`].
fn reservation_row(
    load: u32,
    phi: Option<usize>,
    name: &str,
    values: &[f64],
    base: Option<&[f64]>,
) -> Vec<String> {
    let phi = phi.map_or(String::new(), |phi| PHIS[phi].to_string());
    let none = || vec![String::new(); 2];
    let trimmed = Summary::trimmed(values).map(|summary| number_cells([summary.mean, summary.deviation]));
    let difference = base.map(|base| mean_cells(&Summary::of_differences(values, base)));
    [
        vec![load_name(load), phi, name.to_owned()],
        spread_cells(&Summary::of(values)),
        trimmed.unwrap_or_else(none),
        difference.unwrap_or_else(none),
    ]
    .concat()
}

pub(super) fn report_fifo_reservations(setup: &Setup) -> Report {
    let columns = play_reservation_runs(setup, &LOADS.map(FlexibleRun::rigid));
    let values = || columns.iter().map(|column| &column.utilisation);
    let seen: Vec<Summary> = values().map(|values| Summary::of(values)).collect();
    let near = |(seen, expected): (&Summary, f64)| (seen.mean - expected).abs() <= FIFO_TOLERANCE;
    let (within, loads) = count_reported_cases(seen.iter().zip(FIFO_UNTRIMMED).map(near));
    let trimmed = values().zip(&seen).map(|(values, seen)| {
        let summary = Summary::trimmed(values).unwrap_or(*seen);
        format!("{:.1} ± {:.1}", summary.mean, summary.deviation)
    });
    let findings = [
        Finding::new("utilisation in percent, trimmed ± standard deviation, at ×1 / ×1.25 / ×1.5")
            .paper(FIFO_OF_PAPER)
            .seen(join_results(trimmed))
            .counted(within, loads)
            .because(format!(
                "judged untrimmed: within {FIFO_TOLERANCE} points of 47.1 / 51.4 / 54.6, which are those of SDSC-SP2"
            )),
        Finding::new("the same, untrimmed").seen(join_results(seen.iter().map(|seen| format!("{:.1}", seen.mean)))),
    ];
    let rows = LOADS.into_iter().zip(values());
    let rows = rows.map(|(load, values)| reservation_row(load, None, "FIFO, rigid", values, None));
    let figure = Figure::new("Rigid requests, first come first served")
        .x("load")
        .y("utilisation (%)")
        .bars(LOADS.map(load_name), [Series::bars("FIFO, rigid", seen)]);
    Report::new("Utilisation of rigid requests, first come first served")
        .about(
            "Node-seconds of accepted work inside the window, of those that there are. Every order gives this plan, as no rigid \
             request can move.",
        )
        .with(findings, report_table(UTILISATION_COLUMNS, rows), [figure])
}

pub(super) fn report_reservation_orders(setup: &Setup) -> Report {
    const NAMES: [&str; 4] = ["EDF", "LFF", "BJF", "FIFO"];
    let orders = [Order::Edf, Order::Lff, Order::Bjf, Order::Fifo];
    let seeds = (0..SHUFFLES).map(|shuffle| setup.seed ^ shuffle);
    let shuffles = seeds.map(|seed| Order::Shuffle { seed });
    let all: Vec<Order> = orders.into_iter().chain(shuffles).collect();
    let runs: Vec<FlexibleRun> = reservation_cells()
        .flat_map(|(load, phi)| {
            all.iter()
                .map(move |order| FlexibleRun::flexible(load, phi, *order))
        })
        .collect();
    let mut rows = Vec::new();
    let mut differences = Vec::new();
    let (mut in_order, mut edf_first) = (0, 0);
    for (cell, (load, phi)) in play_reservation_runs(setup, &runs)
        .chunks(all.len())
        .zip(reservation_cells())
    {
        let (sorted, shuffled) = cell.split_at(orders.len());
        let baseline: Vec<f64> = (0..setup.windows.len())
            .map(|window| shuffled.iter().map(|c| c.utilisation[window]).sum::<f64>() / SHUFFLES as f64)
            .collect();
        rows.push(reservation_row(load, Some(phi), "shuffle", &baseline, None));
        let mut of_cell = Vec::new();
        for (Column { utilisation, .. }, name) in sorted.iter().zip(NAMES) {
            rows.push(reservation_row(
                load,
                Some(phi),
                name,
                utilisation,
                Some(&baseline),
            ));
            of_cell.push(Summary::of_differences(utilisation, &baseline));
        }
        let [edf, lff, bjf, fifo] = [0, 1, 2, 3].map(|order: usize| of_cell[order].mean);
        let means = [edf, lff, 0.0, bjf, fifo];
        in_order += usize::from(means.is_sorted_by(|before, after| before > after));
        edf_first += usize::from(means[1..].iter().all(|mean| edf > *mean));
        differences.push(of_cell);
    }
    let edf = || differences.iter().map(|difference| difference[0].mean);
    let low = edf().fold(f64::INFINITY, f64::min);
    let high = edf().fold(f64::NEG_INFINITY, f64::max);
    let of_edf = format!("in {edf_first} of 9; {low:+.1} … {high:+.1} points over the shuffle");
    let findings = [
        Finding::new("EDF gives the highest utilisation in every cell")
            .paper("in all nine")
            .seen(of_edf)
            .counted(edf_first, 9),
        Finding::new("EDF > LFF > shuffle > BJF > FIFO")
            .paper("figure 1")
            .seen(format!("in {in_order} of 9 cells"))
            .counted(in_order, 9)
            .because("the shuffle and BJF are often closer than their intervals"),
    ];
    let figure = |(load, cells): (u32, &[Vec<Summary>])| {
        let load_name = load_name(load);
        let title = format!("Order of the waiting requests against a random one, load {load_name}");
        Figure::new(title)
            .named(format!("000-fig1-load-{load}"))
            .x("mean length of the flexible intervals beyond the run time")
            .y("utilisation, difference (points)")
            .bars(PHIS.map(phi_name), Series::over(0.., NAMES, cells))
    };
    let of_loads = LOADS.into_iter().zip(differences.chunks(PHIS.len()));
    let figures: Vec<Figure> = of_loads.map(figure).collect();
    Report::new("Which order of the waiting requests fills the resource best")
        .about(format!(
            "Utilisation less that of the same requests in random order (the mean of {SHUFFLES}), half of them flexible."
        ))
        .with(findings, report_table(UTILISATION_COLUMNS, rows), figures)
}

pub(super) fn report_reservation_intervals(setup: &Setup) -> Report {
    let gains = flexible_reservation_gains(setup, false);
    let finding = gains.longer_is_better();
    let report =
        Report::new("Longer intervals, higher utilisation").about("Gain of utilisation over rigid requests.");
    gains.report(report, [finding], "Flexible intervals, EDF, half of the requests")
}

pub(super) fn report_reservation_overestimates(setup: &Setup) -> Report {
    let exact = flexible_reservation_gains(setup, false);
    let gains = flexible_reservation_gains(setup, true);
    let more = |claim: &str, pairs: Vec<(f64, f64)>, why: &str| {
        let (higher, cells) = count_reported_cases(pairs.iter().map(|(a, b)| a > b));
        let by = join_results(pairs.iter().map(|(a, b)| format!("{:+.1}", a - b)));
        Finding::new(claim)
            .paper("figure 3 above figure 2")
            .seen(format!("higher in {higher} of {cells} cells, by {by}"))
            .counted(higher, cells)
            .because(why)
    };
    let points = |gains: &ReservationGains| gains.points.concat().into_iter().map(|gain| gain.mean);
    let relative = gains.relative.iter().copied().zip(exact.relative.iter().copied());
    let findings = [
        more(
            "flexibility matters more where users overestimate, in percent of the rigid requests' utilisation",
            relative.collect(),
            "of the rigid requests of the same runs",
        ),
        more(
            "the same in points, as the figures are drawn",
            points(&gains).zip(points(&exact)).collect(),
            "rigid requests that end early use less, and a gain on less is fewer points",
        ),
        gains.longer_is_better(),
    ];
    let report = Report::new("The same where users overestimate their run times").about(
        "A job really runs for a Poisson number of percent of its run time (mean 80, at most 100). At each early end the \
         rest of its slot is freed and the waiting requests are placed again.",
    );
    let figure = "Flexible intervals, EDF, run times overestimated";
    gains.report(report, findings, figure)
}

pub(super) fn report_reservation_fixing(setup: &Setup) -> Report {
    const PARTS: [Option<u32>; 5] = [Some(0), Some(25), Some(50), Some(75), None];
    let runs = PARTS.map(|part| {
        let mut run = FlexibleRun::flexible(125, 2, Order::Edf);
        run.policy.fixing = part.map(Fraction::percent);
        run
    });
    let columns = play_reservation_runs(setup, &runs);
    let base = &columns[0].utilisation;
    let names = PARTS.map(|part| part.map_or("never".to_owned(), |percent| format!("{percent} %")));
    let rows = (columns.iter().zip(&names)).map(|(column, name)| {
        let name = format!("fixed after: {name}");
        reservation_row(125, Some(2), &name, &column.utilisation, Some(base))
    });
    let rows = report_table(UTILISATION_COLUMNS, rows);
    let gains: Vec<Summary> = (columns.iter())
        .map(|column| Summary::of_differences(&column.utilisation, base))
        .collect();
    let points = join_results(gains[1..].iter().map(|gain| format!("{:+.2}", gain.mean)));
    let seen = format!("points over fixing at once, after 25 % / 50 % / 75 % of the wait / never: {points}");
    let finding = Finding::new("the longer a request remains flexible, the higher the utilisation")
        .paper("figure 4")
        .seen(seen)
        .holds(gains.is_sorted_by(|a, b| a.mean < b.mean));
    let figure = Figure::new("Requests fixed to their slots after a part of their wait")
        .x("part of the wait after which a request is fixed")
        .y("utilisation, gain over fixing at once (points)")
        .bars(names, [Series::bars("EDF, load ×1.25, φ 100 %", gains)]);
    Report::new("Fixing requests before they start")
        .about(
            "Load ×1.25, intervals of φ 100 %, order EDF. A request is fixed to the slot that it has when the part of its wait \
             has passed.",
        )
        .with([finding], rows, [figure])
}

/// Gains over a base for each load and φ.
struct ReservationGains {
    /// Of a table with [`UTILISATION_COLUMNS`].
    rows: Vec<Vec<String>>,
    /// In points, by load and then φ.
    points: Vec<Vec<Summary>>,
    /// In percent of the base, in the same order.
    relative: Vec<f64>,
}

/// The gain of `run` at a load and a φ over the rigid requests of the same load; where users overestimate, in both.
fn measure_reservation_gains(
    setup: &Setup,
    name: &str,
    overestimated: bool,
    run: impl Fn(u32, usize) -> FlexibleRun,
) -> ReservationGains {
    let of_load = |load| [FlexibleRun::rigid(load), run(load, 0), run(load, 1), run(load, 2)];
    let runs = LOADS.map(of_load).concat();
    let runs: Vec<FlexibleRun> = (runs.into_iter())
        .map(|run| FlexibleRun { overestimated, ..run })
        .collect();
    let (mut rows, mut points, mut relative) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, load) in play_reservation_runs(setup, &runs)
        .chunks(1 + PHIS.len())
        .zip(LOADS)
    {
        let base = &cell[0].utilisation;
        rows.push(reservation_row(load, None, "rigid", base, None));
        let mut of_load = Vec::new();
        for (phi, column) in cell[1..].iter().enumerate() {
            rows.push(reservation_row(
                load,
                Some(phi),
                name,
                &column.utilisation,
                Some(base),
            ));
            let difference = Summary::of_differences(&column.utilisation, base);
            relative.push(100.0 * difference.mean / Summary::of(base).mean.max(f64::MIN_POSITIVE));
            of_load.push(difference);
        }
        points.push(of_load);
    }
    ReservationGains {
        rows,
        points,
        relative,
    }
}

impl ReservationGains {
    /// The gains in points, load by load.
    fn text(&self) -> String {
        let of_load = |(each, load): (&Vec<Summary>, u32)| {
            let points = join_results(each.iter().map(|s| format!("{:+.1}", s.mean)));
            format!("{points} ({})", load_name(load))
        };
        let texts: Vec<String> = self.points.iter().zip(LOADS).map(of_load).collect();
        texts.join(", ")
    }

    fn longer_is_better(&self) -> Finding {
        let grows = |summaries: &&Vec<Summary>| {
            summaries.is_sorted_by(|a, b| a.mean < b.mean) && summaries[0].mean > 0.0
        };
        let monotone = self.points.iter().filter(grows).count();
        let text = self.text();
        let seen = format!("at {monotone} of 3 loads; points at φ 25 / 50 / 100: {text}");
        Finding::new("the longer the interval, the higher the utilisation")
            .paper("at every load")
            .seen(seen)
            .counted(monotone, LOADS.len())
    }

    /// With the gains over φ as a figure.
    fn report(self, report: Report, findings: impl Into<Vec<Finding>>, figure: &str) -> Report {
        let figure = Figure::new(figure)
            .x("φ (% of the run time)")
            .y("utilisation, gain over rigid (points)")
            .lines(reservation_series_over_phi(&self.points));
        report.with(findings, report_table(UTILISATION_COLUMNS, self.rows), [figure])
    }
}

/// A series for each load, with a point for each φ.
fn reservation_series_over_phi(cells: &[Vec<Summary>]) -> Vec<Series> {
    let series = |(each, load): (&Vec<Summary>, u32)| {
        let points = each.iter().zip(PHIS);
        let points = points.map(|(s, phi)| Point::mean(f64::from(phi), s));
        Series::new(format!("load {}", load_name(load)), points)
    };
    cells.iter().zip(LOADS).map(series).collect()
}

/// The gain of flexible requests in order of deadlines.
fn flexible_reservation_gains(setup: &Setup, overestimated: bool) -> ReservationGains {
    measure_reservation_gains(setup, "EDF, flexible", overestimated, |load, phi| {
        FlexibleRun::flexible(load, phi, Order::Edf)
    })
}

/// Figure 5 of paper 000, and figure 6 of paper 001, which offers earlier slots only.
pub(super) fn report_reservation_alternatives_gain(setup: &Setup, earlier_only: bool) -> Report {
    let (name, title, which) = if earlier_only {
        let which = "Only slots before the ready time are offered. ";
        ("001-fig6", "Earlier alternatives only", which)
    } else {
        ("000-fig5", "Alternatives instead of flexible intervals", "")
    };
    let of_takers = |name, takers| {
        let run = |load, phi| FlexibleRun::with_alternatives(load, phi, takers, earlier_only);
        measure_reservation_gains(setup, name, false, run)
    };
    let flexible = flexible_reservation_gains(setup, false);
    let half = of_takers("alternatives for half", Takers::Half);
    let all = of_takers("alternatives for all", Takers::All);
    let cells = |gains: &ReservationGains| gains.points.concat().into_iter();
    let less = |who: &str, gains: &ReservationGains| {
        let pairs = cells(gains).zip(cells(&flexible));
        let (below, all) = count_reported_cases(pairs.map(|(a, b)| a.mean < b.mean));
        let claim = format!("alternatives gain less than flexible intervals, taken by {who}");
        Finding::new(claim)
            .paper("less")
            .seen(format!("less in {below} of {all} cells: {}", gains.text()))
            .counted(below, all)
    };
    let (positive, cells) = count_reported_cases(cells(&half).map(|gain| gain.is_positive()));
    let seen = format!("surely (95 %) in {positive} of {cells} cells, taken by half of the users");
    let findings = [
        Finding::new("alternatives raise the utilisation")
            .paper("they do")
            .seen(seen)
            .counted(positive, cells),
        less("half of the users, as half are flexible in figure 2", &half),
        less("all users", &all),
    ];
    let figure = |(at, load): (usize, u32)| {
        let bars = |label, gains: &ReservationGains| Series::bars(label, gains.points[at].iter().copied());
        let load_name = load_name(load);
        let series = [
            bars("flexible intervals, half", &flexible),
            bars("alternatives, half", &half),
            bars("alternatives, all", &all),
        ];
        let title = format!("Alternatives against flexible intervals, load {load_name}");
        Figure::new(title)
            .named(format!("{name}-load-{load}"))
            .x("threshold of alternatives, or mean length of intervals")
            .y("utilisation, gain over rigid (points)")
            .bars(PHIS.map(phi_name), series)
    };
    let figures: Vec<Figure> = LOADS.into_iter().enumerate().map(figure).collect();
    let further = half.rows.into_iter().chain(all.rows);
    let rows = (flexible.rows.into_iter()).chain(further.filter(|row| row[2] != "rigid"));
    Report::new(title)
        .about(format!(
            "Rigid requests, order EDF; after a refusal the nearest slot within the threshold φ is offered, and taken. {which}\
             The papers do not say who takes them, so both readings are run."
        ))
        .with(findings, report_table(UTILISATION_COLUMNS, rows), figures)
}

/// Figure 6 of paper 000, and figure 7 of paper 001, which offers earlier slots only.
pub(super) fn report_reservation_alternative_deviations(setup: &Setup, earlier_only: bool) -> Report {
    let title = if earlier_only {
        "How far the accepted earlier alternatives are from what was asked"
    } else {
        "How far the accepted alternatives are from what was asked"
    };
    let runs: Vec<FlexibleRun> = reservation_cells()
        .map(|(load, phi)| FlexibleRun::with_alternatives(load, phi, Takers::All, earlier_only))
        .collect();
    let seen: Vec<Vec<Summary>> = (play_reservation_runs(setup, &runs).chunks(PHIS.len()))
        .map(|of_load| of_load.iter().map(|column| Summary::of(&column.phi)).collect())
        .collect();
    let text = |seen: &Summary| [spread_cells(seen), vec![seen.count.to_string()]].concat();
    let rows = rows_of_report_grid(
        &LOADS.map(load_name),
        &PHIS.map(|phi| phi.to_string()),
        &seen,
        text,
    );
    let near = (seen.iter().flatten().zip(PHIS.into_iter().cycle()))
        .filter(|(seen, phi)| seen.mean + seen.confidence >= f64::from(*phi))
        .count();
    let means = join_results(seen.iter().flatten().map(|phi| format!("{:.0}", phi.mean)));
    let claim = "the mean φ of accepted alternatives is not significantly less than the threshold";
    let finding = Finding::new(claim)
        .paper("not less")
        .seen(format!("means at φ 25 / 50 / 100, load by load: {means}"))
        .counted(near, 9)
        .because("the nearest slot is taken, so deviations spread from 0 to the threshold: about half of it");
    let headings = "load | threshold φ (%) | mean φ (%) | ± 95 % | standard deviation | windows";
    let figure = Figure::new("Deviation of accepted alternatives")
        .x("threshold φ (% of the run time)")
        .y("mean φ of accepted alternatives (%)")
        .lines(reservation_series_over_phi(&seen));
    Report::new(title)
        .about("Rigid requests, alternatives taken by all users.")
        .with([finding], report_table(headings, rows), [figure])
}
