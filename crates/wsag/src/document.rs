//! A guarded document as a tree, its nodes, their paths, and fragments cut out of it verbatim.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use uppsala::{Element, NodeId, NodeKind, QName};

use crate::guard::{self, GuardError};
use crate::ns;
use crate::rules;
use crate::writer::escape_attribute;

/// A well-formed document behind the guard, ready to be read and asked by XPath. It borrows the bytes.
pub struct Document<'a> {
    tree: uppsala::Document<'a>,
}

impl<'a> Document<'a> {
    /// Guards the bytes and builds the tree.
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn parse(bytes: &'a [u8]) -> Result<Document<'a>, GuardError> {
        Document::build(guard::check(bytes)?)
    }

    /// Builds the tree of a text that has passed the guard, or was put together from texts that have.
    pub(crate) fn build(text: &'a str) -> Result<Document<'a>, GuardError> {
        // The guard's own limits hold already; these hold even if it were wrong.
        let parser = uppsala::Parser::new()
            .with_forbid_dtd(true)
            .with_max_entity_expansion(guard::BYTES_MAX);
        let mut tree = parser.parse(text).map_err(|error| GuardError::Refused {
            line: 1,
            column: 1,
            reason: format!("the document cannot be read: {error}"),
        })?;
        tree.prepare_xpath();
        Ok(Document { tree })
    }

    /// The path of the `nth` element (from 0) of this name in document order; of the root where there is none, so that
    /// what is missing can be reported too. O(size of the document).
    pub fn path_to(&self, namespace: &str, local: &str, nth: usize) -> String {
        let Some(root) = self.root() else {
            return "/".to_owned();
        };
        let found = root
            .descendants()
            .into_iter()
            .filter(|node| node.is(namespace, local))
            .nth(nth);
        found.unwrap_or(root).path()
    }

    /// The first offer in this document as a document of its own, its content verbatim: what to keep of a bare offer
    /// or of one in a message. None where there is no offer.
    pub fn offer_xml(&self) -> Option<String> {
        rules::offers(self).into_iter().next().map(offer_xml)
    }

    /// `wsag:Context` and `wsag:Terms` of the first offer in this document, verbatim, for
    /// [`crate::states::AgreementProperties`].
    pub fn offer_fragments(&self) -> Option<(Fragment, Fragment)> {
        let offer = rules::offers(self).into_iter().next()?;
        let child = |name| {
            offer
                .children()
                .find(|child| child.is(ns::WSAG, name))
                .map(Node::fragment)
        };
        child("Context").zip(child("Terms"))
    }

    /// The root element. The guard refuses documents without one.
    pub(crate) fn root(&self) -> Option<Node<'_>> {
        Some(Node {
            tree: &self.tree,
            id: self.tree.document_element()?,
        })
    }
}

/// An element of a document.
#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    tree: &'d uppsala::Document<'d>,
    id: NodeId,
}

