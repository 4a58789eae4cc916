//! Every message of the protocol, recognised by its root element.

use crate::agreements::{self, AgreementOffer, CreateInput};
use crate::document::{Document, Fragment};
use crate::endpoint::EndpointReference;
use crate::listings::{self, AgreementList, Timeline};
use crate::ns::{self, BSP, WSAG};
use crate::reader::read_root;
use crate::refusals::{self, Fault};
use crate::states::{self, AgreementProperties};
use crate::templates::{self, Template};
use crate::violation::{ViolationKind, Violations};

/// A message that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A bare `wsag:AgreementOffer`.
    AgreementOffer(Box<AgreementOffer>),
    /// `wsag:CreateAgreementInput`.
    CreateAgreementInput(Box<CreateInput>),
    /// `wsag:CreatePendingAgreementInput`.
    CreatePendingAgreementInput(Box<CreateInput>),
    /// `wsag:CreateAgreementResponse`.
    CreateAgreementResponse(EndpointReference),
    /// `wsag:CreatePendingAgreementResponse`.
    CreatePendingAgreementResponse(EndpointReference),
    /// `wsag:AcceptAgreementInput`.
    AcceptAgreementInput(Vec<Fragment>),
    /// `wsag:RejectAgreementInput`.
    RejectAgreementInput(Vec<Fragment>),
    /// `wsag:TerminateInput` with its one element.
    TerminateInput(Fragment),
    /// `wsag:TerminateResponse`.
    TerminateResponse,
    /// `wsag:Template`.
    Template(Box<Template>),
    /// `wsag:AgreementFactoryProperties`.
    AgreementFactoryProperties(Vec<Template>),
    /// `wsag:AgreementProperties`.
    AgreementProperties(Box<AgreementProperties>),
    /// `wsag:ContinuingFault`.
    ContinuingFault(Box<Fault>),
    /// `bsp:Agreements`.
    Agreements(AgreementList),
    /// `bsp:Timeline`.
    Timeline(Timeline),
}

/// Reads a document strictly: every element, attribute and value must be one that the message may have. What the
/// schemas leave open and the service still demands of an offer is checked by [`crate::rules::check`].
///
/// # Errors
/// Everything that is wrong, up to [`crate::VIOLATIONS_MAX`].
pub fn read(document: &Document<'_>) -> Result<Message, Violations> {
    read_root(document, |check, root| match root.namespace() {
        WSAG => match root.local() {
            "AgreementOffer" => {
                agreements::read_offer(check, root).map(|offer| Message::AgreementOffer(Box::new(offer)))
            }
            "CreateAgreementInput" => agreements::read_create_input(check, root)
                .map(|input| Message::CreateAgreementInput(Box::new(input))),
            "CreatePendingAgreementInput" => agreements::read_create_input(check, root)
                .map(|input| Message::CreatePendingAgreementInput(Box::new(input))),
            "CreateAgreementResponse" => agreements::read_created(check, root, (WSAG, "CreatedAgreementEPR"))
                .map(Message::CreateAgreementResponse),
            "CreatePendingAgreementResponse" => {
                agreements::read_created(check, root, (WSAG, "CreatedAgreementEPR"))
                    .map(Message::CreatePendingAgreementResponse)
            }
            "AcceptAgreementInput" => Some(Message::AcceptAgreementInput(agreements::read_any(
                check,
                root,
                0,
                usize::MAX,
            ))),
            "RejectAgreementInput" => Some(Message::RejectAgreementInput(agreements::read_any(
                check,
                root,
                0,
                usize::MAX,
            ))),
            "TerminateInput" => agreements::read_any(check, root, 1, 1)
                .into_iter()
                .next()
                .map(Message::TerminateInput),
            "TerminateResponse" => {
                agreements::read_any(check, root, 0, usize::MAX);
                Some(Message::TerminateResponse)
            }
            "Template" => templates::read(check, root).map(|template| Message::Template(Box::new(template))),
            "AgreementFactoryProperties" => Some(Message::AgreementFactoryProperties(
                templates::read_factory(check, root),
            )),
            "AgreementProperties" => {
                states::read(check, root).map(|properties| Message::AgreementProperties(Box::new(properties)))
            }
            "ContinuingFault" => {
                refusals::read_fault(check, root).map(|fault| Message::ContinuingFault(Box::new(fault)))
            }
            _ => {
                check.structure(root, unknown_root(root.local()));
                None
            }
        },
        BSP if root.local() == "Agreements" => {
            Some(Message::Agreements(listings::read_agreements(check, root)))
        }
        BSP if root.local() == "Timeline" => listings::read_timeline(check, root).map(Message::Timeline),
        namespace => {
            let message = match ns::prefix_of(namespace) {
                Some(_) => unknown_root(root.local()),
                None => format!("a message in the namespace {WSAG} is expected, not in {namespace:?}"),
            };
            check.add(ViolationKind::Structure, root, message);
            None
        }
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
