//! The progress of a backup or a restore, told to a person at a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often the progress is told at a terminal.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Tells a person at a terminal how far long work has come.
pub(super) struct BackupProgress {
    what: &'static str,
    last: Option<Instant>,
}

impl BackupProgress {
    pub(super) fn new(what: &'static str) -> Self {
        let last = std::io::stderr().is_terminal().then(Instant::now);
        Self { what, last }
    }

    pub(super) fn tell(&mut self, count: u64) {
        if self.last.is_some_and(|last| last.elapsed() > TOLD_EVERY) {
            eprintln!("bespeak: {count} {}", self.what);
            self.last = Some(Instant::now());
        }
    }
}
