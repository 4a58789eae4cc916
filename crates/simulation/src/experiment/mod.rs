//! The papers' experiments, by name.

pub mod flexible;
mod reservations;

use crate::parallel::Workers;
use crate::report::Report;
use crate::workload::{Window, Workload};

/// What the experiments are run on.
pub struct Setup<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its windows.
    pub windows: &'a [Window],
    /// Seed of all draws.
    pub seed: u64,
    /// Threads and progress.
    pub workers: Workers<'a>,
}

/// An experiment of a paper.
pub struct Experiment {
    /// Its name: the paper's number and the figure's.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Other names: figures of another version of the paper that show the same.
    pub aliases: &'static [&'static str],
    run: fn(&Setup) -> Report,
}

impl Experiment {
    /// Runs it. The same setup gives the same report.
    pub fn run(&self, setup: &Setup) -> Report {
        let report = (self.run)(setup);
        Report {
            name: self.name,
            title: self.title,
            ..report
        }
    }
}

/// All experiments.
pub const ALL: &[&[Experiment]] = &[reservations::EXPERIMENTS];

/// The experiments of a name; `all` is every one. Empty if there is none.
pub fn named(name: &str) -> Vec<&'static Experiment> {
    ALL.iter()
        .copied()
        .flatten()
        .filter(|experiment| name == "all" || experiment.name == name || experiment.aliases.contains(&name))
        .collect()
}

/// The names of all experiments.
pub fn names() -> Vec<&'static str> {
    ALL.iter()
        .copied()
        .flatten()
        .map(|experiment| experiment.name)
        .collect()
}
