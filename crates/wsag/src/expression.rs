//! The expressions in which conditions and objectives are written.
//!
//! WS-Agreement leaves its expression language open. Ours is small enough that every text either has one meaning
//! or is refused with the reason: comparisons (`eq ne lt le gt ge`) of numbers, dateTimes, durations and
//! variables, joined by `and`, `or`, `not` and brackets. `not` binds tighter than `and`, and `and` tighter than
//! `or`. Types are checked when the text is read, so an evaluation cannot fail; it may only lack data.

mod parser;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::expression::parser::ExpressionParser;
use crate::xml::datatypes::{parse_boolean, parse_double};
use crate::xml::ns::BSP;
use crate::xml::{
    DateTime, DocumentCheck, Duration, Node, Readable, WrittenValue, Xml, list_names_in_violation,
    named_values, shorten_text_in_violation,
};

/// The name of this language in `bsp:dialect`.
pub const DIALECT: &str = "urn:bespeak:expression:1";
/// Longest expression, in bytes.
const LENGTH_MAX: usize = 2_000;
/// Deepest nesting of brackets and `not`.
pub const NESTING_MAX: usize = 32;

/// A text in an expression language, [`ParsedExpression`] where it is in ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// The text as it stands.
    pub text: String,
    /// `bsp:dialect`; absent means our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// Why a text is no expression here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ExpressionError(String);

/// The error of an expression that is longer or deeper than allowed.
fn expression_too_large() -> ExpressionError {
    ExpressionError(format!(
        "an expression may have {LENGTH_MAX} bytes and {NESTING_MAX} nested brackets at most"
    ))
}

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExpressionValue {
    /// A number.
    Number(f64),
    /// An instant.
    DateTime(DateTime),
    /// A length of time.
    Duration(Duration),
    /// A truth.
    Boolean(bool),
}

/// As an expression says it.
impl fmt::Display for ExpressionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionValue::Number(number) => number.fmt(f),
            ExpressionValue::DateTime(time) => time.fmt(f),
            ExpressionValue::Duration(duration) => duration.fmt(f),
            ExpressionValue::Boolean(truth) => truth.fmt(f),
        }
    }
}

/// The known range of a value: it lies between two, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueRange {
    /// It is not below this one.
    pub least: ExpressionValue,
    /// It is not above this one.
    pub most: ExpressionValue,
}

impl ValueRange {
    /// From the least of some values to the greatest; none where there is none, or they have no order.
    pub(crate) fn of(values: &[ExpressionValue]) -> Option<ValueRange> {
        let (first, rest) = values.split_first()?;
        rest.iter().try_fold(ValueRange::from(*first), |range, value| {
            let least = if order_of_expression_values(*value, range.least)? == Ordering::Less {
                *value
            } else {
                range.least
            };
            let most = if order_of_expression_values(*value, range.most)? == Ordering::Greater {
                *value
            } else {
                range.most
            };
            Some(ValueRange { least, most })
        })
    }
}

impl From<ExpressionValue> for ValueRange {
    fn from(value: ExpressionValue) -> ValueRange {
        ValueRange {
            least: value,
            most: value,
        }
    }
}

named_values! {
    /// The kind of a value, and its name in messages.
    pub(crate) enum ValueKind {
        /// A number.
        Number = "a number",
        /// An instant.
        DateTime = "a dateTime",
        /// A length of time.
        Duration = "a duration",
        /// A truth.
        Boolean = "a truth",
    }
}

impl ValueKind {
    /// The kind of a metric of `wsag:Variable`.
    pub(crate) fn of_metric(metric: &str) -> Option<ValueKind> {
        let local = metric.rsplit(':').next().unwrap_or(metric);
        Some(match local {
            "dateTime" => ValueKind::DateTime,
            "duration" => ValueKind::Duration,
            "boolean" => ValueKind::Boolean,
            "int" | "integer" | "long" | "short" | "byte" | "decimal" | "double" | "float"
            | "unsignedInt" | "unsignedLong" | "nonNegativeInteger" | "positiveInteger" => ValueKind::Number,
            _ => return None,
        })
    }
}

