//! The service's demands on an offer beyond its schema: rules that a schema cannot state.
//!
//! An offer may be valid and still mean nothing: two terms of one name, a window that ends before it starts, an objective in an
//! unknown language. Each rule that is broken is reported at the element that breaks it.

use crate::document::{Document, Node};
use crate::expression::{Parsed, Variables};
use crate::guarantees::Expression;
use crate::job::RangeValue;
use crate::ns::{ARP, BSP, JSDL, WSAG, WSAG_NEG};
use crate::reader::{Check, collapse};
use crate::terms::TERMS;
use crate::time::DateTime;
use crate::violation::{Violation, ViolationKind};

/// Checks every offer in a document that [`crate::read`] has accepted. The result is empty where nothing is wrong.
pub fn check(document: &Document<'_>) -> Vec<Violation> {
    let mut check = Check::default();
    for offer in offers(document) {
        if let Some(terms) = offer.children().find(|child| child.is(WSAG, "Terms")) {
            check_terms(&mut check, terms);
        }
    }
    check.into_violations()
}

/// The elements of a message that have the content of an offer.
pub(crate) fn offers<'d>(document: &'d Document<'_>) -> Vec<Node<'d>> {
    let is_offer = |node: &Node<'_>| {
        node.is(WSAG, "AgreementOffer")
            || node.is(WSAG_NEG, "NegotiationOffer")
            || node.is(WSAG_NEG, "NegotiationCounterOffer")
    };
    match document.root() {
        Some(root) if is_offer(&root) => vec![root],
        Some(root) => root.children().filter(is_offer).collect(),
        None => Vec::new(),
    }
}

fn check_terms(check: &mut Check, terms: Node<'_>) {
    let mut variables = Variables::predefined();
    check_names(check, terms, &mut Vec::new());
    for node in terms.descendants() {
        if node.is(WSAG, "Variable") {
            let attribute = |name| node.attribute(WSAG, name).unwrap_or_default();
            variables.add(attribute("Name"), attribute("Metric"));
        }
    }
    for node in terms.descendants() {
        if node.is(ARP, "AllocationTimeConstraint") {
            check_window(check, node);
        } else if node.is(JSDL, "TotalResourceCount") {
            check_count(check, node);
        } else if node.is(WSAG, "QualifyingCondition") || node.is(WSAG, "CustomServiceLevel") {
            let dialect = node.attribute(BSP, "dialect").map(str::to_owned);
            let expression = Expression {
                text: node.text().into_owned(),
                dialect,
            };
            if let Err(error) = Parsed::of(&expression, &variables) {
                check.add(
                    ViolationKind::NotEvaluable,
                    node,
                    format!("it cannot be evaluated: {error}"),
                );
            }
        }
    }
}

/// Two terms that hold together may not have the same name; two terms of a choice may. The guard bounds the depth of this
/// recursion.
fn check_names<'d>(check: &mut Check, compositor: Node<'d>, names: &mut Vec<&'d str>) {
    let chooses = compositor.is(WSAG, "ExactlyOne") || compositor.is(WSAG, "OneOrMore");
    let outside = names.clone();
    for node in compositor.children().filter(|node| node.namespace() == WSAG) {
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
            check_names(check, node, &mut here);
        }
        if chooses {
            names.extend(here.split_off(outside.len()));
        } else {
            *names = here;
        }
    }
}

/// The window is long enough for the duration, and the duration is one.
fn check_window(check: &mut Check, node: Node<'_>) {
    let child = |name| node.children().find(|child| child.is(ARP, name));
    let instant = |name| child(name).and_then(|node| collapse(&node.text()).parse::<DateTime>().ok());
    let (start, end) = (instant("StartTime"), instant("EndTime"));
    let duration = child("Duration").and_then(|node| collapse(&node.text()).parse::<i64>().ok());
    let mut sound = true;
    if let Some((node, seconds)) = child("Duration").zip(duration)
        && seconds < 1
    {
        check.value(node, format!("at least 1 second is expected, not {seconds}"));
        sound = false;
    }
    let (Some(start), Some(end), Some(end_node)) = (start, end, child("EndTime")) else {
        return;
    };
    if end.floor() <= start.ceil() {
        check.value(end_node, "it must lie after arp:StartTime");
    } else if let Some(duration) = duration.filter(|_| sound)
        && end.floor() - start.ceil() < duration
    {
        let width = end.floor() - start.ceil();
        check.value(
            end_node,
            format!(
                "the window of {width} seconds from arp:StartTime is shorter than arp:Duration of {duration}"
            ),
        );
    }
}

/// The number of nodes is a whole number or a range of whole numbers.
fn check_count(check: &mut Check, node: Node<'_>) {
    let mut quiet = Check::default();
    let range: RangeValue = crate::job::read_range(&mut quiet, node);
    if let Err(message) = range.whole_numbers() {
        check.value(node, message);
    }
}
