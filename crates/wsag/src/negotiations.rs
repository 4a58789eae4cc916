//! Negotiation (GFD.193): offers and counter offers, the operations on them, and the reference to the negotiation in the request
//! that creates an agreement.

mod offers;
mod operations;

use crate::endpoint::{self, EndpointReference};
use crate::xml::datatypes::token;
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::reader::{Check, fragments, read_any, simple, verbatim};
use crate::xml::time::DateTime;
use crate::xml::violation::ViolationKind;
use crate::xml::writer::Xml;

pub(crate) use offers::read_offer;
pub use offers::{NegotiationConstraints, NegotiationItem, NegotiationOffer, Requirement};
pub use operations::{
    InitiateInput, NegotiationContext, NegotiationKind, NegotiationProperties, advertise_input,
    advertise_output, fresh_offers, initiate_negotiation_output, negotiate_input, negotiate_output,
    terminate_negotiation_input, terminate_negotiation_response,
};
pub(crate) use operations::{read_context, read_initiate, read_offers};

/// `wsag-neg:NegotiationExtension`: the agreement is made from a counter offer.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationExtension {
    /// The negotiation at the responder.
    pub negotiation: Option<EndpointReference>,
    /// The counter offer.
    pub context: NegotiationOfferContext,
}

/// `wsag-neg:RenegotiationExtension`: the agreement replaces another one.
#[derive(Debug, Clone, PartialEq)]
pub struct RenegotiationExtension {
    /// The negotiation at the responder.
    pub negotiation: Option<EndpointReference>,
    /// The agreement to replace, at the responder.
    pub responder_agreement: EndpointReference,
    /// The agreement to replace, at the initiator.
    pub initiator_agreement: Option<EndpointReference>,
    /// The counter offer.
    pub context: NegotiationOfferContext,
}

/// `wsag-neg:NegotiationOfferContext`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiationOfferContext {
    /// The offer, or the template, that this one answers.
    pub counter_offer_to: String,
    /// Until when it stands.
    pub expiration_time: Option<DateTime>,
    /// The side that made it.
    pub creator: NegotiationRole,
    /// Its state.
    pub state: NegotiationOfferState,
    /// Foreign elements in the state, verbatim.
    pub state_extensions: Vec<Fragment>,
    /// Foreign elements, verbatim.
    pub extensions: Vec<Fragment>,
}

/// A side of a negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NegotiationRole {
    /// The side that asked for the negotiation.
    NegotiationInitiator,
    /// The side that was asked.
    NegotiationResponder,
}

impl Named for NegotiationRole {
    const NAMES: &'static [(NegotiationRole, &'static str)] = &[
        (NegotiationRole::NegotiationInitiator, "NegotiationInitiator"),
        (NegotiationRole::NegotiationResponder, "NegotiationResponder"),
    ];
}

/// State of a negotiation offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NegotiationOfferState {
    /// A proposal that binds neither side.
    Advisory,
    /// A proposal that must be answered Acceptable or Rejected.
    Solicited,
    /// Its maker would take it.
    Acceptable,
    /// It leads nowhere.
    Rejected,
}

impl Named for NegotiationOfferState {
    const NAMES: &'static [(NegotiationOfferState, &'static str)] = &[
        (NegotiationOfferState::Advisory, "Advisory"),
        (NegotiationOfferState::Solicited, "Solicited"),
        (NegotiationOfferState::Acceptable, "Acceptable"),
        (NegotiationOfferState::Rejected, "Rejected"),
    ];
}

/// Reads a noncritical extension: foreign elements, which need not be understood.
pub(crate) fn read_noncritical(check: &mut Check, node: Node<'_>) -> Option<Fragment> {
    check.children(node, |children| children.foreign(node.namespace()));
    verbatim(check, node)
}

/// Reads critical extensions: the two of a negotiation, and a violation for every other one.
pub(crate) fn read_extensions(
    check: &mut Check,
    critical: Vec<Node<'_>>,
) -> (Option<NegotiationExtension>, Option<RenegotiationExtension>) {
    let (mut negotiation, mut renegotiation) = (None, None);
    for node in critical {
        let in_creation = node.parent().is_some_and(|parent| parent.namespace() == WSAG);
        if in_creation && node.is(WSAG_NEG, "NegotiationExtension") && negotiation.is_none() {
            negotiation = read_extension(check, node);
        } else if in_creation && node.is(WSAG_NEG, "RenegotiationExtension") && renegotiation.is_none() {
            renegotiation = read_reextension(check, node);
        } else {
            let message = "a critical extension that is not known here; what may be ignored belongs in a \
                           NoncriticalExtension";
            check.add(ViolationKind::UnknownExtension, node, message);
        }
    }
    (negotiation, renegotiation)
}

