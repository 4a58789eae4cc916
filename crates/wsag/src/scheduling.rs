//! How it may be planned: `bsp:Scheduling`, our own optional term.

use crate::xml::datatypes::{self, boolean, count, write_double};
use crate::xml::document::Node;
use crate::xml::ns::BSP;
use crate::xml::reader::{Check, simple};
use crate::xml::writer::Xml;

/// The choices and preferences of the requester beyond node count and window. Everything is optional.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scheduling {
    /// How long it takes on how many nodes.
    pub moldability: Option<Moldability>,
    /// How it may be cut in pieces.
    pub preemption: Option<Preemption>,
    /// The most that it may cost.
    pub budget: Option<Budget>,
    /// Largest deviation φ = |alternative − asked| / duration that alternatives may have.
    pub max_deviation: Option<f64>,
    /// Fraction of the wait, 0 to 1, after which the start is fixed.
    pub fix_at: Option<f64>,
    /// The preference in ranking alternatives.
    pub preference: Option<Preference>,
}

/// Duration as a function of the number of nodes, within the range of `jsdl:TotalResourceCount`.
#[derive(Debug, Clone, PartialEq)]
pub enum Moldability {
    /// `intercept − slope · nodes` seconds.
    Linear {
        /// Seconds.
        intercept: f64,
        /// Seconds per node.
        slope: f64,
    },
    /// Seconds for each allowed number of nodes.
    Table(Vec<(u32, u32)>),
    /// This many node-seconds, on any number of nodes.
    ConstantWork(f64),
}

/// How a job may be cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preemption {
    /// Most pieces.
    pub pieces: u32,
    /// Cuts are at multiples of this share of the work, above 0 and at most 1.
    pub interval: f64,
    /// Whether each piece may have its own number of nodes.
    pub independent: bool,
}

/// A sum of money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Millionths of the currency's unit.
    pub amount_micros: i64,
    /// Three letters of ISO 4217.
    pub currency: String,
}

/// Weights, each from 0 on; absent means 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Preference {
    /// Of an early start.
    pub start: Option<f64>,
    /// Of many nodes.
    pub size: Option<f64>,
    /// Of a short duration.
    pub duration: Option<f64>,
    /// Of a low price.
    pub price: Option<f64>,
}

/// Reads the term; parts that could not be read have left a violation.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<Scheduling> {
    check.children(node, |children| {
        Some(Scheduling {
            moldability: children.optional(BSP, "Moldability", read_moldability),
            preemption: children.optional(BSP, "Preemption", read_preemption),
            budget: children.optional(BSP, "Budget", read_budget),
            max_deviation: children.optional(BSP, "MaxDeviation", simple(not_negative)),
            fix_at: children.optional(BSP, "FixAt", simple(share)),
            preference: children.optional(BSP, "Preference", read_preference),
        })
    })
}

fn read_moldability(check: &mut Check, node: Node<'_>) -> Option<Moldability> {
    check.children(node, |children| {
        let (name, child) = children.one_of(BSP, &["Linear", "Table", "ConstantWork"])?;
        match name {
            "Linear" => children.check.children(child, |children| {
                let intercept = children.required(BSP, "Intercept", simple(positive));
                let slope = children.required(BSP, "Slope", simple(not_negative));
                Some(Moldability::Linear {
                    intercept: intercept?,
                    slope: slope?,
                })
            }),
            "Table" => children.check.children(child, |children| {
                let entries = children.at_least_one(BSP, "Entry", read_entry);
                Some(Moldability::Table(entries))
            }),
            _ => simple(positive)(children.check, child).map(Moldability::ConstantWork),
        }
    })
}

fn read_entry(check: &mut Check, node: Node<'_>) -> Option<(u32, u32)> {
    check.children(node, |children| {
        let nodes = children.required(BSP, "Nodes", simple(count));
        let duration = children.required(BSP, "Duration", simple(count));
        nodes.zip(duration)
    })
}

fn read_preemption(check: &mut Check, node: Node<'_>) -> Option<Preemption> {
    check.children(node, |children| {
        let pieces = children.required(BSP, "Pieces", simple(count));
        let interval = |text: &str| share(text).and_then(|_| positive(text));
        let interval = children.required(BSP, "Interval", simple(interval));
        let independent = children.required(BSP, "Independent", simple(boolean));
        Some(Preemption {
            pieces: pieces?,
            interval: interval?,
            independent: independent?,
        })
    })
}

