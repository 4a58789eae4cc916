//! The summary of a subtree's slots, to be read without entering it, and its upkeep.

use super::block::Block;
use super::{BLOCK, NIL, Node, OWN, SUBTREE, SlotTree};
use crate::time::Seconds;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32};

/// Classes of durations of runs of free time: class 0 is any; from 2⁶ s on each doubling is a class, up to 2¹⁹ s, that is six
/// days. More classes would skip more, but every change would carry them upwards.
pub(super) const CLASSES: usize = 15;

/// The class of the longest duration that `seconds`, at least 1, reaches.
#[inline]
pub(super) fn duration_class(seconds: Seconds) -> usize {
    (seconds.ilog2() as usize).saturating_sub(5).min(CLASSES - 1)
}

/// Minimum of free nodes, and for each of the [`CLASSES`] with duration d an upper bound `reach` of the nodes that any run
/// of d or longer which meets the block can have.
///
/// A run inside the block counts exactly. One that crosses a border between two blocks has at least half its length in one of
/// them, and one that crosses more covers a block entirely. So a run that touches a border of the block counts with twice its
/// length, and one that touches both counts for every duration. Thus of all blocks that a feasible run meets at least one has
/// enough reach, and a block without it can be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) min: i32,
    pub(super) reach: [i32; CLASSES],
}

impl Summary {
    /// Of no slot. Far enough from the ends of the range for any pending addition.
    pub(super) const NEUTRAL: Self = Self {
        min: i32::MAX / 2,
        reach: [i32::MIN / 2; CLASSES],
    };

    pub(super) fn shift(&mut self, nodes: i32) {
        self.min += nodes;
        for r in &mut self.reach {
            *r += nodes;
        }
    }

    /// Equality without a branch for each number.
    #[inline]
    pub(super) fn same(&self, other: &Self) -> bool {
        let reach = self.reach.iter().zip(&other.reach);
        reach.fold(self.min ^ other.min, |differing, (a, b)| differing | (a ^ b)) == 0
    }

    pub(super) fn join(mut self, other: &Self) -> Self {
        self.min = self.min.min(other.min);
        for (r, o) in self.reach.iter_mut().zip(&other.reach) {
            *r = (*r).max(*o);
        }
        self
    }

    /// Of the first `len` slots of `block`, with no more known of its runs than that none has more than the maximum.
    #[inline]
    pub(super) fn loose(block: &Block, len: usize) -> Self {
        let mut summary = Self::NEUTRAL;
        let mut max = summary.reach[0];
        for &free in &block.free[..len] {
            summary.min = summary.min.min(free);
            max = max.max(free);
        }
        summary.reach = [max; CLASSES];
        summary
    }

    /// The summary of the first `len` slots of `block`. The last of them ends at `end`.
    ///
    /// Each slot is the lowest of one maximal run; a stack of rising values finds all those runs in one pass.
    pub(super) fn of(block: &Block, len: usize, end: i64) -> Self {
        let mut summary = Self::NEUTRAL;
        if len == 0 {
            return summary;
        }
        // Rising values, and the slot at which the run of each begins.
        let mut values = [0; BLOCK];
        let mut begins = [0_usize; BLOCK];
        let mut depth = 0;
        let mut record = |free: i32, from: usize, to: usize| {
            let until = if to == len { end } else { block.starts[to] };
            let class = match (from == 0, to == len) {
                (true, true) => CLASSES - 1,
                (false, false) => duration_class(until - block.starts[from]),
                _ => duration_class(2 * (until - block.starts[from])),
            };
            summary.reach[class] = summary.reach[class].max(free);
        };
        for (slot, &free) in block.free[..len].iter().enumerate() {
            let mut from = slot;
            while depth > 0 && values[depth - 1] >= free {
                depth -= 1;
                from = begins[depth];
                record(values[depth], from, slot);
            }
            values[depth] = free;
            begins[depth] = from;
            depth += 1;
        }
        summary.min = values[0];
        for k in 0..depth {
            record(values[k], begins[k], len);
        }
        for class in (1..CLASSES).rev() {
            summary.reach[class - 1] = summary.reach[class - 1].max(summary.reach[class]);
        }
        summary
    }
}

/// A summary as the tree keeps it: a query makes the reach of a block exact when it first needs it, which saves that work
/// for all the blocks that are changed again before.
///
/// Queries may share the tree. Each then writes bounds that hold, whichever write comes last, so no order is needed.
#[derive(Debug)]
pub(super) struct CachedSummary {
    min: AtomicI32,
    reach: [AtomicI32; CLASSES],
    /// Of a block: the reach is only a bound, and may be made exact when it is needed.
    loose: AtomicBool,
}

