//! Documents that tests take apart and put together again; their content stays as it was written.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

#[derive(Clone)]
pub(crate) struct Element {
    pub(crate) name: String,
    /// Of its name, as it is written; empty where it has none.
    pub(crate) namespace: String,
    /// Namespace declarations too, with their values as they are written.
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone)]
pub(crate) enum Item {
    Element(Element),
    /// Anything else, as it is written.
    Other(String),
}

impl Element {
    /// The root of a document that is well-formed; the text outside it is left out.
    pub(crate) fn parse(text: &str) -> Element {
        let mut reader = Reader::from_str(text);
        let mut open: Vec<Element> = Vec::new();
        let mut at = 0;
        loop {
            let event = reader.read_event().expect("it is well-formed");
            let next = usize::try_from(reader.buffer_position()).expect("it fits");
            let done = match event {
                Event::Start(tag) => {
                    let element = Element::of(&tag, &open);
                    open.push(element);
                    None
                }
                Event::Empty(tag) => Some(Element::of(&tag, &open)),
                Event::End(_) => open.pop(),
                Event::Eof => panic!("the root is not closed"),
                _ => {
                    if let Some(parent) = open.last_mut() {
                        parent.items.push(Item::Other(text[at..next].to_owned()));
                    }
                    None
                }
            };
            at = next;
            match (done, open.last_mut()) {
                (Some(done), Some(parent)) => parent.items.push(Item::Element(done)),
                (Some(done), None) => return done,
                (None, _) => {}
            }
        }
    }

    fn of(tag: &BytesStart<'_>, open: &[Element]) -> Element {
        let attributes = tag.attributes().map(|attribute| {
            let attribute = attribute.expect("it is well-formed");
            (attribute.key.0.to_owned(), attribute.value.into_owned())
        });
        let mut element = Element {
            name: tag.name().0.to_owned(),
            namespace: String::new(),
            attributes: attributes.collect(),
            items: Vec::new(),
        };
        let declaration = declaration(&element.name);
        let innermost_first = std::iter::once(&element).chain(open.iter().rev());
        let declared = innermost_first
            .flat_map(|element| &element.attributes)
            .find(|(name, _)| *name == declaration);
        element.namespace = declared.map_or_else(String::new, |(_, namespace)| namespace.clone());
        element
    }

    /// Gives it another's name, and declares that one's prefix.
    pub(crate) fn rename(&mut self, name: String, namespace: String) {
        let declaration = declaration(&name);
        self.attributes.retain(|(other, _)| *other != declaration);
        self.attributes.insert(0, (declaration, namespace.clone()));
        self.name = name;
        self.namespace = namespace;
    }

    /// The way to each element in document order, by the items of each on the way.
    pub(crate) fn paths(&self) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new()];
        for (index, item) in self.items.iter().enumerate() {
            if let Item::Element(child) = item {
                found.extend(
                    child
                        .paths()
                        .into_iter()
                        .map(|below| [vec![index], below].concat()),
                );
            }
        }
        found
    }

    /// The element at the end of a way.
    pub(crate) fn at(&mut self, path: &[usize]) -> &mut Element {
        let Some((first, rest)) = path.split_first() else {
            return self;
        };
        match &mut self.items[*first] {
            Item::Element(child) => child.at(rest),
            Item::Other(_) => panic!("no element is there"),
        }
    }

    pub(crate) fn to_xml(&self) -> String {
        let mut text = format!("<{}", self.name);
        for (name, value) in &self.attributes {
            text.push_str(&format!(" {name}=\"{}\"", value.replace('"', "&quot;")));
        }
        text.push('>');
        for item in &self.items {
            match item {
                Item::Element(child) => text.push_str(&child.to_xml()),
                Item::Other(other) => text.push_str(other),
            }
        }
        text.push_str(&format!("</{}>", self.name));
        text
    }
}

/// The attribute that declares the prefix of a name.
fn declaration(name: &str) -> String {
    match name.split_once(':') {
        Some((prefix, _)) => format!("xmlns:{prefix}"),
        None => "xmlns".to_owned(),
    }
}
