//! The price list in the configuration.

use std::collections::BTreeMap;
use std::path::Path;

use domain::agreement::Currency;
use planner::{Kwh, Pricing};
use scheduler::Fraction;
use scheduler::pricing::Discount;
use serde::Deserialize;

use super::energy::{EnergyPrices, EnergySeries};
use super::ranges::{check_range, parse_price_in_range};

/// Factors beyond this are a slip of the pen.
const PERCENT_MAX: u32 = 10_000;
/// Slack is priced on a scale of years at most.
const HALF_SECONDS_MAX: u64 = 3_153_600_000;

/// `[pricing]`: the prices of placements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct PriceList {
    /// Three capital letters.
    currency: Currency,
    /// The price of a node for an hour, as a decimal between quotes.
    node_hour: String,
    /// On top where every node is taken for the whole window.
    #[serde(default)]
    busy_percent: u32,
    /// Off for a completion at the deadline.
    #[serde(default)]
    late_percent: u32,
    /// Off for a window of any length, which the discount nears as the slack grows.
    #[serde(default)]
    flexible_percent: u32,
    /// The slack at which half of that is reached.
    #[serde(default = "day")]
    flexible_half_seconds: u64,
    /// Off for a request whose work may be cut.
    #[serde(default)]
    preemptive_percent: u32,
    /// Off for the shapes that a request allows, which the discount nears as their number grows.
    #[serde(default)]
    shapes_percent: u32,
    /// The fee for ending an agreement before its slot.
    #[serde(default)]
    cancellation_percent: u32,
    /// The fee for a change, beside the difference of the prices.
    #[serde(default)]
    change_percent: u32,
    #[serde(default, rename = "resource")]
    resources: Vec<ResourcePrice>,
    #[serde(default, rename = "profile")]
    profiles: Vec<Profile>,
    energy: Option<EnergyPrices>,
}

/// A resource with a price of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourcePrice {
    name: String,
    node_hour: String,
}

/// A party that pays more or less than others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    party: String,
    percent: u32,
}

fn day() -> u64 {
    86_400
}

impl PriceList {
    /// The prices of energy over time, if they stand elsewhere.
    pub(super) fn series(&self, folder: &Path) -> Option<EnergySeries> {
        self.energy.as_ref()?.series(folder)
    }

    /// Takes over their lines.
    pub(super) fn set_lines(&mut self, lines: Vec<Kwh>) {
        if let Some(energy) = &mut self.energy {
            energy.set_lines(lines);
        }
    }

    /// The price list that it says, for resources of these names.
    ///
    /// # Errors
    /// The key and the expected value.
    pub(in crate::cli) fn pricing(&self, resources: &[&str]) -> Result<Pricing, String> {
        for (key, percent) in [
            ("late_percent", self.late_percent),
            ("flexible_percent", self.flexible_percent),
            ("preemptive_percent", self.preemptive_percent),
            ("shapes_percent", self.shapes_percent),
            ("cancellation_percent", self.cancellation_percent),
            ("change_percent", self.change_percent),
        ] {
            check_range(&format!("pricing.{key}"), percent, 0..=100)?;
        }
        check_range("pricing.busy_percent", self.busy_percent, 0..=PERCENT_MAX)?;
        let half = self.flexible_half_seconds;
        check_range("pricing.flexible_half_seconds", half, 1..=HALF_SECONDS_MAX)?;
        let mut priced = BTreeMap::new();
        for (index, ResourcePrice { name, node_hour }) in self.resources.iter().enumerate() {
            let key = format!("pricing.resource[{index}]");
            if !resources.contains(&name.as_str()) {
                return Err(format!(
                    "{key}.name: expected the name of a resource, found {name:?}"
                ));
            }
            let price = parse_price_in_range(&format!("{key}.node_hour"), node_hour)?;
            if priced.insert(name.clone(), price).is_some() {
                return Err(format!("{key}.name: {name:?} has a price already"));
            }
        }
        let mut profiles = BTreeMap::new();
        for (index, Profile { party, percent }) in self.profiles.iter().enumerate() {
            check_range(
                &format!("pricing.profile[{index}].percent"),
                *percent,
                0..=PERCENT_MAX,
            )?;
            if profiles
                .insert(party.clone(), Fraction::percent(*percent))
                .is_some()
            {
                return Err(format!(
                    "pricing.profile[{index}].party: {party:?} has a profile already"
                ));
            }
        }
        let energy = self.energy.as_ref();
        let energy = energy.map(|energy| energy.energy(resources)).transpose()?;
        Ok(Pricing {
            currency: self.currency,
            node_hour_micros: parse_price_in_range("pricing.node_hour", &self.node_hour)?,
            resources: priced,
            profiles,
            late: Fraction::percent(self.late_percent),
            busy: Fraction::percent(self.busy_percent),
            flexible: Discount {
                most: Fraction::percent(self.flexible_percent),
                half: self.flexible_half_seconds,
            },
            preemptive: Fraction::percent(self.preemptive_percent),
            shapes: Discount::of_shapes(Fraction::percent(self.shapes_percent)),
            cancellation: Fraction::percent(self.cancellation_percent),
            change: Fraction::percent(self.change_percent),
            energy,
        })
    }
}
