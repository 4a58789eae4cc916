//! Negotiation (GFD.193): offers and counter offers, the operations on them, and the reference to the negotiation in the request
//! that creates an agreement.

mod offers;
mod operations;

use serde::{Deserialize, Serialize};

use crate::endpoint::EndpointReference;
use crate::quotation::Quotation;
use crate::refusals::{FaultViolation, Refusal, read_violations};
use crate::travel::Travel;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSAG, WSAG_NEG};
use crate::xml::{
    DateTime, Document, DocumentCheck, Fragment, NamedValue, Node, Readable, ViolationKind, Violations,
    WrittenValue, Xml, check_repeated_element, element, named_values, read_foreign_elements, read_simple,
};

pub use offers::{NegotiationConstraints, NegotiationItem, NegotiationOffer, Requirement};
pub(crate) use operations::read_offers;
pub use operations::{
    InitiateInput, NegotiationContext, NegotiationKind, NegotiationProperties, OfferByItself,
    advertise_input, advertise_output, fresh_offers, initiate_negotiation_output, negotiate_input,
    negotiate_output, terminate_negotiation_input, terminate_negotiation_response,
};

element! {
    /// `wsag-neg:NegotiationExtension`: the agreement is made from a counter offer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct NegotiationExtension {
        /// The negotiation at the responder.
        pub negotiation: Option<EndpointReference> = "wsag-neg:ResponderNegotiationEPR",
        /// The negotiation at the initiator.
        pub initiator_negotiation: Option<EndpointReference> = "wsag-neg:InitiatorNegotiationEPR",
        /// The counter offer.
        pub context: NegotiationOfferContext = "wsag-neg:NegotiationOfferContext",
        /// A foreign element, verbatim.
        pub extension: Option<Fragment> = "wsag-neg:*",
    }
}

element! {
    /// `wsag-neg:RenegotiationExtension`: the agreement replaces another one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct RenegotiationExtension {
        /// The negotiation at the responder.
        pub negotiation: EndpointReference = "wsag-neg:ResponderNegotiationEPR",
        /// The negotiation at the initiator.
        pub initiator_negotiation: Option<EndpointReference> = "wsag-neg:InitiatorNegotiationEPR",
        /// The agreement to replace, at the responder.
        pub responder_agreement: EndpointReference = "wsag-neg:ResponderAgreementEPR",
        /// The counter offer.
        pub context: NegotiationOfferContext = "wsag-neg:NegotiationOfferContext",
        /// A foreign element, verbatim.
        pub extension: Option<Fragment> = "wsag-neg:*",
    }
}

/// `wsag-neg:NegotiationOfferContext`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiationOfferContext {
    /// The offer, or the template, that this one answers.
    pub counter_offer_to: String,
    /// Until when it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<DateTime>,
    /// The side that made it.
    pub creator: NegotiationRole,
    /// Its state.
    pub state: NegotiationOfferState,
    /// Foreign elements in the state, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_extensions: Vec<Fragment>,
    /// Foreign elements, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Fragment>,
}

named_values! {
    /// A side of a negotiation.
    pub enum NegotiationRole {
        /// The side that asked for the negotiation.
        NegotiationInitiator = "NegotiationInitiator",
        /// The side that was asked.
        NegotiationResponder = "NegotiationResponder",
    }
}

named_values! {
    /// State of a negotiation offer.
    pub enum NegotiationOfferState {
        /// A proposal that binds neither side.
        Advisory = "Advisory",
        /// A proposal that must be answered Acceptable or Rejected.
        Solicited = "Solicited",
        /// Its maker would take it.
        Acceptable = "Acceptable",
        /// It leads nowhere.
        Rejected = "Rejected",
    }
}

/// Reads a noncritical extension: a foreign element, which need not be understood. Its type is WS-Agreement's everywhere.
pub(crate) fn read_noncritical(check: &mut DocumentCheck, node: Node<'_>) -> Option<Fragment> {
    read_foreign_elements(check, node, WSAG, (1, 1), |_, _| ());
    Fragment::verbatim(check, node)
}

