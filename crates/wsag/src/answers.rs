//! The answers of a provider, as a client reads them. Answers are as hostile as requests: the guard reads them first, and
//! everything of ours in them is checked.

use crate::agreements::AgreementProperties;
use crate::endpoint::EndpointReference;
use crate::faults::Fault;
use crate::negotiations::{
    NegotiationExtension, NegotiationOffer, NegotiationOfferContext, NegotiationRole, OfferState,
    RenegotiationExtension,
};
use crate::xml::ns::{WSAG, WSAG_NEG};
use crate::xml::{
    Document, DocumentCheck, Fragment, INHERITED_MAX, Node, Readable, Violation, ViolationKind, Violations,
    Xml,
};

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
    /// `wsag-neg:NegotiationCounterOffer`, verbatim: for [`acceptance_input`].
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

/// `wsag:CreateAgreementInput` that accepts a counter offer, whose context and terms it repeats word for word: of a negotiation, or of
/// the renegotiation of an agreement that is replaced.
///
/// # Errors
/// What a text lacks that is no [`CounterOffer::source`] with an id.
pub fn acceptance_input(
    counter_offer: &str,
    negotiation: &EndpointReference,
    replaced: Option<&EndpointReference>,
) -> Result<String, Violation> {
    let lacking = |message: &str| Violation {
        path: "/".to_owned(),
        kind: ViolationKind::Structure,
        message: message.to_owned(),
    };
    let document = Document::written(counter_offer).map_err(|why| lacking(&why.to_string()))?;
    let id = document.root().attribute(WSAG_NEG, "OfferId");
    let id = id.ok_or_else(|| lacking("the attribute wsag-neg:OfferId is required"))?;
    let offer = document
        .offer_xml()
        .ok_or_else(|| lacking("an offer is expected"))?;
    let context = NegotiationOfferContext {
        counter_offer_to: id.to_owned(),
        expiration_time: None,
        creator: NegotiationRole::Responder,
        state: OfferState::Acceptable,
        state_extensions: Vec::new(),
        extensions: Vec::new(),
    };
    let mut xml = Xml::document("wsag:CreateAgreementInput", &["wsag", "wsag-neg", "wsa"]);
    xml.insert(&Fragment::written(offer));
    match replaced {
        None => {
            let extension = NegotiationExtension {
                negotiation: Some(negotiation.clone()),
                initiator_negotiation: None,
                context,
                extension: None,
            };
            xml.add("wsag-neg:NegotiationExtension", &extension);
        }
        Some(replaced) => {
            let extension = RenegotiationExtension {
                negotiation: negotiation.clone(),
                initiator_negotiation: None,
                responder_agreement: replaced.clone(),
                context,
                extension: None,
            };
            xml.add("wsag-neg:RenegotiationExtension", &extension);
        }
    }
    Ok(xml.finish())
}
