//! Writes XML: escaped, with stable prefixes, declared once at the root.

use std::borrow::Cow;

use crate::document::Fragment;
use crate::ns;

/// A document or fragment in the making. Names are literals of this crate with the usual prefixes, so that what
/// is written is well-formed by construction: only values are escaped.
pub(crate) struct Xml {
    text: String,
    open: Vec<&'static str>,
    /// Whether the last start tag may still take attributes.
    tag: bool,
}

impl Xml {
    /// A document with its root element open. Only namespaces in `prefixes` may be used below it.
    pub(crate) fn document(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml {
            text: String::with_capacity(1024),
            open: Vec::new(),
            tag: false,
        };
        xml.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        xml.root(root, prefixes);
        xml
    }

    /// A fragment with its root element open.
    pub(crate) fn fragment(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml {
            text: String::new(),
            open: Vec::new(),
            tag: false,
        };
        xml.root(root, prefixes);
        xml
    }

    fn root(&mut self, root: &'static str, prefixes: &[&str]) {
        self.start(root);
        for (prefix, namespace) in ns::PREFIXES {
            if prefixes.contains(&prefix) {
                self.text.push_str(" xmlns:");
                self.text.push_str(prefix);
                self.text.push_str("=\"");
                self.text.push_str(namespace);
                self.text.push('"');
            }
        }
    }

    fn close_tag(&mut self) {
        if self.tag {
            self.text.push('>');
            self.tag = false;
        }
    }

    /// Opens an element.
    pub(crate) fn start(&mut self, name: &'static str) {
        self.close_tag();
        self.text.push('<');
        self.text.push_str(name);
        self.open.push(name);
        self.tag = true;
    }

    /// Adds an attribute to the element just opened.
    pub(crate) fn attribute(&mut self, name: &'static str, value: &str) {
        debug_assert!(self.tag, "attributes come before content");
        self.text.push(' ');
        self.text.push_str(name);
        self.text.push_str("=\"");
        self.text.push_str(&escape_attribute(value));
        self.text.push('"');
    }

    /// Adds an attribute if there is a value.
    pub(crate) fn optional_attribute(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.attribute(name, value);
        }
    }

    /// Adds text to the open element. Line breaks and tabs stay as they are; only a carriage return would not
    /// survive being read.
    pub(crate) fn text(&mut self, text: &str) {
        self.close_tag();
        for c in text.chars() {
            match c {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '\r' => self.text.push_str("&#13;"),
                other if is_written(other) => self.text.push(other),
                // XML has no way to write these.
                _ => self.text.push('\u{FFFD}'),
            }
        }
    }

    /// Closes the element opened last.
    pub(crate) fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        if self.tag {
            self.text.push_str("/>");
            self.tag = false;
        } else {
            self.text.push_str("</");
            self.text.push_str(name);
            self.text.push('>');
        }
    }

    /// An element that holds text.
    pub(crate) fn element(&mut self, name: &'static str, text: &str) {
        self.start(name);
        if !text.is_empty() {
            self.text(text);
        }
        self.end();
    }

    /// An element that holds text, if there is any.
    pub(crate) fn optional_element(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    /// A fragment verbatim.
    pub(crate) fn insert(&mut self, fragment: &Fragment) {
        self.close_tag();
        self.text.push_str(fragment.as_str());
    }

    /// Several fragments verbatim.
    pub(crate) fn insert_all(&mut self, fragments: &[Fragment]) {
        for fragment in fragments {
            self.insert(fragment);
        }
    }

    /// Closes what is open and gives the text.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.end();
        }
        self.text
    }
}

/// Characters that XML can carry.
fn is_written(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Escapes what may not stand in an attribute value in double quotes.
pub(crate) fn escape_attribute(value: &str) -> Cow<'_, str> {
    if value
        .chars()
        .all(|c| c >= ' ' && !matches!(c, '&' | '<' | '>' | '"' | '\u{FFFE}' | '\u{FFFF}'))
    {
        return Cow::Borrowed(value);
    }
    let mut escaped = String::with_capacity(value.len() + 16);
    for c in value.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // White space other than a space would be normalised away.
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            other if is_written(other) => escaped.push(other),
            _ => escaped.push('\u{FFFD}'),
        }
    }
    Cow::Owned(escaped)
}
