//! How a document is checked: violations collected with their paths, attributes and simple values read.

use std::borrow::Cow;
use std::fmt::Display;

use crate::xml::attributes::{
    REPEATED_ID, fault_of_attribute, is_declared_attribute, namespace_with_open_attributes,
};
use crate::xml::datatypes::{collapse_space, parse_token};
use crate::xml::named_value::{NamedValue, parse_name};
use crate::xml::names::qualified_name;
use crate::xml::node::Node;
use crate::xml::ns::{self, JSDL_POSIX, WSA, WSAG, XSI};
use crate::xml::unchosen_terms::UnchosenTerms;
use crate::xml::uri::is_uri_reference;
use crate::xml::violation::{VIOLATIONS_MAX, Violation, ViolationKind};
use crate::xml::xsi_type::is_allowed_xsi_type;

/// The attributes of type xs:string that tell one thing from another: white space counts in them.
const STRINGS: [(&str, &str); 1] = [(WSAG, "AgreementId")];

/// Collects violations.
#[derive(Default)]
pub(crate) struct DocumentCheck {
    violations: Vec<Violation>,
    left_out: UnchosenTerms,
    /// The names of elements (xs:ID).
    ids: Vec<String>,
}

impl DocumentCheck {
    /// Collects the violations of one way to read an offer.
    pub(crate) fn leaving_out(left_out: &UnchosenTerms) -> DocumentCheck {
        DocumentCheck {
            left_out: left_out.clone(),
            ..DocumentCheck::default()
        }
    }

    pub(crate) fn leaves_out(&self, node: Node<'_>) -> bool {
        self.left_out.has(node)
    }

    pub(crate) fn add(&mut self, kind: ViolationKind, node: Node<'_>, message: impl Into<String>) {
        self.add_below(node, "", kind, message);
    }

    /// Adds a violation about a part of an element that is no element: an attribute or a text, with its path from the element on.
    /// Paths cost a walk each, so none is made for a violation that is left out.
    pub(crate) fn add_below(
        &mut self,
        node: Node<'_>,
        below: &str,
        kind: ViolationKind,
        message: impl Into<String>,
    ) {
        if !self.is_full() && !self.leaves_out(node) {
            self.violations.push(Violation {
                path: node.path() + below,
                kind,
                message: message.into(),
            });
        }
    }

    /// Adds a violation of structure, unless there is one about this very element already.
    pub(crate) fn structure(&mut self, node: Node<'_>, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let path = node.path();
        if self.violations.iter().all(|other| other.path != path) {
            self.add(ViolationKind::Structure, node, message);
        }
    }

    pub(crate) fn value(&mut self, node: Node<'_>, message: impl Into<String>) {
        self.add(ViolationKind::Value, node, message);
    }

    /// Notes the name of an element (xs:ID), which no other one may have.
    pub(crate) fn note_id(&mut self, node: Node<'_>, id: &str) {
        let id = collapse_space(id).into_owned();
        if self.ids.contains(&id) {
            let message = format!("another element has the id {id:?} already; ids must be unique");
            self.value(node, message);
        }
        self.ids.push(id);
    }

