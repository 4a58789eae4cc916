//! Agreement templates and the factory's list of them (GFD.192, section 5).

use serde::{Deserialize, Serialize};

use crate::agreements::Context;
use crate::expression::Expression;
use crate::terms::Terms;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{WSAG, WSAG_NEG, XS};
use crate::xml::{Document, DocumentCheck, Fragment, Node, Readable, Xml};

/// `wsag:Template`. Its creation constraints are compiled from [`Template::source`] by
/// [`crate::constraints::CompiledTemplate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Identity at the provider.
    pub template_id: String,
    /// For people, and for `wsag:TemplateName` in offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The context that offers start from.
    pub context: Context,
    /// The terms that offers start from.
    pub terms: Terms,
    /// The whole template, verbatim.
    pub source: Fragment,
}

/// The template that is offered out of the box, as a document of its own.
pub const ADVANCE_RESERVATION: &str = include_str!("../../../templates/agreements/advance-reservation.xml");

impl Template {
    /// The template with the upper bounds of some items lowered to the provider's nodes: the items with a name that starts
    /// with `nodes`. Bounds that are lower already stay.
    #[must_use]
    pub fn with_nodes_max(&self, nodes: u32) -> Template {
        let text = self.source.as_str();
        let Ok(document) = Document::written(text) else {
            return self.clone();
        };
        let mut changed = String::with_capacity(text.len());
        let mut copied = 0;
        for bound in document.root().descendants() {
            let inside = bound
                .parent()
                .filter(|parent| parent.is(WSAG, "ItemConstraint"))
                .and_then(Node::parent);
            let named = inside.and_then(|item| item.attribute(WSAG, "Name"));
            let value = bound
                .attribute("", "value")
                .and_then(|value| value.trim().parse::<u32>().ok());
            let higher = bound.is(XS, "maxInclusive") && value.is_some_and(|value| value > nodes);
            if higher && named.is_some_and(|n| n.starts_with("nodes")) {
                let range = bound.range();
                changed.push_str(&text[copied..range.start]);
                let value = value.unwrap_or_default().to_string();
                changed.push_str(&text[range.clone()].replacen(&value, &nodes.to_string(), 1));
                copied = range.end;
            }
        }
        changed.push_str(&text[copied..]);
        Template {
            source: Fragment::written(changed),
            ..self.clone()
        }
    }

    /// As a document of its own: the provider's text.
    pub fn to_xml(&self) -> String {
        self.source.to_document()
    }

    /// The template as `wsag-neg:NegotiableTemplate`, which has the same type under another name.
    pub(crate) fn negotiable(&self) -> Fragment {
        let text = self.source.as_str();
        let end = text.find([' ', '\t', '\r', '\n', '/', '>']).unwrap_or(text.len());
        // A fragment is one element with content, so it ends with its end tag.
        let body = text[end..]
            .rfind("</")
            .map_or("", |close| &text[end..end + close]);
        let declared = if body.contains("xmlns:wsag-neg=") {
            String::new()
        } else {
            format!(" xmlns:wsag-neg=\"{WSAG_NEG}\"")
        };
        Fragment::written(format!(
            "<wsag-neg:NegotiableTemplate{declared}{body}</wsag-neg:NegotiableTemplate>"
        ))
    }
}

impl Readable for Template {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Template> {
        check.attributes(node, &[(WSAG, "TemplateId"), (WSAG, "AgreementId")]);
        let template_id = check.required_attribute(node, (WSAG, "TemplateId"), parse_token);
        check.read_attribute(node, (WSAG, "AgreementId"), parse_token);
        check.children_only(node, |children| {
            let name = children.optional(WSAG, "Name", DocumentCheck::string);
            let context = children.required(WSAG, "Context", Context::read);
            let terms = children.required(WSAG, "Terms", Terms::read);
            children.required(WSAG, "CreationConstraints", check_constraints_of_template);
            Some(Template {
                template_id: template_id?,
                name,
                context: context?,
                terms: terms?,
                source: node.fragment(),
            })
        })
    }
}

/// Reads `wsag:CreationConstraints` as far as the schema goes; the content of an `ItemConstraint` is XML Schema.
fn check_constraints_of_template(check: &mut DocumentCheck, node: Node<'_>) -> Option<()> {
    check.children(node, |children| {
        children.many(WSAG, "Item", |check, node| {
            check.attributes(node, &[(WSAG, "Name")]);
            check.read_attribute(node, (WSAG, "Name"), parse_token);
            check_item_of_template(check, node)
        });
        children.many(WSAG, "Constraint", Expression::read);
        Some(())
    })
}

/// Reads the parts that every item has: a location, a constraint of XML Schema, and any elements.
pub(crate) fn check_item_of_template(check: &mut DocumentCheck, node: Node<'_>) -> Option<()> {
    check.children_only(node, |children| {
        children.required(WSAG, "Location", DocumentCheck::string);
        children.required(WSAG, "ItemConstraint", |check, node| {
            check.children(node, |children| {
                while let Some(child) = children.any() {
                    if child.namespace() != XS {
                        let message = "a facet, a simple type or a particle of XML Schema is expected here";
                        children.check.structure(child, message);
                    }
                }
                Some(())
            })
        });
        while children.any().is_some() {}
        Some(())
    })
}

/// `wsag:AgreementFactoryProperties`: all templates that are offered.
pub fn agreement_factory_properties<'t>(templates: impl IntoIterator<Item = &'t Template>) -> String {
    let mut xml = Xml::document("wsag:AgreementFactoryProperties", &["wsag"]);
    xml.insert_all(templates.into_iter().map(|template| &template.source));
    xml.finish()
}
