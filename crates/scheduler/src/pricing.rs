//! The price of a placement.
//!
//! A provider pays for freedom to plan. The price falls with three things: the wait until completion, the shapes that a request
//! allows, and the slack that may still be used (ω of adaptive requests, section 3.2 and algorithm 2). A provider has one
//! [`Tariff`] per user profile. All arithmetic is exact, because the same number appears in an offer, in an agreement and in a
//! ledger.

use crate::fraction::Fraction;
use crate::time::{Interval, Seconds, Time};
use std::ops::Sub;

/// Seconds in the hour that rates are given for.
const HOUR: i128 = 3_600;
/// Steps of the load factor: hundredths of a percent.
const LOAD_STEPS: u32 = 10_000;

/// A larger x takes no more off: by then a discount is as good as level, and its products with the largest prices still fit.
const X_MAX: u64 = 1 << 40;

/// Millionths of the currency in its unit.
const MICROS: i128 = 1_000_000;

/// An exact amount of money. Its unit is the price of one node for a second at a millionth of the currency per hour: 1 / 3.6·10⁹
/// of the currency, so that no usage needs rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Price(i128);

impl Price {
    /// Price units in one unit of the currency.
    pub const WHOLE: i128 = HOUR * MICROS;

    /// A number of price units; [`Price::WHOLE`] of them are one of the currency.
    pub const fn from_units(units: i128) -> Self {
        Self(units)
    }

    /// Its price units; [`Price::WHOLE`] of them are one of the currency.
    pub const fn units(self) -> i128 {
        self.0
    }

    /// In millionths of the currency, to the nearest, halves up.
    pub const fn micros(self) -> i128 {
        self.0.div_euclid(HOUR) + (self.0.rem_euclid(HOUR) * 2 / HOUR)
    }

    /// The price of a flexible reservation from its price without flexibility, this one: × `load` × (1 − `d_max`·w/(w + w50)).
    /// `load` is the factor for how busy the resource is, and w is the slack in seconds that the provider may still use. `None`
    /// beyond the largest amount. The change of flexibility during an agreement costs the difference of two.
    #[must_use]
    pub fn flexible(self, load: Fraction, discount: Discount, slack: Seconds) -> Option<Self> {
        let slack = u64::try_from(slack).unwrap_or(0);
        discount.apply(self.times(load)?, slack)
    }

    /// Rounded down to a price unit.
    fn times(self, factor: Fraction) -> Option<Self> {
        self.scaled(factor.numerator.into(), factor.denominator.into())
    }

    /// × numerator / denominator, rounded down to a price unit.
    fn scaled(self, numerator: i128, denominator: i128) -> Option<Self> {
        self.0
            .checked_mul(numerator)?
            .checked_div_euclid(denominator)
            .map(Self)
    }
}

impl Sub for Price {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A discount that grows with some x and levels off: `most`·x/(x + `half`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discount {
    /// The limit that it never quite reaches (`d_max`), at most the whole.
    pub most: Fraction,
    /// The x at which it is half of that.
    pub half: u64,
}

impl Discount {
    /// Never any.
    pub const NONE: Self = Self::of_shapes(Fraction::percent(0));

    /// Off for the shapes that a request allows: half of `most` for five of them, four beyond the first. The paper has no formula.
    pub const fn of_shapes(most: Fraction) -> Self {
        Self { most, half: 4 }
    }

    fn apply(self, price: Price, x: u64) -> Option<Price> {
        if x == 0 || self.most.numerator == 0 {
            return Some(price);
        }
        let (x, half) = (i128::from(x.min(X_MAX)), i128::from(self.half));
        let whole = i128::from(self.most.denominator).checked_mul(x + half)?;
        let off = i128::from(self.most.numerator).checked_mul(x)?;
        price.scaled((whole - off).max(0), whole)
    }
}

/// The use that is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedUsage {
    /// Area Σ R·T of the pieces.
    pub node_seconds: u128,
    /// Completion T^c, in seconds from the submission.
    pub completion: Seconds,
    /// Duration T^min on R^max nodes, in seconds.
    pub fastest: Seconds,
    /// Deadline D, in seconds from the submission.
    pub deadline: Seconds,
    /// Whether the request allows cuts.
    pub preemptive: bool,
    /// The flexibility factor (section 3.2 of the paper): the number of shapes that the request allows.
    pub shapes: u64,
}

impl PricedUsage {
    /// Usage of work in one size and one piece, placed in `slot` at `now`, which could lie anywhere in `window`. Time counts from `now`,
    /// as published.
    pub fn rigid(node_seconds: u128, slot: Interval, window: Interval, now: Time) -> Self {
        Self {
            node_seconds,
            completion: slot.end - now,
            fastest: slot.duration(),
            deadline: window.end - now,
            preemptive: false,
            shapes: 1,
        }
    }

