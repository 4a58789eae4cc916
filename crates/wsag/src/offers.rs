//! The offers in a document: bare, or in one of the messages that carry them.

use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::{Document, Fragment, Node, escape_attribute};

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
        self.offers().into_iter().next().map(offer_xml)
    }

    /// `wsag:Context` and `wsag:Terms` of the first offer in this document, verbatim, for
    /// [`crate::states::AgreementProperties`].
    pub fn offer_fragments(&self) -> Option<(Fragment, Fragment)> {
        // What was cut out before takes nothing from these.
        self.renew_inheritable();
        let offer = self.offers().into_iter().next()?;
        let child = |name| offer.child(WSAG, name).map(Node::fragment);
        child("Context").zip(child("Terms"))
    }
}

/// The content of an offer, from any element, as a document with the offer as its root.
fn offer_xml(offer: Node<'_>) -> String {
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
