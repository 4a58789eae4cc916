//! Writes XML: escaped, with stable prefixes, declared once at the root.

use std::borrow::Cow;
use std::fmt::Display;

use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::document::Fragment;
use crate::guard::is_char;
use crate::ns;

/// A document or fragment in the making. Names are literals of this crate with the usual prefixes, so that what
/// is written is well-formed by construction: only values are escaped.
pub(crate) struct Xml {
    writer: Writer<Vec<u8>>,
    open: Vec<&'static str>,
    /// The last start tag, as long as it may still take attributes.
    tag: Option<BytesStart<'static>>,
}

impl Xml {
    /// A document with its root element open. Only namespaces in `prefixes` may be used below it.
    pub(crate) fn document(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::new(1024);
        xml.write(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
        xml.write(Event::Text(BytesText::from_escaped("\n")));
        xml.root(root, prefixes);
        xml
    }

    /// A fragment with its root element open.
    pub(crate) fn fragment(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::new(0);
        xml.root(root, prefixes);
        xml
    }

    fn new(capacity: usize) -> Xml {
        Xml {
            writer: Writer::new(Vec::with_capacity(capacity)),
            open: Vec::new(),
            tag: None,
        }
    }

    fn root(&mut self, root: &'static str, prefixes: &[&str]) {
        let mut tag = BytesStart::new(root);
        for (prefix, namespace) in ns::PREFIXES {
            if prefixes.contains(&prefix) {
                tag.push_attribute((format!("xmlns:{prefix}").as_str(), namespace));
            }
        }
        self.open.push(root);
        self.tag = Some(tag);
    }

    fn write(&mut self, event: Event<'_>) {
        // Whatever a vector is given, it takes.
        self.writer.write_event(event).expect("memory can be written");
    }

    fn close_tag(&mut self) {
        if let Some(tag) = self.tag.take() {
            self.write(Event::Start(tag));
        }
    }

    /// Opens an element.
    pub(crate) fn start(&mut self, name: &'static str) {
        self.close_tag();
        self.open.push(name);
        self.tag = Some(BytesStart::new(name));
    }

    /// Adds an attribute to the element just opened.
    pub(crate) fn attribute(&mut self, name: &'static str, value: &str) {
        debug_assert!(self.tag.is_some(), "attributes come before content");
        if let Some(tag) = &mut self.tag {
            tag.push_attribute((name, writable(value)));
        }
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
        self.write(Event::Text(BytesText::from_escaped(partial_escape(writable(
            text,
        )))));
    }

    /// Closes the element opened last.
    pub(crate) fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        match self.tag.take() {
            Some(tag) => self.write(Event::Empty(tag)),
            None => self.write(Event::End(BytesEnd::new(name))),
        }
    }

    /// An element that holds a value as it is shown.
    pub(crate) fn element(&mut self, name: &'static str, value: impl Display) {
        let text = value.to_string();
        self.start(name);
        if !text.is_empty() {
            self.text(&text);
        }
        self.end();
    }

    /// An element that holds a value, if there is one.
    pub(crate) fn optional_element(&mut self, name: &'static str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    /// A fragment verbatim.
    pub(crate) fn insert(&mut self, fragment: &Fragment) {
        self.close_tag();
        self.write(Event::Text(BytesText::from_escaped(fragment.as_str())));
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
        // Every event was made of strings.
        String::from_utf8(self.writer.into_inner()).expect("only text was written")
    }
}

/// The value, with U+FFFD for each character that XML has no way to write.
fn writable(value: &str) -> Cow<'_, str> {
    if value.chars().all(is_char) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(value.replace(|c| !is_char(c), "\u{FFFD}"))
    }
}

/// Escapes what may not stand in an attribute value, and white space that would not survive being read.
pub(crate) fn escape_attribute(value: &str) -> Cow<'_, str> {
    Attribute::from(("", writable(value))).value
}
