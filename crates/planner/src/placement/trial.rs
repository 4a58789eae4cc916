//! A trial on the plan. The changes of a search stay where it finds a place, and are rolled back where it does not, so a
//! refusal leaves everything as it was.
//!
//! The schedules are changed through [`Schedules`](crate::schedules::Schedules) alone, which notes how each change is undone
//! (`schedules/undo.rs`) while a trial goes on.
//! Trials may be nested. A step back that fails is an impossible plan, and gives up the batch (`crate::impossible`).

use crate::context::Search;
use crate::schedules::undo::{close_undo_log, open_undo_log};

/// Looks for something that may need changes of the plan: they stay where it is found, and are taken back elsewhere.
/// Agreements are changed afterwards, never in it.
pub(crate) fn run_trial<R>(
    search: &mut Search<'_>,
    find: impl FnOnce(&mut Search<'_>) -> Option<R>,
) -> Option<R> {
    let begun = open_undo_log(search.schedules);
    let found = find(search);
    close_undo_log(search.schedules, begun, found.is_some());
    found
}

/// Finds something out on a plan that is changed for that, and is as it was afterwards.
pub(crate) fn suppose_in_trial<R>(search: &mut Search<'_>, find: impl FnOnce(&mut Search<'_>) -> R) -> R {
    let begun = open_undo_log(search.schedules);
    let found = find(search);
    close_undo_log(search.schedules, begun, false);
    found
}

#[cfg(test)]
mod tests;
