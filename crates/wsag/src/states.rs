//! An agreement as it is seen: `wsag:AgreementProperties` with the states of section 7 of GFD.192.

use crate::document::Fragment;
use crate::placement::Placement;
use crate::writer::Xml;

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

/// State of an agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgreementState {
    /// Received, not decided.
    Pending,
    /// Asked to end before it was decided.
    PendingAndTerminating,
    /// In force.
    Observed,
    /// In force and asked to end.
    ObservedAndTerminating,
    /// Declined. Final.
    Rejected,
    /// Ended by itself. Final.
    Complete,
    /// Ended on request. Final.
    Terminated,
}

impl AgreementState {
    const NAMES: [(AgreementState, &'static str); 7] = [
        (AgreementState::Pending, "Pending"),
        (AgreementState::PendingAndTerminating, "PendingAndTerminating"),
        (AgreementState::Observed, "Observed"),
        (AgreementState::ObservedAndTerminating, "ObservedAndTerminating"),
        (AgreementState::Rejected, "Rejected"),
        (AgreementState::Complete, "Complete"),
        (AgreementState::Terminated, "Terminated"),
    ];

    /// The state as the specification writes it.
    pub fn name(self) -> &'static str {
        name_of(&AgreementState::NAMES, self)
    }

    /// The state of this name.
    pub fn parse(name: &str) -> Option<AgreementState> {
        value_of(&AgreementState::NAMES, name)
    }
}

/// State of a guarantee term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuaranteeState {
    /// No data yet.
    NotDetermined,
    /// Kept.
    Fulfilled,
    /// Broken.
    Violated,
}

impl GuaranteeState {
    const NAMES: [(GuaranteeState, &'static str); 3] = [
        (GuaranteeState::NotDetermined, "NotDetermined"),
        (GuaranteeState::Fulfilled, "Fulfilled"),
        (GuaranteeState::Violated, "Violated"),
    ];

    /// The state as the specification writes it.
    pub fn name(self) -> &'static str {
        name_of(&GuaranteeState::NAMES, self)
    }

    /// The state of this name.
    pub fn parse(name: &str) -> Option<GuaranteeState> {
        value_of(&GuaranteeState::NAMES, name)
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

fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], value: T) -> &'static str {
    names
        .iter()
        .find(|(known, _)| *known == value)
        .map_or("", |(_, name)| name)
}

fn value_of<T: Copy>(names: &[(T, &'static str)], name: &str) -> Option<T> {
    names
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(value, _)| *value)
}

impl AgreementProperties {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag:AgreementProperties", &["wsag", "bsp"]);
        xml.optional_element("wsag:Name", self.name.as_deref());
        xml.element("wsag:AgreementId", &self.agreement_id);
        xml.insert(&self.context);
        xml.insert(&self.terms);
        self.write_state(&mut xml);
        for (name, state) in &self.guarantees {
            write_guarantee(&mut xml, name, *state);
        }
        for service in &self.services {
            write_service(&mut xml, service);
        }
        xml.finish()
    }

    fn write_state(&self, xml: &mut Xml) {
        xml.start("wsag:AgreementState");
        // The schema wants foreign elements before the state.
        xml.insert_all(&self.state_extensions);
        xml.element("wsag:State", self.state.name());
        xml.end();
    }

    /// The offer that these properties keep, as a document of its own.
    pub fn offer_xml(&self) -> String {
        let mut xml = Xml::document("wsag:AgreementOffer", &["wsag"]);
        xml.attribute("wsag:AgreementId", &self.agreement_id);
        xml.optional_element("wsag:Name", self.name.as_deref());
        xml.insert(&self.context);
        xml.insert(&self.terms);
        xml.finish()
    }

    /// The parts of the properties that have addresses of their own.
    pub fn part_xml(&self, part: Part) -> String {
        if let Part::Context | Part::Terms = part {
            let fragment = if part == Part::Context {
                &self.context
            } else {
                &self.terms
            };
            return format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{fragment}");
        }
        if part == Part::State {
            let mut xml = Xml::document("wsag:AgreementState", &["wsag", "bsp"]);
            xml.insert_all(&self.state_extensions);
            xml.element("wsag:State", self.state.name());
            return xml.finish();
        }
        let root = if part == Part::Guarantees {
            "bsp:GuaranteeTermStates"
        } else {
            "bsp:ServiceTermStates"
        };
        let mut xml = Xml::document(root, &["wsag", "bsp"]);
        if part == Part::Guarantees {
            for (name, state) in &self.guarantees {
                write_guarantee(&mut xml, name, *state);
            }
        } else {
            for service in &self.services {
                write_service(&mut xml, service);
            }
        }
        xml.finish()
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

fn write_guarantee(xml: &mut Xml, name: &str, state: GuaranteeState) {
    xml.start("wsag:GuaranteeTermState");
    xml.attribute("wsag:termName", name);
    xml.element("wsag:State", state.name());
    xml.end();
}

fn write_service(xml: &mut Xml, service: &ServiceTermState) {
    xml.start("wsag:ServiceTermState");
    xml.attribute("wsag:termName", &service.term_name);
    xml.element("wsag:State", service.state.name());
    if let ServiceState::Ready(activity) = &service.state {
        let inner = match activity {
            Activity::Unknown => None,
            Activity::Processing(fragment) => Some(("wsag:Processing", fragment)),
            Activity::Idle(fragment) => Some(("wsag:Idle", fragment)),
        };
        if let Some((name, fragment)) = inner {
            xml.start(name);
            xml.insert(fragment);
            xml.end();
        }
    }
    if let Some(placement) = &service.placement {
        placement.write(xml);
    }
    xml.insert_all(&service.extensions);
    xml.end();
}

/// One element in our own words, for [`Activity`].
pub fn status(text: &str) -> Fragment {
    let mut xml = Xml::fragment("bsp:Status", &["bsp"]);
    xml.text(text);
    Fragment::written(xml.finish())
}

/// Which agreement has taken this one's place: in the state of one that is complete because of that.
pub fn superseded_by(agreement_id: &str) -> Fragment {
    let mut xml = Xml::fragment("bsp:SupersededBy", &["bsp"]);
    xml.text(agreement_id);
    Fragment::written(xml.finish())
}

/// Which agreement this one has taken the place of.
pub fn supersedes(agreement_id: &str) -> Fragment {
    let mut xml = Xml::fragment("bsp:Supersedes", &["bsp"]);
    xml.text(agreement_id);
    Fragment::written(xml.finish())
}