impl<'d> Node<'d> {
    /// The element with this id, if it is an element.
    pub(crate) fn new(tree: &'d uppsala::Document<'d>, id: NodeId) -> Option<Node<'d>> {
        tree.element(id).map(|_| Node { tree, id })
    }

    pub(crate) fn tree(self) -> &'d uppsala::Document<'d> {
        self.tree
    }

    pub(crate) fn id(self) -> NodeId {
        self.id
    }

    fn element(self) -> Option<&'d Element<'d>> {
        self.tree.element(self.id)
    }

    pub(crate) fn namespace(self) -> &'d str {
        self.element()
            .and_then(|element| element.name.namespace_uri.as_deref())
            .unwrap_or_default()
    }

    pub(crate) fn local(self) -> &'d str {
        self.element()
            .map(|element| element.name.local_name.as_ref())
            .unwrap_or_default()
    }

    pub(crate) fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    pub(crate) fn parent(self) -> Option<Node<'d>> {
        Node::new(self.tree, self.tree.parent(self.id)?)
    }

    /// The child elements in order.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'d>> {
        let tree = self.tree;
        tree.children_iter(self.id)
            .filter_map(move |id| Node::new(tree, id))
    }

    pub(crate) fn first_child(self) -> Option<Node<'d>> {
        self.children().next()
    }

    /// The next sibling that is an element.
    pub(crate) fn next(self) -> Option<Node<'d>> {
        let mut id = self.id;
        loop {
            id = self.tree.next_sibling(id)?;
            if let Some(node) = Node::new(self.tree, id) {
                return Some(node);
            }
        }
    }

    /// This element and all below it, in document order.
    pub(crate) fn descendants(self) -> Vec<Node<'d>> {
        let mut found = vec![self];
        let mut stack: Vec<Node<'d>> = self.children().collect();
        stack.reverse();
        while let Some(node) = stack.pop() {
            found.push(node);
            let start = stack.len();
            stack.extend(node.children());
            stack[start..].reverse();
        }
        found
    }

    /// Attributes other than namespace declarations: namespace, local name, value.
    pub(crate) fn attributes(self) -> impl Iterator<Item = (&'d str, &'d str, &'d str)> {
        self.element()
            .into_iter()
            .flat_map(|element| &element.attributes)
            .map(|attribute| {
                let namespace = attribute.name.namespace_uri.as_deref().unwrap_or_default();
                (
                    namespace,
                    attribute.name.local_name.as_ref(),
                    attribute.value.as_ref(),
                )
            })
    }

    pub(crate) fn attribute(self, namespace: &str, local: &str) -> Option<&'d str> {
        let mut attributes = self.attributes();
        attributes
            .find(|(ns, name, _)| *ns == namespace && *name == local)
            .map(|(_, _, value)| value)
    }

    /// The text directly inside this element, comments left out.
    pub(crate) fn text(self) -> Cow<'d, str> {
        let mut text = Cow::Borrowed("");
        for id in self.tree.children_iter(self.id) {
            if let Some(NodeKind::Text(piece) | NodeKind::CData(piece)) = self.tree.node_kind(id) {
                if text.is_empty() {
                    text = Cow::Borrowed(piece.as_ref());
                } else {
                    text.to_mut().push_str(piece);
                }
            }
        }
        text
    }

    /// All text in this element, whatever is between.
    pub(crate) fn deep_text(self) -> Cow<'d, str> {
        if self.first_child().is_none() {
            self.text()
        } else {
            Cow::Owned(self.tree.text_content_deep(self.id))
        }
    }

    /// Namespace of a prefix (empty for the default) at this element.
    pub(crate) fn resolve(self, prefix: &str) -> Option<&'d str> {
        let declared = self
            .element()?
            .namespace_declarations
            .iter()
            .find(|(bound, _)| bound == prefix);
        match declared {
            Some((_, namespace)) => Some(namespace.as_ref()),
            None => self.parent()?.resolve(prefix),
        }
    }

    /// All prefixes in scope here that are not the default one, innermost first.
    pub(crate) fn prefixes(self) -> Vec<(&'d str, &'d str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        let mut node = Some(self);
        while let Some(at) = node {
            for (prefix, namespace) in at
                .element()
                .map_or(&[][..], |element| &element.namespace_declarations)
            {
                if !prefix.is_empty() && found.iter().all(|(known, _)| known != prefix) {
                    found.push((prefix, namespace));
                }
            }
            node = at.parent();
        }
        found
    }

    /// The name with the usual prefix of its namespace, or else the document's own.
    pub(crate) fn name(self) -> String {
        let prefix = ns::prefix_of(self.namespace())
            .or_else(|| self.element().and_then(|element| element.name.prefix.as_deref()));
        match prefix {
            Some(prefix) => format!("{prefix}:{}", self.local()),
            None => self.local().to_owned(),
        }
    }

    /// The path from the root, as [`crate::Violation`] describes it.
    pub(crate) fn path(self) -> String {
        let mut steps = Vec::new();
        let mut node = Some(self);
        while let Some(at) = node {
            steps.push(at.step());
            node = at.parent();
        }
        steps.reverse();
        steps.concat()
    }

    fn step(self) -> String {
        let name = self.name();
        let Some(parent) = self.parent() else {
            return format!("/{name}");
        };
        let same = |node: &Node<'_>| node.is(self.namespace(), self.local());
        if parent.children().filter(same).count() == 1 {
            return format!("/{name}");
        }
        let position = parent
            .children()
            .filter(same)
            .take_while(|node| node.id != self.id)
            .count()
            + 1;
        format!("/{name}[{position}]")
    }

    /// Where this element stands in the text of its document.
    pub(crate) fn range(self) -> Option<Range<usize>> {
        self.tree.node_range(self.id)
    }

    /// Whether something in this element uses a prefix that is declared above it. Prefixes may stand in values too
    /// (XPath), so any mention counts. The guard bounds the depth.
    fn needs(self, prefix: &str) -> bool {
        let Some(element) = self.element() else {
            return false;
        };
        if element
            .namespace_declarations
            .iter()
            .any(|(declared, _)| declared == prefix)
        {
            return false;
        }
        let is_own = |name: &QName<'_>| name.prefix.as_deref().unwrap_or_default() == prefix;
        let mentions = |text: &str| {
            text.match_indices(prefix)
                .any(|(at, _)| text[at + prefix.len()..].starts_with(':'))
        };
        is_own(&element.name)
            || (!prefix.is_empty()
                && (mentions(&self.text())
                    || element
                        .attributes
                        .iter()
                        .any(|one| is_own(&one.name) || mentions(&one.value))))
            || self.children().any(|child| child.needs(prefix))
    }

    /// This element verbatim, able to stand alone.
    pub(crate) fn fragment(self) -> Fragment {
        let source = self.tree.node_source(self.id).unwrap_or_default();
        let name_end = source
            .find([' ', '\t', '\r', '\n', '/', '>'])
            .unwrap_or(source.len());
        let mut text = source[..name_end].to_owned();
        let mut inherited = self.parent().map_or_else(Vec::new, Node::prefixes);
        if let Some(default) = self.parent().and_then(|parent| parent.resolve("")) {
            inherited.push(("", default));
        }
        inherited.sort_unstable();
        for (prefix, namespace) in inherited {
            if !self.needs(prefix) {
                continue;
            }
            text.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            text.push_str(prefix);
            text.push_str("=\"");
            text.push_str(&escape_attribute(namespace));
            text.push('"');
        }
        text.push_str(&source[name_end..]);
        Fragment(text)
    }
}

