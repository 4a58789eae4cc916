//! The paths of terms and of their contents in a document, for violations.

use super::{other_contents_of_terms, term_nodes_of_document};
use crate::xml::{Document, Node, UnchosenTerms};

impl Document<'_> {
    /// The path of the `nth` element (from 0) of this name in document order, without what terms in unknown languages contain; of the
    /// root where there is none, so that a missing element can be reported too. O(size of the document).
    pub fn path_outside_unknown_terms(&self, namespace: &str, local: &str, nth: usize) -> String {
        let others: Vec<UnchosenTerms> = self.offers().into_iter().map(other_contents_of_terms).collect();
        let is_ours = |node: &Node<'_>| !others.iter().any(|other| other.has(*node));
        let mut found = self
            .root()
            .descendants()
            .filter(|node| node.is(namespace, local) && is_ours(node));
        found.nth(nth).unwrap_or(self.root()).path()
    }
}

/// The path of the `nth` term (from 0) of the first offer in a document, in the order of [`super::Terms::flatten`].
pub fn path_of_term(document: &Document<'_>, nth: usize) -> String {
    let nodes = term_nodes_of_document(document);
    nodes
        .get(nth)
        .map_or_else(|| document.root().path(), |node| node.path())
}

/// The path of the content of the `nth` term: its first element.
pub fn path_of_term_content(document: &Document<'_>, nth: usize) -> String {
    let term = term_nodes_of_document(document).get(nth).copied();
    let content = term.and_then(Node::first_child);
    content.unwrap_or(document.root()).path()
}
