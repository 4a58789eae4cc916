//! What earlier attempts found out about waiting requests, so that the same is not found out again.
//!
//! A plan that is full of requests which fixqueue sent behind others makes every attempt try those again, far from the
//! newcomer and with the same outcome each time. The first fit of a request follows from the plan between its ready time
//! and the end of what it found, given those before it. That part of an attempt's plan is the standing plan, and what the
//! attempt has moved there so far. Of the latter each attempt keeps sums by stretch of time ([`Moves`]): while
//! the sums are those of an earlier attempt, and the standing plan has not changed there, the outcome is the same.

use super::trial::Turn;
use crate::queue::mix;
use crate::time::{Interval, Time};

/// Stretches of time in a ring of sums: a plan that is longer only shares them.
const STRETCHES: usize = 1 << 12;

/// An outcome that follows from more stretches is not remembered.
const STRETCHES_MAX: i64 = 64;

/// What followed for one request, once.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// What it follows from: the plan in here
    region: Interval,
    /// and what had been moved there.
    moves: u64,
    /// Where it came to lie, if anywhere.
    pub(super) start: Option<Time>,
    /// Who has to be placed again because it moved.
    pub(super) turns: Vec<Turn>,
}

impl Outcome {
    pub(super) fn region(&self) -> Interval {
        self.region
    }
}

/// The last two outcomes of each request: mostly one without any newcomer near and one with the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    outcomes: Vec<[Option<Outcome>; 2]>,
    /// Stretches are 2 to this power seconds long.
    grain: u32,
}

impl Memory {
    /// No moves yet, in stretches about as long as a request.
    pub(super) fn moves(&self) -> Moves {
        Moves {
            sums: vec![0; STRETCHES],
            grain: self.grain,
        }
    }

    /// Requests are at most so long from now on.
    pub(super) fn set_duration_max(&mut self, seconds: i64) {
        let grain = seconds.max(1).ilog2();
        if grain != self.grain {
            self.grain = grain;
            self.outcomes.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
    }

    /// The outcome for request `h`, ready at `ready`, after such moves.
    pub(super) fn recall(&mut self, h: u32, ready: Time, moves: &Moves) -> Option<&Outcome> {
        let [first, second] = self.outcomes.get_mut(h as usize)?;
        let holds = |outcome: &Option<Outcome>| {
            outcome
                .as_ref()
                .is_some_and(|o| o.region.start == ready && moves.within(o.region) == Some(o.moves))
        };
        if !holds(first) {
            if !holds(second) {
                return None;
            }
            // What holds again is worth more than what was last.
            std::mem::swap(first, second);
        }
        first.as_ref()
    }

    /// Remembers what followed from `region` for request `h`.
    pub(super) fn keep(
        &mut self,
        h: u32,
        region: Interval,
        moves: &Moves,
        start: Option<Time>,
        turns: Vec<Turn>,
    ) {
        let Some(moves) = moves.within(region) else { return };
        let h = h as usize;
        if self.outcomes.len() <= h {
            self.outcomes.resize_with(h + 1, Default::default);
        }
        let [first, second] = &mut self.outcomes[h];
        let place = if first.is_none() { first } else { second };
        *place = Some(Outcome {
            region,
            moves,
            start,
            turns,
        });
    }

    /// Forgets the outcomes of request `h` of which that is said.
    pub(super) fn forget(&mut self, h: u32, outdated: impl Fn(&Outcome) -> bool) {
        for outcome in self.outcomes.get_mut(h as usize).into_iter().flatten() {
            if outcome.as_ref().is_some_and(&outdated) {
                *outcome = None;
            }
        }
    }
}

/// What an attempt has moved so far, summed up by stretch of time.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// None where nothing is remembered.
    sums: Vec<u64>,
    grain: u32,
}

impl Moves {
    /// So many nodes were given back in a slot, or taken if negative. Whose they were is not asked: a search sees nodes,
    /// and the number of a request may soon be another's.
    pub(super) fn add(&mut self, slot: Interval, nodes: i64) {
        if self.sums.is_empty() {
            return;
        }
        let slot_of = mix(mix(slot.start.0.cast_unsigned()) ^ slot.end.0.cast_unsigned());
        let what = slot_of.wrapping_mul(nodes.cast_unsigned());
        for stretch in self.stretches(slot) {
            let sum = &mut self.sums[Self::place(stretch)];
            *sum = sum.wrapping_add(what);
        }
    }

    /// A number for all the moves that may reach into an interval; `None` if it is too long.
    fn within(&self, interval: Interval) -> Option<u64> {
        let stretches = self.stretches(interval);
        if self.sums.is_empty() || stretches.end() - stretches.start() >= STRETCHES_MAX {
            return None;
        }
        Some(stretches.fold(0, |all: u64, stretch| {
            all.rotate_left(5).wrapping_add(self.sums[Self::place(stretch)])
        }))
    }

    fn stretches(&self, interval: Interval) -> std::ops::RangeInclusive<i64> {
        interval.start.0 >> self.grain..=(interval.end.0 - 1) >> self.grain
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is a place in a ring")]
    fn place(stretch: i64) -> usize {
        stretch.cast_unsigned() as usize % STRETCHES
    }
}
