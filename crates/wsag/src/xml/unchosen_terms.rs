//! The terms of an offer that are not chosen.

use std::ops::Range;

use crate::xml::node::Node;

/// The parts of an offer that one way to read it leaves out: the terms that are not chosen.
#[derive(Debug, Clone, Default)]
pub struct UnchosenTerms {
    /// The numbers of their elements, in document order.
    elements: Vec<Range<u32>>,
    /// How many ways to read the offer there are.
    ways: usize,
}

impl UnchosenTerms {
    pub(crate) fn of<'d>(nodes: impl Iterator<Item = Node<'d>>, ways: usize) -> UnchosenTerms {
        let elements = nodes.map(Node::ids).collect();
        UnchosenTerms { elements, ways }
    }

    /// Whether an element is such a term, or a part of one.
    pub(crate) fn has(&self, node: Node<'_>) -> bool {
        let before = self
            .elements
            .partition_point(|element| element.start <= node.id());
        let last = self.elements[..before].last();
        last.is_some_and(|element| element.contains(&node.id()))
    }

    pub(crate) fn ways(&self) -> usize {
        self.ways.max(1)
    }
}
