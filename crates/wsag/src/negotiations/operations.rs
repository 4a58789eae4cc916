//! The operations of a negotiation and its properties.

use crate::endpoint::{self, EndpointReference};
use crate::negotiations::offers::{NegotiationOffer, read_offer};
use crate::negotiations::{NegotiationRole, read_extensions, read_noncritical};
use crate::templates::Template;
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::ns::WSAG_NEG;
use crate::xml::reader::{Check, fragments, read_any, simple, verbatim};
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// Prefixes that the messages of a negotiation use.
const PREFIXES: [&str; 4] = ["wsag", "wsag-neg", "wsa", "bsp"];

/// `wsag-neg:NegotiationContext`.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationContext {
    /// The subject of the negotiation.
    pub kind: NegotiationKind,
    /// Until when it lasts.
    pub expiration_time: Option<DateTime>,
    /// The initiator, verbatim: any text or element.
    pub negotiation_initiator: Option<Fragment>,
    /// The responder, verbatim: any text or element.
    pub negotiation_responder: Option<Fragment>,
    /// Which of the two will answer the agreement's offer.
    pub agreement_responder: NegotiationRole,
    /// Where the agreement will be created.
    pub factory: Option<EndpointReference>,
    /// Foreign elements, verbatim.
    pub extensions: Vec<Fragment>,
}

/// `wsag-neg:NegotiationType`.
#[derive(Debug, Clone, PartialEq)]
pub enum NegotiationKind {
    /// Of a new agreement, with foreign elements verbatim.
    Negotiation(Vec<Fragment>),
    /// Of an agreement that is to be replaced.
    Renegotiation {
        /// The agreement at the responder.
        responder_agreement: EndpointReference,
        /// The agreement at the initiator.
        initiator_agreement: Option<EndpointReference>,
    },
}

/// `wsag-neg:InitiateNegotiationInput`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitiateInput {
    /// The context of the negotiation.
    pub context: NegotiationContext,
    /// The initiator's own endpoint of the negotiation.
    pub initiator: Option<EndpointReference>,
    /// `NoncriticalExtension` elements, verbatim; they may be ignored.
    pub noncritical: Vec<Fragment>,
}

impl InitiateInput {
    /// The input of a bare context.
    pub fn of(context: NegotiationContext) -> InitiateInput {
        InitiateInput {
            context,
            initiator: None,
            noncritical: Vec::new(),
        }
    }
}

/// `wsag-neg:NegotiationProperties`: a negotiation with its whole tree of offers.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationProperties {
    /// The context of the negotiation.
    pub context: NegotiationContext,
    /// The templates that may be negotiated.
    pub templates: Vec<Template>,
    /// Every offer and counter offer, oldest first; each names the one that it answers.
    pub offers: Vec<NegotiationOffer>,
}

/// Reads a context; None only after a violation was added.
pub(crate) fn read_context(check: &mut Check, node: Node<'_>) -> Option<NegotiationContext> {
    check.children(node, |children| {
        let kind = children.required(WSAG_NEG, "NegotiationType", read_kind);
        let expiration_time = children.optional(WSAG_NEG, "ExpirationTime", simple(str::parse));
        let negotiation_initiator = children.optional(WSAG_NEG, "NegotiationInitiator", verbatim);
        let negotiation_responder = children.optional(WSAG_NEG, "NegotiationResponder", verbatim);
        let agreement_responder = children.required(WSAG_NEG, "AgreementResponder", simple(named));
        Some(NegotiationContext {
            expiration_time,
            negotiation_initiator,
            negotiation_responder,
            factory: children.optional(WSAG_NEG, "AgreementFactoryEPR", endpoint::read),
            extensions: fragments(&children.foreign(WSAG_NEG)),
            kind: kind?,
            agreement_responder: agreement_responder?,
        })
    })
}

fn read_kind(check: &mut Check, node: Node<'_>) -> Option<NegotiationKind> {
    check.children(node, |children| {
        let (name, kind) = children.one_of(WSAG_NEG, &["Negotiation", "Renegotiation"])?;
        if name == "Negotiation" {
            let extensions = read_any(children.check, kind, 0, usize::MAX);
            return Some(NegotiationKind::Negotiation(extensions));
        }
        children.check.children(kind, |children| {
            let responder = children.required(WSAG_NEG, "ResponderAgreementEPR", endpoint::read);
            Some(NegotiationKind::Renegotiation {
                initiator_agreement: children.optional(WSAG_NEG, "InitiatorAgreementEPR", endpoint::read),
                responder_agreement: responder?,
            })
        })
    })
}

pub(crate) fn read_initiate(check: &mut Check, node: Node<'_>) -> Option<InitiateInput> {
    check.children(node, |children| {
        let context = children.required(WSAG_NEG, "NegotiationContext", read_context);
        let initiator = children.optional(WSAG_NEG, "InitiatorNegotiationEPR", endpoint::read);
        let noncritical = children.many(WSAG_NEG, "NoncriticalExtension", read_noncritical);
        let critical = children.foreign(WSAG_NEG);
        read_extensions(children.check, critical);
        Some(InitiateInput {
            context: context?,
            initiator,
            noncritical,
        })
    })
}

