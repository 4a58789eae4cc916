//! Offers of agreements (GFD.192, section 4).

use crate::terms::Terms;
use crate::xml::datatypes::token;
use crate::xml::ns::WSAG;
use crate::xml::{
    Check, Children, DateTime, Fragment, Made, Node, Readable, Written, Xml, element, named_values,
};

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

element! {
    /// `wsag:Context`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Context {
        /// The initiator, verbatim: any text or element.
        pub agreement_initiator: Option<Fragment> = "wsag:AgreementInitiator",
        /// The responder, verbatim: any text or element.
        pub agreement_responder: Option<Fragment> = "wsag:AgreementResponder",
        /// Which of the two provides the service.
        pub service_provider: Role = "wsag:ServiceProvider",
        /// When the agreement ends to be valid.
        pub expiration_time: Option<DateTime> = "wsag:ExpirationTime",
        /// The template that an offer is made from.
        pub template_id: Option<String> = "wsag:TemplateId" by token,
        /// The name of that template.
        pub template_name: Option<String> = "wsag:TemplateName" by token,
        /// Foreign elements, verbatim. They describe and ask for nothing.
        pub extensions: Vec<Fragment> = "wsag:*",
    }
}

named_values! {
    /// A side of an agreement.
    pub enum Role {
        /// The side that made the offer.
        AgreementInitiator = "AgreementInitiator",
        /// The side that was offered.
        AgreementResponder = "AgreementResponder",
    }
}

/// Reads name, context and terms, which offers, templates and negotiation offers share, up to the end of the terms.
pub(crate) fn read_content(children: &mut Children<'_, '_>) -> Option<(Option<String>, Context, Terms)> {
    let name = children.optional(WSAG, "Name", Check::string);
    let context = children.required(WSAG, "Context", Context::read);
    let terms = children.required(WSAG, "Terms", Terms::read);
    Some((name, context?, terms?))
}

impl Readable for AgreementOffer {
    fn read(check: &mut Check, node: Node<'_>) -> Option<AgreementOffer> {
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
        self.fragment("wsag:Context", &["wsag"])
    }
}

impl AgreementOffer {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        self.document("wsag:AgreementOffer", &["wsag"]).finish()
    }

    /// As a document of its own that is checked, without being written: `Document::made`.
    pub fn make(&self) -> Made {
        Made(self.document("wsag:AgreementOffer", &["wsag"]).pieces())
    }
}

impl Written for AgreementOffer {
    fn write(&self, xml: &mut Xml) {
        xml.optional_attribute("wsag:AgreementId", self.agreement_id.as_deref());
        xml.add("wsag:Name", &self.name);
        self.context.put_alone(xml, "wsag:Context", &["wsag"]);
        self.terms.put_alone(xml, "wsag:Terms", &["wsag", "bsp"]);
    }
}
