//! The steps of the used nodes, in sums.

use super::{NIL, OWN, SUBTREE, SlotTree};

/// Sums over the steps of the used nodes: Σ Δ and Σ t·Δ, where Δ is the change at second t. The node-seconds used before
/// t are t·ΣΔ − Σt·Δ over the steps before t. In wrapping arithmetic: only differences that fit are ever read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) height: i64,
    pub(super) moment: i64,
}

impl Steps {
    pub(super) fn at(time: i64, used: i64) -> Self {
        Self {
            height: used,
            moment: time.wrapping_mul(used),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            height: self.height.wrapping_add(other.height),
            moment: self.moment.wrapping_add(other.moment),
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            height: self.height.wrapping_sub(other.height),
            moment: self.moment.wrapping_sub(other.moment),
        }
    }
}

impl SlotTree {
    /// Counts a step of the used nodes in block `x` and everything above.
    pub(super) fn count_step(&mut self, x: u32, step: Steps) {
        let own = &mut self.steps[x as usize][OWN];
        *own = own.plus(step);
        let mut y = x;
        while y != NIL {
            let sum = &mut self.steps[y as usize][SUBTREE];
            *sum = sum.plus(step);
            y = self.nodes[y as usize].parent;
        }
    }

    /// Counts the steps of block `x` again; `before` are the free nodes before it, less the block's offset.
    pub(super) fn recount_steps(&mut self, x: u32, before: i32) {
        let len = self.nodes[x as usize].len;
        self.steps[x as usize][OWN] = self.blocks[x as usize].steps(0..len, before);
    }
}
