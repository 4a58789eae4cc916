//! The part of what a party uses that lies in one part of time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use domain::agreement::Stretch;
use scheduler::{Seconds, Time};

/// The length of the parts of time for which node-seconds are summed up, in seconds: six hours.
pub(super) const PART: Seconds = 21_600;

/// How many nodes are in use in one part of time.
#[derive(Clone, Default)]
pub(super) struct PartOfUsage {
    /// How many nodes are in use just before it begins.
    level: i64,
    /// By how many the number changes in it.
    pub(super) changes: BTreeMap<Time, i64>,
    pub(super) node_seconds: u128,
    /// The most by which a span that ends in this part of time gains over the one that ends where it begins; none before the first
    /// question.
    gain: OnceLock<u128>,
}

impl fmt::Debug for PartOfUsage {
    // All but the gain: a question does not change the part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            level,
            changes,
            node_seconds,
            gain: _,
        } = self;
        f.debug_tuple("PartOfUsage")
            .field(level)
            .field(changes)
            .field(node_seconds)
            .finish()
    }
}

/// The numbers of the parts of time that a stretch changes: the last one may be that in which it ends without a second of it.
pub(super) fn parts_of_stretch((slot, _): Stretch) -> impl Iterator<Item = i64> {
    let parts = slot.start.seconds().div_euclid(PART)..=slot.end.seconds().div_euclid(PART);
    parts.filter(move |_| !slot.is_empty())
}

impl PartOfUsage {
    /// Whether nothing lies in it or ends in it.
    pub(super) fn is_empty(&self) -> bool {
        self.level == 0 && self.changes.is_empty()
    }

    /// Adds what lies of a stretch in this part of time, which has a number; takes it out again where `sign` is -1.
    pub(super) fn change(&mut self, number: i64, (slot, nodes): Stretch, sign: i64) {
        let (start, end) = (Time(number * PART), Time((number + 1) * PART));
        let within = (slot.end.min(end) - slot.start.max(start)).max(0);
        let area = u128::from(nodes) * u128::from(within.unsigned_abs());
        let nodes = sign * i64::from(nodes);
        if slot.start < start {
            self.level += nodes;
        }
        for (at, change) in [(slot.start, nodes), (slot.end, -nodes)] {
            if (start..end).contains(&at) {
                let there = self.changes.entry(at).or_default();
                *there += change;
                if *there == 0 {
                    self.changes.remove(&at);
                }
            }
        }
        self.node_seconds = if sign < 0 {
            self.node_seconds.saturating_sub(area)
        } else {
            self.node_seconds + area
        };
        self.forget_gain();
    }

    /// Notes that the part of time in which spans begin that end in this one has changed.
    pub(super) fn forget_gain(&mut self) {
        self.gain.take();
    }

    /// The most node-seconds by which a span that ends in this part of time has more than the one that ends where it begins; `left` is
    /// the part in which such a span begins. O(k) for k changes in both, once until one of them changes.
    pub(super) fn gain(&self, left: Option<&Self>) -> u128 {
        *self.gain.get_or_init(|| {
            let nothing = Self::default();
            let left = left.unwrap_or(&nothing);
            let after = |at: &Time| at.seconds().rem_euclid(PART);
            let entering = self.changes.iter().map(|(at, change)| (after(at), *change));
            let leaving = left.changes.iter().map(|(at, change)| (after(at), -change));
            let mut changes: Vec<(Seconds, i64)> = entering.chain(leaving).collect();
            // Both halves are in order already.
            changes.sort_by_key(|(at, _)| *at);
            changes.push((PART, 0));
            let (mut slope, mut before) = (self.level - left.level, 0);
            let (mut gained, mut most) = (0_i128, 0);
            for (at, change) in changes {
                gained += i128::from(slope) * i128::from(at - before);
                most = most.max(gained);
                slope += change;
                before = at;
            }
            most.unsigned_abs()
        })
    }

    #[cfg(test)]
    pub(super) fn knows_gain(&self) -> bool {
        self.gain.get().is_some()
    }
}
