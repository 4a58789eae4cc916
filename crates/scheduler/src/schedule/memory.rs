//! Results of earlier attempts about waiting requests, so that they are not computed again.
//!
//! A plan that is full of requests which fixqueue sent behind others makes every attempt try those again, far from the newcomer
//! and with the same outcome each time. The first fit of a request depends on the plan between its ready time and the end of the
//! place found, given the requests before it. That part of an attempt's plan is the standing plan, with the moves that the
//! attempt has made there so far. Of these moves each attempt keeps sums by stretch of time ([`Moves`]); of the standing plan the
//! memory keeps a version for each stretch. While both are those of an earlier attempt, the outcome is the same.

use crate::queue::mix_bits;
use crate::time::{Interval, Time};
use std::ops::RangeInclusive;

/// Stretches of time in a ring: a plan that is longer only shares them.
const STRETCHES: usize = 1 << 12;

/// An outcome that follows from more stretches is not remembered.
const STRETCHES_MAX: i64 = 64;

/// The outcome for one request, once.
#[derive(Debug, Clone, Copy)]
struct PlacementOutcome {
    /// It follows from the plan from here
    ready: Time,
    /// to here,
    end: Time,
    /// as it was then.
    plan: u64,
    /// The new place of the request, if any.
    start: Option<Time>,
}

/// The new place of a request, if any.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewPlace(pub(super) Option<Time>);

/// The last two outcomes of each request: mostly one without any newcomer near and one with the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    outcomes: Vec<[Option<PlacementOutcome>; 2]>,
    /// How often the standing plan has changed, by stretch; none where nothing is remembered.
    versions: Vec<u64>,
    /// Stretches are 2 to this power seconds long.
    grain: u32,
}

impl Memory {
    /// No moves yet, in stretches about as long as a request.
    pub(super) fn moves(&mut self) -> Moves {
        self.versions.resize(STRETCHES, 0);
        Moves {
            sums: vec![0; STRETCHES],
            grain: self.grain,
        }
    }

    /// Most requests are at most 2 to this power seconds long.
    pub(super) fn set_grain(&mut self, grain: u32) {
        if grain.abs_diff(self.grain) > 1 {
            self.grain = grain;
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
    }

    /// The standing plan has changed in an interval: nodes were taken or given back, or some request there is seen by others
    /// than before.
    pub(super) fn note_change(&mut self, interval: Interval) {
        if self.outcomes.is_empty() || interval.is_empty() {
            return;
        }
        let stretches = memory_stretches(interval, self.grain);
        if stretches.end() - stretches.start() >= 1 << 12 {
            return self.clear();
        }
        for stretch in stretches {
            let version = &mut self.versions[place_in_memory(stretch)];
            *version = version.wrapping_add(1);
        }
    }

    /// The outcome for request `h`, ready at `ready`, after such moves.
    pub(super) fn recall(&mut self, h: u32, ready: Time, moves: &Moves) -> Option<NewPlace> {
        let one_outcome = *self.outcomes.get(h as usize)?;
        let holds = |outcome: Option<PlacementOutcome>| {
            outcome
                .filter(|o| o.ready == ready && self.plan(Interval::new(ready, o.end), moves) == Some(o.plan))
        };
        if let Some(outcome) = holds(one_outcome[0]) {
            return Some(NewPlace(outcome.start));
        }
        let outcome = holds(one_outcome[1])?;
        // An outcome that holds again is worth more than the last one.
        self.outcomes[h as usize].swap(0, 1);
        Some(NewPlace(outcome.start))
    }

    /// Remembers the outcome of the plan in `region` for request `h`.
    pub(super) fn keep(&mut self, h: u32, region: Interval, moves: &Moves, start: Option<Time>) {
        let Some(plan) = self.plan(region, moves) else {
            return;
        };
        let h = h as usize;
        if self.outcomes.len() <= h {
            self.outcomes.resize_with(h + 1, Default::default);
        }
        let [first, second] = &mut self.outcomes[h];
        let place = if first.is_none() { first } else { second };
        *place = Some(PlacementOutcome {
            ready: region.start,
            end: region.end,
            plan,
            start,
        });
    }

    /// Forgets the outcomes of request `h`.
    pub(super) fn forget(&mut self, h: u32) {
        if let Some(outcomes) = self.outcomes.get_mut(h as usize) {
            *outcomes = [None, None];
        }
    }

    /// A number for the plan in an interval after such moves; `None` if it is too long.
    fn plan(&self, interval: Interval, moves: &Moves) -> Option<u64> {
        let stretches = memory_stretches(interval, self.grain);
        if moves.sums.is_empty() || stretches.end() - stretches.start() >= STRETCHES_MAX {
            return None;
        }
        Some(stretches.fold(0, |all: u64, stretch| {
            let at = place_in_memory(stretch);
            let standing = self.versions[at].wrapping_mul(0x9E37_79B9_7F4A_7C15);
            all.rotate_left(5).wrapping_add(moves.sums[at] ^ standing)
        }))
    }
}

/// The moves of an attempt so far, summed up by stretch of time.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// None where nothing is remembered.
    sums: Vec<u64>,
    grain: u32,
}

impl Moves {
    /// Nodes were given back in a slot, or taken if negative. Their request is not kept: a search sees nodes, and the number of a
    /// request may soon be another's.
    pub(super) fn add(&mut self, slot: Interval, nodes: i64) {
        if self.sums.is_empty() {
            return;
        }
        let slot_of = mix_bits(mix_bits(slot.start.0.cast_unsigned()) ^ slot.end.0.cast_unsigned());
        let what = slot_of.wrapping_mul(nodes.cast_unsigned());
        let stretches = memory_stretches(slot, self.grain);
        // One that is longer than the ring meets all of it.
        let last = (*stretches.end()).min(stretches.start() + (1 << 12) - 1);
        for stretch in *stretches.start()..=last {
            let sum = &mut self.sums[place_in_memory(stretch)];
            *sum = sum.wrapping_add(what);
        }
    }
}

fn memory_stretches(interval: Interval, grain: u32) -> RangeInclusive<i64> {
    interval.start.0 >> grain..=(interval.end.0 - 1) >> grain
}

#[expect(clippy::cast_possible_truncation, reason = "it is a place in a ring")]
fn place_in_memory(stretch: i64) -> usize {
    stretch.cast_unsigned() as usize % STRETCHES
}
