//! The attributes that the published schemas declare for elements of every kind, as far as those take attributes of other namespaces.

use crate::xml::datatypes::{SPACE, parse_boolean};
use crate::xml::guard::{is_name_char, is_name_start};
use crate::xml::ns::{WSA, XML};
use crate::xml::uri::is_uri_reference;

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
pub(crate) fn is_declared(namespace: &str, local: &str) -> bool {
    match namespace {
        XML => matches!(local, "lang" | "space" | "base" | "id"),
        WSA => local == "IsReferenceParameter",
        _ => false,
    }
}

/// Whether a text is a name without a colon (`NCName` of Namespaces in XML 1.0).
pub(crate) fn is_ncname(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_char)
}

/// Whether a text names a language (xs:language).
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-').enumerate();
    parts.all(|(nth, part)| {
        let is_in_name = |c: char| c.is_ascii_alphabetic() || nth > 0 && c.is_ascii_digit();
        (1..=8).contains(&part.len()) && part.chars().all(is_in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_colon_has_the_characters_of_the_specification() {
        for name in ["a", "_1", "é-.\u{b7}", "e\u{301}", "名"] {
            assert!(is_ncname(name), "{name}");
        }
        for other in ["", "1a", "-a", "a:b", "a b", "\u{aa}", "\u{b5}", "a\u{b2}"] {
            assert!(!is_ncname(other), "{other}");
        }
    }
}
