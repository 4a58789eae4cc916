//! What an experiment is given.

use std::sync::{Mutex, OnceLock};

use super::prediction::replay;
use advisor::adaptive::AdaptiveOutcome;
use advisor::workers::Workers;
use advisor::workload::{Window, Workload};

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
    pub(super) adaptive: OnceLock<Vec<Vec<AdaptiveOutcome>>>,
    /// Shared by the experiments of paper 004.
    pub(super) prediction: OnceLock<replay::PredictionReplay>,
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

    /// Makes the same runs in every window: the result of each run, window by window.
    pub(super) fn play<T: Send>(&self, runs: impl Fn(&Window) -> Vec<T> + Sync) -> Vec<Vec<T>> {
        let mut by_run = Vec::new();
        for of_window in self.workers.map(self.windows, runs) {
            by_run.resize_with(of_window.len(), Vec::new);
            for (run, result) in by_run.iter_mut().zip(of_window) {
                run.push(result);
            }
        }
        by_run
    }

    /// Keeps a time, which has no place in a report because it is never the same twice.
    pub(super) fn note_time(&self, what: String, nanoseconds: f64) {
        if let Ok(mut times) = self.times.lock() {
            times.push((what, nanoseconds));
        }
    }

    /// The times noted since the last call: the name of the step, and nanoseconds.
    pub(crate) fn take_times(&self) -> Vec<(String, f64)> {
        let times = self.times.lock();
        times
            .map(|mut times| std::mem::take(&mut *times))
            .unwrap_or_default()
    }
}