    /// This usage for a request that could have had other shapes: it may be cut where `preemptive`, has so many `shapes`, and takes
    /// `fastest` seconds on R^max nodes, where that is less than it takes here.
    #[must_use]
    pub fn with_shapes(self, preemptive: bool, shapes: u64, fastest: Option<Seconds>) -> Self {
        Self {
            preemptive,
            shapes,
            fastest: fastest.map_or(self.fastest, |fastest| fastest.min(self.fastest)),
            ..self
        }
    }

    /// Rigid usage, with time that counts from the start of the window, or from `now` if that is later: work that may not begin before
    /// tomorrow does not wait today.
    ///
    /// A window with less slack than the duration counts as one with a slack of the duration. Else a second of slack would be worth
    /// as much as a day of it, and the next second would cost half of that.
    pub fn rigid_since_ready(node_seconds: u128, slot: Interval, window: Interval, now: Time) -> Self {
        let since = window.start.max(now);
        let fastest = slot.duration();
        Self {
            node_seconds,
            completion: slot.end - since,
            fastest,
            deadline: (window.end - since).max(fastest.saturating_mul(2)),
            preemptive: false,
            shapes: 1,
        }
    }
}

/// The load factor of a window of `whole` node-seconds: 1 where none of them is taken, 1 + `busy` where all are, rounded down to a
/// hundredth of a percent.
pub fn price_load_factor(busy: Fraction, taken: u128, whole: u128) -> Fraction {
    let whole = whole * u128::from(busy.denominator);
    let more = taken * u128::from(busy.numerator) * u128::from(LOAD_STEPS) / whole.max(1);
    Fraction {
        numerator: u32::try_from(more).map_or(u32::MAX, |more| LOAD_STEPS.saturating_add(more)),
        denominator: LOAD_STEPS,
    }
}

/// The pricing function of one user profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tariff {
    /// Millionths of the currency for a node and an hour.
    pub micros_per_node_hour: u32,
    /// The part of the price that a completion at the deadline saves; 60 % in the paper.
    pub late: Fraction,
    /// The saving by a late completion is rounded down to a multiple of this price; a whole unit of the currency in the paper.
    pub saving_step: Price,
    /// The factor of the profile (price profile): 3 for users that pay three times as much.
    pub profile: Fraction,
    /// Off for a request that allows cuts (the incentive), at most the whole.
    pub incentive: Fraction,
    /// Off for the flexibility factor: x is the number of shapes beyond the first.
    pub flexibility: Discount,
}

impl Tariff {
    /// The tariff of the paper's evaluation: one per node and hour, 60 % less at the deadline, no incentive, no discount.
    pub const PUBLISHED: Self = Self {
        micros_per_node_hour: 1_000_000,
        late: Fraction::percent(60),
        saving_step: Price::from_units(Price::WHOLE),
        profile: Fraction::percent(100),
        incentive: Fraction::percent(0),
        flexibility: Discount::NONE,
    };

    /// The price ω of `usage` (algorithm 2), then less the discount for its flexibility factor. `None` beyond the largest amount,
    /// or where a fraction has no denominator.
    ///
    /// The saving by a late completion is in whole steps, rounded down, before the profile's factor. Where the rounded pieces of a
    /// request complete before T^min, it saves less than nothing. So it pays a step more, as published.
    pub fn price(&self, usage: &PricedUsage) -> Option<Price> {
        let area = i128::try_from(usage.node_seconds).ok()?;
        let full = Price(area.checked_mul(self.micros_per_node_hour.into())?);
        let saved = self.saved(full, usage)?.checked_mul(self.saving_step.0)?;
        let price = (full - Price(saved)).times(self.profile)?;
        let price = if usage.preemptive {
            price - price.times(self.incentive)?
        } else {
            price
        };
        self.flexibility.apply(price, usage.shapes.saturating_sub(1))
    }

    /// Whole steps off the full price for completing late: ⌊late·P·(T^c − T^min)/(D − T^min)⌋.
    fn saved(&self, full: Price, usage: &PricedUsage) -> Option<i128> {
        let width = i128::from(usage.deadline) - i128::from(usage.fastest);
        if width <= 0 {
            // A window with room for the fastest run only: nothing can be late.
            return Some(0);
        }
        let late = i128::from(usage.completion) - i128::from(usage.fastest);
        let numerator = late.checked_mul(self.late.numerator.into())?;
        let denominator = width
            .checked_mul(self.late.denominator.into())?
            .checked_mul(self.saving_step.0)?;
        Some(full.scaled(numerator, denominator)?.0)
    }
}
