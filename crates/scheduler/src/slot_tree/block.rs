//! A short sorted run of slots.

use super::BLOCK;
use super::steps::Steps;
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
