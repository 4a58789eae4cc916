//! Every message of the protocol that a provider reads, recognised by its root element. Messages that it only writes are
//! not here.

use crate::agreements::{self, AgreementOffer, CreateInput};
use crate::document::{Document, Fragment, Node};
use crate::negotiations::{self, InitiateInput, NegotiationContext, NegotiationOffer};
use crate::ns::{self, WSAG, WSAG_NEG};
use crate::reader::{Check, read_root};
use crate::templates::{self, Template};
use crate::violation::Violations;

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
    InitiateNegotiationInput(Box<InitiateInput>),
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
/// service on an offer that the schemas leave open are checked by [`crate::rules::check`].
///
/// # Errors
/// Everything that is wrong, up to [`crate::VIOLATIONS_MAX`].
pub fn read(document: &Document<'_>) -> Result<Message, Violations> {
    read_root(document, |check, root| {
        let read = match root.namespace() {
            WSAG => read_agreement_message(check, root),
            WSAG_NEG => read_negotiation_message(check, root),
            namespace => {
                let message = match ns::prefix_of(namespace) {
                    Some(_) => unknown_root(root.local()),
                    None => format!("a message in the namespace {WSAG} is expected, not in {namespace:?}"),
                };
                check.structure(root, message);
                None
            }
        };
        if read.is_none() && check.is_empty() {
            check.structure(root, unknown_root(root.local()));
        }
        read
    })
}

/// A message of WS-Agreement; None for an unknown root, and after a violation.
fn read_agreement_message(check: &mut Check, root: Node<'_>) -> Option<Message> {
    Some(match root.local() {
        "AgreementOffer" => Message::AgreementOffer(Box::new(agreements::read_offer(check, root)?)),
        "CreateAgreementInput" => {
            Message::CreateAgreementInput(Box::new(agreements::read_create_input(check, root)?))
        }
        "CreatePendingAgreementInput" => {
            Message::CreatePendingAgreementInput(Box::new(agreements::read_create_input(check, root)?))
        }
        "TerminateInput" => {
            Message::TerminateInput(agreements::read_any(check, root, 1, 1).into_iter().next()?)
        }
        "Template" => Message::Template(Box::new(templates::read(check, root)?)),
        _ => return None,
    })
}

/// A message of WS-Agreement Negotiation; None for an unknown root, and after a violation.
fn read_negotiation_message(check: &mut Check, root: Node<'_>) -> Option<Message> {
    Some(match root.local() {
        "InitiateNegotiationInput" => {
            Message::InitiateNegotiationInput(Box::new(negotiations::read_initiate(check, root)?))
        }
        "NegotiationContext" => {
            Message::NegotiationContext(Box::new(negotiations::read_context(check, root)?))
        }
        "NegotiationOffer" => Message::NegotiationOffer(Box::new(negotiations::read_offer(check, root)?)),
        "NegotiateInput" => {
            let (offers, critical) = negotiations::read_offers(check, root, "NegotiationOffer", 1);
            agreements::read_extensions(check, critical);
            Message::NegotiateInput(offers)
        }
        "NegotiateOutput" => {
            Message::NegotiateOutput(negotiations::read_offers(check, root, "NegotiationCounterOffer", 0).0)
        }
        "AdvertiseInput" => {
            Message::AdvertiseInput(negotiations::read_offers(check, root, "NegotiationOffer", 1).0)
        }
        "TerminateInput" => {
            Message::TerminateNegotiationInput(agreements::read_any(check, root, 0, usize::MAX))
        }
        _ => return None,
    })
}

fn unknown_root(local: &str) -> String {
    if local == "Agreement" {
        return "no message has this root: an agreement is offered as wsag:AgreementOffer and seen as \
                wsag:AgreementProperties"
            .to_owned();
    }
    "no message has this root; wsag:AgreementOffer or wsag:CreateAgreementInput is expected, or another message of \
     the protocol"
        .to_owned()
}
