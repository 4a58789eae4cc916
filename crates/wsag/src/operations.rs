//! The operations that make, accept, reject and end agreements (GFD.192, section 9).

use crate::agreements::AgreementOffer;
use crate::endpoint::EndpointReference;
use crate::negotiations::{
    NegotiationExtension, NegotiationOfferContext, NegotiationRole, OfferState, RenegotiationExtension,
    read_negotiation_extensions, read_noncritical_negotiation_extension,
};
use crate::placement::Moved;
use crate::terms::CompositorChoice;
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::{Document, DocumentCheck, Fragment, Node, Readable, Violation, ViolationKind, Xml};

/// `wsag:CreateAgreementInput` and `wsag:CreatePendingAgreementInput`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateInput {
    /// Where the decision of a pending agreement is to be called back; never present in a synchronous request.
    pub acceptance: Option<EndpointReference>,
    /// The initiator's own endpoint of the agreement.
    pub initiator: Option<EndpointReference>,
    /// The offer.
    pub offer: AgreementOffer,
    /// `NoncriticalExtension` elements, verbatim; they may be ignored.
    pub noncritical: Vec<Fragment>,
    /// The counter offer that this agreement is created from.
    pub negotiation: Option<NegotiationExtension>,
    /// The agreement that this one is to replace.
    pub renegotiation: Option<RenegotiationExtension>,
}

/// The input of either creating operation.
impl Readable for CreateInput {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<CreateInput> {
        let pending = node.local() == "CreatePendingAgreementInput";
        check.children(node, |children| {
            let acceptance =
                pending.then(|| children.optional(WSAG, "AgreementAcceptanceEPR", Readable::read));
            let initiator = children.optional(WSAG, "InitiatorAgreementEPR", Readable::read);
            let offer = children.required(WSAG, "AgreementOffer", Readable::read);
            let noncritical = children.many(
                WSAG,
                "NoncriticalExtension",
                read_noncritical_negotiation_extension,
            );
            let critical = children.foreign(WSAG);
            let (negotiation, renegotiation) = read_negotiation_extensions(children.check, critical);
            Some(CreateInput {
                acceptance: acceptance.flatten(),
                initiator,
                offer: offer?,
                noncritical,
                negotiation,
                renegotiation,
            })
        })
    }
}

impl CreateInput {
    /// As `CreateAgreementInput`, or as `CreatePendingAgreementInput`.
    pub fn to_xml(&self, pending: bool) -> String {
        let root = if pending {
            "wsag:CreatePendingAgreementInput"
        } else {
            "wsag:CreateAgreementInput"
        };
        let mut xml = Xml::document(root, &["wsag", "wsag-neg", "wsa"]);
        if pending {
            xml.add("wsag:AgreementAcceptanceEPR", &self.acceptance);
        }
        xml.add("wsag:InitiatorAgreementEPR", &self.initiator);
        xml.add("wsag:AgreementOffer", &self.offer);
        xml.insert_all(&self.noncritical);
        xml.add("wsag-neg:NegotiationExtension", &self.negotiation);
        xml.add("wsag-neg:RenegotiationExtension", &self.renegotiation);
        xml.finish()
    }
}

