//! Negotiation offers and counter offers: an offer's content, its place in the tree, and the demands of its maker on the answer.

use crate::agreements::{Context, read_content};
use crate::constraints;
use crate::datatypes;
use crate::document::{Fragment, Node};
use crate::guarantees::{Expression, read_expression, write_expression};
use crate::negotiations::{NegotiationOfferContext, read_offer_context, write_offer_context};
use crate::ns::{WSAG, WSAG_NEG};
use crate::reader::{Check, Sequence};
use crate::terms::{Terms, token};
use crate::writer::Xml;

/// `wsag-neg:NegotiationOffer` or `wsag-neg:NegotiationCounterOffer`.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationOffer {
    /// Identity in its negotiation.
    pub offer_id: String,
    /// For people.
    pub name: Option<String>,
    /// The sides of the agreement, and its template.
    pub context: Context,
    /// The terms of the agreement.
    pub terms: Terms,
    /// The offer that it answers, its maker, and its state.
    pub offer_context: NegotiationOfferContext,
    /// The constraints that an answer must or should keep.
    pub constraints: NegotiationConstraints,
}

/// `wsag-neg:NegotiationConstraints`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NegotiationConstraints {
    /// Constraints on single places of an answer.
    pub items: Vec<NegotiationItem>,
    /// Constraints on an answer as a whole.
    pub constraints: Vec<Expression>,
}

/// `wsag-neg:Item` of negotiation constraints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiationItem {
    /// Name of the item.
    pub name: String,
    /// Whether an answer must meet it.
    pub requirement: Requirement,
    /// How much it weighs where it is optional.
    pub importance: Option<i64>,
    /// The whole item, verbatim; compiled by [`crate::constraints::CompiledConstraints`].
    pub source: Fragment,
}

impl NegotiationItem {
    /// An item that wants the values at a Location between two others, either of which may be left open. It has to be met
    /// where it has no importance.
    pub fn between(
        name: &str,
        location: &str,
        (min, max): (Option<&str>, Option<&str>),
        importance: Option<i64>,
    ) -> Self {
        let (requirement, word) = match importance {
            None => (Requirement::Required, "Required"),
            Some(_) => (Requirement::Optional, "Optional"),
        };
        let mut xml = Xml::fragment("wsag-neg:Item", &["wsag-neg", "wsag", "xs", "jsdl", "arp"]);
        xml.attribute("wsag:Name", name);
        xml.attribute("wsag-neg:Type", word);
        let weight = importance.map(|weight| weight.to_string());
        xml.optional_attribute("wsag-neg:Importance", weight.as_deref());
        xml.element("wsag:Location", location);
        xml.start("wsag:ItemConstraint");
        for (facet, value) in [("xs:minInclusive", min), ("xs:maxInclusive", max)] {
            if let Some(value) = value {
                xml.start(facet);
                xml.attribute("value", value);
                xml.end();
            }
        }
        xml.end();
        Self {
            name: name.to_owned(),
            requirement,
            importance,
            source: Fragment::written(xml.finish()),
        }
    }
}

/// Whether a negotiation constraint must be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// It must.
    Required,
    /// It weighs.
    Optional,
}

/// Reads an offer; None only after a violation was added.
pub(crate) fn read_offer(check: &mut Check, node: Node<'_>) -> Option<NegotiationOffer> {
    check.attributes(node, &[(WSAG_NEG, "OfferId")]);
    let offer_id = check.required_attribute(node, (WSAG_NEG, "OfferId"), token);
    let mut sequence = Sequence::of(check, node);
    let content = read_content(check, &mut sequence);
    let offer_context = sequence.required(check, WSAG_NEG, "NegotiationOfferContext");
    let constraints = sequence.required(check, WSAG_NEG, "NegotiationConstraints");
    sequence.end(check);
    let offer_context = offer_context.and_then(|node| read_offer_context(check, node));
    let constraints = constraints.map(|node| read_constraints(check, node));
    let (name, context, terms) = content?;
    Some(NegotiationOffer {
        offer_id: offer_id?,
        name,
        context,
        terms,
        offer_context: offer_context?,
        constraints: constraints?,
    })
}

fn read_constraints(check: &mut Check, node: Node<'_>) -> NegotiationConstraints {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let items = sequence.many(WSAG_NEG, "Item");
    let constraints = sequence.many(WSAG_NEG, "Constraint");
    sequence.end(check);
    let items = items
        .into_iter()
        .filter_map(|node| read_item(check, node))
        .collect();
    let constraints = constraints
        .into_iter()
        .filter_map(|node| read_expression(check, node))
        .collect();
    NegotiationConstraints { items, constraints }
}

fn read_item(check: &mut Check, node: Node<'_>) -> Option<NegotiationItem> {
    check.attributes(
        node,
        &[(WSAG, "Name"), (WSAG_NEG, "Type"), (WSAG_NEG, "Importance")],
    );
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let requirement = check.required_attribute(node, (WSAG_NEG, "Type"), |text| match text {
        "Required" => Ok(Requirement::Required),
        "Optional" => Ok(Requirement::Optional),
        _ => Err("Required or Optional is expected".to_owned()),
    });
    let importance = check.read_attribute(node, (WSAG_NEG, "Importance"), |text| {
        datatypes::integer(text).ok_or_else(|| "a whole number is expected".to_owned())
    });
    constraints::check_item_content(check, node);
    Some(NegotiationItem {
        name: name?,
        requirement: requirement?,
        importance,
        source: node.fragment(),
    })
}

impl NegotiationOffer {
    /// Writes the offer as an element of this name.
    pub(crate) fn write(&self, xml: &mut Xml, name: &'static str) {
        xml.start(name);
        xml.attribute("wsag-neg:OfferId", &self.offer_id);
        xml.optional_element("wsag:Name", self.name.as_deref());
        self.context.write(xml);
        self.terms.write(xml);
        write_offer_context(xml, &self.offer_context);
        xml.start("wsag-neg:NegotiationConstraints");
        for item in &self.constraints.items {
            xml.insert(&item.source);
        }
        for constraint in &self.constraints.constraints {
            write_expression(xml, "wsag-neg:Constraint", constraint);
        }
        xml.end();
        xml.end();
    }
}
