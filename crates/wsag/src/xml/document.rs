//! A guarded document as a tree, and the offers in it: bare, or in one of the messages that carry them.

use crate::xml::fragment::Fragment;
use crate::xml::guard::{self, GuardError};
use crate::xml::node::Node;
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::tree::{self, Tree};
use crate::xml::value_places::ValuePlaces;
use crate::xml::writer::{XmlPiece, escape_attribute};

/// An offer that was put together from values, to be checked as a document without being written.
pub struct BuiltOffer {
    pub(crate) pieces: Vec<XmlPiece>,
}

/// Most bytes of declarations that the fragments of one document are given, because they were inherited from above them. A few
/// characters of a fragment may need a declaration of some hundred bytes, and every fragment has its own.
pub(crate) const INHERITED_MAX: usize = guard::BYTES_MAX;

/// A well-formed document behind the guard, ready to be read and asked by XPath. It borrows the bytes.
pub struct Document<'a> {
    tree: Tree<'a>,
}

impl<'a> Document<'a> {
    /// Guards the bytes and builds the tree.
    ///
    /// # Errors
    /// The errors of the guard.
    pub fn parse(bytes: &'a [u8]) -> Result<Document<'a>, GuardError> {
        let document = Document::written(guard::guard_document(bytes)?)?;
        document.tree.inheritable.set(INHERITED_MAX);
        Ok(document)
    }

    /// Takes a text that this crate has written, perhaps of parts that came from strangers and have passed the guard: together
    /// they may be more than it lets through.
    ///
    /// # Errors
    /// The fault of a text that this crate has not written.
    pub fn written(text: &'a str) -> Result<Document<'a>, GuardError> {
        let tree = tree::build_tree(text).map_err(|(at, reason)| guard::refusal_of_text(text, at, reason))?;
        Ok(Document { tree })
    }

    /// The tree of an offer that was put together from values, to be checked: it has no text, so that nothing is cut out of
    /// it. Its faults are reported at `places`.
    ///
    /// # Errors
    /// That it is larger than a document may be.
    pub fn made(made: &'a BuiltOffer, places: &'a ValuePlaces) -> Result<Document<'a>, GuardError> {
        let bytes = made.pieces.iter().map(XmlPiece::bytes).sum();
        if bytes > guard::BYTES_MAX {
            return Err(GuardError::TooLarge { bytes });
        }
        let tree = tree::tree_of_pieces(&made.pieces, places);
        let tree = tree.map_err(|reason| guard::refusal_of_text("", 0, reason))?;
        if tree.elements.len() > guard::ELEMENTS_MAX {
            let most = format!("more than {} elements", guard::ELEMENTS_MAX);
            return Err(guard::refusal_of_text("", 0, most));
        }
        Ok(Document { tree })
    }

    /// Whether its fragments needed [`INHERITED_MAX`] or more, so that not all of them can stand alone.
    pub(crate) fn inherits_too_much(&self) -> bool {
        self.tree.inheritable.get() == 0
    }

    /// Lets fragments need as many bytes of declarations again as those of one document may.
    pub(crate) fn renew_inheritable(&self) {
        self.tree.inheritable.set(INHERITED_MAX);
    }

    /// The root element.
    pub(crate) fn root(&self) -> Node<'_> {
        Node::root_of(&self.tree)
    }
}

impl Fragment {
    /// Takes a text that holds one element.
    ///
    /// # Errors
    /// The errors of the guard.
    pub fn parse(text: &str) -> Result<Fragment, GuardError> {
        let document = Document::parse(text.as_bytes())?;
        Ok(document.root().fragment())
    }
}

impl Document<'_> {
    /// The elements of a message that have the content of an offer.
    pub(crate) fn offers(&self) -> Vec<Node<'_>> {
        let is_offer = |node: &Node<'_>| {
            node.is(WSAG, "AgreementOffer")
                || node.is(WSAG_NEG, "NegotiationOffer")
                || node.is(WSAG_NEG, "NegotiationCounterOffer")
        };
        match self.root() {
            root if is_offer(&root) => vec![root],
            root => root.children().filter(is_offer).collect(),
        }
    }

    /// The first offer in this document as a document of its own, its content verbatim: the part to keep of a bare offer or of
    /// one in a message. None where there is no offer.
    pub fn offer_xml(&self) -> Option<String> {
        self.offers().into_iter().next().map(write_offer_of_document)
    }

    /// `wsag:Context` and `wsag:Terms` of the first offer in this document, verbatim, for
    /// [`crate::agreements::AgreementProperties`].
    pub fn offer_fragments(&self) -> Option<(Fragment, Fragment)> {
        // What was cut out before takes nothing from these.
        self.renew_inheritable();
        let offer = self.offers().into_iter().next()?;
        let child = |name| offer.child(WSAG, name).map(Node::fragment);
        child("Context").zip(child("Terms"))
    }
}

/// The content of an offer, from any element, as a document with the offer as its root.
fn write_offer_of_document(offer: Node<'_>) -> String {
    let mut text = format!("<wsag:AgreementOffer xmlns:wsag=\"{WSAG}\"");
    if let Some(id) = offer.attribute(WSAG, "AgreementId") {
        text.push_str(" wsag:AgreementId=\"");
        text.push_str(&escape_attribute(id));
        text.push('"');
    }
    text.push('>');
    for child in offer.children().filter(|child| child.namespace() == WSAG) {
        text.push_str(child.fragment().as_str());
    }
    text.push_str("</wsag:AgreementOffer>");
    text
}
