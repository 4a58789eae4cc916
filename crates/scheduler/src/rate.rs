//! The relative speed of a resource, exact, so that a duration is the same on every machine.

use crate::time::Seconds;
use std::fmt;

/// Work per second relative to the reference (μ), in millionths: exact where a fraction would round differently from one
/// place to the next. Slower rates come first in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u32);

impl Rate {
    /// The reference: one second of work a second.
    pub const REFERENCE: Self = Self(1_000_000);

    /// A rate of this many millionths of the reference; `None` for 0, at which nothing would ever complete.
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths == 0 {
            None
        } else {
            Some(Self(millionths))
        }
    }

    /// In millionths of the reference, never 0.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// The whole seconds that `work` (seconds at the reference rate) takes, rounded up: a reservation must hold all of
    /// it. At most `i64::MAX`.
    pub fn duration(self, work: Seconds) -> Seconds {
        // All but absurd work fits the arithmetic of the machine, which is several times faster.
        if let Some(millionths) = work.checked_mul(i64::from(Self::REFERENCE.0)) {
            return -(-millionths).div_euclid(i64::from(self.0));
        }
        let millionths = i128::from(work) * i128::from(Self::REFERENCE.0);
        let seconds = -(-millionths).div_euclid(i128::from(self.0));
        // Only a product beyond i64 does not fit, and then no window holds it either.
        Seconds::try_from(seconds).unwrap_or(Seconds::MAX)
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::REFERENCE
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn a_duration_holds_all_of_the_work() {
        let third = Rate::from_millionths(333_333).unwrap();
        assert_eq!(third.duration(1), 4);
        assert_eq!(third.duration(333_333), 1_000_000);
        assert_eq!(Rate::from_millionths(2_000_000).unwrap().duration(3), 2);
        assert_eq!(Rate::REFERENCE.duration(7), 7);
        assert_eq!(Rate::REFERENCE.duration(i64::MAX), i64::MAX);
        assert_eq!(Rate::from_millionths(1).unwrap().duration(i64::MAX), i64::MAX);
        assert_eq!(Rate::from_millionths(0), None);
    }
}
