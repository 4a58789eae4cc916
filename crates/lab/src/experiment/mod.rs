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
    Experiment::new("000-fifo", Some("001-fifo"), reservations::fifo),
    Experiment::new("000-fig1", Some("001-fig2"), reservations::orders),
    Experiment::new("000-fig2", Some("001-fig3"), reservations::intervals),
    Experiment::new("000-fig3", Some("001-fig4"), reservations::overestimates),
    Experiment::new("000-fig4", Some("001-fig5"), reservations::fixing),
    Experiment::new("000-fig5", None, |setup| alternatives::compare(setup, false)),
    Experiment::new("000-fig6", None, |setup| alternatives::deviations(setup, false)),
    Experiment::new("001-fig6", None, |setup| alternatives::compare(setup, true)),
    Experiment::new("001-fig7", None, |setup| alternatives::deviations(setup, true)),
    Experiment::new("002-fig4", None, adaptive::profit),
    Experiment::new("002-fig5", None, adaptive::completion),
    Experiment::new("002-fig6", None, adaptive::rejections),
    Experiment::new("002-fig7", None, adaptive::incentive),
    Experiment::new("002-fig8", None, adaptive::shrunk),
    Experiment::new("002-fig9", None, adaptive::modification),
    Experiment::new("003-fig2", None, servers::awareness),
    Experiment::new("003-fig4", None, servers::loss_and_cost),
    Experiment::new("003-fig5", None, servers::utilisation_and_waiting),
    Experiment::new("003-fig6", None, servers::heterogeneity),
    Experiment::new("003-periods", None, servers::periods),
    Experiment::new("003-resources", None, servers::resources),
    Experiment::new("004-error", Some("004"), prediction::error),
    Experiment::new("004-deadlines", Some("004"), prediction::deadlines),
    Experiment::new("004-calibration", Some("004"), prediction::calibration),
    Experiment::new("optimum", None, optimum::distances),
    Experiment::new("bound", None, bound::bound),
    Experiment::new("portfolio", None, portfolio::compare),
    Experiment::new("advisor", None, advisor::advise),
    Experiment::new("beside-batch", None, beside::compare),
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
