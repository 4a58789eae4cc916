//! Negotiation offers and counter offers: an offer's content, its place in the tree, and the demands of its maker on the answer.

use crate::agreements::{Context, read_content};
use crate::expression::Expression;
use crate::guarantees::{read_expression, write_expression};
use crate::negotiations::{NegotiationOfferContext, read_offer_context, write_offer_context};
use crate::templates::check_item_content;
use crate::terms::Terms;
use crate::xml::datatypes::{token, whole_number};
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::reader::Check;
use crate::xml::writer::Xml;

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
        let requirement = match importance {
            None => Requirement::Required,
            Some(_) => Requirement::Optional,
        };
        let mut xml = Xml::fragment("wsag-neg:Item", &["wsag-neg", "wsag", "xs", "jsdl", "arp"]);
        xml.attribute("wsag:Name", name);
        xml.attribute("wsag-neg:Type", requirement.name());
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
            source: xml.into_fragment(),
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

impl Named for Requirement {
    const NAMES: &'static [(Requirement, &'static str)] = &[
        (Requirement::Required, "Required"),
        (Requirement::Optional, "Optional"),
    ];
}

/// Reads an offer; None only after a violation was added.
pub(crate) fn read_offer(check: &mut Check, node: Node<'_>) -> Option<NegotiationOffer> {
    check.attributes(node, &[(WSAG_NEG, "OfferId")]);
    let offer_id = check.required_attribute(node, (WSAG_NEG, "OfferId"), token);
    check.children_only(node, |children| {
        let content = read_content(children);
        let offer_context = children.required(WSAG_NEG, "NegotiationOfferContext", read_offer_context);
        let constraints = children.required(WSAG_NEG, "NegotiationConstraints", read_constraints);
        let (name, context, terms) = content?;
        Some(NegotiationOffer {
            offer_id: offer_id?,
            name,
            context,
            terms,
            offer_context: offer_context?,
            constraints: constraints?,
        })
    })
}

fn read_constraints(check: &mut Check, node: Node<'_>) -> Option<NegotiationConstraints> {
    check.children(node, |children| {
        Some(NegotiationConstraints {
            items: children.many(WSAG_NEG, "Item", read_item),
            constraints: children.many(WSAG_NEG, "Constraint", read_expression),
        })
    })
}

fn read_item(check: &mut Check, node: Node<'_>) -> Option<NegotiationItem> {
    let (kind, importance) = ((WSAG_NEG, "Type"), (WSAG_NEG, "Importance"));
    check.attributes(node, &[(WSAG, "Name"), kind, importance]);
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let requirement = check.required_attribute(node, kind, named);
    let importance = check.read_attribute(node, importance, whole_number);
    check_item_content(check, node);
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
