//! Reserving, releasing and forgetting: everything that changes the step function.

use super::search::{Cursor, Span};
use super::steps::Steps;
use super::{BLOCK, LEFT, NIL, OWN, RIGHT, SUBTREE, SlotError, SlotTree, check_capacity};
use crate::time::{Interval, Time};

impl SlotTree {
    /// Takes `nodes` throughout `interval`. O(log n), for any length.
    ///
    /// # Errors
    /// [`SlotError::NotFree`] if fewer are free at some second; [`SlotError::Interval`] for an empty or boundless one.
    /// Nothing is changed then.
    pub fn reserve(&mut self, interval: Interval, nodes: u32) -> Result<(), SlotError> {
        self.change(interval, nodes, true)
    }

    /// Gives back `nodes` throughout `interval`. O(log n), for any length.
    ///
    /// # Errors
    /// [`SlotError::NotReserved`] if fewer are in use at some second; [`SlotError::Interval`] for an empty or boundless
    /// one. Nothing is changed then.
    pub fn release(&mut self, interval: Interval, nodes: u32) -> Result<(), SlotError> {
        self.change(interval, nodes, false)
    }

    /// Adds to the free nodes throughout `interval`, also where fewer than none or more than all are free then: for plans that
    /// are taken back, or with later changes that bring the numbers back into their bounds. O(log n). Nothing happens in an
    /// interval that holds no second of the plan.
    pub(crate) fn lay(&mut self, interval: Interval, nodes: i64) {
        let (start, end) = (interval.start.0.max(self.begin), interval.end.0);
        if interval.start <= Time::MIN || interval.end >= Time::MAX || start >= end {
            return;
        }
        // No request has more nodes than a resource.
        let Ok(nodes) = i32::try_from(nodes) else { return };
        if nodes != 0 {
            self.add_change(self.span_to_search(start, end), start, end, nodes);
        }
    }

    /// Drops the history before `before`: the step function from there on is unchanged, and the time before is outside the plan.
    /// O(k log n) for k slots dropped.
    pub fn forget(&mut self, before: Time) {
        let before = before.0.clamp(self.begin, Time::MAX.0 - 1);
        self.begin = before;
        let mut at = self.find(before);
        let mut slot = self.slot_at(at.node, before);
        if self.blocks[at.node as usize].starts[slot] != before {
            if self.nodes[at.node as usize].len == BLOCK {
                self.split_changed_block(at.node);
                at = self.find(before);
                slot = self.slot_at(at.node, before);
            }
            slot += 1;
            self.insert_changed_slot(at.node, slot, before);
        }
        // The block of the slot at Time::MIN is never removed, so it is the first one in time.
        let first = self.find(Time::MIN.0).node;
        let x = at.node;
        let free = self.blocks[x as usize].free[slot] + self.base(at);
        if x == first {
            self.remove_changed_slots(x, 1, slot);
        } else {
            while self.nodes[first as usize].beside[RIGHT] != x {
                let y = self.nodes[first as usize].beside[RIGHT];
                self.unlink(y);
            }
            self.remove_changed_slots(x, 0, slot);
            let len = self.nodes[first as usize].len;
            self.remove_changed_slots(first, 1, len);
        }
        if free == self.capacity {
            let slot = usize::from(x == first);
            self.remove_changed_slots(x, slot, slot + 1);
        }
        for y in [first, x] {
            self.push_path(y);
            let unused = self.capacity - self.nodes[y as usize].offset;
            if y == first {
                self.blocks[y as usize].free[0] = unused;
            }
            self.recount_changed_steps(y, unused);
            self.pull_path(y);
        }
        self.refresh_changed_blocks([first, if x == first { NIL } else { x }]);
    }

    /// Gives the resource another number of nodes, at all times of the plan. O(1).
    ///
    /// # Errors
    /// [`SlotError::NotFree`] if at some second fewer nodes are free than are to go. Nothing is changed then.
    ///
    /// # Panics
    /// If `capacity` exceeds [`super::MAX_CAPACITY`].
    pub(crate) fn resize(&mut self, capacity: u32) -> Result<(), SlotError> {
        check_capacity(capacity);
        let more = capacity.cast_signed() - self.capacity;
        let free = self.sums[self.root as usize][SUBTREE].min();
        if free + more < 0 {
            let free = free.cast_unsigned();
            return Err(SlotError::NotFree { free });
        }
        self.add_subtree(self.root, more);
        self.capacity += more;
        Ok(())
    }