impl Clone for CachedSummary {
    fn clone(&self) -> Self {
        let kept = Self::new(&self.get());
        kept.set_loose(self.loose());
        kept
    }
}

impl CachedSummary {
    pub(super) fn new(summary: &Summary) -> Self {
        Self {
            min: AtomicI32::new(summary.min),
            reach: summary.reach.map(AtomicI32::new),
            loose: AtomicBool::new(false),
        }
    }

    pub(super) fn min(&self) -> i32 {
        self.min.load(Relaxed)
    }

    pub(super) fn max(&self) -> i32 {
        self.reach(0)
    }

    pub(super) fn reach(&self, class: usize) -> i32 {
        self.reach[class].load(Relaxed)
    }

    pub(super) fn loose(&self) -> bool {
        self.loose.load(Relaxed)
    }

    pub(super) fn set_loose(&self, loose: bool) {
        self.loose.store(loose, Relaxed);
    }

    pub(super) fn get(&self) -> Summary {
        Summary {
            min: self.min(),
            reach: std::array::from_fn(|k| self.reach(k)),
        }
    }

    /// [`CachedSummary::get`] by the tree's only user, in whole cache lines.
    #[inline]
    pub(super) fn take(&mut self) -> Summary {
        let mut reach = [0; CLASSES];
        for (r, kept) in reach.iter_mut().zip(&mut self.reach) {
            *r = *kept.get_mut();
        }
        Summary {
            min: *self.min.get_mut(),
            reach,
        }
    }

    pub(super) fn set(&self, summary: &Summary) {
        self.min.store(summary.min, Relaxed);
        for (kept, reach) in self.reach.iter().zip(summary.reach) {
            kept.store(reach, Relaxed);
        }
    }

    /// [`CachedSummary::set`] by the tree's only user.
    #[inline]
    pub(super) fn put(&mut self, summary: &Summary) {
        *self.min.get_mut() = summary.min;
        for (kept, reach) in self.reach.iter_mut().zip(summary.reach) {
            *kept.get_mut() = reach;
        }
    }

    #[inline]
    pub(super) fn shift(&mut self, nodes: i32) {
        let mut summary = self.take();
        summary.shift(nodes);
        self.put(&summary);
    }
}

impl SlotTree {
    /// Makes the summary of subtree `x` follow from those of its block and children; whether it changed.
    #[inline]
    pub(super) fn pull_summary(&mut self, x: u32) -> bool {
        let Node {
            child: [l, r],
            pending,
            ..
        } = self.nodes[x as usize];
        let below = [
            self.sums[l as usize][SUBTREE].take(),
            self.sums[r as usize][SUBTREE].take(),
        ];
        let [own, kept] = &mut self.sums[x as usize];
        let mut sum = own.take().join(&below[0]).join(&below[1]);
        if pending != 0 {
            sum.shift(pending);
        }
        let changed = !sum.same(&kept.take());
        if changed {
            kept.put(&sum);
        }
        changed
    }

    /// Makes the reach of a block exact, and carries it upwards.
    pub(super) fn tighten_summary(&self, mut x: u32) {
        let node = &self.nodes[x as usize];
        let mut sum = Summary::of(&self.blocks[x as usize], node.len, self.block_end(x));
        sum.shift(node.offset);
        self.sums[x as usize][OWN].set(&sum);
        self.sums[x as usize][OWN].set_loose(false);
        while x != NIL {
            let node = &self.nodes[x as usize];
            let [own, kept] = &self.sums[x as usize];
            let mut sum = own.get();
            for child in node.child {
                sum = sum.join(&self.sums[child as usize][SUBTREE].get());
            }
            sum.shift(node.pending);
            if sum == kept.get() {
                return;
            }
            kept.set(&sum);
            x = node.parent;
        }
    }

    /// Carries the new summary of block `x` upwards, as far as it matters.
    pub(super) fn climb_with_summary(&mut self, mut x: u32) {
        while x != NIL && self.pull_summary(x) {
            x = self.nodes[x as usize].parent;
        }
    }

    /// Makes the reach of all blocks exact, which the first searches would do otherwise. O(n log n).
    pub(crate) fn tighten_summaries(&self) {
        for at in self.in_order() {
            if self.sums[at.node as usize][OWN].loose() {
                self.tighten_summary(at.node);
            }
        }
    }

    /// Sums up block `x` after a change; its reach is left to the query that needs it.
    pub(super) fn summarise_block(&mut self, x: u32) {
        let node = &self.nodes[x as usize];
        let mut sum = Summary::loose(&self.blocks[x as usize], node.len);
        sum.shift(node.offset);
        let own = &mut self.sums[x as usize][OWN];
        own.put(&sum);
        own.set_loose(true);
    }
}
