//! Writes XML: escaped, with stable prefixes, declared once at the root.

use std::borrow::Cow;
use std::fmt::Display;

use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::xml::datatypes::write_double;
use crate::xml::fragment::Fragment;
use crate::xml::guard::is_xml_character;
use crate::xml::named_value::NamedValue;
use crate::xml::ns;
use crate::xml::time::{DateTime, Duration};

/// One thing that is said in a document.
pub(crate) enum XmlPiece {
    /// An element with the usual prefixes that it declares, and its attributes.
    Start(Cow<'static, str>, Vec<&'static str>, Vec<(&'static str, String)>),
    /// An element with a usual prefix as it is known here, the name under which it is written, and the default namespace that it
    /// declares.
    StartAs(&'static str, &'static str, Option<&'static str>),
    Text(String),
    /// A fragment, verbatim.
    Insert(String),
    End,
}

impl XmlPiece {
    /// Bytes that it takes at most in a text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            XmlPiece::Start(name, prefixes, attributes) => {
                let attribute =
                    |(name, value): &(&str, String)| name.len() + escape_attribute(value).len() + 4;
                let attributes: usize = attributes.iter().map(attribute).sum();
                2 * name.len() + 5 + 100 * prefixes.len() + attributes
            }
            XmlPiece::StartAs(_, written, namespace) => {
                let declared = namespace.map_or(0, |name| escape_attribute(name).len() + 9);
                2 * written.len() + 5 + declared
            }
            XmlPiece::Text(text) => partial_escape(text.as_str()).len(),
            XmlPiece::Insert(fragment) => fragment.len(),
            XmlPiece::End => 0,
        }
    }
}

/// A value that an element says.
pub(crate) trait WrittenValue {
    /// Writes the attributes and the content of the open element.
    fn write(&self, xml: &mut Xml);

    /// The prefixes that the element declares, so that it could stand alone.
    const PREFIXES: &'static [&'static str] = &[];

    /// Writes the element under a name.
    fn put(&self, xml: &mut Xml, name: &'static str) {
        xml.start_with(name, Self::PREFIXES);
        self.write(xml);
        xml.end();
    }

    /// The element as a fragment that declares these prefixes.
    fn fragment(&self, name: &'static str, prefixes: &[&str]) -> Fragment {
        let mut xml = Xml::fragment(name, prefixes);
        self.write(&mut xml);
        xml.into_fragment()
    }

    /// The element as the root of a document.
    fn document(&self, name: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::document(name, prefixes);
        self.write(&mut xml);
        xml
    }
}

/// A document or fragment in the making: its content, in order, to be written as a text ([`Xml::finish`]) or made into a tree
/// ([`crate::xml::document::Document::made`]). Names are literals of this crate with the usual prefixes, so that the output is
/// well-formed by construction: only values are escaped.
#[derive(Default)]
pub(crate) struct Xml {
    pieces: Vec<XmlPiece>,
    open: usize,
    is_document: bool,
}

impl Xml {
    /// Writes values each as an element of this name.
    pub(crate) fn add_all(&mut self, name: &'static str, values: &[impl WrittenValue]) {
        for value in values {
            value.put(self, name);
        }
    }

    /// A document with its root element open. Only namespaces in `prefixes` may be used below it.
    pub(crate) fn document(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::fragment(root, prefixes);
        xml.is_document = true;
        xml
    }

    /// An element of our own that holds a text, as a fragment.
    pub(crate) fn said(name: &'static str, text: &str) -> Fragment {
        let mut xml = Xml::fragment(name, &["bsp"]);
        xml.text(text);
        xml.into_fragment()
    }

    /// A document with these fragments below its root and nothing else.
    pub(crate) fn of_fragments(root: &'static str, prefixes: &[&str], fragments: &[Fragment]) -> String {
        let mut xml = Xml::document(root, prefixes);
        xml.insert_all(fragments);
        xml.finish()
    }

    /// A fragment with its root element open.
    pub(crate) fn fragment(root: &'static str, prefixes: &[&str]) -> Xml {
        let mut xml = Xml::default();
        xml.start_with(root, prefixes);
        xml
    }

    /// Opens an element that could stand alone, which declares these prefixes.
    pub(crate) fn start_with(&mut self, name: impl Into<Cow<'static, str>>, prefixes: &[&str]) {
        self.open += 1;
        let usual = ns::PREFIXES.iter().map(|(prefix, _)| *prefix);
        let declared = usual.filter(|prefix| prefixes.contains(prefix)).collect();
        self.pieces
            .push(XmlPiece::Start(name.into(), declared, Vec::new()));
    }

    /// Opens an element.
    pub(crate) fn start(&mut self, name: impl Into<Cow<'static, str>>) {
        self.start_with(name, &[]);
    }

    /// Opens an element that is known here by another name than it is written under. Its namespace is that which it or an
    /// element around it declares as the default one.
    pub(crate) fn start_as(
        &mut self,
        meant: &'static str,
        written: &'static str,
        namespace: Option<&'static str>,
    ) {
        self.open += 1;
        self.pieces.push(XmlPiece::StartAs(meant, written, namespace));
    }

