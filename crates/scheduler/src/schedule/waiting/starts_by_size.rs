//! The waiting requests by start, in blocks of which each knows the least that one of its requests needs: so those are found that fit
//! somewhere, and the others are not looked at.

use super::WaitingRequest;
use super::free_runs::FreeRuns;
use super::freed_time::StartPosition;
use super::size_classes::{Shape, SizeSummary};
use crate::schedule::work::{LOOK, Work};
use crate::time::Time;

/// Requests of a block, and blocks of a group.
const BLOCK: usize = if cfg!(test) { 4 } else { 64 };

/// A waiting request at its place by start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SizedStart {
    at: StartPosition,
    shape: Shape,
}

/// Some neighbours by start, at least one.
#[derive(Debug, Clone)]
struct Block {
    summary: SizeSummary,
    starts: Vec<SizedStart>,
}

impl Block {
    fn of(starts: Vec<SizedStart>) -> Self {
        let summary = SizeSummary::of(starts.iter().map(|each| each.shape));
        Self { summary, starts }
    }

    fn first(&self) -> StartPosition {
        self.starts.first().map_or((Time::MAX, 0), |first| first.at)
    }
}

/// Some neighbouring blocks, at least one.
#[derive(Debug, Clone)]
struct Group {
    summary: SizeSummary,
    blocks: Vec<Block>,
}

impl Group {
    fn of(blocks: Vec<Block>) -> Self {
        let summaries = blocks.iter().map(|block| &block.summary);
        let summary = summaries.fold(SizeSummary::NONE, SizeSummary::join);
        Self { summary, blocks }
    }

    fn first(&self) -> StartPosition {
        self.blocks.first().map_or((Time::MAX, 0), Block::first)
    }
}

/// The waiting requests by start.
#[derive(Debug, Clone, Default)]
pub(super) struct StartsBySize {
    groups: Vec<Group>,
}

/// The index of the last of some neighbours, at least one, that begins at a place or before; else of the first.
fn holder<T>(neighbours: &[T], first: impl Fn(&T) -> StartPosition, at: StartPosition) -> usize {
    let behind = neighbours.partition_point(|each| first(each) <= at);
    behind.saturating_sub(1)
}

impl StartsBySize {
    /// Takes in a request. O(b + n / b²) for n requests in blocks of up to b, which are 64.
    pub(super) fn insert(&mut self, handle: u32, waiting: &WaitingRequest) {
        let one = SizedStart {
            at: (waiting.start, handle),
            shape: Shape::of(&waiting.request),
        };
        if self.groups.is_empty() {
            self.groups.push(Group::of(vec![Block::of(vec![one])]));
            return;
        }
        let g = holder(&self.groups, Group::first, one.at);
        let group = &mut self.groups[g];
        let b = holder(&group.blocks, Block::first, one.at);
        let block = &mut group.blocks[b];
        let k = block.starts.partition_point(|each| each.at < one.at);
        block.starts.insert(k, one);
        block.summary = block.summary.with(one.shape);
        group.summary = group.summary.with(one.shape);
        if block.starts.len() > BLOCK {
            let rest = Block::of(block.starts.split_off(BLOCK / 2));
            *block = Block::of(std::mem::take(&mut block.starts));
            group.blocks.insert(b + 1, rest);
        }
        if group.blocks.len() > BLOCK {
            let rest = Group::of(group.blocks.split_off(BLOCK / 2));
            *group = Group::of(std::mem::take(&mut group.blocks));
            self.groups.insert(g + 1, rest);
        }
    }

