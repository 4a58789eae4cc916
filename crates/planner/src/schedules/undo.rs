//! How the changes of schedules are undone that a trial has made.

use scheduler::{Request, Time};

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
