//! Negotiation (GFD.193): its operations, properties and offers, and the reference to it in the request that creates an agreement.

mod items;

use serde::{Deserialize, Serialize};

use crate::agreements::Context;
use crate::endpoint::EndpointReference;
use crate::faults::{FaultViolation, read_violations_of_fault};
use crate::quotation::Quotation;
use crate::refusals::Refusal;
use crate::templates::Template;
use crate::terms::Terms;
use crate::travel::Travel;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSAG, WSAG_NEG};
use crate::xml::{
    DateTime, Document, DocumentCheck, Fragment, NamedValue, Node, Readable, Violation, ViolationKind,
    Violations, WrittenValue, Xml, check_repeated_element, element, read_foreign_children, read_simple,
    service_values,
};

pub use items::{NegotiationConstraints, NegotiationItem, Requirement};

/// Prefixes that the messages of a negotiation use.
const PREFIXES: [&str; 4] = ["wsag", "wsag-neg", "wsa", "bsp"];

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

service_values! {
    /// A side of a negotiation.
    #[derive(Serialize, Deserialize)]
    pub enum NegotiationRole {
        /// The party that asked for the negotiation.
        #[serde(rename = "NegotiationInitiator")]
        Initiator = "NegotiationInitiator",
        /// The party that was asked: here the service.
        #[serde(rename = "NegotiationResponder")]
        Responder = "NegotiationResponder",
    }
}

/// Reads a noncritical extension: a foreign element, which need not be understood. Its type is WS-Agreement's everywhere.
pub(crate) fn read_noncritical_negotiation_extension(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<Fragment> {
    read_foreign_children(check, node, WSAG, (1, 1), |_, _| ());
    Fragment::verbatim(check, node)
}

/// Reads critical extensions: the two of a negotiation, and a violation for every other one.
pub(crate) fn read_negotiation_extensions(
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

element! {
    /// `wsag-neg:NegotiationContext`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct NegotiationContext {
        /// The subject of the negotiation.
        pub kind: NegotiationKind = "wsag-neg:NegotiationType",
        /// Until when it lasts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expiration_time: Option<DateTime> = "wsag-neg:ExpirationTime",
        /// The initiator, verbatim: any text or element.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub negotiation_initiator: Option<Fragment> = "wsag-neg:NegotiationInitiator",
        /// The responder, verbatim: any text or element.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub negotiation_responder: Option<Fragment> = "wsag-neg:NegotiationResponder",
        /// Which of the two will answer the agreement's offer.
        pub agreement_responder: NegotiationRole = "wsag-neg:AgreementResponder",
        /// Where the agreement will be created.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub factory: Option<EndpointReference> = "wsag-neg:AgreementFactoryEPR",
        /// Foreign elements, verbatim.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub extensions: Vec<Fragment> = "wsag-neg:*",
    }
}

/// `wsag-neg:NegotiationType`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum NegotiationKind {
    /// Of a new agreement, with foreign elements verbatim.
    Negotiation(Vec<Fragment>),
    /// Of an agreement that is to be replaced.
    Renegotiation {
        /// The agreement at the responder.
        responder_agreement: EndpointReference,
        /// The agreement at the initiator.
        initiator_agreement: Option<EndpointReference>,
        /// Foreign elements, verbatim.
        extensions: Vec<Fragment>,
    },
}

/// `wsag-neg:InitiateNegotiationInput`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitiateNegotiationInput {
    /// The context of the negotiation.
    pub context: NegotiationContext,
    /// The initiator's own endpoint of the negotiation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<EndpointReference>,
    /// `NoncriticalExtension` elements, verbatim; they may be ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noncritical: Vec<Fragment>,
}

impl InitiateNegotiationInput {
    /// The input of a bare context.
    pub fn of(context: NegotiationContext) -> InitiateNegotiationInput {
        InitiateNegotiationInput {
            context,
            initiator: None,
            noncritical: Vec::new(),
        }
    }

