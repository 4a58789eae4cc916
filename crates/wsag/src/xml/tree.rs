//! A small tree over quick-xml's events: elements, attributes, namespace declarations and texts, each in one vector.
//!
//! Reading relies on the guard, which has refused everything that XML forbids and quick-xml lets pass. So the reader's own checks
//! of names are off, and the checks here only keep a mistake in the guard from becoming a wrong tree. Namespaces are resolved
//! here and not by quick-xml's reader of namespaces: that one keeps references in namespace names (`urn&#58;a`) as they are
//! written.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use quick_xml::reader::Reader;

use crate::languages::{WSAG4J, meaning_of_wsag4j_element, meaning_of_wsag4j_part};
use crate::xml::guard::referred_character;
use crate::xml::ns;
use crate::xml::value_places::ValuePlaces;
use crate::xml::writer::XmlPiece;

/// No element, or no text.
pub(crate) const NONE: u32 = u32::MAX;
/// The declarations that every document has: no namespace, and that of the prefix `xml`. The third is in no scope: it gives their
/// namespace to the elements that are known by a name of ours.
const BUILTIN: [(&str, &str); 3] = [("", ""), ("xml", ns::XML), ("", ns::ARP)];
/// The index of the third.
const MEANT: u32 = 2;

/// The elements in which terms may stand in `wsag:Terms`.
const COMPOSITORS: [&str; 3] = ["All", "ExactlyOne", "OneOrMore"];

/// A document. Elements are in document order, so that an element's descendants follow it at once.
pub(crate) struct Tree<'a> {
    pub(crate) text: &'a str,
    pub(crate) elements: Vec<Element<'a>>,
    pub(crate) attributes: Vec<Attribute<'a>>,
    pub(crate) declarations: Vec<(&'a str, Cow<'a, str>)>,
    pub(crate) texts: Vec<Text<'a>>,
    /// Bytes of declarations that fragments of this document may still be given because they inherit them; zero is too few.
    pub(crate) inheritable: Cell<usize>,
    /// The places of its values in the input of its maker; none where the input is its text.
    pub(crate) places: Option<&'a ValuePlaces>,
    /// The elements that are known here by another name than they have in the document, in document order, with the name there, perhaps with
    /// a prefix.
    renamed: Vec<(u32, &'a str)>,
}

impl<'a> Tree<'a> {
    /// The name of an element in the document, where it is known here by another name.
    pub(crate) fn written_name(&self, id: u32) -> Option<&'a str> {
        let at = self.renamed.binary_search_by_key(&id, |(renamed, _)| *renamed);
        Some(self.renamed[at.ok()?].1)
    }
}

/// A qualified name as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) local: &'a str,
    /// Index of the declaration that gives its namespace.
    pub(crate) namespace: u32,
}

pub(crate) struct Element<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) parent: u32,
    /// Index of the first element that is not below this one.
    pub(crate) end: u32,
    pub(crate) attributes: Range<u32>,
    pub(crate) declarations: Range<u32>,
    /// All texts in this element, those of its descendants too.
    pub(crate) texts: Range<u32>,
    /// The first and the last text directly inside it.
    pub(crate) first_text: u32,
    last_text: u32,
    /// Where it stands in the document, in bytes.
    pub(crate) range: Range<usize>,
}

pub(crate) struct Attribute<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) value: Cow<'a, str>,
}

/// Text between two pieces of markup; references and CDATA sections do not end it, comments do.
pub(crate) struct Text<'a> {
    pub(crate) value: Cow<'a, str>,
    /// The next text directly inside the same element.
    pub(crate) next: u32,
}

/// Builds the tree of a text that has passed the guard.
///
/// # Errors
/// The error is a fault that a text which has passed the guard does not have, with its place in bytes.
pub(crate) fn build_tree(text: &str) -> Result<Tree<'_>, (usize, String)> {
    let mut builder = TreeBuilder::new(text);
    builder.read(text)?;
    builder.finish().map_err(|reason| (text.len(), reason))
}

/// Builds the tree of the given content, without a text of it: its elements have no position, and no fragment can be cut out of
/// it. All usual prefixes are declared.
///
/// # Errors
/// A part that a fragment after the guard cannot have.
pub(crate) fn tree_of_pieces<'a>(
    pieces: &'a [XmlPiece],
    places: &'a ValuePlaces,
) -> Result<Tree<'a>, String> {
    let mut builder = TreeBuilder::new("");
    builder.tree.places = Some(places);
    for (prefix, namespace) in ns::PREFIXES {
        builder.declare(prefix, namespace.into());
    }
    for piece in pieces {
        match piece {
            XmlPiece::Start(name, _, attributes) => {
                let (outside, declared) = (builder.scope.len(), builder.tree.declarations.len());
                builder.element(name, 0, outside, declared)?;
                for (name, value) in attributes {
                    builder.attribute(name, value.into())?;
                }
            }
            XmlPiece::StartAs(meant, written, _) => {
                let (outside, declared) = (builder.scope.len(), builder.tree.declarations.len());
                builder.element(meant, 0, outside, declared)?;
                builder.rename(written);
            }
            XmlPiece::Text(text) => builder.text(text.into()),
            XmlPiece::Insert(fragment) => builder.read(fragment).map_err(|(_, reason)| reason)?,
            XmlPiece::End => builder.end(0)?,
        }
    }
    builder.finish()
}

