//! Queries: where does a request fit, where does a run of free time end, how many nodes are free throughout an interval.

use super::steps::Steps;
use super::summary::{CachedSummary, duration_class};
use super::{LEFT, NIL, OWN, RIGHT, SUBTREE, SlotTree};
use crate::time::{Interval, Seconds, Time};
use std::hint::select_unpredictable;

/// Gaps met before it pays to make the reach of blocks exact.
const SHORT_SEARCH: usize = if cfg!(test) { 1 } else { 4 };

/// The cost of a visit of a block, in slots that are met one by one.
const SLOTS_A_VISIT: u64 = 8;

/// The cost of making the reach of a block exact, in visits.
const VISITS_TO_TIGHTEN: u64 = 3;

/// A block, with the sum of the pending additions of its node and all nodes above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) node: u32,
    pub(super) pending: i32,
}

/// Consecutive slots: from index `i` of block `first` to index `j` of block `last`, both included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) first: Cursor,
    pub(super) i: usize,
    pub(super) last: Cursor,
    pub(super) j: usize,
}

/// The answer of the slots of a block about a fit.
enum Scan {
    /// The first long enough run starts here, maybe too late.
    Fit(i64),
    /// Not yet; the run of enough free nodes that reaches the block's far edge starts here, at the edge itself if there
    /// is none.
    Run(i64),
}

/// A search for a run of `duration` with `nodes` free, in a direction of travel: along time for the earliest fit,
/// against it for the latest. Backwards, instants are negated, so that the same comparisons serve both.
#[derive(Clone, Copy)]
struct Fit {
    nodes: i32,
    duration: Seconds,
    /// Latest start of a run.
    last: i64,
}

impl SlotTree {
    /// The free nodes at the worst second of `interval`; the capacity when it is empty. O(log n).
    pub fn min_free(&self, interval: Interval) -> u32 {
        let (start, end) = (interval.start.0.max(Time::MIN.0), interval.end.0.min(Time::MAX.0));
        if start >= end {
            return self.capacity();
        }
        self.search_extremes(self.span_to_search(start, end), (i32::MAX, i32::MIN))
            .0
            .cast_unsigned()
    }

    /// The free nodes at the worst and at the best second of `interval`; `None` when it is empty. O(log n).
    pub fn extremes(&self, interval: Interval) -> Option<(u32, u32)> {
        let (start, end) = (interval.start.0.max(Time::MIN.0), interval.end.0.min(Time::MAX.0));
        let span = (start < end).then(|| self.span_to_search(start, end))?;
        let (least, most) = self.search_extremes(span, (i32::MAX, i32::MIN));
        Some((least.cast_unsigned(), most.cast_unsigned()))
    }

    /// By how many nodes more than there are are in use at the worst second of `interval`; `None` where there is no such
    /// second. O(log n).
    pub(crate) fn shortage(&self, interval: Interval) -> Option<u32> {
        let free = self.min_free(interval).cast_signed();
        (free < 0).then(|| free.unsigned_abs())
    }

