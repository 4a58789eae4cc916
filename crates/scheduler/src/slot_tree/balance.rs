//! The red-black tree over the blocks: insertion, removal, and the upkeep of the sums meanwhile.
//!
//! The rules: the root is black, no red node has a red child, every path from the root to NIL meets as many black nodes.

use super::{LEFT, NIL, OWN, RIGHT, SUBTREE, SlotTree};

impl SlotTree {
    /// Makes the sums of subtree `x` follow from those of its block and children.
    pub(super) fn pull(&mut self, x: u32) {
        self.pull_summary(x);
        let [l, r] = self.nodes[x as usize].child;
        let below = self.steps[l as usize][SUBTREE].plus(self.steps[r as usize][SUBTREE]);
        let own = self.steps[x as usize][OWN];
        self.steps[x as usize][SUBTREE] = own.plus(below);
    }

    /// [`SlotTree::pull`] for `x` and everything above.
    pub(super) fn pull_path(&mut self, mut x: u32) {
        while x != NIL {
            self.pull(x);
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
        // A red-black tree of 2³² nodes is at most 64 deep.
        let mut path = [NIL; 64];
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
        self.nodes[new as usize].red = true;
        self.nodes[new as usize].beside = [x, after];
        self.nodes[x as usize].beside[RIGHT] = new;
        if after != NIL {
            self.nodes[after as usize].beside[LEFT] = new;
        }
        self.pull_path(new);
        self.colour_new(new);
    }

    /// Restores the rules after the red leaf `x` came in.
    fn colour_new(&mut self, mut x: u32) {
        while self.red(self.nodes[x as usize].parent) {
            // A red node is not the root, so the grandparent exists.
            let mut parent = self.nodes[x as usize].parent;
            let grandparent = self.nodes[parent as usize].parent;
            let side = self.side(parent);
            let uncle = self.nodes[grandparent as usize].child[1 - side];
            if self.red(uncle) {
                self.nodes[parent as usize].red = false;
                self.nodes[uncle as usize].red = false;
                self.nodes[grandparent as usize].red = true;
                x = grandparent;
            } else {
                if self.side(x) != side {
                    self.rotate(parent, side);
                    parent = x;
                }
                self.nodes[parent as usize].red = false;
                self.nodes[grandparent as usize].red = true;
                self.rotate(grandparent, 1 - side);
                break;
            }
        }
        self.nodes[self.root as usize].red = false;
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
        let (hole, above, black);
        if l == NIL || r == NIL {
            self.push_path(z);
            hole = if l == NIL { r } else { l };
            above = self.nodes[z as usize].parent;
            black = !self.red(z);
            self.replace(z, hole);
        } else {
            // With two children the next block is the lowest of the right subtree; it takes z's place.
            let y = after;
            self.push_path(y);
            hole = self.nodes[y as usize].child[RIGHT];
            black = !self.red(y);
            if r == y {
                above = y;
            } else {
                above = self.nodes[y as usize].parent;
                self.replace(y, hole);
                self.adopt(y, RIGHT, r);
            }
            self.replace(z, y);
            self.adopt(y, LEFT, l);
            self.nodes[y as usize].red = self.red(z);
        }
        self.pull_path(above);
        if black {
            self.colour_hole(hole, above);
        }
        self.nodes[z as usize].parent = self.vacant;
        self.vacant = z;
    }

    /// Restores the rules where the path through `x`, below `above`, has one black node too few.
    fn colour_hole(&mut self, mut x: u32, mut above: u32) {
        while above != NIL && !self.red(x) {
            // The other side has at least one black node, so the sibling is a node.
            let side = usize::from(self.nodes[above as usize].child[LEFT] != x);
            let mut sibling = self.nodes[above as usize].child[1 - side];
            if self.red(sibling) {
                self.nodes[sibling as usize].red = false;
                self.nodes[above as usize].red = true;
                self.rotate(above, side);
                sibling = self.nodes[above as usize].child[1 - side];
            }
            let nephews = self.nodes[sibling as usize].child;
            if !self.red(nephews[LEFT]) && !self.red(nephews[RIGHT]) {
                self.nodes[sibling as usize].red = true;
                x = above;
                above = self.nodes[x as usize].parent;
                continue;
            }
            if !self.red(nephews[1 - side]) {
                self.nodes[nephews[side] as usize].red = false;
                self.nodes[sibling as usize].red = true;
                self.rotate(sibling, 1 - side);
                sibling = nephews[side];
            }
            self.nodes[sibling as usize].red = self.red(above);
            self.nodes[above as usize].red = false;
            let far = self.nodes[sibling as usize].child[1 - side];
            self.nodes[far as usize].red = false;
            self.rotate(above, side);
            x = self.root;
            break;
        }
        self.nodes[x as usize].red = false;
    }

    fn red(&self, x: u32) -> bool {
        self.nodes[x as usize].red
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
