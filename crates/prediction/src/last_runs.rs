//! The last runs of something, and how many of them were lost.

use std::collections::VecDeque;

use scheduler::prediction::RunLosses;

use super::last_values::VALUES_MAX;

/// Which of the last runs were lost.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LastRuns(VecDeque<bool>);

impl LastRuns {
    /// Remembers one more.
    pub(super) fn push(&mut self, lost: bool) {
        self.0.push_back(lost);
        if self.0.len() > VALUES_MAX {
            self.0.pop_front();
        }
    }

    /// How many there are, and how many were lost.
    pub(super) fn losses(&self) -> RunLosses {
        RunLosses {
            runs: self.0.len(),
            lost: self.0.iter().filter(|lost| **lost).count(),
        }
    }
}
