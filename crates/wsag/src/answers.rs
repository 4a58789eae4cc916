//! The answers of a provider, as a client reads them. Answers are as hostile as requests: the guard reads them first, and
//! everything of ours in them is checked.

use crate::agreements::AgreementProperties;
use crate::endpoint::EndpointReference;
use crate::faults::Fault;
use crate::negotiations::NegotiationOffer;
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::{Document, DocumentCheck, Fragment, INHERITED_MAX, Node, Readable, Violations};

/// An answer that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// `wsag-neg:InitiateNegotiationOutput`: where the negotiation is.
    NegotiationOpened(EndpointReference),
    /// `wsag-neg:NegotiateOutput`: the counter offers.
    CounterOffers(Vec<CounterOffer>),
    /// `wsag:CreateAgreementResponse`: where the agreement is, which is in force.
    AgreementCreated(EndpointReference),
    /// `wsag:CreatePendingAgreementResponse`: where the agreement is, which is not decided yet.
    AgreementPending(EndpointReference),
    /// `wsag:AgreementProperties`.
    AgreementProperties(Box<AgreementProperties>),
    /// `wsag:ContinuingFault`.
    Fault(Box<Fault>),
}

/// A counter offer, and the words in which it came.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterOffer {
    /// What it says.
    pub offer: NegotiationOffer,
    /// `wsag-neg:NegotiationCounterOffer`, verbatim: for [`crate::operations::acceptance_input`].
    pub source: Fragment,
}

/// Reads an answer: what the protocol says of it strictly, and of other namespaces only ours.
///
/// # Errors
/// Everything that is wrong, up to [`crate::VIOLATIONS_MAX`].
pub fn read_answer(document: &Document<'_>) -> Result<Answer, Violations> {
    let (mut check, root) = (DocumentCheck::default(), document.root());
    let answer = read_root_of_answer(&mut check, root);
    if document.inherits_too_much() {
        let message =
            format!("its elements inherit more than {INHERITED_MAX} bytes of namespace declarations");
        check.value(root, message);
    }
    if answer.is_none() && check.is_empty() {
        check.structure(root, "no answer of the protocol has this root");
    }
    answer
        .filter(|_| check.is_empty())
        .ok_or_else(|| Violations(check.into_violations()))
}

fn read_root_of_answer(check: &mut DocumentCheck, root: Node<'_>) -> Option<Answer> {
    match (root.namespace(), root.local()) {
        (WSAG_NEG, "InitiateNegotiationOutput") => {
            read_created_of_answer(check, root, WSAG_NEG, "CreatedNegotiationEPR")
                .map(Answer::NegotiationOpened)
        }
        (WSAG_NEG, "NegotiateOutput") => check.children(root, |children| {
            let offers = children.many(WSAG_NEG, "NegotiationCounterOffer", |check, node| {
                let offer = NegotiationOffer::read(check, node)?;
                let source = node.fragment();
                Some(CounterOffer { offer, source })
            });
            children.foreign(WSAG_NEG);
            Some(Answer::CounterOffers(offers))
        }),
        (WSAG, "CreateAgreementResponse") => {
            read_created_of_answer(check, root, WSAG, "CreatedAgreementEPR").map(Answer::AgreementCreated)
        }
        (WSAG, "CreatePendingAgreementResponse") => {
            read_created_of_answer(check, root, WSAG, "CreatedAgreementEPR").map(Answer::AgreementPending)
        }
        (WSAG, "AgreementProperties") => AgreementProperties::read(check, root)
            .map(|properties| Answer::AgreementProperties(Box::new(properties))),
        (WSAG, "ContinuingFault") => Fault::read(check, root).map(|fault| Answer::Fault(Box::new(fault))),
        _ => None,
    }
}

/// Reads the reference of something that was made, and passes over what follows of other namespaces.
fn read_created_of_answer(
    check: &mut DocumentCheck,
    root: Node<'_>,
    own: &'static str,
    local: &'static str,
) -> Option<EndpointReference> {
    check.children(root, |children| {
        let created = children.required(own, local, EndpointReference::read);
        children.foreign(own);
        created
    })
}