impl ExpressionValue {
    /// A value in a document, of this kind.
    pub(crate) fn parse(text: &str, kind: ValueKind) -> Option<ExpressionValue> {
        match kind {
            ValueKind::Number => parse_double(text)
                .ok()
                .filter(|number| number.is_finite())
                .map(ExpressionValue::Number),
            ValueKind::DateTime => text.parse().ok().map(ExpressionValue::DateTime),
            ValueKind::Duration => text.parse().ok().map(ExpressionValue::Duration),
            ValueKind::Boolean => parse_boolean(text).ok().map(ExpressionValue::Boolean),
        }
    }

    fn kind(self) -> ValueKind {
        match self {
            ExpressionValue::Number(_) => ValueKind::Number,
            ExpressionValue::DateTime(_) => ValueKind::DateTime,
            ExpressionValue::Duration(_) => ValueKind::Duration,
            ExpressionValue::Boolean(_) => ValueKind::Boolean,
        }
    }
}

/// The variables that an expression may use.
#[derive(Debug, Clone)]
pub struct Variables {
    /// Names with their kinds; the inner error is a metric without a kind.
    known: Vec<(String, Result<ValueKind, String>)>,
}

const PREDEFINED: [(&str, ValueKind); 10] = [
    ("submitted", ValueKind::DateTime),
    ("ready", ValueKind::DateTime),
    ("deadline", ValueKind::DateTime),
    ("latest_start", ValueKind::DateTime),
    ("planned_start", ValueKind::DateTime),
    ("started", ValueKind::DateTime),
    ("completed", ValueKind::DateTime),
    ("duration", ValueKind::Duration),
    ("granted", ValueKind::Duration),
    ("nodes", ValueKind::Number),
];

impl Variables {
    /// The variables that every agreement has: `submitted`, `ready`, `deadline`, `latest_start`, `planned_start`,
    /// `started` and `completed` (dateTimes), `duration` and `granted` (durations: the contract's, and how long the work
    /// had its nodes), and `nodes` (a number). `planned_start` is the start that was promised, and `latest_start` the last one
    /// that keeps that promise.
    pub fn predefined() -> Variables {
        let known = PREDEFINED
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), Ok(*kind)));
        Variables {
            known: known.collect(),
        }
    }

    /// Adds a variable by its metric, such as `xs:dateTime`.
    pub fn add(&mut self, name: &str, metric: &str) {
        let kind = ValueKind::of_metric(metric).ok_or_else(|| metric.to_owned());
        self.known.push((name.to_owned(), kind));
    }

    /// The variables that an offer has.
    pub(crate) fn of_offers() -> Variables {
        let mut variables = Variables::predefined();
        variables
            .known
            .retain(|(name, _)| ["ready", "deadline", "duration", "nodes"].contains(&name.as_str()));
        variables
    }

    /// Adds a variable of a kind.
    pub(crate) fn add_kind(&mut self, name: &str, kind: ValueKind) {
        self.known.push((name.to_owned(), Ok(kind)));
    }

    pub(crate) fn kind(&self, name: &str) -> Result<ValueKind, ExpressionError> {
        let found = self.known.iter().find(|(known, _)| known == name);
        let name = shorten_text_in_violation(name);
        let message = match found {
            Some((_, Ok(kind))) => return Ok(*kind),
            Some((_, Err(metric))) => {
                let metric = shorten_text_in_violation(metric);
                format!("the variable {name} has the metric {metric}, which cannot be compared")
            }
            None => {
                let known = list_names_in_violation(self.known.iter().map(|(name, _)| name.as_str()), ", ");
                format!("the variable {name} is not known; known are {known}")
            }
        };
        Err(ExpressionError(message))
    }
}

/// An expression that was read and found sound.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedExpression(ExpressionTree);

