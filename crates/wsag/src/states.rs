//! An agreement as it is seen: `wsag:AgreementProperties` with the states of section 7 of GFD.192.

use crate::placement::Placement;
use crate::scheduling::Budget;
use crate::terms::CompositorChoice;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSAG};
use crate::xml::{
    Children, DocumentCheck, Fragment, NamedValue, Node, Readable, WrittenValue, Xml, element, named_values,
    read_simple, service_values,
};

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

service_values! {
    /// State of an agreement.
    pub enum AgreementState {
        /// Offered, not yet decided.
        Pending = "Pending",
        /// Offered, not yet decided, and its initiator wants it no longer.
        PendingAndTerminating = "PendingAndTerminating",
        /// In force.
        Observed = "Observed",
        /// In force, and being ended before its time.
        ObservedAndTerminating = "ObservedAndTerminating",
        /// Decided against.
        Rejected = "Rejected",
        /// Ended in its time.
        Complete = "Complete",
        /// Ended before its time.
        Terminated = "Terminated",
    }
}

impl AgreementState {
    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Rejected | Self::Complete | Self::Terminated)
    }

    /// Whether the specification has a move from here to `next`.
    pub fn allows(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(
                next,
                Self::Observed | Self::Rejected | Self::PendingAndTerminating
            ),
            Self::Observed => matches!(next, Self::Complete | Self::ObservedAndTerminating),
            Self::PendingAndTerminating | Self::ObservedAndTerminating => {
                matches!(next, Self::Terminated | Self::Complete)
            }
            Self::Rejected | Self::Complete | Self::Terminated => false,
        }
    }

    /// Moves to `next`; `None` where the specification has no such move.
    pub fn to(self, next: Self) -> Option<Self> {
        self.allows(next).then_some(next)
    }

    /// The state after its initiator asks for termination; `None` where that changes nothing any more.
    pub fn terminating(self) -> Option<Self> {
        match self {
            Self::Pending => Some(Self::PendingAndTerminating),
            Self::Observed => Some(Self::ObservedAndTerminating),
            _ => None,
        }
    }
}

service_values! {
    /// State of a guarantee term.
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    pub enum GuaranteeState {
        /// No data yet, or none ever.
        #[default]
        NotDetermined = "NotDetermined",
        /// Its objective held.
        Fulfilled = "Fulfilled",
        /// Its objective did not hold.
        Violated = "Violated",
    }
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
        let word = match self {
            ServiceState::NotReady => ServiceWord::NotReady,
            ServiceState::Ready(_) => ServiceWord::Ready,
            ServiceState::Completed => ServiceWord::Completed,
        };
        word.name()
    }
}

named_values! {
    /// The state of a service term without its substate.
    enum ServiceWord {
        NotReady = "NotReady",
        Ready = "Ready",
        Completed = "Completed",
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
            let state = children.required(WSAG, "AgreementState", read_agreement_state);
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

fn read_agreement_state(check: &mut DocumentCheck, node: Node<'_>) -> Option<(AgreementState, Details)> {
    check.children(node, |children| {
        let details = read_own_element(children, "Details");
        let state = children.required(WSAG, "State", AgreementState::read);
        Some((state?, details.unwrap_or_default()))
    })
}

fn read_guarantee_state(check: &mut DocumentCheck, node: Node<'_>) -> Option<(String, GuaranteeState)> {
    let name = read_term_name(check, node);
    check.children_only(node, |children| {
        let state = children.required(WSAG, "State", GuaranteeState::read);
        children.foreign(WSAG);
        name.zip(state)
    })
}

fn read_term_name(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    let name = (WSAG, "termName");
    check.attributes(node, &[name]);
    check.required_attribute(node, name, parse_token)
}

/// Takes the following elements of other namespaces, and reads the one of ours among them.
fn read_own_element<T: Readable>(children: &mut Children<'_, '_>, local: &str) -> Option<T> {
    let mut foreign = children.foreign(WSAG).into_iter();
    let own = foreign.find(|node| node.is(BSP, local))?;
    T::read(children.check, own)
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

impl Readable for ServiceTermState {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<ServiceTermState> {
        let term_name = read_term_name(check, node);
        check.children_only(node, |children| {
            let word = children.required(WSAG, "State", ServiceWord::read);
            let outside: Option<Placement> = read_own_element(children, "Placement");
            let processing = children.take(WSAG, "Processing");
            let substate = processing.or_else(|| children.take(WSAG, "Idle"));
            let inside = substate.and_then(|node| {
                let check = &mut *children.check;
                check.children(node, |children| read_own_element(children, "Placement"))
            });
            // A service that is ready and does not say more waits.
            let activity = match processing {
                Some(_) => Activity::Processing,
                None => Activity::Idle,
            };
            Some(ServiceTermState {
                term_name: term_name?,
                state: match word? {
                    ServiceWord::NotReady => ServiceState::NotReady,
                    ServiceWord::Ready => ServiceState::Ready(activity),
                    ServiceWord::Completed => ServiceState::Completed,
                },
                placement: outside.or(inside),
            })
        })
    }
}

impl WrittenValue for ServiceTermState {
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
