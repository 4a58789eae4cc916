//! Agreements: the offers of them (GFD.192, section 4), and an agreement as it is seen, `wsag:AgreementProperties` (section 7).

use serde::{Deserialize, Serialize};

use crate::agreement_state::AgreementState;
use crate::budget::Budget;
use crate::states::{GuaranteeState, ServiceTermState, read_element_of_state, read_guarantee_state};
use crate::terms::{CompositorChoice, Terms};
use crate::xml::datatypes::parse_token;
use crate::xml::ns::WSAG;
use crate::xml::{
    BuiltOffer, DateTime, DocumentCheck, Fragment, Node, Readable, WrittenValue, Xml, element, named_values,
    read_simple,
};

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

/// `wsag:AgreementProperties`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreementProperties {
    /// The name that the offer had.
    pub name: Option<String>,
    /// The agreement's identity.
    pub agreement_id: String,
    /// `wsag:Context`, verbatim as the offer had it.
    pub context: Fragment,
    /// `wsag:Terms`, verbatim as the offer had it.
    pub terms: Fragment,
    /// State of the agreement.
    pub state: AgreementState,
    /// What there is to say about it beside its state.
    pub details: Details,
    /// State of each guarantee term, by the term's name.
    pub guarantees: Vec<(String, GuaranteeState)>,
    /// State of each service term.
    pub services: Vec<ServiceTermState>,
}

element! {
    /// `bsp:Details`: the one foreign element that an agreement's state may have.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Details {
        /// Why it was rejected.
        pub reason: Option<String> = "bsp:Reason",
        /// What was chosen of its offer, where that left a choice.
        pub choices: Vec<CompositorChoice> = "bsp:Choice",
        /// The agreement that it has taken the place of.
        pub supersedes: Option<String> = "bsp:Supersedes",
        /// The agreement that has taken its place.
        pub superseded_by: Option<String> = "bsp:SupersededBy",
        /// The charges to its party so far: a sum for each currency.
        pub charged: Vec<Budget> = "bsp:Charged",
        /// The payments to its party so far, mostly for broken guarantees: a sum for each currency.
        pub paid: Vec<Budget> = "bsp:Paid",
        /// The agreements of other domains that have carried it out, the first made first.
        pub at_peers: Vec<AtPeer> = "bsp:AtPeer",
    }
}

element! {
    /// `bsp:AtPeer`: how another domain's agreement behind one of ours stands, as it was last seen there.
    #[derive(Debug, Clone, PartialEq)]
    pub struct AtPeer {
        /// The name of the domain.
        pub peer: String = "bsp:Peer",
        /// Its state.
        pub state: AgreementState = "bsp:State",
        /// Its charge so far.
        pub charged: Option<Budget> = "bsp:Charged",
        /// Its payments so far, mostly for broken guarantees.
        pub paid: Option<Budget> = "bsp:Paid",
        /// Its guarantees.
        pub guarantees: Vec<GuaranteeAtPeer> = "bsp:Guarantee",
    }
}

element! {
    /// A guarantee of another domain's agreement.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GuaranteeAtPeer {
        /// The name of its term there.
        pub name: String = "bsp:Name",
        /// Its state.
        pub state: GuaranteeState = "bsp:State",
    }
}

/// A part of [`AgreementProperties`] with an address of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `wsag:Context`.
    Context,
    /// `wsag:Terms`.
    Terms,
    /// `wsag:AgreementState`.
    State,
    /// `bsp:GuaranteeTermStates`.
    Guarantees,
    /// `bsp:ServiceTermStates`.
    Services,
}

impl AgreementProperties {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag:AgreementProperties", &["wsag", "bsp"]);
        xml.add("wsag:Name", &self.name);
        xml.add("wsag:AgreementId", &self.agreement_id);
        xml.insert(&self.context);
        xml.insert(&self.terms);
        xml.start("wsag:AgreementState");
        self.write_state(&mut xml);
        self.write_guarantees(&mut xml);
        xml.add("wsag:ServiceTermState", &self.services);
        xml.finish()
    }

    fn write_state(&self, xml: &mut Xml) {
        // The schema wants the foreign element before the state.
        if self.details != Details::default() {
            xml.add("bsp:Details", &self.details);
        }
        xml.add("wsag:State", &self.state);
        xml.end();
    }

    fn write_guarantees(&self, xml: &mut Xml) {
        for (name, state) in &self.guarantees {
            xml.start("wsag:GuaranteeTermState");
            xml.attribute("wsag:termName", name);
            xml.add("wsag:State", state);
            xml.end();
        }
    }

    /// The offer that these properties keep, as a document of its own.
    pub fn offer_xml(&self) -> String {
        let mut xml = Xml::document("wsag:AgreementOffer", &["wsag"]);
        xml.attribute("wsag:AgreementId", &self.agreement_id);
        xml.add("wsag:Name", &self.name);
        xml.insert(&self.context);
        xml.insert(&self.terms);
        xml.finish()
    }

    /// The parts of the properties that have addresses of their own.
    pub fn part_xml(&self, part: Part) -> String {
        let document = |root, write: fn(&Self, &mut Xml)| {
            let mut xml = Xml::document(root, &["wsag", "bsp"]);
            write(self, &mut xml);
            xml.finish()
        };
        match part {
            Part::Context => self.context.to_document(),
            Part::Terms => self.terms.to_document(),
            Part::State => document("wsag:AgreementState", Self::write_state),
            Part::Guarantees => document("bsp:GuaranteeTermStates", Self::write_guarantees),
            Part::Services => document("bsp:ServiceTermStates", |properties, xml| {
                xml.add("wsag:ServiceTermState", &properties.services);
            }),
        }
    }
}

impl Readable for AgreementProperties {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<AgreementProperties> {
        check.children(node, |children| {
            let name = children.optional(WSAG, "Name", DocumentCheck::string);
            let agreement_id = children.required(WSAG, "AgreementId", read_simple(parse_token));
            let context = children.required(WSAG, "Context", Fragment::verbatim);
            let terms = children.required(WSAG, "Terms", Fragment::verbatim);
            let state = children.required(WSAG, "AgreementState", read_state_of_agreement);
            let guarantees = children.many(WSAG, "GuaranteeTermState", read_guarantee_state);
            let services = children.many(WSAG, "ServiceTermState", ServiceTermState::read);
            let (state, details) = state?;
            Some(AgreementProperties {
                name,
                agreement_id: agreement_id?,
                context: context?,
                terms: terms?,
                state,
                details,
                guarantees,
                services,
            })
        })
    }
}

fn read_state_of_agreement(check: &mut DocumentCheck, node: Node<'_>) -> Option<(AgreementState, Details)> {
    check.children(node, |children| {
        let details = read_element_of_state(children, "Details");
        let state = children.required(WSAG, "State", AgreementState::read);
        Some((state?, details.unwrap_or_default()))
    })
}
