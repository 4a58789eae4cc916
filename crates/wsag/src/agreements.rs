//! Offers and the operations that make, accept, reject and end agreements (GFD.192, sections 4 and 9).

use crate::document::{Fragment, Made, Node};
use crate::endpoint::{self, EndpointReference};
use crate::negotiations::{self, NegotiationExtension, RenegotiationExtension};
use crate::ns::{WSAG, WSAG_NEG};
use crate::placement::Moved;
use crate::reader::{Check, Sequence, fragments};
use crate::terms::{self, CompositorChoice, Terms, token};
use crate::time::DateTime;
use crate::violation::ViolationKind;
use crate::writer::Xml;

/// `wsag:AgreementOffer`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreementOffer {
    /// For people.
    pub name: Option<String>,
    /// The identity that the initiator asks for; the responder assigns one where it is absent.
    pub agreement_id: Option<String>,
    /// The sides of the agreement, and its template.
    pub context: Context,
    /// The terms of the agreement.
    pub terms: Terms,
}

/// `wsag:Context`.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The initiator, verbatim: any text or element.
    pub agreement_initiator: Option<Fragment>,
    /// The responder, verbatim: any text or element.
    pub agreement_responder: Option<Fragment>,
    /// Which of the two provides the service.
    pub service_provider: Role,
    /// When the agreement ends to be valid.
    pub expiration_time: Option<DateTime>,
    /// The template that an offer is made from.
    pub template_id: Option<String>,
    /// The name of that template.
    pub template_name: Option<String>,
    /// Foreign elements, verbatim. They describe and ask for nothing.
    pub extensions: Vec<Fragment>,
}

/// A side of an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that made the offer.
    AgreementInitiator,
    /// The side that was offered.
    AgreementResponder,
}