fn read_extension(check: &mut Check, node: Node<'_>) -> Option<NegotiationExtension> {
    check.children(node, |children| {
        let negotiation = children.optional(WSAG_NEG, "ResponderNegotiationEPR", endpoint::read);
        let context = children.required(WSAG_NEG, "NegotiationOfferContext", read_offer_context);
        Some(NegotiationExtension {
            negotiation,
            context: context?,
        })
    })
}

fn read_reextension(check: &mut Check, node: Node<'_>) -> Option<RenegotiationExtension> {
    check.children(node, |children| {
        let negotiation = children.optional(WSAG_NEG, "ResponderNegotiationEPR", endpoint::read);
        let responder_agreement = children.required(WSAG_NEG, "ResponderAgreementEPR", endpoint::read);
        let initiator_agreement = children.optional(WSAG_NEG, "InitiatorAgreementEPR", endpoint::read);
        let context = children.required(WSAG_NEG, "NegotiationOfferContext", read_offer_context);
        Some(RenegotiationExtension {
            negotiation,
            responder_agreement: responder_agreement?,
            initiator_agreement,
            context: context?,
        })
    })
}

fn read_offer_context(check: &mut Check, node: Node<'_>) -> Option<NegotiationOfferContext> {
    check.children(node, |children| {
        let counter_offer_to = children.required(WSAG_NEG, "CounterOfferTo", simple(token));
        let expiration_time = children.optional(WSAG_NEG, "ExpirationTime", simple(str::parse));
        let creator = children.required(WSAG_NEG, "Creator", simple(named));
        let state = children.required(WSAG_NEG, "State", read_state);
        let extensions = fragments(&children.foreign(WSAG_NEG));
        let (state, state_extensions) = state?;
        Some(NegotiationOfferContext {
            counter_offer_to: counter_offer_to?,
            expiration_time,
            creator: creator?,
            state,
            state_extensions,
            extensions,
        })
    })
}

fn read_state(check: &mut Check, node: Node<'_>) -> Option<(NegotiationOfferState, Vec<Fragment>)> {
    check.children(node, |children| {
        let names = NegotiationOfferState::NAMES.iter().map(|(_, name)| *name);
        let (name, state) = children.one_of(WSAG_NEG, &names.collect::<Vec<_>>())?;
        let extensions = read_any(children.check, state, 0, usize::MAX);
        NegotiationOfferState::parse(name).zip(Some(extensions))
    })
}

pub(crate) fn write_extension(xml: &mut Xml, extension: &NegotiationExtension) {
    xml.start("wsag-neg:NegotiationExtension");
    endpoint::write(
        xml,
        "wsag-neg:ResponderNegotiationEPR",
        extension.negotiation.as_ref(),
    );
    write_offer_context(xml, &extension.context);
    xml.end();
}

pub(crate) fn write_reextension(xml: &mut Xml, extension: &RenegotiationExtension) {
    let (responder, initiator) = (
        &extension.responder_agreement,
        extension.initiator_agreement.as_ref(),
    );
    xml.start("wsag-neg:RenegotiationExtension");
    endpoint::write(
        xml,
        "wsag-neg:ResponderNegotiationEPR",
        extension.negotiation.as_ref(),
    );
    endpoint::write(xml, "wsag-neg:ResponderAgreementEPR", responder);
    endpoint::write(xml, "wsag-neg:InitiatorAgreementEPR", initiator);
    write_offer_context(xml, &extension.context);
    xml.end();
}

fn write_offer_context(xml: &mut Xml, context: &NegotiationOfferContext) {
    xml.start("wsag-neg:NegotiationOfferContext");
    xml.element("wsag-neg:CounterOfferTo", &context.counter_offer_to);
    xml.optional_element("wsag-neg:ExpirationTime", context.expiration_time);
    xml.element("wsag-neg:Creator", context.creator.name());
    xml.start("wsag-neg:State");
    xml.start(format!("wsag-neg:{}", context.state.name()));
    xml.insert_all(&context.state_extensions);
    xml.end();
    xml.end();
    xml.insert_all(&context.extensions);
    xml.end();
}
