//! A reservation as the plan wants it.

use std::collections::HashSet;

use domain::agreement::Run;
use scheduler::{Interval, Time};

use crate::slurm::query::ReservationRow;

/// A reservation as the plan wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: Run,
    pub(crate) interval: Interval,
    pub(crate) nodes: Vec<String>,
    pub(crate) user: String,
    /// The party with the policy that has the site's further options; these count when it is made.
    pub(crate) party: String,
    pub(crate) application: String,
    /// Whether a request waits for it.
    pub(crate) is_awaited: bool,
    /// Whether its user may submit jobs by now.
    pub(crate) handed: bool,
    /// Whether jobs of ours in front of it have limits, in whole minutes, that reach into it. They end with their slots before.
    pub(crate) behind_own_jobs: bool,
}

impl Target {
    /// Whether it needs some of the nodes of a reservation at some time of that.
    pub(crate) fn wants(&self, row: &ReservationRow) -> bool {
        self.interval.meets(row.interval) && self.nodes.iter().any(|node| row.nodes.contains(node))
    }

    /// Whether a reservation is there, and is as it is wanted.
    pub(crate) fn is_met_by(&self, row: Option<&ReservationRow>, now: Time) -> bool {
        row.is_some_and(|row| {
            self.starts_with(row, now)
                && self.interval.end == row.interval.end
                && self.is_on(row)
                && self.user == row.users
                && (row.overlaps || !self.handed)
        })
    }

    /// Whether a reservation holds from the start on, or from now on where that is past.
    pub(super) fn starts_with(&self, row: &ReservationRow, now: Time) -> bool {
        let start = self.interval.start;
        row.interval.start == start || (start <= now + 1 && row.interval.start <= now + 1)
    }

    pub(super) fn is_on(&self, row: &ReservationRow) -> bool {
        let names: HashSet<&String> = row.nodes.iter().collect();
        names.len() == self.nodes.len() && self.nodes.iter().all(|node| names.contains(node))
    }
}
