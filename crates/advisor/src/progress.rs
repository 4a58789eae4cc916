//! The progress of long work, for a person waiting for it.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::Mutex;

/// One line on the standard error stream that says how far an experiment, or other long work, is, where a person may be looking.
#[derive(Default)]
pub struct ProgressLine {
    experiment: Mutex<String>,
}

impl ProgressLine {
    /// Sets the name of the present work.
    pub fn starts(&self, name: &str) {
        if let Ok(mut experiment) = self.experiment.lock() {
            name.clone_into(&mut experiment);
        }
    }

    /// `done` of `total` parts are done.
    pub fn show(&self, done: usize, total: usize) {
        const WIDTH: usize = 30;
        if let Ok(experiment) = self.experiment.lock()
            && stderr().is_terminal()
        {
            let full = WIDTH * done / total.max(1);
            let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
            // A progress bar that cannot be shown is not missed.
            let _ = write!(stderr(), "\r\x1b[K{experiment}  [{bar}] {done}/{total}");
        }
    }

    /// Removes the line.
    pub fn clear() {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