    fn change(&mut self, interval: Interval, nodes: u32, take: bool) -> Result<(), SlotError> {
        if interval.is_empty() || interval.start <= Time::MIN || interval.end >= Time::MAX {
            return Err(SlotError::Interval);
        }
        let (start, end) = (interval.start.0.max(self.begin), interval.end.0);
        if nodes == 0 || start >= end {
            return Ok(());
        }
        let span = self.span_to_search(start, end);
        // A number beyond the capacity is refused below in any case.
        let asked = nodes.min(self.capacity()).cast_signed();
        let enough = if take {
            (asked, i32::MAX)
        } else {
            (i32::MIN, self.capacity - asked)
        };
        let (min, max) = self.search_extremes(span, enough);
        // Free nodes lie between 0 and the capacity.
        let (free, used) = (min.cast_unsigned(), (self.capacity - max).cast_unsigned());
        if take && free < nodes {
            return Err(SlotError::NotFree { free });
        }
        if !take && used < nodes {
            return Err(SlotError::NotReserved { used });
        }
        // No more than the capacity, by the tests above.
        let nodes = nodes.cast_signed();
        self.add_change(span, start, end, if take { -nodes } else { nodes });
        Ok(())
    }

    /// Adds to the free nodes throughout `[start, end)`, the slots of `span`.
    fn add_change(&mut self, span: Span, start: i64, end: i64, nodes: i32) {
        let Span { first, i, last, j } = self.cut_for_change(span, start, end);
        let (a, z) = (first.node, last.node);
        if a == z {
            for f in &mut self.blocks[a as usize].free[i..=j] {
                *f += nodes;
            }
        } else {
            let len = self.nodes[a as usize].len;
            for f in &mut self.blocks[a as usize].free[i..len] {
                *f += nodes;
            }
            for f in &mut self.blocks[z as usize].free[..=j] {
                *f += nodes;
            }
            if self.nodes[a as usize].beside[RIGHT] != z {
                let (low, high) = (self.nodes[a as usize].start, self.nodes[z as usize].start);
                self.add_change_between(self.root, low, high, nodes);
            }
        }
        let inside = j + 1 < self.nodes[z as usize].len;
        let behind = if inside {
            z
        } else {
            self.nodes[z as usize].beside[RIGHT]
        };
        let (rise, fall) = (
            Steps::at(start, -i64::from(nodes)),
            Steps::at(end, i64::from(nodes)),
        );
        if a == behind {
            self.count_changed_step(a, rise.plus(fall));
        } else {
            self.count_changed_step(a, rise);
            self.count_changed_step(behind, fall);
        }
        // Borders between equal slots go; a block that loses its first slot makes the one before it longer.
        let mut changed = [NIL, a, if z == a { NIL } else { z }, NIL];
        if inside {
            let free = &self.blocks[z as usize].free;
            if free[j] == free[j + 1] {
                self.remove_changed_slots(z, j + 1, j + 2);
            }
        } else if self.change_joins_next(last) {
            self.remove_changed_slots(behind, 0, 1);
            changed[3] = behind;
        }
        if i > 0 {
            let free = &self.blocks[a as usize].free;
            if free[i - 1] == free[i] {
                self.remove_changed_slots(a, i, i + 1);
            }
        } else if let Some(before) = self.seek(first, LEFT, |_, _| true)
            && self.change_joins_next(before)
        {
            self.remove_changed_slots(a, 0, 1);
            changed[0] = before.node;
        }
        self.refresh_changed_blocks(changed);
    }

    /// Whether the last slot of a block equals the first one of the next.
    fn change_joins_next(&self, at: Cursor) -> bool {
        let free = |at: Cursor, slot: usize| self.blocks[at.node as usize].free[slot] + self.base(at);
        let last = self.nodes[at.node as usize].len - 1;
        self.seek(at, RIGHT, |_, _| true)
            .is_some_and(|next| free(at, last) == free(next, 0))
    }

    /// Brings the tree up to date with blocks that have changed slots: each at most once, NIL for none.
    fn refresh_changed_blocks<const N: usize>(&mut self, mut changed: [u32; N]) {
        for x in &mut changed {
            if *x != NIL && self.nodes[*x as usize].len == 0 {
                self.unlink(*x);
                *x = NIL;
            }
        }
        for x in changed {
            if x != NIL {
                self.summarise_block(x);
                self.climb_with_summary(x);
            }
        }
        for x in changed {
            self.tidy_changed_block(x);
        }
    }

    /// Makes `start` and `end` borders of slots: the span then covers them exactly.
    fn cut_for_change(&mut self, mut span: Span, start: i64, end: i64) -> Span {
        loop {
            let Span { first, i, last, j } = span;
            let (a, z) = (first.node, last.node);
            let cut_start = usize::from(self.blocks[a as usize].starts[i] != start);
            let cut_end = usize::from(self.slot_end(z, j) != end);
            let (more_a, more_z) = if a == z {
                (cut_start + cut_end, 0)
            } else {
                (cut_start, cut_end)
            };
            let full_a = self.nodes[a as usize].len + more_a > BLOCK;
            if full_a || self.nodes[z as usize].len + more_z > BLOCK {
                self.split_changed_block(if full_a { a } else { z });
                span = self.span_to_search(start, end);
                continue;
            }
            if cut_end == 1 {
                self.insert_changed_slot(z, j + 1, end);
            }
            if cut_start == 1 {
                self.insert_changed_slot(a, i + 1, start);
            }
            let moved = if a == z { cut_start } else { 0 };
            return Span {
                first,
                i: i + cut_start,
                last,
                j: j + moved,
            };
        }
    }

