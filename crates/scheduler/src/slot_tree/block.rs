//! A short sorted run of slots.

use super::steps::Steps;
use super::{BLOCK, NIL, OWN, RIGHT, SlotTree};
use crate::time::Time;
use std::ops::Range;

/// Slots in order of time: starts, and free nodes less the additions pending above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) starts: [i64; BLOCK],
    pub(super) free: [i32; BLOCK],
}

impl Block {
    /// No slot.
    pub(super) const EMPTY: Self = Self {
        starts: [0; BLOCK],
        free: [0; BLOCK],
    };

    /// The slot, of `len`, that holds second `t`, at or after the first start.
    #[inline]
    pub(super) fn find(&self, len: usize, t: i64) -> usize {
        self.starts[..len].partition_point(|s| *s <= t) - 1
    }

    /// The steps of the used nodes at the starts of some slots; `before` are the free nodes before the first of them.
    pub(super) fn steps(&self, slots: Range<usize>, mut before: i32) -> Steps {
        let mut steps = Steps::default();
        for (start, free) in self.starts[slots.clone()].iter().zip(&self.free[slots]) {
            steps = steps.plus(Steps::at(*start, i64::from(before) - i64::from(*free)));
            before = *free;
        }
        steps
    }

    /// Splits the slot before index `slot` at second `t`; there are `len`, and room for one more.
    pub(super) fn insert(&mut self, len: usize, slot: usize, t: i64) {
        self.starts.copy_within(slot..len, slot + 1);
        self.free.copy_within(slot..len, slot + 1);
        self.starts[slot] = t;
        self.free[slot] = self.free[slot - 1];
    }

    /// Removes the slots `from..to` of `len`.
    pub(super) fn remove(&mut self, len: usize, from: usize, to: usize) {
        self.starts.copy_within(to..len, from);
        self.free.copy_within(to..len, from);
    }

    /// Appends `more` slots of another block, `shift` added to their free nodes, to the `len` here.
    pub(super) fn append(&mut self, len: usize, other: &Self, more: Range<usize>, shift: i32) {
        let to = len + more.len();
        self.starts[len..to].copy_from_slice(&other.starts[more.clone()]);
        self.free[len..to].copy_from_slice(&other.free[more]);
        for free in &mut self.free[len..to] {
            *free += shift;
        }
    }
}

impl SlotTree {
    /// Adds to every slot of block `x`.
    pub(super) fn add_block(&mut self, x: u32, nodes: i32) {
        self.nodes[x as usize].offset += nodes;
        self.sums[x as usize][OWN].shift(nodes);
    }

    /// First second after the block.
    pub(super) fn block_end(&self, x: u32) -> i64 {
        match self.nodes[x as usize].beside[RIGHT] {
            NIL => Time::MAX.0,
            after => self.nodes[after as usize].start,
        }
    }

    /// First second after the slot.
    pub(super) fn slot_end(&self, x: u32, slot: usize) -> i64 {
        if slot + 1 < self.nodes[x as usize].len {
            self.blocks[x as usize].starts[slot + 1]
        } else {
            self.block_end(x)
        }
    }
}
