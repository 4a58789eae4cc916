//! Whole seconds, as an instant and as a half-open interval.
//!
//! The core has no clock: instants come in as arguments. Seconds are counted from any fixed origin; the service uses
//! the Unix epoch.

use std::fmt;
use std::ops::{Add, Sub};

/// A length of time in whole seconds.
pub type Seconds = i64;

/// An instant in whole seconds since a fixed origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    /// Earlier than every instant that a plan can hold.
    pub const MIN: Self = Self(i64::MIN / 4);
    /// Later than every instant that a plan can hold.
    pub const MAX: Self = Self(i64::MAX / 4);

    /// The number of whole seconds since the origin.
    pub const fn seconds(self) -> i64 {
        self.0
    }
}

impl Add<Seconds> for Time {
    type Output = Self;
    fn add(self, seconds: Seconds) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

impl Sub<Seconds> for Time {
    type Output = Self;
    fn sub(self, seconds: Seconds) -> Self {
        Self(self.0.saturating_sub(seconds))
    }
}

impl Sub for Time {
    type Output = Seconds;
    fn sub(self, earlier: Self) -> Seconds {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A half-open interval `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First second inside.
    pub start: Time,
    /// First second after.
    pub end: Time,
}

impl Interval {
    /// The interval `[start, end)`; one with `end ≤ start` is empty.
    pub const fn new(start: Time, end: Time) -> Self {
        Self { start, end }
    }

    /// The interval of `seconds` from `start`.
    pub fn of(start: Time, seconds: Seconds) -> Self {
        Self::new(start, start + seconds)
    }

    /// Its length in seconds, 0 when empty.
    pub fn duration(self) -> Seconds {
        (self.end - self.start).max(0)
    }

    /// Whether it holds no second.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `self` and `other` share a second.
    pub fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }

    /// Whether every second of `inner` lies in `self`.
    pub fn contains(self, inner: Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// An instant, or the nearest that there is.
pub(crate) fn nearest_instant(seconds: i128) -> Time {
    let nearest = if seconds < 0 { i64::MIN } else { i64::MAX };
    Time(i64::try_from(seconds).unwrap_or(nearest))
}

/// Whole seconds that hold all of `seconds`: rounded up, at least 1, at most the longest time of a plan.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "clamped to about the longest time of a plan, which fits in i64"
)]
pub fn whole_seconds(seconds: f64) -> Seconds {
    // A value that is not a number is no length; the least slot is a second.
    let most = Time::MAX.seconds() as f64;
    if seconds.is_nan() {
        1
    } else {
        // A rounding error of a product must not cost a second.
        (seconds - 1e-6).ceil().clamp(1.0, most) as Seconds
    }
}
