//! How the text of an expression is read.

use crate::expression::{
    Comparison, ExpressionError, ExpressionTree, ExpressionValue, NESTING_MAX, Operand, ValueKind, Variables,
    expression_too_large,
};
use crate::xml::datatypes::Decimal;
use crate::xml::{DateTime, Duration, NamedValue};

/// A text being read as an expression.
pub(super) struct ExpressionParser<'t, 'v> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) variables: &'v Variables,
}

impl<'t> ExpressionParser<'t, '_> {
    /// The next token, without taking it: a bracket, a word, or other characters; empty at the end. White space before it is
    /// skipped.
    pub(super) fn peek(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+');
        let end = match rest.chars().next() {
            Some('(' | ')') => Some(1),
            Some(c) if word(c) => rest.find(|c| !word(c)),
            _ => rest.find(|c: char| c.is_whitespace() || word(c)),
        };
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn unexpected(&mut self) -> ExpressionError {
        let found = match self.peek() {
            "" => "the end".to_owned(),
            bracket @ ("(" | ")") => bracket.to_owned(),
            other => format!("{other:?}"),
        };
        let at = self.text[..self.at].chars().count() + 1;
        ExpressionError(format!(
            "{found} at character {at} is not understood: comparisons by eq, ne, lt, le, gt or ge of numbers, dateTimes, \
             durations and variables are expected, joined by and, or, not and brackets"
        ))
    }

    pub(super) fn or(&mut self, nesting: usize) -> Result<ExpressionTree, ExpressionError> {
        let mut tree = self.and(nesting)?;
        while self.take("or") {
            tree = ExpressionTree::join(true, tree, self.and(nesting)?);
        }
        Ok(tree)
    }

    fn and(&mut self, nesting: usize) -> Result<ExpressionTree, ExpressionError> {
        let mut tree = self.not(nesting)?;
        while self.take("and") {
            tree = ExpressionTree::join(false, tree, self.not(nesting)?);
        }
        Ok(tree)
    }

    fn not(&mut self, nesting: usize) -> Result<ExpressionTree, ExpressionError> {
        if nesting > NESTING_MAX {
            return Err(expression_too_large());
        }
        if self.take("not") {
            return Ok(ExpressionTree::Not(Box::new(self.not(nesting + 1)?)));
        }
        if self.take("(") {
            let tree = self.or(nesting + 1)?;
            return if self.take(")") {
                Ok(tree)
            } else {
                Err(self.unexpected())
            };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<ExpressionTree, ExpressionError> {
        let left = self.operand()?;
        let left_kind = left.kind(self.variables)?;
        let next = self.peek();
        let Some(comparison) = Comparison::parse(next) else {
            return match (left_kind, next) {
                (ValueKind::Boolean, _) => Ok(ExpressionTree::Truth(left)),
                (_, "and" | "or" | ")" | "") => {
                    let message = format!("{} stands where a truth is expected", left_kind.name());
                    Err(ExpressionError(message))
                }
                _ => Err(self.unexpected()),
            };
        };
        self.take(next);
        let right = self.operand()?;
        let right_kind = right.kind(self.variables)?;
        if left_kind != right_kind {
            let (left, right) = (left_kind.name(), right_kind.name());
            let message = format!("{left} cannot be compared with {right}");
            return Err(ExpressionError(message));
        }
        Ok(ExpressionTree::Compare(comparison, left, right))
    }

    pub(super) fn operand(&mut self) -> Result<Operand, ExpressionError> {
        let word = self.peek();
        if Comparison::parse(word).is_some() || matches!(word, "and" | "or" | "not") {
            return Err(self.unexpected());
        }
        let operand = if let Ok(duration) = word.parse::<Duration>() {
            Operand::Literal(ExpressionValue::Duration(duration))
        } else if let Ok(instant) = word.parse::<DateTime>() {
            Operand::Literal(ExpressionValue::DateTime(instant))
        } else if let Some(number) = Decimal::parse(word).and_then(|_| word.parse().ok()) {
            Operand::Literal(ExpressionValue::Number(number))
        } else if matches!(word, "true" | "false") {
            Operand::Literal(ExpressionValue::Boolean(word == "true"))
        } else if word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            Operand::Variable(word.to_owned())
        } else {
            return Err(self.unexpected());
        };
        self.take(word);
        Ok(operand)
    }
}