impl Role {
    fn parse(text: &str) -> Result<Role, String> {
        match text {
            "AgreementInitiator" => Ok(Role::AgreementInitiator),
            "AgreementResponder" => Ok(Role::AgreementResponder),
            _ => Err("AgreementInitiator or AgreementResponder is expected".to_owned()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Role::AgreementInitiator => "AgreementInitiator",
            Role::AgreementResponder => "AgreementResponder",
        }
    }
}

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

impl CreateInput {
    /// The input of a bare offer.
    pub fn of(offer: AgreementOffer) -> CreateInput {
        CreateInput {
            acceptance: None,
            initiator: None,
            offer,
            noncritical: Vec::new(),
            negotiation: None,
            renegotiation: None,
        }
    }
}

/// Reads name, context and terms, which offers, templates and negotiation offers share, up to the end of the terms.
pub(crate) fn read_content(
    check: &mut Check,
    sequence: &mut Sequence<'_>,
) -> Option<(Option<String>, Context, Terms)> {
    let name = sequence
        .optional(WSAG, "Name")
        .and_then(|node| check.string(node));
    let context = sequence.required(check, WSAG, "Context");
    let terms = sequence.required(check, WSAG, "Terms");
    let context = context.and_then(|node| read_context(check, node));
    let terms = terms.map(|node| terms::read(check, node));
    Some((name, context?, terms?))
}

/// Reads an offer; None only after a violation was added.
pub(crate) fn read_offer(check: &mut Check, node: Node<'_>) -> Option<AgreementOffer> {
    check.attributes(node, &[(WSAG, "AgreementId")]);
    let agreement_id = check.read_attribute(node, (WSAG, "AgreementId"), token);
    let mut sequence = Sequence::of(check, node);
    let content = read_content(check, &mut sequence);
    sequence.end(check);
    let (name, context, terms) = content?;
    Some(AgreementOffer {
        name,
        agreement_id,
        context,
        terms,
    })
}

/// Reads a context; None only after a violation was added.
pub(crate) fn read_context(check: &mut Check, node: Node<'_>) -> Option<Context> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let initiator = sequence.optional(WSAG, "AgreementInitiator");
    let responder = sequence.optional(WSAG, "AgreementResponder");
    let provider = sequence.required(check, WSAG, "ServiceProvider");
    let expiration = sequence.optional(WSAG, "ExpirationTime");
    let template_id = sequence.optional(WSAG, "TemplateId");
    let template_name = sequence.optional(WSAG, "TemplateName");
    let extensions = sequence.foreign(WSAG);
    sequence.end(check);
    let provider = provider.and_then(|node| check.simple(node, Role::parse));
    let expiration_time = expiration.and_then(|node| check.date_time(node));
    let template_id = template_id.and_then(|node| check.simple(node, token));
    let template_name = template_name.and_then(|node| check.simple(node, token));
    Some(Context {
        agreement_initiator: initiator.map(Node::fragment),
        agreement_responder: responder.map(Node::fragment),
        service_provider: provider?,
        expiration_time,
        template_id,
        template_name,
        extensions: fragments(&extensions),
    })
}

/// Reads the input of either creating operation.
pub(crate) fn read_create_input(check: &mut Check, node: Node<'_>) -> Option<CreateInput> {
    check.attributes(node, &[]);
    let pending = node.local() == "CreatePendingAgreementInput";
    let mut sequence = Sequence::of(check, node);
    let acceptance = if pending {
        sequence.optional(WSAG, "AgreementAcceptanceEPR")
    } else {
        None
    };
    let initiator = sequence.optional(WSAG, "InitiatorAgreementEPR");
    let offer = sequence.required(check, WSAG, "AgreementOffer");
    let noncritical = sequence.many(WSAG, "NoncriticalExtension");
    let critical = sequence.foreign(WSAG);
    sequence.end(check);
    let acceptance = acceptance.and_then(|node| endpoint::read(check, node));
    let initiator = initiator.and_then(|node| endpoint::read(check, node));
    let offer = offer.and_then(|node| read_offer(check, node));
    for node in &noncritical {
        check.attributes(*node, &[]);
        // Foreign elements, which need not be understood.
        let mut sequence = Sequence::of(check, *node);
        sequence.foreign(WSAG);
        sequence.end(check);
    }
    let (negotiation, renegotiation) = read_extensions(check, critical);
    Some(CreateInput {
        acceptance,
        initiator,
        offer: offer?,
        noncritical: fragments(&noncritical),
        negotiation,
        renegotiation,
    })
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
            negotiation = negotiations::read_extension(check, node);
        } else if in_creation && node.is(WSAG_NEG, "RenegotiationExtension") && renegotiation.is_none() {
            renegotiation = negotiations::read_reextension(check, node);
        } else {
            let message = "a critical extension that is not known here; what may be ignored belongs in a \
                           NoncriticalExtension";
            check.add(ViolationKind::UnknownExtension, node, message);
        }
    }
    (negotiation, renegotiation)
}

/// Reads an element with foreign elements and nothing else, at least `least` and at most `most` of them.
pub(crate) fn read_any(check: &mut Check, node: Node<'_>, least: usize, most: usize) -> Vec<Fragment> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let found = sequence.foreign(node.namespace());
    sequence.end(check);
    if found.len() < least {
        check.structure(
            node,
            "one element of another namespace is expected in it, such as a reason",
        );
    }
    if let Some(surplus) = found.get(most) {
        check.structure(*surplus, format!("only one element may stand in {}", node.name()));
    }
    fragments(&found)
}

impl Context {
    /// The context of an offer made from a template to the provider of the service.
    pub fn for_template(template_id: impl Into<String>, template_name: impl Into<String>) -> Context {
        Context {
            agreement_initiator: None,
            agreement_responder: None,
            service_provider: Role::AgreementResponder,
            expiration_time: None,
            template_id: Some(template_id.into()),
            template_name: Some(template_name.into()),
            extensions: Vec::new(),
        }
    }

    /// As a fragment that can stand in an agreement's properties.
    pub fn to_fragment(&self) -> Fragment {
        let mut xml = Xml::default();
        self.write(&mut xml);
        Fragment::written(xml.finish())
    }

    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("wsag:Context", &["wsag"]);
        if let Some(initiator) = &self.agreement_initiator {
            xml.insert(initiator);
        }
        if let Some(responder) = &self.agreement_responder {
            xml.insert(responder);
        }
        xml.element("wsag:ServiceProvider", self.service_provider.name());
        xml.optional_element("wsag:ExpirationTime", self.expiration_time);
        xml.optional_element("wsag:TemplateId", self.template_id.as_deref());
        xml.optional_element("wsag:TemplateName", self.template_name.as_deref());
        xml.insert_all(&self.extensions);
        xml.end();
    }
}