fn read_preference(check: &mut Check, node: Node<'_>) -> Option<Preference> {
    check.children(node, |children| {
        let mut weight = |name| children.optional(BSP, name, simple(not_negative));
        Some(Preference {
            start: weight("Start"),
            size: weight("Size"),
            duration: weight("Duration"),
            price: weight("Price"),
        })
    })
}

fn number(text: &str, allowed: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    let value = datatypes::double(text).filter(|value| value.is_finite() && allowed(*value));
    value.ok_or_else(|| format!("{expected} is expected"))
}

fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |value| value >= 0.0, "a number from 0 on")
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |value| value > 0.0, "a number above 0")
}

fn share(text: &str) -> Result<f64, String> {
    number(text, |value| (0.0..=1.0).contains(&value), "a number from 0 to 1")
}

/// An amount of money of at most six decimals, as millionths.
///
/// # Errors
/// The expected form.
pub fn amount(text: &str) -> Result<i64, String> {
    let decimal = datatypes::Decimal::parse(text).and_then(|decimal| decimal.micros());
    decimal.ok_or_else(|| "an amount of at most six decimals is expected, such as 12.50".to_owned())
}

/// Millionths as an amount.
pub fn write_amount(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, part) = (
        micros.unsigned_abs() / 1_000_000,
        micros.unsigned_abs() % 1_000_000,
    );
    if part == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{}", format!("{part:06}").trim_end_matches('0'))
}

/// A sum of money: `Amount`, `Currency`.
fn read_budget(check: &mut Check, node: Node<'_>) -> Option<Budget> {
    check.children(node, |children| {
        let amount = children.required(BSP, "Amount", simple(amount));
        let currency = children.required(BSP, "Currency", simple(currency));
        Some(Budget {
            amount_micros: amount?,
            currency: currency?,
        })
    })
}

/// Writes a sum of money, if there is one, as an element of this name.
pub(crate) fn write_budget<'b>(xml: &mut Xml, name: &'static str, sum: impl Into<Option<&'b Budget>>) {
    if let Some(sum) = sum.into() {
        xml.start(name);
        xml.element("bsp:Amount", write_amount(sum.amount_micros));
        xml.element("bsp:Currency", &sum.currency);
        xml.end();
    }
}

/// Three capital letters of a currency.
///
/// # Errors
/// The expected form.
pub fn currency(text: &str) -> Result<String, String> {
    if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) {
        return Ok(text.to_owned());
    }
    Err("three capital letters of a currency are expected, such as EUR".to_owned())
}

impl Scheduling {
    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("bsp:Scheduling", &["bsp"]);
        if let Some(moldability) = &self.moldability {
            xml.start("bsp:Moldability");
            write_moldability(xml, moldability);
            xml.end();
        }
        if let Some(preemption) = &self.preemption {
            xml.start("bsp:Preemption");
            xml.element("bsp:Pieces", preemption.pieces);
            xml.element("bsp:Interval", write_double(preemption.interval));
            xml.element("bsp:Independent", preemption.independent);
            xml.end();
        }
        write_budget(xml, "bsp:Budget", self.budget.as_ref());
        xml.optional_element("bsp:MaxDeviation", self.max_deviation.map(write_double));
        xml.optional_element("bsp:FixAt", self.fix_at.map(write_double));
        if let Some(preference) = &self.preference {
            xml.start("bsp:Preference");
            xml.optional_element("bsp:Start", preference.start.map(write_double));
            xml.optional_element("bsp:Size", preference.size.map(write_double));
            xml.optional_element("bsp:Duration", preference.duration.map(write_double));
            xml.optional_element("bsp:Price", preference.price.map(write_double));
            xml.end();
        }
        xml.end();
    }
}

fn write_moldability(xml: &mut Xml, moldability: &Moldability) {
    match moldability {
        Moldability::Linear { intercept, slope } => {
            xml.start("bsp:Linear");
            xml.element("bsp:Intercept", write_double(*intercept));
            xml.element("bsp:Slope", write_double(*slope));
            xml.end();
        }
        Moldability::Table(entries) => {
            xml.start("bsp:Table");
            for (nodes, duration) in entries {
                xml.start("bsp:Entry");
                xml.element("bsp:Nodes", nodes);
                xml.element("bsp:Duration", duration);
                xml.end();
            }
            xml.end();
        }
        Moldability::ConstantWork(node_seconds) => {
            xml.element("bsp:ConstantWork", write_double(*node_seconds));
        }
    }
}
