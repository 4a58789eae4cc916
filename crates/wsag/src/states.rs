//! The states of guarantees and of services of agreements (GFD.192, section 7).

use crate::placement::Placement;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSAG};
use crate::xml::{
    Children, DocumentCheck, NamedValue, Node, Readable, WrittenValue, Xml, named_values, service_values,
};

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
    pub(crate) fn name(&self) -> &'static str {
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

/// Reads `wsag:GuaranteeTermState`: the name of a term and its state.
pub(crate) fn read_guarantee_state(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<(String, GuaranteeState)> {
    let name = read_term_of_state(check, node);
    check.children_only(node, |children| {
        let state = children.required(WSAG, "State", GuaranteeState::read);
        children.foreign(WSAG);
        name.zip(state)
    })
}

fn read_term_of_state(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    let name = (WSAG, "termName");
    check.attributes(node, &[name]);
    check.required_attribute(node, name, parse_token)
}

/// Takes the following elements of other namespaces, and reads the one of ours among them.
pub(crate) fn read_element_of_state<T: Readable>(children: &mut Children<'_, '_>, local: &str) -> Option<T> {
    let mut foreign = children.foreign(WSAG).into_iter();
    let own = foreign.find(|node| node.is(BSP, local))?;
    T::read(children.check, own)
}

impl Readable for ServiceTermState {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<ServiceTermState> {
        let term_name = read_term_of_state(check, node);
        check.children_only(node, |children| {
            let word = children.required(WSAG, "State", ServiceWord::read);
            let outside: Option<Placement> = read_element_of_state(children, "Placement");
            let processing = children.take(WSAG, "Processing");
            let substate = processing.or_else(|| children.take(WSAG, "Idle"));
            let inside = substate.and_then(|node| {
                let check = &mut *children.check;
                check.children(node, |children| read_element_of_state(children, "Placement"))
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