struct TreeBuilder<'a> {
    tree: Tree<'a>,
    /// Elements that are not closed, with the number of declarations that were in scope outside of them.
    open: Vec<(u32, usize)>,
    /// Declarations in scope, the innermost last.
    scope: Vec<u32>,
    /// Whether text that comes next belongs to the text before it.
    continues: bool,
}

/// The length of a vector, which the guard keeps far below the limit.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(NONE)
}

impl<'a> TreeBuilder<'a> {
    fn new(text: &'a str) -> TreeBuilder<'a> {
        // Of the messages of the protocol, these are about right.
        let elements = text.len() / 64 + 1;
        TreeBuilder {
            tree: Tree {
                text,
                elements: Vec::with_capacity(elements),
                attributes: Vec::with_capacity(elements / 2),
                declarations: BUILTIN.map(|(prefix, name)| (prefix, name.into())).to_vec(),
                texts: Vec::with_capacity(elements * 2),
                inheritable: Cell::new(usize::MAX),
                places: None,
                renamed: Vec::new(),
            },
            open: Vec::new(),
            scope: vec![0, 1],
            continues: false,
        }
    }

    /// Reads a text into the open element.
    fn read(&mut self, text: &'a str) -> Result<(), (usize, String)> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = false;
        let mut at = 0;
        loop {
            let event = reader.read_event().map_err(|error| (at, error.to_string()))?;
            let next = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
            if matches!(event, Event::Eof) {
                return Ok(());
            }
            self.event(&event, text, at..next)
                .map_err(|reason| (at, reason))?;
            at = next;
        }
    }

    /// One event of a text, which has it in this range.
    fn event(&mut self, event: &Event<'a>, text: &'a str, range: Range<usize>) -> Result<(), String> {
        match event {
            Event::Text(content) => self.text(content.xml10_content()),
            Event::CData(content) => self.text(content.xml10_content()),
            Event::GeneralRef(reference) => {
                let unknown = || format!("the entity {} is not known", &**reference);
                self.text(
                    referred_character(reference)
                        .ok_or_else(unknown)?
                        .to_string()
                        .into(),
                );
            }
            Event::Start(tag) | Event::Empty(tag) => {
                let empty = matches!(event, Event::Empty(_));
                let content = &text[range.start + 1..range.end - 1 - usize::from(empty)];
                self.start(range.start, content, tag.name().0.len())?;
                if empty {
                    self.end(range.end)?;
                }
            }
            Event::End(_) => self.end(range.end)?,
            Event::Comment(_) => self.continues = false,
            // It may stand only before the root, and has no content.
            Event::Decl(_) => {}
            _ => return Err("a part that only a document type or a program could need".to_owned()),
        }
        Ok(())
    }

    /// Text outside the root can only be white space.
    fn text(&mut self, value: Cow<'a, str>) {
        let Some((owner, _)) = self.open.last() else {
            return;
        };
        if self.continues
            && let Some(last) = self.tree.texts.last_mut()
        {
            last.value.to_mut().push_str(&value);
            return;
        }
        let id = index(self.tree.texts.len());
        self.tree.texts.push(Text { value, next: NONE });
        let owner = &mut self.tree.elements[*owner as usize];
        match owner.last_text {
            NONE => owner.first_text = id,
            last => self.tree.texts[last as usize].next = id,
        }
        owner.last_text = id;
        self.continues = true;
    }

    /// A start tag at `start`: its content between `<` and `>` or `/>`. The first bytes of it are the name.
    fn start(&mut self, start: usize, content: &'a str, name_end: usize) -> Result<(), String> {
        let (outside, declared) = (self.scope.len(), self.tree.declarations.len());
        // Names are resolved once all declarations are known.
        for declarations in [true, false] {
            for attribute in Attributes::new(content, name_end).with_checks(false) {
                let attribute = attribute.map_err(|error| error.to_string())?;
                let name = attribute.key.into_inner();
                let prefix = match split_name(name) {
                    ("xmlns", prefix) => Some(prefix),
                    ("", "xmlns") => Some(""),
                    _ => None,
                };
                if prefix.is_some() != declarations {
                    continue;
                }
                let value = attribute
                    .normalized_value(XmlVersion::Implicit1_0)
                    .map_err(|error| error.to_string())?;
                match prefix {
                    Some(prefix) => self.declare(prefix, value),
                    None => self.attribute(name, value)?,
                }
            }
            if declarations {
                self.element(&content[..name_end], start, outside, declared)?;
            }
        }
        Ok(())
    }

    fn declare(&mut self, prefix: &'a str, namespace: Cow<'a, str>) {
        self.scope.push(index(self.tree.declarations.len()));
        self.tree.declarations.push((prefix, namespace));
    }

    /// The name of a prefix that is declared.
    fn name(&self, prefix: &'a str, local: &'a str) -> Result<Name<'a>, String> {
        let mut innermost_first = self.scope.iter().rev();
        let declared = innermost_first.find(|id| self.tree.declarations[**id as usize].0 == prefix);
        let unknown = || format!("the namespace prefix {prefix} is not declared");
        Ok(Name {
            prefix,
            local,
            namespace: *declared.ok_or_else(unknown)?,
        })
    }