    /// Adds an attribute to the element just opened.
    pub(crate) fn attribute(&mut self, name: &'static str, value: &str) {
        match self.pieces.last_mut() {
            Some(XmlPiece::Start(_, _, attributes)) => {
                attributes.push((name, writable_text(value).into_owned()));
            }
            _ => debug_assert!(false, "attributes come before content"),
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
        self.pieces.push(XmlPiece::Text(writable_text(text).into_owned()));
    }

    /// Closes the element opened last.
    pub(crate) fn end(&mut self) {
        if self.open > 0 {
            self.open -= 1;
            self.pieces.push(XmlPiece::End);
        }
    }

    /// Adds a value as it is shown to the open element.
    pub(crate) fn value(&mut self, value: impl Display) {
        let text = value.to_string();
        if !text.is_empty() {
            self.text(&text);
        }
    }

    /// A fragment verbatim.
    pub(crate) fn insert(&mut self, fragment: &Fragment) {
        self.pieces.push(XmlPiece::Insert(fragment.as_str().to_owned()));
    }

    /// Several fragments verbatim.
    pub(crate) fn insert_all<'f>(&mut self, fragments: impl IntoIterator<Item = &'f Fragment>) {
        for fragment in fragments {
            self.insert(fragment);
        }
    }

    /// Closes the open elements and returns the whole content.
    pub(crate) fn pieces(mut self) -> Vec<XmlPiece> {
        while self.open > 0 {
            self.end();
        }
        self.pieces
    }

    /// Closes the open elements and returns the text as a fragment.
    pub(crate) fn into_fragment(self) -> Fragment {
        Fragment::written(self.finish())
    }

    /// Closes the open elements and returns the text.
    pub(crate) fn finish(self) -> String {
        let mut writer = Writer::new(Vec::with_capacity(1024));
        // A vector accepts everything that is written to it.
        let mut write = |event: Event<'_>| writer.write_event(event).expect("memory can be written");
        if self.is_document {
            write(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
            write(Event::Text(BytesText::from_escaped("\n")));
        }
        let mut open = Vec::new();
        let mut pieces = self.pieces().into_iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                XmlPiece::Start(name, prefixes, attributes) => {
                    let mut tag = BytesStart::new(name.clone());
                    for prefix in prefixes {
                        let namespace = ns::namespace_of_prefix(prefix).unwrap_or_default();
                        tag.push_attribute((format!("xmlns:{prefix}").as_str(), namespace));
                    }
                    tag.extend_attributes(attributes.iter().map(|(name, value)| (*name, value.as_str())));
                    if pieces.next_if(|next| matches!(next, XmlPiece::End)).is_some() {
                        write(Event::Empty(tag));
                    } else {
                        open.push(name);
                        write(Event::Start(tag));
                    }
                }
                XmlPiece::StartAs(_, written, namespace) => {
                    let mut tag = BytesStart::new(written);
                    if let Some(namespace) = namespace {
                        tag.push_attribute(("xmlns", namespace));
                    }
                    open.push(written.into());
                    write(Event::Start(tag));
                }
                XmlPiece::Text(text) => write(Event::Text(BytesText::from_escaped(partial_escape(text)))),
                XmlPiece::Insert(fragment) => write(Event::Text(BytesText::from_escaped(fragment))),
                XmlPiece::End => write(Event::End(BytesEnd::new(open.pop().unwrap_or_default()))),
            }
        }
        // Every event was made of strings.
        String::from_utf8(writer.into_inner()).expect("only text was written")
    }
}

/// The value, with U+FFFD for each character that XML has no way to write.
fn writable_text(value: &str) -> Cow<'_, str> {
    if value.chars().all(is_xml_character) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(value.replace(|c| !is_xml_character(c), "\u{FFFD}"))
    }
}

/// Escapes characters that may not stand in an attribute value, and white space that a reader would not keep.
pub(crate) fn escape_attribute(value: &str) -> Cow<'_, str> {
    Attribute::from(("", writable_text(value))).value
}

/// Values that are written as they are shown.
macro_rules! shown {
    ($($type:ty),*) => {$(
        impl WrittenValue for $type {
            fn write(&self, xml: &mut Xml) {
                xml.value(self);
            }
        }
    )*};
}

shown!(String, &str, bool, i32, i64, u32, u64, DateTime, Duration);

impl WrittenValue for f64 {
    fn write(&self, xml: &mut Xml) {
        xml.value(write_double(*self));
    }
}

impl<T: NamedValue> WrittenValue for T {
    fn write(&self, xml: &mut Xml) {
        xml.value(self.name());
    }
}

/// A fragment is a whole element, under the name that it has.
impl WrittenValue for Fragment {
    fn write(&self, xml: &mut Xml) {
        xml.insert(self);
    }

    fn put(&self, xml: &mut Xml, _: &'static str) {
        self.write(xml);
    }
}