    /// Takes out a request that was taken in with this start. O(b + n / b²), as taking it in.
    pub(super) fn remove(&mut self, handle: u32, start: Time) {
        let at = (start, handle);
        let g = holder(&self.groups, Group::first, at);
        let Some(group) = self.groups.get_mut(g) else {
            return;
        };
        let b = holder(&group.blocks, Block::first, at);
        let Some(block) = group.blocks.get_mut(b) else {
            return;
        };
        let Ok(k) = block.starts.binary_search_by_key(&at, |each| each.at) else {
            return;
        };
        block.starts.remove(k);
        // Few beside few become one.
        if let Some(next) = group.blocks.get(b + 1)
            && group.blocks[b].starts.len() + next.starts.len() <= BLOCK / 2
        {
            let next = group.blocks.remove(b + 1);
            group.blocks[b].starts.extend(next.starts);
        }
        if group.blocks[b].starts.is_empty() {
            group.blocks.remove(b);
        } else {
            let starts = std::mem::take(&mut group.blocks[b].starts);
            group.blocks[b] = Block::of(starts);
        }
        *group = Group::of(std::mem::take(&mut group.blocks));
        if let Some(next) = self.groups.get(g + 1)
            && self.groups[g].blocks.len() + next.blocks.len() <= BLOCK / 2
        {
            let next = self.groups.remove(g + 1);
            let mut blocks = std::mem::take(&mut self.groups[g].blocks);
            blocks.extend(next.blocks);
            self.groups[g] = Group::of(blocks);
        }
        if self.groups[g].blocks.is_empty() {
            self.groups.remove(g);
        }
    }

    /// Replaces all by these. O(n log n), less than one by one.
    pub(super) fn replace<'a>(&mut self, all: impl Iterator<Item = (u32, &'a WaitingRequest)>) {
        let sized = |(handle, waiting): (u32, &WaitingRequest)| SizedStart {
            at: (waiting.start, handle),
            shape: Shape::of(&waiting.request),
        };
        let mut starts: Vec<SizedStart> = all.map(sized).collect();
        starts.sort_unstable_by_key(|each| each.at);
        let blocks = starts.chunks(BLOCK * 3 / 4);
        let mut blocks: Vec<Block> = blocks.map(|starts| Block::of(starts.to_vec())).collect();
        self.groups.clear();
        while !blocks.is_empty() {
            let rest = blocks.split_off(blocks.len().min(BLOCK * 3 / 4));
            self.groups.push(Group::of(std::mem::replace(&mut blocks, rest)));
        }
    }

    /// Whether these are the requests that were taken in.
    #[cfg(test)]
    pub(super) fn are_of<'a>(&self, all: impl Iterator<Item = (u32, &'a WaitingRequest)>) -> bool {
        let mut anew = Self::default();
        anew.replace(all);
        let starts = |of: &Self| -> Vec<SizedStart> {
            let blocks = of.groups.iter().flat_map(|group| &group.blocks);
            blocks.flat_map(|block| block.starts.iter().copied()).collect()
        };
        let is_summed_up = |group: &Group| {
            let mut blocks = group.blocks.iter();
            blocks.all(|block| block.summary == Block::of(block.starts.clone()).summary)
                && group.summary == Group::of(group.blocks.clone()).summary
        };
        starts(self) == starts(&anew) && self.groups.iter().all(is_summed_up)
    }

    /// The last request before `before` that may gain by runs of free time, as far as the work lasts: each one that is looked at counts, and
    /// each block. `before` is then the place up to which all were looked at, in any case an earlier one; where there is none, the first.
    pub(super) fn last_that_may_gain(
        &self,
        before: &mut StartPosition,
        runs: &FreeRuns,
        work: &mut Work,
    ) -> Option<u32> {
        let first = runs.first_position();
        let groups = self.groups.partition_point(|group| group.first() < *before);
        for group in self.groups[..groups].iter().rev() {
            work.spend(LOOK);
            let blocks = if runs.may_use(&group.summary, group.first().0) {
                group.blocks.partition_point(|block| block.first() < *before)
            } else {
                0
            };
            for block in group.blocks[..blocks].iter().rev() {
                work.spend(LOOK);
                let starts = if runs.may_use(&block.summary, block.first().0) {
                    block.starts.partition_point(|each| each.at < *before)
                } else {
                    0
                };
                for SizedStart { at, shape } in block.starts[..starts].iter().rev() {
                    work.spend(LOOK);
                    *before = *at;
                    if *at > first && runs.may_gain(*shape, at.0, 1) {
                        return Some(at.1);
                    }
                    if *at <= first || work.is_spent() {
                        return None;
                    }
                }
                *before = block.first();
                if *before <= first || work.is_spent() {
                    return None;
                }
            }
            *before = group.first();
            if *before <= first || work.is_spent() {
                return None;
            }
        }
        *before = first;
        None
    }
}