/// `wsag:CreateAgreementInput` that accepts a counter offer, whose context and terms it repeats word for word: of a negotiation, or of
/// the renegotiation of an agreement that is replaced.
///
/// # Errors
/// What a text lacks that is no [`crate::answers::CounterOffer::source`] with an id.
pub fn acceptance_input(
    counter_offer: &str,
    negotiation: &EndpointReference,
    replaced: Option<&EndpointReference>,
) -> Result<String, Violation> {
    let lacking = |message: &str| Violation {
        path: "/".to_owned(),
        kind: ViolationKind::Structure,
        message: message.to_owned(),
    };
    let document = Document::written(counter_offer).map_err(|why| lacking(&why.to_string()))?;
    let id = document.root().attribute(WSAG_NEG, "OfferId");
    let id = id.ok_or_else(|| lacking("the attribute wsag-neg:OfferId is required"))?;
    let offer = document
        .offer_xml()
        .ok_or_else(|| lacking("an offer is expected"))?;
    let context = NegotiationOfferContext {
        counter_offer_to: id.to_owned(),
        expiration_time: None,
        creator: NegotiationRole::Responder,
        state: OfferState::Acceptable,
        state_extensions: Vec::new(),
        extensions: Vec::new(),
    };
    let mut xml = Xml::document("wsag:CreateAgreementInput", &["wsag", "wsag-neg", "wsa"]);
    xml.insert(&Fragment::written(offer));
    match replaced {
        None => {
            let extension = NegotiationExtension {
                negotiation: Some(negotiation.clone()),
                initiator_negotiation: None,
                context,
                extension: None,
            };
            xml.add("wsag-neg:NegotiationExtension", &extension);
        }
        Some(replaced) => {
            let extension = RenegotiationExtension {
                negotiation: negotiation.clone(),
                initiator_negotiation: None,
                responder_agreement: replaced.clone(),
                context,
                extension: None,
            };
            xml.add("wsag-neg:RenegotiationExtension", &extension);
        }
    }
    Ok(xml.finish())
}

/// `wsag:CreateAgreementResponse`: the answer to an agreement that is observed, with the first of the agreements of the same party that
/// moved to make room for it and how many there are, and with the choices that were made where the offer left them.
pub fn create_agreement_response(
    created: &EndpointReference,
    (moved, moved_count): (&[Moved], usize),
    choices: &[CompositorChoice],
) -> String {
    let prefixes: &[&str] = if moved.is_empty() && moved_count == 0 && choices.is_empty() {
        &["wsag", "wsa"]
    } else {
        &["wsag", "wsa", "bsp"]
    };
    let mut xml = Xml::document("wsag:CreateAgreementResponse", prefixes);
    xml.add("wsag:CreatedAgreementEPR", created);
    xml.add_all("bsp:Moved", moved);
    if moved_count > 0 {
        xml.start("bsp:MovedCount");
        xml.value(moved_count);
        xml.end();
    }
    xml.add_all("bsp:Choice", choices);
    xml.finish()
}

/// `wsag:CreatePendingAgreementResponse`: the answer to an agreement that is not decided yet.
pub fn create_pending_agreement_response(created: &EndpointReference) -> String {
    let mut xml = Xml::document("wsag:CreatePendingAgreementResponse", &["wsag", "wsa"]);
    xml.add("wsag:CreatedAgreementEPR", created);
    xml.finish()
}

/// `wsag:TerminateInput` with its one reason.
pub fn terminate_input(reason: &Fragment) -> String {
    Xml::of_fragments("wsag:TerminateInput", &["wsag"], std::slice::from_ref(reason))
}

/// `wsag:TerminateResponse`: the agreement ends or has ended.
pub fn terminate_response() -> String {
    Xml::of_fragments("wsag:TerminateResponse", &["wsag"], &[])
}

/// `wsag:AcceptAgreementInput`: the decision of a pending agreement, called back, as [`reject_agreement_input`] is.
pub fn accept_agreement_input(parameters: Option<&Fragment>, agreement: &EndpointReference) -> String {
    decision_input("wsag:AcceptAgreementInput", parameters, agreement, &[])
}

/// `wsag:RejectAgreementInput`: the decision of a pending agreement, called back, with reasons. Without SOAP the endpoint's reference
/// parameters have no header to stand in: they come first in the message, followed by the reference of the agreement.
pub fn reject_agreement_input(
    parameters: Option<&Fragment>,
    agreement: &EndpointReference,
    reasons: &[Fragment],
) -> String {
    decision_input("wsag:RejectAgreementInput", parameters, agreement, reasons)
}

fn decision_input(
    root: &'static str,
    parameters: Option<&Fragment>,
    agreement: &EndpointReference,
    reasons: &[Fragment],
) -> String {
    let mut xml = Xml::document(root, &["wsag", "wsa"]);
    xml.insert_all(parameters);
    xml.add("wsa:EndpointReference", agreement);
    xml.insert_all(reasons);
    xml.finish()
}

/// A reason in our own words, for [`terminate_input`] and [`reject_agreement_input`].
pub fn reason_fragment(text: &str) -> Fragment {
    Xml::said("bsp:Reason", text)
}
