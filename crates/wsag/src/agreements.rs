//! Offers of agreements (GFD.192, section 4).

use serde::{Deserialize, Serialize};

use crate::terms::Terms;
use crate::xml::datatypes::parse_token;
use crate::xml::{BuiltOffer, DateTime, Fragment, WrittenValue, Xml, element, named_values};

element! {
    /// `wsag:AgreementOffer`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct AgreementOffer {
        /// The identity that the initiator asks for; the responder assigns one where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agreement_id: Option<String> = @"wsag:AgreementId" by parse_token,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String> = "wsag:Name",
        /// The sides of the agreement, and its template.
        pub context: Context = "wsag:Context",
        /// The terms of the agreement.
        pub terms: Terms = "wsag:Terms",
    }
}

element! {
    /// `wsag:Context`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Context declares ["wsag"] {
        /// The initiator, verbatim: any text or element.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agreement_initiator: Option<Fragment> = "wsag:AgreementInitiator",
        /// The responder, verbatim: any text or element.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agreement_responder: Option<Fragment> = "wsag:AgreementResponder",
        /// Which of the two provides the service.
        pub service_provider: Role = "wsag:ServiceProvider",
        /// When the agreement ends to be valid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expiration_time: Option<DateTime> = "wsag:ExpirationTime",
        /// The template that an offer is made from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub template_id: Option<String> = "wsag:TemplateId" by parse_token,
        /// The name of that template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub template_name: Option<String> = "wsag:TemplateName" by parse_token,
        /// Foreign elements, verbatim. They describe and ask for nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
        self.fragment("wsag:Context", Self::PREFIXES)
    }
}

impl AgreementOffer {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        self.document("wsag:AgreementOffer", &["wsag"]).finish()
    }

    /// As a document of its own with its context and its terms in these words.
    pub fn to_xml_in_words(&self, context: &Fragment, terms: &Fragment) -> String {
        let mut xml = Xml::document("wsag:AgreementOffer", &["wsag"]);
        xml.optional_attribute("wsag:AgreementId", self.agreement_id.as_deref());
        xml.add("wsag:Name", &self.name);
        xml.insert_all([context, terms]);
        xml.finish()
    }

    /// As a document of its own that is checked, without being written: `Document::made`.
    pub fn make(&self) -> BuiltOffer {
        BuiltOffer {
            pieces: self.document("wsag:AgreementOffer", &["wsag"]).pieces(),
        }
    }
}
