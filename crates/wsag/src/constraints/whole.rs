//! Constraints on an offer as a whole: expressions over the values of its terms.

use crate::constraints::steps::View;
use crate::expression::{Expression, Parsed, Value, Variables};
use crate::terms::{Alternative, ServiceDescription, Term, Terms};
use crate::xml::ns::WSAG;
use crate::xml::{Check, Duration, Readable, shortened};

/// A constraint, read.
pub(super) struct Constraint {
    /// As it was written.
    pub(super) text: String,
    parsed: Parsed,
}

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(super) fn read(expression: &Expression, variables: &Variables) -> Result<Constraint, String> {
        let text = expression.text.trim().to_owned();
        match Parsed::of(expression, variables) {
            Ok(parsed) => Ok(Constraint { text, parsed }),
            Err(error) => Err(format!("{:?} cannot be evaluated: {error}", shortened(&text))),
        }
    }

    /// Whether one of the ways to read terms breaks it, as any of them may be the one that is taken. Where there are too many to go
    /// through it counts as broken.
    pub(super) fn is_broken(&self, ways: Option<&[Alternative<'_>]>) -> bool {
        let breaks =
            |way: &Alternative<'_>| self.parsed.evaluate(|name| value_of(&way.terms, name)) == Some(false);
        ways.is_none_or(|ways| ways.iter().any(breaks))
    }
}

/// The terms of an offer, as constraints on the whole compare them.
pub(super) fn terms_of(view: &View<'_>) -> Terms {
    let terms = view.offer().child(WSAG, "Terms");
    // Their faults are reported where the offer is read.
    let terms = terms.and_then(|terms| Terms::read(&mut Check::default(), terms));
    terms.unwrap_or_default()
}

/// The values of terms that hold together, for a variable of a creation constraint.
fn value_of(terms: &[&Term], name: &str) -> Option<Value> {
    let mut descriptions = terms.iter().filter_map(|term| match term {
        Term::ServiceDescription(of) => Some(&of.content),
        _ => None,
    });
    if name == "nodes" {
        let range = descriptions.find_map(|of| match of {
            ServiceDescription::JobDefinition(job) => job.resources.nodes.as_ref(),
            _ => None,
        });
        // A range is decided by its greatest size, since any size up to it may be granted.
        let (least, greatest) = range?.whole_numbers().ok()?;
        return Some(Value::Number(f64::from(greatest.unwrap_or(least))));
    }
    let time = descriptions.find_map(|of| match of {
        ServiceDescription::AllocationTime(time) => Some(time),
        _ => None,
    })?;
    match name {
        "ready" => time.start.map(Value::DateTime),
        "deadline" => time.end.map(Value::DateTime),
        "duration" => time
            .duration
            .map(|seconds| Value::Duration(Duration::from_seconds(seconds.into()))),
        _ => None,
    }
}
