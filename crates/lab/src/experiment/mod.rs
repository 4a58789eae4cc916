//! The papers' experiments, by name.

mod adaptive;
mod advisor;
pub mod beside;
pub mod month;
mod optimum;
mod portfolio;
pub mod prediction;
mod reservations;
pub mod servers;
mod setup;

pub use setup::{ServerRuns, Setup};

use crate::report::Report;

/// An experiment of a paper.
pub struct Experiment {
    /// Its name: the paper's number and the figure's.
    pub name: &'static str,
    /// Another name: the figure of another version of the paper that shows the same, or of several experiments.
    pub alias: Option<&'static str>,
    run: fn(&Setup) -> Report,
}

impl Experiment {
    const fn new(name: &'static str, alias: Option<&'static str>, run: fn(&Setup) -> Report) -> Self {
        Self { name, alias, run }
    }

    /// Runs it. The same setup gives the same report.
    pub fn run(&self, setup: &Setup) -> Report {
        let mut report = (self.run)(setup);
        report.name = self.name;
        for figure in report.figures.iter_mut().filter(|figure| figure.name.is_empty()) {
            self.name.clone_into(&mut figure.name);
        }
        report
    }
}

/// All experiments.
const ALL: &[Experiment] = &[
    Experiment::new(
        "000-fifo",
        Some("001-fifo"),
        reservations::report_fifo_reservations,
    ),
    Experiment::new(
        "000-fig1",
        Some("001-fig2"),
        reservations::report_reservation_orders,
    ),
    Experiment::new(
        "000-fig2",
        Some("001-fig3"),
        reservations::report_reservation_intervals,
    ),
    Experiment::new(
        "000-fig3",
        Some("001-fig4"),
        reservations::report_reservation_overestimates,
    ),
    Experiment::new(
        "000-fig4",
        Some("001-fig5"),
        reservations::report_reservation_fixing,
    ),
    Experiment::new("000-fig5", None, |setup| {
        reservations::report_reservation_alternatives_gain(setup, false)
    }),
    Experiment::new("000-fig6", None, |setup| {
        reservations::report_reservation_alternative_deviations(setup, false)
    }),
    Experiment::new("001-fig6", None, |setup| {
        reservations::report_reservation_alternatives_gain(setup, true)
    }),
    Experiment::new("001-fig7", None, |setup| {
        reservations::report_reservation_alternative_deviations(setup, true)
    }),
    Experiment::new("002-fig4", Some("002"), adaptive::report_adaptive_profit),
    Experiment::new("002-fig5", Some("002"), adaptive::report_adaptive_completion),
    Experiment::new("002-fig6", Some("002"), adaptive::report_adaptive_rejections),
    Experiment::new("002-fig7", Some("002"), adaptive::report_adaptive_incentive),
    Experiment::new("002-fig8", Some("002"), adaptive::report_adaptive_shrinking),
    Experiment::new("002-fig9", Some("002"), adaptive::report_adaptive_modification),
    Experiment::new("003-fig2", None, servers::report_server_awareness),
    Experiment::new("003-fig4", None, servers::report_server_loss_and_cost),
    Experiment::new("003-fig5", None, servers::report_server_utilisation_and_waiting),
    Experiment::new("003-fig6", None, servers::report_server_heterogeneity),
    Experiment::new("003-periods", None, servers::report_server_periods),
    Experiment::new("003-resources", None, servers::report_server_resources),
    Experiment::new("004-error", Some("004"), prediction::report_prediction_error),
    Experiment::new(
        "004-deadlines",
        Some("004"),
        prediction::report_prediction_deadlines,
    ),
    Experiment::new(
        "004-calibration",
        Some("004"),
        prediction::report_prediction_calibration,
    ),
    Experiment::new("optimum", None, optimum::report_optimum_distances),
    Experiment::new("bound", None, optimum::report_bound),
    Experiment::new("portfolio", None, portfolio::report_portfolio),
    Experiment::new("advisor", None, advisor::report_policy_advice),
    Experiment::new("beside-batch", None, beside::report_slots_beside_queue),
];

/// The experiments of a name; `all` is every one. Empty if there is none.
pub fn experiments_named(name: &str) -> Vec<&'static Experiment> {
    let has =
        |experiment: &&Experiment| name == "all" || experiment.name == name || experiment.alias == Some(name);
    ALL.iter().filter(has).collect()
}

/// The names of all experiments.
pub fn experiment_names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.name).collect()
}
