//! The service's demands on an offer beyond its schema: rules that a schema cannot state.
//!
//! An offer may be valid and still mean nothing: two terms of one name, a window that ends before it starts, an objective in an
//! unknown language. Each rule that is broken is reported at the element that breaks it.

use crate::constraints::bindings::Bindings;
use crate::expression::{Expression, ParsedExpression, Variables};
use crate::job_definition::RangeValue;
use crate::scheduling::AllocationTimeConstraint;
use crate::terms::{TERMS, Terms, other_contents_of_terms};
use crate::xml::ns::{ARP, JSDL, WSAG};
use crate::xml::{Document, DocumentCheck, Node, Readable, UnchosenTerms, Violation, ViolationKind};

/// Checks every offer in a document that [`crate::read`] has accepted. The result is empty where nothing is wrong.
pub fn check_rules(document: &Document<'_>) -> Vec<Violation> {
    check_rules_of_way(document, &UnchosenTerms::default())
}

/// Checks one way to read each offer in a document, as if it had no other terms.
pub fn check_rules_of_way(document: &Document<'_>, left_out: &UnchosenTerms) -> Vec<Violation> {
    let mut check = DocumentCheck::leaving_out(left_out);
    for offer in document.offers() {
        if let Some(terms) = offer.child(WSAG, "Terms") {
            check_rule_of_terms(&mut check, terms);
        }
    }
    check.into_violations()
}

fn check_rule_of_terms(check: &mut DocumentCheck, terms: Node<'_>) {
    let mut variables = Variables::predefined();
    check_rule_of_term_names(check, terms, &mut Vec::new());
    // Few offers have a variable, and the terms of others are not read once more for them.
    if terms.descendants().any(|node| node.is(WSAG, "Variable"))
        && let Some(read) = Terms::read(&mut DocumentCheck::default(), terms)
    {
        Bindings::read(terms, &read).0.add_to(&mut variables, false);
    }
    let others = other_contents_of_terms(terms);
    for node in terms.descendants().filter(|node| !others.has(*node)) {
        if node.is(ARP, "AllocationTimeConstraint") {
            check_rule_of_window(check, node);
        } else if node.is(JSDL, "TotalResourceCount") {
            check_rule_of_count(check, node);
        } else if node.is(WSAG, "QualifyingCondition") || node.is(WSAG, "CustomServiceLevel") {
            let expression = Expression::read(&mut DocumentCheck::default(), node);
            let parsed = expression.map(|expression| ParsedExpression::of(&expression, &variables));
            if let Some(Err(error)) = parsed {
                let message = format!("it cannot be evaluated: {error}");
                check.add(ViolationKind::NotEvaluable, node, message);
            }
        }
    }
}

/// Two terms that hold together may not have the same name; two terms of a choice may. The guard bounds the depth of this
/// recursion.
fn check_rule_of_term_names<'d>(check: &mut DocumentCheck, compositor: Node<'d>, names: &mut Vec<&'d str>) {
    let chooses = compositor.is(WSAG, "ExactlyOne") || compositor.is(WSAG, "OneOrMore");
    let outside = names.clone();
    for node in compositor.children().filter(|node| node.namespace() == WSAG) {
        if check.leaves_out(node) {
            continue;
        }
        let mut here = if chooses {
            outside.clone()
        } else {
            std::mem::take(names)
        };
        if TERMS.contains(&node.local()) {
            let name = node.attribute(WSAG, "Name").unwrap_or_default();
            if here.contains(&name) {
                check.value(
                    node,
                    format!("another term bears the name {name:?} already; names must be unique"),
                );
            }
            here.push(name);
        } else {
            check_rule_of_term_names(check, node, &mut here);
        }
        if chooses {
            names.extend(here.split_off(outside.len()));
        } else {
            *names = here;
        }
    }
}

/// The window is long enough for the duration, and the duration is one.
fn check_rule_of_window(check: &mut DocumentCheck, node: Node<'_>) {
    let child = |name| node.child(ARP, name).unwrap_or(node);
    let window = AllocationTimeConstraint::read(&mut DocumentCheck::default(), node).unwrap_or_default();
    let duration = window.duration.map(i64::from);
    if let Some(seconds) = duration.filter(|seconds| *seconds < 1) {
        let message = format!("at least 1 second is expected, not {seconds}");
        check.value(child("Duration"), message);
    }
    let (Some(start), Some(end)) = (window.start, window.end) else {
        return;
    };
    let width = end.floor() - start.ceil();
    if width <= 0 {
        check.value(child("EndTime"), "it must lie after arp:StartTime");
    } else if let Some(duration) = duration.filter(|duration| width < *duration) {
        let message = format!(
            "the window of {width} s from arp:StartTime is shorter than arp:Duration of {duration} s"
        );
        check.value(child("EndTime"), message);
    }
}

/// The number of nodes is a whole number or a range of whole numbers.
fn check_rule_of_count(check: &mut DocumentCheck, node: Node<'_>) {
    let range = RangeValue::read(&mut DocumentCheck::default(), node);
    if let Some(Err(message)) = range.map(|range| range.whole_numbers()) {
        check.value(node, message);
    }
}