    /// Whether nothing was found wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether further violations are left out.
    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() >= VIOLATIONS_MAX
    }

    /// Adds violations of a part of the document that was read by itself.
    pub(crate) fn extend(&mut self, found: Vec<Violation>) {
        let left = VIOLATIONS_MAX.saturating_sub(self.violations.len());
        self.violations.extend(found.into_iter().take(left));
    }

    /// The violations so far.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    /// Reads one attribute of the namespace (empty for none) by its type.
    pub(crate) fn read_attribute<T, E: Display>(
        &mut self,
        node: Node<'_>,
        (namespace, local): (&str, &str),
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = node.attribute(namespace, local)?;
        let parsed = if STRINGS.contains(&(namespace, local)) {
            parse(text)
        } else {
            parse(&collapse_space(text))
        };
        let failed = |error: E| {
            let below = format!("/@{}", qualified_name(namespace, local));
            self.add_below(node, &below, ViolationKind::Value, error.to_string());
        };
        parsed.map_err(failed).ok()
    }

    /// Reads one required attribute.
    pub(crate) fn required_attribute<T, E: Display>(
        &mut self,
        node: Node<'_>,
        (namespace, local): (&str, &str),
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        if node.attribute(namespace, local).is_none() {
            let name = qualified_name(namespace, local);
            self.structure(node, format!("the attribute {name} is required"));
        }
        self.read_attribute(node, (namespace, local), parse)
    }

    /// Reads an attribute that is one of a few names. These are strings: white space counts.
    pub(crate) fn read_named<T: NamedValue>(
        &mut self,
        node: Node<'_>,
        (namespace, local): (&str, &str),
    ) -> Option<T> {
        let text = node.attribute(namespace, local)?;
        let below = format!("/@{}", qualified_name(namespace, local));
        parse_name(text)
            .or_else(|error| {
                self.add_below(node, &below, ViolationKind::Value, error);
                parse_name(&collapse_space(text))
            })
            .ok()
    }

    /// Every attribute must be one of these, or of another namespace where the schemas leave that open; for an unqualified one
    /// that should be qualified the message says so.
    pub(crate) fn attributes(&mut self, node: Node<'_>, allowed: &[(&str, &str)]) {
        for (namespace, local, value) in node.attributes() {
            let open = match (namespace, local) {
                (XSI, "schemaLocation" | "noNamespaceSchemaLocation") => true,
                (XSI, "type") => is_allowed_xsi_type(node, value),
                (XSI, _) => false,
                ("", "name") => node.is(JSDL_POSIX, "POSIXApplication"),
                ("", _) => false,
                // Its wildcard takes only attributes that are declared.
                _ if node.is(WSAG, "Context") => is_declared_attribute(namespace, local),
                _ => namespace_with_open_attributes(node).is_some_and(|own| own != namespace),
            };
            let wrong = match (node.namespace(), namespace, local) {
                // Endpoint references are kept as they stand.
                (WSA, ns::XML, "id") => Some(REPEATED_ID),
                _ => fault_of_attribute(namespace, local, value),
            };
            if allowed.contains(&(namespace, local)) || open && wrong.is_none() {
                if (namespace, local) == (ns::XML, "id") {
                    self.note_id(node, value);
                }
                continue;
            }
            let below = format!("/@{}", qualified_name(namespace, local));
            if let Some(wrong) = wrong.filter(|_| open) {
                self.add_below(node, &below, ViolationKind::Value, wrong);
                continue;
            }
            let message = match allowed.iter().find(|(_, name)| *name == local) {
                Some(("", _)) => format!("the attribute must be written {local}, without a namespace"),
                Some((right, _)) => {
                    let right = qualified_name(right, local);
                    format!("the attribute must be qualified: {right} is expected")
                }
                None if allowed.is_empty() => "no attribute is allowed here".to_owned(),
                None => {
                    let names: Vec<String> = allowed
                        .iter()
                        .map(|(ns, name)| qualified_name(ns, name))
                        .collect();
                    let names = names.join(", ");
                    format!("the attribute is not known here; allowed are {names}")
                }
            };
            self.add_below(node, &below, ViolationKind::Structure, message);
        }
    }

    /// The text of an element that may hold nothing else. Its attributes are read elsewhere.
    pub(crate) fn text_only<'d>(&mut self, node: Node<'d>) -> Option<Cow<'d, str>> {
        if let Some(child) = node.first_child() {
            self.structure(child, format!("{} may hold only text", node.name()));
            return None;
        }
        Some(node.text())
    }

    /// A string as it stands.
    pub(crate) fn string(&mut self, node: Node<'_>) -> Option<String> {
        self.attributes(node, &[]);
        self.text_only(node).map(Cow::into_owned)
    }

    /// A URI that is not empty, of an element that holds nothing else.
    pub(crate) fn uri(&mut self, node: Node<'_>) -> Option<String> {
        let text = read_simple(parse_token)(self, node)?;
        if !is_uri_reference(&text) {
            self.value(node, "a URI is expected");
        }
        Some(text)
    }

    /// A simple value of an element whose attributes are read elsewhere, white space collapsed as XML Schema does for all types
    /// but strings.
    pub(crate) fn simple_only<T, E: Display>(
        &mut self,
        node: Node<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let parsed = parse(&collapse_space(&self.text_only(node)?));
        parsed.map_err(|error| self.value(node, error.to_string())).ok()
    }
}

/// How a simple value is read from an element that holds nothing else.
pub(crate) fn read_simple<T, E: Display>(
    parse: impl Fn(&str) -> Result<T, E>,
) -> impl Fn(&mut DocumentCheck, Node<'_>) -> Option<T> {
    move |check, node| {
        check.attributes(node, &[]);
        check.simple_only(node, &parse)
    }
}
