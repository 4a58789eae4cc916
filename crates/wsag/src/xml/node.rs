//! The nodes of a document: their names, attributes, texts and paths, and fragments cut out of it verbatim.

use std::borrow::Cow;
use std::ops::Range;

use crate::xml::fragment::Fragment;
use crate::xml::ns;
use crate::xml::tree::{Attribute, Element, NONE, Name, Tree};
use crate::xml::value_places::ValuePlaces;
use crate::xml::writer::escape_attribute;

/// An element of a document.
#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    tree: &'d Tree<'d>,
    id: u32,
}

impl<'d> Node<'d> {
    /// Its number in document order, which tells it from others of its document.
    pub(crate) fn id(self) -> u32 {
        self.id
    }

    /// The root element of a tree. No tree is built without one.
    pub(super) fn root_of(tree: &'d Tree<'d>) -> Node<'d> {
        Node { tree, id: 0 }
    }

    /// The numbers of this element and of all below it.
    pub(super) fn ids(self) -> Range<u32> {
        self.id..self.element().end
    }

    fn element(self) -> &'d Element<'d> {
        &self.tree.elements[self.id as usize]
    }

    fn namespace_of(self, name: Name<'d>) -> &'d str {
        &self.tree.declarations[name.namespace as usize].1
    }

    pub(crate) fn namespace(self) -> &'d str {
        self.namespace_of(self.element().name)
    }

    pub(crate) fn local(self) -> &'d str {
        self.element().name.local
    }

    pub(crate) fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    pub(crate) fn parent(self) -> Option<Node<'d>> {
        let id = self.element().parent;
        (id != NONE).then_some(Node { id, ..self })
    }

    /// This element and those around it, innermost first.
    fn ancestors(self) -> impl Iterator<Item = Node<'d>> {
        std::iter::successors(Some(self), |node| node.parent())
    }

    /// The child elements in order.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'d>> {
        std::iter::successors(self.first_child(), |child| child.next())
    }

    /// The first child element of this name.
    pub(crate) fn child(self, namespace: &str, local: &str) -> Option<Node<'d>> {
        self.children().find(|child| child.is(namespace, local))
    }

    pub(crate) fn first_child(self) -> Option<Node<'d>> {
        let id = self.id + 1;
        (id < self.element().end).then_some(Node { id, ..self })
    }

    /// The next sibling that is an element.
    pub(crate) fn next(self) -> Option<Node<'d>> {
        let id = self.element().end;
        (id < self.parent()?.element().end).then_some(Node { id, ..self })
    }

    /// This element and all below it, in document order.
    pub(crate) fn descendants(self) -> impl ExactSizeIterator<Item = Node<'d>> {
        let count = self.element().end - self.id;
        // A range of this kind knows its length only where it is that of an index.
        (0..count as usize).map(move |below| Node {
            id: self.id + u32::try_from(below).unwrap_or(NONE),
            ..self
        })
    }

    fn own_attributes(self) -> &'d [Attribute<'d>] {
        let range = &self.element().attributes;
        &self.tree.attributes[range.start as usize..range.end as usize]
    }

    /// Attributes other than namespace declarations: namespace, local name, value.
    pub(crate) fn attributes(self) -> impl Iterator<Item = (&'d str, &'d str, &'d str)> {
        self.own_attributes().iter().map(move |attribute| {
            (
                self.namespace_of(attribute.name),
                attribute.name.local,
                attribute.value.as_ref(),
            )
        })
    }

    pub(crate) fn attribute(self, namespace: &str, local: &str) -> Option<&'d str> {
        let mut attributes = self.attributes();
        attributes
            .find(|(ns, name, _)| *name == local && *ns == namespace)
            .map(|(_, _, value)| value)
    }

    /// The texts directly inside this element; comments and elements stand between them.
    pub(crate) fn texts(self) -> impl Iterator<Item = &'d str> {
        let texts = &self.tree.texts;
        let at = |id: u32| texts.get(id as usize);
        std::iter::successors(at(self.element().first_text), move |text| at(text.next))
            .map(|text| text.value.as_ref())
    }

    /// The text directly inside this element, comments left out.
    pub(crate) fn text(self) -> Cow<'d, str> {
        join_text_pieces(self.texts())
    }

    /// The texts directly inside this element before each child element, and the one after the last.
    pub(crate) fn texts_between(self) -> impl Iterator<Item = Cow<'d, str>> {
        let own = &self.element().texts;
        let mut from = own.start;
        let children = self.children().map(|child| child.element().texts.clone());
        children
            .chain(std::iter::once(own.end..own.end))
            .map(move |inside| {
                let texts = &self.tree.texts[from as usize..inside.start as usize];
                from = inside.end;
                join_text_pieces(texts.iter().map(|text| text.value.as_ref()))
            })
    }

    /// All text in this element, also inside its children.
    pub(crate) fn deep_text(self) -> Cow<'d, str> {
        let range = &self.element().texts;
        let texts = &self.tree.texts[range.start as usize..range.end as usize];
        join_text_pieces(texts.iter().map(|text| text.value.as_ref()))
    }

    /// The namespaces that are declared at this element, by their prefixes; the default one has the empty prefix.
    fn declarations(self) -> impl Iterator<Item = (&'d str, &'d str)> {
        let range = &self.element().declarations;
        self.tree.declarations[range.start as usize..range.end as usize]
            .iter()
            .map(|(prefix, namespace)| (*prefix, namespace.as_ref()))
    }

    /// Namespace of a prefix (empty for the default) at this element.
    pub(crate) fn resolve(self, prefix: &str) -> Option<&'d str> {
        let declared = self.declarations().find(|(bound, _)| *bound == prefix);
        match declared {
            Some((_, namespace)) => Some(namespace),
            None => self.parent()?.resolve(prefix),
        }
    }

    /// All prefixes in scope here, innermost first; the default namespace has the empty one.
    pub(crate) fn prefixes(self) -> Vec<(&'d str, &'d str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for at in self.ancestors() {
            for (prefix, namespace) in at.declarations() {
                if found.iter().all(|(known, _)| *known != prefix) {
                    found.push((prefix, namespace));
                }
            }
        }
        found
    }

    /// The name with the usual prefix of its namespace, or else the document's own.
    pub(crate) fn name(self) -> String {
        let own = self.element().name.prefix;
        match ns::usual_prefix(self.namespace()).unwrap_or(own) {
            "" => self.local().to_owned(),
            prefix => format!("{prefix}:{}", self.local()),
        }
    }

    /// The name in a path: that which the document has, where it is known here by another one.
    fn name_in_paths(self) -> Cow<'d, str> {
        match self.tree.written_name(self.id) {
            Some(written) => written.into(),
            None => self.name().into(),
        }
    }

    /// Whether the document has another name than the one by which it is known here.
    pub(crate) fn is_renamed(self) -> bool {
        self.tree.written_name(self.id).is_some()
    }

    /// The path from the root, as [`crate::Violation`] describes it.
    pub(crate) fn path(self) -> String {
        if let Some(places) = self.tree.places.filter(|places| !places.is_document()) {
            let place = self
                .ancestors()
                .find_map(|node| places.of(&node.name(), || node.position()));
            return place.unwrap_or(places.root()).to_owned();
        }
        let mut steps: Vec<String> = self.ancestors().map(Node::step).collect();
        steps.reverse();
        steps.concat()
    }

    fn step(self) -> String {
        let name = self.name_in_paths();
        let Some(parent) = self.parent() else {
            let root = self.tree.places.map(ValuePlaces::root);
            return root.map_or_else(|| format!("/{name}"), ToOwned::to_owned);
        };
        if parent.children().filter(|node| node.is_alike(self)).count() == 1 {
            return format!("/{name}");
        }
        format!("/{name}[{}]", self.position() + 1)
    }

    /// How many siblings of its name stand before it.
    fn position(self) -> usize {
        let siblings = self.parent().into_iter().flat_map(Node::children);
        siblings
            .take_while(|node| node.id != self.id)
            .filter(|node| node.is_alike(self))
            .count()
    }

    /// Whether another element has the same name in paths.
    fn is_alike(self, other: Node<'_>) -> bool {
        match (self.tree.written_name(self.id), other.tree.written_name(other.id)) {
            (None, None) => self.is(other.namespace(), other.local()),
            _ => self.name_in_paths() == other.name_in_paths(),
        }
    }

    /// Where this element stands in the text of its document.
    pub(crate) fn range(self) -> Range<usize> {
        self.element().range.clone()
    }

    /// Whether something in this element uses a prefix that is declared above it. Prefixes may stand in values too
    /// (XPath), so any mention counts. The guard bounds the depth.
    fn needs(self, prefix: &str) -> bool {
        if self.declarations().any(|(declared, _)| declared == prefix) {
            return false;
        }
        let mentions = |text: &str| {
            text.match_indices(prefix)
                .any(|(at, _)| text[at + prefix.len()..].starts_with(':'))
        };
        let mut attributes = self.own_attributes().iter();
        self.element().name.prefix == prefix
            || (!prefix.is_empty()
                && (mentions(&self.text())
                    || attributes
                        .any(|attribute| attribute.name.prefix == prefix || mentions(&attribute.value))))
            || self.children().any(|child| child.needs(prefix))
    }

    /// This element verbatim, able to stand alone; empty where the document was made of values and has no text.
    pub(crate) fn fragment(self) -> Fragment {
        let source = self.tree.text.get(self.range());
        let Some(source) = source.filter(|source| !source.is_empty()) else {
            return Fragment::written(String::new());
        };
        let name_end = source
            .find([' ', '\t', '\r', '\n', '/', '>'])
            .unwrap_or(source.len());
        let mut text = source[..name_end].to_owned();
        let mut inherited = self.parent().map_or_else(Vec::new, Node::prefixes);
        inherited.sort_unstable();
        let left = &self.tree.inheritable;
        for (prefix, namespace) in inherited {
            // A document that needs more is refused, and its fragments with it.
            if left.get() == 0 || !self.needs(prefix) {
                continue;
            }
            let before = text.len();
            text.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            text.push_str(prefix);
            text.push_str("=\"");
            text.push_str(&escape_attribute(namespace));
            text.push('"');
            left.set(left.get().saturating_sub(text.len() - before));
        }
        text.push_str(&source[name_end..]);
        Fragment::written(text)
    }
}

/// One text, perhaps from several pieces.
fn join_text_pieces<'d>(mut pieces: impl Iterator<Item = &'d str>) -> Cow<'d, str> {
    let mut text = Cow::Borrowed(pieces.next().unwrap_or_default());
    for piece in pieces {
        text.to_mut().push_str(piece);
    }
    text
}
