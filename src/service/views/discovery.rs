//! What there is to ask for, as flat values.

use std::collections::BTreeMap;

use domain::agreement::{Money, part_of_amount};
use domain::catalogue::{Application, ArgumentKind, ArgumentSpec};
use domain::resources::Resource;
use planner::Pricing;
use scheduler::Fraction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::offer::QuotationView;
use super::resources::view_attributes;
use super::schemas;
use super::values::MoneyView;

/// The applications that offers may name.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ApplicationsView {
    /// The applications, in the provider's order.
    pub applications: Vec<ApplicationView>,
}

/// An application.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationView {
    /// The name that an offer gives.
    #[schemars(example = &"sleep")]
    pub name: String,
    /// The version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"1.0")]
    pub version: Option<String>,
    /// Its purpose.
    #[schemars(example = &"Waits, and does nothing")]
    pub description: String,
    /// The arguments, in their order; all are required.
    pub arguments: Vec<ArgumentView>,
    /// Whether it can save its work and go on with it, so that its work may be done in pieces.
    pub saves_work: bool,
}

/// An argument of an application.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentView {
    /// The name.
    #[schemars(example = &"seconds")]
    pub name: String,
    /// `integer`, `number`, `text`, `choice` or `file`, which is the name of an uploaded file.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["integer", "number", "text", "choice", "file"]))]
    pub kind: String,
    /// The least value, of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.0)]
    pub minimum: Option<Value>,
    /// The greatest value, of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 604_800.0)]
    pub maximum: Option<Value>,
    /// Characters at most, of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 64)]
    pub max_length: Option<usize>,
    /// The characters that it may hold, as in `a-z0-9_`, of a text that may not hold all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"a-z0-9")]
    pub characters: Option<String>,
    /// The values that there are, of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["fast", "exact"])]
    pub values: Vec<String>,
    /// The value that is expected, in words.
    #[schemars(example = &"a whole number from 0 to 604800")]
    pub expected: String,
}

impl ApplicationView {
    pub(in crate::service) fn of(application: &Application) -> Self {
        Self {
            name: application.name.clone(),
            version: application.version.clone(),
            description: application.description.clone(),
            arguments: application.arguments.iter().map(ArgumentView::of).collect(),
            saves_work: application.checkpoint.is_some(),
        }
    }
}

impl ArgumentView {
    fn of(spec: &ArgumentSpec) -> Self {
        let view = |kind: &str| Self {
            name: spec.name.clone(),
            kind: kind.to_owned(),
            expected: spec.to_string(),
            ..Self::default()
        };
        let decimal = |number: f64| Number::from_f64(number).map(Value::Number);
        match &spec.kind {
            ArgumentKind::Integer(bounds) => Self {
                minimum: Some((*bounds.start()).into()),
                maximum: Some((*bounds.end()).into()),
                ..view("integer")
            },
            ArgumentKind::Number(bounds) => Self {
                minimum: decimal(*bounds.start()),
                maximum: decimal(*bounds.end()),
                ..view("number")
            },
            ArgumentKind::Text {
                max_length,
                characters,
            } => Self {
                max_length: Some(*max_length),
                characters: characters.as_ref().map(ToString::to_string),
                ..view("text")
            },
            ArgumentKind::Choice(values) => Self {
                values: values.clone(),
                ..view("choice")
            },
            ArgumentKind::File => view("file"),
        }
    }
}

/// The resources, as requesters see them.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct OfferedResourcesView {
    /// In the order in which ties are broken.
    pub resources: Vec<OfferedResourceView>,
}

/// What a resource has.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct OfferedResourceView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub name: String,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// How fast its nodes work, as a multiple of the reference.
    #[schemars(range(min = 0.01, max = 100), example = 1.0)]
    pub rate: f64,
    /// The attributes of its nodes that requests may ask for.
    #[schemars(with = "schemas::ResourceAttributes")]
    pub attributes: BTreeMap<String, Value>,
}

impl OfferedResourceView {
    pub(in crate::service) fn of(resource: &Resource) -> Self {
        Self {
            name: resource.name.clone(),
            nodes: resource.capacity,
            rate: f64::from(resource.rate.millionths()) / 1e6,
            attributes: view_attributes(&resource.attributes),
        }
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
    /// The fee for ending an agreement before its slot, at least: it is more where the same request has become cheaper.
    #[schemars(example = 10.0)]
    pub cancellation_percent: f64,
    /// The fee for a change, beside the difference of the prices.
    #[schemars(example = 2.0)]
    pub change_percent: f64,
}

impl PriceListView {
    pub(in crate::service) fn of(pricing: &Pricing, party: &str) -> Self {
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
            cancellation_percent: percent(pricing.cancellation),
            change_percent: percent(pricing.change),
        }
    }
}

/// The parts of the price of an offer.
#[derive(Debug, Clone)]
pub struct CostView {
    /// By the price of a node for an hour alone.
    pub list: MoneyView,
    /// The rules of the list and discounts: what is added to that, or taken off it, for the price.
    pub rules: MoneyView,
    /// What ending the agreement before its slot costs at least.
    pub cancellation_least: MoneyView,
}

/// Seconds of an hour.
const HOUR: i128 = 3_600;

impl CostView {
    /// The parts of the price of an offer to a party; none where that is not by this list.
    pub(in crate::service) fn of(pricing: &Pricing, party: &str, offer: &QuotationView) -> Option<Self> {
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
        let rules = Money::new(price.micros.checked_sub(list.micros)?, price.currency);
        let (kept, whole) = (pricing.cancellation.numerator, pricing.cancellation.denominator);
        Some(Self {
            list: MoneyView::of(list),
            rules: MoneyView::of(rules),
            cancellation_least: MoneyView::of(part_of_amount(price, kept.into(), whole.into())),
        })
    }
}

pub(in crate::service) fn percent(part: Fraction) -> f64 {
    100.0 * f64::from(part.numerator) / f64::from(part.denominator)
}