#[derive(Debug, Clone, PartialEq)]
enum ExpressionTree {
    Compare(Comparison, Operand, Operand),
    Truth(Operand),
    Not(Box<ExpressionTree>),
    /// `and`, which one false side decides, or `or`, which one true side decides.
    Join {
        decisive: bool,
        sides: Box<[ExpressionTree; 2]>,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Literal(ExpressionValue),
    Variable(String),
}

named_values! {
    enum Comparison {
        Eq = "eq",
        Ne = "ne",
        Lt = "lt",
        Le = "le",
        Gt = "gt",
        Ge = "ge",
    }
}

impl ParsedExpression {
    /// Reads the text of an expression in a document.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(crate) fn of(
        expression: &Expression,
        variables: &Variables,
    ) -> Result<ParsedExpression, ExpressionError> {
        match &expression.dialect {
            Some(dialect) if dialect != DIALECT => {
                let dialect = shorten_text_in_violation(dialect);
                Err(ExpressionError(format!(
                    "the dialect {dialect:?} is not known; {DIALECT} is, and is meant where none is named"
                )))
            }
            _ => ParsedExpression::parse(&expression.text, variables),
        }
    }

    /// Reads a text in our dialect.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub fn parse(text: &str, variables: &Variables) -> Result<ParsedExpression, ExpressionError> {
        if text.len() > LENGTH_MAX {
            return Err(expression_too_large());
        }
        let mut parser = ExpressionParser {
            text,
            at: 0,
            variables,
        };
        let tree = parser.or(0)?;
        if !parser.peek().is_empty() {
            return Err(parser.unexpected());
        }
        Ok(ParsedExpression(tree))
    }

    /// Whether it holds; None where a value is missing that would decide it.
    pub fn evaluate(&self, lookup: impl Fn(&str) -> Option<ExpressionValue>) -> Option<bool> {
        self.0.evaluate(&|name| lookup(name).map(ValueRange::from))
    }

    /// Whether it holds for all values that its variables may still take; None where that depends on them, or where nothing is
    /// known of one that would decide it. Each place of a variable counts by itself, so that `x eq x` of a range is undecided; an
    /// answer is always right.
    pub fn evaluate_ranges(&self, lookup: impl Fn(&str) -> Option<ValueRange>) -> Option<bool> {
        self.0.evaluate(&lookup)
    }

    /// The instants in it that are known exactly: between two of them, time alone decides nothing.
    pub fn instants(&self, lookup: impl Fn(&str) -> Option<ValueRange>) -> Vec<DateTime> {
        let mut found = Vec::new();
        self.0.operands(&mut |operand| match operand.range(&lookup) {
            Some(ValueRange {
                least: ExpressionValue::DateTime(least),
                most: ExpressionValue::DateTime(most),
            }) if least == most => found.push(least),
            _ => {}
        });
        found
    }
}

impl ExpressionTree {
    fn join(decisive: bool, left: ExpressionTree, right: ExpressionTree) -> ExpressionTree {
        let sides = Box::new([left, right]);
        ExpressionTree::Join { decisive, sides }
    }

    fn evaluate(&self, lookup: &impl Fn(&str) -> Option<ValueRange>) -> Option<bool> {
        match self {
            ExpressionTree::Compare(comparison, left, right) => {
                comparison.holds(left.range(lookup)?, right.range(lookup)?)
            }
            ExpressionTree::Truth(operand) => match operand.range(lookup)? {
                ValueRange {
                    least: ExpressionValue::Boolean(least),
                    most: ExpressionValue::Boolean(most),
                } => (least == most).then_some(least),
                _ => None,
            },
            ExpressionTree::Not(inner) => inner.evaluate(lookup).map(|value| !value),
            // One side can decide, for any value of the other.
            ExpressionTree::Join { decisive, sides } => {
                let [left, right] = sides.each_ref().map(|side| side.evaluate(lookup));
                if left == Some(*decisive) || right == Some(*decisive) {
                    return Some(*decisive);
                }
                left.and(right)
            }
        }
    }

