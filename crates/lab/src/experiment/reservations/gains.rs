//! Gains of utilisation over rigid requests, load by load.

use scheduler::Order;

use super::super::setup::Setup;
use super::{UTILISATION_COLUMNS, columns, row};
use crate::figure::{Figure, Point, Series};
use crate::report::{joined, load_name};
use advisor::flexible::{LOADS, PHIS, Run};
use advisor::statistics::Summary;
use advisor::table::Table;

/// Gains over a base for each load and φ.
pub(super) struct Gains {
    pub(super) table: Table,
    /// In points, by load and then φ.
    pub(super) points: Vec<Summary>,
    /// In percent of the base.
    pub(super) relative: Vec<f64>,
}

/// The gain of `run` over the rigid requests of the same load; `like` sets the options that both have in common.
pub(super) fn gains(
    setup: &Setup,
    name: &str,
    like: impl Fn(Run) -> Run,
    run: impl Fn(u32, usize) -> Run,
) -> Gains {
    let runs: Vec<Run> = LOADS
        .into_iter()
        .flat_map(|load| {
            let flexible = (0..PHIS.len()).map(|phi| run(load, phi)).map(&like);
            std::iter::once(like(Run::rigid(load)))
                .chain(flexible)
                .collect::<Vec<_>>()
        })
        .collect();
    let mut gains = Gains {
        table: Table::new(UTILISATION_COLUMNS),
        points: Vec::new(),
        relative: Vec::new(),
    };
    for (cell, load) in columns(setup, &runs).chunks(1 + PHIS.len()).zip(LOADS) {
        let base = &cell[0].utilisation;
        gains.table.rows.push(row(load, None, "rigid", base, None));
        for (phi, column) in cell[1..].iter().enumerate() {
            let difference = Summary::of_differences(&column.utilisation, base);
            gains
                .table
                .rows
                .push(row(load, Some(phi), name, &column.utilisation, Some(base)));
            gains
                .relative
                .push(100.0 * difference.mean / Summary::of(base).mean.max(f64::MIN_POSITIVE));
            gains.points.push(difference);
        }
    }
    gains
}

impl Gains {
    /// At how many loads the gain grows with φ.
    pub(super) fn monotone(&self) -> usize {
        let grows = |of: &&[Summary]| of.is_sorted_by(|a, b| a.mean < b.mean) && of[0].mean > 0.0;
        self.points.chunks(PHIS.len()).filter(grows).count()
    }

    /// The gains in points, load by load.
    pub(super) fn text(&self) -> String {
        let of_load = |of: &[Summary]| joined(of.iter().map(|s| format!("{:+.1}", s.mean)));
        let loads = self.points.chunks(PHIS.len()).zip(LOADS);
        loads
            .map(|(of, load)| format!("{} ({})", of_load(of), load_name(load)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The gains over φ.
    pub(super) fn figure(&self, name: &str, title: &str) -> Figure {
        let labels = ["φ (% of the run time)", "utilisation, gain over rigid (points)"];
        Figure::lines(name, title, labels, series_over_phi(&self.points))
    }
}

/// A series for each load, with a point for each φ.
pub(super) fn series_over_phi(cells: &[Summary]) -> Vec<Series> {
    let series = |(of, load): (&[Summary], u32)| {
        let points = of.iter().zip(PHIS);
        let points = points.map(|(s, phi)| Point::mean(f64::from(phi), s));
        Series::new(format!("load {}", load_name(load)), points)
    };
    cells.chunks(PHIS.len()).zip(LOADS).map(series).collect()
}

/// The gain of flexible requests in order of deadlines.
pub(super) fn flexible_gains(setup: &Setup, overestimated: bool) -> Gains {
    let like = |run| Run { overestimated, ..run };
    gains(setup, "EDF, flexible", like, |load, phi| {
        Run::flexible(load, phi, Order::Edf)
    })
}