impl AgreementOffer {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        self.document().finish()
    }

    /// As a document of its own that is checked, without being written: `Document::made`.
    pub fn make(&self) -> Made {
        Made(self.document().pieces())
    }

    fn document(&self) -> Xml {
        let mut xml = Xml::document("wsag:AgreementOffer", &["wsag"]);
        self.write_content(&mut xml);
        xml
    }

    fn write_content(&self, xml: &mut Xml) {
        xml.optional_attribute("wsag:AgreementId", self.agreement_id.as_deref());
        xml.optional_element("wsag:Name", self.name.as_deref());
        self.context.write(xml);
        self.terms.write(xml);
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
        if let Some(acceptance) = self.acceptance.as_ref().filter(|_| pending) {
            acceptance.write(&mut xml, "wsag:AgreementAcceptanceEPR");
        }
        if let Some(initiator) = &self.initiator {
            initiator.write(&mut xml, "wsag:InitiatorAgreementEPR");
        }
        xml.start("wsag:AgreementOffer");
        self.offer.write_content(&mut xml);
        xml.end();
        xml.insert_all(&self.noncritical);
        if let Some(extension) = &self.negotiation {
            negotiations::write_extension(&mut xml, extension);
        }
        if let Some(extension) = &self.renegotiation {
            negotiations::write_reextension(&mut xml, extension);
        }
        xml.finish()
    }
}

/// `wsag:CreateAgreementResponse`: the answer to an agreement that is observed, with the agreements of the same party that moved
/// to make room for it, and with the choices that were made where the offer left them.
pub fn create_agreement_response(
    created: &EndpointReference,
    moved: &[Moved],
    choices: &[CompositorChoice],
) -> String {
    let prefixes: &[&str] = if moved.is_empty() && choices.is_empty() {
        &["wsag", "wsa"]
    } else {
        &["wsag", "wsa", "bsp"]
    };
    let mut xml = Xml::document("wsag:CreateAgreementResponse", prefixes);
    created.write(&mut xml, "wsag:CreatedAgreementEPR");
    for other in moved {
        other.write(&mut xml);
    }
    for choice in choices {
        choice.write(&mut xml);
    }
    xml.finish()
}

/// `wsag:CreatePendingAgreementResponse`: the answer to an agreement that is not decided yet.
pub fn create_pending_agreement_response(created: &EndpointReference) -> String {
    let mut xml = Xml::document("wsag:CreatePendingAgreementResponse", &["wsag", "wsa"]);
    created.write(&mut xml, "wsag:CreatedAgreementEPR");
    xml.finish()
}

/// `wsag:TerminateInput` with its one reason.
pub fn terminate_input(reason: &Fragment) -> String {
    with_fragments("wsag:TerminateInput", std::slice::from_ref(reason))
}

/// `wsag:TerminateResponse`: the agreement ends or has ended.
pub fn terminate_response() -> String {
    with_fragments("wsag:TerminateResponse", &[])
}

/// `wsag:AcceptAgreementInput`: the decision of a pending agreement, called back.
pub fn accept_agreement_input() -> String {
    with_fragments("wsag:AcceptAgreementInput", &[])
}

/// `wsag:RejectAgreementInput`: the decision of a pending agreement, called back, with reasons.
pub fn reject_agreement_input(reasons: &[Fragment]) -> String {
    with_fragments("wsag:RejectAgreementInput", reasons)
}

fn with_fragments(root: &'static str, fragments: &[Fragment]) -> String {
    let mut xml = Xml::document(root, &["wsag"]);
    xml.insert_all(fragments);
    xml.finish()
}

/// A reason in our own words, for [`terminate_input`] and [`reject_agreement_input`].
pub fn reason(text: &str) -> Fragment {
    let mut xml = Xml::fragment("bsp:Reason", &["bsp"]);
    xml.text(text);
    Fragment::written(xml.finish())
}