    /// Adds to the blocks of subtree `x` that start strictly between `low` and `high`.
    fn add_change_between(&mut self, x: u32, low: i64, high: i64, nodes: i32) {
        if x == NIL {
            return;
        }
        if low == i64::MIN && high == i64::MAX {
            return self.add_subtree(x, nodes);
        }
        let start = self.nodes[x as usize].start;
        let [l, r] = self.nodes[x as usize].child;
        if start <= low {
            self.add_change_between(r, low, high, nodes);
        } else if start >= high {
            self.add_change_between(l, low, high, nodes);
        } else {
            self.add_block(x, nodes);
            self.add_change_between(l, low, i64::MAX, nodes);
            self.add_change_between(r, i64::MIN, high, nodes);
        }
        self.pull_summary(x);
    }

    /// Splits the slot before index `slot` of block `x`, which has room, at second `t`.
    fn insert_changed_slot(&mut self, x: u32, slot: usize, t: i64) {
        let len = self.nodes[x as usize].len;
        self.blocks[x as usize].insert(len, slot, t);
        self.nodes[x as usize].len += 1;
    }

    /// Removes the slots `from..to` of block `x`.
    fn remove_changed_slots(&mut self, x: u32, from: usize, to: usize) {
        let len = self.nodes[x as usize].len;
        self.blocks[x as usize].remove(len, from, to);
        let len = len - (to - from);
        self.nodes[x as usize].len = len;
        if from == 0 && len > 0 {
            self.nodes[x as usize].start = self.blocks[x as usize].starts[0];
        }
    }

    /// Halves a block.
    fn split_changed_block(&mut self, x: u32) {
        self.push_path(x);
        let new = self.allocate();
        let len = self.nodes[x as usize].len;
        let half = len / 2;
        let old = self.blocks[x as usize];
        self.blocks[new as usize].append(0, &old, half..len, 0);
        self.blocks[x as usize].remove(len, half, len);
        let start = old.starts[half];
        let offset = self.nodes[x as usize].offset;
        let node = &mut self.nodes[new as usize];
        node.start = start;
        node.len = len - half;
        node.offset = offset;
        self.nodes[x as usize].len = half;
        let moved = old.steps(half..len, old.free[half - 1]);
        self.steps[new as usize][OWN] = moved;
        self.steps[x as usize][OWN] = self.steps[x as usize][OWN].minus(moved);
        self.link_after(x, new);
        for y in [x, new] {
            self.summarise_block(y);
            self.pull_path(y);
        }
    }

    /// Joins block `x` with a neighbour if the two are far from full.
    fn tidy_changed_block(&mut self, x: u32) {
        let len = self.nodes[x as usize].len;
        // NIL, and a block that was joined to another meanwhile, have no slot.
        if len == 0 || len > BLOCK / 4 {
            return;
        }
        let [before, after] = self.nodes[x as usize].beside;
        for (y, z) in [(x, after), (before, x)] {
            let both = self.nodes[y as usize].len + self.nodes[z as usize].len;
            if y != NIL && z != NIL && both <= BLOCK / 2 {
                self.join_changed_blocks(y, z);
                return;
            }
        }
    }

    /// Moves the slots of block `z` to the one before it, `y`.
    fn join_changed_blocks(&mut self, y: u32, z: u32) {
        self.push_path(y);
        self.push_path(z);
        let (from, to) = (self.nodes[y as usize].len, self.nodes[z as usize].len);
        let shift = self.nodes[z as usize].offset - self.nodes[y as usize].offset;
        let block = self.blocks[z as usize];
        self.blocks[y as usize].append(from, &block, 0..to, shift);
        self.nodes[y as usize].len += self.nodes[z as usize].len;
        self.nodes[z as usize].len = 0;
        let moved = self.steps[z as usize][OWN];
        self.steps[z as usize][OWN] = Steps::default();
        self.steps[y as usize][OWN] = self.steps[y as usize][OWN].plus(moved);
        self.unlink(z);
        self.summarise_block(y);
        self.pull_path(y);
    }

    /// Counts a step of the used nodes in block `x` and everything above.
    fn count_changed_step(&mut self, x: u32, step: Steps) {
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
    fn recount_changed_steps(&mut self, x: u32, before: i32) {
        let len = self.nodes[x as usize].len;
        self.steps[x as usize][OWN] = self.blocks[x as usize].steps(0..len, before);
    }
}