    /// Adds an attribute to the element just opened.
    fn attribute(&mut self, name: &'a str, value: Cow<'a, str>) -> Result<(), String> {
        let name = match split_name(name) {
            ("", local) => Name {
                prefix: "",
                local,
                namespace: 0,
            },
            (prefix, local) => self.name(prefix, local)?,
        };
        self.tree.attributes.push(Attribute { name, value });
        if let Some(element) = self.tree.elements.last_mut() {
            element.attributes.end += 1;
        }
        Ok(())
    }

    /// Opens an element. Outside of it `outside` declarations were in scope, and its own are those from number `declared` on.
    fn element(
        &mut self,
        name: &'a str,
        start: usize,
        outside: usize,
        declared: usize,
    ) -> Result<(), String> {
        self.continues = false;
        let id = index(self.tree.elements.len());
        let attributes = index(self.tree.attributes.len());
        let (prefix, local) = split_name(name);
        let written = name;
        let name = self.name(prefix, local)?;
        let meaning = self.meaning(name);
        let texts = index(self.tree.texts.len());
        self.tree.elements.push(Element {
            name: meaning.unwrap_or(name),
            parent: self.open.last().map_or(NONE, |(parent, _)| *parent),
            end: id + 1,
            attributes: attributes..attributes,
            declarations: index(declared)..index(self.tree.declarations.len()),
            texts: texts..texts,
            first_text: NONE,
            last_text: NONE,
            range: start..start,
        });
        self.open.push((id, outside));
        if meaning.is_some() {
            self.rename(written);
        }
        Ok(())
    }

    /// The name here of the next element, where it is a time constraint of WSAG4J or a part of one.
    fn meaning(&self, name: Name<'a>) -> Option<Name<'a>> {
        if self.tree.declarations[name.namespace as usize].1 != WSAG4J {
            return None;
        }
        let parent = self.open.last();
        let local = if parent.is_some_and(|(parent, _)| self.tree.written_name(*parent).is_some()) {
            meaning_of_wsag4j_part(name.local)?
        } else {
            meaning_of_wsag4j_element(name.local).filter(|_| self.is_in_description())?
        };
        Some(Name {
            local,
            namespace: MEANT,
            ..name
        })
    }

    /// Whether the next element is the content of a service description term. Elsewhere, an element of a language is kept as
    /// it is written.
    fn is_in_description(&self) -> bool {
        let open = self.open.iter().rev();
        let names = open.map(|(id, _)| self.tree.elements[*id as usize].name);
        let mut names = names.map(|name| {
            let namespace: &str = &self.tree.declarations[name.namespace as usize].1;
            if namespace == ns::WSAG { name.local } else { "" }
        });
        names.next() == Some("ServiceDescriptionTerm")
            && names.find(|name| !COMPOSITORS.contains(name)) == Some("Terms")
    }

    /// Notes the name that the element just opened has in the document.
    fn rename(&mut self, written: &'a str) {
        let id = index(self.tree.elements.len() - 1);
        self.tree.renamed.push((id, written));
    }

    fn end(&mut self, at: usize) -> Result<(), String> {
        self.continues = false;
        let (id, outside) = self.open.pop().ok_or("a tag that closes nothing")?;
        self.scope.truncate(outside);
        let (elements, texts) = (index(self.tree.elements.len()), index(self.tree.texts.len()));
        let element = &mut self.tree.elements[id as usize];
        element.end = elements;
        element.texts.end = texts;
        element.range.end = at;
        Ok(())
    }

    fn finish(self) -> Result<Tree<'a>, String> {
        match self.tree.elements.first() {
            Some(root) if self.open.is_empty() && root.end as usize == self.tree.elements.len() => {
                Ok(self.tree)
            }
            _ => Err("a document has one root element, and all are closed".to_owned()),
        }
    }
}

/// Prefix (empty where there is none) and local name.
fn split_name(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}