    /// The earliest second s with `nodes` free throughout [s, s + duration), the whole inside `window`. O((g + 1) log n), where g
    /// counts the gaps met that are too short but did not show it in a summary.
    pub fn earliest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        self.earliest_fit_within(nodes, duration, window, &mut u64::MAX.clone())
    }

    /// [`SlotTree::earliest_fit`] that looks at no more than `visits` blocks and subtracts them from `visits`. `None` with no
    /// visits left says nothing.
    pub(crate) fn earliest_fit_within(
        &self,
        nodes: u32,
        duration: Seconds,
        window: Interval,
        visits: &mut u64,
    ) -> Option<Time> {
        let (nodes, start, end) = self.asked(nodes, duration, window)?;
        let search = Fit {
            nodes,
            duration,
            last: end - duration,
        };
        self.fit::<true>(search, start, start, visits).map(Time)
    }

    /// [`SlotTree::earliest_fit`] on the plan with `changes` of the free nodes laid over it: each adds its nodes from its second
    /// on, in any order. O(c log c + k) for c changes and k slots met, then as the other; k is added to `met`.
    pub(crate) fn earliest_fit_changed(
        &self,
        nodes: u32,
        duration: Seconds,
        window: Interval,
        changes: &mut [(Time, i64)],
        met: &mut u64,
    ) -> Option<Time> {
        let (least, start, end) = self.asked(nodes, duration, window)?;
        let last = end - duration;
        changes.sort_unstable();
        let mut changes = changes.iter().map(|(t, more)| (t.0, *more)).peekable();
        let mut more = 0;
        let mut at = self.find(start);
        let mut slot = self.slot_at(at.node, start);
        let (mut t, mut run) = (start, start);
        while run <= last {
            *met += 1;
            while let Some((_, by)) = changes.next_if(|(change, _)| *change <= t) {
                more += by;
            }
            let free = i64::from(self.blocks[at.node as usize].free[slot] + self.base(at));
            let slot_end = self.slot_end(at.node, slot);
            t = changes
                .peek()
                .map_or(slot_end, |(change, _)| slot_end.min(*change));
            if free + more < i64::from(least) {
                run = t;
                if changes.peek().is_none() {
                    // From here on the plan is as it stands.
                    let mut visits = u64::MAX;
                    let rest = Interval::new(Time(run), window.end);
                    let found = self.earliest_fit_within(nodes, duration, rest, &mut visits);
                    *met += (u64::MAX - visits) * SLOTS_A_VISIT;
                    return found;
                }
            } else if t - run >= duration {
                return Some(Time(run));
            }
            if t == slot_end {
                slot += 1;
                if slot == self.nodes[at.node as usize].len {
                    at = self.seek(at, RIGHT, |_, _| true)?;
                    slot = 0;
                }
            }
        }
        None
    }

    /// The latest second s with `nodes` free throughout [s, s + duration), the whole inside `window`.
    /// Cost as [`SlotTree::earliest_fit`].
    pub fn latest_fit(&self, nodes: u32, duration: Seconds, window: Interval) -> Option<Time> {
        self.latest_fit_within(nodes, duration, window, &mut u64::MAX.clone())
    }

    /// [`SlotTree::latest_fit`] that looks at no more than `visits` blocks, as [`SlotTree::earliest_fit_within`].
    pub(crate) fn latest_fit_within(
        &self,
        nodes: u32,
        duration: Seconds,
        window: Interval,
        visits: &mut u64,
    ) -> Option<Time> {
        let (nodes, start, end) = self.asked(nodes, duration, window)?;
        let search = Fit {
            nodes,
            duration,
            last: -start - duration,
        };
        self.fit::<false>(search, -end, end - 1, visits)
            .map(|run| Time(-run - duration))
    }

    /// The maximal intervals inside `interval` throughout which at least `nodes` are free, in order of time.
    /// O(k log n) for k gaps.
    pub fn search_gaps(&self, interval: Interval, nodes: u32) -> impl Iterator<Item = Interval> + '_ {
        let mut rest = interval;
        std::iter::from_fn(move || {
            let start = self.earliest_fit(nodes, 1, rest)?;
            let nodes = i32::try_from(nodes).ok()?;
            let end = Time(self.search_run_end(nodes, start.0)).min(interval.end);
            rest.start = end;
            Some(Interval::new(start, end))
        })
    }

    /// The nodes of a placement that can be asked for at all, and the part of the window that it can lie in.
    fn asked(&self, nodes: u32, seconds: Seconds, window: Interval) -> Option<(i32, i64, i64)> {
        let nodes = i32::try_from(nodes).ok()?;
        let (start, end) = (window.start.0.max(self.begin), window.end.0.min(Time::MAX.0));
        (nodes <= self.capacity && seconds > 0 && start < end).then_some((nodes, start, end))
    }

    /// Start of the first run, in travel coordinates; `near` is the edge of the window to start from, `second` the first
    /// second met.
    fn fit<const FORWARD: bool>(&self, search: Fit, near: i64, second: i64, visits: &mut u64) -> Option<i64> {
        let Fit {
            nodes,
            duration,
            last,
        } = search;
        if near > last {
            return None;
        }
        let class = duration_class(duration);
        let (ahead, behind) = if FORWARD { (RIGHT, LEFT) } else { (LEFT, RIGHT) };
        let mut at = self.find(second);
        let mut slot = self.slot_at(at.node, second);
        let mut run = near;
        let mut hops = 0;
        loop {
            *visits = visits.checked_sub(1)?;
            run = match self.scan::<FORWARD>(search, at, slot, run) {
                Scan::Fit(start) => return (start <= last).then_some(start),
                Scan::Run(start) => start,
            };
            if run > last {
                return None;
            }
            let open = run < self.far_edge_of_search::<FORWARD>(at.node);
            let next = if open {
                self.seek(at, ahead, |sum, pending| sum.min() + pending < nodes)
            } else if hops < SHORT_SEARCH {
                hops += 1;
                self.seek(at, ahead, |sum, pending| sum.max() + pending >= nodes)
            } else {
                self.seek_reach(at, ahead, class, nodes, visits)
            };
            match next {
                // Nothing stands in the way of the run any more.
                None if open => return Some(run),
                None => return None,
                Some(next) if open => {
                    if self.near_edge_of_search::<FORWARD>(next.node) >= run + duration {
                        return Some(run);
                    }
                    at = next;
                }
                Some(next) => {
                    // The run may have begun in the block before, which was skipped.
                    run = self.near_edge_of_search::<FORWARD>(next.node);
                    let len = self.nodes[next.node as usize].len;
                    let first = self.blocks[next.node as usize].free[if FORWARD { 0 } else { len - 1 }];
                    if first + self.base(next) >= nodes
                        && let Some(before) = self.seek(next, behind, |_, _| true)
                    {
                        run = self.search_trailing_run::<FORWARD>(search, before);
                    }
                    if run > last {
                        return None;
                    }
                    at = next;
                }
            }
            slot = if FORWARD {
                0
            } else {
                self.nodes[at.node as usize].len - 1
            };
        }
    }

    /// The nearest block ahead of `at` that may have a run of the class with `nodes` free.
    fn seek_reach(
        &self,
        mut at: Cursor,
        ahead: usize,
        class: usize,
        nodes: i32,
        visits: &mut u64,
    ) -> Option<Cursor> {
        loop {
            at = self.seek(at, ahead, |sum, pending| sum.reach(class) + pending >= nodes)?;
            let own = &self.sums[at.node as usize][OWN];
            if !own.loose() {
                return Some(at);
            }
            *visits = visits.saturating_sub(VISITS_TO_TIGHTEN);
            self.tighten_summary(at.node);
            if own.reach(class) + at.pending >= nodes {
                return Some(at);
            }
        }
    }

    /// All blocks in order of time.
    pub(super) fn in_order(&self) -> impl Iterator<Item = Cursor> {
        self.in_order_from(self.find(Time::MIN.0))
    }

    /// A block and all after it.
    pub(super) fn in_order_from(&self, first: Cursor) -> impl Iterator<Item = Cursor> {
        std::iter::successors(Some(first), |at| self.seek(*at, RIGHT, |_, _| true))
    }

    /// The edge of a block that travel meets first, in travel coordinates.
    fn near_edge_of_search<const FORWARD: bool>(&self, x: u32) -> i64 {
        if FORWARD {
            self.nodes[x as usize].start
        } else {
            -self.block_end(x)
        }
    }

    /// The edge of a block that travel meets last, in travel coordinates.
    fn far_edge_of_search<const FORWARD: bool>(&self, x: u32) -> i64 {
        if FORWARD {
            self.block_end(x)
        } else {
            -self.nodes[x as usize].start
        }
    }

    /// Follows `run` through the slots of a block, from `slot` on. Whether a slot has enough free nodes cannot be predicted, so
    /// nothing but the end of the search branches on it.
    #[inline]
    fn scan<const FORWARD: bool>(&self, search: Fit, at: Cursor, slot: usize, mut run: i64) -> Scan {
        let len = self.nodes[at.node as usize].len;
        let block = &self.blocks[at.node as usize];
        let (starts, free) = (&block.starts[..len], &block.free[..len]);
        let least = search.nodes - self.base(at);
        if FORWARD {
            // Each slot ends where the next begins, and the last one with the block.
            for (free, end) in free[slot..].iter().zip(&starts[slot + 1..]) {
                run = select_unpredictable(*free < least, *end, run);
                if *end - run >= search.duration {
                    return Scan::Fit(run);
                }
            }
            if free[len - 1] < least {
                run = self.block_end(at.node);
            } else if self.block_end(at.node) - run >= search.duration {
                return Scan::Fit(run);
            }
        } else {
            for (free, start) in free[..=slot].iter().zip(&starts[..=slot]).rev() {
                run = select_unpredictable(*free < least, -start, run);
                if -start - run >= search.duration {
                    return Scan::Fit(run);
                }
            }
        }
        Scan::Run(run)
    }

    /// Start of the run that reaches the far edge of a block, in travel coordinates.
    fn search_trailing_run<const FORWARD: bool>(&self, search: Fit, at: Cursor) -> i64 {
        let len = self.nodes[at.node as usize].len;
        let block = &self.blocks[at.node as usize];
        let least = search.nodes - self.base(at);
        let enough = block.free[..len].iter().map(|f| *f >= least);
        if FORWARD {
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
    pub(super) fn search_run_end(&self, nodes: i32, t: i64) -> i64 {
        let mut at = self.find(t);
        let mut slot = self.slot_at(at.node, t);
        loop {
            let len = self.nodes[at.node as usize].len;
            let block = &self.blocks[at.node as usize];
            let least = nodes - self.base(at);
            if let Some(blocked) = (slot..len).find(|i| block.free[*i] < least) {
                return block.starts[blocked].max(t);
            }
            match self.seek(at, RIGHT, |sum, pending| sum.min() + pending < nodes) {
                Some(next) => (at, slot) = (next, 0),
                None => return Time::MAX.0,
            }
        }
    }

    /// The block that holds second `t`. Left or right cannot be predicted, so no branch depends on it.
    pub(super) fn find(&self, t: i64) -> Cursor {
        let mut x = self.root;
        let mut pending = 0;
        let mut found = Cursor { node: x, pending };
        while x != NIL {
            let node = &self.nodes[x as usize];
            pending += node.pending;
            let after = node.start <= t;
            let [l, r] = node.child;
            found = select_unpredictable(after, Cursor { node: x, pending }, found);
            x = select_unpredictable(after, r, l);
        }
        found
    }

    /// The slot of block `x` that holds second `t`.
    #[inline]
    pub(super) fn slot_at(&self, x: u32, t: i64) -> usize {
        self.blocks[x as usize].find(self.nodes[x as usize].len, t)
    }

    /// The number to add to the slots of a block to get free nodes.
    pub(super) fn base(&self, at: Cursor) -> i32 {
        at.pending + self.nodes[at.node as usize].offset
    }

    /// The nearest block ahead of `at` with a wanted summary. `wanted` gets a summary and the number to add to it; it must hold
    /// of a subtree if it holds of one of its blocks.
    #[inline]
    pub(super) fn seek(
        &self,
        at: Cursor,
        ahead: usize,
        wanted: impl Fn(&CachedSummary, i32) -> bool,
    ) -> Option<Cursor> {
        let Cursor {
            node: mut x,
            mut pending,
        } = at;
        let subtree = |x: u32, pending| x != NIL && wanted(&self.sums[x as usize][SUBTREE], pending);
        loop {
            let below = self.nodes[x as usize].child[ahead];
            if subtree(below, pending) {
                x = below;
                pending += self.nodes[x as usize].pending;
                loop {
                    let near = self.nodes[x as usize].child[1 - ahead];
                    if !subtree(near, pending) {
                        break;
                    }
                    x = near;
                    pending += self.nodes[x as usize].pending;
                }
            } else {
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
            }
            if wanted(&self.sums[x as usize][OWN], pending) {
                return Some(Cursor { node: x, pending });
            }
        }
    }

    /// The slots that `[start, end)` meets; it must hold a second.
    pub(super) fn span_to_search(&self, start: i64, end: i64) -> Span {
        let first = self.find(start);
        let last = if end <= self.block_end(first.node) {
            first
        } else {
            self.find(end - 1)
        };
        Span {
            first,
            i: self.slot_at(first.node, start),
            last,
            j: self.slot_at(last.node, end - 1),
        }
    }

    /// Minimum and maximum of free nodes; where all values are `enough`.0 or more and `enough`.1 or less, they may be those
    /// of a wider interval.
    pub(super) fn search_extremes(&self, span: Span, enough: (i32, i32)) -> (i32, i32) {
        let Span { first, i, last, j } = span;
        if first.node == last.node {
            return self.search_block_extremes(first, i, j);
        }
        let node = &self.nodes[first.node as usize];
        let a = self.search_block_extremes(first, i, node.len - 1);
        let b = self.search_block_extremes(last, 0, j);
        let ends = (a.0.min(b.0), a.1.max(b.1));
        if node.beside[RIGHT] == last.node {
            return ends;
        }
        let between = self.search_between(node.start, self.nodes[last.node as usize].start, enough);
        (ends.0.min(between.0), ends.1.max(between.1))
    }

    fn search_block_extremes(&self, at: Cursor, i: usize, j: usize) -> (i32, i32) {
        let base = self.base(at);
        let free = &self.blocks[at.node as usize].free[i..=j];
        let (min, max) = free
            .iter()
            .fold((i32::MAX, i32::MIN), |(a, b), f| (a.min(*f), b.max(*f)));
        (min + base, max + base)
    }

    /// Minimum and maximum over the blocks that start strictly between `low` and `high`; there must be one.
    fn search_between(&self, low: i64, high: i64, enough: (i32, i32)) -> (i32, i32) {
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
        let [own, all] = &self.sums[x as usize];
        let above = pending - self.nodes[x as usize].pending;
        let wider = (all.min() + above, all.max() + above);
        if wider.0 >= enough.0 && wider.1 <= enough.1 {
            return wider;
        }
        let mut found = (own.min() + pending, own.max() + pending);
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
                        found = (found.0.min(sum.min() + above), found.1.max(sum.max() + above));
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
        let slot = self.slot_at(found.node, t);
        let sum = sum.minus(block.steps(slot + 1..len, block.free[slot]));
        t.wrapping_mul(sum.height).wrapping_sub(sum.moment)
    }
}
