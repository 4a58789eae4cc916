//! The ranges of JSDL, in which a number must lie.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::xml::datatypes::{parse_boolean, parse_double, write_double};
use crate::xml::double::Double;
use crate::xml::ns::JSDL;
use crate::xml::{DocumentCheck, Node, Readable, WrittenValue, Xml, element};

element! {
    /// `jsdl:RangeValue_Type`: the value must meet any one of its parts.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct RangeValue {
        /// `UpperBoundedRange`: everything up to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub upper: Option<Bound> = "jsdl:UpperBoundedRange",
        /// `LowerBoundedRange`: everything from it on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lower: Option<Bound> = "jsdl:LowerBoundedRange",
        /// `Exact`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub exact: Vec<Exact> = "jsdl:Exact",
        /// `Range`: from the first to the second.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub ranges: Vec<(Bound, Bound)> = "jsdl:Range",
    }
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Double, bool)", from = "(Double, bool)")]
pub struct Bound {
    /// Where it is.
    pub value: f64,
    /// Whether the end itself is outside.
    pub exclusive: bool,
}

/// `jsdl:Exact`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Double, Option<Double>)", from = "(Double, Option<Double>)")]
pub struct Exact {
    /// The value.
    pub value: f64,
    /// How far off is still the same; 0 if absent.
    pub epsilon: Option<f64>,
}

impl From<Bound> for (Double, bool) {
    fn from(bound: Bound) -> (Double, bool) {
        (bound.value.into(), bound.exclusive)
    }
}

impl From<(Double, bool)> for Bound {
    fn from((value, exclusive): (Double, bool)) -> Bound {
        Bound {
            value: value.into(),
            exclusive,
        }
    }
}

impl From<Exact> for (Double, Option<Double>) {
    fn from(exact: Exact) -> (Double, Option<Double>) {
        (exact.value.into(), exact.epsilon.map(Double::from))
    }
}

impl From<(Double, Option<Double>)> for Exact {
    fn from((value, epsilon): (Double, Option<Double>)) -> Exact {
        Exact {
            value: value.into(),
            epsilon: epsilon.map(f64::from),
        }
    }
}

impl RangeValue {
    /// Exactly one value.
    pub fn exactly(value: f64) -> RangeValue {
        RangeValue {
            exact: vec![Exact { value, epsilon: None }],
            ..RangeValue::default()
        }
    }

    /// Everything from one value to another, ends included.
    pub fn between(lower: f64, upper: f64) -> RangeValue {
        let bound = |value| Bound {
            value,
            exclusive: false,
        };
        RangeValue {
            ranges: vec![(bound(lower), bound(upper))],
            ..RangeValue::default()
        }
    }

    /// Everything from one value on.
    pub fn at_least(value: f64) -> RangeValue {
        let exclusive = false;
        RangeValue {
            lower: Some(Bound { value, exclusive }),
            ..RangeValue::default()
        }
    }

    /// Whether a value meets it. A range without parts asks for nothing.
    pub fn contains(&self, value: f64) -> bool {
        let lies = |side: Ordering, bound: &Bound| {
            let order = value.partial_cmp(&bound.value);
            order == Some(side) || (order == Some(Ordering::Equal) && !bound.exclusive)
        };
        let below = |bound| lies(Ordering::Less, bound);
        let above = |bound| lies(Ordering::Greater, bound);
        *self == RangeValue::default()
            || self.upper.as_ref().is_some_and(below)
            || self.lower.as_ref().is_some_and(above)
            || self
                .exact
                .iter()
                .any(|exact| (value - exact.value).abs() <= exact.epsilon.unwrap_or(0.0))
            || self
                .ranges
                .iter()
                .any(|(lower, upper)| above(lower) && below(upper))
    }

