//! What a subtree says about its slots without being entered.

use super::{BLOCK, Block};
use crate::time::Seconds;

/// The durations by which runs of free time are told apart: a request is looked up by the longest that it reaches.
pub(super) const CLASSES: [Seconds; 7] = [1, 1_800, 3_600, 7_200, 14_400, 28_800, 57_600];

/// The class of the longest duration that `seconds` reaches.
pub(super) fn class(seconds: Seconds) -> usize {
    CLASSES[1..].iter().filter(|c| **c <= seconds).count()
}

/// Minimum of free nodes, and for each duration d of [`CLASSES`] an upper bound `reach` of the nodes that any run of d or
/// longer which meets the block can have.
///
/// A run inside the block counts exactly. One that crosses a border between two blocks has at least half its length in
/// one of them, and one that crosses more covers a block entirely: so a run that touches a border of the block counts
/// with twice its length, and one that touches both counts for every duration. Thus of all blocks that a feasible run
/// meets at least one has enough reach, and a block without it can be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub(super) struct Summary {
    pub(super) min: i32,
    pub(super) reach: [i32; CLASSES.len()],
}

impl Summary {
    /// Of no slot. Far enough from the ends of the range to bear any pending addition.
    pub(super) const NEUTRAL: Self = Self {
        min: i32::MAX / 2,
        reach: [i32::MIN / 2; CLASSES.len()],
    };

    pub(super) fn max(&self) -> i32 {
        self.reach[0]
    }

    pub(super) fn shift(&mut self, nodes: i32) {
        self.min += nodes;
        for r in &mut self.reach {
            *r += nodes;
        }
    }

    pub(super) fn join(mut self, other: &Self) -> Self {
        self.min = self.min.min(other.min);
        for (r, o) in self.reach.iter_mut().zip(&other.reach) {
            *r = (*r).max(*o);
        }
        self
    }

    /// The summary of the first `len` slots of `block`, the last of which ends at `end`.
    ///
    /// Each slot is the lowest of one maximal run; a stack of rising values finds all those runs in one pass.
    pub(super) fn of(block: &Block, len: usize, end: i64) -> Self {
        let mut summary = Self::NEUTRAL;
        if len == 0 {
            return summary;
        }
        let begin = block.starts[0];
        let mut stack = [(0_i32, 0_i64); BLOCK];
        let mut depth = 0;
        let mut record = |free: i32, from: i64, to: i64| {
            let class = match (from == begin, to == end) {
                (true, true) => CLASSES.len() - 1,
                (false, false) => class(to - from),
                _ => class(2 * (to - from)),
            };
            summary.reach[class] = summary.reach[class].max(free);
        };
        for (&start, &free) in block.starts[..len].iter().zip(&block.free[..len]) {
            let mut from = start;
            while depth > 0 && stack[depth - 1].0 >= free {
                depth -= 1;
                from = stack[depth].1;
                record(stack[depth].0, from, start);
            }
            stack[depth] = (free, from);
            depth += 1;
        }
        summary.min = stack[0].0;
        for &(free, from) in stack[..depth].iter().rev() {
            record(free, from, end);
        }
        for class in (1..CLASSES.len()).rev() {
            summary.reach[class - 1] = summary.reach[class - 1].max(summary.reach[class]);
        }
        summary
    }
}
