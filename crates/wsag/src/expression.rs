//! The expressions in which conditions and objectives are written.
//!
//! WS-Agreement leaves its expression language open. Ours is small enough that every text either has one meaning
//! or is refused with the reason: comparisons (`eq ne lt le gt ge`) of numbers, dateTimes, durations and
//! variables, joined by `and`, `or`, `not` and brackets. `not` binds tighter than `and`, and `and` tighter than
//! `or`. Types are checked when the text is read, so an evaluation cannot fail; it may only lack data.

use std::cmp::Ordering;

use thiserror::Error;

use crate::datatypes::Decimal;
use crate::guarantees;
use crate::terms::Terms;
use crate::time::{DateTime, Duration};
use crate::violation::{listed, shortened};

/// The name of this language in `bsp:dialect`.
pub const DIALECT: &str = "urn:bespeak:expression:1";
/// Longest expression, in bytes.
pub const LENGTH_MAX: usize = 2_000;
/// Deepest nesting of brackets and `not`.
pub const NESTING_MAX: usize = 32;

/// Why a text is no expression here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpressionError {
    /// Another language.
    #[error("the dialect {0:?} is not known; {DIALECT} is, and is meant where none is named")]
    Dialect(String),
    /// Not of the grammar.
    #[error(
        "{found} at character {at} is not understood: comparisons by eq, ne, lt, le, gt or ge of numbers, \
         dateTimes, durations and variables are expected, joined by and, or, not and brackets"
    )]
    Syntax {
        /// The text found there.
        found: String,
        /// Where, from 1.
        at: usize,
    },
    /// An unknown name.
    #[error("the variable {name} is not known; known are {known}")]
    UnknownVariable {
        /// The name.
        name: String,
        /// Names that would be known; of many the first.
        known: String,
    },
    /// A variable with a metric that is no type that can be compared.
    #[error("the variable {name} has the metric {metric}, which cannot be compared")]
    Metric {
        /// The name.
        name: String,
        /// Its metric.
        metric: String,
    },
    /// Values that cannot be compared, or a value where a truth is expected.
    #[error("{0}")]
    Type(String),
    /// Longer or deeper than allowed.
    #[error("an expression may have {LENGTH_MAX} bytes and {NESTING_MAX} nested brackets at most")]
    TooLarge,
}

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// An instant.
    DateTime(DateTime),
    /// A length of time.
    Duration(Duration),
    /// A truth.
    Boolean(bool),
}

/// The known range of a value: it lies between two, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// It is not below this one.
    pub least: Value,
    /// It is not above this one.
    pub most: Value,
}

impl From<Value> for Range {
    fn from(value: Value) -> Range {
        Range {
            least: value,
            most: value,
        }
    }
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// An instant.
    DateTime,
    /// A length of time.
    Duration,
    /// A truth.
    Boolean,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::DateTime => "a dateTime",
            Kind::Duration => "a duration",
            Kind::Boolean => "a truth",
        }
    }

    /// The kind of a metric of `wsag:Variable`.
    fn of_metric(metric: &str) -> Option<Kind> {
        let local = metric.rsplit(':').next().unwrap_or(metric);
        Some(match local {
            "dateTime" => Kind::DateTime,
            "duration" => Kind::Duration,
            "boolean" => Kind::Boolean,
            "int" | "integer" | "long" | "short" | "byte" | "decimal" | "double" | "float"
            | "unsignedInt" | "unsignedLong" | "nonNegativeInteger" | "positiveInteger" => Kind::Number,
            _ => return None,
        })
    }
}

impl Value {
    fn kind(self) -> Kind {
        match self {
            Value::Number(_) => Kind::Number,
            Value::DateTime(_) => Kind::DateTime,
            Value::Duration(_) => Kind::Duration,
            Value::Boolean(_) => Kind::Boolean,
        }
    }
}

/// The variables that an expression may use.
#[derive(Debug, Clone)]
pub struct Variables {
    /// Names with their kinds; the inner error is a metric without a kind.
    known: Vec<(String, Result<Kind, String>)>,
}

impl Variables {
    /// The variables that every agreement has: `submitted`, `ready`, `deadline`, `latest_start`, `planned_start`,
    /// `started` and `completed` (dateTimes), `duration` and `granted` (durations: the contract's, and how long the work
    /// had its nodes), and `nodes` (a number).
    pub fn predefined() -> Variables {
        let instants = [
            "submitted",
            "ready",
            "deadline",
            "latest_start",
            "planned_start",
            "started",
            "completed",
        ];
        let mut known: Vec<(String, Result<Kind, String>)> = instants
            .iter()
            .map(|name| ((*name).to_owned(), Ok(Kind::DateTime)))
            .collect();
        known.push(("duration".to_owned(), Ok(Kind::Duration)));
        known.push(("granted".to_owned(), Ok(Kind::Duration)));
        known.push(("nodes".to_owned(), Ok(Kind::Number)));
        Variables { known }
    }

