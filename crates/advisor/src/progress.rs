//! The progress of long work, for a person waiting for it.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Work that has gone on for less says little about the rest.
const FIRST_GUESS: Duration = Duration::from_secs(2);

/// One line on the standard error stream that says how far an experiment, or other long work, is, where a person may be looking.
#[derive(Default)]
pub struct ProgressLine {
    /// The name of the present work, and when it began.
    experiment: Mutex<(String, Option<Instant>)>,
}

impl ProgressLine {
    /// Sets the name of the present work.
    pub fn starts(&self, name: &str) {
        if let Ok(mut experiment) = self.experiment.lock() {
            *experiment = (name.to_owned(), Some(Instant::now()));
        }
    }

    /// `done` of `total` parts are done.
    pub fn show(&self, done: usize, total: usize) {
        const WIDTH: usize = 30;
        if let Ok(mut experiment) = self.experiment.lock()
            && stderr().is_terminal()
        {
            let begun = *experiment.1.get_or_insert_with(Instant::now);
            let full = WIDTH * done / total.max(1);
            let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
            let left = progress_left_in_words(begun.elapsed(), done, total).unwrap_or_default();
            // A progress bar that cannot be shown is not missed.
            let _ = write!(stderr(), "\r\x1b[K{}  [{bar}] {done}/{total}{left}", experiment.0);
        }
    }

    /// Removes the line.
    pub fn clear() {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// How long the rest takes, in words, where each part takes as long as those that are done.
fn progress_left_in_words(elapsed: Duration, done: usize, total: usize) -> Option<String> {
    if elapsed < FIRST_GUESS || done == 0 || done >= total {
        return None;
    }
    let left = elapsed.as_secs().saturating_mul((total - done) as u64) / done as u64;
    Some(match left {
        0..60 => format!(", {left} s left"),
        60..3_600 => format!(", {} min left", left.div_ceil(60)),
        _ => format!(", {} h {} min left", left / 3_600, left % 3_600 / 60),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_parts_before() {
        let left = |seconds, done, total| progress_left_in_words(Duration::from_secs(seconds), done, total);
        assert_eq!(left(1, 1, 2), None);
        assert_eq!(left(10, 0, 10), None);
        assert_eq!(left(10, 10, 10), None);
        assert_eq!(left(10, 5, 10).as_deref(), Some(", 10 s left"));
        assert_eq!(left(60, 1, 3).as_deref(), Some(", 2 min left"));
        assert_eq!(left(3_600, 2, 5).as_deref(), Some(", 1 h 30 min left"));
    }
}
