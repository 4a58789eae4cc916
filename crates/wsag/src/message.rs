//! Every message of the protocol that a provider reads, recognised by its root element. Messages that it only writes are
//! not here.

use crate::agreements::AgreementOffer;
use crate::negotiations::{
    self, InitiateNegotiationInput, NegotiationContext, NegotiationOffer, NegotiationOfferByItself,
};
use crate::operations::CreateInput;
use crate::templates::Template;
use crate::xml::ns::{self, WSAG, WSAG_NEG};
use crate::xml::{
    Document, DocumentCheck, Fragment, INHERITED_MAX, Node, Readable, Violations, read_foreign_children,
};

/// A message that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A bare `wsag:AgreementOffer`.
    AgreementOffer(Box<AgreementOffer>),
    /// `wsag:CreateAgreementInput`.
    CreateAgreementInput(Box<CreateInput>),
    /// `wsag:CreatePendingAgreementInput`.
    CreatePendingAgreementInput(Box<CreateInput>),
    /// `wsag:TerminateInput` with its one element.
    TerminateInput(Fragment),
    /// `wsag:Template`.
    Template(Box<Template>),
    /// `wsag-neg:InitiateNegotiationInput`.
    InitiateNegotiationInput(Box<InitiateNegotiationInput>),
    /// A bare `wsag-neg:NegotiationContext`.
    NegotiationContext(Box<NegotiationContext>),
    /// A bare `wsag-neg:NegotiationOffer`.
    NegotiationOffer(Box<NegotiationOffer>),
    /// `wsag-neg:NegotiateInput`.
    NegotiateInput(Vec<NegotiationOffer>),
    /// `wsag-neg:NegotiateOutput`.
    NegotiateOutput(Vec<NegotiationOffer>),
    /// `wsag-neg:AdvertiseInput`.
    AdvertiseInput(Vec<NegotiationOffer>),
    /// `wsag-neg:TerminateInput` with its reasons.
    TerminateNegotiationInput(Vec<Fragment>),
}

/// Reads a document strictly: every element, attribute and value must be one that the message may have. The demands of the
/// service on an offer that the schemas leave open are checked by [`crate::rules::check_rules`].
///
/// # Errors
/// Everything that is wrong, up to [`crate::VIOLATIONS_MAX`].
pub fn read(document: &Document<'_>) -> Result<Message, Violations> {
    let mut check = DocumentCheck::default();
    let read = read_message(&mut check, document.root());
    finish_message(check, document, read)
}

/// Reads the offers of a `wsag-neg:NegotiateInput`, or a bare `wsag-neg:NegotiationOffer`, each by itself and as strictly as [`read`]:
/// but of an offer that asks for what this service does not know or honour only that offer cannot be had. None where the document is
/// another one.
///
/// # Errors
/// Everything else that is wrong, up to [`crate::VIOLATIONS_MAX`].
pub fn read_each_offer(document: &Document<'_>) -> Result<Option<Vec<NegotiationOfferByItself>>, Violations> {
    let (mut check, root) = (DocumentCheck::default(), document.root());
    let offers = match (root.namespace(), root.local()) {
        (WSAG_NEG, "NegotiationOffer") => NegotiationOfferByItself::read(&mut check, root)
            .into_iter()
            .collect(),
        (WSAG_NEG, "NegotiateInput") => read_message_with_offers(&mut check, root),
        _ => return Ok(None),
    };
    finish_message(check, document, Some(Some(offers)))
}

/// What was read, where nothing is wrong and the parts of the document that are kept can stand alone.
fn finish_message<T>(
    mut check: DocumentCheck,
    document: &Document<'_>,
    read: Option<T>,
) -> Result<T, Violations> {
    if document.inherits_too_much() {
        let message = format!(
            "its elements inherit more than {INHERITED_MAX} bytes of namespace declarations; declare what only a few \
             elements use where they stand"
        );
        check.value(document.root(), message);
    }
    read.filter(|_| check.is_empty())
        .ok_or_else(|| Violations(check.into_violations()))
}