    /// The predefined variables and those of the service properties among these terms.
    pub fn of(terms: &Terms) -> Variables {
        let mut variables = Variables::predefined();
        for variable in terms.properties().flat_map(|properties| &properties.variables) {
            variables.add(&variable.name, &variable.metric);
        }
        variables
    }

    /// Adds a variable by its metric, such as `xs:dateTime`.
    pub fn add(&mut self, name: &str, metric: &str) {
        let kind = Kind::of_metric(metric).ok_or_else(|| metric.to_owned());
        self.known.push((name.to_owned(), kind));
    }

    fn kind(&self, name: &str) -> Result<Kind, ExpressionError> {
        match self.known.iter().find(|(known, _)| known == name) {
            Some((_, Ok(kind))) => Ok(*kind),
            Some((_, Err(metric))) => Err(ExpressionError::Metric {
                name: shortened(name).into_owned(),
                metric: shortened(metric).into_owned(),
            }),
            None => Err(ExpressionError::UnknownVariable {
                name: shortened(name).into_owned(),
                known: listed(self.known.iter().map(|(name, _)| name.as_str()), ", "),
            }),
        }
    }
}

/// An expression that was read and found sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed(Tree);

#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Compare(Comparison, Operand, Operand),
    Truth(Operand),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Literal(Value),
    Variable(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Parsed {
    /// Reads the text of an expression in a document.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub fn of(expression: &guarantees::Expression, variables: &Variables) -> Result<Parsed, ExpressionError> {
        match &expression.dialect {
            Some(dialect) if dialect != DIALECT => {
                Err(ExpressionError::Dialect(shortened(dialect).into_owned()))
            }
            _ => Parsed::parse(&expression.text, variables),
        }
    }

    /// Reads a text in our dialect.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub fn parse(text: &str, variables: &Variables) -> Result<Parsed, ExpressionError> {
        if text.len() > LENGTH_MAX {
            return Err(ExpressionError::TooLarge);
        }
        let mut parser = Parser {
            text,
            at: 0,
            variables,
        };
        let tree = parser.or(0)?;
        if parser.peek() == Token::End {
            Ok(Parsed(tree))
        } else {
            Err(parser.unexpected())
        }
    }

    /// Whether it holds; None where a value is missing that would decide it.
    pub fn evaluate(&self, lookup: impl Fn(&str) -> Option<Value>) -> Option<bool> {
        self.0.evaluate(&|name| lookup(name).map(Range::from))
    }

    /// Whether it holds for all values that its variables may still take; None where that depends on them, or where nothing is
    /// known of one that would decide it. Each place of a variable counts by itself, so that `x eq x` of a range is undecided; an
    /// answer is always right.
    pub fn evaluate_ranges(&self, lookup: impl Fn(&str) -> Option<Range>) -> Option<bool> {
        self.0.evaluate(&lookup)
    }

    /// The instants in it that are known exactly: between two of them, time alone decides nothing.
    pub fn instants(&self, lookup: impl Fn(&str) -> Option<Range>) -> Vec<DateTime> {
        let mut found = Vec::new();
        self.0.operands(&mut |operand| match operand.range(&lookup) {
            Some(Range {
                least: Value::DateTime(least),
                most: Value::DateTime(most),
            }) if least == most => found.push(least),
            _ => {}
        });
        found
    }
}

