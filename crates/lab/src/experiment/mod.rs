//! The papers' experiments, by name.

mod adaptive;
mod advisor;
pub mod beside;
mod bound;
mod optimum;
mod portfolio;
pub mod prediction;
mod reservations;
pub mod servers;
mod setup;

use reservations::alternatives;
pub use setup::{Experiment, ServerRuns, Setup};

/// All experiments.
pub const ALL: &[Experiment] = &[
    Experiment::new("000-fifo", reservations::fifo).alias("001-fifo"),
    Experiment::new("000-fig1", reservations::orders).alias("001-fig2"),
    Experiment::new("000-fig2", reservations::intervals).alias("001-fig3"),
    Experiment::new("000-fig3", reservations::overestimates).alias("001-fig4"),
    Experiment::new("000-fig4", reservations::fixing).alias("001-fig5"),
    Experiment::new("000-fig5", alternatives::all_sides),
    Experiment::new("000-fig6", alternatives::deviations),
    Experiment::new("001-fig6", alternatives::earlier_only),
    Experiment::new("001-fig7", alternatives::earlier_deviations),
    Experiment::new("002-fig4", adaptive::profit),
    Experiment::new("002-fig5", adaptive::completion),
    Experiment::new("002-fig6", adaptive::rejections),
    Experiment::new("002-fig7", adaptive::incentive),
    Experiment::new("002-fig8", adaptive::shrunk),
    Experiment::new("002-fig9", adaptive::modification),
    Experiment::new("003-fig2", servers::awareness),
    Experiment::new("003-fig4", servers::loss_and_cost),
    Experiment::new("003-fig5", servers::utilisation_and_waiting),
    Experiment::new("003-fig6", servers::heterogeneity),
    Experiment::new("003-periods", servers::periods),
    Experiment::new("004-error", prediction::error).alias("004"),
    Experiment::new("004-deadlines", prediction::deadlines).alias("004"),
    Experiment::new("004-calibration", prediction::calibration).alias("004"),
    Experiment::new("optimum", optimum::distances),
    Experiment::new("bound", bound::bound),
    Experiment::new("portfolio", portfolio::compare),
    Experiment::new("advisor", advisor::advise),
    Experiment::new("beside-batch", beside::compare),
];

/// The experiments of a name; `all` is every one. Empty if there is none.
pub fn named(name: &str) -> Vec<&'static Experiment> {
    let has = |of: &&Experiment| name == "all" || of.name == name || of.alias == Some(name);
    ALL.iter().filter(has).collect()
}

/// The names of all experiments.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.name).collect()
}
