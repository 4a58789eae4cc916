//! Constraints on an offer as a whole: expressions over the values of its terms.

use std::cell::Cell;

use crate::constraints::bindings::Values;
use crate::expression::{Expression, ExpressionValue, ParsedExpression, ValueRange, Variables};
use crate::terms::{Alternative, ServiceDescription, Term};
use crate::xml::{Duration, shorten_text_in_violation};

/// A constraint, read.
pub(super) struct Constraint {
    /// As it was written.
    pub(super) text: String,
    parsed: ParsedExpression,
}

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(super) fn read(expression: &Expression, variables: &Variables) -> Result<Constraint, String> {
        let text = expression.text.trim().to_owned();
        match ParsedExpression::of(expression, variables) {
            Ok(parsed) => Ok(Constraint { text, parsed }),
            Err(error) => Err(format!(
                "{:?} cannot be evaluated: {error}",
                shorten_text_in_violation(&text)
            )),
        }
    }

    /// Whether one of these ways to read terms breaks it, as any of them may be the one that is taken. Where there are too many to go
    /// through it counts as broken. So it does where a variable that is bound has no value of its kind, or several of which some
    /// may break it.
    pub(super) fn is_broken<'b>(
        &self,
        ways: Option<&[Alternative<'_>]>,
        bound: impl Fn(&str) -> Option<Values<'b>>,
    ) -> bool {
        let is_open = Cell::new(false);
        let breaks = |way: &Alternative<'_>| {
            let holds = self.parsed.evaluate_ranges(|name| match bound(name) {
                None => value_of_constraint_variable(&way.terms, name).map(ValueRange::from),
                Some(Values::Of(other)) => {
                    value_of_constraint_variable(&way.terms, other).map(ValueRange::from)
                }
                Some(Values::Said(Ok(values))) => {
                    is_open.set(is_open.get() || values.len() > 1);
                    ValueRange::of(&values)
                }
                Some(Values::Said(Err(_))) => {
                    is_open.set(true);
                    None
                }
            });
            holds.map_or(is_open.get(), |holds| !holds)
        };
        ways.is_none_or(|ways| ways.iter().any(breaks))
    }
}

/// The values of terms that hold together, for a variable of a creation constraint.
fn value_of_constraint_variable(terms: &[&Term], name: &str) -> Option<ExpressionValue> {
    let mut descriptions = terms.iter().filter_map(|term| match term {
        Term::ServiceDescription(description) => Some(&description.content),
        _ => None,
    });
    if name == "nodes" {
        let range = descriptions.find_map(|description| match description {
            ServiceDescription::JobDefinition(job) => job.resources.nodes.as_ref(),
            _ => None,
        });
        // A range is decided by its greatest size, since any size up to it may be granted.
        let (least, greatest) = range?.whole_numbers().ok()?;
        return Some(ExpressionValue::Number(f64::from(greatest.unwrap_or(least))));
    }
    let time = descriptions.find_map(|description| match description {
        ServiceDescription::AllocationTime(time) => Some(time),
        _ => None,
    })?;
    match name {
        "ready" => time.start.map(ExpressionValue::DateTime),
        "deadline" => time.end.map(ExpressionValue::DateTime),
        "duration" => time
            .duration
            .map(|seconds| ExpressionValue::Duration(Duration::from_seconds(seconds.into()))),
        _ => None,
    }
}
