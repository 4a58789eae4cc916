//! How much an admission may do. Work is counted and not timed, so that the same inputs give the same decisions on every
//! machine.

use super::Schedule;

/// From this number of waiting requests on, a plan is large. In a smaller one, which stays in the processor's caches, the same
/// work takes less time: a decision may do more of it, in proportion,
const LARGE: u64 = 1 << 16;
/// up to this many times as much.
const SMALLER_MAX: u64 = 4;

/// One search of the slot tree, or one change of it.
pub(crate) const SEARCH: u64 = 8;
/// One block of slots that a search looks at.
pub(crate) const VISIT: u64 = 8;
/// One border of a slot that is laid over the plan, sorted and met.
pub(crate) const BORDER: u64 = 3;
/// One waiting request that is looked at.
pub(crate) const LOOK: u64 = 1;
/// One waiting request that is looked at in another order than they lie in.
pub(crate) const STRAY: u64 = 4;
/// One waiting request that is noted to be placed again, or that has its turn.
pub(crate) const TURN: u64 = 3;

/// The work that is left to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    left: u64,
}

impl Work {
    /// This much work.
    pub(crate) fn of(left: u64) -> Self {
        Self { left }
    }

    /// As much as it takes.
    pub(crate) fn unbounded() -> Self {
        Self { left: u64::MAX }
    }

    /// Blocks that a search may look at.
    pub(crate) fn visits(self) -> u64 {
        self.left / VISIT
    }

    /// Counts work.
    pub(crate) fn spend(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }

    /// Counts a look at one request, which costs `look`; answers whether work is left.
    pub(crate) fn looks(&mut self, look: u64) -> bool {
        self.spend(look);
        !self.is_spent()
    }

    /// Whether all of it is done.
    pub(crate) fn is_spent(self) -> bool {
        self.left == 0
    }

    /// The part of it that is at most `most`.
    pub(crate) fn part(self, most: u64) -> Self {
        Self {
            left: self.left.min(most),
        }
    }

    /// Lets `act` do at most `most` of it, and counts the work that it does.
    pub(crate) fn within<T>(&mut self, most: u64, act: impl FnOnce(&mut Self) -> T) -> T {
        let mut part = self.part(most);
        self.left -= part.left;
        let result = act(&mut part);
        self.left += part.left;
        result
    }

    /// How much is left.
    pub(crate) fn left(self) -> u64 {
        self.left
    }
}

impl Schedule {
    /// The work that one decision may do.
    pub(crate) fn work(&self) -> Work {
        let times = (LARGE / self.waiting.len().max(1) as u64).clamp(1, SMALLER_MAX);
        let work = self.budget.map(|budget| budget.saturating_mul(times));
        work.map_or(Work::unbounded(), Work::of)
    }

    /// The work that each of the two explanations of a refusal may do, alternatives and relaxations: together as much as a
    /// decision.
    pub(crate) fn work_to_explain(&self) -> Work {
        let work = self.work();
        work.part(work.left() / 2)
    }
}
