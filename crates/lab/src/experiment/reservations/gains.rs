//! Gains of utilisation over rigid requests, load by load.

use scheduler::Order;

use super::super::setup::Setup;
use super::{UTILISATION_COLUMNS, play_runs, utilisation_row};
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, join_results, load_name, report_table};
use advisor::flexible::{LOADS, PHIS, WindowRun};
use advisor::statistics::Summary;

/// Gains over a base for each load and φ.
pub(super) struct Gains {
    /// Of a table with [`UTILISATION_COLUMNS`].
    pub(super) rows: Vec<Vec<String>>,
    /// In points, by load and then φ.
    pub(super) points: Vec<Vec<Summary>>,
    /// In percent of the base, in the same order.
    pub(super) relative: Vec<f64>,
}

/// The gain of `run` at a load and a φ over the rigid requests of the same load; where users overestimate, in both.
pub(super) fn measure_gains(
    setup: &Setup,
    name: &str,
    overestimated: bool,
    run: impl Fn(u32, usize) -> WindowRun,
) -> Gains {
    let of_load = |load| [WindowRun::rigid(load), run(load, 0), run(load, 1), run(load, 2)];
    let runs = LOADS.map(of_load).concat();
    let runs: Vec<WindowRun> = (runs.into_iter())
        .map(|run| WindowRun { overestimated, ..run })
        .collect();
    let (mut rows, mut points, mut relative) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, load) in play_runs(setup, &runs).chunks(1 + PHIS.len()).zip(LOADS) {
        let base = &cell[0].utilisation;
        rows.push(utilisation_row(load, None, "rigid", base, None));
        let mut of_load = Vec::new();
        for (phi, column) in cell[1..].iter().enumerate() {
            rows.push(utilisation_row(
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
    Gains {
        rows,
        points,
        relative,
    }
}

impl Gains {
    /// The gains in points, load by load.
    pub(super) fn text(&self) -> String {
        let of_load = |(each, load): (&Vec<Summary>, u32)| {
            let points = join_results(each.iter().map(|s| format!("{:+.1}", s.mean)));
            format!("{points} ({})", load_name(load))
        };
        let texts: Vec<String> = self.points.iter().zip(LOADS).map(of_load).collect();
        texts.join(", ")
    }

    pub(super) fn longer_is_better(&self) -> Finding {
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
    pub(super) fn report(self, report: Report, findings: impl Into<Vec<Finding>>, figure: &str) -> Report {
        let figure = Figure::new(figure)
            .x("φ (% of the run time)")
            .y("utilisation, gain over rigid (points)")
            .lines(series_over_phi(&self.points));
        report.with(findings, report_table(UTILISATION_COLUMNS, self.rows), [figure])
    }
}

/// A series for each load, with a point for each φ.
pub(super) fn series_over_phi(cells: &[Vec<Summary>]) -> Vec<Series> {
    let series = |(each, load): (&Vec<Summary>, u32)| {
        let points = each.iter().zip(PHIS);
        let points = points.map(|(s, phi)| Point::mean(f64::from(phi), s));
        Series::new(format!("load {}", load_name(load)), points)
    };
    cells.iter().zip(LOADS).map(series).collect()
}

/// The gain of flexible requests in order of deadlines.
pub(super) fn flexible_gains(setup: &Setup, overestimated: bool) -> Gains {
    measure_gains(setup, "EDF, flexible", overestimated, |load, phi| {
        WindowRun::flexible(load, phi, Order::Edf)
    })
}
