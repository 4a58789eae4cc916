//! Fractions of a whole.

use crate::time::Seconds;

/// A part of a whole, for instance of a wait: `numerator` / `denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    /// Parts.
    pub numerator: u32,
    /// Of how many; at least 1.
    pub denominator: u32,
}

impl Fraction {
    /// `numerator` hundredths.
    pub const fn percent(numerator: u32) -> Self {
        Self {
            numerator,
            denominator: 100,
        }
    }

    /// The least part that reaches this fraction of `whole`; at most `i64::MAX`.
    pub fn rounded_up(self, whole: Seconds) -> Seconds {
        let product = i128::from(self.numerator) * i128::from(whole);
        let part = -(-product).div_euclid(i128::from(self.denominator));
        Seconds::try_from(part).unwrap_or(Seconds::MAX)
    }

    /// The largest part that does not exceed this fraction of `whole`; at most `i64::MAX`.
    pub fn rounded_down(self, whole: Seconds) -> Seconds {
        let product = i128::from(self.numerator) * i128::from(whole);
        let part = product.div_euclid(i128::from(self.denominator));
        Seconds::try_from(part).unwrap_or(Seconds::MAX)
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let (a, b) = (u64::from(self.numerator), u64::from(other.numerator));
        if a * u64::from(other.denominator) <= b * u64::from(self.denominator) {
            self
        } else {
            other
        }
    }
}
