//! An agreement as it is seen: `wsag:AgreementProperties` with the states of section 7 of GFD.192.

use crate::placement::Placement;
use crate::terms::CompositorChoice;
use crate::xml::{Fragment, Written, Xml, named_values, written};

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

named_values! {
    /// State of an agreement.
    pub enum AgreementState {
        /// Received, not decided.
        Pending = "Pending",
        /// Asked to end before it was decided.
        PendingAndTerminating = "PendingAndTerminating",
        /// In force.
        Observed = "Observed",
        /// In force and asked to end.
        ObservedAndTerminating = "ObservedAndTerminating",
        /// Declined. Final.
        Rejected = "Rejected",
        /// Ended by itself. Final.
        Complete = "Complete",
        /// Ended on request. Final.
        Terminated = "Terminated",
    }
}

named_values! {
    /// State of a guarantee term.
    pub enum GuaranteeState {
        /// No data yet.
        NotDetermined = "NotDetermined",
        /// Kept.
        Fulfilled = "Fulfilled",
        /// Broken.
        Violated = "Violated",
    }
}

written! {
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
    }
}

/// `wsag:ServiceTermState`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceTermState {
    /// Name of the service term.
    pub term_name: String,
    /// Its state, with the substate inside.
    pub state: ServiceState,
    /// Where and when the service is planned and was run; a substate is told with it only.
    pub placement: Option<Placement>,
}

/// State of a service term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// Cannot be used yet.
    NotReady,
    /// Can be used.
    Ready(Activity),
    /// Cannot be used any more.
    Completed,
}

impl ServiceState {
    /// The state as the specification writes it.
    pub fn name(&self) -> &'static str {
        match self {
            ServiceState::NotReady => "NotReady",
            ServiceState::Ready(_) => "Ready",
            ServiceState::Completed => "Completed",
        }
    }
}

/// The substate of a service that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It is working.
    Processing,
    /// It waits.
    Idle,
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
            Part::Services => document("bsp:ServiceTermStates", |of, xml| {
                xml.add("wsag:ServiceTermState", &of.services);
            }),
        }
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

impl Written for ServiceTermState {
    fn write(&self, xml: &mut Xml) {
        xml.attribute("wsag:termName", &self.term_name);
        xml.add("wsag:State", &self.state.name());
        let substate = match &self.state {
            ServiceState::Ready(Activity::Processing) => Some("wsag:Processing"),
            ServiceState::Ready(Activity::Idle) => Some("wsag:Idle"),
            _ => None,
        };
        // The schema wants one foreign element at most beside the state, and exactly one in a substate.
        let Some(placement) = &self.placement else { return };
        if let Some(name) = substate {
            xml.start(name);
        }
        xml.add("bsp:Placement", placement);
        if substate.is_some() {
            xml.end();
        }
    }
}