/// Reads a message of either protocol; None only after a violation was added.
fn read_message(check: &mut DocumentCheck, root: Node<'_>) -> Option<Message> {
    let read = match (root.namespace(), root.local()) {
        (WSAG, "AgreementOffer") => read_boxed_message(check, root).map(Message::AgreementOffer),
        (WSAG, "CreateAgreementInput") => read_boxed_message(check, root).map(Message::CreateAgreementInput),
        (WSAG, "CreatePendingAgreementInput") => {
            read_boxed_message(check, root).map(Message::CreatePendingAgreementInput)
        }
        (WSAG, "TerminateInput") => {
            let reason = check.children(root, |children| children.only("a reason"));
            reason.map(|reason| Message::TerminateInput(reason.fragment()))
        }
        (WSAG, "Template") => read_boxed_message(check, root).map(Message::Template),
        (WSAG_NEG, "InitiateNegotiationInput") => {
            read_boxed_message(check, root).map(Message::InitiateNegotiationInput)
        }
        (WSAG_NEG, "NegotiationContext") => read_boxed_message(check, root).map(Message::NegotiationContext),
        (WSAG_NEG, "NegotiationOffer") => read_boxed_message(check, root).map(Message::NegotiationOffer),
        (WSAG_NEG, "NegotiateInput") => Some(Message::NegotiateInput(read_message_with_offers(check, root))),
        (WSAG_NEG, "NegotiateOutput") => {
            let (offers, _) =
                read_offers_of_message(check, root, ("NegotiationCounterOffer", 0), Readable::read);
            Some(Message::NegotiateOutput(offers))
        }
        (WSAG_NEG, "AdvertiseInput") => Some(Message::AdvertiseInput(read_message_with_offers(check, root))),
        (WSAG_NEG, "TerminateInput") => {
            let reasons = read_foreign_children(check, root, WSAG_NEG, (0, usize::MAX), |_, _| ());
            Some(Message::TerminateNegotiationInput(reasons))
        }
        _ => None,
    };
    if read.is_none() && check.is_empty() {
        let namespace = root.namespace();
        let message = match ns::usual_prefix(namespace) {
            Some(_) => unknown_root_of_message(root.local()),
            None => format!("a message in the namespace {WSAG} is expected, not in {namespace:?}"),
        };
        check.structure(root, message);
    }
    read
}

/// The offers of a message of a client, with which no critical extension may come.
fn read_message_with_offers<T: Readable>(check: &mut DocumentCheck, root: Node<'_>) -> Vec<T> {
    let (offers, critical) = read_offers_of_message(check, root, ("NegotiationOffer", 1), Readable::read);
    negotiations::read_negotiation_extensions(check, critical);
    offers
}

fn read_boxed_message<T: Readable>(check: &mut DocumentCheck, root: Node<'_>) -> Option<Box<T>> {
    T::read(check, root).map(Box::new)
}

fn unknown_root_of_message(local: &str) -> String {
    if local == "Agreement" {
        return "no message has this root: an agreement is offered as wsag:AgreementOffer and seen as \
                wsag:AgreementProperties"
            .to_owned();
    }
    "no message has this root; wsag:AgreementOffer or wsag:CreateAgreementInput is expected, or another message of \
     the protocol"
        .to_owned()
}

/// Reads offers of this name, at least `least` of them, and the foreign elements that follow.
fn read_offers_of_message<'d, T>(
    check: &mut DocumentCheck,
    node: Node<'d>,
    (name, least): (&'static str, usize),
    read: impl FnMut(&mut DocumentCheck, Node<'d>) -> Option<T>,
) -> (Vec<T>, Vec<Node<'d>>) {
    check.children(node, |children| {
        let offers = match least {
            0 => children.many(WSAG_NEG, name, read),
            _ => children.at_least_one(WSAG_NEG, name, read),
        };
        (offers, children.foreign(WSAG_NEG))
    })
}
