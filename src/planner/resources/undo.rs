//! How the changes of schedules are undone that a trial has made.

use scheduler::{Request, Time};

/// How the changes since the outermost trial began are undone, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(in crate::planner) struct UndoLog {
    /// How many trials go on.
    pub(in crate::planner) depth: usize,
    pub(in crate::planner) steps: Vec<Undo>,
}

/// How one change of the schedule of a resource is undone.
#[derive(Debug, Clone)]
pub(in crate::planner) struct Undo {
    pub(in crate::planner) at: usize,
    /// A slot that came in, or moved, leaves.
    pub(in crate::planner) leave: Vec<u64>,
    /// A slot that left, or moved, comes back as it was, where it lay.
    pub(in crate::planner) come_back: Vec<(Request, Time)>,
}

impl Undo {
    /// Of a request that has come in.
    pub(in crate::planner) fn leaving(at: usize, number: u64) -> Self {
        let (leave, come_back) = (vec![number], Vec::new());
        Self { at, leave, come_back }
    }

    /// Of a request that has left.
    pub(in crate::planner) fn coming_back(at: usize, lay: (Request, Time)) -> Self {
        let (leave, come_back) = (Vec::new(), vec![lay]);
        Self { at, leave, come_back }
    }
}

impl UndoLog {
    /// Whether a trial goes on.
    pub(in crate::planner) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Notes a change, where it may have to be undone.
    pub(in crate::planner) fn note(&mut self, undo: impl FnOnce() -> Undo) {
        if self.is_open() {
            self.steps.push(undo());
        }
    }
}
