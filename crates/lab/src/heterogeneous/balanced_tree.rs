//! A red-black tree of idle periods that knows something about each subtree.
//!
//! Red links lean to the left (Sedgewick's variant), which leaves few cases. Nodes are linked by `u32` indices into an arena.

use super::IdlePeriod;

/// No node.
pub(super) const NIL: u32 = u32::MAX;
pub(super) const LEFT: usize = 0;
pub(super) const RIGHT: usize = 1;

/// The key by which a tree is ordered, and the sums that it keeps of each subtree.
pub(super) trait Order {
    type Key: Ord + Copy;
    type Summary: Copy + PartialEq + std::fmt::Debug;
    /// Distinct for distinct idle periods.
    fn key(period: &IdlePeriod) -> Self::Key;
    /// Of one idle period.
    fn summary(period: &IdlePeriod) -> Self::Summary;
    /// Of two together; in any order and grouping the same.
    fn join(a: Self::Summary, b: Self::Summary) -> Self::Summary;
}

#[derive(Debug, Clone)]
pub(super) struct Node<S> {
    pub(super) period: IdlePeriod,
    /// Of the whole subtree.
    pub(super) summary: S,
    pub(super) child: [u32; 2],
    /// Whether the link from above is red.
    red: bool,
}

/// The tree; insert and remove in O(log n), counted in nodes visited.
#[derive(Debug, Clone)]
pub(super) struct BalancedTree<O: Order> {
    nodes: Vec<Node<O::Summary>>,
    /// Unused entries of the arena.
    vacant: Vec<u32>,
    pub(super) root: u32,
}

