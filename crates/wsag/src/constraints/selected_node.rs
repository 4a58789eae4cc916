//! What a Location selects: elements, attributes and texts.

use std::borrow::Cow;

use crate::xml::{Node, qualified_name};

/// Something that a path selects.
#[derive(Clone, Copy)]
pub(crate) enum SelectedNode<'d> {
    Element(Node<'d>),
    /// Owner, namespace, name and value.
    Attribute(Node<'d>, &'d str, &'d str, &'d str),
    /// Owner and value.
    Text(Node<'d>, &'d str),
}

impl<'d> SelectedNode<'d> {
    /// The element that it is or belongs to.
    pub(super) fn owner(&self) -> Node<'d> {
        match self {
            SelectedNode::Element(node) | SelectedNode::Text(node, _) | SelectedNode::Attribute(node, ..) => {
                *node
            }
        }
    }

    /// The element that it is or belongs to, and its path from there on.
    pub(super) fn place(&self) -> (Node<'d>, String) {
        match self {
            SelectedNode::Element(node) | SelectedNode::Text(node, _) => (*node, String::new()),
            SelectedNode::Attribute(owner, namespace, name, _) => {
                (*owner, format!("/@{}", qualified_name(namespace, name)))
            }
        }
    }

    pub(super) fn value(&self) -> Cow<'d, str> {
        match self {
            SelectedNode::Element(node) => node.deep_text(),
            SelectedNode::Attribute(.., value) | SelectedNode::Text(_, value) => Cow::Borrowed(value),
        }
    }

    /// The key by which two nodes are the same.
    pub(super) fn identity(&self) -> (u32, Option<(&'d str, &'d str)>, usize) {
        match self {
            SelectedNode::Element(node) => (node.id(), None, 0),
            SelectedNode::Attribute(owner, namespace, name, _) => (owner.id(), Some((namespace, name)), 0),
            // No two texts that are not empty are kept in the same place.
            SelectedNode::Text(owner, text) => (owner.id(), None, text.as_ptr().addr()),
        }
    }
}
