//! Statements compared with outcomes: the correction that makes "with probability p" true.

use std::collections::{BTreeMap, VecDeque};

use super::count_as_real;

/// Outcomes that are remembered: enough that a stated 95 % is known to two points, few enough that a change of habits is
/// learned within weeks.
pub const OUTCOMES_MAX: usize = 1_000;

/// Outcomes below which nothing is corrected: a 90 % interval needs at least 19.
pub const OUTCOMES_MIN: usize = 50;

/// Outcomes of a group from which its own calibration is used: a stated 95 % is then known to about three points.
const GROUP_OUTCOMES_MIN: usize = 200;

/// The calibrations of groups of statements, and that of all together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibrations<K> {
    groups: BTreeMap<K, Calibration>,
    all: Calibration,
}

impl<K> Default for Calibrations<K> {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            all: Calibration::default(),
        }
    }
}

impl<K: Ord + Clone> Calibrations<K> {
    /// Remembers the level of an outcome of a group.
    pub(crate) fn observe(&mut self, group: &K, level: f64) {
        self.all.observe(level);
        self.groups.entry(group.clone()).or_default().observe(level);
    }

    /// That of a group with [`GROUP_OUTCOMES_MIN`] outcomes, else that of all.
    pub(crate) fn of(&self, group: &K) -> &Calibration {
        let own = self.groups.get(group);
        own.filter(|own| own.outcomes() >= GROUP_OUTCOMES_MIN)
            .unwrap_or(&self.all)
    }
}

/// Where recent outcomes fell in the distributions that had been predicted for them.
///
/// The level of an outcome is the probability that had been given to less than it. If the predictions were right, levels would be
/// spread evenly over [0, 1]. Their real spread says which level to read to get the probability to be stated (a conformal
/// correction over a moving window). As long as the next outcome is like the remembered ones it holds at any size, even where the
/// predicted distributions are wrong.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    recent: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl Calibration {
    /// Remembers the level of an outcome and forgets the oldest. A number that is no probability is not counted. Takes steps in
    /// proportion to [`OUTCOMES_MAX`].
    pub fn observe(&mut self, level: f64) {
        if !(0.0..=1.0).contains(&level) {
            return;
        }
        self.recent.push_back(level);
        self.sorted
            .insert(self.sorted.partition_point(|known| *known < level), level);
        if self.recent.len() > OUTCOMES_MAX
            && let Some(oldest) = self.recent.pop_front()
        {
            self.sorted
                .remove(self.sorted.partition_point(|known| *known < oldest));
        }
    }

    /// Outcomes remembered.
    pub fn outcomes(&self) -> usize {
        self.sorted.len()
    }

    /// The level of a predicted distribution at which to read the quantile that is to be stated as `p`. Rounded away from
    /// the middle, so that an interval rather holds too much than too little; `p` itself while outcomes are too few.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank from 0 to a window's size"
    )]
    pub fn level(&self, p: f64) -> f64 {
        let outcomes = self.sorted.len();
        if outcomes < OUTCOMES_MIN {
            return p;
        }
        let rank = p * count_as_real(outcomes + 1);
        let rank = if p < 0.5 { rank.floor() } else { rank.ceil() } as usize;
        match rank.checked_sub(1) {
            None => 0.0,
            Some(at) => self.sorted.get(at).copied().unwrap_or(1.0),
        }
    }

    /// The probability to state for an event to which a predicted distribution gives the probability `level`: the inverse of
    /// [`Calibration::level`], rounded down.
    pub fn probability(&self, level: f64) -> f64 {
        let outcomes = self.sorted.len();
        if outcomes < OUTCOMES_MIN {
            return level.clamp(0.0, 1.0);
        }
        count_as_real(self.sorted.partition_point(|known| *known <= level)) / count_as_real(outcomes + 1)
    }
}
