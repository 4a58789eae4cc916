//! How the changes of schedules are undone that a trial has made.

use scheduler::{Request, Time};

use crate::schedules::Schedules;

/// How the changes since the outermost trial began are undone, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(crate) struct UndoLog {
    /// How many trials go on.
    pub(super) depth: usize,
    pub(super) steps: Vec<Undo>,
}

/// How one change of the schedule of a resource is undone.
#[derive(Debug, Clone)]
pub(crate) struct Undo {
    pub(super) at: usize,
    /// A slot that came in, or moved, leaves.
    pub(super) leave: Vec<u64>,
    /// A slot that left, or moved, comes back as it was, where it lay.
    pub(super) come_back: Vec<(Request, Time)>,
}

impl Undo {
    /// Of a request that has come in.
    pub(crate) fn leaving(at: usize, number: u64) -> Self {
        let (leave, come_back) = (vec![number], Vec::new());
        Self { at, leave, come_back }
    }

    /// Of a request that has left.
    pub(crate) fn coming_back(at: usize, lay: (Request, Time)) -> Self {
        let (leave, come_back) = (Vec::new(), vec![lay]);
        Self { at, leave, come_back }
    }
}

impl UndoLog {
    /// Whether a trial goes on.
    pub(crate) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Notes a change, where it may have to be undone.
    pub(crate) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if self.is_open() {
            self.steps.push(undo());
        }
    }
}

/// Opens the log for a trial. Returns the number of changes before it.
pub(crate) fn open_undo_log(schedules: &mut Schedules) -> usize {
    schedules.undo.depth += 1;
    schedules.undo.steps.len()
}

/// Closes the log for a trial, and takes back the trial's changes unless they are to stay.
pub(crate) fn close_undo_log(schedules: &mut Schedules, begun: usize, stays: bool) {
    schedules.undo.depth -= 1;
    if !stays {
        undo_changes_since(schedules, begun);
    } else if !schedules.undo.is_open() {
        schedules.undo.steps.clear();
    }
}

/// Undoes all changes but the first `begun`, the last one first.
fn undo_changes_since(schedules: &mut Schedules, begun: usize) {
    let undone = schedules.undo.steps.split_off(begun);
    // Undoing is not undone.
    let depth = std::mem::take(&mut schedules.undo.depth);
    for Undo { at, leave, come_back } in undone.into_iter().rev() {
        // No time passes meanwhile.
        for number in leave {
            schedules.vacate(at, Time::MIN, number);
        }
        for (request, start) in come_back {
            schedules.put_back(at, Time::MIN, &request, start);
        }
    }
    schedules.undo.depth = depth;
}
