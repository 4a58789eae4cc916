//! Offers of agreements (GFD.192, section 4).

use crate::terms::{self, Terms};
use crate::xml::datatypes::token;
use crate::xml::document::{Made, Node};
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::ns::WSAG;
use crate::xml::reader::{Check, Children, fragments, simple, verbatim};
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

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

impl Named for Role {
    const NAMES: &'static [(Role, &'static str)] = &[
        (Role::AgreementInitiator, "AgreementInitiator"),
        (Role::AgreementResponder, "AgreementResponder"),
    ];
}

/// Reads name, context and terms, which offers, templates and negotiation offers share, up to the end of the terms.
pub(crate) fn read_content(children: &mut Children<'_, '_>) -> Option<(Option<String>, Context, Terms)> {
    let name = children.optional(WSAG, "Name", Check::string);
    let context = children.required(WSAG, "Context", read_context);
    let terms = children.required(WSAG, "Terms", terms::read);
    Some((name, context?, terms?))
}

/// Reads an offer; None only after a violation was added.
pub(crate) fn read_offer(check: &mut Check, node: Node<'_>) -> Option<AgreementOffer> {
    check.attributes(node, &[(WSAG, "AgreementId")]);
    let agreement_id = check.read_attribute(node, (WSAG, "AgreementId"), token);
    let (name, context, terms) = check.children_only(node, read_content)?;
    Some(AgreementOffer {
        name,
        agreement_id,
        context,
        terms,
    })
}

/// Reads a context; None only after a violation was added.
fn read_context(check: &mut Check, node: Node<'_>) -> Option<Context> {
    check.children(node, |children| {
        let agreement_initiator = children.optional(WSAG, "AgreementInitiator", verbatim);
        let agreement_responder = children.optional(WSAG, "AgreementResponder", verbatim);
        let service_provider = children.required(WSAG, "ServiceProvider", simple(named));
        Some(Context {
            agreement_initiator,
            agreement_responder,
            expiration_time: children.optional(WSAG, "ExpirationTime", simple(str::parse)),
            template_id: children.optional(WSAG, "TemplateId", simple(token)),
            template_name: children.optional(WSAG, "TemplateName", simple(token)),
            extensions: fragments(&children.foreign(WSAG)),
            service_provider: service_provider?,
        })
    })
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
        xml.into_fragment()
    }

    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("wsag:Context", &["wsag"]);
        xml.insert_all(&self.agreement_initiator);
        xml.insert_all(&self.agreement_responder);
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

    /// Writes the content of the element of an offer.
    pub(crate) fn write_content(&self, xml: &mut Xml) {
        xml.optional_attribute("wsag:AgreementId", self.agreement_id.as_deref());
        xml.optional_element("wsag:Name", self.name.as_deref());
        self.context.write(xml);
        self.terms.write(xml);
    }
}
