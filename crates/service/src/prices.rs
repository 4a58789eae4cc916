//! The price list as it is for a party, and the parts of the price of an offer.

use std::collections::BTreeMap;

use domain::agreement::{Money, part_of_amount};
use planner::Pricing;
use scheduler::Fraction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Service;
use crate::views::money_and_time::MoneyView;
use crate::views::quotation::QuotationView;

/// The parts of the price of an offer to a party, by the price list of now; none where nothing is priced.
pub fn price_parts_of_offer(service: &Service, party: &str, offer: &QuotationView) -> Option<PricePartsView> {
    let templates = service.templates.now();
    PricePartsView::of(templates.pricing()?, party, offer)
}

/// The price list as it is for a party.
pub fn list_prices(service: &Service, party: &str) -> PricesView {
    let templates = service.templates.now();
    let prices = templates.pricing();
    PricesView {
        prices: prices.map(|prices| PriceListView::of(prices, party)),
    }
}

/// The price list, where there is one.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct PricesView {
    /// None where nothing is priced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceListView>,
}

/// A price list: amounts are decimals, and parts are in percent of the price.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceListView {
    /// The currency, three capital letters of ISO 4217.
    #[schemars(regex(pattern = r"^[A-Z]{3}$"), example = &"EUR")]
    pub currency: String,
    /// A node for an hour.
    #[schemars(example = &"0.1")]
    pub node_hour: String,
    /// The price of a node for an hour on the resources that have one of their own, by their names.
    #[schemars(example = json!({"fast": "0.25"}))]
    pub resources: BTreeMap<String, String>,
    /// The part of each price that the caller's party pays.
    #[schemars(example = 100.0)]
    pub own_percent: f64,
    /// Off for a completion at the deadline, in proportion for an earlier one.
    #[schemars(example = 0.0)]
    pub late_percent: f64,
    /// On top where all nodes are taken for the whole window, in proportion where fewer are.
    #[schemars(example = 50.0)]
    pub busy_percent: f64,
    /// Off for slack that the provider may use: never quite this part.
    #[schemars(example = 40.0)]
    pub flexible_percent: f64,
    /// The slack at which half of that is reached, in seconds.
    #[schemars(range(min = 1), example = 86_400)]
    pub flexible_half_seconds: u64,
    /// Off for a request whose work may be cut.
    #[serde(default)]
    #[schemars(example = 20.0)]
    pub preemptive_percent: f64,
    /// Off for the shapes that a request allows: half of this for five of them, never quite this part.
    #[serde(default)]
    #[schemars(example = 10.0)]
    pub shapes_percent: f64,
    /// The fee for ending an agreement before its slot, at least: it is more where the same request has become cheaper.
    #[schemars(example = 10.0)]
    pub cancellation_percent: f64,
    /// The fee for a change, beside the difference of the prices.
    #[schemars(example = 2.0)]
    pub change_percent: f64,
}

impl PriceListView {
    pub(super) fn of(pricing: &Pricing, party: &str) -> Self {
        let amount = |micros: u32| Money::new(i64::from(micros), pricing.currency).amount();
        let own = pricing.profiles.get(party).copied();
        let resources = pricing.resources.iter();
        Self {
            currency: pricing.currency.to_string(),
            node_hour: amount(pricing.node_hour_micros),
            resources: resources
                .map(|(name, micros)| (name.clone(), amount(*micros)))
                .collect(),
            own_percent: own.map_or(100.0, percent),
            late_percent: percent(pricing.late),
            busy_percent: percent(pricing.busy),
            flexible_percent: percent(pricing.flexible.most),
            flexible_half_seconds: pricing.flexible.half,
            preemptive_percent: percent(pricing.preemptive),
            shapes_percent: percent(pricing.shapes.most),
            cancellation_percent: percent(pricing.cancellation),
            change_percent: percent(pricing.change),
        }
    }
}

/// The parts of the price of an offer.
#[derive(Debug, Clone)]
pub struct PricePartsView {
    /// By the price of a node for an hour alone.
    pub list: MoneyView,
    /// Off because its work may be cut; none where that is nothing.
    pub preemptive: Option<MoneyView>,
    /// Off for the number of its shapes; none where that is nothing.
    pub shapes: Option<MoneyView>,
    /// The other rules of the list: what is added to that, or taken off it, for the price.
    pub rules: MoneyView,
    /// What ending the agreement before its slot costs at least.
    pub cancellation_least: MoneyView,
}

impl PricePartsView {
    /// The parts of the price of an offer to a party; none where that is not by this list.
    pub(super) fn of(pricing: &Pricing, party: &str, offer: &QuotationView) -> Option<Self> {
        let price = offer.price.as_ref().and_then(MoneyView::money)?;
        if price.currency != pricing.currency {
            return None;
        }
        let micros = pricing
            .resources
            .get(&offer.resource)
            .unwrap_or(&pricing.node_hour_micros);
        let part = |fraction: Fraction| {
            (
                i128::from(fraction.numerator),
                i128::from(fraction.denominator.max(1)),
            )
        };
        let (own, whole) = pricing.profiles.get(party).map_or((1, 1), |own| part(*own));
        // To the nearest, as the price is: the rules are not told of a remainder.
        let exact = 2 * offer.node_seconds() * i128::from(*micros) * own / (HOUR * whole);
        let list = (exact + 1).div_euclid(2);
        let list = Money::new(i64::try_from(list).ok()?, price.currency);
        let discounts = [&offer.preemptive_discount, &offer.shapes_discount];
        let off = discounts.into_iter().flatten().filter_map(MoneyView::money);
        let off: i64 = off.map(|off| off.micros).sum();
        let rules = price.micros.checked_sub(list.micros)?.checked_add(off)?;
        let rules = Money::new(rules, price.currency);
        let (kept, whole) = (pricing.cancellation.numerator, pricing.cancellation.denominator);
        Some(Self {
            list: MoneyView::of(list),
            preemptive: offer.preemptive_discount.clone(),
            shapes: offer.shapes_discount.clone(),
            rules: MoneyView::of(rules),
            cancellation_least: MoneyView::of(part_of_amount(price, kept.into(), whole.into())),
        })
    }
}

pub(super) fn percent(part: Fraction) -> f64 {
    100.0 * f64::from(part.numerator) / f64::from(part.denominator)
}

/// Seconds of an hour.
const HOUR: i128 = 3_600;