    fn operands(&self, visit: &mut impl FnMut(&Operand)) {
        match self {
            ExpressionTree::Compare(_, left, right) => {
                visit(left);
                visit(right);
            }
            ExpressionTree::Truth(operand) => visit(operand),
            ExpressionTree::Not(inner) => inner.operands(visit),
            ExpressionTree::Join { sides, .. } => sides.iter().for_each(|side| side.operands(visit)),
        }
    }
}

impl Operand {
    fn range(&self, lookup: &impl Fn(&str) -> Option<ValueRange>) -> Option<ValueRange> {
        match self {
            Operand::Literal(value) => Some((*value).into()),
            Operand::Variable(name) => lookup(name),
        }
    }

    fn kind(&self, variables: &Variables) -> Result<ValueKind, ExpressionError> {
        match self {
            Operand::Literal(value) => Ok(value.kind()),
            Operand::Variable(name) => variables.kind(name),
        }
    }
}

impl Comparison {
    /// None where it depends on the later values, or where they have no order: different kinds from the lookup, or durations of
    /// months and days.
    fn holds(self, left: ValueRange, right: ValueRange) -> Option<bool> {
        let low = order_of_expression_values(left.least, right.most)?;
        let high = order_of_expression_values(left.most, right.least)?;
        let (always, never) = match self {
            Comparison::Lt => (high == Ordering::Less, low != Ordering::Less),
            Comparison::Le => (high != Ordering::Greater, low == Ordering::Greater),
            Comparison::Gt => (low == Ordering::Greater, high != Ordering::Greater),
            Comparison::Ge => (low != Ordering::Less, high == Ordering::Less),
            Comparison::Eq | Comparison::Ne => {
                let same = low == Ordering::Equal && high == Ordering::Equal;
                let apart = low == Ordering::Greater || high == Ordering::Less;
                if self == Comparison::Eq {
                    (same, apart)
                } else {
                    (apart, same)
                }
            }
        };
        (always || never).then_some(always)
    }
}

fn order_of_expression_values(left: ExpressionValue, right: ExpressionValue) -> Option<Ordering> {
    match (left, right) {
        (ExpressionValue::Number(left), ExpressionValue::Number(right)) => left.partial_cmp(&right),
        (ExpressionValue::DateTime(left), ExpressionValue::DateTime(right)) => Some(left.cmp(&right)),
        (ExpressionValue::Duration(left), ExpressionValue::Duration(right)) => left.partial_cmp(&right),
        (ExpressionValue::Boolean(left), ExpressionValue::Boolean(right)) => Some(left.cmp(&right)),
        _ => None,
    }
}

/// Whether a word names a variable.
pub(crate) fn is_variable(word: &str) -> bool {
    let mut parser = ExpressionParser {
        text: word,
        at: 0,
        variables: &Variables { known: Vec::new() },
    };
    matches!(parser.operand(), Ok(Operand::Variable(name)) if name == word)
}

/// An expression with some of its variables replaced, the others as they stand.
pub(crate) fn replace_variables_in_expression<E>(
    text: &str,
    replacement: impl Fn(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut parser = ExpressionParser {
        text,
        at: 0,
        variables: &Variables { known: Vec::new() },
    };
    let (mut replaced, mut copied) = (String::new(), 0);
    loop {
        let word = parser.peek();
        if word.is_empty() {
            return Ok(replaced + &text[copied..]);
        }
        let at = parser.at;
        parser.take(word);
        if let Some(other) = replacement(word)? {
            replaced.push_str(&text[copied..at]);
            replaced.push_str(&other);
            copied = parser.at;
        }
    }
}

/// An expression: text, with its dialect as an attribute.
impl Readable for Expression {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Expression> {
        check.attributes(node, &[(BSP, "dialect")]);
        let dialect = node.attribute(BSP, "dialect").map(str::to_owned);
        Some(Expression {
            text: check.text_only(node)?.into_owned(),
            dialect,
        })
    }
}

impl WrittenValue for Expression {
    fn write(&self, xml: &mut Xml) {
        xml.optional_attribute("bsp:dialect", self.dialect.as_deref());
        xml.text(&self.text);
    }
}
