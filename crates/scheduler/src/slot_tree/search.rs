//! Queries: where does a request fit, where does a run of free time end, what is the floor of an interval.

use super::summary::{Summary, class};
use super::{LEFT, NIL, OWN, RIGHT, SUBTREE, SlotTree, Steps, possible};
use crate::time::{Interval, Seconds, Time};

/// A block, with the sum of the pending additions of its node and all nodes above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) node: u32,
    pub(super) pending: i32,
}

/// What the slots of a block had to say about a fit.
enum Scan {
    /// It starts here.
    Fit(i64),
    /// Not yet; the run of enough free nodes that reaches the block's far edge starts here, at the edge itself if there
    /// is none.
    Run(i64),
}

/// A search for a run of `duration` with `nodes` free, in a direction of travel: along time for the earliest fit,
/// against it for the latest. Backwards, instants are negated, so that the same comparisons serve both.
#[derive(Clone, Copy)]
struct Fit {
    forward: bool,
    nodes: i32,
    duration: Seconds,
    /// Latest start of a run.
    last: i64,
}

impl SlotTree {
    /// The earliest second s with `nodes` free throughout [s, s + duration), the whole inside `window`.
    /// O((g + 1) log n), where g counts the gaps met that are too short but could not be told to be.
    pub fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        let (start, end) = self.clip(window)?;
        let nodes = possible(nodes, self.capacity, duration)?;
        let search = Fit {
            forward: true,
            nodes,
            duration,
            last: end - duration,
        };
        self.fit(search, start, start).map(Time)
    }

    /// The latest second s with `nodes` free throughout [s, s + duration), the whole inside `window`.
    /// Cost as [`SlotTree::earliest_fit`].
    pub fn latest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        let (start, end) = self.clip(window)?;
        let nodes = possible(nodes, self.capacity, duration)?;
        let search = Fit {
            forward: false,
            nodes,
            duration,
            last: -start - duration,
        };
        self.fit(search, -end, end - 1).map(|run| Time(-run - duration))
    }

    /// The maximal intervals inside `interval` throughout which at least `nodes` are free, in order of time.
    /// O(k log n) for k gaps.
    pub fn gaps(&self, interval: Interval, nodes: u32) -> impl Iterator<Item = Interval> + '_ {
        let mut rest = interval;
        std::iter::from_fn(move || {
            let start = self.earliest_fit(nodes, 1, rest)?;
            let nodes = i32::try_from(nodes).ok()?;
            let end = Time(self.run_end(nodes, start.0)).min(interval.end);
            rest.start = end;
            Some(Interval::new(start, end))
        })
    }

    /// The part of a window that a placement can lie in.
    fn clip(&self, window: Interval) -> Option<(i64, i64)> {
        let (start, end) = (window.start.0.max(self.begin), window.end.0.min(Time::MAX.0));
        (start < end).then_some((start, end))
    }

    /// Start of the first run, in travel coordinates; `near` is the edge of the window to start from, `second` the first
    /// second met.
    #[inline]
    fn fit(&self, search: Fit, near: i64, second: i64) -> Option<i64> {
        let Fit {
            forward,
            nodes,
            duration,
            last,
        } = search;
        if near > last {
            return None;
        }
        let class = class(duration);
        let (ahead, behind) = if forward { (RIGHT, LEFT) } else { (LEFT, RIGHT) };
        let mut at = self.find(second);
        let mut slot = self.slot_at(at.node, second);
        let mut run = near;
        loop {
            run = match self.scan(search, at, slot, run) {
                Scan::Fit(start) => return Some(start),
                Scan::Run(start) => start,
            };
            if run > last {
                return None;
            }
            let open = run < self.edge(at.node, forward);
            let next = if open {
                self.seek(at, ahead, |sum, pending| sum.min + pending < nodes)
            } else {
                self.seek(at, ahead, |sum, pending| sum.reach[class] + pending >= nodes)
            };
            match next {
                // Nothing stands in the way of the run any more.
                None if open => return Some(run),
                None => return None,
                Some(next) if open => {
                    if -self.edge(next.node, !forward) >= run + duration {
                        return Some(run);
                    }
                    at = next;
                }
                Some(next) => {
                    // The run may have begun in the block before, which was skipped.
                    let before = self.seek(next, behind, |_, _| true);
                    run = before.map_or(run, |b| self.trailing_run(search, b));
                    if run > last {
                        return None;
                    }
                    at = next;
                }
            }
            slot = if forward {
                0
            } else {
                self.nodes[at.node as usize].len - 1
            };
        }
    }

    /// The far edge of a block in travel coordinates.
    fn edge(&self, x: u32, forward: bool) -> i64 {
        if forward {
            self.block_end(x)
        } else {
            -self.nodes[x as usize].start
        }
    }

    /// Follows `run` through the slots of a block, from `slot` on.
    #[inline]
    fn scan(&self, search: Fit, at: Cursor, slot: usize, mut run: i64) -> Scan {
        let len = self.nodes[at.node as usize].len;
        let block = &self.blocks[at.node as usize];
        let (starts, free) = (&block.starts[..len], &block.free[..len]);
        let least = search.nodes - self.base(at);
        if search.forward {
            for i in slot..len {
                let end = if i + 1 < len {
                    starts[i + 1]
                } else {
                    self.block_end(at.node)
                };
                if free[i] < least {
                    run = end;
                } else if end - run >= search.duration {
                    return Scan::Fit(run);
                }
                if run > search.last {
                    break;
                }
            }
        } else {
            for i in (0..=slot).rev() {
                if free[i] < least {
                    run = -starts[i];
                } else if -starts[i] - run >= search.duration {
                    return Scan::Fit(run);
                }
                if run > search.last {
                    break;
                }
            }
        }
        Scan::Run(run)
    }

    /// Start of the run that reaches the far edge of a block, in travel coordinates.
    fn trailing_run(&self, search: Fit, at: Cursor) -> i64 {
        let len = self.nodes[at.node as usize].len;
        let block = &self.blocks[at.node as usize];
        let least = search.nodes - self.base(at);
        let enough = block.free[..len].iter().map(|f| *f >= least);
        if search.forward {
            let run = enough.rev().take_while(|e| *e).count();
            if run == 0 {
                self.block_end(at.node)
            } else {
                block.starts[len - run]
            }
        } else {
            let run = enough.take_while(|e| *e).count();
            if run == 0 {
                -block.starts[0]
            } else {
                -self.slot_end(at.node, run - 1)
            }
        }
    }

    /// The first second at or after `t` with fewer than `nodes` free.
    fn run_end(&self, nodes: i32, t: i64) -> i64 {
        let mut at = self.find(t);
        let mut slot = self.slot_at(at.node, t);
        loop {
            let len = self.nodes[at.node as usize].len;
            let block = &self.blocks[at.node as usize];
            let least = nodes - self.base(at);
            if let Some(blocked) = (slot..len).find(|i| block.free[*i] < least) {
                return block.starts[blocked].max(t);
            }
            match self.seek(at, RIGHT, |sum, pending| sum.min + pending < nodes) {
                Some(next) => (at, slot) = (next, 0),
                None => return Time::MAX.0,
            }
        }
    }

    /// The block that holds second `t`.
    pub(super) fn find(&self, t: i64) -> Cursor {
        let mut x = self.root;
        let mut pending = 0;
        let mut found = Cursor { node: x, pending };
        while x != NIL {
            let node = &self.nodes[x as usize];
            pending += node.pending;
            let after = node.start <= t;
            if after {
                found = Cursor { node: x, pending };
            }
            x = node.child[usize::from(after)];
        }
        found
    }

    /// The slot of block `x` that holds second `t`.
    pub(super) fn slot_at(&self, x: u32, t: i64) -> usize {
        let len = self.nodes[x as usize].len;
        // The block was chosen by its first slot, which starts at or before `t`.
        self.blocks[x as usize].starts[..len].partition_point(|s| *s <= t) - 1
    }

    /// What must be added to the slots of a block to get free nodes.
    pub(super) fn base(&self, at: Cursor) -> i32 {
        at.pending + self.nodes[at.node as usize].offset
    }

    /// The nearest block ahead of `at` whose summary is wanted. `wanted` gets a summary and what is to be added to it; it
    /// must hold of a subtree exactly if it holds of one of its blocks.
    #[inline]
    pub(super) fn seek(
        &self,
        at: Cursor,
        ahead: usize,
        wanted: impl Fn(&Summary, i32) -> bool,
    ) -> Option<Cursor> {
        let Cursor {
            node: mut x,
            mut pending,
        } = at;
        loop {
            let below = self.nodes[x as usize].child[ahead];
            if below != NIL && wanted(&self.sums[below as usize][SUBTREE], pending) {
                return Some(self.first_wanted(below, pending, ahead, wanted));
            }
            loop {
                let parent = self.nodes[x as usize].parent;
                if parent == NIL {
                    return None;
                }
                pending -= self.nodes[x as usize].pending;
                let passed = self.nodes[parent as usize].child[ahead] == x;
                x = parent;
                if !passed {
                    break;
                }
            }
            if wanted(&self.sums[x as usize][OWN], pending) {
                return Some(Cursor { node: x, pending });
            }
        }
    }

    /// The nearest wanted block of the wanted subtree `x`; `pending` is the sum above it.
    #[inline]
    fn first_wanted(
        &self,
        mut x: u32,
        mut pending: i32,
        ahead: usize,
        wanted: impl Fn(&Summary, i32) -> bool,
    ) -> Cursor {
        loop {
            let node = &self.nodes[x as usize];
            let inside = pending + node.pending;
            let near = node.child[1 - ahead];
            if near != NIL && wanted(&self.sums[near as usize][SUBTREE], inside) {
                x = near;
            } else if wanted(&self.sums[x as usize][OWN], inside) {
                return Cursor {
                    node: x,
                    pending: inside,
                };
            } else {
                x = node.child[ahead];
            }
            pending = inside;
        }
    }

    /// Minimum and maximum of free nodes in `[start, end)`, which must hold a second.
    pub(super) fn extremes(&self, start: i64, end: i64) -> (i32, i32) {
        let first = self.find(start);
        let last = self.find(end - 1);
        let (i, j) = (self.slot_at(first.node, start), self.slot_at(last.node, end - 1));
        if first.node == last.node {
            return self.block_extremes(first, i, j);
        }
        let (len, after) = {
            let node = &self.nodes[first.node as usize];
            (node.len, node.beside[RIGHT])
        };
        let a = self.block_extremes(first, i, len - 1);
        let b = self.block_extremes(last, 0, j);
        let ends = (a.0.min(b.0), a.1.max(b.1));
        if after == last.node {
            return ends;
        }
        let between = self.between(
            self.nodes[first.node as usize].start,
            self.nodes[last.node as usize].start,
        );
        (ends.0.min(between.0), ends.1.max(between.1))
    }

    fn block_extremes(&self, at: Cursor, i: usize, j: usize) -> (i32, i32) {
        let base = self.base(at);
        let free = &self.blocks[at.node as usize].free[i..=j];
        let (min, max) = free
            .iter()
            .fold((i32::MAX, i32::MIN), |(a, b), f| (a.min(*f), b.max(*f)));
        (min + base, max + base)
    }

    /// Minimum and maximum over the blocks that start strictly between `low` and `high`; there must be one.
    fn between(&self, low: i64, high: i64) -> (i32, i32) {
        let mut x = self.root;
        let mut pending = 0;
        loop {
            let node = &self.nodes[x as usize];
            pending += node.pending;
            if node.start <= low {
                x = node.child[RIGHT];
            } else if node.start >= high {
                x = node.child[LEFT];
            } else {
                break;
            }
        }
        let own = &self.sums[x as usize][OWN];
        let mut found = (own.min + pending, own.max() + pending);
        for side in [LEFT, RIGHT] {
            let mut y = self.nodes[x as usize].child[side];
            let mut above = pending;
            while y != NIL {
                let node = &self.nodes[y as usize];
                above += node.pending;
                let inside = if side == LEFT {
                    node.start > low
                } else {
                    node.start < high
                };
                if inside {
                    let covered = node.child[1 - side];
                    for sum in [&self.sums[y as usize][OWN], &self.sums[covered as usize][SUBTREE]] {
                        found = (found.0.min(sum.min + above), found.1.max(sum.max() + above));
                    }
                }
                y = node.child[if inside { side } else { 1 - side }];
            }
        }
        found
    }

    /// The node-seconds in use before `t`, modulo 2⁶⁴.
    pub(super) fn busy_before(&self, t: i64) -> i64 {
        let mut sum = Steps::default();
        let mut x = self.root;
        let mut found = Cursor { node: x, pending: 0 };
        let mut pending = 0;
        while x != NIL {
            let node = &self.nodes[x as usize];
            pending += node.pending;
            if node.start <= t {
                found = Cursor { node: x, pending };
                sum = sum
                    .plus(self.steps[node.child[LEFT] as usize][SUBTREE])
                    .plus(self.steps[x as usize][OWN]);
                x = node.child[RIGHT];
            } else {
                x = node.child[LEFT];
            }
        }
        // The sums hold the whole block: take off the steps after `t`.
        let block = &self.blocks[found.node as usize];
        let len = self.nodes[found.node as usize].len;
        for i in self.slot_at(found.node, t) + 1..len {
            let used = i64::from(block.free[i - 1]) - i64::from(block.free[i]);
            sum = sum.minus(Steps::at(block.starts[i], used));
        }
        t.wrapping_mul(sum.height).wrapping_sub(sum.moment)
    }
}