/// The content of an offer, in whatever element it stands, as a document with the offer as its root.
pub(crate) fn offer_xml(offer: Node<'_>) -> String {
    let mut text = format!("<wsag:AgreementOffer xmlns:wsag=\"{}\"", ns::WSAG);
    if let Some(id) = offer.attribute(ns::WSAG, "AgreementId") {
        text.push_str(" wsag:AgreementId=\"");
        text.push_str(&escape_attribute(id));
        text.push('"');
    }
    text.push('>');
    for child in offer.children().filter(|child| child.namespace() == ns::WSAG) {
        text.push_str(child.fragment().as_str());
    }
    text.push_str("</wsag:AgreementOffer>");
    text
}

/// One element cut out of a guarded document, with every namespace declaration that it needs to stand alone.
/// Kept verbatim, so that what one party wrote comes back to it unchanged.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fragment(String);

impl Fragment {
    /// The XML text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes a text that holds one element.
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn parse(text: &str) -> Result<Fragment, GuardError> {
        let document = Document::parse(text.as_bytes())?;
        // The guard refuses documents without a root.
        Ok(document
            .root()
            .map_or_else(|| Fragment(String::new()), Node::fragment))
    }

    /// A fragment from XML that this crate has written.
    pub(crate) fn written(text: String) -> Fragment {
        Fragment(text)
    }
}

impl fmt::Debug for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
