//! An agreement as it is seen: `wsag:AgreementProperties` with the states of section 7 of GFD.192.

use crate::placement::Placement;
use crate::xml::{Fragment, Written, Xml, named_values};

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
    /// Foreign elements in the agreement's state, verbatim.
    pub state_extensions: Vec<Fragment>,
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

/// `wsag:ServiceTermState`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceTermState {
    /// Name of the service term.
    pub term_name: String,
    /// Its state, with the substate inside.
    pub state: ServiceState,
    /// Where and when the service is planned and was run, in the terms that carry it.
    pub placement: Option<Placement>,
    /// Other foreign elements, verbatim.
    pub extensions: Vec<Fragment>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// It is not given.
    Unknown,
    /// It is working; the element names the work.
    Processing(Fragment),
    /// It waits; the element names the cause.
    Idle(Fragment),
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
        // The schema wants foreign elements before the state.
        xml.insert_all(&self.state_extensions);
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
            ServiceState::Ready(Activity::Processing(fragment)) => Some(("wsag:Processing", fragment)),
            ServiceState::Ready(Activity::Idle(fragment)) => Some(("wsag:Idle", fragment)),
            _ => None,
        };
        if let Some((name, fragment)) = substate {
            xml.start(name);
            xml.insert(fragment);
            xml.end();
        }
        xml.add("bsp:Placement", &self.placement);
        xml.insert_all(&self.extensions);
    }
}

/// One element in our own words, for [`Activity`].
pub fn status(text: &str) -> Fragment {
    Xml::said("bsp:Status", text)
}

/// Which agreement has taken this one's place: in the state of one that is complete because of that.
pub fn superseded_by(agreement_id: &str) -> Fragment {
    Xml::said("bsp:SupersededBy", agreement_id)
}

/// Which agreement this one has taken the place of.
pub fn supersedes(agreement_id: &str) -> Fragment {
    Xml::said("bsp:Supersedes", agreement_id)
}
