//! Negotiation offers and counter offers: an offer's content, its place in the tree, and the state in which its maker puts it.

use serde::{Deserialize, Serialize};

use crate::agreements::Context;
use crate::faults::{FaultViolation, read_violations_of_fault};
use crate::negotiations::NegotiationRole;
use crate::negotiations::items::NegotiationConstraints;
use crate::quotation::Quotation;
use crate::refusals::Refusal;
use crate::terms::Terms;
use crate::travel::Travel;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSAG_NEG};
use crate::xml::{
    DateTime, Document, DocumentCheck, Fragment, NamedValue, Node, Readable, Violations, WrittenValue, Xml,
    check_repeated_element, element, read_foreign_elements, read_simple, service_values,
};

element! {
    /// `wsag-neg:NegotiationOffer` or `wsag-neg:NegotiationCounterOffer`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct NegotiationOffer {
        /// Identity in its negotiation; the responder assigns one where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub offer_id: Option<String> = @"wsag-neg:OfferId" by parse_token,
        /// The identity that the initiator asks for its agreement.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub agreement_id: Option<String> = @"wsag:AgreementId" by parse_token,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String> = "wsag:Name",
        /// The sides of the agreement, and its template.
        pub context: Context = "wsag:Context",
        /// The terms of the agreement.
        pub terms: Terms = "wsag:Terms",
        /// The offer that it answers, its maker, and its state.
        pub offer_context: NegotiationOfferContext = "wsag-neg:NegotiationOfferContext",
        /// The constraints that an answer must or should keep.
        pub constraints: NegotiationConstraints = "wsag-neg:NegotiationConstraints",
    }
}

/// `wsag-neg:NegotiationOfferContext`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiationOfferContext {
    /// The offer, or the template, that this one answers.
    pub counter_offer_to: String,
    /// Until when it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<DateTime>,
    /// The side that made it.
    pub creator: NegotiationRole,
    /// Its state.
    pub state: OfferState,
    /// Foreign elements in the state, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_extensions: Vec<Fragment>,
    /// Foreign elements, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Fragment>,
}

service_values! {
    /// State of an offer (GFD.193, section 4).
    #[derive(Serialize, Deserialize)]
    pub enum OfferState {
        /// A proposal that binds neither side.
        Advisory = "Advisory",
        /// A proposal that must be answered Acceptable or Rejected.
        Solicited = "Solicited",
        /// Its maker would take it.
        Acceptable = "Acceptable",
        /// Neither it nor any answer to it can be accepted.
        Rejected = "Rejected",
    }
}

impl Readable for NegotiationOfferContext {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<NegotiationOfferContext> {
        check.children(node, |children| {
            let counter_offer_to = children.required(WSAG_NEG, "CounterOfferTo", read_simple(parse_token));
            let expiration_time = children.optional(WSAG_NEG, "ExpirationTime", DateTime::read);
            let creator = children.required(WSAG_NEG, "Creator", NegotiationRole::read);
            let state = children.required(WSAG_NEG, "State", read_offer_state);
            let mut travels = 0;
            let extensions = children.many(WSAG_NEG, "*", |check, node| {
                if node.is(BSP, "Travel") {
                    travels += 1;
                    if travels == 2 {
                        check.structure(node, "only one bsp:Travel is expected");
                    }
                    Travel::read(check, node)?;
                } else if node.is(BSP, "Quotation") {
                    // A counter offer that is answered in its own words.
                    Quotation::read(check, node);
                } else {
                    check_repeated_element(check, node);
                }
                Some(node.fragment())
            });
            let (state, state_extensions) = state?;
            Some(NegotiationOfferContext {
                counter_offer_to: counter_offer_to?,
                expiration_time,
                creator: creator?,
                state,
                state_extensions,
                extensions,
            })
        })
    }
}

impl NegotiationOfferContext {
    /// The way that the request has come, where its maker says it.
    pub fn travel(&self) -> Option<Travel> {
        // It was checked when the context was read.
        let read = read_fragment_of_offer(&self.extensions, "Travel", Travel::read);
        read.ok().flatten()
    }

    /// What the counter offer amounts to, where its maker says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn quotation(&self) -> Result<Option<Quotation>, Violations> {
        read_fragment_of_offer(&self.extensions, "Quotation", Quotation::read)
    }

    /// Why the plan of its maker refuses, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn refusal(&self) -> Result<Option<Refusal>, Violations> {
        read_fragment_of_offer(&self.state_extensions, "Refusal", Refusal::read)
    }

    /// What its maker finds wrong with the words of the offer, where that says it.
    ///
    /// # Errors
    /// Its violations, with paths from its own element on.
    pub fn violations(&self) -> Result<Vec<FaultViolation>, Violations> {
        let read = |check: &mut DocumentCheck, node: Node<'_>| Some(read_violations_of_fault(check, node));
        Ok(read_fragment_of_offer(&self.state_extensions, "Violations", read)?.unwrap_or_default())
    }
}

/// Reads the element of ours of this name among fragments.
fn read_fragment_of_offer<T>(
    fragments: &[Fragment],
    local: &str,
    read: impl Fn(&mut DocumentCheck, Node<'_>) -> Option<T>,
) -> Result<Option<T>, Violations> {
    for fragment in fragments {
        // A fragment that cannot stand alone was refused with its document.
        let Ok(document) = Document::written(fragment.as_str()) else {
            continue;
        };
        if document.root().is(BSP, local) {
            let mut check = DocumentCheck::default();
            let value = read(&mut check, document.root());
            let found = check.into_violations();
            return if found.is_empty() {
                Ok(value)
            } else {
                Err(Violations(found))
            };
        }
    }
    Ok(None)
}

fn read_offer_state(check: &mut DocumentCheck, node: Node<'_>) -> Option<(OfferState, Vec<Fragment>)> {
    check.children(node, |children| {
        let names = OfferState::NAMES.iter().map(|(_, name)| *name);
        let (name, state) = children.one_of(WSAG_NEG, &names.collect::<Vec<_>>())?;
        let extensions = read_foreign_elements(children.check, state, WSAG_NEG, (0, 1), |check, node| {
            if node.is(BSP, "Refusal") {
                Refusal::read(check, node);
            } else if node.is(BSP, "Violations") {
                read_violations_of_fault(check, node);
            } else {
                check_repeated_element(check, node);
            }
        });
        OfferState::parse(name).zip(Some(extensions))
    })
}

impl WrittenValue for NegotiationOfferContext {
    fn write(&self, xml: &mut Xml) {
        xml.add("wsag-neg:CounterOfferTo", &self.counter_offer_to);
        xml.add("wsag-neg:ExpirationTime", &self.expiration_time);
        xml.add("wsag-neg:Creator", &self.creator);
        xml.start("wsag-neg:State");
        xml.start(format!("wsag-neg:{}", self.state.name()));
        xml.insert_all(&self.state_extensions);
        xml.end();
        xml.end();
        xml.insert_all(&self.extensions);
    }
}