impl Tree {
    fn evaluate(&self, lookup: &impl Fn(&str) -> Option<Range>) -> Option<bool> {
        match self {
            Tree::Compare(comparison, left, right) => {
                comparison.holds(left.range(lookup)?, right.range(lookup)?)
            }
            Tree::Truth(operand) => match operand.range(lookup)? {
                Range {
                    least: Value::Boolean(least),
                    most: Value::Boolean(most),
                } => (least == most).then_some(least),
                _ => None,
            },
            Tree::Not(inner) => inner.evaluate(lookup).map(|value| !value),
            // One side can decide, for any value of the other.
            Tree::And(left, right) => match (left.evaluate(lookup), right.evaluate(lookup)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Tree::Or(left, right) => match (left.evaluate(lookup), right.evaluate(lookup)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }

    fn operands(&self, visit: &mut impl FnMut(&Operand)) {
        match self {
            Tree::Compare(_, left, right) => {
                visit(left);
                visit(right);
            }
            Tree::Truth(operand) => visit(operand),
            Tree::Not(inner) => inner.operands(visit),
            Tree::And(left, right) | Tree::Or(left, right) => {
                left.operands(visit);
                right.operands(visit);
            }
        }
    }
}

impl Operand {
    fn range(&self, lookup: &impl Fn(&str) -> Option<Range>) -> Option<Range> {
        match self {
            Operand::Literal(value) => Some((*value).into()),
            Operand::Variable(name) => lookup(name),
        }
    }

    fn kind(&self, variables: &Variables) -> Result<Kind, ExpressionError> {
        match self {
            Operand::Literal(value) => Ok(value.kind()),
            Operand::Variable(name) => variables.kind(name),
        }
    }
}

impl Comparison {
    fn of(word: &str) -> Option<Comparison> {
        Some(match word {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            _ => return None,
        })
    }

    /// None where it depends on the later values, or where they have no order: different kinds from the lookup, or durations of
    /// months and days.
    fn holds(self, left: Range, right: Range) -> Option<bool> {
        let low = order(left.least, right.most)?;
        let high = order(left.most, right.least)?;
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

fn order(left: Value, right: Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(&right),
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.cmp(&right)),
        (Value::Duration(left), Value::Duration(right)) => left.partial_cmp(&right),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(&right)),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Open,
    Close,
    Other(&'t str),
    End,
}

struct Parser<'t, 'v> {
    text: &'t str,
    at: usize,
    variables: &'v Variables,
}

impl<'t> Parser<'t, '_> {
    /// The next token, without taking it; white space before it is skipped.
    fn peek(&mut self) -> Token<'t> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+');
        match rest.chars().next() {
            None => Token::End,
            Some('(') => Token::Open,
            Some(')') => Token::Close,
            Some(c) if word(c) => Token::Word(&rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())]),
            Some(_) => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || word(c))
                    .unwrap_or(rest.len());
                Token::Other(&rest[..end])
            }
        }
    }

    fn take(&mut self, token: Token<'_>) {
        self.at += match token {
            Token::Word(text) | Token::Other(text) => text.len(),
            Token::Open | Token::Close => 1,
            Token::End => 0,
        };
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn unexpected(&mut self) -> ExpressionError {
        let found = match self.peek() {
            Token::Word(text) | Token::Other(text) => format!("{text:?}"),
            Token::Open => "(".to_owned(),
            Token::Close => ")".to_owned(),
            Token::End => "the end".to_owned(),
        };
        ExpressionError::Syntax {
            found,
            at: self.text[..self.at].chars().count() + 1,
        }
    }

    fn or(&mut self, nesting: usize) -> Result<Tree, ExpressionError> {
        let mut tree = self.and(nesting)?;
        while self.take_word("or") {
            tree = Tree::Or(Box::new(tree), Box::new(self.and(nesting)?));
        }
        Ok(tree)
    }

    fn and(&mut self, nesting: usize) -> Result<Tree, ExpressionError> {
        let mut tree = self.not(nesting)?;
        while self.take_word("and") {
            tree = Tree::And(Box::new(tree), Box::new(self.not(nesting)?));
        }
        Ok(tree)
    }

    fn not(&mut self, nesting: usize) -> Result<Tree, ExpressionError> {
        if nesting > NESTING_MAX {
            return Err(ExpressionError::TooLarge);
        }
        if self.take_word("not") {
            return Ok(Tree::Not(Box::new(self.not(nesting + 1)?)));
        }
        if self.peek() == Token::Open {
            self.take(Token::Open);
            let tree = self.or(nesting + 1)?;
            if self.peek() != Token::Close {
                return Err(self.unexpected());
            }
            self.take(Token::Close);
            return Ok(tree);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Tree, ExpressionError> {
        let left = self.operand()?;
        let left_kind = left.kind(self.variables)?;
        let comparison = match self.peek() {
            Token::Word(word) => Comparison::of(word),
            Token::Other(_) => return Err(self.unexpected()),
            _ => None,
        };
        let Some(comparison) = comparison else {
            if left_kind != Kind::Boolean {
                return Err(match self.peek() {
                    Token::Word("and" | "or") | Token::Close | Token::End => ExpressionError::Type(format!(
                        "{} stands where a truth is expected",
                        left_kind.words()
                    )),
                    _ => self.unexpected(),
                });
            }
            return Ok(Tree::Truth(left));
        };
        self.at += 2;
        let right = self.operand()?;
        let right_kind = right.kind(self.variables)?;
        if left_kind != right_kind {
            let (left, right) = (left_kind.words(), right_kind.words());
            return Err(ExpressionError::Type(format!(
                "{left} cannot be compared with {right}"
            )));
        }
        Ok(Tree::Compare(comparison, left, right))
    }

    fn operand(&mut self) -> Result<Operand, ExpressionError> {
        let Token::Word(word) = self.peek() else {
            return Err(self.unexpected());
        };
        let reserved = Comparison::of(word).is_some() || matches!(word, "and" | "or" | "not");
        if reserved {
            return Err(self.unexpected());
        }
        let operand = if let Ok(duration) = word.parse::<Duration>() {
            Operand::Literal(Value::Duration(duration))
        } else if let Ok(instant) = word.parse::<DateTime>() {
            Operand::Literal(Value::DateTime(instant))
        } else if let Some(number) = Decimal::parse(word).and_then(|_| word.parse().ok()) {
            Operand::Literal(Value::Number(number))
        } else if matches!(word, "true" | "false") {
            Operand::Literal(Value::Boolean(word == "true"))
        } else if word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            Operand::Variable(word.to_owned())
        } else {
            return Err(self.unexpected());
        };
        self.take(Token::Word(word));
        Ok(operand)
    }
}
