//! Negotiation constraints: the demands of the maker of an offer on the answer.

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::templates::check_item_of_template;
use crate::xml::datatypes::{parse_integer, parse_token};
use crate::xml::ns::{WSAG, WSAG_NEG, XS};
use crate::xml::{
    DocumentCheck, Fragment, NamedValue, Node, Readable, ViolationKind, WrittenValue, Xml, element,
    named_values, qualified_name,
};

element! {
    /// `wsag-neg:NegotiationConstraints`.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct NegotiationConstraints {
        /// Constraints on single places of an answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub items: Vec<NegotiationItem> = "wsag-neg:Item",
        /// Constraints on an answer as a whole.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub constraints: Vec<Expression> = "wsag:Constraint",
    }
}

/// `wsag-neg:Item` of negotiation constraints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiationItem {
    /// Name of the item; empty where it has none.
    pub name: String,
    /// Whether an answer must meet it.
    pub requirement: Requirement,
    /// How much it weighs where it is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<i64>,
    /// The least and the greatest value that it wants, as its `xs:minInclusive` and `xs:maxInclusive` have them.
    pub bounds: (Option<String>, Option<String>),
    /// The whole item, verbatim; compiled by [`crate::constraints::CompiledConstraints`].
    pub source: Fragment,
}

named_values! {
    /// Whether a negotiation constraint must be met.
    pub enum Requirement {
        /// It must.
        Required = "Required",
        /// It weighs.
        Optional = "Optional",
    }
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
        xml.add("wsag:Location", &location);
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
            bounds: (min.map(str::to_owned), max.map(str::to_owned)),
            source: xml.into_fragment(),
        }
    }
}

impl Readable for NegotiationItem {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationItem> {
        let (kind, importance) = ((WSAG_NEG, "Type"), (WSAG_NEG, "Importance"));
        check.attributes(node, &[(WSAG, "Name"), kind, importance]);
        let name = check.read_attribute(node, (WSAG, "Name"), parse_token);
        if node.attribute(kind.0, kind.1).is_none() {
            check.structure(node, "the attribute wsag-neg:Type is required");
        }
        let requirement = check.read_named(node, kind);
        let importance = check.read_attribute(node, importance, parse_integer);
        check_item_of_template(check, node);
        let values = node.child(WSAG, "ItemConstraint");
        if let Some(constraint) = values {
            check_words_of_negotiation_item(check, constraint);
        }
        let bound = |facet| Some(values?.child(XS, facet)?.attribute("", "value")?.to_owned());
        Some(NegotiationItem {
            name: name.unwrap_or_default(),
            requirement: requirement?,
            importance,
            bounds: (bound("minInclusive"), bound("maxInclusive")),
            source: node.fragment(),
        })
    }
}

/// Checks that a constraint is said in elements of XML Schema with the attributes that are read of them, and in nothing else: answers repeat
/// it, and it is compiled only.
fn check_words_of_negotiation_item(check: &mut DocumentCheck, constraint: Node<'_>) {
    const READ: [&str; 9] = [
        "base",
        "itemType",
        "maxOccurs",
        "memberTypes",
        "minOccurs",
        "name",
        "ref",
        "type",
        "value",
    ];
    for node in constraint.descendants().skip(1) {
        if node.namespace() != XS || node.local() == "annotation" {
            let message = "answers repeat it: facets, simple types and particles of XML Schema are expected, and nothing else";
            check.structure(node, message);
        }
        for (namespace, local, _) in node.attributes() {
            if !namespace.is_empty() || !READ.contains(&local) {
                let message = format!("answers repeat it: expected are {}", READ.join(", "));
                let below = format!("/@{}", qualified_name(namespace, local));
                check.add_below(node, &below, ViolationKind::Structure, message);
            }
        }
        if !node.text().trim().is_empty() {
            check.structure(node, "answers repeat it: text is not allowed here, only elements");
        }
    }
}

/// Its source is the whole element.
impl WrittenValue for NegotiationItem {
    fn write(&self, xml: &mut Xml) {
        xml.insert(&self.source);
    }

    fn put(&self, xml: &mut Xml, _: &'static str) {
        self.write(xml);
    }
}