impl<O: Order> BalancedTree<O> {
    pub(super) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: Vec::new(),
            root: NIL,
        }
    }

    pub(super) fn node(&self, x: u32) -> &Node<O::Summary> {
        &self.nodes[x as usize]
    }

    pub(super) fn child(&self, x: u32, side: usize) -> u32 {
        self.node(x).child[side]
    }

    /// Adds an idle period that is not there.
    pub(super) fn insert(&mut self, period: IdlePeriod, visited: &mut u64) {
        let root = self.insert_below(self.root, period, visited);
        self.paint(root, false);
        self.root = root;
    }

    /// Removes an idle period that is there.
    pub(super) fn remove(&mut self, period: &IdlePeriod, visited: &mut u64) {
        if self.is_black(self.child(self.root, LEFT)) && self.is_black(self.child(self.root, RIGHT)) {
            self.paint(self.root, true);
        }
        self.root = self.remove_below(self.root, O::key(period), visited);
        if self.root != NIL {
            self.paint(self.root, false);
        }
    }

    fn insert_below(&mut self, x: u32, period: IdlePeriod, visited: &mut u64) -> u32 {
        *visited += 1;
        if x == NIL {
            return self.allocate(period);
        }
        let side = usize::from(O::key(&self.node(x).period) < O::key(&period));
        let below = self.insert_below(self.child(x, side), period, visited);
        self.nodes[x as usize].child[side] = below;
        self.balance(x)
    }

    fn remove_below(&mut self, mut x: u32, mut key: O::Key, visited: &mut u64) -> u32 {
        *visited += 1;
        if key < O::key(&self.node(x).period) {
            if self.lacks_red(x, LEFT) {
                x = self.borrow_left(x);
            }
            let below = self.remove_below(self.child(x, LEFT), key, visited);
            self.nodes[x as usize].child[LEFT] = below;
            return self.balance(x);
        }
        if !self.is_black(self.child(x, LEFT)) {
            x = self.rotate(x, RIGHT);
        }
        if key == O::key(&self.node(x).period) && self.child(x, RIGHT) == NIL {
            // Red links lean to the left, so nothing is on the left either.
            self.vacant.push(x);
            return NIL;
        }
        if self.lacks_red(x, RIGHT) {
            x = self.borrow_right(x);
        }
        let right = self.child(x, RIGHT);
        if key == O::key(&self.node(x).period) {
            // The next idle period takes its place.
            let mut next = right;
            while self.child(next, LEFT) != NIL {
                next = self.child(next, LEFT);
            }
            let period = self.node(next).period;
            self.nodes[x as usize].period = period;
            key = O::key(&period);
        }
        let below = self.remove_below(right, key, visited);
        self.nodes[x as usize].child[RIGHT] = below;
        self.balance(x)
    }

    /// Whether a removal must not go down that side yet: it would meet two black links in a row.
    fn lacks_red(&self, x: u32, side: usize) -> bool {
        let below = self.child(x, side);
        self.is_black(below) && (below == NIL || self.is_black(self.child(below, LEFT)))
    }

    fn borrow_left(&mut self, mut x: u32) -> u32 {
        self.flip(x);
        let right = self.child(x, RIGHT);
        if !self.is_black(self.child(right, LEFT)) {
            let turned = self.rotate(right, RIGHT);
            self.nodes[x as usize].child[RIGHT] = turned;
            x = self.rotate(x, LEFT);
            self.flip(x);
        }
        x
    }

    fn borrow_right(&mut self, mut x: u32) -> u32 {
        self.flip(x);
        let left = self.child(x, LEFT);
        if !self.is_black(self.child(left, LEFT)) {
            x = self.rotate(x, RIGHT);
            self.flip(x);
        }
        x
    }

    /// Restores the lean and the sums of a node with subtrees in order.
    fn balance(&mut self, mut x: u32) -> u32 {
        if !self.is_black(self.child(x, RIGHT)) && self.is_black(self.child(x, LEFT)) {
            x = self.rotate(x, LEFT);
        }
        let left = self.child(x, LEFT);
        if !self.is_black(left) && !self.is_black(self.child(left, LEFT)) {
            x = self.rotate(x, RIGHT);
        }
        if !self.is_black(self.child(x, LEFT)) && !self.is_black(self.child(x, RIGHT)) {
            self.flip(x);
        }
        self.pull(x);
        x
    }

    /// Turns the link to the child opposite to `side`, so that `x` goes down on `side`.
    fn rotate(&mut self, x: u32, side: usize) -> u32 {
        let up = self.child(x, 1 - side);
        self.nodes[x as usize].child[1 - side] = self.child(up, side);
        self.nodes[up as usize].child[side] = x;
        let red = self.node(x).red;
        self.paint(up, red);
        self.paint(x, true);
        self.pull(x);
        self.pull(up);
        up
    }

    fn flip(&mut self, x: u32) {
        for y in [x, self.child(x, LEFT), self.child(x, RIGHT)] {
            self.nodes[y as usize].red ^= true;
        }
    }

    fn pull(&mut self, x: u32) {
        let node = self.node(x);
        let mut summary = O::summary(&node.period);
        for below in node.child {
            if below != NIL {
                summary = O::join(summary, self.node(below).summary);
            }
        }
        self.nodes[x as usize].summary = summary;
    }

    fn is_black(&self, x: u32) -> bool {
        x == NIL || !self.node(x).red
    }

    fn paint(&mut self, x: u32, red: bool) {
        self.nodes[x as usize].red = red;
    }

    fn allocate(&mut self, period: IdlePeriod) -> u32 {
        let node = Node {
            period,
            summary: O::summary(&period),
            child: [NIL; 2],
            red: true,
        };
        if let Some(x) = self.vacant.pop() {
            self.nodes[x as usize] = node;
            return x;
        }
        // 2³² nodes of this size are more than memory holds.
        let x = u32::try_from(self.nodes.len()).expect("an arena outgrows memory before it outgrows u32");
        self.nodes.push(node);
        x
    }

    /// Its idle periods in order, after a check of order, colours and sums.
    #[cfg(test)]
    pub(super) fn checked(&self) -> Vec<IdlePeriod> {
        let mut periods = Vec::new();
        assert!(self.is_black(self.root), "the root is red");
        self.check(self.root, &mut periods);
        assert!(
            periods.windows(2).all(|w| O::key(&w[0]) < O::key(&w[1])),
            "out of order"
        );
        assert_eq!(periods.len() + self.vacant.len(), self.nodes.len(), "lost nodes");
        periods
    }

    /// The number of black links down to any leaf.
    #[cfg(test)]
    fn check(&self, x: u32, periods: &mut Vec<IdlePeriod>) -> usize {
        if x == NIL {
            return 0;
        }
        let node = self.node(x);
        let [left, right] = node.child;
        assert!(self.is_black(right), "a red link leans to the right");
        assert!(
            !node.red || self.is_black(left),
            "two red links in a row below {:?}",
            node.period
        );
        let height = self.check(left, periods);
        periods.push(node.period);
        assert_eq!(self.check(right, periods), height, "black links differ");
        let below = [left, right].into_iter().filter(|y| *y != NIL);
        let sum = below.fold(O::summary(&node.period), |sum, y| {
            O::join(sum, self.node(y).summary)
        });
        assert_eq!(node.summary, sum, "stale sums at {:?}", node.period);
        height + usize::from(!node.red)
    }
}
