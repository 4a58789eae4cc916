//! The attributes that the published schemas declare for elements of every kind, as far as those take attributes of other namespaces.

use crate::xml::datatypes::{SPACE, is_language, parse_boolean};
use crate::xml::names::is_ncname;
use crate::xml::node::Node;
use crate::xml::ns::{BSP, JSDL, JSDL_POSIX, WSA, WSAG, WSAG_NEG, XML};
use crate::xml::uri::is_uri_reference;

/// The elements of JSDL that take no attributes of other namespaces.
const CLOSED: [&str; 13] = [
    "JobName",
    "Description",
    "JobAnnotation",
    "JobProject",
    "ApplicationName",
    "ApplicationVersion",
    "ExclusiveExecution",
    "OperatingSystemName",
    "CPUArchitectureName",
    "FileName",
    "CreationFlag",
    "DeleteOnTermination",
    "URI",
];

/// Why an element that answers repeat as it stands has no `xml:id`.
pub(crate) const REPEATED_ID: &str =
    "no id is expected here: an answer with several offers would have it more than once";

/// What is wrong with the value of an attribute that the published schemas declare for every element that takes attributes of other
/// namespaces; none for the attributes that they do not know.
pub(crate) fn fault_of_attribute(namespace: &str, local: &str, value: &str) -> Option<&'static str> {
    let is_empty = value.is_empty();
    let value = value.trim_matches(SPACE);
    let (is_right, expected) = match (namespace, local) {
        (XML, "lang") => (is_empty || is_language(value), "a language is expected"),
        (XML, "space") => (
            matches!(value, "default" | "preserve"),
            "default or preserve is expected",
        ),
        (XML, "base") => (is_uri_reference(value), "a URI is expected"),
        (XML, "id") => (is_ncname(value), "a name without a colon is expected"),
        (WSA, "IsReferenceParameter") => (parse_boolean(value).is_ok(), "true or false is expected"),
        _ => return None,
    };
    (!is_right).then_some(expected)
}

/// Whether an attribute is one that the published schemas declare for every element that takes attributes of other namespaces.
pub(crate) fn is_declared_attribute(namespace: &str, local: &str) -> bool {
    match namespace {
        XML => matches!(local, "lang" | "space" | "base" | "id"),
        WSA => local == "IsReferenceParameter",
        _ => false,
    }
}

/// The namespace of the type of an element that takes attributes of any other namespace; none where it takes none of them.
pub(crate) fn namespace_with_open_attributes(node: Node<'_>) -> Option<&'static str> {
    match (node.namespace(), node.local()) {
        // Of ours it takes the dialect alone.
        (WSAG, "QualifyingCondition" | "CustomServiceLevel" | "ValueExpression" | "Constraint") => Some(BSP),
        (WSAG | WSAG_NEG, local) => local.ends_with("EPR").then_some(WSA),
        (WSA, _) => Some(WSA),
        (JSDL_POSIX, _) => Some(JSDL_POSIX),
        (JSDL, local) => (!CLOSED.contains(&local)).then_some(JSDL),
        _ => None,
    }
}