    /// The input for a negotiation about a new agreement, or about one in place of the agreement at an address.
    pub fn about(agreement: Option<EndpointReference>) -> InitiateNegotiationInput {
        let kind = match agreement {
            None => NegotiationKind::Negotiation(Vec::new()),
            Some(responder_agreement) => NegotiationKind::Renegotiation {
                responder_agreement,
                initiator_agreement: None,
                extensions: Vec::new(),
            },
        };
        InitiateNegotiationInput::of(NegotiationContext {
            kind,
            expiration_time: None,
            negotiation_initiator: None,
            negotiation_responder: None,
            agreement_responder: NegotiationRole::Responder,
            factory: None,
            extensions: Vec::new(),
        })
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

impl Readable for NegotiationKind {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationKind> {
        check.children(node, |children| {
            let (name, kind) = children.one_of(WSAG_NEG, &["Negotiation", "Renegotiation"])?;
            if name == "Negotiation" {
                let extensions = read_foreign_children(
                    children.check,
                    kind,
                    WSAG_NEG,
                    (0, usize::MAX),
                    check_repeated_element,
                );
                return Some(NegotiationKind::Negotiation(extensions));
            }
            children.check.children(kind, |children| {
                let responder = children.required(WSAG_NEG, "ResponderAgreementEPR", Readable::read);
                Some(NegotiationKind::Renegotiation {
                    initiator_agreement: children.optional(WSAG_NEG, "InitiatorAgreementEPR", Readable::read),
                    extensions: children.many(WSAG_NEG, "*", Readable::read),
                    responder_agreement: responder?,
                })
            })
        })
    }
}

impl WrittenValue for NegotiationKind {
    fn write(&self, xml: &mut Xml) {
        match self {
            NegotiationKind::Negotiation(extensions) => {
                xml.start("wsag-neg:Negotiation");
                xml.insert_all(extensions);
            }
            NegotiationKind::Renegotiation {
                responder_agreement,
                initiator_agreement,
                extensions,
            } => {
                xml.start("wsag-neg:Renegotiation");
                xml.add("wsag-neg:ResponderAgreementEPR", responder_agreement);
                xml.add("wsag-neg:InitiatorAgreementEPR", initiator_agreement);
                xml.insert_all(extensions);
            }
        }
        xml.end();
    }
}

impl Readable for InitiateNegotiationInput {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<InitiateNegotiationInput> {
        check.children(node, |children| {
            let context = children.required(WSAG_NEG, "NegotiationContext", Readable::read);
            let initiator = children.optional(WSAG_NEG, "InitiatorNegotiationEPR", Readable::read);
            let noncritical = children.many(
                WSAG_NEG,
                "NoncriticalExtension",
                read_noncritical_negotiation_extension,
            );
            let critical = children.foreign(WSAG_NEG);
            read_negotiation_extensions(children.check, critical);
            Some(InitiateNegotiationInput {
                context: context?,
                initiator,
                noncritical,
            })
        })
    }
}

element! {
    /// `wsag-neg:NegotiationOffer` or `wsag-neg:NegotiationCounterOffer`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct NegotiationOffer {
        /// Identity in its negotiation; the responder assigns one where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub offer_id: Option<String> = @"wsag-neg:OfferId" by parse_token,
        /// The identity that the initiator asks for its agreement.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agreement_id: Option<String> = @"wsag:AgreementId" by parse_token,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String> = "wsag:Name",
        /// The sides of the agreement, and its template.
        pub context: Context = "wsag:Context",
        /// The terms of the agreement.
        pub terms: Terms = "wsag:Terms",
        /// The offer that it answers, its maker, and its state.
        pub offer_context: NegotiationOfferContext = "wsag-neg:NegotiationOfferContext",
        /// The constraints that an answer must or should keep.
        pub constraints: NegotiationConstraints = "wsag-neg:NegotiationConstraints",
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
    pub state: OfferState,
    /// Foreign elements in the state, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_extensions: Vec<Fragment>,
    /// Foreign elements, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Fragment>,
}

service_values! {
    /// State of an offer (GFD.193, section 4).
    #[derive(Serialize, Deserialize)]
    pub enum OfferState {
        /// A proposal that binds neither side.
        Advisory = "Advisory",
        /// A proposal that must be answered Acceptable or Rejected.
        Solicited = "Solicited",
        /// Its maker would take it.
        Acceptable = "Acceptable",
        /// Neither it nor any answer to it can be accepted.
        Rejected = "Rejected",
    }
}

impl Readable for NegotiationOfferContext {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationOfferContext> {
        check.children(node, |children| {
            let counter_offer_to = children.required(WSAG_NEG, "CounterOfferTo", read_simple(parse_token));
            let expiration_time = children.optional(WSAG_NEG, "ExpirationTime", DateTime::read);
            let creator = children.required(WSAG_NEG, "Creator", NegotiationRole::read);
            let state = children.required(WSAG_NEG, "State", read_state_of_negotiation_offer);
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
        let read = read_fragment_of_negotiation_offer(&self.extensions, "Travel", Travel::read);
        read.ok().flatten()
    }

    /// What the counter offer amounts to, where its maker says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn quotation(&self) -> Result<Option<Quotation>, Violations> {
        read_fragment_of_negotiation_offer(&self.extensions, "Quotation", Quotation::read)
    }

    /// Why the plan of its maker refuses, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn refusal(&self) -> Result<Option<Refusal>, Violations> {
        read_fragment_of_negotiation_offer(&self.state_extensions, "Refusal", Refusal::read)
    }

    /// What its maker finds wrong with the words of the offer, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn violations(&self) -> Result<Vec<FaultViolation>, Violations> {
        let read = |check: &mut DocumentCheck, node: Node<'_>| Some(read_violations_of_fault(check, node));
        Ok(
            read_fragment_of_negotiation_offer(&self.state_extensions, "Violations", read)?
                .unwrap_or_default(),
        )
    }
}

/// Reads the element of ours of this name among fragments.
fn read_fragment_of_negotiation_offer<T>(
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

fn read_state_of_negotiation_offer(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<(OfferState, Vec<Fragment>)> {
    check.children(node, |children| {
        let names = OfferState::NAMES.iter().map(|(_, name)| *name);
        let (name, state) = children.one_of(WSAG_NEG, &names.collect::<Vec<_>>())?;
        let extensions = read_foreign_children(children.check, state, WSAG_NEG, (0, 1), |check, node| {
            if node.is(BSP, "Refusal") {
                Refusal::read(check, node);
            } else if node.is(BSP, "Violations") {
                read_violations_of_fault(check, node);
            } else {
                check_repeated_element(check, node);
            }
        });
        OfferState::parse(name).zip(Some(extensions))
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

/// An offer of a message, read by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiationOfferByItself {
    /// The offer, as far as what it asks for is known.
    pub offer: NegotiationOffer,
    /// What it asks for and cannot have here; nothing where it can be answered.
    pub unsupported: Vec<Violation>,
}

impl Readable for NegotiationOfferByItself {
    /// What one offer asks for and cannot have is no fault of its message, and leaves the other offers as they are.
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationOfferByItself> {
        const UNSUPPORTED: [ViolationKind; 2] = [ViolationKind::NotSupported, ViolationKind::UnknownTerm];
        let mut own = DocumentCheck::default();
        let offer = NegotiationOffer::read(&mut own, node);
        let unsupported = own.into_violations();
        match offer {
            Some(mut offer)
                if unsupported
                    .iter()
                    .all(|unsupported| UNSUPPORTED.contains(&unsupported.kind)) =>
            {
                offer.terms.leave_out_empty();
                Some(NegotiationOfferByItself { offer, unsupported })
            }
            _ => {
                check.extend(unsupported);
                None
            }
        }
    }
}

impl InitiateNegotiationInput {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag-neg:InitiateNegotiationInput", &PREFIXES);
        xml.add("wsag-neg:NegotiationContext", &self.context);
        xml.add("wsag-neg:InitiatorNegotiationEPR", &self.initiator);
        xml.insert_all(&self.noncritical);
        xml.finish()
    }
}

impl NegotiationProperties {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag-neg:NegotiationProperties", &PREFIXES);
        xml.add("wsag-neg:NegotiationContext", &self.context);
        for template in &self.templates {
            xml.insert(&template.negotiable());
        }
        xml.add("wsag-neg:NegotiationOffer", &self.offers);
        xml.finish()
    }
}

/// `wsag-neg:InitiateNegotiationOutput`: the negotiation that was opened.
pub fn initiate_negotiation_output(created: &EndpointReference) -> String {
    let mut xml = Xml::document("wsag-neg:InitiateNegotiationOutput", &PREFIXES);
    xml.add("wsag-neg:CreatedNegotiationEPR", created);
    xml.finish()
}

/// `wsag-neg:NegotiateInput`: offers, at least one.
pub fn negotiate_input(offers: &[NegotiationOffer]) -> String {
    write_negotiation_with_offers("wsag-neg:NegotiateInput", "wsag-neg:NegotiationOffer", offers)
}

/// `wsag-neg:NegotiateOutput`: counter offers, possibly none.
pub fn negotiate_output(offers: &[NegotiationOffer]) -> String {
    write_negotiation_with_offers(
        "wsag-neg:NegotiateOutput",
        "wsag-neg:NegotiationCounterOffer",
        offers,
    )
}

/// `bsp:FreshOffers`: offers that are possible now in place of an offer that cannot be accepted any more, for a fault.
pub fn fresh_negotiation_offers(offers: &[NegotiationOffer]) -> Fragment {
    let mut xml = Xml::fragment("bsp:FreshOffers", &PREFIXES);
    xml.add_all("wsag-neg:NegotiationCounterOffer", offers);
    xml.into_fragment()
}

/// `wsag-neg:AdvertiseInput`: offers that ask for no answer, at least one.
pub fn advertise_input(offers: &[NegotiationOffer]) -> String {
    write_negotiation_with_offers("wsag-neg:AdvertiseInput", "wsag-neg:NegotiationOffer", offers)
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

fn write_negotiation_with_offers(
    root: &'static str,
    name: &'static str,
    offers: &[NegotiationOffer],
) -> String {
    let mut xml = Xml::document(root, &PREFIXES);
    xml.add_all(name, offers);
    xml.finish()
}
