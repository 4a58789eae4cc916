//! Negotiation (GFD.193): offers and counter offers, the operations on them, and the reference to the negotiation in the request
//! that creates an agreement.

mod offers;
mod operations;

use crate::document::{Fragment, Node};
use crate::endpoint::{self, EndpointReference};
use crate::ns::WSAG_NEG;
use crate::reader::{Check, Sequence, fragments};
use crate::terms::token;
use crate::time::DateTime;
use crate::writer::Xml;

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

impl NegotiationRole {
    pub(crate) fn parse(text: &str) -> Result<NegotiationRole, String> {
        match text {
            "NegotiationInitiator" => Ok(NegotiationRole::NegotiationInitiator),
            "NegotiationResponder" => Ok(NegotiationRole::NegotiationResponder),
            _ => Err("NegotiationInitiator or NegotiationResponder is expected".to_owned()),
        }
    }

    /// As the specification writes it.
    pub fn name(self) -> &'static str {
        match self {
            NegotiationRole::NegotiationInitiator => "NegotiationInitiator",
            NegotiationRole::NegotiationResponder => "NegotiationResponder",
        }
    }
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

impl NegotiationOfferState {
    /// The state of this name.
    pub fn of(name: &str) -> Option<NegotiationOfferState> {
        let all = [
            NegotiationOfferState::Advisory,
            NegotiationOfferState::Solicited,
            NegotiationOfferState::Acceptable,
            NegotiationOfferState::Rejected,
        ];
        all.into_iter().find(|state| state.name() == name)
    }

    /// As the specification writes it.
    pub fn name(self) -> &'static str {
        match self {
            NegotiationOfferState::Advisory => "Advisory",
            NegotiationOfferState::Solicited => "Solicited",
            NegotiationOfferState::Acceptable => "Acceptable",
            NegotiationOfferState::Rejected => "Rejected",
        }
    }

    fn element(self) -> &'static str {
        match self {
            NegotiationOfferState::Advisory => "wsag-neg:Advisory",
            NegotiationOfferState::Solicited => "wsag-neg:Solicited",
            NegotiationOfferState::Acceptable => "wsag-neg:Acceptable",
            NegotiationOfferState::Rejected => "wsag-neg:Rejected",
        }
    }
}

pub(crate) fn read_extension(check: &mut Check, node: Node<'_>) -> Option<NegotiationExtension> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let negotiation = sequence.optional(WSAG_NEG, "ResponderNegotiationEPR");
    let context = sequence.required(check, WSAG_NEG, "NegotiationOfferContext");
    sequence.end(check);
    let negotiation = negotiation.and_then(|node| endpoint::read(check, node));
    let context = read_offer_context(check, context?)?;
    Some(NegotiationExtension { negotiation, context })
}

pub(crate) fn read_reextension(check: &mut Check, node: Node<'_>) -> Option<RenegotiationExtension> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let negotiation = sequence.optional(WSAG_NEG, "ResponderNegotiationEPR");
    let responder = sequence.required(check, WSAG_NEG, "ResponderAgreementEPR");
    let initiator = sequence.optional(WSAG_NEG, "InitiatorAgreementEPR");
    let context = sequence.required(check, WSAG_NEG, "NegotiationOfferContext");
    sequence.end(check);
    let negotiation = negotiation.and_then(|node| endpoint::read(check, node));
    let responder_agreement = responder.and_then(|node| endpoint::read(check, node));
    let initiator_agreement = initiator.and_then(|node| endpoint::read(check, node));
    let context = read_offer_context(check, context?)?;
    Some(RenegotiationExtension {
        negotiation,
        responder_agreement: responder_agreement?,
        initiator_agreement,
        context,
    })
}

pub(crate) fn read_offer_context(check: &mut Check, node: Node<'_>) -> Option<NegotiationOfferContext> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let counter_offer_to = sequence.required(check, WSAG_NEG, "CounterOfferTo");
    let expiration = sequence.optional(WSAG_NEG, "ExpirationTime");
    let creator = sequence.required(check, WSAG_NEG, "Creator");
    let state = sequence.required(check, WSAG_NEG, "State");
    let extensions = sequence.foreign(WSAG_NEG);
    sequence.end(check);
    let counter_offer_to = counter_offer_to.and_then(|node| check.simple(node, token));
    let expiration_time = expiration.and_then(|node| check.date_time(node));
    let creator = creator.and_then(|node| check.simple(node, NegotiationRole::parse));
    let (state, state_extensions) = read_state(check, state?)?;
    Some(NegotiationOfferContext {
        counter_offer_to: counter_offer_to?,
        expiration_time,
        creator: creator?,
        state,
        state_extensions,
        extensions: fragments(&extensions),
    })
}

fn read_state(check: &mut Check, node: Node<'_>) -> Option<(NegotiationOfferState, Vec<Fragment>)> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let found = sequence.one_of(WSAG_NEG, &["Advisory", "Solicited", "Acceptable", "Rejected"]);
    let Some((name, state)) = found else {
        let message = "one of wsag-neg:Advisory, wsag-neg:Solicited, wsag-neg:Acceptable or wsag-neg:Rejected is \
                       expected in it";
        check.structure(node, message);
        return None;
    };
    sequence.end(check);
    let extensions = crate::agreements::read_any(check, state, 0, usize::MAX);
    Some((NegotiationOfferState::of(name)?, extensions))
}

pub(crate) fn write_extension(xml: &mut Xml, extension: &NegotiationExtension) {
    xml.start("wsag-neg:NegotiationExtension");
    if let Some(negotiation) = &extension.negotiation {
        negotiation.write(xml, "wsag-neg:ResponderNegotiationEPR");
    }
    write_offer_context(xml, &extension.context);
    xml.end();
}

pub(crate) fn write_reextension(xml: &mut Xml, extension: &RenegotiationExtension) {
    xml.start("wsag-neg:RenegotiationExtension");
    if let Some(negotiation) = &extension.negotiation {
        negotiation.write(xml, "wsag-neg:ResponderNegotiationEPR");
    }
    extension
        .responder_agreement
        .write(xml, "wsag-neg:ResponderAgreementEPR");
    if let Some(initiator) = &extension.initiator_agreement {
        initiator.write(xml, "wsag-neg:InitiatorAgreementEPR");
    }
    write_offer_context(xml, &extension.context);
    xml.end();
}

pub(crate) fn write_offer_context(xml: &mut Xml, context: &NegotiationOfferContext) {
    xml.start("wsag-neg:NegotiationOfferContext");
    xml.element("wsag-neg:CounterOfferTo", &context.counter_offer_to);
    xml.optional_element("wsag-neg:ExpirationTime", context.expiration_time);
    xml.element("wsag-neg:Creator", context.creator.name());
    xml.start("wsag-neg:State");
    xml.start(context.state.element());
    xml.insert_all(&context.state_extensions);
    xml.end();
    xml.end();
    xml.insert_all(&context.extensions);
    xml.end();
}