    /// The whole numbers it allows, as least and greatest; the greatest is absent where nothing bounds it. Only where it is exact
    /// numbers or one range: anything else is no size of a request. [`RangeValue::listed`] tells which of the numbers between
    /// least and greatest a list allows.
    ///
    /// # Errors
    /// The error is a sentence with the expected value.
    pub fn whole_numbers(&self) -> Result<(u32, Option<u32>), &'static str> {
        const EXPECTED: &str =
            "Exact, once or several times, or one Range, LowerBoundedRange or UpperBoundedRange is expected";
        let (least, greatest) = match (&self.upper, &self.lower, &self.exact[..], &self.ranges[..]) {
            (None, None, [_, ..], []) => {
                let listed = self
                    .listed()
                    .ok_or("Exact must be a whole number from 1 to 4294967295")?;
                let least = listed.iter().min().ok_or(EXPECTED)?;
                return Ok((*least, listed.iter().max().copied()));
            }
            (None, None, [], [(lower, upper)]) => (Some(lower), Some(upper)),
            (Some(upper), None, [], []) => (None, Some(upper)),
            (None, Some(lower), [], []) => (Some(lower), None),
            _ => return Err(EXPECTED),
        };
        let least = match least {
            Some(bound) if bound.exclusive => whole_number(bound.value.floor() + 1.0),
            Some(bound) => whole_number(bound.value.ceil().max(1.0)),
            None => Some(1),
        };
        let greatest = greatest.map(|bound| {
            whole_number(if bound.exclusive {
                bound.value.ceil() - 1.0
            } else {
                bound.value.floor()
            })
        });
        match (least, greatest) {
            (Some(least), None) => Ok((least, None)),
            (Some(least), Some(Some(greatest))) if least <= greatest => Ok((least, Some(greatest))),
            _ => Err("the range holds no whole number from 1 to 4294967295"),
        }
    }

    /// The whole numbers that it lists, where it is nothing but a list of such.
    pub fn listed(&self) -> Option<Vec<u32>> {
        let only = self.upper.is_none() && self.lower.is_none() && self.ranges.is_empty();
        let listed: Option<Vec<u32>> = self.exact.iter().map(|exact| whole_number(exact.value)).collect();
        listed.filter(|listed| only && !listed.is_empty())
    }
}

/// A whole number from 1 to `u32::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn whole_number(value: f64) -> Option<u32> {
    (value >= 1.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value as u32)
}

/// `jsdl:Range`.
impl Readable for (Bound, Bound) {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<(Bound, Bound)> {
        check.children(node, |children| {
            let lower = children.required(JSDL, "LowerBound", Bound::read);
            let upper = children.required(JSDL, "UpperBound", Bound::read);
            lower.zip(upper)
        })
    }
}

impl WrittenValue for (Bound, Bound) {
    fn write(&self, xml: &mut Xml) {
        xml.add("jsdl:LowerBound", &self.0);
        xml.add("jsdl:UpperBound", &self.1);
    }
}

impl Readable for Bound {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Bound> {
        check.attributes(node, &[("", "exclusiveBound")]);
        let exclusive = check.read_attribute(node, ("", "exclusiveBound"), parse_boolean);
        Some(Bound {
            value: check.simple_only(node, parse_double)?,
            exclusive: exclusive.unwrap_or(false),
        })
    }
}

impl WrittenValue for Bound {
    fn write(&self, xml: &mut Xml) {
        if self.exclusive {
            xml.attribute("exclusiveBound", "true");
        }
        self.value.write(xml);
    }
}

impl Readable for Exact {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Exact> {
        check.attributes(node, &[("", "epsilon")]);
        let epsilon = check.read_attribute(node, ("", "epsilon"), parse_double);
        let value = check.simple_only(node, parse_double)?;
        Some(Exact { value, epsilon })
    }
}

impl WrittenValue for Exact {
    fn write(&self, xml: &mut Xml) {
        xml.optional_attribute("epsilon", self.epsilon.map(write_double).as_deref());
        self.value.write(xml);
    }
}