/// Reads critical extensions: the two of a negotiation, and a violation for every other one.
pub(crate) fn read_extensions(
    check: &mut DocumentCheck,
    critical: Vec<Node<'_>>,
) -> (Option<NegotiationExtension>, Option<RenegotiationExtension>) {
    let (mut negotiation, mut renegotiation) = (None, None);
    for node in critical {
        let in_creation = node.parent().is_some_and(|parent| parent.namespace() == WSAG);
        if in_creation && node.is(WSAG_NEG, "NegotiationExtension") && negotiation.is_none() {
            negotiation = Readable::read(check, node);
        } else if in_creation && node.is(WSAG_NEG, "RenegotiationExtension") && renegotiation.is_none() {
            renegotiation = Readable::read(check, node);
        } else {
            let parent = node.parent();
            // The other messages have no place for such an extension.
            let advice = if in_creation
                || parent.is_some_and(|parent| parent.is(WSAG_NEG, "InitiateNegotiationInput"))
            {
                "what may be ignored belongs in a NoncriticalExtension"
            } else {
                "what describes an offer may stand in its wsag:Context"
            };
            let message = format!("a critical extension that is not known here; {advice}");
            check.add(ViolationKind::UnknownExtension, node, message);
        }
    }
    (negotiation, renegotiation)
}

impl Readable for NegotiationOfferContext {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationOfferContext> {
        check.children(node, |children| {
            let counter_offer_to = children.required(WSAG_NEG, "CounterOfferTo", read_simple(parse_token));
            let expiration_time = children.optional(WSAG_NEG, "ExpirationTime", DateTime::read);
            let creator = children.required(WSAG_NEG, "Creator", NegotiationRole::read);
            let state = children.required(WSAG_NEG, "State", read_offer_state);
            let mut travels = 0;
            let extensions = children.many(WSAG_NEG, "*", |check, node| {
                if node.is(BSP, "Travel") {
                    travels += 1;
                    if travels == 2 {
                        check.structure(node, "only one bsp:Travel is expected");
                    }
                    Travel::read(check, node)?;
                } else if node.is(BSP, "Quotation") {
                    // A counter offer that is answered in its own words.
                    Quotation::read(check, node);
                } else {
                    check_repeated_element(check, node);
                }
                Some(node.fragment())
            });
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
}

impl NegotiationOfferContext {
    /// The way that the request has come, where its maker says it.
    pub fn travel(&self) -> Option<Travel> {
        // It was checked when the context was read.
        let read = read_own_fragment(&self.extensions, "Travel", Travel::read);
        read.ok().flatten()
    }

    /// What the counter offer amounts to, where its maker says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn quotation(&self) -> Result<Option<Quotation>, Violations> {
        read_own_fragment(&self.extensions, "Quotation", Quotation::read)
    }

    /// Why the plan of its maker refuses, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn refusal(&self) -> Result<Option<Refusal>, Violations> {
        read_own_fragment(&self.state_extensions, "Refusal", Refusal::read)
    }

    /// What its maker finds wrong with the words of the offer, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn violations(&self) -> Result<Vec<FaultViolation>, Violations> {
        let read = |check: &mut DocumentCheck, node: Node<'_>| Some(read_violations(check, node));
        Ok(read_own_fragment(&self.state_extensions, "Violations", read)?.unwrap_or_default())
    }
}

/// Reads the element of ours of this name among fragments.
fn read_own_fragment<T>(
    fragments: &[Fragment],
    local: &str,
    read: impl Fn(&mut DocumentCheck, Node<'_>) -> Option<T>,
) -> Result<Option<T>, Violations> {
    for fragment in fragments {
        // A fragment that cannot stand alone was refused with its document.
        let Ok(document) = Document::written(fragment.as_str()) else {
            continue;
        };
        if document.root().is(BSP, local) {
            let mut check = DocumentCheck::default();
            let value = read(&mut check, document.root());
            let found = check.into_violations();
            return if found.is_empty() {
                Ok(value)
            } else {
                Err(Violations(found))
            };
        }
    }
    Ok(None)
}

fn read_offer_state(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<(NegotiationOfferState, Vec<Fragment>)> {
    check.children(node, |children| {
        let names = NegotiationOfferState::NAMES.iter().map(|(_, name)| *name);
        let (name, state) = children.one_of(WSAG_NEG, &names.collect::<Vec<_>>())?;
        let extensions = read_foreign_elements(children.check, state, WSAG_NEG, (0, 1), |check, node| {
            if node.is(BSP, "Refusal") {
                Refusal::read(check, node);
            } else if node.is(BSP, "Violations") {
                read_violations(check, node);
            } else {
                check_repeated_element(check, node);
            }
        });
        NegotiationOfferState::parse(name).zip(Some(extensions))
    })
}

impl WrittenValue for NegotiationOfferContext {
    fn write(&self, xml: &mut Xml) {
        xml.add("wsag-neg:CounterOfferTo", &self.counter_offer_to);
        xml.add("wsag-neg:ExpirationTime", &self.expiration_time);
        xml.add("wsag-neg:Creator", &self.creator);
        xml.start("wsag-neg:State");
        xml.start(format!("wsag-neg:{}", self.state.name()));
        xml.insert_all(&self.state_extensions);
        xml.end();
        xml.end();
        xml.insert_all(&self.extensions);
    }
}
