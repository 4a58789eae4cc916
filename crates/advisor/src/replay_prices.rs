//! The prices of placements by a provider's price list.

use scheduler::pricing::{Discount, Price, PricedUsage, Tariff, price_load_factor};
use scheduler::{Fraction, Interval, Seconds};

use crate::adaptive::PlacedAsk;
use crate::replay::{AcceptedRequest, ReplayAsk};

/// The most price profiles of a list.
pub(crate) const PROFILES_MAX: usize = 16;

/// The prices of placements: the parts of a provider's price list that depend on the request and the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPrices {
    /// The currency of amounts, such as `EUR`.
    pub currency: String,
    /// Millionths of the currency for a node and an hour.
    pub node_hour_micros: u32,
    /// Off for a completion at the deadline, in proportion for an earlier one.
    pub late: Fraction,
    /// Whether that counts from the submission and in whole units, as in paper 002; else it counts as the service does.
    pub is_published: bool,
    /// On top where all nodes are taken for the whole window, in proportion where fewer are.
    pub busy: Fraction,
    /// Off for the slack of a window.
    pub flexible: Discount,
    /// Off for a request whose work may be cut, at present.
    pub preemptive: Fraction,
    /// Off for the shapes that a request allows, at present.
    pub shapes: Discount,
    /// The profiles that pay another part of the price.
    pub profiles: Vec<Profile>,
}

/// A part of the requests that pays another price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its share of the requests, in percent.
    pub share_percent: u32,
    /// The part of the price that it pays, in percent.
    pub price_percent: u32,
}

impl ReplayPrices {
    /// Those of paper 002: one for a node and an hour, 60 % off at the deadline, and every fifth request pays threefold.
    pub fn published() -> Self {
        Self {
            currency: "units".to_owned(),
            node_hour_micros: Tariff::PUBLISHED.micros_per_node_hour,
            late: Tariff::PUBLISHED.late,
            is_published: true,
            busy: Fraction::percent(0),
            flexible: Discount::NONE,
            preemptive: Fraction::percent(0),
            shapes: Discount::NONE,
            profiles: vec![Profile {
                share_percent: 20,
                price_percent: 300,
            }],
        }
    }

    /// In units of the currency, the price of an accepted request: settled with the placement that it gets, as the service does.
    pub(crate) fn price(
        &self,
        capacity: u32,
        ask: &ReplayAsk,
        accepted: &AcceptedRequest,
        profile: Fraction,
    ) -> f64 {
        let (slot, window, now) = (accepted.slot, accepted.window, ask.request.submitted);
        let area = u128::from(ask.request.nodes) * u128::from(slot.duration().unsigned_abs());
        let usage = if self.is_published {
            PricedUsage::rigid(area, slot, window, now)
        } else {
            PricedUsage::rigid_since_ready(area, slot, window, now)
        };
        self.amount(
            capacity,
            &usage,
            (window, slot.duration(), accepted.busy_area),
            profile,
        )
    }

    /// In units of the currency, the price of an accepted request of several shapes, which is ready when it is submitted, without
    /// the discounts for these.
    pub(crate) fn price_without_shapes(&self, capacity: u32, placed: &PlacedAsk<'_>) -> f64 {
        let window = placed.request.window();
        let published = placed.request.usage(window.start, &placed.pieces);
        let usage = PricedUsage {
            preemptive: false,
            shapes: 1,
            deadline: if self.is_published {
                published.deadline
            } else {
                published.deadline.max(published.fastest.saturating_mul(2))
            },
            ..published
        };
        let seconds = placed.pieces.iter().map(|piece| piece.interval.duration()).sum();
        let profile = Fraction::percent(self.price_percent_for_draw(100.0 * placed.ask.drawn));
        self.amount(capacity, &usage, (window, seconds, placed.busy_area), profile)
    }

