//! The attributes that the published schemas declare for elements of every kind, as far as those take attributes of other namespaces.

use crate::xml::datatypes::{SPACE, parse_boolean};
use crate::xml::ns::{WSA, XML};
use crate::xml::uri::is_uri_reference;

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
pub(crate) fn is_declared(namespace: &str, local: &str) -> bool {
    match namespace {
        XML => matches!(local, "lang" | "space" | "base" | "id"),
        WSA => local == "IsReferenceParameter",
        _ => false,
    }
}

/// Whether a text is a name without a colon (`NCName`).
pub(crate) fn is_ncname(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let continues = text
        .chars()
        .all(|c| c.is_alphanumeric() || "-._\u{b7}".contains(c));
    starts && continues
}

/// Whether a text names a language (xs:language).
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-').enumerate();
    parts.all(|(nth, part)| {
        let of = |c: char| c.is_ascii_alphabetic() || nth > 0 && c.is_ascii_digit();
        (1..=8).contains(&part.len()) && part.chars().all(of)
    })
}
