//! What a party may say in any words, and answers repeat: foreign elements, and elements that may be anything.
//!
//! The published schemas look into such content as far as they know it (`processContents="lax"`): an endpoint reference in it has to be
//! one, and `xml:lang` a language. So it is checked when it comes, or the answers that show it would be invalid. An element of the
//! protocol that cannot be checked here does not belong there, and is refused.

use crate::xml::attributes::{REPEATED_ID, fault_of_attribute};
use crate::xml::datatypes::parse_unsigned_integer;
use crate::xml::document_check::{DocumentCheck, read_simple};
use crate::xml::names::qualified_name;
use crate::xml::node::Node;
use crate::xml::ns::{self, ARP, BSP, WSA, WSAG, WSAG_NEG, XML, XSI};
use crate::xml::violation::ViolationKind;

/// The beginning of each message about it.
const REPEATED: &str = "answers repeat it";

/// The elements that the published schemas of these namespaces declare by themselves. Of the others they say nothing outside of
/// their parents.
const DECLARED: [(&str, &[&str]); 4] = [
    (
        WSAG,
        &[
            "AcceptAgreementInput",
            "AcceptAgreementResponse",
            "AgreementFactoryProperties",
            "AgreementId",
            "AgreementOffer",
            "AgreementProperties",
            "AgreementState",
            "AgreementStateProperties",
            "All",
            "Constraint",
            "Context",
            "ContinuingFault",
            "CreateAgreementInput",
            "CreateAgreementResponse",
            "CreatePendingAgreementInput",
            "CreatePendingAgreementResponse",
            "GuaranteeTermState",
            "Location",
            "Name",
            "NoncriticalExtensions",
            "QualifyingCondition",
            "RejectAgreementInput",
            "RejectAgreementResponse",
            "ServiceLevelObjective",
            "ServiceTermState",
            "Template",
            "TerminateInput",
            "TerminateResponse",
            "Terms",
        ],
    ),
    (
        WSAG_NEG,
        &[
            "AdvertiseInput",
            "AdvertiseOutput",
            "InitiateNegotiationInput",
            "InitiateNegotiationOutput",
            "NegotiableTemplate",
            "NegotiateInput",
            "NegotiateOutput",
            "NegotiationContext",
            "NegotiationCounterOffer",
            "NegotiationExtension",
            "NegotiationOffer",
            "NegotiationOfferContext",
            "NegotiationProperties",
            "RenegotiationExtension",
            "TerminateInput",
            "TerminateResponse",
        ],
    ),
    (ARP, &["AllocationTimeConstraint"]),
    (
        WSA,
        &[
            "Action",
            "MessageID",
            "ProblemAction",
            "ProblemHeader",
            "ProblemHeaderQName",
            "ProblemIRI",
            "RelatesTo",
            "RetryAfter",
            "To",
        ],
    ),
];

/// Checks an element that may be anything, as its parent has it: its attributes and all that is in it. The guard bounds the depth of
/// this recursion.
pub(crate) fn check_repeated(check: &mut DocumentCheck, node: Node<'_>) {
    if node.attribute(XSI, "type").is_some() {
        // It says that it is a string.
        check.string(node);
        return;
    }
    for (namespace, local, value) in node.attributes() {
        let why = match (namespace, local) {
            (XSI, "schemaLocation" | "noNamespaceSchemaLocation") => None,
            (XSI, _) => Some("an attribute of XML Schema that is not read here"),
            (XML, "id") => Some(REPEATED_ID),
            _ => fault_of_attribute(namespace, local, value),
        };
        if let Some(why) = why {
            let below = format!("/@{}", qualified_name(namespace, local));
            check.add_below(node, &below, ViolationKind::Value, format!("{REPEATED}: {why}"));
        }
    }
    for child in node.children() {
        check_repeated_element(check, child);
    }
}

/// Checks a foreign element, or one in an element that may be anything.
pub(crate) fn check_repeated_element(check: &mut DocumentCheck, node: Node<'_>) {
    match (node.namespace(), node.local()) {
        (WSA, "EndpointReference" | "ReplyTo" | "From" | "FaultTo") => {
            check_known_if_repeated(check, node, check_repeated_endpoint);
        }
        (WSA, "Metadata") => check_repeated(check, node),
        (BSP, "Reason" | "Status") => {
            check_known_if_repeated(check, node, |check, node| drop(check.string(node)));
        }
        (BSP, "Bytes") => check_known_if_repeated(check, node, |check, node| {
            read_simple(parse_unsigned_integer)(check, node);
        }),
        (namespace, local) if declares_repeated_element(namespace, local) => {
            let message = format!(
                "{REPEATED}, and {} cannot be checked there: an element of a namespace of your own is expected, or \
                 wsa:EndpointReference",
                node.name()
            );
            check.structure(node, message);
        }
        _ => check_repeated(check, node),
    }
}

/// Whether an element is declared, or of a namespace of which nearly all are.
fn declares_repeated_element(namespace: &str, local: &str) -> bool {
    match DECLARED.iter().find(|(declared, _)| *declared == namespace) {
        Some((_, names)) => names.contains(&local),
        None => ns::usual_prefix(namespace).is_some(),
    }
}

/// Checks an element by itself, and says why its faults matter.
fn check_known_if_repeated(
    check: &mut DocumentCheck,
    node: Node<'_>,
    read: impl FnOnce(&mut DocumentCheck, Node<'_>),
) {
    let mut own = DocumentCheck::default();
    read(&mut own, node);
    let mut found = own.into_violations();
    for violation in found
        .iter_mut()
        .filter(|found| !found.message.starts_with(REPEATED))
    {
        violation.message = format!("{REPEATED}: {}", violation.message);
    }
    check.extend(found);
}

/// `wsa:EndpointReferenceType`.
fn check_repeated_endpoint(check: &mut DocumentCheck, node: Node<'_>) {
    check.children(node, |children| {
        children.required(WSA, "Address", DocumentCheck::uri);
        for name in ["ReferenceParameters", "Metadata"] {
            if let Some(node) = children.take(WSA, name) {
                check_repeated(children.check, node);
            }
        }
        for node in children.foreign(WSA) {
            check_repeated_element(children.check, node);
        }
    });
}
