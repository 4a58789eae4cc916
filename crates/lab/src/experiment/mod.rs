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

use std::sync::{Mutex, OnceLock};

use crate::report::Report;
use ::advisor::parallel::Workers;
use ::advisor::workload::{Window, Workload};

/// The data and sizes of the experiments.
pub struct Setup<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its windows.
    pub windows: &'a [Window],
    /// Seed of all draws.
    pub seed: u64,
    /// Threads and progress.
    pub workers: Workers<'a>,
    /// Jobs of a run of paper 003, and runs.
    pub servers: ServerRuns,
    /// Shared by the figures of paper 002.
    adaptive: OnceLock<adaptive::Results>,
    /// Shared by the experiments of paper 004.
    prediction: OnceLock<prediction::Results>,
    times: Mutex<Vec<(String, f64)>>,
}

/// Size of the experiments of paper 003. Their workload is always generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerRuns {
    /// Jobs submitted in a run; 10⁶ in the paper.
    pub jobs: usize,
    /// Runs; each is a batch. There are 30 in the paper.
    pub runs: usize,
}

impl<'a> Setup<'a> {
    /// On the windows of a workload.
    pub fn new(
        workload: &'a Workload,
        windows: &'a [Window],
        seed: u64,
        workers: Workers<'a>,
        servers: ServerRuns,
    ) -> Self {
        Self {
            workload,
            windows,
            seed,
            workers,
            servers,
            adaptive: OnceLock::new(),
            prediction: OnceLock::new(),
            times: Mutex::default(),
        }
    }

    /// Keeps a time, which has no place in a report because it is never the same twice.
    fn note_time(&self, what: String, nanoseconds: f64) {
        if let Ok(mut times) = self.times.lock() {
            times.push((what, nanoseconds));
        }
    }

    /// The times noted since the last call: the name of the step, and nanoseconds.
    pub fn take_times(&self) -> Vec<(String, f64)> {
        self.times
            .lock()
            .map(|mut times| std::mem::take(&mut *times))
            .unwrap_or_default()
    }
}

/// An experiment of a paper.
pub struct Experiment {
    /// Its name: the paper's number and the figure's.
    pub name: &'static str,
    /// Its subject.
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
pub const ALL: &[&[Experiment]] = &[
    reservations::EXPERIMENTS,
    adaptive::EXPERIMENTS,
    servers::EXPERIMENTS,
    prediction::EXPERIMENTS,
    optimum::EXPERIMENTS,
    bound::EXPERIMENTS,
    portfolio::EXPERIMENTS,
    advisor::EXPERIMENTS,
    beside::EXPERIMENTS,
];

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