    /// In units of the currency, the price of a usage of so many seconds in a window with so many node-seconds taken before.
    fn amount(
        &self,
        capacity: u32,
        usage: &PricedUsage,
        (window, seconds, busy_area): (Interval, Seconds, u64),
        profile: Fraction,
    ) -> f64 {
        let tariff = Tariff {
            micros_per_node_hour: self.node_hour_micros,
            late: self.late,
            saving_step: if self.is_published {
                Tariff::PUBLISHED.saving_step
            } else {
                Price::from_units(1)
            },
            profile,
            ..Tariff::PUBLISHED
        };
        let slack = window.duration() - seconds;
        let whole = u128::from(capacity) * u128::from(window.duration().unsigned_abs());
        let load = price_load_factor(self.busy, busy_area.into(), whole);
        let price = tariff.price(usage);
        let price = price.and_then(|price| price.flexible(load, self.flexible, slack));
        // Amounts of a window are far from the largest.
        price.unwrap_or_default().max(Price::default()).units() as f64 / Price::WHOLE as f64
    }

    /// The part of the price, in percent, that a request pays if its number drawn from 0 to 100 is this one.
    pub(crate) fn price_percent_for_draw(&self, drawn: f64) -> u32 {
        let mut below = 0.0;
        for profile in &self.profiles {
            below += f64::from(profile.share_percent);
            if drawn < below {
                return profile.price_percent;
            }
        }
        100
    }
}

#[cfg(test)]
mod tests {
    use super::{Profile, ReplayPrices};
    use crate::replay::{AcceptedRequest, ReplayAsk};
    use scheduler::pricing::Discount;
    use scheduler::{Fraction, Interval, Request, Time};

    const HOUR: i64 = 3_600;

    fn flat() -> ReplayPrices {
        ReplayPrices {
            currency: "EUR".to_owned(),
            node_hour_micros: 100_000,
            late: Fraction::percent(0),
            is_published: false,
            busy: Fraction::percent(0),
            flexible: Discount::NONE,
            preemptive: Fraction::percent(0),
            shapes: Discount::NONE,
            profiles: Vec::new(),
        }
    }

    /// The price of two nodes for an hour at the start of a window of four hours on eight nodes, with half of them taken.
    fn price(prices: &ReplayPrices) -> f64 {
        let window = Interval::of(Time(0), 4 * HOUR);
        let ask = ReplayAsk::plain(Request {
            id: 0,
            submitted: Time(0),
            ready: window.start,
            deadline: window.end,
            duration: HOUR,
            nodes: 2,
            revenue: 0,
        });
        let accepted = AcceptedRequest {
            slot: Interval::of(Time(0), HOUR),
            window,
            busy_area: 4 * 4 * HOUR.unsigned_abs(),
        };
        prices.price(
            8,
            &ask,
            &accepted,
            Fraction::percent(prices.price_percent_for_draw(10.0)),
        )
    }

    #[test]
    fn a_price_follows_the_list() {
        let near =
            |seen: f64, expected: f64| assert!((seen - expected).abs() < 1e-9, "{seen} is not {expected}");
        near(price(&flat()), 0.20);
        let busy = Fraction::percent(50);
        near(price(&ReplayPrices { busy, ..flat() }), 0.25);
        let flexible = Discount {
            most: Fraction::percent(40),
            half: HOUR.unsigned_abs(),
        };
        near(price(&ReplayPrices { flexible, ..flat() }), 0.14);
        let profiles = vec![Profile {
            share_percent: 20,
            price_percent: 300,
        }];
        near(price(&ReplayPrices { profiles, ..flat() }), 0.60);
    }

    #[test]
    fn profiles_share_the_requests() {
        let profile = |share_percent, price_percent| Profile {
            share_percent,
            price_percent,
        };
        let prices = ReplayPrices {
            profiles: vec![profile(20, 300), profile(30, 50)],
            ..flat()
        };
        let parts = [0.0, 19.9, 20.0, 49.9, 50.0, 99.9].map(|drawn| prices.price_percent_for_draw(drawn));
        assert_eq!(parts, [300, 300, 50, 50, 100, 100]);
    }
}