/// Reads offers of this name, at least `least` of them, and the foreign elements that follow.
pub(crate) fn read_offers<'d>(
    check: &mut Check,
    node: Node<'d>,
    name: &'static str,
    least: usize,
) -> (Vec<NegotiationOffer>, Vec<Node<'d>>) {
    check.children(node, |children| {
        let offers = match least {
            0 => children.many(WSAG_NEG, name, read_offer),
            _ => children.at_least_one(WSAG_NEG, name, read_offer),
        };
        let foreign = match node.local() {
            "AdvertiseInput" => Vec::new(),
            _ => children.foreign(WSAG_NEG),
        };
        (offers, foreign)
    })
}

fn write_context(xml: &mut Xml, context: &NegotiationContext) {
    xml.start("wsag-neg:NegotiationContext");
    xml.start("wsag-neg:NegotiationType");
    match &context.kind {
        NegotiationKind::Negotiation(extensions) => {
            xml.start("wsag-neg:Negotiation");
            xml.insert_all(extensions);
            xml.end();
        }
        NegotiationKind::Renegotiation {
            responder_agreement,
            initiator_agreement,
        } => {
            xml.start("wsag-neg:Renegotiation");
            endpoint::write(xml, "wsag-neg:ResponderAgreementEPR", responder_agreement);
            endpoint::write(
                xml,
                "wsag-neg:InitiatorAgreementEPR",
                initiator_agreement.as_ref(),
            );
            xml.end();
        }
    }
    xml.end();
    xml.optional_element("wsag-neg:ExpirationTime", context.expiration_time);
    xml.insert_all(&context.negotiation_initiator);
    xml.insert_all(&context.negotiation_responder);
    xml.element("wsag-neg:AgreementResponder", context.agreement_responder.name());
    endpoint::write(xml, "wsag-neg:AgreementFactoryEPR", context.factory.as_ref());
    xml.insert_all(&context.extensions);
    xml.end();
}

impl InitiateInput {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag-neg:InitiateNegotiationInput", &PREFIXES);
        write_context(&mut xml, &self.context);
        let initiator = self.initiator.as_ref();
        endpoint::write(&mut xml, "wsag-neg:InitiatorNegotiationEPR", initiator);
        xml.insert_all(&self.noncritical);
        xml.finish()
    }
}

impl NegotiationProperties {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag-neg:NegotiationProperties", &PREFIXES);
        write_context(&mut xml, &self.context);
        for template in &self.templates {
            xml.insert(&template.negotiable());
        }
        for offer in &self.offers {
            offer.write(&mut xml, "wsag-neg:NegotiationOffer");
        }
        xml.finish()
    }
}

/// `wsag-neg:InitiateNegotiationOutput`: the negotiation that was opened.
pub fn initiate_negotiation_output(created: &EndpointReference) -> String {
    let mut xml = Xml::document("wsag-neg:InitiateNegotiationOutput", &PREFIXES);
    endpoint::write(&mut xml, "wsag-neg:CreatedNegotiationEPR", created);
    xml.finish()
}

/// `wsag-neg:NegotiateInput`: offers, at least one.
pub fn negotiate_input(offers: &[NegotiationOffer]) -> String {
    with_offers("wsag-neg:NegotiateInput", "wsag-neg:NegotiationOffer", offers)
}

/// `wsag-neg:NegotiateOutput`: counter offers, possibly none.
pub fn negotiate_output(offers: &[NegotiationOffer]) -> String {
    with_offers(
        "wsag-neg:NegotiateOutput",
        "wsag-neg:NegotiationCounterOffer",
        offers,
    )
}

/// `bsp:FreshOffers`: offers that are possible now in place of an offer that cannot be accepted any more, for a fault.
pub fn fresh_offers(offers: &[NegotiationOffer]) -> Fragment {
    let mut xml = Xml::fragment("bsp:FreshOffers", &PREFIXES);
    for offer in offers {
        offer.write(&mut xml, "wsag-neg:NegotiationCounterOffer");
    }
    xml.into_fragment()
}

/// `wsag-neg:AdvertiseInput`: offers that ask for no answer, at least one.
pub fn advertise_input(offers: &[NegotiationOffer]) -> String {
    with_offers("wsag-neg:AdvertiseInput", "wsag-neg:NegotiationOffer", offers)
}

/// `wsag-neg:AdvertiseOutput`.
pub fn advertise_output() -> String {
    Xml::of_fragments("wsag-neg:AdvertiseOutput", &PREFIXES, &[])
}

/// `wsag-neg:TerminateInput`: ends a negotiation, with reasons where there are any.
pub fn terminate_negotiation_input(reasons: &[Fragment]) -> String {
    Xml::of_fragments("wsag-neg:TerminateInput", &PREFIXES, reasons)
}

/// `wsag-neg:TerminateResponse`: the negotiation has ended.
pub fn terminate_negotiation_response() -> String {
    Xml::of_fragments("wsag-neg:TerminateResponse", &PREFIXES, &[])
}

fn with_offers(root: &'static str, name: &'static str, offers: &[NegotiationOffer]) -> String {
    let mut xml = Xml::document(root, &PREFIXES);
    for offer in offers {
        offer.write(&mut xml, name);
    }
    xml.finish()
}
