//! The tree over the blocks: insertion, removal, and the upkeep of the sums meanwhile.
//!
//! It is balanced by weight, which is the number of nodes of a subtree and one: no child of a node weighs more than
//! [`HEAVIER_MAX`] times as much as the other. After an insertion or a removal one walk upwards restores that, with a rotation or
//! two where a child has become too heavy (Nievergelt and Reingold, 1973; these bounds are those of Hirai and Yamamoto, 2011).

use super::summary::Summary;
use super::{LEFT, NIL, Node, OWN, RIGHT, SUBTREE, SlotTree};

/// How many times as much as the other one a child may weigh.
pub(super) const HEAVIER_MAX: u32 = 3;
/// A child that weighs too much is itself turned first where its inner child weighs this many times as much as its outer one.
const INNER_FROM: u32 = 2;

/// A tree of 2³² nodes is at most this deep: each weighs at most 3/4 of its parent.
const DEPTH_MAX: usize = 80;

impl SlotTree {
    /// Makes the sums of subtree `x` follow from those of its block and children.
    fn pull(&mut self, x: u32) {
        self.pull_summary(x);
        let [l, r] = self.nodes[x as usize].child;
        self.nodes[x as usize].size = self.nodes[l as usize].size + self.nodes[r as usize].size + 1;
        let below = self.steps[l as usize][SUBTREE].plus(self.steps[r as usize][SUBTREE]);
        let own = self.steps[x as usize][OWN];
        self.steps[x as usize][SUBTREE] = own.plus(below);
    }

    /// The same for the summary alone; whether it changed.
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
    pub(super) fn tighten(&self, mut x: u32) {
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

    /// [`SlotTree::pull`] for `x` and everything above. Where a child has become too heavy, the other one sinks.
    pub(super) fn pull_path(&mut self, mut x: u32) {
        while x != NIL {
            self.pull(x);
            for side in [LEFT, RIGHT] {
                let heavy = self.nodes[x as usize].child[1 - side];
                if self.weight(heavy) > HEAVIER_MAX * self.weight(self.nodes[x as usize].child[side]) {
                    let inner = self.nodes[heavy as usize].child[side];
                    let outer = self.nodes[heavy as usize].child[1 - side];
                    if self.weight(inner) >= INNER_FROM * self.weight(outer) {
                        self.rotate(heavy, 1 - side);
                    }
                    self.rotate(x, side);
                }
            }
            x = self.nodes[x as usize].parent;
        }
    }

    /// Carries the new summary of block `x` upwards, as far as it matters.
    pub(super) fn climb(&mut self, mut x: u32) {
        while x != NIL && self.pull_summary(x) {
            x = self.nodes[x as usize].parent;
        }
    }

    /// Adds to everything in subtree `x`.
    pub(super) fn add_subtree(&mut self, x: u32, nodes: i32) {
        if x != NIL {
            self.nodes[x as usize].pending += nodes;
            self.sums[x as usize][SUBTREE].shift(nodes);
        }
    }

    /// Adds to every slot of block `x`.
    pub(super) fn add_block(&mut self, x: u32, nodes: i32) {
        self.nodes[x as usize].offset += nodes;
        self.sums[x as usize][OWN].shift(nodes);
    }

    /// Hands the pending addition of `x` down.
    fn push(&mut self, x: u32) {
        let pending = self.nodes[x as usize].pending;
        if pending != 0 {
            self.nodes[x as usize].pending = 0;
            self.add_block(x, pending);
            for child in self.nodes[x as usize].child {
                self.add_subtree(child, pending);
            }
        }
    }

    /// Hands down every pending addition of `x` and above, from the root on: after it the slots of those blocks need only
    /// their own offset.
    pub(super) fn push_path(&mut self, x: u32) {
        let mut path = [NIL; DEPTH_MAX];
        let mut depth = 0;
        let mut y = x;
        while y != NIL {
            path[depth] = y;
            depth += 1;
            y = self.nodes[y as usize].parent;
        }
        for y in path[..depth].iter().rev() {
            self.push(*y);
        }
    }

    /// Puts `new` directly behind `x`. The path to `x` must have been pushed.
    pub(super) fn link_after(&mut self, x: u32, new: u32) {
        let after = self.nodes[x as usize].beside[RIGHT];
        let (parent, side) = if self.nodes[x as usize].child[RIGHT] == NIL {
            (x, RIGHT)
        } else {
            (after, LEFT)
        };
        self.push_path(parent);
        self.adopt(parent, side, new);
        self.nodes[new as usize].beside = [x, after];
        self.nodes[x as usize].beside[RIGHT] = new;
        if after != NIL {
            self.nodes[after as usize].beside[LEFT] = new;
        }
        self.pull_path(new);
    }

    /// Takes the empty block `z` out of the tree.
    pub(super) fn unlink(&mut self, z: u32) {
        let [before, after] = self.nodes[z as usize].beside;
        if before != NIL {
            self.nodes[before as usize].beside[RIGHT] = after;
        }
        if after != NIL {
            self.nodes[after as usize].beside[LEFT] = before;
        }
        let [l, r] = self.nodes[z as usize].child;
        // Of two children the right one has the next block as its lowest; that takes the place of `z`.
        let y = if l == NIL || r == NIL { z } else { after };
        self.push_path(y);
        let mut above = self.nodes[y as usize].parent;
        let [l, r] = self.nodes[y as usize].child;
        self.replace(y, if l == NIL { r } else { l });
        if y != z {
            self.replace(z, y);
            for side in [LEFT, RIGHT] {
                self.adopt(y, side, self.nodes[z as usize].child[side]);
            }
            above = if above == z { y } else { above };
        }
        self.pull_path(above);
        self.nodes[z as usize].parent = self.vacant;
        self.vacant = z;
    }

    fn weight(&self, x: u32) -> u32 {
        self.nodes[x as usize].size + 1
    }

    /// Which child of its parent `x` is.
    fn side(&self, x: u32) -> usize {
        let parent = self.nodes[x as usize].parent;
        usize::from(self.nodes[parent as usize].child[RIGHT] == x)
    }

    fn adopt(&mut self, parent: u32, side: usize, child: u32) {
        self.nodes[parent as usize].child[side] = child;
        if child != NIL {
            self.nodes[child as usize].parent = parent;
        }
    }

    /// Puts subtree `new` where `old` was.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.nodes[old as usize].parent;
        if parent == NIL {
            self.root = new;
            self.nodes[new as usize].parent = NIL;
        } else {
            let side = self.side(old);
            self.adopt(parent, side, new);
        }
    }

    /// Turns `x` down to `side`; its other child comes up.
    fn rotate(&mut self, x: u32, side: usize) {
        let y = self.nodes[x as usize].child[1 - side];
        self.push(x);
        self.push(y);
        self.replace(x, y);
        let middle = self.nodes[y as usize].child[side];
        self.adopt(x, 1 - side, middle);
        self.adopt(y, side, x);
        self.pull(x);
        self.pull(y);
    }
}
