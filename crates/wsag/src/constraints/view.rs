//! An offer as constraints see it, and the work that comparing it may cost.

use std::cell::Cell;

use crate::constraints::selected_node::SelectedNode;
use crate::terms::{Terms, other_contents_of_terms};
use crate::xml::ns::WSAG;
use crate::xml::{DocumentCheck, Node, Readable, UnchosenTerms};

/// Most units of work of one check of an offer, of some tens of nanoseconds each: an ordinary offer needs some thousand for an
/// ordinary template. Constraints may come from a stranger as much as the offer, and one may be made for the other; a check that
/// needs more is refused instead of being waited for.
const WORK_MAX: usize = 500_000;

/// An offer as constraints see it: the root of a document of its own, under any name and in any message.
pub(crate) struct View<'d> {
    offer: Node<'d>,
    /// The offer and all below it that is its own, in document order.
    all: Vec<Node<'d>>,
    /// None where the offer is seen with all its terms.
    left_out: Option<&'d UnchosenTerms>,
    /// The contents of its terms in languages that are not known.
    others: UnchosenTerms,
    work: Cell<usize>,
}

impl<'d> View<'d> {
    /// The view of an offer, or of one way to read it. The elements that a negotiation adds to an offer's content are not part of it.
    pub(crate) fn new(offer: Node<'d>, left_out: Option<&'d UnchosenTerms>) -> View<'d> {
        let content = offer.children().filter(|child| child.namespace() == WSAG);
        let all = std::iter::once(offer)
            .chain(content.flat_map(Node::descendants))
            .filter(|node| !left_out.is_some_and(|left_out| left_out.has(*node)))
            .collect();
        View {
            offer,
            all,
            left_out,
            others: other_contents_of_terms(offer),
            work: Cell::new(0),
        }
    }

    pub(crate) fn has(&self, node: Node<'_>) -> bool {
        !self.left_out.is_some_and(|left_out| left_out.has(node))
    }

    /// Whether a node stands in a term in a language that is not known.
    pub(crate) fn is_foreign(&self, selected: &SelectedNode<'_>) -> bool {
        self.others.has(selected.owner())
    }

    /// The offer and all below it that is its own, in document order.
    pub(super) fn all(&self) -> &[Node<'d>] {
        &self.all
    }

    /// The offer.
    pub(crate) fn offer(&self) -> Node<'d> {
        self.offer
    }

    /// Spends work. All ways to read an offer share what one offer may cost.
    ///
    /// # Errors
    /// Once there is too much of it.
    pub(crate) fn charge(&self, units: usize) -> Result<(), String> {
        self.work.set(self.work.get().saturating_add(units));
        if self.work.get() <= WORK_MAX / self.left_out.map_or(1, UnchosenTerms::ways) {
            return Ok(());
        }
        Err("the constraints take too long to compare with this offer".to_owned())
    }

    pub(super) fn children(&self, node: Node<'d>) -> impl Iterator<Item = Node<'d>> {
        let at_root = node.id() == self.offer.id();
        node.children()
            .filter(move |child| (!at_root || child.namespace() == WSAG) && self.has(*child))
    }

    pub(super) fn local(&self, node: Node<'d>) -> &'d str {
        if node.id() == self.offer.id() {
            "AgreementOffer"
        } else {
            node.local()
        }
    }

    pub(super) fn namespace(&self, node: Node<'d>) -> &'d str {
        if node.id() == self.offer.id() {
            WSAG
        } else {
            node.namespace()
        }
    }

    /// The terms of the offer, as constraints on the whole compare them.
    pub(super) fn terms(&self) -> Terms {
        let terms = self.offer.child(WSAG, "Terms");
        // Their faults are reported where the offer is read.
        let terms = terms.and_then(|terms| Terms::read(&mut DocumentCheck::default(), terms));
        terms.unwrap_or_default()
    }
}
