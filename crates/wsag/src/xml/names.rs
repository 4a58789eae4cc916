//! Names in documents: qualified names, and the characters of a name.

use crate::xml::ns;

/// `prefix:local`, with the usual prefix.
pub(crate) fn qualified_name(namespace: &str, local: &str) -> String {
    match ns::usual_prefix(namespace) {
        Some(prefix) => format!("{prefix}:{local}"),
        None => local.to_owned(),
    }
}

/// Whether a text is a name without a colon (`NCName` of Namespaces in XML 1.0).
pub(crate) fn is_ncname(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_char)
}

/// `NameStartChar` of XML 1.0, without the colon.
pub(crate) fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

/// `NameChar` of XML 1.0, without the colon.
pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
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
