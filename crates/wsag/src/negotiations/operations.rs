//! The operations of a negotiation and its properties.

use crate::agreements::{read_any, read_extensions};
use crate::document::{Fragment, Node};
use crate::endpoint::{self, EndpointReference};
use crate::negotiations::NegotiationRole;
use crate::negotiations::offers::{NegotiationOffer, read_offer};
use crate::ns::WSAG_NEG;
use crate::reader::{Check, Sequence, fragments};
use crate::templates::Template;
use crate::time::DateTime;
use crate::writer::Xml;

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
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let kind = sequence.required(check, WSAG_NEG, "NegotiationType");
    let expiration = sequence.optional(WSAG_NEG, "ExpirationTime");
    let initiator = sequence.optional(WSAG_NEG, "NegotiationInitiator");
    let responder = sequence.optional(WSAG_NEG, "NegotiationResponder");
    let agreement_responder = sequence.required(check, WSAG_NEG, "AgreementResponder");
    let factory = sequence.optional(WSAG_NEG, "AgreementFactoryEPR");
    let extensions = sequence.foreign(WSAG_NEG);
    sequence.end(check);
    let kind = kind.and_then(|node| read_kind(check, node));
    let expiration_time = expiration.and_then(|node| check.date_time(node));
    let agreement_responder = agreement_responder.and_then(|node| check.simple(node, NegotiationRole::parse));
    let factory = factory.and_then(|node| endpoint::read(check, node));
    Some(NegotiationContext {
        kind: kind?,
        expiration_time,
        negotiation_initiator: initiator.map(Node::fragment),
        negotiation_responder: responder.map(Node::fragment),
        agreement_responder: agreement_responder?,
        factory,
        extensions: fragments(&extensions),
    })
}

fn read_kind(check: &mut Check, node: Node<'_>) -> Option<NegotiationKind> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let found = sequence.one_of(WSAG_NEG, &["Negotiation", "Renegotiation"]);
    let Some((name, kind)) = found else {
        check.structure(
            node,
            "wsag-neg:Negotiation or wsag-neg:Renegotiation is expected in it",
        );
        return None;
    };
    sequence.end(check);
    if name == "Negotiation" {
        return Some(NegotiationKind::Negotiation(read_any(check, kind, 0, usize::MAX)));
    }
    check.attributes(kind, &[]);
    let mut sequence = Sequence::of(check, kind);
    let responder = sequence.required(check, WSAG_NEG, "ResponderAgreementEPR");
    let initiator = sequence.optional(WSAG_NEG, "InitiatorAgreementEPR");
    sequence.end(check);
    let responder_agreement = responder.and_then(|node| endpoint::read(check, node));
    let initiator_agreement = initiator.and_then(|node| endpoint::read(check, node));
    Some(NegotiationKind::Renegotiation {
        responder_agreement: responder_agreement?,
        initiator_agreement,
    })
}

pub(crate) fn read_initiate(check: &mut Check, node: Node<'_>) -> Option<InitiateInput> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let context = sequence.required(check, WSAG_NEG, "NegotiationContext");
    let initiator = sequence.optional(WSAG_NEG, "InitiatorNegotiationEPR");
    let noncritical = sequence.many(WSAG_NEG, "NoncriticalExtension");
    let critical = sequence.foreign(WSAG_NEG);
    sequence.end(check);
    let context = context.and_then(|node| read_context(check, node));
    let initiator = initiator.and_then(|node| endpoint::read(check, node));
    let noncritical = noncritical.into_iter().map(|node| {
        read_any(check, node, 0, usize::MAX);
        node.fragment()
    });
    let noncritical = noncritical.collect();
    read_extensions(check, critical);
    Some(InitiateInput {
        context: context?,
        initiator,
        noncritical,
    })
}

/// Reads offers of this name, at least `least` of them, and the foreign elements that follow.
pub(crate) fn read_offers<'d>(
    check: &mut Check,
    node: Node<'d>,
    name: &'static str,
    least: usize,
) -> (Vec<NegotiationOffer>, Vec<Node<'d>>) {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let offers = match least {
        0 => sequence.many(WSAG_NEG, name),
        _ => sequence.at_least_one(check, WSAG_NEG, name),
    };
    let foreign = if node.local() == "AdvertiseInput" {
        Vec::new()
    } else {
        sequence.foreign(WSAG_NEG)
    };
    sequence.end(check);
    (
        offers
            .into_iter()
            .filter_map(|node| read_offer(check, node))
            .collect(),
        foreign,
    )
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
            responder_agreement.write(xml, "wsag-neg:ResponderAgreementEPR");
            if let Some(initiator) = initiator_agreement {
                initiator.write(xml, "wsag-neg:InitiatorAgreementEPR");
            }
            xml.end();
        }
    }
    xml.end();
    xml.optional_element("wsag-neg:ExpirationTime", context.expiration_time);
    xml.insert_all(context.negotiation_initiator.as_slice());
    xml.insert_all(context.negotiation_responder.as_slice());
    xml.element("wsag-neg:AgreementResponder", context.agreement_responder.name());
    if let Some(factory) = &context.factory {
        factory.write(xml, "wsag-neg:AgreementFactoryEPR");
    }
    xml.insert_all(&context.extensions);
    xml.end();
}

impl InitiateInput {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag-neg:InitiateNegotiationInput", &PREFIXES);
        write_context(&mut xml, &self.context);
        if let Some(initiator) = &self.initiator {
            initiator.write(&mut xml, "wsag-neg:InitiatorNegotiationEPR");
        }
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
    created.write(&mut xml, "wsag-neg:CreatedNegotiationEPR");
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
    Fragment::written(xml.finish())
}

/// `wsag-neg:AdvertiseInput`: offers that ask for no answer, at least one.
pub fn advertise_input(offers: &[NegotiationOffer]) -> String {
    with_offers("wsag-neg:AdvertiseInput", "wsag-neg:NegotiationOffer", offers)
}

/// `wsag-neg:AdvertiseOutput`.
pub fn advertise_output() -> String {
    Xml::document("wsag-neg:AdvertiseOutput", &PREFIXES).finish()
}

/// `wsag-neg:TerminateInput`: ends a negotiation, with reasons where there are any.
pub fn terminate_negotiation_input(reasons: &[Fragment]) -> String {
    let mut xml = Xml::document("wsag-neg:TerminateInput", &PREFIXES);
    xml.insert_all(reasons);
    xml.finish()
}

/// `wsag-neg:TerminateResponse`: the negotiation has ended.
pub fn terminate_negotiation_response() -> String {
    Xml::document("wsag-neg:TerminateResponse", &PREFIXES).finish()
}

fn with_offers(root: &'static str, name: &'static str, offers: &[NegotiationOffer]) -> String {
    let mut xml = Xml::document(root, &PREFIXES);
    for offer in offers {
        offer.write(&mut xml, name);
    }
    xml.finish()
}
